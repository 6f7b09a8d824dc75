"""Values, their types, and both of their forms on the wire."""

from __future__ import annotations

import contextlib
import json
from decimal import Decimal
from typing import Any

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.terraform.framework.schemas import Dice
from trimtab.terraform.framework.encoding import from_json, load_json, pack, unpack
from trimtab.terraform.framework.shaping import Misfit, shaped
from trimtab.terraform.framework.types import (
    BOOL,
    DYNAMIC,
    NUMBER,
    STRING,
    ListOf,
    MapOf,
    ObjectOf,
    SetOf,
    TupleOf,
    Type,
    parse,
)
from trimtab.terraform.framework.values import UNKNOWN, Typed, distinct, key, number, same, whole

PERSON = ObjectOf({"name": STRING, "tags": SetOf(STRING), "age": NUMBER})


@pytest.mark.parametrize(
    ("type_", "form"),
    [
        (STRING, "string"),
        (ListOf(STRING), ["list", "string"]),
        (MapOf(SetOf(BOOL)), ["map", ["set", "bool"]]),
        (TupleOf((NUMBER, DYNAMIC)), ["tuple", ["number", "dynamic"]]),
        (PERSON, ["object", {"age": "number", "name": "string", "tags": ["set", "string"]}]),
    ],
)
def test_a_type_has_a_form_in_json_and_comes_back_of_it(type_: Type, form: Any) -> None:
    assert type_.json() == form
    assert parse(form) == type_


@pytest.mark.parametrize(
    "form", ["text", 1, None, [], ["list"], ["list", "string", "string"], ["object", ["string"]], {}]
)
def test_what_is_no_type_is_refused(form: Any) -> None:
    with pytest.raises(ValueError, match="not a type"):
        parse(form)


def test_a_type_of_endless_depth_is_refused() -> None:
    form: Any = "string"
    for _ in range(1000):
        form = ["list", form]
    with pytest.raises(ValueError, match="too deeply"):
        parse(form)


@pytest.mark.parametrize(
    ("a", "b", "type_", "equal"),
    [
        (["a", "b"], ["b", "a", "a"], SetOf(STRING), True),
        (["a", "b"], ["b", "a"], ListOf(STRING), False),
        ([1, 2.0], [2, 1], SetOf(NUMBER), True),
        ([[1, 2], [3]], [[3], [2, 1]], SetOf(SetOf(NUMBER)), True),
        ([UNKNOWN, UNKNOWN], [UNKNOWN], SetOf(STRING), False),
        (None, [], ListOf(STRING), False),
        (UNKNOWN, UNKNOWN, STRING, True),
        (UNKNOWN, None, STRING, False),
        (0.1, Decimal("0.1"), NUMBER, True),
        (True, 1, NUMBER, True),
        ("1", 1, STRING, False),
        ({"name": "x"}, {"name": "x", "tags": None, "age": None}, PERSON, True),
        (Typed(STRING, "1"), Typed(NUMBER, 1), DYNAMIC, False),
        (Typed(SetOf(STRING), ["a", "b"]), Typed(SetOf(STRING), ["b", "a"]), DYNAMIC, True),
    ],
)
def test_two_values_are_the_same(a: Any, b: Any, type_: Type, equal: bool) -> None:
    assert same(a, b, type_) is equal
    assert same(b, a, type_) is equal
    assert (key(a, type_) == key(b, type_)) is equal


def test_a_set_keeps_one_of_equal_elements_and_all_that_hold_unknowns() -> None:
    assert distinct(["a", "b", "a"], STRING) == ["a", "b"]
    assert len(distinct([{"name": UNKNOWN}, {"name": UNKNOWN}], PERSON)) == 2


@pytest.mark.parametrize(
    ("text", "value"),
    [("1", 1), ("1.50", 1.5), ("0.1", 0.1), ("1e3", 1000), ("1" * 40 + ".5", Decimal("1" * 40 + ".5"))],
)
def test_a_number_is_the_simplest_that_means_it(text: str, value: Any) -> None:
    assert number(text) == value
    assert type(number(text)) is type(value)


@pytest.mark.parametrize("value", [0, -1, 2**63, 2**64, -(2**63) - 1, 0.1, 1.5, 1e300, 2.0**80, Decimal("1e-30")])
def test_a_number_survives_the_wire_exactly(value: Any) -> None:
    assert same(unpack(pack(value, NUMBER), NUMBER), value, NUMBER)


