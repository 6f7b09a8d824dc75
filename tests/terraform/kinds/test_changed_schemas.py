"""A kind whose schema changes, or goes, while objects of it are in Terraform's state."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.terraform.kinds import water
from tests.terraform.kinds.conftest import Waters
from tests.terraform.kinds.terraforming import attached
from trimtab.terraform.kinds.comparing import compared, kept_digests
from trimtab.terraform.kinds.precomputing import taken
from trimtab.terraform.kinds.snapshot import Snapshot, write_snapshot
from trimtab.testing.embedded import TrimtabServer

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def strait(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Waters]:
    """A server of these tests alone: they change what others count on."""
    folder = tmp_path_factory.mktemp("strait")
    with TrimtabServer(folder, flags=("--systems", "discovery")) as server:
        made = Waters(server, folder)
        yield made
        made.api.close()


def schema(**fields: Any) -> dict[str, Any]:
    return {"type": "object", "properties": {"spec": {"type": "object", "properties": fields}}}


TEXT, WHOLE = {"type": "string"}, {"type": "integer"}
LIST = {"type": "array", "items": TEXT}


def of(kind: str, name: str, **spec: Any) -> dict[str, Any]:
    return {f"trimtab_water_{kind.lower()}": {"it": {"metadata": {"name": name}, "spec": spec}}}


def kinds(strait: Waters, folder: Path) -> Snapshot:
    write_snapshot(folder / "kinds", taken(strait.api.get))
    return Snapshot(folder / "kinds")


def test_a_value_that_no_longer_fits_is_shown_as_absent_and_written_anew(tmp_path: Path, strait: Waters) -> None:
    water.define(strait.api, water.definition("Mooring", schema(title=TEXT, marks=LIST, kept=TEXT)))
    with attached(tmp_path, kinds(strait, tmp_path), strait.kubeconfig, "default") as tf:
        tf.apply(of("Mooring", "changing", title="five", marks=["a"], kept="x"))
    water.define(strait.api, water.definition("Mooring", schema(title=WHOLE, marks=TEXT, kept=TEXT)))
    with attached(tmp_path, kinds(strait, tmp_path), strait.kubeconfig, "default") as tf:
        told = tf.plan(of("Mooring", "changing", title=5, marks="a", kept="x"))
        assert "+ title" in told
        assert "spec.title" in told
        assert "spec.marks" in told
        assert "1 to change" in told
        tf.apply()
        live = strait.api.get(f"/apis/{water.GROUP}/v1/namespaces/default/moorings/changing")
        assert live["spec"] == {"title": 5, "marks": "a", "kept": "x"}
        tf.unchanged()
        tf.destroy()


def test_what_the_server_no_longer_knows_is_told_with_its_lines_and_what_to_do(tmp_path: Path, strait: Waters) -> None:
    water.define(strait.api, water.definition("Fender", schema(title=TEXT, width=WHOLE)))
    snapshot = kinds(strait, tmp_path)
    water.define(strait.api, water.definition("Fender", schema(width=TEXT)))
    with attached(tmp_path, snapshot, strait.kubeconfig, "default") as tf:
        tf.write({})
        (tmp_path / "fender.tf").write_text(
            """
            resource "trimtab_water_fender" "it" {
              metadata = { name = "old" }
              spec = {
                title = "five"
                width = 5
              }
            }
            """
        )
        told = tf.apply(fails=True)
    assert re.search(r" 5: +title = ", told)
    assert re.search(r" 6: +width = 5", told)
    assert "field not declared in schema. The kind has changed since the list of kinds here was made" in told
    assert "trimtab terraform install --schema-only" in told


def test_what_no_longer_fits_can_be_destroyed(tmp_path: Path, strait: Waters) -> None:
    water.define(strait.api, water.definition("Bollard", schema(title=TEXT)))
    with attached(tmp_path, kinds(strait, tmp_path), strait.kubeconfig, "default") as tf:
        tf.apply(of("Bollard", "going", title="five"))
    water.define(strait.api, water.definition("Bollard", schema(title=WHOLE)))
    with attached(tmp_path, kinds(strait, tmp_path), strait.kubeconfig, "default") as tf:
        tf.write({})
        tf.destroy()
    assert strait.api.find(f"/apis/{water.GROUP}/v1/namespaces/default/bollards/going") is None


def test_a_data_source_tells_which_value_does_not_fit(tmp_path: Path, strait: Waters) -> None:
    water.define(strait.api, water.definition("Cleat", schema(title=TEXT, kept=TEXT)))
    path = f"/apis/{water.GROUP}/v1/namespaces/default/cleats/odd"
    body = {"apiVersion": f"{water.GROUP}/v1", "kind": "Cleat", "metadata": {"name": "odd", "namespace": "default"}}
    strait.api.apply(path, {**body, "spec": {"title": "five", "kept": "x"}})
    water.define(strait.api, water.definition("Cleat", schema(title=WHOLE, kept=TEXT)))
    with attached(tmp_path, kinds(strait, tmp_path), strait.kubeconfig, "default") as tf:
        told = tf.apply(
            {},
            data={
                "trimtab_water_cleat": {"one": {"metadata": {"name": "odd"}}},
                "trimtab_water_cleats": {"many": {}},
            },
            output={
                "one": {"value": "${data.trimtab_water_cleat.one.spec.kept}"},
                "many": {"value": "${data.trimtab_water_cleats.many.items[0].spec.kept}"},
            },
        )
    assert "spec.title" in told
    assert told.count('= "x"') >= 2


def test_a_kind_that_changed_is_told_from_those_that_did_not(tmp_path: Path, strait: Waters) -> None:
    water.define(strait.api, water.definition("Fender", schema(title=TEXT)))
    before = kept_digests(kinds(strait, tmp_path))
    water.define(strait.api, water.definition("Fender", schema(title=WHOLE)))
    assert compared(before, kept_digests(kinds(strait, tmp_path))).changed == ("water_fender",)


def test_a_type_that_means_another_kind_by_another_snapshot_is_an_error(tmp_path: Path, strait: Waters) -> None:
    group = "water.aaa.com"
    ours, theirs = water.definition("Eddy", schema(title=TEXT)), water.definition("Eddy", schema(title=TEXT))
    theirs["metadata"]["name"], theirs["spec"]["group"] = f"eddys.{group}", group
    water.define(strait.api, ours)
    with attached(tmp_path, kinds(strait, tmp_path), strait.kubeconfig, "default") as tf:
        tf.apply(of("Eddy", "whirling", title="x"))
    water.define(strait.api, theirs)
    with attached(tmp_path, kinds(strait, tmp_path), strait.kubeconfig, "default") as tf:
        for told in (
            tf.plan(fails=True),
            tf.run("destroy", "-auto-approve", "-no-color", "-refresh=false", fails=True),
        ):
            assert "trimtab_water_eddy is another kind here" in told
            assert f"The object is of Eddy.{water.GROUP}" in told
    water.undefine(strait.api, f"eddys.{group}")
    with attached(tmp_path, kinds(strait, tmp_path), strait.kubeconfig, "default") as tf:
        tf.unchanged()
        tf.destroy()
    assert strait.api.find(f"/apis/{water.GROUP}/v1/namespaces/default/eddys/whirling") is None


def test_a_kind_that_is_gone_is_said_to_be(tmp_path: Path, strait: Waters) -> None:
    water.define(strait.api, water.definition("Raft", schema(title=TEXT)))
    with attached(tmp_path, kinds(strait, tmp_path), strait.kubeconfig, "default") as tf:
        tf.apply(of("Raft", "sunk", title="x"))
        water.undefine(strait.api, f"rafts.{water.GROUP}")
        told = " ".join(tf.plan(fails=True).split())
    assert f"The server does not serve Raft of {water.GROUP}/v1" in told
    assert "terraform state rm" in told


def test_a_version_that_is_no_longer_served_is_not_said_to_be_gone(tmp_path: Path, strait: Waters) -> None:
    crd = water.definition("Dinghy", schema(title=TEXT))
    (v1,) = crd["spec"]["versions"]
    water.define(strait.api, crd)
    with attached(tmp_path, kinds(strait, tmp_path), strait.kubeconfig, "default") as tf:
        tf.apply(of("Dinghy", "afloat", title="x"))
        crd["spec"]["versions"] = [{**v1, "served": False, "storage": False}, {**v1, "name": "v2"}]
        water.define(strait.api, crd)
        told = tf.plan(fails=True)
        assert "This version is no longer served, and the objects are all there" in told
        assert "`trimtab terraform install --schema-only`" in told
    with attached(tmp_path, kinds(strait, tmp_path), strait.kubeconfig, "default") as tf:
        tf.unchanged()
        tf.destroy()


@pytest.mark.parametrize("name", ["a/b", "..", "a%2fb"])
def test_what_is_no_part_of_a_path_is_refused_before_the_server_is_asked(
    tmp_path: Path, strait: Waters, name: str
) -> None:
    named = {"trimtab_water_buoy": {"it": {"metadata": {"name": name}, "spec": {"depth": 1}}}}
    placed = {"trimtab_water_buoy": {"it": {"metadata": {"name": "x", "namespace": name}, "spec": {"depth": 1}}}}
    with attached(tmp_path, strait.kinds, strait.kubeconfig, "default") as tf:
        for resources in (named, placed):
            tf.write(resources, data={"trimtab_water_buoys": {"many": {"namespace": name}}})
            assert tf.run("validate", "-no-color", fails=True).count("without / and %") == 2


def test_a_kind_whose_schema_says_nothing_is_a_resource_all_the_same(tmp_path: Path, strait: Waters) -> None:
    water.define(
        strait.api, water.definition("Drifter", {"type": "object", "x-kubernetes-preserve-unknown-fields": True})
    )
    with attached(tmp_path, kinds(strait, tmp_path), strait.kubeconfig, "default") as tf:
        free = {"metadata": {"name": "free"}, "spec": '{"a": [1, {"b": null}]}'}
        tf.apply({"trimtab_water_drifter": {"it": free}})
        tf.unchanged()
        tf.destroy()
