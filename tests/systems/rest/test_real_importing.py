"""Importing from real servers: what exists as documents, which are taken as they are without a write."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.lab.conftest import alertmanager, fresh, lxd, podman, powerdns
from tests.lab.raw import raw
from tests.systems.rest.real_examples import models
from tests.systems.rest.real_homes import EMBEDDED, home, namespace, scheme
from tests.systems.rest.real_station import Station
from tests.systems.rest.real_tap import Tap, tapped
from trimtab.client.api import ApiClient
from trimtab.lab.alertmanager import Alertmanager
from trimtab.lab.lxd import Lxd
from trimtab.lab.podman import Podman
from trimtab.lab.powerdns import PowerDns
from trimtab.model.redacted import Redacted
from trimtab.systems.rest.calling.login import Login
from trimtab.systems.rest.calling.service import Service
from trimtab.systems.rest.importing.importer import Importer, Kind

__all__ = ["alertmanager", "fresh", "home", "lxd", "namespace", "podman", "powerdns", "scheme"]

Document = Mapping[str, Any]


async def imported(
    server: str, url: str, identifier: str = "", login: Login | None = None, **values: str
) -> list[Document]:
    """The documents of one resource with all below it, or of all."""
    async with Service(url, login or Login()) as service:
        kinds = [Kind(model=model) for kind, model in models(server).items() if kind != "RRSet"]
        importer = Importer(service, kinds, values=values, namespace="default")
        found = importer.one(identifier) if identifier else importer.all()
        return [each.document async for each in found]


@pytest.fixture
async def taking(home: ApiClient, namespace: str, tmp_path: Path) -> AsyncIterator[Any]:
    """Applies imported documents on a station of their server: what was written to the server until all are ready."""
    async with AsyncExitStack() as stack:

        async def taken(server: str, url: str, found: list[Document]) -> list[str]:
            tap: Tap = await stack.enter_async_context(tapped(url))
            station = Station(home, namespace, tmp_path, server, tap.url)
            await stack.enter_async_context(station.working())
            await station.serve(*{each["kind"] for each in found})
            for each in found:
                await station.create(each["kind"], each["metadata"]["name"], each["spec"])
            for each in found:
                await station.ready(each["kind"], each["metadata"]["name"])
            return tap.writes

        yield taken


@EMBEDDED
async def test_a_pool_is_imported_with_its_volume_and_taken_without_a_write(taking: Any, lxd: Lxd, fresh: str) -> None:
    async with raw(lxd.url, under="/1.0") as api:
        await api.done("POST", "/storage-pools", {"name": fresh, "driver": "dir", "description": "theirs"})
        body = {"name": "data", "config": {"user.team": "red"}}
        await api.done("POST", f"/storage-pools/{fresh}/volumes/custom", body)
    found = await imported("lxd", lxd.url, f"/1.0/storage-pools/{fresh}")
    pool, volume = found
    assert (pool["kind"], pool["spec"]["driver"], pool["spec"]["description"]) == ("StoragePool", "dir", "theirs")
    assert (volume["kind"], volume["spec"]["parent"]) == ("Volume", {"name": pool["metadata"]["name"]})
    assert volume["spec"]["config"] == {"user.team": "red"}
    assert "used_by" not in pool["spec"]
    assert await taking("lxd", lxd.url, found) == []


async def test_a_snapshot_that_lists_name_with_its_volume_is_imported_too(lxd: Lxd, fresh: str) -> None:
    async with raw(lxd.url, under="/1.0") as api:
        await api.done("POST", "/storage-pools", {"name": fresh, "driver": "dir"})
        volumes = f"/storage-pools/{fresh}/volumes/custom"
        await api.done("POST", volumes, {"name": "data"})
        began = await api.done("POST", f"{volumes}/data/snapshots", {"name": "first"})
        await api.get(began["operation"].removeprefix("/1.0") + "/wait")
    found = await imported("lxd", lxd.url, f"/1.0/storage-pools/{fresh}")
    assert [each["kind"] for each in found] == ["StoragePool", "Volume", "Snapshot"]


@EMBEDDED
async def test_a_zone_is_imported_without_what_powerdns_keeps_itself(
    taking: Any, powerdns: PowerDns, fresh: str
) -> None:
    name = f"{fresh}.example."
    async with raw(powerdns.url, X_API_Key=powerdns.api_key) as api:
        await api.done("POST", "/servers/localhost/zones", {"name": name, "kind": "Native", "account": "theirs"})
    login = Login(headers={"X-API-Key": Redacted(powerdns.api_key)})
    path = f"/servers/localhost/zones/{name}"
    found = [each for each in await imported("powerdns", powerdns.url, path, login) if each["kind"] == "Zone"]
    (zone,) = found
    assert (zone["spec"]["name"], zone["spec"]["account"]) == (name, "theirs")
    assert not {"serial", "rrsets", "soa_edit_api", "id"} & set(zone["spec"])
    assert await taking("powerdns", powerdns.url, found) == []


@EMBEDDED
async def test_silences_are_imported_and_expired_ones_are_not(
    taking: Any, alertmanager: Alertmanager, fresh: str
) -> None:
    body = {
        "matchers": [{"name": "team", "value": fresh, "isRegex": False}],
        "startsAt": "2020-01-01T00:00:00Z",
        "endsAt": "2097-01-01T00:00:00Z",
        "createdBy": "theirs",
    }
    async with raw(alertmanager.url) as api:
        kept = await api.done("POST", "/silences", {**body, "comment": f"{fresh}-kept"})
        over = await api.done("POST", "/silences", {**body, "comment": f"{fresh}-over"})
        await api.done("DELETE", f"/silence/{over['silenceID']}")
    found = await imported("alertmanager", alertmanager.url)
    ours = [each for each in found if each["spec"]["comment"].startswith(fresh)]
    assert [each["spec"]["resourceID"] for each in ours] == [f"/silence/{kept['silenceID']}"]
    assert await taking("alertmanager", alertmanager.url, ours) == []


@EMBEDDED
async def test_a_volume_is_imported_from_docker(taking: Any, podman: Podman, fresh: str) -> None:
    async with raw(podman.url, under="/v1.41") as api:
        await api.done("POST", "/volumes/create", {"Name": fresh, "Labels": {"team": "red"}})
    found = await imported("docker", podman.url, f"/v1.41/volumes/{fresh}")
    (volume,) = found
    assert volume["spec"]["Labels"] == {"team": "red"}
    assert await taking("docker", podman.url, found) == []