def test_terraform_s_own_forms_of_numbers_are_read() -> None:
    assert unpack(msgpack.packb("0.1"), NUMBER) == 0.1
    assert unpack(msgpack.packb(2.0**70), NUMBER) == 2**70  # it sends what a float holds exactly as a float
    assert unpack(msgpack.packb(0.5), NUMBER) == 0.5


@given(st.integers(0, 2**32))
def test_any_value_survives_the_wire(seed: int) -> None:
    dice = Dice(seed)
    schema = dice.schema()
    type_ = schema.value_type()
    value = shaped(dice.config(schema, unknown=0.2), type_)
    assert same(unpack(pack(value, type_), type_), value, type_)


def test_unknown_is_read_with_and_without_what_is_known_of_it() -> None:
    for data in (b"\xd4\x00\x00", msgpack.packb(msgpack.ExtType(12, b"\x81\x01\xc2"))):
        assert unpack(data, STRING) is UNKNOWN
    assert pack(UNKNOWN, STRING) == b"\xd4\x00\x00"
    assert not whole({"a": [UNKNOWN]})


@pytest.mark.parametrize(
    ("data", "type_", "says"),
    [
        (msgpack.packb(1), STRING, "a string is required, not int"),
        (msgpack.packb(True), NUMBER, "a number is required, not bool"),
        (msgpack.packb(float("nan")), NUMBER, "not a number"),
        (msgpack.packb("ten"), NUMBER, "not a number"),
        (msgpack.packb({"a": 1}), ListOf(NUMBER), "a list is required"),
        (msgpack.packb({"name": "x"}), PERSON, "age: is missing"),
        (msgpack.packb({"name": "x", "age": 1, "tags": [], "zip": 1}), PERSON, "zip: there is no such attribute"),
        (msgpack.packb({"name": "x", "age": 1, "tags": ["a", 2]}), PERSON, "tags: a string is required"),
        (msgpack.packb([1, [2, "x"]]), ListOf(NUMBER), r"\[1\]: a number is required, not list"),
        (msgpack.packb(msgpack.ExtType(7, b"")), STRING, "no extension type 7"),
        (msgpack.packb([b'"nonsense"', 1]), DYNAMIC, "not a type"),
        (b"", STRING, "cannot be read"),
        (b"\x91" * 5000, ListOf(STRING), "cannot be read"),
        (b"\xc0\xc0", STRING, "cannot be read"),
    ],
)
def test_bytes_that_are_no_such_value_are_refused_with_their_place(data: bytes, type_: Type, says: str) -> None:
    with pytest.raises(Misfit, match=says):
        unpack(data, type_)


@given(st.binary(max_size=200))
def test_no_bytes_do_harm(data: bytes) -> None:
    with contextlib.suppress(Misfit):
        unpack(data, ObjectOf({"a": ListOf(PERSON), "b": DYNAMIC}))


def test_stored_state_is_read_by_the_schema_of_today() -> None:
    raw = load_json(b'{"name": "x", "age": 0.1, "gone": true}')
    assert from_json(raw, PERSON) == {"name": "x", "age": 0.1, "tags": None}
    assert pack(from_json(0.1, NUMBER), NUMBER) == b"\xa30.1"
    dynamic = load_json(b'{"type": ["list", "number"], "value": [1]}')
    assert from_json(dynamic, DYNAMIC) == Typed(ListOf(NUMBER), [1])
    with pytest.raises(Misfit, match="age: a number is required, not list"):
        from_json({"age": []}, PERSON)
    with pytest.raises(Misfit, match="is not JSON"):
        load_json(b"{")
    with pytest.raises(Misfit, match="is not JSON"):
        load_json(json.dumps(float("nan")).encode())


@pytest.mark.parametrize(
    ("value", "says"),
    [
        ({"nam": "x"}, "nam: there is no such attribute"),
        ({"name": 1}, "name: must be a string, not int"),
        ({"age": float("inf")}, "age: must be a number, not float"),
        ({"age": True}, "age: must be a number, not bool"),
        ({"tags": "abc"}, "tags: must be a list, not str"),
        ({"tags": ["a", None, 3]}, "tags: must be a string, not int"),
        ([], "must be a dict with names, not list"),
    ],
)
def test_what_does_not_fit_its_type_is_named(value: Any, says: str) -> None:
    with pytest.raises(Misfit, match=says):
        shaped(value, PERSON)


def test_what_fits_is_made_whole() -> None:
    assert shaped({"tags": {"a"}}, PERSON) == {"name": None, "tags": ["a"], "age": None}
    assert shaped(("a", "b"), ListOf(STRING)) == ["a", "b"]
