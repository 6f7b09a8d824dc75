"""The names that an earlier snapshot gave: what came later may not take them, or configurations would mean other objects.

A snapshot tells them by itself: which group and kind a type is of, and which field of the API an attribute is.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from trimtab.terraform.kinds.definition import Shape

if TYPE_CHECKING:
    from trimtab.terraform.kinds.provider import Source

Kind = tuple[str, str]
"""Group and kind."""
Wires = tuple[str, ...]
"""A place in documents; `*` for every item."""


@dataclass(frozen=True, slots=True)
class Promises:
    types: Mapping[Kind, str] = field(default_factory=dict)
    plurals: Mapping[Kind, str] = field(default_factory=dict)
    branches: Mapping[tuple[Kind, Wires], str] = field(default_factory=dict)
    fields: Mapping[Kind, Mapping[Wires, Mapping[str, str]]] = field(default_factory=dict)
    """Attributes by their names in documents, of each object of each kind."""

    def of(self, kinds: set[Kind]) -> Promises:
        """What is promised of these: the names of kinds that are gone are free."""
        return Promises(
            {kind: name for kind, name in self.types.items() if kind in kinds},
            {kind: name for kind, name in self.plurals.items() if kind in kinds},
            {(kind, path): name for (kind, path), name in self.branches.items() if kind in kinds},
            self.fields,
        )


NO_PROMISES = Promises()


def promises(before: Source) -> Promises:
    types: dict[Kind, str] = {}
    plurals: dict[Kind, str] = {}
    branches: dict[tuple[Kind, Wires], str] = {}
    fields: dict[Kind, dict[Wires, dict[str, str]]] = {}
    for name, head in before.heads.items():
        kind = (str(head["group"]), str(head["kind"]))
        if head["branch"]:
            branches[kind, tuple(head["branch"])] = name
            continue
        types[kind] = name
        if head["plural_name"] not in before.heads:
            plurals[kind] = str(head["plural_name"])
        fields[kind] = {path: names for path, names in _names(before.definition(name).root, ()) if names}
    return Promises(types, plurals, branches, fields)


def _names(shape: Shape, path: Wires) -> Iterator[tuple[Wires, dict[str, str]]]:
    yield path, {one.wire: one.name for one in shape.fields}
    for one in shape.fields:
        yield from _names(one.shape, (*path, one.wire))
    if shape.items is not None:
        yield from _names(shape.items, (*path, "*"))
