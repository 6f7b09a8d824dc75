"""Collections that the server fills in, and maps that have one owner: what is shown of them after an import, and as drift."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.terraform.kinds import water
from tests.terraform.kinds.conftest import Waters
from tests.terraform.kinds.others import changed
from tests.terraform.kinds.terraforming import Terraform, attached
from trimtab.terraform.kinds.precomputing import taken
from trimtab.terraform.kinds.snapshot import Snapshot, write_snapshot
from trimtab.testing.embedded import TrimtabServer

pytestmark = pytest.mark.slow

TEXT = {"type": "string"}
TEXTS = {"type": "object", "additionalProperties": TEXT}
CARGO = {"type": "object", "properties": {"metres": {"type": "integer", "default": 80}, "note": TEXT}}
NAMED = {"type": "object", "required": ["name"], "properties": {"name": TEXT, "note": {**TEXT, "default": "none"}}}
FIELDS: dict[str, Any] = {
    "title": TEXT,
    "flags": {**TEXTS, "default": {"a": "b"}},
    "whole": {**TEXTS, "default": {"a": "b"}, "x-kubernetes-map-type": "atomic"},
    "bays": {"type": "object", "additionalProperties": CARGO, "default": {"fore": {}}},
    "marks": {"type": "array", "items": TEXT, "x-kubernetes-list-type": "set", "default": ["x", "y"]},
    "crew": {
        "type": "array",
        "items": NAMED,
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["name"],
        "default": [{"name": "ann"}],
    },
    "hold": {**CARGO, "default": {"note": "empty"}},
}
PATH = f"/apis/{water.GROUP}/v1/namespaces/default/barges"


@pytest.fixture(scope="module")
def waters(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Waters]:
    folder = tmp_path_factory.mktemp("barges")
    with TrimtabServer(folder, flags=("--systems", "discovery")) as server:
        made = Waters(server, folder)
        schema = {"type": "object", "properties": {"spec": {"type": "object", "properties": FIELDS}}}
        water.define(made.api, water.definition("Barge", schema))
        write_snapshot(folder / "barges", taken(made.api.get))
        made.kinds = Snapshot(folder / "barges")
        yield made
        made.api.close()


@pytest.fixture
def tf(tmp_path: Path, waters: Waters) -> Iterator[Terraform]:
    with attached(tmp_path, waters.kinds, waters.kubeconfig, "default") as running:
        yield running


def barge(name: str, **spec: Any) -> dict[str, Any]:
    return {"trimtab_water_barge": {"it": {"metadata": {"name": name}, "spec": {"title": "t", **spec}}}}


def imported(tf: Terraform, name: str) -> None:
    (tf.folder / "terraform.tfstate").unlink()
    tf.run("import", "-no-color", "trimtab_water_barge.it", f"default/{name}")


@pytest.mark.row(61)
@pytest.mark.parametrize(
    "given", [{}, {"flags": {"c": "d"}, "marks": ["z"], "crew": {"bob": {}}}], ids=["none", "some"]
)
def test_what_is_filled_in_makes_no_plan_after_an_import(tf: Terraform, given: dict[str, Any]) -> None:
    tf.apply(barge("filled", **given))
    tf.unchanged()
    imported(tf, "filled")
    tf.unchanged()
    tf.destroy()


def test_what_others_set_beside_a_default_is_theirs(tf: Terraform, waters: Waters) -> None:
    tf.apply(barge("beside"))
    theirs = {"flags": {"theirs": "x"}, "bays": {"aft": {}}, "marks": ["x", "y", "theirs"]}
    changed(waters.api, f"{PATH}/beside", {"spec": theirs})
    tf.unchanged()
    imported(tf, "beside")
    tf.unchanged()
    tf.destroy()


def test_a_key_that_others_add_to_a_map_of_one_owner_is_drift(tf: Terraform, waters: Waters) -> None:
    tf.apply(barge("drifting", whole={"ours": "1"}))
    changed(waters.api, f"{PATH}/drifting", {"spec": {"whole": {"theirs": "2"}}})
    assert '- "theirs"' in tf.plan()
    tf.apply()
    assert waters.api.get(f"{PATH}/drifting")["spec"]["whole"] == {"ours": "1"}
    tf.unchanged()
    tf.destroy()
