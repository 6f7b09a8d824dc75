"""The leaves of a body: what is compared, owned and written one by one.

Objects and maps are walked, lists with keys are walked by their keys, every other list is one leaf. What is empty is a
leaf too, and so is what a read never gives, whatever is in it. Fields that the model does not know are compared exactly.
"""

from __future__ import annotations

from typing import Any

import msgspec

from trimtab.systems.rest.addressing import resource_path
from trimtab.systems.rest.model import FieldClass, Model, Node, Writer
from trimtab.systems.rest.syncing.paths import MISSING, Item, Path, Step, below, format_path, get, parse

DEPTH = 64
"""Below it a value is one leaf, whatever it is."""

UNKNOWN = Node()
"""Of what the model does not know."""


HIDDEN = frozenset({FieldClass.SECRET, FieldClass.WRITE_ONLY})


class Leaf(msgspec.Struct, frozen=True, kw_only=True):
    """One leaf. Classes and writers are those of the field with all that it is below."""

    path: str
    steps: Path
    value: Any
    node: Node
    classes: dict[FieldClass, int]
    """With how many steps down the class was met."""
    entries: tuple[int, ...]
    """How many steps down it enters an item of a list, or the value of a map."""
    writers: Writer

    @property
    def owned(self) -> bool:
        """Whether a spec may say what it is."""
        return FieldClass.READ_ONLY not in self.classes and self.writers is not Writer.NONE

    @property
    def hidden(self) -> bool:
        """Whether a read never gives it."""
        return not HIDDEN.isdisjoint(self.classes)

    @property
    def bare(self) -> bool:
        """An empty object or keyed list asks for itself alone: what others have in it is theirs."""
        return self.value == {} or (self.value == [] and bool(self.node.keys))

    def fixed(self, body: Any) -> bool:
        """Whether it can be given at creation alone, and is no part of an entry that is made, or ends, as a whole."""
        return FieldClass.CREATE_ONLY in self.classes and not self._begins(FieldClass.CREATE_ONLY, body)

    def initial(self, live: Any) -> bool:
        """Whether it was given at creation, and is someone else's since."""
        given = live is not None and FieldClass.INITIAL in self.classes
        return given and not self._begins(FieldClass.INITIAL, live)

    def _begins(self, field: FieldClass, body: Any) -> bool:
        """Whether the body lacks the entry that the class is about."""
        return any(end <= self.classes[field] and get(body, self.steps[:end]) is MISSING for end in self.entries)


def leaves(model: Model, node: Node, value: Any) -> dict[str, Any]:
    """The leaves of a value of this node by their paths."""
    found = _walk(model, node, value, _Above(), {})
    return {path: leaf.value for path, leaf in found.items()}


def walk(model: Model, body: Any) -> dict[str, Leaf]:
    """The leaves of a body by their paths, with what is known of each."""
    if not isinstance(body, dict) or not body:
        return {}
    return _walk(model, body_node(model), body, _Above(), {})


def body_node(model: Model) -> Node:
    """The tree of the spec with the names that the service uses, and with the identity where not every call takes it."""
    root = model.node(model.spec)
    if model.renamed:
        properties = {model.renamed.get(name, name): node for name, node in root.properties.items()}
        root = msgspec.structs.replace(root, properties=properties)
    identity = model.identity
    if identity.field and identity.writers is not Writer.ALL:
        changes = bool(identity.writers & (Writer.UPDATE | Writer.PATCH))
        own = Node(field=FieldClass.WRITABLE if changes else FieldClass.INITIAL, writers=identity.writers)
        root = _with(model, root, parse(identity.field), own)
    return root


def child(model: Model, node: Node, name: str) -> Node:
    """The node of a field or of a map's value; UNKNOWN when there is none."""
    found = node.properties.get(name)
    if found is None and (node.type == "map" or node.additional):
        found = node.items
    return model.node(found) if found is not None else UNKNOWN


def item_node(model: Model, node: Node) -> Node:
    return model.node(node.items) if node.items is not None else UNKNOWN


def node_at(model: Model, steps: Path, body: Any) -> Node:
    """The node of a path, by way of this body: what a discriminator says in it decides."""
    node = body_node(model)
    for step in steps:
        if isinstance(step, str):
            node = child(model, model.variant(node, body) if isinstance(body, dict) else model.node(node), step)
        else:
            node = item_node(model, model.node(node))
        body = get(body, (step,))
    return model.node(node)


def keyed(node: Node, items: list[Any]) -> list[Item] | None:
    """The keys of all items; None when the list has none, or not every item has its own."""
    if not node.keys:
        return None
    found: list[Item] = []
    for item in items:
        if not isinstance(item, dict):
            return None
        values = tuple((key, item.get(key)) for key in node.keys)
        if any(value is None or isinstance(value, dict | list) for _, value in values):
            return None
        found.append(Item(values))
    return found if len({format_path((item,)) for item in found}) == len(found) else None


def is_arm(model: Model) -> bool:
    """Whether Azure's Resource Manager has this resource: a few of its rules are no part of any document."""
    path = resource_path(model).casefold()
    return path.startswith("/subscriptions/") or "/providers/microsoft." in path


def _with(model: Model, node: Node, steps: Path, field: Node) -> Node:
    """The node with a field below it."""
    if not steps:
        return field
    node = model.node(node)
    name = str(steps[0])
    below = _with(model, node.properties.get(name, Node(type="object", additional=True)), steps[1:], field)
    return msgspec.structs.replace(node, properties={**node.properties, name: below})


class _Above(msgspec.Struct, frozen=True):
    """What a leaf inherits."""

    path: str = ""
    steps: Path = ()
    classes: dict[FieldClass, int] = {}
    entries: tuple[int, ...] = ()
    writers: Writer = Writer.ALL

    def below(self, step: Step, classes: dict[FieldClass, int], writers: Writer, *, entry: bool) -> _Above:
        steps = (*self.steps, step)
        entries = (*self.entries, len(steps)) if entry else self.entries
        return _Above(below(self.path, step), steps, classes, entries, writers)


def _walk(model: Model, node: Node, value: Any, above: _Above, found: dict[str, Leaf]) -> dict[str, Leaf]:
    """The leaves are added to `found`."""
    node = model.variant(node, value) if isinstance(value, dict) else model.node(node)
    classes, writers = above.classes, above.writers
    if node.field is not FieldClass.WRITABLE and node.field not in classes:
        classes = {**classes, node.field: len(above.steps)}
    if node.writers is not Writer.ALL:
        writers &= node.writers
    if len(above.steps) < DEPTH and HIDDEN.isdisjoint(classes) and value:
        if isinstance(value, dict):
            for name, part in value.items():
                entry = node.type == "map" or (node.additional and name not in node.properties)
                at = above.below(name, classes, writers, entry=entry)
                _walk(model, child(model, node, name), part, at, found)
            return found
        keys = keyed(node, value) if isinstance(value, list) else None
        if keys is not None:
            part_node = item_node(model, node)
            for key, part in zip(keys, value, strict=True):
                _walk(model, part_node, part, above.below(key, classes, writers, entry=True), found)
            return found
    found[above.path] = Leaf(
        path=above.path,
        steps=above.steps,
        value=value,
        node=node,
        classes=classes,
        entries=above.entries,
        writers=writers,
    )
    return found
