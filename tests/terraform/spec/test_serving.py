"""A document becomes resources at run time, and the real Terraform works with them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.terraform.plugin.running import terraform
from tests.terraform.spec.documents import fleet, mks
from trimtab.terraform.framework.context import Context
from trimtab.terraform.framework.serving import FrameworkServer
from trimtab.terraform.framework.values import Typed
from trimtab.terraform.plugin.reattach import reattached
from trimtab.terraform.spec.reading import read
from trimtab.terraform.spec.serving import SpecProvider, Store, Values


class Folder(Store):
    """Objects are files; `key` says which one."""

    def __init__(self, folder: Path, key: tuple[str, ...]) -> None:
        self.folder, self.key = folder, key

    def path(self, values: Values) -> Path:
        found: Any = values
        for step in self.key:
            found = found[step]
        return self.folder / f"{found}.json"

    def create(self, values: Values, context: Context) -> Values:
        made = {**values, **({"id": f"id-{values['name']}"} if "id" in values else {})}
        self.path(values).write_text(json.dumps(made, default=_plain))
        return made

    def read(self, values: Values, context: Context) -> Values | None:
        path = self.path(values)
        if not path.exists():
            return None
        kept = json.loads(path.read_text())
        return {**kept, "cargo": values.get("cargo")} if "cargo" in kept else kept

    def update(self, values: Values, before: Values, context: Context) -> Values:
        self.path(before).unlink()
        return self.create(values, context)

    def delete(self, values: Values, context: Context) -> None:
        self.path(values).unlink(missing_ok=True)

    def find(self, identifier: str, context: Context) -> Values | None:
        path = self.folder / f"{identifier}.json"
        return json.loads(path.read_text()) if path.exists() else None

    def look_up(self, config: Values, context: Context) -> Values:
        found = json.loads(self.path(config).read_text())
        return {"name": config["name"], "crew": found["crew"]}


def _plain(value: Any) -> Any:
    assert isinstance(value, Typed)
    return None


SHIP = """
terraform {
  required_providers {
    fleet = { source = "example.com/own/fleet" }
  }
}
provider "fleet" {
  folder = "ships"
}
resource "fleet_ship" "one" {
  name   = "argo"
  flags  = [FLAGS]
  labels = { a = "b" }
  home   = { port = "x", berth = 3 }
  spec   = { spec = { spec = "s" } }
  masts  = [{ height = 3.5 }, { height = 4, sails = 3 }]
  boats  = [{ name = "b" }, { name = "a" }]
  officers = { mate = { rank = "first" } }
  voyage {
    port = "colchis"
    stop {
      days = 3
    }
  }
}
data "fleet_ship" "one" {
  name       = fleet_ship.one.name
  depends_on = [fleet_ship.one]
}
output "crew" { value = data.fleet_ship.one.crew }
"""


@pytest.mark.row(66)
def test_terraform_manages_what_a_document_describes(tmp_path: Path) -> None:
    ships = tmp_path / "ships"
    ships.mkdir()
    main = tmp_path / "main.tf"
    main.write_text(SHIP.replace("FLAGS", '"red", "blue"'))
    store = Folder(ships, ("name",))
    server = FrameworkServer(SpecProvider(read(fleet()), "1.0.0", {"ship": store}))
    with reattached(server, "example.com/own/fleet") as environment:
        assert "crew = 7" in terraform(tmp_path, "apply", "-auto-approve", environment=environment)
        kept = json.loads((ships / "argo.json").read_text())
        assert (kept["class"], kept["masts"][0]["sails"], kept["id"]) == ("sloop", 2, "id-argo")
        assert "No changes" in terraform(tmp_path, "plan", environment=environment)

        main.write_text(SHIP.replace("FLAGS", '"blue", "red"'))
        assert "No changes" in terraform(tmp_path, "plan", environment=environment)
        main.write_text(SHIP.replace("FLAGS", '"blue", "green"'))
        assert "1 changed" in terraform(tmp_path, "apply", "-auto-approve", environment=environment)
        main.write_text(SHIP.replace("FLAGS", '"blue", "green"').replace('"argo"', '"doliones"'))
        assert "1 to add, 0 to change, 1 to destroy" in terraform(tmp_path, "plan", environment=environment)
        assert "1 destroyed" in terraform(tmp_path, "destroy", "-auto-approve", environment=environment)
    assert list(ships.iterdir()) == []


def test_a_document_s_rules_hold_in_terraform(tmp_path: Path) -> None:
    text = SHIP.replace("FLAGS", "").replace('labels = { a = "b" }', 'class = "raft"\n  crew = 1.5')
    (tmp_path / "main.tf").write_text(text)
    server = FrameworkServer(SpecProvider(read(fleet()), "1.0.0", {"ship": Folder(tmp_path, ("name",))}))
    with reattached(server, "example.com/own/fleet") as environment:
        said = terraform(tmp_path, "validate", environment=environment, fails=True)
    assert 'must be one of "sloop", "brig", not "raft"' in said
    assert "must be a whole number" in said


MKS = """
terraform {
  required_providers {
    rafay = { source = "example.com/own/rafay" }
  }
}
resource "rafay_mks_cluster" "one" {
  metadata = {
    name    = "edge"
    project = "defaultproject"
    labels  = { tier = "gold" }
  }
  spec = {
    blueprint = { name = "minimal" }
    config = {
      kubernetes_version = "v1.28.9"
      network = {
        cni            = { name = "Calico", version = "3.26.1" }
        pod_subnet     = "10.244.0.0/16"
        service_subnet = "10.96.0.0/12"
      }
      nodes = {
        "hostname1" = {
          arch             = "amd64"
          hostname         = "hostname1"
          operating_system = "Ubuntu22.04"
          private_ip       = "192.0.2.1"
          roles            = ["ControlPlane", "Worker"]
          labels           = { app = "infra" }
        }
      }
    }
  }
}
"""


@pytest.mark.row(66)
def test_a_document_of_another_provider_runs_as_it_is(tmp_path: Path) -> None:
    clusters = tmp_path / "clusters"
    clusters.mkdir()
    main = tmp_path / "main.tf"
    main.write_text(MKS)
    store = Folder(clusters, ("metadata", "name"))
    server = FrameworkServer(SpecProvider(read(mks()), "1.0.0", {"mks_cluster": store}))
    with reattached(server, "example.com/own/rafay") as environment:
        terraform(tmp_path, "apply", "-auto-approve", environment=environment)
        kept = json.loads((clusters / "edge.json").read_text())
        assert (kept["api_version"], kept["kind"]) == ("infra.k8smgmt.io/v3", "Cluster")
        assert kept["spec"]["blueprint"]["version"] == "latest"
        assert kept["spec"]["config"]["installer_ttl"] == 365
        assert "No changes" in terraform(tmp_path, "plan", environment=environment)
        main.write_text(MKS.replace('"ControlPlane", "Worker"', '"Worker", "ControlPlane"'))
        assert "No changes" in terraform(tmp_path, "plan", environment=environment)

        terraform(tmp_path, "state", "rm", "rafay_mks_cluster.one", environment=environment)
        terraform(tmp_path, "import", "rafay_mks_cluster.one", "edge", environment=environment)
        assert "No changes" in terraform(tmp_path, "plan", environment=environment)
        (clusters / "edge.json").unlink()
        assert "1 to add" in terraform(tmp_path, "plan", environment=environment)


def test_a_type_without_a_store_is_refused() -> None:
    with pytest.raises(ValueError, match="there is no store for ship"):
        SpecProvider(read(fleet()), "1.0.0", {})
