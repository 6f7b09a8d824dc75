"""What may not change once the resource exists, and what has no effect then.

A change is any difference in structure: to set what was unset is one, unless it says what the service says already (an
object that was adopted with half a spec). Items of a list are found by their keys; a list without keys is compared item
by item only while it has as many: an item that is new is none that changed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from trimtab.systems.rest.model import FieldClass, Model, Node
from trimtab.systems.rest.state import Policy
from trimtab.systems.rest.syncing.paths import MISSING, Item, Path, Step
from trimtab.systems.rest.validating.finding import Found

DEEPEST = 64
FIXED = ("name", "parent", "parameters", "resourceID")
"""Until it exists, all of them may be set: also the ID of what someone finds, when nobody knows what became of a creation."""


def check_control(new: Mapping[str, Any], old: Mapping[str, Any], found: Found, *, exists: bool) -> None:
    """The fields that say which resource it is."""
    if exists:
        for name in FIXED:
            if (new.get(name) or None) != (old.get(name) or None):
                found.forbid(("spec", name), f"may not change once the resource exists; {_ANEW}")


class Changes:
    """One comparison of an old spec with a new one."""

    def __init__(self, model: Model, policy: Policy, found: Found) -> None:
        self._model = model
        self._recreates = policy.create_only == "recreate"
        self._found = found

    def body(self, new: Mapping[str, Any], old: Mapping[str, Any], observed: Any) -> None:
        self._value(self._model.spec, dict(new), dict(old), observed, ("spec",))

    def _value(self, node: Node, new: Any, old: Any, observed: Any, path: Path) -> None:
        if new == old or len(path) > DEEPEST or self._found.full:
            return
        node = self._model.node(node)
        if node.field is FieldClass.CREATE_ONLY:
            self._fixed(new, old, observed, path)
        elif node.field is FieldClass.INITIAL:
            self._found.warn(path, "has no effect any more: it counts only when the resource is created")
        elif node.type in ("object", "map"):
            before, after = (value if isinstance(value, Mapping) else {} for value in (old, new))
            for name, inner in self._fields(node, after, before):
                self._value(
                    inner, after.get(name, MISSING), before.get(name, MISSING), _below(observed, name), (*path, name)
                )
        elif node.type == "array" and node.items is not None and isinstance(new, list) and isinstance(old, list):
            for step, one, other in _pairs(node, new, old):
                self._value(node.items, one, other, None, (*path, step))

    def _fields(self, node: Node, new: Mapping[str, Any], old: Mapping[str, Any]) -> Iterator[tuple[str, Node]]:
        """What both may have: of the variant that the new one is, else that the old one was."""
        node = self._model.variant(node, new or old)
        for name in dict.fromkeys((*old, *new)):
            inner = node.properties.get(name, node.items if node.type == "map" else None)
            if inner is not None:
                yield name, inner

    def _fixed(self, new: Any, old: Any, observed: Any, path: Path) -> None:
        if old is MISSING and observed is not None and new == observed:
            return
        if self._recreates:
            self._found.warn(path, "is create-only: the resource is deleted and created anew (spec.policy.createOnly)")
            return
        what = "may not be set later" if old is MISSING else "may not be unset" if new is MISSING else "may not change"
        self._found.forbid(path, f"is create-only and {what}: the resource exists; {_RECREATE}")


def _pairs(node: Node, new: list[Any], old: list[Any]) -> Iterator[tuple[Step, Any, Any]]:
    """Items that are the same one before and after."""
    if not node.keys:
        if len(new) == len(old):
            yield from ((at, one, other) for at, (one, other) in enumerate(zip(new, old, strict=True)))
        return
    for one in new:
        if isinstance(one, Mapping) and all(key in one for key in node.keys):
            step = Item(tuple((key, one[key]) for key in node.keys))
            at = step.found(old)
            if at is not None:
                yield step, one, old[at]


def _below(observed: Any, name: str) -> Any:
    return observed.get(name) if isinstance(observed, Mapping) else None


_ANEW = "make another object for another resource"
_RECREATE = "with spec.policy.createOnly: recreate it would be deleted and created anew"
