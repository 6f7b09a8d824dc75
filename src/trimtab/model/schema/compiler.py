"""Turns a structural schema into checks that prune, default and validate in one pass: the hot path of every write.

A schema node becomes a table from the type of a value to the check for it; None means that nothing can be wrong.
A container looks its children's tables up itself, so that a plain scalar costs two dictionary look-ups and no call.
Errors come in kube-openapi's order: type, combinators, string, format, number, items, enum, properties, required.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trimtab.model.schema import composite
from trimtab.model.schema.containers import Table, array_check, dropped_null, emptying, fine, object_check
from trimtab.model.schema.finding import Check, Found
from trimtab.model.schema.kinds import JSON_TYPES, LEAST_INT64, MOST_INT64, NoneType, type_problem, types_of
from trimtab.model.schema.scalars import enum_check, number_checks, string_checks

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


def _table(
    document: Document, *, shaping: bool, lenient: bool = False, item: bool = False, root: bool = False
) -> Table:
    """`shaping`: prune and default as well, which schemas inside allOf, anyOf, oneOf and not never do.
    `lenient`: unknown fields stay, because an array above says x-kubernetes-preserve-unknown-fields.
    `item`: of an array, which cannot drop a null."""
    plain = _PLAIN.issuperset(document) and document.get("type") in _SCALARS
    key = (document.get("type"), bool(document.get("nullable")), shaping, item)
    if plain and key in _shared:
        return _shared[key]
    table = _own_table(document, shaping, lenient, item, root)
    if plain:
        _shared[key] = table
    return table


_SCALARS = ("string", "integer", "number", "boolean")
_PLAIN = frozenset(("type", "nullable", "description", "title", "default", "example", "externalDocs"))
_shared: dict[tuple[Any, ...], Table] = {}
"""Most fields are scalars of which nothing more is said: they share their tables."""


def _own_table(document: Document, shaping: bool, lenient: bool, item: bool, root: bool) -> Table:
    combinators = _combinators(document)
    fields: Check | None = None
    items: Check | None = None
    if document.get("type") not in _SCALARS:
        fields = object_check(document, _table, shaping=shaping, lenient=lenient, root=root)
        items = array_check(document, _table, shaping=shaping)
    elif shaping:
        fields, items = emptying[dict], emptying[list]
    trivial = _trivially_any(document)
    enum = enum_check(document)
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
        if enum is not None:
            checks.append(enum)
        if kind is dict and shape is not None:
            checks.append(shape)
        table[kind] = _in_order(checks, shape)
    if shaping and not document.get("nullable") and not item:
        table[NoneType] = dropped_null
    if shaping and table[float] is None and "number" in types_of(document):
        table[float] = fine
    return table


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
