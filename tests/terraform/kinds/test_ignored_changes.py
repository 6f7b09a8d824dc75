"""`lifecycle.ignore_changes`: what the plan leaves as it is stays as it is, whatever the configuration says."""

from __future__ import annotations

from typing import Any

import pytest

from tests.terraform.binary import can
from tests.terraform.kinds import water
from tests.terraform.kinds.conftest import Waters
from tests.terraform.kinds.others import changed, config_map_path
from tests.terraform.kinds.terraforming import Terraform
from trimtab.terraform.kinds.api import Api
from trimtab.terraform.kinds.reading import owned_by

pytestmark = pytest.mark.slow

Spec = dict[str, Any]

VALUES: dict[str, tuple[Spec, Spec, Spec]] = {
    "code": ({"code": "a"}, {"code": "theirs"}, {"code": "b"}),
    "colour": ({"colour": "green"}, {"colour": "red"}, {"colour": "green"}),
    "tags": ({"tags": ["a", "b"]}, {"tags": ["a", "c"]}, {"tags": ["a", "d"]}),
    "rope": ({"rope": {"length": 1}}, {"rope": {"length": 2}}, {"rope": {"length": 3}}),
    "extra": ({"extra": '{"a":1}'}, {"extra": {"a": 2}}, {"extra": '{"a":3}'}),
    "grid": ({"grid": [[1]]}, {"grid": [[2]]}, {"grid": [[3]]}),
    "lamps": ({"lamps": {"r": {"note": "a"}}}, {"lamps": [{"name": "r", "note": "x"}]}, {"lamps": {"s": {"watts": 6}}}),
    "ports": ({"ports": {"1": {"use": "a"}}}, {"ports": [{"number": 1, "use": "x"}]}, {"ports": {"2": {"use": "b"}}}),
    "crew": ({"crew": {"r": {"rank": "a"}}}, {"crew": {"r": {"rank": "theirs"}}}, {"crew": {"q": {"rank": "b"}}}),
    "depths": ({"depths": {"a": 1, "b": 2}}, {"depths": {"a": 9}}, {"depths": {"b": 3, "c": 4}}),
}
"""Of an attribute: what is given at first, what somebody makes of that, and what is given later."""


def buoy(name: str, ignored: Any, labels: dict[str, str] | None = None, **spec: Any) -> dict[str, Any]:
    it = {
        "metadata": {"name": name, "labels": labels},
        "spec": {"depth": 1, **spec},
        "wait": False,
        "lifecycle": {"ignore_changes": ignored},
    }
    return {"trimtab_water_buoy": {"it": it}}


@pytest.mark.parametrize("attribute", VALUES)
def test_what_somebody_changed_stays_where_it_is_ignored(sea: Terraform, waters: Waters, attribute: str) -> None:
    name, ignored = f"theirs-{attribute}", [f"spec.{attribute}"]
    first, theirs, later = VALUES[attribute]
    sea.apply(buoy(name, ignored, **first))
    changed(waters.api, water.path(name), {"spec": theirs})
    before = waters.api.get(water.path(name))["spec"]
    for depth, spec in enumerate((first, later, {}), 2):
        sea.apply(buoy(name, ignored, **{**spec, "depth": depth}))
        assert waters.api.get(water.path(name))["spec"] == {**before, "depth": depth}
        sea.unchanged()


@pytest.mark.parametrize("attribute", VALUES)
def test_what_is_ours_stays_where_its_change_is_ignored(sea: Terraform, waters: Waters, attribute: str) -> None:
    name, ignored = f"ours-{attribute}", [f"spec.{attribute}"]
    first, _, later = VALUES[attribute]
    sea.apply(buoy(name, ignored, **first))
    before = waters.api.get(water.path(name))["spec"]
    for depth, spec in enumerate((later, {}), 2):
        sea.apply(buoy(name, ignored, **{**spec, "depth": depth}))
        assert waters.api.get(water.path(name))["spec"] == {**before, "depth": depth}
        sea.unchanged()
    sea.apply(buoy(name, [], depth=9))
    assert waters.api.get(water.path(name))["spec"] == {"depth": 9, "colour": "red"}


def test_what_is_ignored_and_not_ours_is_not_taken_over(sea: Terraform, waters: Waters) -> None:
    path = water.path("owners")
    sea.apply(buoy("owners", ["spec.colour", "spec.code"], code="a"))
    changed(waters.api, path, {"spec": {"colour": "green", "code": "theirs"}})
    sea.apply(buoy("owners", ["spec.colour", "spec.code"], code="a", gate="1"))
    assert owned_by(waters.api.get(path)) == {"f:spec": {"f:depth": {}, "f:gate": {}}}


def test_what_others_change_after_the_plan_stays_where_it_is_ignored(sea: Terraform, waters: Waters) -> None:
    path = water.path("later")
    sea.apply(buoy("later", ["spec.code"], code="a"))
    changed(waters.api, path, {"spec": {"code": "theirs"}})
    sea.write(buoy("later", ["spec.code"], code="a", gate="1"))
    sea.run("plan", "-out=planned")
    changed(waters.api, path, {"spec": {"code": "later"}})
    sea.run("apply", "planned")
    assert waters.api.get(path)["spec"] == {"depth": 1, "colour": "red", "code": "later", "gate": 1}


