from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.terraform.kinds.shapes import canonical, documents, objects, shapes
from trimtab.terraform.framework.values import UNKNOWN
from trimtab.terraform.kinds.converting import Misfit, UnknownValue, aligned, from_document, settled, to_document
from trimtab.terraform.kinds.definition import (
    INT_OR_STRING,
    INTEGER,
    KEYED,
    LIST,
    OBJECT,
    SET,
    STRING,
    Field,
    Shape,
    pack,
    unpack,
)

PAIRS = shapes(3).flatmap(lambda shape: st.tuples(st.just(shape), documents(shape)))


@pytest.mark.row(58)
@given(PAIRS)
def test_a_document_that_becomes_a_value_comes_back_as_it_was(pair: tuple[Shape, Any]) -> None:
    shape, document = pair
    assert canonical(to_document(shape, from_document(shape, document))) == canonical(document)


@pytest.mark.row(58)
@given(PAIRS)
def test_a_value_that_becomes_a_document_comes_back_as_it_was(pair: tuple[Shape, Any]) -> None:
    shape, document = pair
    value = from_document(shape, document)
    assert from_document(shape, to_document(shape, value)) == value


@given(shapes(3))
def test_a_shape_survives_its_packing(shape: Shape) -> None:
    assert unpack(pack(shape)) == shape


@pytest.mark.row(58)
def test_unknown_never_gets_into_a_document() -> None:
    shape = Shape(OBJECT, fields=(Field("rule_ref", "ruleRef", Shape(LIST, items=Shape(STRING))),))
    with pytest.raises(UnknownValue, match=r"rule_ref\[1\] is not known yet"):
        to_document(shape, {"rule_ref": ["a", UNKNOWN]})


def test_null_is_an_absent_field() -> None:
    shape = Shape(OBJECT, fields=(Field("a", "a", Shape(STRING)), Field("b", "b", Shape(STRING))))
    assert to_document(shape, {"a": None, "b": "x"}) == {"b": "x"}
    assert from_document(shape, {"b": "x"}) == {"a": None, "b": "x"}


@pytest.mark.row(64)
def test_a_keyed_list_is_a_map_and_its_key_is_not_repeated() -> None:
    shape = Shape(KEYED, items=Shape(OBJECT, fields=(Field("size", "size", Shape(INTEGER)),)), keys=("name",))
    value = from_document(shape, [{"name": "b", "size": 2}, {"name": "a", "size": 1}])
    assert value == {"b": {"size": 2}, "a": {"size": 1}}
    assert to_document(shape, value) == [{"name": "a", "size": 1}, {"name": "b", "size": 2}]


@pytest.mark.parametrize(("document", "value"), [(80, "80"), ("80", '"80"'), ("50%", "50%"), ("http", "http")])
def test_a_number_and_a_string_of_digits_are_told_apart(document: Any, value: str) -> None:
    shape = Shape(INT_OR_STRING)
    assert from_document(shape, document) == value
    assert to_document(shape, value) == document


def test_a_document_of_another_form_is_said_to_be_one() -> None:
    with pytest.raises(Misfit, match="expected a list, not a string"):
        from_document(Shape(SET, items=Shape(STRING)), "x")


@given(objects(3).flatmap(lambda shape: st.tuples(st.just(shape), documents(shape))))
def test_what_was_unknown_is_settled_as_it_was_found_and_the_rest_as_it_was_planned(pair: tuple[Shape, Any]) -> None:
    shape, document = pair
    value = from_document(shape, document)
    assert settled(shape, UNKNOWN, value) == value
    assert settled(shape, value, value) == value
    opened = dict.fromkeys(value, UNKNOWN)
    assert settled(shape, opened, value) == value


def test_items_of_a_list_are_settled_by_their_keys() -> None:
    items = Shape(
        OBJECT, fields=(Field("id", "id", Shape(STRING), computed=True), Field("name", "name", Shape(STRING)))
    )
    shape = Shape(LIST, items=items, keys=("name",))
    planned = [{"id": UNKNOWN, "name": "a"}, {"id": UNKNOWN, "name": "b"}]
    found = [{"id": "2", "name": "b"}, {"id": "1", "name": "a"}]
    assert settled(shape, planned, found) == [{"id": "1", "name": "a"}, {"id": "2", "name": "b"}]


def test_an_item_that_leaves_a_key_out_takes_none_that_another_names() -> None:
    fields = (Field("port", "port", Shape(INTEGER)), Field("protocol", "protocol", Shape(STRING)))
    shape = Shape(LIST, items=Shape(OBJECT, fields=fields), keys=("port", "protocol"))
    tcp, udp = {"port": 53, "protocol": "TCP"}, {"port": 53, "protocol": "UDP"}
    assert aligned(shape, [{"port": 53, "protocol": None}, udp], [udp, tcp]) == [tcp, udp]
