"""What may be done with a field. The first that knows decides: the overlay, x-ms-mutability, readOnly and writeOnly, the
marks of secrets, what is known of ARM, and at last what the bodies of GET, POST, PUT and PATCH have and lack.

A mark counts in the call whose body it is in: what PUT marks readOnly and POST does not is taken by POST. A field that no
call takes is read-only. A mark of a secret is never lost to one of mutability: such a field is a secret.
"""

from __future__ import annotations

import enum
import re
from typing import NamedTuple

from trimtab.systems.rest.compiling.slots import Slot, Slots, below, items
from trimtab.systems.rest.kinds.definition import FieldOverlay
from trimtab.systems.rest.model import FieldClass, Writer
from trimtab.systems.rest.openapi.schema import Schema
from trimtab.systems.rest.syncing.paths import parse


class Level(enum.Enum):
    """Where a field is, as far as it matters."""

    TOP = "top"
    PROPERTIES = "properties"  # of ARM, one below the top
    BELOW = "below"


class Decision(NamedTuple):
    """`field` is None for what the overlay ignores."""

    field: FieldClass | None
    why: str
    writers: Writer


_WRITERS = (Writer.CREATE, Writer.UPDATE, Writer.PATCH)
_READ_ONLY_IN_ARM = frozenset(("id", "name", "type", "etag", "systemData"))
_GIVEN = r"password|passphrase|secret|secretkey|privatekey|sharedkey|accesskey|connectionstring"
_SECRET = re.compile(f"({_GIVEN})$", re.IGNORECASE)
_SHOWN = re.compile(f"({_GIVEN}|primarykey|secondarykey)$", re.IGNORECASE)
"""Keys that a service makes and shows. Of what is written, `primaryKey` may be a column."""


def classify(
    name: str, slots: Slots, around: Slots, overlay: FieldOverlay | None, *, level: Level, arm: bool
) -> Decision:
    """The class of the field `name` of the object `around`."""
    writers = _writers(slots)
    if overlay is not None and overlay.class_:
        if overlay.class_ == "ignored":
            return Decision(None, "overlay: ignored", Writer.NONE)
        if overlay.class_ == "secret" and not any(slots.writes):
            return Decision(FieldClass.READ_ONLY, "overlay: secret", writers)
        if overlay.class_ != "read-only" and not writers:
            writers = _all(around)
        return Decision(FieldClass(overlay.class_), "overlay", writers)
    if not writers:
        return Decision(FieldClass.READ_ONLY, _why_read_only(name, slots, level, arm), writers)
    field, why = _marked(name, slots, around, level, arm) or _differs(slots, around, level) or (FieldClass.WRITABLE, "")
    return Decision(field, why, writers if field is not FieldClass.READ_ONLY else Writer.NONE)


def takers(slots: Slots, path: str) -> Writer:
    """The calls whose bodies take what is at the path. A creation takes what no body has: someone says that it is there.
    Of bodies that are not described, all do."""
    if not any(slots.writes):
        return Writer.ALL
    for step in parse(path):
        slots = Slots(*(below(slot, step) if isinstance(step, str) else items(slot) for slot in slots))
    return _writers(slots) if any(slots.writes) else Writer.CREATE


def is_secret(schema: Schema) -> bool:
    """By its marks."""
    return schema.get("x-ms-secret") is True or schema.get("format") == "password"


def why_secret(schema: Schema) -> str:
    """Which mark it is."""
    return "x-ms-secret" if schema.get("x-ms-secret") is True else "format: password"


def looks_secret(name: str, schema: Schema) -> bool:
    """Whether a field that is read may hold a secret, by its marks or its name. Then it is not shown."""
    return is_secret(schema) or (schema.type == "string" and named_as_secret(name))


def named_as_secret(name: str) -> bool:
    """For what is read where no schema is known either."""
    return _SHOWN.search(name) is not None


