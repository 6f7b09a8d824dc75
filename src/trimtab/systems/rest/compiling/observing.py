"""The read-only fields of all objects of a tree, with their paths: the highest only, for all below them is read-only too.

A path leads through a type once; what a type that contains itself has further down is not listed again.
"""

from __future__ import annotations

from collections.abc import Mapping

from trimtab.systems.rest.compiling.tree import Made
from trimtab.systems.rest.model import Node
from trimtab.systems.rest.syncing.paths import Path, Wild, format_path

MOST = 4096
"""Paths that are listed; a document with more is one of very many variants."""


def observed(root: Node, made: Mapping[str, Made]) -> tuple[Node, dict[str, str]]:
    """What is only read, as a tree and by its paths with the reasons."""
    found = _Observing(made)
    return found.node(root, (), ()) or Node(type="object"), found.paths


class _Observing:
    def __init__(self, made: Mapping[str, Made]) -> None:
        self._made = made
        self._worth = _worthwhile(made)
        self.paths: dict[str, str] = {}

    def node(self, node: Node, path: Path, within: tuple[str, ...]) -> Node | None:
        """None when nothing below it is read-only, or it was listed above."""
        if node.ref:
            return self._object(node.ref, path, within)
        if node.items is not None and node.type in ("array", "map"):
            items = self.node(node.items, (*path, Wild.ITEM if node.type == "array" else Wild.FIELD), within)
            return Node(type=node.type, items=items, keys=node.keys) if items is not None else None
        return self._properties(node.properties, {}, path, within)

    def _object(self, number: str, path: Path, within: tuple[str, ...]) -> Node | None:
        if number in within or number not in self._worth or len(self.paths) >= MOST:
            return None
        within = (*within, number)
        made = self._made[number]
        node = made.node
        assert node is not None  # noqa: S101 - the tree is whole
        found = self._properties(node.properties, made.read_only, path, within)
        properties = dict(found.properties) if found is not None else {}
        for variant in node.variants.values():
            further = self._object(variant, path, within)
            if further is not None:
                properties = {**further.properties, **properties}
        return Node(type="object", properties=properties, additional=True) if properties else None

    def _properties(
        self, properties: Mapping[str, Node], read_only: Mapping[str, Node], path: Path, within: tuple[str, ...]
    ) -> Node | None:
        found = {}
        for name, node in read_only.items():
            self.paths.setdefault(format_path((*path, name)), node.why)
            found[name] = node
        for name, node in properties.items():
            below = self.node(node, (*path, name), within)
            if below is not None:
                found[name] = below
        return Node(type="object", properties=found, additional=True) if found else None


def _worthwhile(made: Mapping[str, Made]) -> set[str]:
    """The objects that have read-only fields, or lead to one that has."""
    users: dict[str, list[str]] = {}
    for number, one in made.items():
        if one.node is not None:
            for other in _refs(one.node):
                users.setdefault(other, []).append(number)
    found = {number for number, one in made.items() if one.read_only}
    pending = list(found)
    while pending:
        for user in users.get(pending.pop(), ()):
            if user not in found:
                found.add(user)
                pending.append(user)
    return found


def _refs(node: Node) -> list[str]:
    found, pending = list(node.variants.values()), [*node.properties.values()]
    if node.items is not None:
        pending.append(node.items)
    while pending:
        below = pending.pop()
        if below.ref:
            found.append(below.ref)
        pending.extend(below.properties.values())
        if below.items is not None:
            pending.append(below.items)
    return found
