"""What the names of built-in objects, and the names inside them, may be. Each check returns what is wrong, in the words
of `k8s.io/apimachinery/pkg/util/validation`. With `prefix` the text is a generateName, to which something is added."""

from __future__ import annotations

import re

from trimtab.model.names import dns_subdomain_problems

DNS_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
DNS_1035 = "[a-z]([-a-z0-9]*[a-z0-9])?"
CONFIG_KEY = "[-._a-zA-Z0-9]+"

_is_dns_label = re.compile(DNS_LABEL).fullmatch
_is_dns_1035 = re.compile(DNS_1035).fullmatch
_is_config_key = re.compile(CONFIG_KEY).fullmatch

_DNS_LABEL_SAYS = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with "
    f"an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '{DNS_LABEL}')"
)
_DNS_1035_SAYS = (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, "
    f"and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '{DNS_1035}')"
)
_CONFIG_KEY_SAYS = (
    "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or "
    f"'key-name', regex used for validation is '{CONFIG_KEY}')"
)


def dns_label(name: str, prefix: bool = False) -> list[str]:
    name = _whole(name, prefix)
    problems = ["must be no more than 63 characters"] if len(name.encode()) > 63 else []
    if not _is_dns_label(name):
        problems.append(_DNS_LABEL_SAYS if dns_subdomain_problems(name) else "must not contain dots")
    return problems


def dns_1035(name: str, prefix: bool = False) -> list[str]:
    name = _whole(name, prefix)
    problems = ["must be no more than 63 characters"] if len(name.encode()) > 63 else []
    if not _is_dns_1035(name):
        problems.append(_DNS_1035_SAYS)
    return problems


def dns_subdomain(name: str, prefix: bool = False) -> list[str]:
    return dns_subdomain_problems(_whole(name, prefix))


def path_segment(name: str, prefix: bool = False) -> list[str]:
    """RBAC names: anything that can stand between two slashes."""
    if name in (".", "..") and not prefix:
        return [f"may not be '{name}'"]
    return [f"may not contain '{sign}'" for sign in "/%" if sign in name]


def config_key(key: str) -> list[str]:
    """A key of a ConfigMap or a Secret, which may become the name of a file."""
    problems = ["must be no more than 253 characters"] if len(key.encode()) > 253 else []
    if not _is_config_key(key):
        problems.append(_CONFIG_KEY_SAYS)
    if key == ".":
        problems.append("must not be '.'")
    elif key == "..":
        problems.append("must not be '..'")
    elif key.startswith(".."):
        problems.append("must not start with '..'")
    return problems


def env_name(name: str) -> list[str]:
    """With RelaxedEnvironmentVariableValidation, which is on in 1.32."""
    if not name:
        return ["environment variable name must be non-empty"]
    if any(sign == "=" or not " " <= sign <= "~" for sign in name):
        return ["a valid environment variable name must consist only of printable ASCII characters other than '='"]
    return []


def port_name(name: str) -> list[str]:
    problems = []
    if len(name) > 15:
        problems.append("must be no more than 15 characters")
    if not re.fullmatch(r"[-a-z0-9]+", name):
        problems.append("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)")
    if not re.search(r"[a-z]", name):
        problems.append("must contain at least one letter (a-z)")
    if "--" in name:
        problems.append("must not contain consecutive hyphens")
    if name.startswith("-") or name.endswith("-"):
        problems.append("must not begin or end with a hyphen")
    return problems


def port_number(port: int) -> list[str]:
    return [] if 1 <= port <= 65535 else ["must be between 1 and 65535, inclusive"]


def _whole(name: str, prefix: bool) -> str:
    """A trailing hyphen of a generateName is fine: something follows it."""
    return name[:-1] + "a" if prefix and len(name) > 1 and name.endswith("-") else name
