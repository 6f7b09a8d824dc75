"""The same place in four bodies: what creates, updates and patches a resource, and what a read answers. From one place to
the places below it."""

from __future__ import annotations

import enum
from collections.abc import Iterable
from typing import Final, Literal, NamedTuple

from trimtab.systems.rest.openapi.schema import Schema


class Unknown(enum.Enum):
    """Of what a document leaves open: it may have any field."""

    OPEN = "open"


OPEN: Final = Unknown.OPEN

Slot = Schema | Literal[Unknown.OPEN] | None
"""What one body has at a place: a schema, anything, or nothing."""


class Slots(NamedTuple):
    """The same place in the bodies that create, update and patch, and in what a read answers."""

    create: Slot
    update: Slot
    patch: Slot
    read: Slot

    @property
    def writes(self) -> tuple[Slot, Slot, Slot]:
        return self.create, self.update, self.patch

    @property
    def main(self) -> Schema | None:
        """Whose words count when the bodies differ: the update's, then the creation's."""
        return next((slot for slot in (self.update, self.create, self.patch) if isinstance(slot, Schema)), None)


def names(slots: Slots, named: Iterable[str]) -> tuple[str, ...]:
    """Of the properties, in the order of the documents, those of the body first; with those that are `named`, where others
    may be."""
    seen: dict[str, None] = {}
    for slot in (slots.update, slots.create, slots.patch, slots.read):
        if isinstance(slot, Schema):
            seen.update(dict.fromkeys(slot.properties))
    main = slots.main
    if main is not None and main.additional:
        seen.update(dict.fromkeys(named))
    return tuple(seen)


def required(slots: Slots) -> tuple[str, ...]:
    """What must be given is what a creation needs."""
    first = next((slot for slot in slots.writes if isinstance(slot, Schema)), None)
    return first.required if first is not None else ()


def objects(slot: Slot) -> Slot:
    """A body that has something else where the others have an object takes no part in it."""
    if not isinstance(slot, Schema) or slot.properties or slot.discriminator is not None:
        return slot
    return _opened(slot)


def below(slot: Slot, name: str) -> Slot:
    """What a body has as a property."""
    if not isinstance(slot, Schema):
        return slot
    found = slot.properties.get(name)
    if found is not None:
        return found
    if isinstance(slot.additional, Schema):
        return slot.additional
    return OPEN if slot.additional is True or not slot.properties else None


def items(slot: Slot) -> Slot:
    if not isinstance(slot, Schema):
        return slot
    if slot.items is not None:
        return slot.items
    return OPEN if slot.type in ("array", "") else None


def values_of(slot: Slot) -> Slot:
    """Of a map."""
    if not isinstance(slot, Schema):
        return slot
    return slot.additional if isinstance(slot.additional, Schema) else _opened(slot)


def _opened(slot: Schema) -> Slot:
    return OPEN if slot.type in ("object", "") else None


def variant(slot: Slot, value: str) -> Slot:
    if not isinstance(slot, Schema) or slot.discriminator is None:
        return slot
    return slot.discriminator.mapping.get(value, slot)
