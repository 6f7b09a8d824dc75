"""What may be a label key, a label value, a DNS name. Each check returns what is wrong, in the words of
`k8s.io/apimachinery/pkg/util/validation`; an empty list is a good value."""

from __future__ import annotations

import re

_QUALIFIED = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_LABEL_VALUE = f"({_QUALIFIED})?"
_DNS_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_DNS_SUBDOMAIN = rf"{_DNS_LABEL}(\.{_DNS_LABEL})*"

_is_qualified = re.compile(_QUALIFIED).fullmatch
_is_label_value = re.compile(_LABEL_VALUE).fullmatch
_is_dns_subdomain = re.compile(_DNS_SUBDOMAIN).fullmatch

_QUALIFIED_SAYS = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character "
    f"(e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '{_QUALIFIED}')"
)
_LABEL_VALUE_SAYS = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start "
    "and end with an alphanumeric character "
    f"(e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '{_LABEL_VALUE}')"
)
_DNS_SUBDOMAIN_SAYS = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start "
    f"and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '{_DNS_SUBDOMAIN}')"
)


def label_key_problems(key: str) -> list[str]:
    """A qualified name: `name` or `dns.prefix/name`."""
    if len(key) <= 63 and _is_qualified(key):  # most keys of most writes
        return []
    parts = key.split("/")
    if len(parts) > 2:
        ending = " with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
        return ["a qualified name " + _QUALIFIED_SAYS + ending]
    problems = []
    if len(parts) == 2:
        if not parts[0]:
            problems.append("prefix part must be non-empty")
        else:
            problems += ["prefix part " + problem for problem in dns_subdomain_problems(parts[0])]
    name = parts[-1]
    if not name:
        problems.append("name part must be non-empty")
    elif len(name.encode()) > 63:
        problems.append("name part must be no more than 63 characters")
    if not _is_qualified(name):
        problems.append("name part " + _QUALIFIED_SAYS)
    return problems


def label_value_problems(value: str) -> list[str]:
    if len(value) <= 63 and _is_label_value(value):
        return []
    problems = []
    if len(value.encode()) > 63:
        problems.append("must be no more than 63 characters")
    if not _is_label_value(value):
        problems.append(_LABEL_VALUE_SAYS)
    return problems


def dns_subdomain_problems(value: str) -> list[str]:
    problems = []
    if len(value.encode()) > 253:
        problems.append("must be no more than 253 characters")
    if not _is_dns_subdomain(value):
        problems.append(_DNS_SUBDOMAIN_SAYS)
    return problems
