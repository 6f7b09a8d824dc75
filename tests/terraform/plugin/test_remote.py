"""A provider written in Go that speaks protocol 5, and ours, as one provider."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.needs import needs
from tests.terraform.plugin.running import terraform
from tests.terraform.plugin.small import Small, pack, schema, unpack
from trimtab.terraform.plugin.grpc import Status
from trimtab.terraform.plugin.identity import Identity
from trimtab.terraform.plugin.reattach import reattached
from trimtab.terraform.plugin.remote import RemoteProvider, launch
from trimtab.terraform.protocol.contract import Message, ProviderServer
from trimtab.terraform.protocol.mux import Mux

pytestmark = pytest.mark.row(54)

ROOT = Path(__file__).parents[3]
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
TIME = CACHE / "trimtab" / "providers" / "time-0.13.1" / "terraform-provider-time"

MAIN = """
terraform {
  required_providers {
    both = { source = "trimtab.dev/trimtab/both" }
  }
}
resource "time_offset" "old" {
  provider     = both
  base_rfc3339 = "2026-01-01T00:00:00Z"
  offset_days  = 9
}
resource "both_thing" "new" {
  name = time_offset.old.rfc3339
}
output "id" { value = both_thing.new.id }
output "year" { value = provider::both::rfc3339_parse("2026-02-03T00:00:00Z").year }
"""


class New(Small):
    """The new half: its provider takes no configuration, as that of the old half."""

    def GetProviderSchema(self, request: Message) -> Message:
        return super().GetProviderSchema(request) | {"provider": schema()}


@pytest.fixture
def old(identity: Identity) -> Iterator[ProviderServer]:
    needs(TIME, hint="run scripts/go_provider.sh")
    server, end = launch([str(TIME)], identity)
    yield server
    end()


def test_an_old_provider_in_go_and_a_new_one_in_python_are_one_to_terraform(
    old: ProviderServer, tmp_path: Path
) -> None:
    (tmp_path / "main.tf").write_text(MAIN)
    with reattached(Mux([old, New("both")]), "trimtab.dev/trimtab/both") as environment:
        terraform(tmp_path, "init", environment=environment)
        applied = terraform(tmp_path, "apply", "-auto-approve", environment=environment)
        assert 'id = "both/2026-01-10T00:00:00Z"' in applied
        assert "year = 2026" in applied
        assert "No changes" in terraform(tmp_path, "plan", environment=environment)
        (tmp_path / "main.tf").write_text(MAIN.replace("= 9", '= "nine"'))
        wrong = terraform(tmp_path, "plan", environment=environment, fails=True)
        assert "offset_days" in wrong
        (tmp_path / "main.tf").write_text(MAIN)
        assert "2 destroyed" in terraform(tmp_path, "destroy", "-auto-approve", environment=environment)


def test_a_provider_in_go_is_started_asked_and_ended_over_mutual_tls(identity: Identity) -> None:
    needs(TIME, hint="run scripts/go_provider.sh")
    remote = RemoteProvider([str(TIME)], identity)
    try:
        assert remote.protocol == 5
        schemas = remote.call("GetSchema", {})
        assert isinstance(schemas, dict)
        assert "time_sleep" in schemas["resource_schemas"]
        remote.stop()
    finally:
        remote.close()
    assert remote._process.returncode is not None
    with pytest.raises(Status):
        remote.call("GetSchema", {})


@pytest.mark.parametrize("protocol", [5, 6])
def test_a_provider_of_our_own_in_a_process_of_its_own(
    identity: Identity, home: Path, monkeypatch: pytest.MonkeyPatch, protocol: int
) -> None:
    monkeypatch.chdir(ROOT)
    server, end = launch([sys.executable, "-m", "tests.terraform.plugin.program", str(protocol)], identity)
    try:
        mux = Mux([server, Small("new")])
        for kind in ("small", "new"):
            answer = mux.call("ReadDataSource", {"type_name": f"{kind}_echo", "config": pack({"text": "abc"})})
            assert isinstance(answer, dict)
            assert unpack(answer["state"])["back"] == "cba"
    finally:
        end()


def test_a_provider_that_dies_fails_its_calls_and_not_those_of_others(
    identity: Identity, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    remote = RemoteProvider([sys.executable, "-m", "tests.terraform.plugin.program"], identity)
    mux = Mux([remote, Small("new")])
    remote._process.kill()
    request = {"config": pack({"text": "abc"})}
    with pytest.raises(Status):
        mux.call("ReadDataSource", {"type_name": "small_echo", **request})
    answer = mux.call("ReadDataSource", {"type_name": "new_echo", **request})
    assert isinstance(answer, dict)
    assert unpack(answer["state"])["back"] == "cba"
    remote.close()
    assert remote._process.returncode != 0


def test_a_provider_that_will_not_go_is_ended(identity: Identity, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    remote = RemoteProvider([sys.executable, "-m", "tests.terraform.plugin.program"], identity)
    subprocess.run(["kill", "-STOP", str(remote._process.pid)], check=True)
    remote._client.close()  # its answer would never come
    remote.close()
    assert remote._process.returncode is not None
