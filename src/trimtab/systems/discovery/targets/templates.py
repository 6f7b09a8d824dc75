"""Names, labels and annotations of Targets from templates of users: a small part of Jinja2, in its sandbox.

A template is text with `{{ … }}` and `{% if … %}` over three names: `discoveryInfo` (what the device said, as in a
Target's status), `address`, and `rule` (name, namespace, labels). What a device did not say is "". There are no loops,
assignments, calls, attributes or arithmetic: `check` reads the syntax tree and refuses all that is not listed here. So
a template ends at once, and no value grows but by `~`, `replace` and `join`, which are bounded.

Templates are compiled once. `check` is what admission asks; `render` refuses what `check` refuses.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import msgspec
from jinja2 import Template, TemplateError, Undefined, nodes
from jinja2.sandbox import ImmutableSandboxedEnvironment

from trimtab.systems.discovery.kinds import DiscoveryInfo

MAX_TEMPLATE = 1024
MAX_OUTPUT = 4096
MAX_DEPTH = 24
"""How deep an expression may be nested."""


class TemplateFailed(ValueError):  # noqa: N818 - it reads as what happened
    """A template that is wrong, or that cannot be rendered for this device. The message says what to do."""


class RuleNames(msgspec.Struct, frozen=True):
    """What a template may know of its rule."""

    name: str
    namespace: str = ""
    labels: Mapping[str, str] = {}


def check(template: str) -> str | None:
    """What is wrong with it; None when it can be used."""
    try:
        _compiled(template)
        for sample in _SAMPLES:
            render(template, *sample)
    except TemplateFailed as error:
        return str(error)
    return None


def render(template: str, info: DiscoveryInfo, address: str, rule: RuleNames) -> str:
    """The text for one device. TemplateFailed."""
    values = {"discoveryInfo": _said(info), "address": address, "rule": msgspec.to_builtins(rule)}
    parts, size = [], 0
    try:
        for part in _compiled(template).generate(values):
            size += len(part)
            if size > MAX_OUTPUT:
                raise TemplateFailed(_TOO_LONG)
            parts.append(part)
    except TemplateFailed:
        raise
    except (TemplateError, TypeError, ValueError, LookupError) as error:
        raise TemplateFailed(f"the template cannot be rendered: {error}") from error
    return "".join(parts)


class _Environment(ImmutableSandboxedEnvironment):
    """Values are looked up in mappings and lists only, so no object has attributes; what is missing is ""."""

    def getitem(self, obj: Any, argument: Any) -> Any:
        if isinstance(obj, Mapping):
            return obj.get(argument, "")
        if isinstance(obj, str | list | tuple) and isinstance(argument, int | slice):
            try:
                return obj[argument]
            except IndexError:
                return ""
        raise TemplateFailed(f"{argument!r} cannot be looked up in a {_called(obj)}")

    def getattr(self, obj: Any, attribute: str) -> Any:
        return self.getitem(obj, attribute)


@functools.lru_cache(maxsize=512)
def _compiled(template: str) -> Template:
    if len(template) > MAX_TEMPLATE:
        raise TemplateFailed(f"must have at most {MAX_TEMPLATE} characters")
    try:
        tree = _ENVIRONMENT.parse(template)
        _judge(tree, 0)
        return _ENVIRONMENT.from_string(template)
    except TemplateError as error:
        raise TemplateFailed(f"is no template: {error.message}") from error
    except RecursionError:
        raise TemplateFailed(_TOO_DEEP) from None


def _judge(node: nodes.Node, depth: int) -> None:
    """TemplateFailed for the first thing in the tree that is not allowed."""
    if depth > MAX_DEPTH:
        raise TemplateFailed(_TOO_DEEP)
    if not isinstance(node, _ALLOWED):
        what = _WORDS.get(type(node).__name__, type(node).__name__.lower())
        raise TemplateFailed(f"{what} cannot be used in a template: it has {{{{ … }}}}, {{% if %}} and filters")
    match node:
        case nodes.Name(name=name) if name not in _NAMES:
            raise TemplateFailed(f"{name} is not known: there are {', '.join(_NAMES)}")
        case nodes.Filter(name=name) if name not in _FILTERS:
            raise TemplateFailed(f"there is no filter {name}: there are {', '.join(_FILTERS)}")
        case nodes.Test(name=name) if name not in _TESTS:
            raise TemplateFailed(f"there is no test {name}: there are {', '.join(_TESTS)}")
        case nodes.Operand(op=op) if op not in _COMPARISONS:
            raise TemplateFailed("values are compared by ==, != and in")
        case (
            nodes.Getattr(node=nodes.Name(name=name), attr=field)
            | nodes.Getitem(node=nodes.Name(name=name), arg=nodes.Const(value=field))
        ) if name in _FIELDS and field not in _FIELDS[name]:
            raise TemplateFailed(f"{name}.{field} is not known: {name} has {', '.join(_FIELDS[name])}")
    for child in node.iter_child_nodes():
        _judge(child, depth + (not isinstance(child, nodes.Output)))


def _said(info: DiscoveryInfo) -> dict[str, Any]:
    """Every field, with "" or [] for what is not known."""
    return {**_SILENT, **msgspec.to_builtins(info)}


def _text(value: Any) -> str:
    """The one way in which a value becomes text; `x if y` without an `else` is ""."""
    if isinstance(value, Undefined):
        return ""
    if isinstance(value, str | int):
        return str(value)
    how = {"list": ": use first, last or join", "dict": ": name one of its fields"}.get(_called(value), "")
    raise TemplateFailed(f"a {_called(value)} is no text{how}")


def _bounded(size: int) -> None:
    if size > MAX_OUTPUT:
        raise TemplateFailed(_TOO_LONG)


def _replace(value: Any, old: str, new: str) -> str:
    text, old, new = _text(value), _text(old), _text(new)
    _bounded(len(text) + text.count(old) * len(new))
    return text.replace(old, new)


def _split(value: Any, separator: str = ".") -> list[str]:
    return _text(value).split(_text(separator) or None)


def _join(value: Any, separator: str = "") -> str:
    texts, separator = [_text(item) for item in _listed(value)], _text(separator)
    _bounded(sum(map(len, texts)) + len(texts) * len(separator))
    return separator.join(texts)


def _listed(value: Any) -> Sequence[Any]:
    return value if isinstance(value, list | tuple) else _text(value)


def _called(value: Any) -> str:
    return {"str": "text", "int": "number", "tuple": "list", "NoneType": "none"}.get(
        type(value).__name__, type(value).__name__
    )


_FILTERS: dict[str, Callable[..., Any]] = {
    "default": lambda value, other="": value or other,
    "first": lambda value: next(iter(_listed(value)), ""),
    "join": _join,
    "last": lambda value: next(reversed(_listed(value)), ""),
    "lower": lambda value: _text(value).lower(),
    "replace": _replace,
    "split": _split,
    "trim": lambda value: _text(value).strip(),
    "upper": lambda value: _text(value).upper(),
}
_TESTS: dict[str, Callable[..., Any]] = {"defined": bool}
_COMPARISONS = ("eq", "ne", "in", "notin")
_SILENT: dict[str, Any] = {
    field.encode_name: [] if field.name == "supported_encodings" else ""
    for field in msgspec.structs.fields(DiscoveryInfo)
}
_FIELDS = {"discoveryInfo": tuple(_SILENT), "rule": tuple(field.name for field in msgspec.structs.fields(RuleNames))}
_NAMES = ("discoveryInfo", "address", "rule")
_ALLOWED = (
    nodes.Template,
    nodes.Output,
    nodes.TemplateData,
    nodes.If,
    nodes.Name,
    nodes.Const,
    nodes.Getattr,
    nodes.Getitem,
    nodes.Slice,
    nodes.List,
    nodes.Tuple,
    nodes.Keyword,
    nodes.Filter,
    nodes.Test,
    nodes.CondExpr,
    nodes.Compare,
    nodes.Operand,
    nodes.And,
    nodes.Or,
    nodes.Not,
    nodes.Neg,
    nodes.Concat,
)
_WORDS = {
    "For": "a loop",
    "Assign": "{% set %}",
    "AssignBlock": "{% set %}",
    "Call": "a call (for x.split('.') write x | split('.'))",
    "Add": "+ (put texts together by ~)",
    "Sub": "-",
    "Mul": "*",
    "Pow": "**",
    "Mod": "%",
    "Div": "/",
    "FloorDiv": "//",
}
_TOO_LONG = f"gives more than {MAX_OUTPUT} characters"
_TOO_DEEP = f"is nested too deeply: {MAX_DEPTH} levels are the most"
_SAMPLES = (
    (DiscoveryInfo(), "10.1.0.5", RuleNames("rule", "default")),
    (
        DiscoveryInfo(
            protocol="gnmi",
            provider="srl.nokia.example",
            platform="7220 IXR-D2L",
            version="24.10.1",
            hostname="leaf1.example.com",
            serial_number="SIM1",
            mac_address="1a:b0:00:ff:00:00",
            supported_encodings=("JSON_IETF",),
        ),
        "2001:db8::5",
        RuleNames("rule", "default", {"site": "north"}),
    ),
)


def _environment() -> _Environment:
    made = _Environment(finalize=_text, autoescape=False)
    made.globals = {}
    made.filters = cast("dict[str, Any]", _FILTERS)
    made.tests = cast("dict[str, Any]", _TESTS)
    return made


_ENVIRONMENT = _environment()
