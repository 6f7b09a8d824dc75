"""When what a service answers is what was wanted."""

from __future__ import annotations

import time
from typing import Any

import pytest

from tests.systems.rest.syncing_kit import PLAIN, kind
from trimtab.systems.rest.model import Comparator, FieldClass, Node
from trimtab.systems.rest.syncing.comparing import compared, equal, same
from trimtab.systems.rest.syncing.paths import MISSING

MODEL = kind()


@pytest.mark.parametrize(
    ("how", "wanted", "live"),
    [
        (Comparator.EXACT, 1, 1.0),
        (Comparator.CASELESS, "Standard_LRS", "standard_lrs"),
        (Comparator.ARM_ID, "/subscriptions/1/resourceGroups/A/", "/subscriptions/1/resourcegroups/a"),
        (Comparator.LOCATION, "West US 2", "westus2"),
        (Comparator.DURATION, "PT1H30M", "PT90M"),
        (Comparator.DURATION, "P1D", "PT24H"),
        (Comparator.DURATION, "P1Y", "P12M"),
        (Comparator.DURATION, "P1W", "P7D"),
        (Comparator.DATE_TIME, "2024-01-01T00:00:00Z", "2024-01-01T01:00:00+01:00"),
        (Comparator.DATE_TIME, "2024-01-01T00:00:00Z", "2024-01-01T00:00:00.0000000Z"),
        (Comparator.DATE_TIME, "2024-01-01T00:00:00.1234567Z", "2024-01-01T00:00:00.123456Z"),
        (Comparator.NUMBER, "5", 5),
        (Comparator.NUMBER, "5.0", "5"),
        (Comparator.QUANTITY, "1Gi", "1024Mi"),
        (Comparator.QUANTITY, "0.5", "500m"),
        (Comparator.JSON, '{"a": 1, "b": [2]}', '{"b":[2],"a":1}'),
        (Comparator.JSON, '{"a": 1}', {"a": 1}),
        (Comparator.DNS_NAME, "Example.org.", "example.org"),
    ],
)
def test_one_value_in_two_spellings_is_the_same(how: Comparator, wanted: Any, live: Any) -> None:
    node = Node(type="any", compare=how)
    assert same(MODEL, node, wanted, live)
    assert same(MODEL, node, live, wanted)
    assert not same(MODEL, Node(type="any"), wanted, live) or how is Comparator.EXACT


@pytest.mark.parametrize(
    ("how", "wanted", "live"),
    [
        (Comparator.EXACT, True, 1),
        (Comparator.EXACT, "1", 1),
        (Comparator.EXACT, "a", "A"),
        (Comparator.CASELESS, "a", 1),
        (Comparator.LOCATION, "westus", "westus2"),
        (Comparator.DURATION, "P1M", "PT1M"),
        (Comparator.DURATION, "P1M", "P30D"),
        (Comparator.DURATION, "P", "PT"),
        (Comparator.DURATION, "soon", "later"),
        (Comparator.DATE_TIME, "2024-01-01T00:00:00Z", "2024-01-01T00:00:00+01:00"),
        (Comparator.DATE_TIME, "yesterday", "today"),
        (Comparator.NUMBER, "5", "6"),
        (Comparator.NUMBER, True, 1),
        (Comparator.NUMBER, "NaN", "nan"),
        (Comparator.QUANTITY, "1Gi", "1G"),
        (Comparator.QUANTITY, "many", "few"),
        (Comparator.JSON, "{", "["),
        (Comparator.JSON, '{"a": 1}', '{"a": 2}'),
        (Comparator.ARM_ID, "/a/b", "/a"),
    ],
)
def test_two_values_are_not_the_same(how: Comparator, wanted: Any, live: Any) -> None:
    assert not same(MODEL, Node(type="any", compare=how), wanted, live)


def test_null_is_missing_and_neither_is_empty() -> None:
    nothing, node = (None, MISSING), Node(type="any")
    assert all(same(MODEL, node, one, other) for one in nothing for other in nothing)
    assert not any(same(MODEL, node, one, empty) for one in nothing for empty in ({}, [], "", 0, False))
    assert not any(same(MODEL, node, empty, one) for one in nothing for empty in ({}, [], "", 0, False))
    assert not same(MODEL, node, {}, [])


@pytest.mark.parametrize("mask", ["***", "<redacted>"])
def test_a_mask_says_nothing(mask: str) -> None:
    assert same(MODEL, Node(type="string"), "hunter2", mask)
    assert not same(MODEL, Node(type="string"), mask, "hunter2")


def test_an_empty_text_is_a_mask_of_a_secret_only() -> None:
    assert same(MODEL, Node(type="string", field=FieldClass.SECRET), "hmac-sha256:00", "")
    assert not same(MODEL, Node(type="string"), "x", "")


def test_a_set_is_compared_in_any_order_and_with_its_counts() -> None:
    node = Node(type="array", unordered=True, items=Node(type="string", compare=Comparator.CASELESS))
    assert same(MODEL, node, ["a", "b", "b"], ["B", "A", "b"])
    assert not same(MODEL, node, ["a", "b", "b"], ["a", "a", "b"])
    assert not same(MODEL, node, ["a"], ["a", "b"])
    assert not same(MODEL, Node(type="array"), ["a", "b"], ["b", "a"])


def test_items_of_a_list_may_have_more_fields_than_were_asked_for() -> None:
    node = Node(type="array", items=Node(type="object", properties={"x": Node(type="integer")}))
    assert same(MODEL, node, [{"x": 1}], [{"x": 1, "state": "ok"}])
    assert not same(MODEL, node, [{"x": 1}], [{"state": "ok"}])


def test_a_keyed_list_is_compared_by_keys() -> None:
    node = Node(type="array", keys=("name",), items=Node(type="object"))
    assert same(MODEL, node, [{"name": "a", "x": 1}], [{"name": "b"}, {"name": "a", "x": 1}])
    assert not same(MODEL, node, [{"name": "a", "x": 1}], [{"name": "a", "x": 2}])


@pytest.mark.parametrize(
    ("wanted", "live", "alike"), [("web", "net/web", True), ("web", "net/WEB", True), ("web", "web/net", False)]
)
def test_the_name_of_an_arm_child_comes_back_with_its_parents(wanted: str, live: str, alike: bool) -> None:
    assert compared(MODEL, {"name": wanted})("name", wanted, live) is alike
    assert not compared(kind(path=PLAIN), {"name": wanted})("name", wanted, live)


def test_what_is_in_no_body_is_compared_exactly() -> None:
    assert not compared(MODEL, {})("properties.mode", "on", "ON")
    assert compared(MODEL, {"properties": {"mode": "on"}})("properties.mode", "on", "ON")


def test_json_values_are_equal_by_type_and_value() -> None:
    assert equal({"a": [1, {"b": None}]}, {"a": [1.0, {"b": None}]})
    assert not equal({"a": None}, {})
    assert not equal([1, 2], [1])


def test_a_hostile_value_takes_no_time() -> None:
    began = time.process_time()
    assert not same(MODEL, Node(compare=Comparator.NUMBER), "9" * 5000, "1e99999999")
    assert not same(MODEL, Node(compare=Comparator.NUMBER), "1e999999999", "2e999999999")
    assert not same(MODEL, Node(compare=Comparator.DURATION), "P" + "1" * 20000 + "X", "P1D")
    assert not same(MODEL, Node(compare=Comparator.JSON), "[" * 100000, "[]")
    assert time.process_time() - began < 2
