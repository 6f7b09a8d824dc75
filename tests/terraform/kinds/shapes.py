"""Strategies for shapes, for documents that fit them, and for Terraform values of them."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import strategies as st

from trimtab.terraform.kinds.definition import (
    BOOL,
    DURATION,
    INT_OR_STRING,
    INTEGER,
    JSON,
    KEYED,
    LIST,
    MAP,
    NUMBER,
    OBJECT,
    QUANTITY,
    SET,
    STRING,
    Field,
    Shape,
)
from trimtab.terraform.kinds.naming import field_names

SCALARS = (STRING, NUMBER, INTEGER, BOOL, JSON, INT_OR_STRING, QUANTITY, DURATION)
TEXT = st.text(max_size=4)
FREE = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | TEXT,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(TEXT, inner, max_size=2),
    max_leaves=4,
)


def scalars(form: str) -> st.SearchStrategy[Any]:
    """Values as documents have them."""
    return {
        STRING: TEXT,
        NUMBER: st.floats(allow_nan=False, allow_infinity=False, width=32) | st.integers(-(2**40), 2**40),
        INTEGER: st.integers(-(2**62), 2**62),
        BOOL: st.booleans(),
        JSON: FREE.filter(lambda value: value is not None),
        INT_OR_STRING: st.integers(-5, 500) | st.sampled_from(["50%", "http", "80", "-1", '"x"', "080"]) | TEXT,
        QUANTITY: st.sampled_from(["1", "500m", "1Gi"]),
        DURATION: st.sampled_from(["1m", "90s", "1h30m"]),
    }[form]


@st.composite
def objects(draw: st.DrawFn, depth: int = 2) -> Shape:
    wires = draw(st.sets(st.sampled_from(["a", "fooBar", "foo_bar", "IPs", "count", "x-y"]), max_size=4))
    names = field_names(wires)
    fields = tuple(Field(names[wire], wire, draw(shapes(depth - 1))) for wire in sorted(wires))
    return Shape(OBJECT, fields=fields)


@st.composite
def shapes(draw: st.DrawFn, depth: int = 2) -> Shape:
    forms = [*SCALARS, SET] if depth <= 0 else [*SCALARS, SET, OBJECT, LIST, MAP, KEYED]
    form = draw(st.sampled_from(forms))
    if form == OBJECT:
        return draw(objects(depth))
    if form == SET:
        return Shape(SET, items=Shape(draw(st.sampled_from([STRING, INTEGER]))))
    if form in (LIST, MAP):
        return Shape(form, items=draw(shapes(depth - 1)))
    if form == KEYED:
        key = draw(st.sampled_from([STRING, INTEGER]))
        inner = draw(objects(depth - 1))
        rest = tuple(field for field in inner.fields if field.wire != "a")
        return Shape(KEYED, items=Shape(OBJECT, fields=rest), keys=("a",), key_form=key)
    return Shape(form)


@st.composite
def documents(draw: st.DrawFn, shape: Shape) -> Any:
    """A value without nulls; keys of keyed lists in their order, and once."""
    items = shape.items
    match shape.form:
        case "object":
            kept = [field for field in shape.fields if draw(st.booleans())]
            return {field.wire: draw(documents(field.shape)) for field in kept}
        case "set" if items is not None:
            return draw(st.lists(scalars(items.form), max_size=3, unique=True))
        case "list" if items is not None:
            return [draw(documents(items)) for _ in range(draw(st.integers(0, 2)))]
        case "map" if items is not None:
            return {key: draw(documents(items)) for key in draw(st.sets(TEXT, max_size=2))}
        case "keyed" if items is not None:
            keys: Any = st.integers(0, 9) if shape.key_form == INTEGER else TEXT
            found = [{**draw(documents(items)), "a": key} for key in draw(st.sets(keys, max_size=3))]
            return sorted(found, key=lambda item: str(item["a"]))
    return draw(scalars(shape.form))


def canonical(value: Any) -> str:
    """A document as text: 1.0 and 1 are one number."""
    return json.dumps(_numbers(value), sort_keys=True)


def _numbers(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _numbers(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_numbers(item) for item in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value
