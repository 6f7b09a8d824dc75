"""Turns a structural schema into checks that prune, default and validate in one pass: the hot path of every write.

A schema node becomes a table from the type of a value to the check for it; None means that nothing can be wrong.
A container looks its children's tables up itself, so that a plain scalar costs two dictionary look-ups and no call.
Errors come in kube-openapi's order: type, combinators, string, format, number, items, enum, properties, required.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from trimtab.model.schema import composite, finding
from trimtab.model.schema.embedded import EMBEDDED_FIELDS, embedded_check
from trimtab.model.schema.finding import Check, Found, MapKey, above, pruned
from trimtab.model.schema.kinds import (
    JSON_TYPES,
    LEAST_INT64,
    MOST_INT64,
    NoneType,
    type_problem,
    types_of,
    whole,
)
from trimtab.model.schema.listtype import list_type_check
from trimtab.model.schema.scalars import enum_check, number_checks, string_checks
from trimtab.model.schema.shape import copied

Table = dict[type, Check | None]
"""What to do with a value, by its type."""

Document = Mapping[str, Any]


def compile_root(document: Document) -> Check:
    """The check of a whole object. Its apiVersion, kind and metadata are validated only."""
    root = dict(document)
    root.setdefault("type", "object")
    check = _table(root, shaping=True, root=True)[dict]
    return check if check is not None else lambda value: None


def compile_value(document: Document) -> Check:
    """The check of any value against a schema, which changes nothing."""
    return _check_of(_table(document, shaping=False))


def dropped_null(value: Any) -> Found:
    """Stands in a table for null where the container has to act: put the default, or drop the field."""
    return None


def _table(document: Document, *, shaping: bool, lenient: bool = False, root: bool = False) -> Table:
    """`shaping`: prune and default as well, which schemas inside allOf, anyOf, oneOf and not never do.
    `lenient`: unknown fields stay, because an array above says x-kubernetes-preserve-unknown-fields."""
    plain = _PLAIN.issuperset(document) and document.get("type") in _SCALARS
    key = (document.get("type"), bool(document.get("nullable")), shaping)
    if plain and key in _shared:
        return _shared[key]
    table = _own_table(document, shaping, lenient, root)
    if plain:
        _shared[key] = table
    return table


_SCALARS = ("string", "integer", "number", "boolean")
_PLAIN = frozenset(("type", "nullable", "description", "title", "default", "example", "externalDocs"))
_shared: dict[tuple[str | None, bool, bool], Table] = {}
"""Most fields are scalars of which nothing more is said: they share their tables."""


def _own_table(document: Document, shaping: bool, lenient: bool, root: bool) -> Table:
    combinators = _combinators(document)
    fields: Check | None = None
    items: Check | None = None
    if document.get("type") not in _SCALARS:
        fields, items = _object(document, shaping, lenient, root), _array(document, shaping)
    elif shaping:
        fields, items = _emptying[dict], _emptying[list]
    trivial = _trivially_any(document)
    table: Table = {}
    for kind in JSON_TYPES:
        checks = _type_checks(document, kind)
        if kind is not NoneType and kind not in trivial:
            checks += combinators
        shape = fields if kind is dict else items if kind is list else None
        if kind is str:
            checks += string_checks(document)
        elif kind in (int, float):
            checks += number_checks(document)
        elif kind is list and shape is not None:
            checks.append(shape)
        checks += _enum_checks(document)
        if kind is dict and shape is not None:
            checks.append(shape)
        table[kind] = _in_order(checks, shape)
    if shaping and not document.get("nullable"):
        table[NoneType] = dropped_null
    if shaping and table[float] is None and "number" in types_of(document):
        table[float] = fine
    return table


def fine(value: Any) -> Found:
    """Stands in a table for floats, so that the container looks at them: it writes 1.0 as 1, as Go does."""
    return None


def _in_order(checks: list[Check], shape: Check | None) -> Check | None:
    """One check of many. `shape`, one of them, runs first, for the others must see what it pruned and defaulted."""
    if not checks:
        return None
    if len(checks) == 1:
        return checks[0]

    def check(value: Any) -> Found:
        shaped = None if shape is None else shape(value)
        found: Found = None
        for step in checks:
            more = shaped if step is shape else step(value)
            if more is not None:
                found = more if found is None else [*found, *more]
        return found

    return check


def _enum_checks(document: Document) -> list[Check]:
    check = enum_check(document)
    return [] if check is None else [check]


_SAMPLES: dict[type, Any] = {str: "", int: 0, float: 0.5, bool: True, list: [], dict: {}, NoneType: None}


def _type_checks(document: Document, kind: type) -> list[Check]:
    """The type validator, where its answer depends on more than the type of the value."""
    integer = "integer" in types_of(document)
    if kind is int and integer:
        return [_int64]
    if (kind is float and integer) or type_problem(document, _SAMPLES[kind]) is not None:
        return [_typed(document)]
    return []


def _int64(value: int) -> Found:
    return None if LEAST_INT64 <= value <= MOST_INT64 else _typed({"type": "integer"})(value)


def _typed(document: Document) -> Check:
    def check(value: Any) -> Found:
        problem = type_problem(document, value)
        return None if problem is None else [problem]

    return check


def _trivially_any(document: Document) -> tuple[type, ...]:
    """The usual `anyOf: [integer, string]` beside x-kubernetes-int-or-string says nothing more to strings."""
    usual = [{"type": "integer"}, {"type": "string"}]
    alone = not any(document.get(word) for word in ("allOf", "oneOf", "not"))
    return (
        (str, int) if alone and document.get("anyOf") == usual and types_of(document) == ("integer", "string") else ()
    )


def _combinators(document: Document) -> list[Check]:
    def branch(part: Document) -> composite.Branch:
        return part, _check_of(_table(part, shaping=False))

    checks: list[Check] = []
    if document.get("anyOf"):
        checks.append(composite.any_of([branch(part) for part in document["anyOf"]]))
    if document.get("oneOf"):
        checks.append(composite.one_of([branch(part) for part in document["oneOf"]]))
    if document.get("allOf"):
        checks.append(composite.all_of([branch(part) for part in document["allOf"]]))
    if document.get("not") is not None:
        checks.append(composite.none_of(branch(document["not"])[1]))
    return checks


def _check_of(table: Table) -> Check:
    def check(value: Any) -> Found:
        found = table[type(value)]
        return None if found is None else found(value)

    return check


def _object(document: Document, shaping: bool, lenient: bool, root: bool) -> Check | None:
    embedded = bool(document.get("x-kubernetes-embedded-resource")) and not root
    keep = lenient or bool(document.get("x-kubernetes-preserve-unknown-fields")) or not shaping
    properties: Document = document.get("properties") or {}
    additional = document.get("additionalProperties")
    tables: dict[str, Table] = {}
    defaults: list[tuple[str, Callable[[], Any], Check | None]] = []
    for name, part in properties.items():
        of_resource = (embedded or root) and name in EMBEDDED_FIELDS
        tables[name] = _table(part, shaping=shaping and not of_resource)
        if shaping and part.get("default") is not None and not of_resource:
            defaults.append((name, *_default(part["default"], tables[name])))
    if shaping and (embedded or root):
        for name in EMBEDDED_FIELDS:
            tables.setdefault(name, dict.fromkeys(JSON_TYPES))
    others: Table | None = None
    if isinstance(additional, Mapping):
        others = _table(additional, shaping=shaping)
    elif additional and not keep:
        others = _emptying
    spare = _spare(additional, others) if shaping else None
    fill = {name: factory for name, factory, _ in defaults}
    required: tuple[str, ...] = tuple(document.get("required") or ())
    least, most = document.get("minProperties"), document.get("maxProperties")
    forbids = additional is False and not shaping
    bounded = least is not None or most is not None or forbids
    resource = embedded_check() if embedded and shaping else None
    if not (tables or others or required or bounded or resource or (shaping and not keep)):
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
                        drop = [name] if drop is None else [*drop, name]
                        found = [*(found or ()), pruned(name)]
                    continue
                table = others
            kind = type(item)
            step = table[kind]
            if step is None:
                continue
            if step is dropped_null and kind is NoneType:
                factory = fill.get(name) if table is not others else spare
                if factory is None:
                    drop = [name] if drop is None else [*drop, name]
                    continue
                value[name] = item = factory()
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
        for name, factory, recheck in defaults:
            if name not in value:
                value[name] = item = factory()
                more = recheck(item) if recheck is not None else None
                if more is not None:
                    found = above(more, name, found)
        if bounded:
            more = _bounds(value, least, most, properties if forbids else None)
            if more is not None:
                found = [*more, *(found or ())]
        for name in required:
            if name not in value:
                found = [*(found or ()), finding.required(name)]
        if resource is not None:
            more = resource(value)
            if more is not None:
                found = [*(found or ()), *more]
        return found

    return check


def _spare(part: Any, table: Table | None) -> Callable[[], Any] | None:
    """What replaces a null in a list or a map."""
    if isinstance(part, Mapping) and part.get("default") is not None:
        return _default(part["default"], table)[0]
    return None


def _bounds(value: dict[str, Any], least: int | None, most: int | None, only: Document | None) -> Found:
    found = []
    if least is not None and len(value) < least:
        found.append(finding.invalid(len(value), f"should have at least {least} properties"))
    if most is not None and len(value) > most:
        found.append(finding.too_many(len(value), most))
    if only is not None:
        found += [finding.forbidden(name) for name in value if name not in only]
    return found or None


def _array(document: Document, shaping: bool) -> Check | None:
    part = document.get("items")
    lenient = shaping and bool(document.get("x-kubernetes-preserve-unknown-fields"))
    table = None
    if isinstance(part, Mapping):
        table = _table(part, shaping=shaping, lenient=lenient)
        if table[NoneType] is dropped_null and part.get("default") is None:
            refusal = _in_order([*_type_checks(part, NoneType), *_enum_checks(part)], None)
            table = {**table, NoneType: refusal}
    elif shaping and not lenient:
        table = _emptying
    if table is not None and all(step is None for step in table.values()):
        table = None
    spare = _spare(part, table) if shaping else None
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
                if step is dropped_null and kind is NoneType:
                    value[index] = item = spare() if spare is not None else None
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
            found = [*(found or ()), finding.invalid(size, f"should have at least {least} items")]
        if most is not None and size > most:
            found = [*(found or ()), finding.too_many(size, most)]
        if unique and any(item in value[:index] for index, item in enumerate(value)):
            found = [*(found or ()), finding.invalid("", "shouldn't contain duplicates")]
        if listed is not None:
            more = listed(value)
            if more is not None:
                found = [*(found or ()), *more]
        return found

    return check


def _default(default: Any, table: Table | None) -> tuple[Callable[[], Any], Check | None]:
    """A maker of the default, itself pruned and defaulted once; and the check that it still needs, if it is invalid."""
    value = copied(default)
    step = table[type(value)] if table is not None else None
    if step is not None:
        step(value)
    recheck = step if step is not None and step(value) is not None else None
    return maker(value), recheck


def maker(value: Any) -> Callable[[], Any]:
    if not isinstance(value, dict | list):
        return lambda: value
    inner = value.values() if isinstance(value, dict) else value
    if any(isinstance(item, dict | list) for item in inner):
        return lambda: copied(value)
    return value.copy


_emptying: Table = dict.fromkeys(JSON_TYPES)
"""For values without a schema, or of the wrong type: nothing is known inside of them, so all fields go."""


def _empty(value: dict[str, Any]) -> Found:
    found = [pruned(name) for name in value]
    value.clear()
    return found or None


def _empty_each(value: list[Any]) -> Found:
    found: Found = None
    for index, item in enumerate(value):
        step = _emptying[type(item)]
        more = step(item) if step is not None else None
        if more is not None:
            found = above(more, index, found)
    return found


_emptying.update({dict: _empty, list: _empty_each})
