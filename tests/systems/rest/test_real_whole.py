"""The whole documents of real servers, as they come with them: kinds proposed from them, and resources managed by those.

What the document says is taken as it is, and the overlay of the example says the rest. Without the documents at hand these
tests are skipped: those of the single servers cover the same ground on small documents of our own.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.lab.conftest import alertmanager, fresh, lxd, podman, powerdns
from tests.lab.raw import raw
from tests.systems.rest.real_examples import DATA, definitions
from tests.systems.rest.real_homes import EMBEDDED, home, namespace, scheme
from tests.systems.rest.real_station import Station
from trimtab.client.api import ApiClient
from trimtab.lab.alertmanager import Alertmanager
from trimtab.lab.lxd import Lxd
from trimtab.lab.podman import Podman
from trimtab.lab.powerdns import PowerDns
from trimtab.systems.rest.compiling.proposing import propose
from trimtab.systems.rest.kinds import RestDefinition
from trimtab.systems.rest.openapi.loading import from_path

__all__ = ["alertmanager", "fresh", "home", "lxd", "namespace", "podman", "powerdns", "scheme"]

pytestmark = EMBEDDED


@pytest.fixture
async def at(home: ApiClient, namespace: str, tmp_path: Path) -> AsyncIterator[Any]:
    """Makes the station of a server, which works until the test ends."""
    async with AsyncExitStack() as stack:

        async def made(server: str, endpoint: str) -> Station:
            station = Station(home, namespace, tmp_path, server, endpoint)
            return await stack.enter_async_context(station.working())

        yield made


def document(path: str) -> Path:
    if not (DATA / path).exists():
        pytest.skip(f"the whole document {path} is not at hand")
    return DATA / path


def content(path: Path) -> bytes:
    return path.read_bytes()


def proposed(path: Path, kind: str, server: str, **changes: Any) -> RestDefinition:
    """What is proposed for a kind, with the overlay of the example."""
    (found,) = propose(from_path(path), server, only=[kind])
    overlay = definitions(server)[kind].spec.overlay
    return found.replace(spec=found.spec.replace(overlay=overlay, **changes))


async def test_lxd_by_its_whole_document(at: Any, lxd: Lxd, fresh: str) -> None:
    path = document("lxd/rest-api-5.0.2.yaml")
    station = await at("lxd", lxd.url)
    await station.serve_whole(content(path), proposed(path, "Profile", "lxd"))
    await station.create("Profile", "web", {"name": fresh, "description": "ours", "config": {"user.a": "1"}})
    await station.ready("Profile", "web")
    async with raw(lxd.url) as api:
        await station.change("Profile", "web", config={"user.a": "2"}, description=None)
        await station.ready("Profile", "web")
        found = (await api.get(f"/1.0/profiles/{fresh}"))["metadata"]
        assert (found["config"], found["description"]) == ({"user.a": "2"}, "")
        await api.done("PATCH", f"/1.0/profiles/{fresh}", {"config": {"user.a": "9"}})
        await station.look("Profile", "web")
        await station.until_said("Updated", "drifted")
        assert (await api.get(f"/1.0/profiles/{fresh}"))["metadata"]["config"] == {"user.a": "2"}
        await station.delete("Profile", "web")
        assert (await api.say("GET", f"/1.0/profiles/{fresh}")).status == 404


async def test_powerdns_by_its_whole_document(at: Any, powerdns: PowerDns, fresh: str) -> None:
    path = document("powerdns/authoritative-api-swagger-4.7.3.yaml")
    station = await at("powerdns", powerdns.url)
    zone = proposed(path, "Zone", "powerdns")
    identity = zone.spec.identity.replace(assigned="client", field="name", answer="")
    await station.serve_whole(
        content(path), zone.replace(spec=zone.spec.replace(identity=identity)), server_id="localhost"
    )
    name = f"{fresh}.example."
    await station.create("Zone", "zone", {"name": name, "kind": "Native", "account": "ours"})
    await station.ready("Zone", "zone")
    async with raw(powerdns.url, X_API_Key=powerdns.api_key) as api:
        at_zone = f"/servers/localhost/zones/{name}"
        await station.change("Zone", "zone", account="branch")
        await station.ready("Zone", "zone")
        assert (await api.get(at_zone))["account"] == "branch"
        await api.done("PUT", at_zone, {"account": "theirs"})
        await station.look("Zone", "zone")
        await station.until_said("Updated", "drifted")
        await station.change("Zone", "zone", account=None)
        await station.ready("Zone", "zone")
        assert (await api.get(at_zone))["account"] == ""
        await station.delete("Zone", "zone")
        assert (await api.say("GET", at_zone)).status == 404


async def test_alertmanager_by_its_whole_document(at: Any, alertmanager: Alertmanager, fresh: str) -> None:
    path = document("alertmanager/openapi-v0.25.0.yaml")
    station = await at("alertmanager", alertmanager.url)
    await station.serve_whole(content(path), proposed(path, "Silence", "alertmanager"))
    await station.example("Silence", comment=fresh)
    own = (await station.ready("Silence", "disks"))["status"]["resourceID"]
    async with raw(alertmanager.url) as api:
        await station.change("Silence", "disks", createdBy="branch")
        await station.ready("Silence", "disks")
        assert (await api.get(own))["createdBy"] == "branch"
        await station.delete("Silence", "disks")
        assert (await api.get(own))["status"] == {"state": "expired"}


async def test_docker_by_its_whole_document(at: Any, podman: Podman, fresh: str) -> None:
    path = document("docker-engine/v1.41.yaml")
    station = await at("docker", podman.url)
    await station.serve_whole(content(path), proposed(path, "Volume", "docker"))
    await station.example("Volume", name=fresh)
    await station.ready("Volume", "data")
    async with raw(podman.url, under="/v1.41") as api:
        assert (await api.get(f"/volumes/{fresh}"))["Labels"] == {"team": "blue"}
        await station.delete("Volume", "data")
        assert (await api.say("GET", f"/volumes/{fresh}")).status == 404
