"""Defaults that the server fills in inside of what is JSON text in Terraform: they are its own, and drift is still seen."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.terraform.kinds import water
from tests.terraform.kinds.conftest import Waters
from tests.terraform.kinds.others import applied, changed
from tests.terraform.kinds.terraforming import Terraform

pytestmark = pytest.mark.slow


def buoy(name: str, **spec: Any) -> dict[str, Any]:
    return {"trimtab_water_buoy": {"it": {"metadata": {"name": name}, "spec": {"depth": 1, **spec}, "wait": False}}}


B, A = {"name": "b"}, {"name": "a", "note": "x"}
FORMS: dict[str, Any] = {
    "berths": {"north": json.dumps([B, A])},
    "watches": {"first": json.dumps([B, A])},
    "logs": [json.dumps(B), json.dumps(A)],
    "cargo": json.dumps({"berths": [B, A], "watches": [B, A], "marks": ["y", "x"], "free": [{"z": [B]}]}),
    "decks": {"low": [{"fore": json.dumps([B, A])}]},
}
FILLED = [{**B, "metres": 80}, {**A, "metres": 80}]


def test_a_default_within_json_makes_no_difference_and_is_not_told_as_lost(sea: Terraform, waters: Waters) -> None:
    told = sea.apply(buoy("filled", **FORMS))
    assert "did not keep" not in told
    assert waters.api.get(water.path("filled"))["spec"]["berths"] == {"north": FILLED}
    sea.unchanged()
    more = json.dumps([{**B, "note": "new"}, A])
    told = sea.apply(buoy("filled", **{**FORMS, "berths": {"north": more}, "watches": {"first": more}}))
    assert "did not keep" not in told
    sea.unchanged()


@pytest.mark.parametrize(
    "theirs",
    [
        {"berths": {"north": [FILLED[0], {**FILLED[1], "note": "theirs"}]}},
        {"berths": {"north": FILLED[::-1]}},
        {"berths": {"north": [*FILLED, {"name": "c"}]}},
        {"berths": {"north": FILLED[:1]}},
        {"watches": {"first": FILLED[:1]}},
        {"logs": [FILLED[0], {**FILLED[1], "note": "theirs"}]},
        {"logs": [*FILLED, {"name": "c"}]},
        {"cargo": {"berths": FILLED[:1]}},
        {"cargo": {"marks": ["y"]}},
        {"decks": {"low": [{"fore": FILLED, "aft": FILLED}]}},
        {"decks": {"low": [{"fore": FILLED[:1]}]}},
    ],
    ids=str,
)
def test_what_others_change_add_or_remove_in_it_is_shown_and_taken_back(
    sea: Terraform, waters: Waters, theirs: dict[str, Any]
) -> None:
    sea.apply(buoy("theirs", **FORMS))
    changed(waters.api, water.path("theirs"), {"spec": theirs})
    assert "will be updated in-place" in sea.plan()
    sea.apply()
    sea.unchanged()
    spec = waters.api.get(water.path("theirs"))["spec"]
    assert [spec["berths"]["north"], spec["logs"], spec["cargo"]["berths"], spec["decks"]["low"]] == [
        FILLED,
        FILLED,
        FILLED,
        [{"fore": FILLED}],
    ]
    sea.destroy()


def test_items_with_keys_that_others_add_within_json_are_theirs(sea: Terraform, waters: Waters) -> None:
    sea.apply(buoy("neighbours", **FORMS))
    more = [{"name": "theirs", "metres": 3}]
    body = {
        "apiVersion": f"{water.GROUP}/v1",
        "kind": "Buoy",
        "metadata": {"name": "neighbours", "namespace": "default"},
        "spec": {"watches": {"first": more}, "cargo": {"watches": more, "marks": ["theirs"]}},
    }
    applied(waters.api, water.path("neighbours"), body, manager="somebody")
    sea.unchanged()
    told = sea.apply(buoy("neighbours", **{**FORMS, "watches": {"first": json.dumps([{**B, "note": "new"}, A])}}))
    assert "did not keep" not in told
    sea.unchanged()
    first = waters.api.get(water.path("neighbours"))["spec"]["watches"]["first"]
    assert {one["name"]: one["metres"] for one in first} == {"a": 80, "b": 80, "theirs": 3}
