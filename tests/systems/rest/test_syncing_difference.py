"""What is wanted, what was applied, and what is there: three ways."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from tests.systems.rest.syncing_kit import KEY, kind
from trimtab.systems.rest.model import FieldClass, Node, Overlay
from trimtab.systems.rest.syncing.adopting import adopt
from trimtab.systems.rest.syncing.difference import difference
from trimtab.systems.rest.syncing.known import LARGEST
from trimtab.systems.rest.syncing.paths import MISSING
from trimtab.systems.rest.syncing.secrets import sealed
from trimtab.systems.rest.syncing.settling import settle

MODEL = kind()


def test_what_the_spec_says_anew_is_intent_and_what_it_no_longer_says_is_removed() -> None:
    found = difference(
        MODEL,
        desired={"tags": {"a": "2", "c": "3"}},
        applied={"tags": {"a": "1", "b": "1"}},
        live={"tags": {"a": "1", "b": "1", "theirs": "x"}},
    )
    assert found.intent == {"tags.a": "2", "tags.c": "3"}
    assert found.removed == ("tags.b",)
    assert not found.drift


def test_what_others_have_is_not_looked_at() -> None:
    body = {"tags": {"a": "1"}, "properties": {"rules": [{"name": "web", "port": 80}]}}
    live = {
        "id": "x",
        "tags": {"a": "1", "b": "2"},
        "properties": {"size": 10, "rules": [{"name": "other"}, {"name": "web", "port": 80, "state": "ok"}]},
    }
    assert difference(MODEL, desired=body, applied=body, live=live).empty


def test_what_another_hand_changed_is_drift_with_both_values() -> None:
    body = {"tags": {"a": "1", "b": "1"}, "properties": {"rules": [{"name": "web", "port": 80}]}}
    live = {"tags": {"a": "2"}, "properties": {"rules": [{"name": "web", "port": 81}]}}
    assert difference(MODEL, desired=body, applied=body, live=live).drift == {
        "properties.rules[name=web].port": (80, 81),
        "tags.a": ("1", "2"),
        "tags.b": ("1", MISSING),
    }


def test_what_both_changed_is_a_conflict_that_the_spec_wins() -> None:
    found = difference(MODEL, desired={"tags": {"a": "3"}}, applied={"tags": {"a": "1"}}, live={"tags": {"a": "2"}})
    assert found.intent == {"tags.a": "3"}
    assert found.conflicts == {"tags.a": ("1", "2")}
    assert not found.drift


def test_what_both_changed_to_the_same_is_no_conflict() -> None:
    found = difference(MODEL, desired={"tags": {"a": "2"}}, applied={"tags": {"a": "1"}}, live={"tags": {"a": "2"}})
    assert not found.conflicts


def test_another_spelling_in_the_spec_is_no_intent() -> None:
    found = difference(
        MODEL,
        desired={"properties": {"mode": "ON", "hosts": ["b", "a"]}},
        applied={"properties": {"mode": "on", "hosts": ["a", "b"]}},
        live={"properties": {"mode": "On", "hosts": ["a", "b"]}},
    )
    assert found.empty


@pytest.mark.parametrize(
    ("known", "now", "is_drift"),
    [
        ({"value": "6.0"}, "6.0", False),
        ({"value": "6.0"}, "6", False),  # at last what was wanted
        ({"value": "6.0"}, "7.0", True),
        ({"value": "6.0"}, MISSING, True),
        ({"missing": True}, MISSING, False),
        ({"missing": True}, None, False),
        ({"missing": True}, "7", True),
        ({"value": None}, MISSING, False),
    ],
)
def test_a_known_difference_is_expected(known: dict[str, Any], now: Any, is_drift: bool) -> None:
    body = {"properties": {"note": "6"}}
    live = {"properties": {} if now is MISSING else {"note": now}}
    found = difference(MODEL, desired=body, applied=body, live=live, known={"properties.note": known})
    assert bool(found.drift) is is_drift


def test_a_large_known_difference_is_kept_as_its_digest() -> None:
    body = {"properties": {"steps": [{"x": 1}]}}
    live: dict[str, Any] = {"properties": {"steps": [{"x": 1} for _ in range(LARGEST)]}}
    known = settle(MODEL, body, live, previous=None).known
    assert known["properties.steps"].keys() == {"digest"}
    assert difference(MODEL, desired=body, applied=body, live=live, known=known).empty
    live["properties"]["steps"][7]["x"] = 2
    assert set(difference(MODEL, desired=body, applied=body, live=live, known=known).drift) == {"properties.steps"}


def test_what_the_service_adds_to_the_items_of_a_list_comes_and_goes_without_drift() -> None:
    body = {"properties": {"steps": [{"x": 1}, {"x": 2}]}}
    before = {"properties": {"steps": [{"x": 1, "state": "new"}, {"x": 3, "state": "new"}]}}
    after = {"properties": {"steps": [{"x": 1, "state": "ok"}, {"x": 3}]}}
    known = settle(MODEL, body, before, previous=None).known
    assert known == {"properties.steps": {"value": [{"x": 1}, {"x": 3}]}}
    assert difference(MODEL, desired=body, applied=body, live=after, known=known).empty


def test_no_secret_is_in_a_known_difference() -> None:
    body = sealed(MODEL, {"properties": {"steps": [{"x": 1, "key": "sesame"}]}}, KEY)
    live = {"properties": {"steps": [{"x": 1, "key": "sesame"}, {"x": 2, "key": "sesame"}]}}
    known = settle(MODEL, body, live, previous=None).known
    assert known == {"properties.steps": {"value": [{"x": 1}, {"x": 2}]}}
    assert difference(MODEL, desired=body, applied=body, live=live, known=known).empty
    assert "'sesame'" not in repr(difference(MODEL, desired=body, applied=body, live=live))


def test_a_large_set_is_known_in_any_order() -> None:
    body = {"properties": {"hosts": ["x"]}}
    hosts = [f"host-{number}" for number in range(1000)]
    known = settle(MODEL, body, {"properties": {"hosts": hosts}}, previous=None).known
    live = {"properties": {"hosts": hosts[::-1]}}
    assert difference(MODEL, desired=body, applied=body, live=live, known=known).empty


def test_a_changed_secret_is_intent_and_no_secret_is_ever_drift() -> None:
    old = sealed(MODEL, {"properties": {"secret": "hunter2", "create": "a"}}, KEY)
    new = sealed(MODEL, {"properties": {"secret": "swordfish", "create": "a"}}, KEY)
    live = {"properties": {"secret": "***", "create": "b"}}
    assert difference(MODEL, desired=old, applied=old, live=live).empty
    assert set(difference(MODEL, desired=new, applied=old, live=live).intent) == {"properties.secret"}


def test_a_changed_secret_in_a_list_without_keys_is_intent() -> None:
    old = sealed(MODEL, {"properties": {"steps": [{"x": 1, "key": "hunter2"}]}}, KEY)
    new = sealed(MODEL, {"properties": {"steps": [{"x": 1, "key": "swordfish"}]}}, KEY)
    none = sealed(MODEL, {"properties": {"steps": [{"x": 1, "key": None}]}}, KEY)
    live = {"properties": {"steps": [{"x": 1}]}}
    assert difference(MODEL, desired=old, applied=old, live=live).empty
    assert difference(MODEL, desired=new, applied=old, live=live).intent
    assert difference(MODEL, desired=none, applied=old, live=live).intent


def test_what_is_initial_is_given_once_and_then_left_to_others() -> None:
    body = {"sku": {"name": "A", "capacity": 2}}
    assert "sku.capacity" in difference(MODEL, desired=body, applied=None, live=None).intent
    changed = {"sku": {"name": "A", "capacity": 5}}
    live = {"sku": {"name": "A", "capacity": 9}}
    assert difference(MODEL, desired=changed, applied=body, live=live).empty
    assert difference(MODEL, desired={"sku": {"name": "A"}}, applied=body, live=live).empty


def test_what_can_be_given_at_creation_alone_is_named_when_it_changes() -> None:
    applied, live = {"location": "westus"}, {"location": "West US"}
    changed = difference(MODEL, desired={"location": "eastus"}, applied=applied, live=live)
    assert changed.create_only == ("location",)
    assert difference(MODEL, desired={}, applied=applied, live=live).create_only == ("location",)
    assert not difference(MODEL, desired={"location": "West US"}, applied=applied, live=live).create_only
    # It has the value already: an object that was made anew by hand.
    assert not difference(
        MODEL, desired={"location": "eastus"}, applied=applied, live={"location": "eastus"}
    ).create_only


def test_a_secret_that_only_creation_takes_is_not_missed() -> None:
    model = kind(
        properties={
            "vm": Node(
                type="object",
                field=FieldClass.CREATE_ONLY,
                properties={"password": Node(type="string", field=FieldClass.SECRET)},
            )
        }
    )
    applied = sealed(model, {"properties": {"vm": {"password": "hunter2"}}}, KEY)
    changed = sealed(model, {"properties": {"vm": {"password": "swordfish"}}}, KEY)
    assert difference(model, desired={}, applied=applied, live={"properties": {}}).empty
    found = difference(model, desired=changed, applied=applied, live={"properties": {}})
    assert found.create_only == ("properties.vm.password",)
    adopted, _ = adopt(model, changed, {"properties": {}}, as_is=False)
    assert difference(model, desired=changed, applied=adopted, live={"properties": {}}).empty


def test_an_empty_object_asks_for_itself_alone() -> None:
    body: dict[str, Any] = {"tags": {}, "properties": {"rules": []}}
    live = {"tags": {"theirs": "x"}, "properties": {"rules": [{"name": "theirs"}]}}
    assert difference(MODEL, desired=body, applied=body, live=live).empty
    assert difference(MODEL, desired=body, applied={"tags": {"a": "1"}}, live=live).removed == ("tags.a",)


def test_a_field_that_becomes_an_object_or_stops_being_one_is_intent_and_not_removed() -> None:
    plain, below = {"properties": {"extra": "x"}}, {"properties": {"extra": {"a": 1}}}
    for desired, applied in ((plain, below), (below, plain), ({"properties": {"extra": []}}, below)):
        found = difference(MODEL, desired=desired, applied=applied, live=applied)
        assert found.intent
        assert not found.removed


def test_what_is_ignored_or_read_only_is_nobodys() -> None:
    model = kind(properties={"state": Node(type="string", field=FieldClass.READ_ONLY)})
    body = {"properties": {"state": "on"}}
    assert difference(model, desired=body, applied=None, live={"properties": {"state": "off"}}).empty


def test_arm_spells_names_as_it_likes_and_others_mean_what_they_say() -> None:
    body = {"tags": {"Team": "x"}, "properties": {"rules": [{"name": "Web", "port": 80}]}}
    live = {"tags": {"team": "x"}, "properties": {"rules": [{"name": "web", "port": 80}]}}
    assert difference(MODEL, desired=body, applied=body, live=live).empty
    plain = kind(path="/widgets/{widgetName}")
    assert set(difference(plain, desired=body, applied=body, live=live).drift) == {
        "tags.Team",
        "properties.rules[name=Web].name",
        "properties.rules[name=Web].port",
    }


def test_two_names_that_differ_in_case_alone_stay_two() -> None:
    body = {"tags": {"Team": "x", "team": "y"}}
    assert difference(MODEL, desired=body, applied=body, live={"tags": {"Team": "x", "team": "y"}}).empty


def test_a_hook_may_say_what_is_the_same() -> None:
    body = {"tags": {"a": "1"}}
    found = difference(MODEL, desired=body, applied=body, live={"tags": {"a": "one"}}, same=lambda *_: True)
    assert found.empty


def test_true_is_not_one() -> None:
    one, true = {"properties": {"extra": 1}}, {"properties": {"extra": True}}
    assert difference(MODEL, desired=true, applied=one, live=one).intent == {"properties.extra": True}
    assert difference(MODEL, desired=one, applied=one, live=true).drift == {"properties.extra": (1, True)}


def test_the_paths_are_in_order() -> None:
    desired = {"tags": dict.fromkeys("zyxa", "x"), "sku": {"name": "A"}}
    found = difference(MODEL, desired=desired, applied=None, live={})
    assert list(found.intent) == sorted(found.intent)


def test_what_was_taken_over_as_it_is_differs_where_it_is_known_to() -> None:
    desired = {"location": "westus", "tags": {"a": "1"}, "properties": {"mode": "on", "note": "mine"}}
    live = {"location": "eastus", "tags": {"a": "2"}, "properties": {"mode": "ON"}}
    applied, known = adopt(MODEL, desired, live, as_is=True)
    assert applied == desired
    assert known == {
        "location": {"value": "eastus"},
        "properties.note": {"missing": True},
        "tags.a": {"value": "2"},
    }
    assert difference(MODEL, desired=desired, applied=applied, live=live, known=known).empty


def test_what_is_overwritten_is_intent_where_it_differs() -> None:
    desired = {"tags": {"a": "1", "b": "1"}, "properties": {"rules": [{"name": "web", "port": 80}]}}
    live = {"tags": {"a": "1", "b": "2"}, "properties": {"rules": [{"name": "web", "port": 81}]}}
    applied, known = adopt(MODEL, desired, live, as_is=False)
    assert applied == {"tags": {"a": "1"}, "properties": {"rules": [{"name": "web"}]}}
    assert known == {}
    assert set(difference(MODEL, desired=desired, applied=applied, live=live).intent) == {
        "tags.b",
        "properties.rules[name=web].port",
    }


def test_what_was_removed_and_is_there_with_the_old_value_is_still_present() -> None:
    previous = {"properties": {"note": "x", "mode": "on", "size": 3, "net": {"a": "x"}, "hosts": ["a"]}}
    live = {"properties": {"note": "x", "mode": "theirs", "net": {}, "hosts": []}}
    assert settle(MODEL, {}, live, previous=previous).still_present == ("properties.note",)


def test_what_was_removed_and_is_back_at_its_default_is_gone() -> None:
    previous = {"properties": {"size": 10}}
    assert settle(MODEL, {}, {"properties": {"size": 10}}, previous=previous).still_present == ()


def test_known_differences_are_only_those_of_what_is_ours() -> None:
    desired = sealed(MODEL, {"properties": {"mode": "on", "note": "/a", "secret": "x"}, "sku": {"capacity": 1}}, KEY)
    live = {"properties": {"mode": "ON", "note": "a", "size": 10}, "sku": {"capacity": 7}}
    assert settle(MODEL, desired, live, previous=None).known == {"properties.note": {"value": "a"}}


def test_ignored_fields_are_part_of_no_difference() -> None:
    model = msgspec.structs.replace(MODEL, overlay=Overlay(ignored=("properties.theirs",)))
    assert difference(model, desired={}, applied={}, live={"properties": {"theirs": 1}}).empty
