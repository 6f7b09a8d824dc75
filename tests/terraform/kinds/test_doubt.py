"""A create whose answer is lost: the object may be there, and Terraform knows of it either way."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.terraform.kinds.others import applied, config_map, config_map_path
from tests.terraform.kinds.relay import Relay, relayed
from tests.terraform.kinds.terraforming import Terraform, attached
from trimtab.terraform.kinds import api as asking
from trimtab.terraform.kinds.api import Api
from trimtab.terraform.kinds.snapshot import Snapshot
from trimtab.testing.embedded import TrimtabServer

pytestmark = pytest.mark.slow

IT = "trimtab_core_config_map.it"
RESOURCES = {"trimtab_core_config_map": {"it": {"metadata": {"name": "it"}, "data": {"a": "1"}}}}


@pytest.fixture
def relay(api: Api, monkeypatch: pytest.MonkeyPatch) -> Iterator[Relay]:
    monkeypatch.setattr(asking, "FIRST_PAUSE", 0.01)
    with relayed(api.access) as running:
        yield running


@pytest.fixture
def far(
    tmp_path: Path, snapshot: Snapshot, trimtab_server: TrimtabServer, project: str, relay: Relay
) -> Iterator[Terraform]:
    with attached(tmp_path, snapshot, trimtab_server.kubeconfig, project, endpoint=relay.url) as running:
        yield running


def test_an_object_whose_answer_was_lost_is_not_orphaned(far: Terraform, relay: Relay, api: Api, project: str) -> None:
    relay.lose("PATCH", carried=True)
    told = far.apply(RESOURCES, fails=True)
    assert "Whether it did what it was asked is not known: the next plan tells." in told
    relay.come_back()
    path = config_map_path("it", project)
    made = api.get(path)["metadata"]["uid"]
    assert far.addresses() == [IT]
    far.run("plan", "-refresh-only", "-no-color")
    far.run("untaint", IT)
    far.apply()
    assert far.state(IT)["metadata"]["uid"] == made
    far.unchanged()
    far.destroy()
    assert api.find(path) is None


def test_a_write_that_never_arrived_is_planned_anew(far: Terraform, relay: Relay) -> None:
    relay.lose("PATCH", carried=False)
    far.apply(RESOURCES, fails=True)
    relay.come_back()
    assert "Plan: 1 to add, 0 to change, 0 to destroy." in far.plan()
    far.apply()
    far.unchanged()


def test_what_somebody_else_made_meanwhile_is_not_taken_for_it(
    far: Terraform, relay: Relay, api: Api, project: str
) -> None:
    relay.lose("PATCH", carried=False)
    far.apply(RESOURCES, fails=True)
    relay.come_back()
    path = config_map_path("it", project)
    applied(api, path, config_map("it", project, a="theirs"), manager="somebody")
    far.destroy()
    assert api.get(path)["data"] == {"a": "theirs"}


def test_a_server_that_is_not_there_leaves_no_doubt(far: Terraform, relay: Relay) -> None:
    relay.lose("GET", carried=False)
    told = far.apply(RESOURCES, fails=True)
    assert "The server cannot be reached" in told
    assert "is not known" not in told
    assert "values" not in json.loads(far.run("show", "-json"))
