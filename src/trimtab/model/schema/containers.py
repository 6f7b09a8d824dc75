"""The checks of objects and arrays: they go through their children, prune, put defaults, and count.

A table says what to do with a value by its type. Containers look their children's tables up, and act where a check
cannot: on nulls, on absent and unknown fields, on floats that are integers. Nothing here is quadratic in the value.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from trimtab.model.schema import budget, finding
from trimtab.model.schema.embedded import EMBEDDED_FIELDS, embedded_check
from trimtab.model.schema.finding import Check, Finding, Found, MapKey, above, added, pruned
from trimtab.model.schema.kinds import JSON_TYPES, whole
from trimtab.model.schema.listtype import list_type_check, repeated
from trimtab.model.schema.shape import copied

Document = Mapping[str, Any]
Maker = Callable[[], Any]

Table = dict[type, Check | None]
"""What to do with a value, by its type; None: nothing can be wrong."""


class Compile(Protocol):
    """Makes the table of a part of a schema."""

    def __call__(self, document: Document, *, shaping: bool, lenient: bool = False, item: bool = False) -> Table: ...


def dropped_null(value: Any) -> Found:
    """Stands in a table for null where the container has to act: put the default, or drop the field."""
    return None


def fine(value: Any) -> Found:
    """Stands in a table for floats, so that the container looks at them: it writes 1.0 as 1, as Go does."""
    return None


def object_check(document: Document, table_of: Compile, *, shaping: bool, lenient: bool, root: bool) -> Check | None:
    """The check of an object; None if nothing can be wrong with it."""
    embedded = bool(document.get("x-kubernetes-embedded-resource")) and not root
    keep = lenient or bool(document.get("x-kubernetes-preserve-unknown-fields")) or not shaping
    properties: Document = document.get("properties") or {}
    additional = document.get("additionalProperties")
    tables: dict[str, Table] = {}
    defaults: list[tuple[str, Maker, Check | None]] = []
    for name, part in properties.items():
        of_resource = (embedded or root) and name in EMBEDDED_FIELDS
        tables[name] = table_of(part, shaping=shaping and not of_resource)
        if shaping and part.get("default") is not None and not of_resource:
            defaults.append((name, *_default(part["default"], tables[name])))
    if shaping and (embedded or root):
        for name in EMBEDDED_FIELDS:
            tables.setdefault(name, dict.fromkeys(JSON_TYPES))
    others: Table | None = None
    if isinstance(additional, Mapping):
        others = table_of(additional, shaping=shaping)
    elif additional and not keep:
        others = emptying
    spare = _spare(additional, others) if shaping else None
    fill = {name: make for name, make, _ in defaults}
    forbids = additional is False and not shaping
    finish = _finish(document, properties if forbids else None, embedded and shaping)
    if not (tables or others or finish or (shaping and not keep)):
        return None
    get = tables.get

    def check(value: dict[str, Any]) -> Found:
        found: Found = None
        drop: list[str] | None = None
        for name, item in value.items():
            table = get(name)
            if table is None:
                if others is None:
                    if not keep:
                        drop = added(drop, name)
                        found = added(found, pruned(name))
                    continue
                table = others
            kind = type(item)
            step = table[kind]
            if step is None:
                continue
            if step is dropped_null:
                make = fill.get(name) if table is not others else spare
                if make is None:
                    drop = added(drop, name)
                    continue
                value[name] = item = make()
                step = table[type(item)]
                if step is None:
                    continue
            more = step(item)
            if more is not None:
                found = above(more, name if table is not others else MapKey(name), found)
            elif kind is float and shaping and whole(item):
                value[name] = int(item)
        if drop is not None:
            for name in drop:
                del value[name]
        for name, make, recheck in defaults:
            if name not in value:
                value[name] = item = make()
                more = recheck(item) if recheck is not None else None
                if more is not None:
                    found = above(more, name, found)
        return found if finish is None else finish(value, found)

    return check


def _finish(
    document: Document, only: Document | None, embedded: bool
) -> Callable[[dict[str, Any], Found], Found] | None:
    """What is said of an object as a whole, around what was found in its fields."""
    least, most = document.get("minProperties"), document.get("maxProperties")
    required: tuple[str, ...] = tuple(document.get("required") or ())
    resource = embedded_check() if embedded else None
    bounded = least is not None or most is not None or only is not None
    if not bounded and not required and resource is None:
        return None

    def finish(value: dict[str, Any], found: Found) -> Found:
        if bounded:
            before: list[Finding] = []
            if least is not None and len(value) < least:
                before.append(finding.invalid(len(value), f"should have at least {least} properties"))
            if most is not None and len(value) > most:
                before.append(finding.too_many(len(value), most))
            if only is not None:
                before += [finding.forbidden(name) for name in value if name not in only]
            if before:
                found = [*before, *(found or ())]
        for name in required:
            if name not in value:
                found = added(found, finding.required(name))
        more = resource(value) if resource is not None else None
        return found if more is None else [*(found or ()), *more]

    return finish


def array_check(document: Document, table_of: Compile, *, shaping: bool) -> Check | None:
    """The check of an array; None if nothing can be wrong with it."""
    part = document.get("items")
    lenient = shaping and bool(document.get("x-kubernetes-preserve-unknown-fields"))
    table = None
    spare = None
    if isinstance(part, Mapping):
        table = table_of(part, shaping=shaping, lenient=lenient, item=part.get("default") is None)
        spare = _spare(part, table) if shaping else None
    elif shaping and not lenient:
        table = emptying
    if table is not None and all(step is None for step in table.values()):
        table = None
    least, most = document.get("minItems"), document.get("maxItems")
    unique = bool(document.get("uniqueItems"))
    listed = list_type_check(document) if shaping else None
    if table is None and least is None and most is None and not unique and listed is None:
        return None

    def check(value: list[Any]) -> Found:
        found: Found = None
        if table is not None:
            for index, item in enumerate(value):
                kind = type(item)
                step = table[kind]
                if step is None:
                    continue
                if step is dropped_null and spare is not None:
                    value[index] = item = spare()
                    step = table[type(item)]
                    if step is None:
                        continue
                more = step(item)
                if more is not None:
                    found = above(more, index, found)
                elif kind is float and shaping and whole(item):
                    value[index] = int(item)
        size = len(value)
        if least is not None and size < least:
            found = added(found, finding.invalid(size, f"should have at least {least} items"))
        if most is not None and size > most:
            found = added(found, finding.too_many(size, most))
        if unique and repeated(value):
            found = added(found, finding.invalid("", "shouldn't contain duplicates"))
        more = listed(value) if listed is not None else None
        return found if more is None else [*(found or ()), *more]

    return check


def _spare(part: Any, table: Table | None) -> Maker | None:
    """What replaces a null in a list or a map."""
    if isinstance(part, Mapping) and part.get("default") is not None:
        return _default(part["default"], table)[0]
    return None


def _default(default: Any, table: Table | None) -> tuple[Maker, Check | None]:
    """A maker of the default, itself pruned and defaulted once; and the check that it still needs, if it is invalid."""
    value = copied(default)
    step = table[type(value)] if table is not None else None
    if step is not None:
        step(value)
    recheck = step if step is not None and step(value) is not None else None
    return _maker(value), recheck


def _maker(value: Any) -> Maker:
    size = budget.size_of(value)

    def make() -> Any:
        budget.spend(size)
        return copied(value)

    return make


def _empty(value: dict[str, Any]) -> Found:
    found = [pruned(name) for name in value]
    value.clear()
    return found or None


def _empty_each(value: list[Any]) -> Found:
    found: Found = None
    for index, item in enumerate(value):
        step = emptying[type(item)]
        more = step(item) if step is not None else None
        if more is not None:
            found = above(more, index, found)
    return found


emptying: Table = {**dict.fromkeys(JSON_TYPES), dict: _empty, list: _empty_each}
"""For values without a schema, or of the wrong type: nothing is known inside of them, so all fields go."""
