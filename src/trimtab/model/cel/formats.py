"""Kubernetes' `format` library: named formats that validate a string and say what is wrong with it."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable
from typing import Any

from trimtab.model.cel import times
from trimtab.model.cel.errors import EvaluationError, no_such_overload
from trimtab.model.cel.network import parse_url
from trimtab.model.cel.strings import texts
from trimtab.model.cel.values import NONE, Function, Opaque, Optional

_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN = rf"{_LABEL}(\.{_LABEL})*"
_LABEL_1035 = "[a-z]([-a-z0-9]*[a-z0-9])?"
_QUALIFIED = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_UUID = re.compile(r"(?i)[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}\Z")


class Format(Opaque):
    __slots__ = ("name", "regex_size", "validate")
    type_name = "kubernetes.NamedFormat"

    def __init__(self, name: str, regex_size: int, validate: Callable[[str], list[str]]) -> None:
        self.name = name
        self.regex_size = regex_size  # what the cost of a validation is reckoned from
        self.validate = validate

    def equals(self, other: Any) -> bool:
        return bool(self.name == other.name)


def _regex_problem(message: str, pattern: str, *examples: str) -> str:
    listed = " or ".join(f"'{example}', " for example in examples)
    return f"{message} (e.g. {listed}regex used for validation is '{pattern}')"


_LABEL_MESSAGE = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', "
    "and must start and end with an alphanumeric character"
)
_SUBDOMAIN_MESSAGE = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', "
    "and must start and end with an alphanumeric character"
)
_LABEL_1035_MESSAGE = (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, "
    "and end with an alphanumeric character"
)
_QUALIFIED_MESSAGE = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character"
)


def _too_long(limit: int) -> str:
    return f"must be no more than {limit} characters"


def _pattern(
    limit: int, pattern: str, message: str, examples: tuple[str, ...], prefix: bool
) -> Callable[[str], list[str]]:
    compiled = re.compile(pattern + r"\Z", re.ASCII)

    def validate(text: str) -> list[str]:
        if prefix and text.endswith("-"):
            text = text[:-2] + "a" if len(text) > 1 else text  # a generated suffix will follow the dash
        problems = [_too_long(limit)] if len(text.encode()) > limit else []
        if compiled.match(text) is None:
            problems.append(_regex_problem(message, pattern, *examples))
        return problems

    return validate


def _qualified(text: str) -> list[str]:
    prefix, slash, name = text.rpartition("/")
    if "/" in prefix:
        return [
            "a qualified name "
            + _regex_problem(_QUALIFIED_MESSAGE, _QUALIFIED, "MyName", "my.name", "123-abc")
            + " with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
        ]
    problems = []
    if slash and not prefix:
        problems.append("prefix part must be non-empty")
    elif slash:
        problems += [f"prefix part {problem}" for problem in _SUBDOMAINS(prefix)]
    if not name:
        problems.append("name part must be non-empty")
    elif len(name) > 63:
        problems.append("name part " + _too_long(63))
    if re.fullmatch(_QUALIFIED, name, re.ASCII) is None:
        problems.append("name part " + _regex_problem(_QUALIFIED_MESSAGE, _QUALIFIED, "MyName", "my.name", "123-abc"))
    return problems


def _label_value(text: str) -> list[str]:
    problems = [_too_long(63)] if len(text) > 63 else []
    if re.fullmatch(f"({_QUALIFIED})?", text, re.ASCII) is None:
        message = "a valid label must be an empty string or " + _QUALIFIED_MESSAGE.removeprefix("must ")
        problems.append(_regex_problem(message, f"({_QUALIFIED})?", "MyValue", "my_value", "12345"))
    return problems


def _uri(text: str) -> list[str]:
    try:
        parse_url(text)
    except EvaluationError as error:
        return [str(error).removeprefix("URL parse error during conversion from string: ")]
    return []


def _byte(text: str) -> list[str]:
    try:
        base64.b64decode(text, validate=True)
    except ValueError:
        return ["invalid base64"]
    return []


def _parsed(parse: Callable[[str], Any], problem: str) -> Callable[[str], list[str]]:
    def validate(text: str) -> list[str]:
        try:
            parse(text)
        except (ValueError, EvaluationError):
            return [problem]
        return []

    return validate


_LABELS = (63, _LABEL, _LABEL_MESSAGE, ("my-name", "123-abc"))
_LABELS_1035 = (63, _LABEL_1035, _LABEL_1035_MESSAGE, ("my-name", "abc-123"))
_SUBDOMAINS_OF = (253, _SUBDOMAIN, _SUBDOMAIN_MESSAGE, ("example.com",))
_SUBDOMAINS = _pattern(*_SUBDOMAINS_OF, prefix=False)
FORMATS: dict[str, Format] = {
    "dns1123Label": Format("DNS1123Label", 30, _pattern(*_LABELS, prefix=False)),
    "dns1123Subdomain": Format("DNS1123Subdomain", 60, _SUBDOMAINS),
    "dns1035Label": Format("DNS1035Label", 30, _pattern(*_LABELS_1035, prefix=False)),
    "qualifiedName": Format("QualifiedName", 60, _qualified),
    "dns1123LabelPrefix": Format("DNS1123LabelPrefix", 30, _pattern(*_LABELS, prefix=True)),
    "dns1123SubdomainPrefix": Format("DNS1123SubdomainPrefix", 60, _pattern(*_SUBDOMAINS_OF, prefix=True)),
    "dns1035LabelPrefix": Format("DNS1035LabelPrefix", 30, _pattern(*_LABELS_1035, prefix=True)),
    "labelValue": Format("LabelValue", 40, _label_value),
    "uri": Format("URI", 1103, _uri),
    "uuid": Format("uuid", 70, lambda text: [] if _UUID.match(text) else ["does not match the UUID format"]),
    "byte": Format("byte", 84, _byte),
    "date": Format("date", 71, _parsed(times.date, "invalid date")),
    "datetime": Format("datetime", 71, _parsed(times.timestamp, "invalid datetime")),
}


def named(name: Any) -> Optional:
    texts(name)
    found = FORMATS.get(name)
    return NONE if found is None else Optional(True, found)


def validate(form: Any, text: Any) -> Optional:
    texts(text)
    if type(form) is not Format:
        raise no_such_overload()
    problems = form.validate(text)
    return Optional(True, problems) if problems else NONE


def _constant(form: Format) -> Function:
    return lambda: form


FUNCTIONS: dict[str, Function] = {
    "format.named": named,
    ".validate": validate,
    **{f"format.{name}": _constant(form) for name, form in FORMATS.items()},
}
