"""The tree of what may be written, from the bodies that create, update and patch and from what a read answers. They are
walked side by side; each field says which calls take it.

Objects are made once for each set of schemas and kept by a number, so that types may contain themselves; `sharing` gives
them names and puts those that are used once in their place. Read-only fields are left out; `Made` remembers them.
"""

from __future__ import annotations

from collections.abc import Collection

import msgspec
from msgspec import UNSET

from trimtab.systems.rest.compiling import slots as at
from trimtab.systems.rest.compiling import values
from trimtab.systems.rest.compiling.classes import Level, classify, is_secret, why_secret
from trimtab.systems.rest.compiling.overlays import Overlaid
from trimtab.systems.rest.compiling.slots import OPEN, Slots
from trimtab.systems.rest.compiling.watched import Watched
from trimtab.systems.rest.kinds.definition import FieldOverlay
from trimtab.systems.rest.model import Comparator, FieldClass, Node, Writer
from trimtab.systems.rest.openapi.schema import Schema
from trimtab.systems.rest.syncing.paths import Wild, format_path

DEPTH = 64
"""Below it a schema is taken for any value."""


class Made:
    """An object of the tree. `node` is None until all below is known."""

    __slots__ = ("name", "node", "read_only")

    def __init__(self, name: str) -> None:
        self.name = name
        self.node: Node | None = None
        self.read_only: dict[str, Node] = {}

    @property
    def empty(self) -> bool:
        """Whether nothing in it may be written."""
        node = self.node
        return node is not None and not (node.properties or node.additional or node.variants)


