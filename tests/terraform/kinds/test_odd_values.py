"""Values that are allowed and seldom written: after apply the plan is empty for them too, or they are refused by name."""

from __future__ import annotations

from typing import Any

import pytest

from tests.terraform.binary import can
from tests.terraform.kinds import water
from tests.terraform.kinds.conftest import Waters
from tests.terraform.kinds.others import changed
from tests.terraform.kinds.terraforming import Terraform

pytestmark = pytest.mark.slow


def buoy(name: str, labels: Any = None, **spec: Any) -> dict[str, Any]:
    meta = {"name": name} if labels is None else {"name": name, "labels": labels}
    return {"trimtab_water_buoy": {"it": {"metadata": meta, "spec": {"depth": 1, **spec}, "wait": False}}}


def test_null_in_a_map_is_as_good_as_absent(sea: Terraform, waters: Waters) -> None:
    whole = buoy(
        "nulls",
        {"a": None, "b": "1"},
        lamps={"r": {"watts": None}},
        depths={"low": None, "high": 3},
        charts={"a": {"x": None}, "b": None},
        crew={"r": {"rank": None}},
    )
    sea.apply(whole)
    sea.unchanged()
    assert waters.api.get(water.path("nulls"))["metadata"]["labels"] == {"b": "1"}
    changed(waters.api, water.path("nulls"), {"metadata": {"labels": {"a": "theirs"}}, "spec": {"depths": {"low": 7}}})
    sea.unchanged()


def test_null_in_place_of_an_object_in_a_map_is_as_good_as_absent(sea: Terraform, waters: Waters) -> None:
    can("null objects in maps")
    nulls: dict[str, Any] = {"q": None, "r": {}}
    sea.apply(buoy("objects", lamps=nulls, ports={"80": None}, crew=nulls))
    sea.unchanged()
    spec = waters.api.get(water.path("objects"))["spec"]
    assert [one["name"] for one in spec["lamps"]] == ["r"]
    assert list(spec["crew"]) == ["r"]
    assert not spec.get("ports")
    sea.apply(buoy("objects", lamps={"q": {}, "r": None}))
    sea.unchanged()
    lamps = waters.api.get(water.path("objects"))["spec"]["lamps"]
    assert lamps == [{"name": "q", "watts": 5}]
    changed(waters.api, water.path("objects"), {"spec": {"lamps": [*lamps, {"name": "r", "watts": 3}]}})
    sea.unchanged()


def test_a_number_that_no_double_is_exactly_makes_no_difference(sea: Terraform, waters: Waters) -> None:
    third = "${1/3}"
    sea.apply(buoy("thirds", rope={"length": third}, depths={"low": third, "high": 1e300}))
    sea.unchanged()
    assert waters.api.get(water.path("thirds"))["spec"]["rope"]["length"] == 1 / 3
    changed(waters.api, water.path("thirds"), {"spec": {"rope": {"length": 0.3333333333333334}}})
    assert "will be updated in-place" in sea.plan()


def test_a_quantity_is_known_by_what_its_pattern_takes(sea: Terraform) -> None:
    sea.apply(buoy("powers", power="0.5"))
    sea.unchanged(buoy("powers", power="500m"))
    assert "will be updated in-place" in sea.plan(buoy("powers", power="501m"))


@pytest.mark.parametrize("key", ["abc", "01", "1.5", "-0"])
def test_a_key_that_must_be_a_whole_number_is_refused_by_its_name(sea: Terraform, key: str) -> None:
    sea.write(buoy("keys", ports={key: {}}))
    told = sea.run("validate", fails=True)
    assert f'spec.ports["{key}"] has a key that must be a whole number' in told


@pytest.mark.parametrize("text", ['"abc', '"abc" x', '"80"'])
def test_a_quote_in_a_number_or_name_is_a_character(sea: Terraform, waters: Waters, text: str) -> None:
    sea.apply(buoy("quotes", gate=text))
    assert waters.api.get(water.path("quotes"))["spec"]["gate"] == ("80" if text == '"80"' else text)
    sea.unchanged()
    sea.run("state", "rm", "trimtab_water_buoy.it")
    waters.api.delete(water.path("quotes"))