def test_all_changes_are_ignored(sea: Terraform, waters: Waters) -> None:
    path = water.path("all")
    first = {"lamps": {"r": {"note": "a"}}, "tags": ["a"], "code": "a"}
    sea.apply(buoy("all", "all", {"l": "1"}, **first))
    changed(waters.api, path, {"spec": {"code": "theirs"}, "metadata": {"labels": {"l": "theirs"}}})
    before = waters.api.get(path)
    sea.apply(buoy("all", "all", {"m": "1"}, tags=["b"], depth=7))
    after = waters.api.get(path)
    assert (after["spec"], after["metadata"]["labels"]) == (before["spec"], before["metadata"]["labels"])


@pytest.mark.parametrize("ignored", ["metadata.labels", 'metadata.labels["l"]'])
def test_a_label_that_is_ignored_stays(sea: Terraform, waters: Waters, ignored: str) -> None:
    name = f"labels-{len(ignored)}"
    sea.apply(buoy(name, [ignored], {"l": "1", "m": "1"}))
    changed(waters.api, water.path(name), {"metadata": {"labels": {"l": "theirs"}}})
    sea.apply(buoy(name, [ignored], {"l": "2", "m": "1"}, gate="1"))
    assert waters.api.get(water.path(name))["metadata"]["labels"] == {"l": "theirs", "m": "1"}
    sea.apply(buoy(name, [ignored], {"m": "1"}, gate="2"))
    assert waters.api.get(water.path(name))["metadata"]["labels"] == {"l": "theirs", "m": "1"}
    sea.unchanged()


def test_an_element_of_a_list_that_is_ignored_stays(sea: Terraform, waters: Waters) -> None:
    sea.apply(buoy("element", ["spec.notes[0]"], notes=["1", "2"]))
    changed(waters.api, water.path("element"), {"spec": {"notes": [9, 2]}})
    sea.apply(buoy("element", ["spec.notes[0]"], notes=["1", "3"]))
    assert waters.api.get(water.path("element"))["spec"]["notes"] == [9, 3]
    sea.unchanged()


def test_what_is_unknown_when_it_is_planned_is_sent(sea: Terraform, waters: Waters) -> None:
    late = {"terraform_data": {"late": {"input": "x"}}}
    resources = buoy("unknown", ["spec.code"], code="${terraform_data.late.output}", notes=['"a"'])
    sea.apply(resources | late)
    assert waters.api.get(water.path("unknown"))["spec"]["code"] == "x"
    late = {"terraform_data": {"late": {"input": "y"}}}
    tags = ["${terraform_data.late.output}"]
    sea.apply(buoy("unknown", ["spec.code"], code="${terraform_data.late.output}", tags=tags) | late)
    assert waters.api.get(water.path("unknown"))["spec"] == {"depth": 1, "colour": "red", "code": "x", "tags": ["y"]}


def test_replicas_that_are_ignored_stay_as_they_were_scaled(tf: Terraform, api: Api, project: str) -> None:
    path = f"/apis/apps/v1/namespaces/{project}/deployments/it"

    def deployment(image: str) -> dict[str, Any]:
        template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": {"c": {"image": image}}}}
        spec = {"replicas": 2, "selector": {"match_labels": {"a": "b"}}, "template": template}
        it = {
            "metadata": {"name": "it"},
            "spec": spec,
            "wait": False,
            "lifecycle": {"ignore_changes": ["spec.replicas"]},
        }
        return {"trimtab_apps_deployment": {"it": it}}

    tf.apply(deployment("one"))
    changed(api, path, {"spec": {"replicas": 7}}, manager="kubectl")
    tf.apply(deployment("two"))
    live = api.get(path)["spec"]
    assert (live["replicas"], live["template"]["spec"]["containers"][0]["image"]) == (7, "two")


def test_a_key_of_a_map_that_is_ignored_stays(tf: Terraform, api: Api, project: str) -> None:
    def maps(**data: str) -> dict[str, Any]:
        it = {"metadata": {"name": "it"}, "data": data, "lifecycle": {"ignore_changes": ['data["a.b"]']}}
        return {"trimtab_core_config_map": {"it": it}}

    tf.apply(maps(**{"a.b": "1", "c": "1"}))
    tf.apply(maps(**{"a.b": "2", "c": "2"}))
    assert api.get(config_map_path("it", project))["data"] == {"a.b": "1", "c": "2"}
    tf.apply(maps(c="3"))
    assert api.get(config_map_path("it", project))["data"] == {"a.b": "1", "c": "3"}


@pytest.mark.parametrize("ignored", [["string_data"], "all"], ids=["one", "all"])
def test_a_secret_whose_changes_are_ignored_stays(tf: Terraform, api: Api, project: str, ignored: Any) -> None:
    can("write-only attributes")

    def secret(ignored: Any, word: str, **labels: str) -> dict[str, Any]:
        meta = {"name": "it", "labels": labels}
        it = {"metadata": meta, "string_data": {"word": word}, "lifecycle": {"ignore_changes": ignored}}
        return {"trimtab_core_secret": {"it": it}}

    path = f"/api/v1/namespaces/{project}/secrets/it"
    tf.apply(secret(ignored, "xyzzy"))
    assert "1 to change" in tf.plan()  # as if it had been taken out, as far as a plan can tell
    tf.apply(secret(ignored, "plugh"))
    assert api.get(path)["data"] == {"word": "eHl6enk="}
    tf.unchanged()
    changed(api, path, {"data": {"word": "dGhlaXJz"}})
    tf.unchanged()
    tf.apply(secret(ignored, "plugh", l="1"))
    tf.unchanged()
    assert api.get(path)["data"] == {"word": "dGhlaXJz"}
    tf.apply(secret([], "xyzzy"))
    assert api.get(path)["data"] == {"word": "eHl6enk="}
    tf.unchanged()