class Tree:
    """One kind's. `made` is by number, which nodes have as their `ref` for now."""

    def __init__(self, *, arm: bool, constants: Collection[str] = ()) -> None:
        self._arm = arm
        self._constants = constants  # properties of the body that the overlay fills
        self._watched = Watched()
        self._numbers: dict[tuple[object, ...], str] = {}
        self.made: dict[str, Made] = {}
        self.ignored: list[str] = []

    def root(self, slots: Slots, overlay: Overlaid) -> Node:
        """Of the whole body."""
        if slots.main is None or not (slots.main.properties or slots.main.discriminator):
            if slots.main is None:  # no body is described: it may be anything
                slots = Slots(OPEN, OPEN, OPEN, slots.read)
            return msgspec.structs.replace(self._map(slots, overlay, 0), type="object", additional=True)
        return self._object(slots, overlay, Level.TOP, 0)

    def _value(self, slots: Slots, name: str, overlay: Overlaid | None, level: Level, depth: int) -> Node:
        schema = slots.main
        if schema is None or depth > DEPTH:
            return Node()
        if schema.discriminator is not None:
            return self._object(slots, overlay, level, depth)
        if len(schema.one_of) > 1 or len(schema.any_of) > 1:
            return Node(nullable=schema.nullable)
        if schema.properties:
            return self._object(slots, overlay, level, depth)
        if schema.type == "array":
            return self._array(schema, slots, overlay, depth)
        if schema.type == "object":
            return self._map(slots, overlay, depth)
        if schema.type in values.SCALARS:
            return values.scalar(schema, name, arm=self._arm)
        return Node(nullable=schema.nullable)

    def _object(self, slots: Slots, overlay: Overlaid | None, level: Level, depth: int, variant: str = "") -> Node:
        """With `variant` it is what that value of a discriminator means."""
        schema = slots.main
        assert schema is not None  # noqa: S101 - whoever calls has looked
        slots = Slots(*(at.objects(slot) for slot in slots))
        key = (*(slot.key if isinstance(slot, Schema) else slot for slot in slots), id(overlay), level, bool(variant))
        number = self._numbers.get(key)
        if number is not None:
            return Node(ref=number)
        number = self._numbers[key] = str(len(self._numbers))
        made = self.made[number] = Made(schema.name or variant)
        properties = {}
        required = set(at.required(slots))
        for name in at.names(slots, overlay.named() if overlay is not None else ()):
            place = overlay.below(name) if overlay is not None else None
            field = self._field(name, slots, place, made, level, depth)
            if field is not None:
                properties[name] = field
                if place is not None and place.says is not None and place.says.required:
                    required.add(name)
        discriminator, variants = ("", {}) if variant else self._variants(slots, overlay, level, depth)
        if discriminator and discriminator not in properties:
            properties[discriminator] = Node(type="string", enum=tuple(variants))
        if level is Level.TOP:
            required -= set(self._constants)
        additional = schema.additional
        made.node = Node(
            type="object",
            properties=properties,
            additional=bool(additional),
            items=self._additional(slots, overlay, depth) if isinstance(additional, Schema) else None,
            required=tuple(name for name in properties if name in required),
            discriminator=discriminator,
            variants=variants,
            description=values.described(schema) if variant else "",
        )
        return Node(ref=number)

    def _field(
        self, name: str, around: Slots, place: Overlaid | None, made: Made, level: Level, depth: int
    ) -> Node | None:
        """None for what the spec leaves out."""
        slots = Slots(*(at.below(slot, name) for slot in around))
        says = place.says if place is not None else None
        if (place is not None and place.ours) or (says is None and _is_instruction(slots, around)):
            return None
        decision = classify(name, slots, around, says, level=level, arm=self._arm)
        if decision.field is None:
            self.ignored.append(format_path(place.path) if place is not None else name)
            return None
        shown = slots.read if isinstance(slots.read, Schema) else slots.main
        if decision.field is FieldClass.READ_ONLY:
            made.read_only[name] = self._watched.node(name, shown, decision.why, place)
            return None
        if slots.main is None and isinstance(slots.read, Schema):  # the overlay says that it can be written after all
            create, update, patch = (slots.read if slot is not None else None for slot in around.writes)
            slots = Slots(create, update, patch, slots.read)
        further = Level.PROPERTIES if self._arm and level is Level.TOP and name == "properties" else Level.BELOW
        node = self._value(slots, name, place, further, depth + 1)
        if self._empty(node):
            made.read_only[name] = self._watched.node(name, shown, "all of its fields are read-only", place)
            return None
        schema = slots.main
        node = msgspec.structs.replace(
            node,
            field=decision.field,
            why=decision.why,
            writers=decision.writers,
            description=values.described(schema),
            nullable=node.nullable or (schema is not None and schema.nullable),
        )
        if self._arm and name == "id" and level is Level.BELOW and node.type == "string" and _points(around.main):
            node = msgspec.structs.replace(node, compare=Comparator.ARM_ID, reference=node.reference or "*")
        return _overlaid(node, says)

    def _variants(self, slots: Slots, overlay: Overlaid | None, level: Level, depth: int) -> tuple[str, dict[str, str]]:
        declared = slots.main.discriminator if slots.main is not None else None
        if declared is None:
            return "", {}
        found = {}
        for value in declared.mapping:
            meant = Slots(*(at.variant(slot, value) for slot in slots))
            number = self._object(meant, overlay, level, depth + 1, variant=value).ref
            found[value] = number
        return declared.property, found

    def _array(self, schema: Schema, slots: Slots, overlay: Overlaid | None, depth: int) -> Node:
        place = overlay.below(Wild.ITEM) if overlay is not None else None
        below = Slots(*(at.items(slot) for slot in slots))
        items = self._value(below, "", place, Level.BELOW, depth + 1)
        fewest, most = values.counts(schema)
        return Node(
            type="array",
            items=_overlaid(_marked(items, below.main), place.says if place is not None else None),
            keys=self._keys(schema, below, items),
            unordered=schema.get("uniqueItems") is True and items.type in values.SCALARS,
            nullable=schema.nullable,
            default=values.default(schema, "array"),
            min_items=fewest,
            max_items=most,
        )

    def _keys(self, schema: Schema, below: Slots, items: Node) -> tuple[str, ...]:
        """What identifies the items: only what the spec itself can give."""
        made = self.made.get(items.ref)
        if made is None or below.main is None:
            return ()
        known = made.node.properties if made.node is not None else below.main.properties
        named = values.identifiers(schema)
        if named and all(name.partition(".")[0] in known for name in named):
            return named
        schemas = [slot for slot in below if isinstance(slot, Schema)]
        for name in ("name", "id"):
            if name in known and name in below.main.required and all(name in each.properties for each in schemas):
                return (name,)
        embedded = self._arm and {"id", "name", "properties"} <= below.main.properties.keys()
        return ("name",) if embedded and "name" in known else ()

    def _map(self, slots: Slots, overlay: Overlaid | None, depth: int) -> Node:
        items = self._additional(slots, overlay, depth)
        named = {}
        for name in overlay.named() if overlay is not None else ():
            place = overlay.below(name) if overlay is not None else None
            if place is not None and place.says is not None and place.says.class_ == "ignored":
                self.ignored.append(format_path(place.path))
            elif place is not None:
                value = self._value(Slots(*(at.values_of(slot) for slot in slots)), name, place, Level.BELOW, depth + 1)
                named[name] = _overlaid(value, place.says)
        if named:
            required = tuple(name for name in named if _is_required(overlay, name))
            return Node(type="object", properties=named, additional=True, items=items, required=required)
        return Node(type="map", items=items, nullable=slots.main is not None and slots.main.nullable)

    def _additional(self, slots: Slots, overlay: Overlaid | None, depth: int) -> Node:
        """Of the values of a map."""
        place = overlay.below(Wild.FIELD) if overlay is not None else None
        below = Slots(*(at.values_of(slot) for slot in slots))
        node = self._value(below, "", place, Level.BELOW, depth + 1)
        return _overlaid(_marked(node, below.main), place.says if place is not None else None)

    def _empty(self, node: Node) -> bool:
        """A map is never: its keys may be all that is given (ARM's userAssignedIdentities)."""
        if node.ref:
            return self.made[node.ref].empty
        return node.type == "array" and node.items is not None and self._empty(node.items)


