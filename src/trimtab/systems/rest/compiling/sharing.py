"""From objects by number to a tree with names: what is used once is put in its place, what is used again or contains itself
becomes a type. Names come from the document; the same document gives the same names."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping

import msgspec

from trimtab.systems.rest.compiling.tree import Made
from trimtab.systems.rest.model import Node


class Shared:
    """The outcome: `root` and `types` with names, `names` by number."""

    def __init__(self, root: Node, made: Mapping[str, Made]) -> None:
        self._made = made
        self._uses: Counter[str] = Counter()
        self._names: dict[str, str] = {}
        self._taken: set[str] = set()
        self.types: dict[str, Node] = {}
        self._count(root)
        placed = self._placed(root)
        self.root = taken(placed, self.types[placed.ref]) if placed.ref else placed

    def paths(self, most: int = 2000) -> list[str]:
        """Of the fields, for messages; each type once."""
        found: list[str] = []
        pending, seen = [(self.root, "")], set()
        while pending and len(found) < most:
            node, path = pending.pop(0)
            if node.ref:
                if node.ref in seen:
                    continue
                seen.add(node.ref)
                node = self.types[node.ref]
            for name, child in node.properties.items():
                found.append(f"{path}.{name}" if path else name)
                pending.append((child, found[-1]))
            if node.items is not None:
                pending.append((node.items, path + ("[]" if node.type == "array" else ".*")))
        return found

    def _count(self, root: Node) -> None:
        pending, seen = [root], set()
        while pending:
            node = pending.pop()
            if node.ref:
                self._uses[node.ref] += 1
                if node.ref not in seen:
                    seen.add(node.ref)
                    pending.append(self._node(node.ref))
                continue
            for number in node.variants.values():
                self._uses[number] += 2  # is always a type: the variants name it
                if number not in seen:
                    seen.add(number)
                    pending.append(self._node(number))
            pending.extend(_children(node))

    def _placed(self, node: Node) -> Node:
        if not node.ref:
            return self._inside(node)
        if self._uses[node.ref] > 1:
            return msgspec.structs.replace(node, ref=self._type(node.ref))
        return taken(node, self._inside(self._node(node.ref)))

    def _inside(self, node: Node) -> Node:
        if not (node.properties or node.items is not None or node.variants):
            return node
        return msgspec.structs.replace(
            node,
            properties={name: self._placed(child) for name, child in node.properties.items()},
            items=self._placed(node.items) if node.items is not None else None,
            variants={value: self._type(number) for value, number in node.variants.items()},
            keys=self._sound(node),
        )

    def _sound(self, node: Node) -> tuple[str, ...]:
        """The keys of a list, if its items have them: where a type contains itself, that is known only now."""
        if node.items is None or not node.keys:
            return node.keys
        items = self._node(node.items.ref) if node.items.ref else node.items
        return node.keys if all(key.partition(".")[0] in items.properties for key in node.keys) else ()

    def _type(self, number: str) -> str:
        name = self._names.get(number)
        if name is None:
            name = self._names[number] = self._free(self._made[number].name)
            self.types[name] = self._inside(self._node(number))
        return name

    def _free(self, wanted: str) -> str:
        """A name that no other type has."""
        stem = re.sub(r"[^A-Za-z0-9]+", "", wanted[:1].upper() + wanted[1:]) or "Object"
        if stem[0].isdigit():
            stem = f"Type{stem}"
        name, count = stem, 1
        while name in self._taken:
            count += 1
            name = f"{stem}{count}"
        self._taken.add(name)
        return name

    def _node(self, number: str) -> Node:
        node = self._made[number].node
        assert node is not None  # noqa: S101 - the tree is whole
        return node


def taken(use: Node, shared: Node) -> Node:
    """A type in the place where it is used: its structure, and what the field says of itself."""
    return msgspec.structs.replace(
        shared,
        field=use.field,
        why=use.why,
        writers=use.writers,
        compare=use.compare,
        description=use.description or shared.description,
        nullable=use.nullable or shared.nullable,
        default=use.default,
        fill=use.fill,
        reference=use.reference or shared.reference,
    )


def _children(node: Node) -> Iterator[Node]:
    yield from node.properties.values()
    if node.items is not None:
        yield node.items
