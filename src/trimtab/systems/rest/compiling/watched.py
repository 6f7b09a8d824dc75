"""Fields that are read and never written. Of an object only what may hold a secret is kept below it: so that a status can
leave it out. What else is there is shown as it comes.

Where secrets cannot be told one by one (a type that contains itself, one of several variants, too deep, too many), all of
the field is taken for one: rather too little is shown than too much.
"""

from __future__ import annotations

from collections.abc import Iterator

from trimtab.systems.rest.compiling import values
from trimtab.systems.rest.compiling.classes import looks_secret
from trimtab.systems.rest.compiling.overlays import Overlaid
from trimtab.systems.rest.model import FieldClass, Node, Writer
from trimtab.systems.rest.openapi.references import Place
from trimtab.systems.rest.openapi.schema import Schema
from trimtab.systems.rest.syncing.paths import Wild

DEPTH = 8
MOST = 256
"""Nodes that are made for one field."""


class Watched:
    """Remembers which types hold no secret."""

    def __init__(self) -> None:
        self._harmless: set[Place] = set()
        self._left = MOST

    def node(self, name: str, schema: Schema | None, why: str, place: Overlaid | None = None) -> Node:
        """Of a field that is only read."""
        self._left = MOST
        if schema is None:
            return Node(field=FieldClass.READ_ONLY, why=why, writers=Writer.NONE)
        return self._node(name, schema, why, place, ())

    def _node(self, name: str, schema: Schema, why: str, place: Overlaid | None, within: tuple[Place, ...]) -> Node:
        says = place.says.class_ if place is not None and place.says is not None else None
        secret = says == "secret" or (not says and self._is_secret(name, schema, within))
        self._left -= 1
        below: dict[str, Node] = {}
        items = None
        if not secret:
            within = (*within, schema.key)
            for child, of in schema.properties.items():
                further = place.below(child) if place is not None else None
                if further is not None or self._holds_secret(child, of):
                    below[child] = self._node(child, of, why, further, within)
            inner = schema.items if schema.type == "array" else schema.additional
            if isinstance(inner, Schema):
                step = Wild.ITEM if schema.type == "array" else Wild.FIELD
                further = place.below(step) if place is not None else None
                if further is not None or self._holds_secret("", inner):
                    items = self._node("", inner, why, further, within)
        return Node(
            type=_type(schema),
            field=FieldClass.SECRET if secret else FieldClass.READ_ONLY,
            why=why,
            writers=Writer.NONE,
            description=values.described(schema),
            properties=below,
            additional=bool(schema.properties),
            items=items,
        )

    def _is_secret(self, name: str, schema: Schema, within: tuple[Place, ...]) -> bool:
        """It, or so much below it that it is hidden as a whole."""
        if looks_secret(name, schema):
            return True
        if any(self._holds_secret("", variant) for variant in _variants(schema)):
            return True
        cut = schema.key in within or len(within) >= DEPTH or self._left <= 0
        return cut and self._holds_secret(name, schema)

    def _holds_secret(self, name: str, schema: Schema) -> bool:
        """It, or something below it. If nothing does, all that was looked at is harmless."""
        if looks_secret(name, schema):
            return True
        pending, reached = [schema], {schema.key}
        while pending:
            for child, of in _below(pending.pop()):
                if looks_secret(child, of):
                    return True
                if of.key not in reached and of.key not in self._harmless:
                    reached.add(of.key)
                    pending.append(of)
        self._harmless |= reached
        return False


def _below(schema: Schema) -> Iterator[tuple[str, Schema]]:
    yield from schema.properties.items()
    for of in (schema.items, schema.additional, *_variants(schema)):
        if isinstance(of, Schema):
            yield "", of


def _variants(schema: Schema) -> Iterator[Schema]:
    yield from schema.one_of
    yield from schema.any_of
    if schema.discriminator is not None:
        yield from schema.discriminator.mapping.values()


def _type(schema: Schema) -> str:
    if schema.properties:
        return "object"
    return "map" if schema.type == "object" else schema.type or "any"
