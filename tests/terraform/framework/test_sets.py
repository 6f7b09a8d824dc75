"""Elements of sets across plans: which was which, and what a change of one needs."""

from __future__ import annotations

import random
from typing import Any

import pytest

from trimtab.terraform.framework.attributes import Attribute, Nested
from trimtab.terraform.framework.matching import pairs
from trimtab.terraform.framework.modifiers import KeepState, RequiresReplace
from trimtab.terraform.framework.planning import plan
from trimtab.terraform.framework.schema import Schema
from trimtab.terraform.framework.types import NUMBER, STRING
from trimtab.terraform.framework.values import UNKNOWN

RULES = Nested(
    {
        "host": Attribute(STRING, required=True, modifiers=(RequiresReplace(),)),
        "port": Attribute(NUMBER, optional=True, computed=True),
        "size": Attribute(NUMBER, default=1),
        "id": Attribute(STRING, computed=True, modifiers=(KeepState(),)),
    },
    "set",
)
SCHEMA = Schema({"rules": Attribute(RULES, optional=True), "note": Attribute(STRING, optional=True)})


def rule(host: str, port: Any = None, size: Any = None, id_: Any = None) -> dict[str, Any]:
    return {"host": host, "port": port, "size": size, "id": id_}


def test_an_element_that_could_be_two_leaves_the_other_to_the_one_that_cannot() -> None:
    prior = [rule("a", 80, 1, "x"), rule("a", 81, 1, "y")]
    config = [rule("a"), rule("a", 80)]
    assert pairs(RULES, config, prior) == {0: 1, 1: 0}
    assert pairs(RULES, config[::-1], prior) == {1: 1, 0: 0}


def test_many_elements_find_their_own_in_any_order() -> None:
    prior = [rule(f"h{at}", at, 1, f"id{at}") for at in range(300)]
    config = [rule(f"h{at}", at if at % 2 else None) for at in range(300)]
    dice = random.Random(1)
    dice.shuffle(prior)
    dice.shuffle(config)
    made = plan(SCHEMA, {"rules": config, "note": None}, {"rules": prior, "note": None})
    assert sorted(item["id"] for item in made.value["rules"]) == sorted(item["id"] for item in prior)
    assert made.replace == ()


def test_an_element_that_stays_keeps_what_is_computed_and_a_new_one_is_unknown() -> None:
    prior = {"rules": [rule("a", 80, 1, "x")], "note": None}
    made = plan(SCHEMA, {"rules": [rule("b"), rule("a")], "note": None}, prior)
    assert {item["host"]: item["id"] for item in made.value["rules"]} == {"a": "x", "b": UNKNOWN}


@pytest.mark.parametrize(
    ("after", "replaces"),
    [
        ([rule("a")], False),
        ([rule("a", size=2)], False),
        ([rule("b")], True),
        ([rule("a"), rule("b")], False),
        ([rule("a", size=2), rule("b")], False),
        ([], False),
        ([rule("b"), rule("c")], True),
    ],
)
def test_a_set_replaces_when_an_element_became_another_where_it_matters(after: list[Any], replaces: bool) -> None:
    made = plan(SCHEMA, {"rules": after, "note": None}, {"rules": [rule("a", 80, 1, "x")], "note": None})
    assert [str(path) for path in made.replace] == (["rules"] if replaces else [])


def test_a_change_elsewhere_makes_unknown_only_what_nothing_keeps() -> None:
    prior = {"rules": [rule("a", 80, 1, "x")], "note": None}
    made = plan(SCHEMA, {"rules": [rule("a")], "note": "new"}, prior)
    assert made.value["rules"] == [rule("a", UNKNOWN, 1, "x")]
    assert made.replace == ()
