"""What is wrong with an HTTPMatchRequest of Istio: one of `spec.analysis.match`, or of a route."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from trimtab.model.errors import FieldError
from trimtab.systems.delivery.problems.findings import keyed, mistyped, unsupported, wrong
from trimtab.systems.delivery.problems.shapes import Each, Fields, Flag, Table, Text, Whole, mistakes

_SHAPE = Fields(
    {
        "name": Text(),
        "port": Whole(1, 65535),
        "gateways": Each(Text()),
        "sourceLabels": Table(Text()),
        "sourceNamespace": Text(),
        "ignoreUriCase": Flag(),
        "headers": Fields(),
        "withoutHeaders": Fields(),
        "queryParams": Fields(),
    }
)
_STRINGS = ("exact", "prefix", "regex")


def match_problems(path: str, match: Any) -> Iterator[FieldError]:
    yield from mistakes(match, _SHAPE, path)
    if not isinstance(match, Mapping):
        return
    for field in ("uri", "scheme", "method", "authority"):
        if match.get(field) is not None:
            yield from _string_problems(f"{path}.{field}", match[field])
    for field in ("headers", "withoutHeaders", "queryParams"):
        if isinstance(match.get(field), Mapping):
            for name, value in match[field].items():
                yield from _string_problems(keyed(f"{path}.{field}", name), value, empty=True)


def _string_problems(path: str, value: Any, *, empty: bool = False) -> Iterator[FieldError]:
    """Of a StringMatch. An empty one of a header asks that it is there."""
    if not isinstance(value, Mapping):
        yield mistyped(path, value, 'an object such as {exact: "yes"}')
        return
    if not value and empty:
        return
    for name in value:
        if name not in _STRINGS:
            yield unsupported(keyed(path, name), name, _STRINGS)
    given = [name for name in _STRINGS if value.get(name) is not None]
    if len(given) != 1:
        yield wrong(path, ", ".join(given) or "none", f"must have exactly one of {', '.join(_STRINGS)}")
    for name in given:
        if not isinstance(value[name], str):
            yield mistyped(f"{path}.{name}", value[name], "a text: put it in quotes")
