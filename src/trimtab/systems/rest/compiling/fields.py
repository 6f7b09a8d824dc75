"""All fields of a Model, one row each: for `trimtab rest explain`, for counts, and for messages that name the nearest one.

A type that contains itself ends in a row "…". A field of a variant names the value of the discriminator that it needs. The
items of a list and the values of a map have a row (`keys.*`) only where something else may be done with them than with what
holds them: a secret, say.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator

import msgspec

from trimtab.systems.rest.model import ENCODER, Comparator, FieldClass, Model, Node, Writer
from trimtab.systems.rest.syncing.paths import Path, Wild, format_path

MOST = 20_000
"""Rows; the largest real kind (a pipeline of Azure Data Factory) has fewer, but a document can ask for endless ones."""


class FieldRow(msgspec.Struct, frozen=True, kw_only=True):
    """`path` is as a spec has it. `cls` counts what is inherited: below a create-only field all is create-only."""

    path: str
    cls: FieldClass
    why: str
    type: str
    writers: Writer = Writer.NONE
    compare: Comparator = Comparator.EXACT
    description: str = ""
    variant: str = ""


def fields(model: Model) -> Iterator[FieldRow]:
    """Those of the spec in their order, then those that are only read."""
    left = MOST
    for row in _rows(model, model.spec, (), Node(), (), ""):
        left -= 1
        if left < 0:
            yield FieldRow(path="…", cls=row.cls, why="", type="…")
            break
        yield row
    for path, why in model.read_only.items():
        yield FieldRow(path=path, cls=FieldClass.READ_ONLY, why=why, type="")


def count(model: Model) -> dict[str, int]:
    """How many fields are of which class."""
    found = Counter(row.cls.value for row in fields(model))
    return {cls.value: found[cls.value] for cls in FieldClass if found[cls.value]}


def model_digest(model: Model) -> str:
    """The same for the same Model, wherever it was compiled."""
    return f"sha256:{hashlib.sha256(ENCODER.encode(model)).hexdigest()}"


def _rows(
    model: Model, node: Node, path: Path, above: Node, within: tuple[str, ...], variant: str
) -> Iterator[FieldRow]:
    """Of a field and all below it."""
    shared = model.node(node)
    if path:
        differs = _differs(above, shared)
        shared = msgspec.structs.replace(shared, **_inherited(above, shared))
        ends = node.ref in within
        if ends or differs or not isinstance(path[-1], Wild):
            yield FieldRow(
                path=format_path(path),
                cls=shared.field,
                why=shared.why or "default",
                type="…" if ends else _type(shared),
                writers=shared.writers,
                compare=shared.compare,
                description=shared.description,
                variant=variant,
            )
        if ends:
            return
    within = (*within, node.ref) if node.ref else within
    for name, child in shared.properties.items():
        yield from _rows(model, child, (*path, name), shared, within, variant)
    for value, name in shared.variants.items():
        if name not in within:
            for field, child in model.node(model.types[name]).properties.items():
                if field not in shared.properties:
                    yield from _rows(model, child, (*path, field), shared, (*within, name), value)
    if shared.items is not None:
        step = Wild.ITEM if shared.type == "array" else Wild.FIELD
        yield from _rows(model, shared.items, (*path, step), shared, within, variant)


def _differs(above: Node, node: Node) -> bool:
    """Whether something else may be done with a field than with what holds it."""
    other_class = bool(node.why) or node.field not in (FieldClass.WRITABLE, above.field)
    return other_class or bool(above.writers & ~node.writers)


def _inherited(above: Node, node: Node) -> dict[str, object]:
    """Writers are those of all above; a class other than writable is inherited where the field has none of its own."""
    changes: dict[str, object] = {"writers": above.writers & node.writers}
    if node.field is FieldClass.WRITABLE and above.field is not FieldClass.WRITABLE:
        changes |= {"field": above.field, "why": above.why}
    return changes


def _type(node: Node) -> str:
    if node.type == "array":
        return f"list by {', '.join(node.keys)}" if node.keys else "set" if node.unordered else "list"
    return node.type