def _is_instruction(slots: Slots, around: Slots) -> bool:
    """Whether a field is one to PATCH alone, and no part of what the resource is: no other body has it, nor what is read."""
    create, update, patch, read = slots
    return patch is not None and not (create or update or read) and around.main is not around.patch


def _marked(item: Node, schema: Schema | None) -> Node:
    """An item of a list or a value of a map, which may be a secret of its own."""
    if schema is None or not is_secret(schema):
        return item
    return msgspec.structs.replace(item, field=FieldClass.SECRET, why=why_secret(schema))


def _overlaid(node: Node, says: FieldOverlay | None) -> Node:
    """With what the overlay says of it."""
    if says is None:
        return node
    changes: dict[str, object] = {}
    if says.class_ is not UNSET and says.class_ != "ignored":
        changes |= {"field": FieldClass(says.class_), "why": "overlay"}
    if says.compare is not UNSET:
        changes["compare"] = Comparator(says.compare)
    if says.keys:
        changes["keys"] = says.keys
    if says.unordered:
        changes["unordered"] = True
    if says.default is not UNSET:
        changes |= {"default": says.default, "fill": True}
    if says.reference:
        changes |= {"reference": says.reference, "compare": changes.get("compare", Comparator.ARM_ID)}
    if not says.patch:
        changes["writers"] = node.writers & ~Writer.PATCH
    return msgspec.structs.replace(node, **changes)


def _is_required(overlay: Overlaid | None, name: str) -> bool:
    place = overlay.children.get(name) if overlay is not None else None
    return place is not None and place.says is not None and place.says.required


def _points(schema: Schema | None) -> bool:
    """Whether an object of ARM is one that names another resource by its `id`."""
    if schema is None:
        return False
    if any("subresource" in part.name.lower() for part in schema.all_of) or values.is_sub_resource(schema):
        return True
    return "properties" in schema.properties or "location" in schema.properties  # a whole resource, meant by its ID