@pytest.mark.parametrize(
    ("text", "rule"),
    [("null", "must not be null"), ('{"a": NaN}', "must be JSON"), ("1e400", "must be JSON"), ("[", "must be JSON")],
)
def test_json_that_no_document_can_hold_is_refused_by_its_name(sea: Terraform, text: str, rule: str) -> None:
    sea.write(buoy("json", whatever=text))
    assert f"spec.whatever {rule}" in sea.run("validate", fails=True)
    sea.write(buoy("json", notes=["{}", text]))
    assert f"spec.notes[1] {rule}" in sea.run("validate", fails=True)


def test_json_that_turns_out_to_be_null_is_refused_when_it_is_known(sea: Terraform, waters: Waters) -> None:
    resources = buoy("late", whatever='${terraform_data.late.id == "" ? "1" : "null"}')
    told = sea.apply({**resources, "terraform_data": {"late": {"triggers_replace": "x"}}}, fails=True)
    assert "spec.whatever must not be null" in told
    assert waters.api.find(water.path("late")) is None


def test_a_number_that_is_too_large_for_a_document_is_refused_by_its_name(sea: Terraform) -> None:
    sea.write(buoy("large", rope={"length": "${1e300 * 1e300}"}, depths={"low": "${1e300 * 1e300}"}))
    told = sea.run("validate", fails=True)
    assert "spec.rope.length must be at most" in told
    assert 'spec.depths["low"] must be at most' in told


def test_what_others_add_inside_of_json_is_not_told_as_lost(sea: Terraform, waters: Waters) -> None:
    sea.apply(buoy("beside", extra='{"a": {"b": 1}}', whatever='{"big": 1e300}', depths={"high": 1e300}))
    changed(waters.api, water.path("beside"), {"spec": {"extra": {"theirs": 1, "a": {"theirs": 1}}}})
    told = sea.apply(buoy("beside", extra='{"a": {"b": 2}}', whatever='{"big": 1e300}', depths={"high": 1e300}))
    assert "did not keep" not in told
    sea.unchanged()


def test_a_name_that_is_empty_is_refused_by_its_name(sea: Terraform) -> None:
    sea.write(buoy(""))
    assert "metadata.name must not be empty" in sea.run("validate", fails=True)
    named = buoy("x")
    named["trimtab_water_buoy"]["it"]["metadata"]["namespace"] = ""
    sea.write(named)
    assert "metadata.namespace must not be empty" in sea.run("validate", fails=True)
    sea.write({}, data={"trimtab_water_buoy": {"one": {"metadata": {"name": "", "namespace": ""}}}})
    told = sea.run("validate", fails=True)
    assert "metadata.name must not be empty" in told
    assert "metadata.namespace must not be empty" in told


def test_null_is_no_name_and_no_value_for_what_is_required(sea: Terraform, waters: Waters) -> None:
    sea.write(buoy("x", depth=None), data={"trimtab_water_buoy": {"one": {"metadata": {"name": None}}}})
    told = sea.run("validate", fails=True)
    assert "spec.depth is required and must not be null." in told
    assert "metadata.name is required and must not be null." in told
    late = {"terraform_data": {"late": {"input": "x"}}}
    nameless = buoy('${terraform_data.late.output == "x" ? null : "x"}')
    told = sea.apply({**nameless, **late}, fails=True)
    assert "metadata.name is required and must not be null." in told
    assert waters.api.find(water.path("None")) is None


def test_a_key_that_a_terminal_would_obey_is_shown_escaped(sea: Terraform) -> None:
    sea.write(buoy("terminals", ports={"\x1b[2J": {}}))
    assert 'spec.ports["\\x1b[2J"] has a key that must be a whole number' in sea.run("validate", fails=True)
