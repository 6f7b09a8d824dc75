"""Fields that are read and never written. Of an object only what may hold a secret is kept below it: so that a status can
leave it out. What else is there is shown as it comes."""

from __future__ import annotations

from trimtab.systems.rest.compiling import values
from trimtab.systems.rest.compiling.classes import looks_secret
from trimtab.systems.rest.compiling.overlays import Overlaid
from trimtab.systems.rest.model import FieldClass, Node, Writer
from trimtab.systems.rest.openapi.references import Place
from trimtab.systems.rest.openapi.schema import Schema
from trimtab.systems.rest.syncing.paths import Wild

DEPTH = 8


class Watched:
    """Remembers which types hold no secret."""

    def __init__(self) -> None:
        self._harmless: set[Place] = set()

    def node(self, name: str, schema: Schema | None, why: str, place: Overlaid | None = None) -> Node:
        """Of a field that is only read."""
        return self._node(name, schema, why, place, 0)

    def _node(self, name: str, schema: Schema | None, why: str, place: Overlaid | None, depth: int) -> Node:
        says = place.says.class_ if place is not None and place.says is not None else None
        if schema is None:
            return Node(field=FieldClass.READ_ONLY, why=why, writers=Writer.NONE)
        secret = says == "secret" or (not says and looks_secret(name, schema))
        below = {}
        for child, of in schema.properties.items() if depth < DEPTH else ():
            further = place.below(child) if place is not None else None
            if further is not None or self._holds_secret(child, of):
                below[child] = self._node(child, of, why, further, depth + 1)
        items = None
        inner = schema.items if schema.type == "array" else schema.additional
        if isinstance(inner, Schema) and depth < DEPTH:
            further = place.below(Wild.ITEM if schema.type == "array" else Wild.FIELD) if place is not None else None
            if further is not None or self._holds_secret("", inner):
                items = self._node("", inner, why, further, depth + 1)
        of_type = schema.type or ("object" if schema.properties else "any")
        return Node(
            type="map" if of_type == "object" and not schema.properties else of_type,
            field=FieldClass.SECRET if secret else FieldClass.READ_ONLY,
            why=why,
            writers=Writer.NONE,
            description=values.described(schema),
            properties=below,
            additional=bool(schema.properties),
            items=items,
        )

    def _holds_secret(self, name: str, schema: Schema) -> bool:
        """It, or something below it. If nothing does, all that was looked at is harmless."""
        if looks_secret(name, schema):
            return True
        pending, reached = [schema], {schema.key}
        while pending:
            found = pending.pop()
            children = [(child, of) for child, of in found.properties.items()]
            children += [("", of) for of in (found.items, found.additional) if isinstance(of, Schema)]
            for child, of in children:
                if looks_secret(child, of):
                    return True
                if of.key not in reached and of.key not in self._harmless:
                    reached.add(of.key)
                    pending.append(of)
        self._harmless |= reached
        return False
