r"""Kubernetes JSONPath: printer columns, `kubectl -o jsonpath`, sorting, scale and selectable fields.

The dialect is that of `k8s.io/client-go/util/jsonpath`, its habits included: `['a.b']` is two steps (`['a\.b']` is one
key with a dot), and a filter compares one element with one. A path of plain names, which most columns are, compiles to
a chain of look-ups; all else to a chain of functions from a list of values to a list of values.
"""

from __future__ import annotations

from typing import Any

from trimtab.model.jsonpath_parser import Parser, Part
from trimtab.model.jsonpath_steps import JSONPathError, Step, printed, run

__all__ = ["JSONPathError", "Path", "Template", "compile"]


class Path:
    """A compiled path. `find` never fails: where the object has another shape there is no value."""

    __slots__ = ("_keys", "_steps", "text")

    def __init__(self, text: str, steps: list[Step], keys: tuple[str, ...] | None) -> None:
        self.text = text
        self._steps = steps
        self._keys = keys

    def find(self, obj: Any) -> list[Any]:
        if self._keys is None:
            try:
                return run(self._steps, [obj])
            except JSONPathError:
                return []
        for key in self._keys:
            if not isinstance(obj, dict) or key not in obj:
                return []
            obj = obj[key]
        return [obj]

    def first(self, obj: Any) -> Any:
        """The first value or None: what a column shows."""
        if self._keys is None:
            found = self.find(obj)
            return found[0] if found else None
        for key in self._keys:
            if not isinstance(obj, dict):
                return None
            obj = obj.get(key)
        return obj

    @property
    def keys(self) -> tuple[str, ...] | None:
        """The names of a plain dotted path; None for any other."""
        return self._keys

    def __repr__(self) -> str:
        return f"Path({self.text!r})"


def compile(path: str) -> Path:  # noqa: A001 - as re.compile
    """Read `.spec.replicas`, `{.spec.replicas}` or `spec.replicas`. JSONPathError when it is none."""
    text = path.strip()
    if text.startswith("{") and text.endswith("}"):
        text = text[1:-1].strip()
    if text and text[0] not in ".[$@":
        text = "." + text
    parser = Parser(text)
    steps = parser.steps(closed=False)
    if parser.keyword:
        raise JSONPathError(f"unrecognized identifier {parser.keyword}")
    return Path(path, steps, tuple(parser.keys) if parser.plain else None)


class Template:
    """Text with paths in braces, as `kubectl -o jsonpath=` takes it: `{range .items[*]}{.metadata.name} {end}`."""

    __slots__ = ("_parts",)

    def __init__(self, parts: list[Part]) -> None:
        self._parts = parts

    @classmethod
    def parse(cls, text: str) -> Template:
        return cls(Parser(text).template())

    def render(self, obj: Any) -> str:
        """JSONPathError when the object has not the shape that a path asks for; a missing key prints nothing."""
        written: list[str] = []
        _render(self._parts, obj, written)
        return "".join(written)


def _render(parts: list[Part], obj: Any, written: list[str]) -> None:
    for part in parts:
        if isinstance(part, str):
            written.append(part)
            continue
        found = run(part.steps, [obj])
        if part.body is None:
            written.append(" ".join(map(printed, found)))
        else:
            for value in found:
                _render(part.body, value, written)
