"""What of a live object is ours to show, as pure functions."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.terraform.kinds.shapes import documents, objects
from trimtab.terraform.kinds.converting import from_document
from trimtab.terraform.kinds.definition import INTEGER, KEYED, LIST, MAP, OBJECT, STRING, Field, Shape
from trimtab.terraform.kinds.keeping import unkept
from trimtab.terraform.kinds.reading import EVERYTHING, PRESENT, owned_by, owned_by_anyone, shown

PAIRS = objects(3).flatmap(lambda shape: st.tuples(st.just(shape), documents(shape)))


@given(PAIRS)
def test_who_owns_everything_sees_everything(pair: tuple[Shape, Any]) -> None:
    shape, document = pair
    assert shown(shape, document, EVERYTHING, None) == from_document(shape, document)


@given(PAIRS)
def test_reading_what_the_state_has_changes_nothing(pair: tuple[Shape, Any]) -> None:
    shape, document = pair
    value = from_document(shape, document)
    assert shown(shape, document, PRESENT, value) == value
    assert shown(shape, document, EVERYTHING, value) == value


@given(PAIRS)
def test_who_owns_nothing_and_has_nothing_sees_nothing(pair: tuple[Shape, Any]) -> None:
    shape, document = pair
    value = shown(shape, document, PRESENT, None)
    assert all(inner is None for inner in value.values())


@given(PAIRS)
def test_a_server_that_gives_back_what_it_got_has_kept_it(pair: tuple[Shape, Any]) -> None:
    shape, document = pair
    value = from_document(shape, document)
    assert list(unkept(shape, value, value)) == []


def test_what_somebody_took_from_us_is_shown_as_it_is_now() -> None:
    shape = Shape(OBJECT, fields=(Field("a", "a", Shape(STRING)),))
    assert shown(shape, {"a": "theirs"}, PRESENT, {"a": "ours"}) == {"a": "theirs"}


def test_a_default_that_a_server_leaves_out_is_shown_all_the_same() -> None:
    shape = Shape(OBJECT, fields=(Field("a", "a", Shape(STRING), default=""), Field("b", "b", Shape(STRING))))
    assert shown(shape, {}, PRESENT, None) == {"a": "", "b": None}
    assert shown(shape, {"a": "x"}, PRESENT, None) == {"a": "x", "b": None}


def test_items_are_told_apart_by_their_keys() -> None:
    items = Shape(OBJECT, fields=(Field("size", "size", Shape(INTEGER)),))
    shape = Shape(KEYED, items=items, keys=("name",))
    live = [{"name": "theirs", "size": 1}, {"name": "ours", "size": 2}]
    owned = {'k:{"name":"ours"}': {".": {}, "f:size": {}, "f:name": {}}}
    assert shown(shape, live, owned, None) == {"ours": {"size": 2}}


def test_a_list_of_several_keys_is_in_the_order_of_the_state() -> None:
    fields = (Field("port", "port", Shape(INTEGER)), Field("protocol", "protocol", Shape(STRING)))
    shape = Shape(LIST, items=Shape(OBJECT, fields=fields), keys=("port", "protocol"))
    live = [{"port": 80, "protocol": "TCP"}, {"port": 443, "protocol": "TCP"}]
    prior = [{"port": 443, "protocol": None}, {"port": 80, "protocol": None}]
    assert shown(shape, live, PRESENT, prior) == prior


def test_what_a_server_fills_into_an_item_of_a_list_is_not_ours() -> None:
    fields = (Field("name", "name", Shape(STRING)), Field("filled", "filled", Shape(STRING)))
    shape = Shape(LIST, items=Shape(OBJECT, fields=fields))
    live = [{"name": "a", "filled": "x"}]
    assert shown(shape, live, {}, [{"name": "a", "filled": None}]) == [{"name": "a", "filled": None}]
    assert shown(shape, live, {}, None) == [{"name": "a", "filled": "x"}]


def test_a_map_that_is_owned_as_a_whole_is_shown_as_a_whole() -> None:
    shape = Shape(MAP, items=Shape(STRING), atomic=True)
    assert shown(shape, {"a": "1", "b": "2"}, {}, {"a": "1"}) == {"a": "1", "b": "2"}


def test_managers_of_the_status_own_nothing_of_the_object() -> None:
    entries = [
        {"manager": "terraform", "operation": "Apply", "fieldsV1": {"f:spec": {"f:a": {}}}},
        {"manager": "terraform", "operation": "Update", "fieldsV1": {"f:spec": {"f:b": {}}}},
        {"manager": "c", "operation": "Update", "subresource": "status", "fieldsV1": {"f:status": {}}},
    ]
    document = {"metadata": {"managedFields": entries}}
    assert owned_by(document) == {"f:spec": {"f:a": {}}}
    assert owned_by(document, "c") is None
    assert owned_by_anyone(document) == {"f:spec": {"f:a": {}, "f:b": {}}}
    assert owned_by_anyone({"metadata": {}}) is EVERYTHING
