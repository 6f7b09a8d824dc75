"""A kind that a user defines is a resource on the same day, whatever its fields are called and however they look."""

from __future__ import annotations

from typing import Any

import pytest

from tests.terraform.kinds import water
from tests.terraform.kinds.conftest import Waters
from tests.terraform.kinds.others import changed
from tests.terraform.kinds.terraforming import Terraform
from trimtab.terraform.kinds.comparing import Differences, compared, digests, kept_digests, titled
from trimtab.terraform.kinds.precomputing import taken

pytestmark = pytest.mark.slow

IT = "trimtab_water_buoy.it"


def buoy(name: str, *, count: int | None = None, **spec: Any) -> dict[str, Any]:
    whole: dict[str, Any] = {"metadata": {"name": name}, "spec": {"depth": 1, **spec}, "wait": False}
    if count is not None:
        whole["count_"] = count
    return {"trimtab_water_buoy": {"it": whole}}


def test_a_snapshot_that_lacks_a_kind_of_the_server_says_which(waters: Waters) -> None:
    before, now = kept_digests(waters.before), kept_digests(waters.kinds)
    assert compared(before, now) == Differences(new=("water_buoy",))
    assert compared(now, before) == Differences(gone=("water_buoy",))
    assert not compared(now, digests([waters.kinds.definition(name) for name in waters.kinds.heads]))
    assert titled(waters.kinds.heads["water_buoy"]) == "Buoy of water.example.com/v1"


def test_the_same_server_gives_the_same_bytes(waters: Waters) -> None:
    assert taken(waters.api.get) == taken(waters.api.get) == waters.kinds.path.read_bytes()


@pytest.mark.row(64)
def test_every_form_of_a_field_survives_apply_reordering_and_import(sea: Terraform, waters: Waters) -> None:
    def whole(**more: Any) -> dict[str, Any]:
        forms: dict[str, Any] = {
            "tags": ["b", "a"],
            "foo_bar": "camel",
            "foo_bar_2": "snake",
            "lamps": {"top": {"watts": 7}, "low": {}},
            "ports": {"80": {"use": "http"}, "443": {}},
            "rope": {"length": 1.5},
            "extra": '{"a": {"b": [1, null]}}',
            "code": "hush",
            "serial": "x1",
            "grid": [[1, 2], [], [3]],
            "depths": {"low": 0.25, "high": 3},
        }
        return buoy("every-form", count=2, **(forms | more))

    sea.apply(whole())
    live = waters.api.get(water.path("every-form"))
    assert live["count"] == 2
    assert live["spec"]["foo_bar"] == "snake"
    assert live["spec"]["fooBar"] == "camel"
    assert live["spec"]["ports"] == [{"number": 443}, {"number": 80, "use": "http"}]
    assert live["spec"]["lamps"] == [{"name": "low", "watts": 5}, {"name": "top", "watts": 7}]
    assert live["spec"]["grid"] == [[1, 2], [], [3]]
    sea.unchanged()
    sea.unchanged(whole(tags=["a", "b"], extra='{"a":{"b":[1,null]}}'))
    sea.run("state", "rm", IT)
    unwaited = whole()
    del unwaited["trimtab_water_buoy"]["it"]["wait"]
    sea.write(unwaited)
    sea.run("import", IT, "default/every-form")
    sea.unchanged()


def test_an_item_of_a_keyed_list_that_others_add_is_theirs(sea: Terraform, waters: Waters) -> None:
    sea.apply(buoy("lamps", lamps={"top": {"watts": 7}}, tags=["a"]))
    lamps = [{"name": "theirs", "watts": 1}, {"name": "top", "watts": 7, "note": "theirs"}]
    changed(waters.api, water.path("lamps"), {"spec": {"lamps": lamps, "tags": ["theirs", "a"]}})
    sea.unchanged()
    sea.apply(buoy("lamps", lamps={"top": {"watts": 8}}, tags=["b"]))
    live = waters.api.get(water.path("lamps"))["spec"]
    assert {one["name"]: one["watts"] for one in live["lamps"]} == {"theirs": 1, "top": 8}
    assert set(live["tags"]) == {"theirs", "b"}
    sea.unchanged()


@pytest.mark.row(63)
def test_at_most_one_of_the_branches_is_given_where_none_is_allowed(sea: Terraform) -> None:
    sea.write(buoy("both", rope={"length": 1}, chain={"links": 3}))
    told = sea.run("validate", fails=True)
    assert "spec.rope, spec.chain" in told
    sea.write(buoy("none"))
    sea.run("validate")


@pytest.mark.row(63)
def test_one_branch_is_exchanged_for_the_other(sea: Terraform, waters: Waters) -> None:
    sea.apply(buoy("branches", rope={"length": 1}))
    sea.apply(buoy("branches", chain={"links": 3}))
    spec = waters.api.get(water.path("branches"))["spec"]
    assert spec["chain"] == {"links": 3}
    assert "rope" not in spec
    sea.unchanged()


@pytest.mark.row(68)
def test_another_serial_is_another_buoy(sea: Terraform) -> None:
    sea.apply(buoy("serial", serial="x1"))
    assert "forces replacement" in sea.plan(buoy("serial", serial="x2"))
    sea.apply()
    sea.unchanged()


def test_one_of_few_values_is_checked_before_anything_is_sent(sea: Terraform) -> None:
    sea.write(buoy("colour", colour="blue"))
    assert 'must be one of "red", "green", not "blue"' in sea.run("validate", fails=True)


@pytest.mark.row(65)
def test_data_sources_read_one_and_many(sea: Terraform, waters: Waters) -> None:
    for name in ("data-b", "data-a"):
        body = {
            "apiVersion": f"{water.GROUP}/v1",
            "kind": "Buoy",
            "metadata": {"name": name, "namespace": "default", "labels": {"data": "yes"}},
            "spec": {"depth": 3, "lamps": [{"name": "top"}]},
        }
        waters.api.apply(water.path(name), body)
    water.tell(waters.api, "data-a", "Ready", message="floats")
    sea.apply(
        {},
        data={
            "trimtab_water_buoy": {"one": {"metadata": {"name": "data-a"}}},
            "trimtab_water_buoys": {"many": {"label_selector": "data=yes", "namespace": "default"}},
        },
        output={
            "said": {"value": '${data.trimtab_water_buoy.one.status.conditions["Ready"].message}'},
            "names": {"value": "${data.trimtab_water_buoys.many.items[*].metadata.name}"},
            "watts": {"value": "${data.trimtab_water_buoys.many.items[0].spec.lamps.top.watts}"},
        },
    )
    assert sea.run("output", "-json", "names").strip() == '["data-a","data-b"]'
    assert sea.run("output", "-json", "said").strip() == '"floats"'
    assert sea.run("output", "-json", "watts").strip() == "5"


@pytest.mark.row(65)
def test_a_data_source_of_what_does_not_exist_says_so(sea: Terraform) -> None:
    sea.write({}, data={"trimtab_water_buoy": {"one": {"metadata": {"name": "absent"}}}})
    assert "Buoy default/absent does not exist" in sea.plan(fails=True)