def mutability(slot: Slot) -> tuple[str, ...]:
    """What x-ms-mutability lists."""
    declared = slot.get("x-ms-mutability") if isinstance(slot, Schema) else None
    return tuple(word for word in declared if isinstance(word, str)) if isinstance(declared, list) else ()


def _marked(name: str, slots: Slots, around: Slots, level: Level, arm: bool) -> tuple[FieldClass, str] | None:
    schema = slots.main
    if schema is None:
        return None
    secret = is_secret(schema)
    words = mutability(schema)
    if words:
        why = f"x-ms-mutability: {', '.join(words)}"
        if secret:
            return FieldClass.SECRET, f"{why}; {why_secret(schema)}"
        if "update" not in words and schema.type == "array" and schema.items is not None and schema.items.properties:
            return FieldClass.WRITABLE, f"{why} (of a list: governs which items there are, not their fields)"
        if "update" not in words:
            return FieldClass.CREATE_ONLY, why
        return (FieldClass.WRITABLE if "read" in words else FieldClass.WRITE_ONLY), why
    if secret:
        return FieldClass.SECRET, why_secret(schema)
    if schema.get("writeOnly") is True:
        return FieldClass.WRITE_ONLY, "writeOnly"
    if arm and level is Level.TOP and name in _READ_ONLY_IN_ARM:
        return FieldClass.READ_ONLY, f"built-in: ARM's own {name}"
    if arm and level is Level.PROPERTIES and name == "provisioningState":
        return FieldClass.READ_ONLY, "built-in: ARM's own provisioningState"
    if arm and level is Level.TOP and name == "location":
        return FieldClass.CREATE_ONLY, "built-in: ARM never moves a resource"
    if schema.type == "string" and (_SECRET.search(name) or _is_secure_string(name, around)):
        return FieldClass.SECRET, "built-in: named as secrets are"
    return None


def _is_secure_string(name: str, around: Slots) -> bool:
    """Azure's type for a secret that is written where it is used."""
    return name == "value" and around.main is not None and around.main.name == "SecureString"


def _differs(slots: Slots, around: Slots, level: Level) -> tuple[FieldClass, str] | None:
    """What the bodies tell by what they have and lack. One that is open tells nothing."""
    create, update, patch, read = slots
    changes = [verb for verb, slot in (("update", around.update), ("patch", around.patch)) if slot is not None]
    if not changes and level is Level.TOP:
        return FieldClass.CREATE_ONLY, "schemas: no operation changes it"
    if create is not None and changes and _fixed(update) and _fixed(patch):
        return FieldClass.CREATE_ONLY, f"schemas: in create, not in {' or '.join(changes)}"
    if isinstance(around.read, Schema) and around.read.properties and not around.read.additional and read is None:
        return FieldClass.WRITE_ONLY, "schemas: written, not in what is read"
    return None


def _writers(slots: Slots) -> Writer:
    found = Writer.NONE
    for flag, slot in zip(_WRITERS, slots.writes, strict=True):
        if slot is not None and not _read_only(slot):
            found |= flag
    return found


def _fixed(slot: Slot) -> bool:
    """Whether a change of it is not taken."""
    return slot is None or _read_only(slot)


def _read_only(slot: Slot) -> bool:
    return isinstance(slot, Schema) and (mutability(slot) == ("read",) or slot.get("readOnly") is True)


def _why_read_only(name: str, slots: Slots, level: Level, arm: bool) -> str:
    for slot in (slots.update, slots.create, slots.patch, slots.read):
        if mutability(slot) == ("read",):
            return "x-ms-mutability: read"
        if isinstance(slot, Schema) and slot.get("readOnly") is True:
            return "readOnly"
    if arm and level is Level.TOP and name in _READ_ONLY_IN_ARM:
        return f"built-in: ARM's own {name}"
    return "schemas: read, in no body that is written"


def _all(around: Slots) -> Writer:
    found = Writer.NONE
    for flag, slot in zip(_WRITERS, around.writes, strict=True):
        if slot is not None:
            found |= flag
    return found or Writer.ALL
