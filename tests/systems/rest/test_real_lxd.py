"""LXD, managed: what a user does to objects, and what is then true of a real LXD."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.lab.conftest import fresh, lxd
from tests.lab.raw import Raw, raw
from tests.systems.rest.real_homes import EMBEDDED, home, namespace, scheme
from tests.systems.rest.real_station import Station
from tests.systems.rest.real_tap import Tap, tapped
from trimtab.client.api import ApiClient
from trimtab.lab.lxd import Lxd
from trimtab.model.errors import StatusError

__all__ = ["fresh", "home", "lxd", "namespace", "scheme"]


@pytest.fixture
async def api(lxd: Lxd) -> AsyncIterator[Raw]:
    async with raw(lxd.url, under="/1.0") as speaker:
        yield speaker


@pytest.fixture
async def tap(lxd: Lxd) -> AsyncIterator[Tap]:
    async with tapped(lxd.url) as listening:
        yield listening


@pytest.fixture
async def station(home: ApiClient, namespace: str, tmp_path: Path, tap: Tap) -> AsyncIterator[Station]:
    made = Station(home, namespace, tmp_path, "lxd", tap.url)
    async with made.working():
        yield made


async def held(api: Raw, path: str) -> Any:
    return (await api.get(path))["metadata"]


async def profile(station: Station, api: Raw, name: str, **spec: Any) -> str:
    """An object that is ready, and the path of its profile."""
    await station.serve("Profile")
    await station.create("Profile", "web", {"name": name, **spec})
    await station.ready("Profile", "web")
    return f"/profiles/{name}"


async def test_a_profile_is_created_changed_corrected_stripped_and_deleted(
    station: Station, api: Raw, fresh: str
) -> None:
    await station.serve("Profile")
    await station.example("Profile", name=fresh)
    assert (await station.ready("Profile", "web"))["status"]["resourceID"] == f"/1.0/profiles/{fresh}"
    path, config = f"/profiles/{fresh}", {"limits.cpu": "2", "limits.memory": "1GiB", "user.team": "blue"}
    assert (await held(api, path))["config"] == config

    await station.change("Profile", "web", config={**config, "limits.cpu": "4"})
    await station.ready("Profile", "web")
    assert (await held(api, path))["config"] == {**config, "limits.cpu": "4"}

    await api.done("PATCH", path, {"config": {"limits.cpu": "8"}})
    await station.look("Profile", "web")
    await station.until_said("Updated", "drifted")
    assert (await held(api, path))["config"] == {**config, "limits.cpu": "4"}

    await station.change("Profile", "web", config={"limits.cpu": "4"}, description=None)
    await station.ready("Profile", "web")
    found = await held(api, path)
    assert (found["config"], found["description"]) == ({"limits.cpu": "4"}, "")

    await station.delete("Profile", "web")
    assert (await api.say("GET", path)).status == 404
    await station.clear()


async def test_a_profile_that_exists_is_taken_as_it_is_without_a_write(
    station: Station, api: Raw, tap: Tap, fresh: str
) -> None:
    await api.done("POST", "/profiles", {"name": fresh, "description": "theirs", "config": {"user.team": "red"}})
    await station.serve("Profile")
    spec = {"resourceID": f"/1.0/profiles/{fresh}", "config": {"user.team": "blue"}}
    await station.create("Profile", "web", spec)
    await station.ready("Profile", "web")
    found = await held(api, f"/profiles/{fresh}")
    assert (found["description"], found["config"]) == ("theirs", {"user.team": "red"})
    assert tap.writes == []

    await station.change("Profile", "web", config={"user.team": "green"})
    await station.ready("Profile", "web")
    assert (await held(api, f"/profiles/{fresh}"))["config"] == {"user.team": "green"}
    assert tap.writes == [f"PATCH /1.0/profiles/{fresh}"]
    await station.delete("Profile", "web")
    await station.clear()


async def test_a_pool_a_volume_and_a_snapshot_are_made_in_order_and_go_in_order(
    station: Station, api: Raw, fresh: str
) -> None:
    await station.serve("StoragePool", "Volume", "Snapshot")
    await station.example("Snapshot")
    await station.example("Volume")
    assert "is not there" in await station.waiting("Snapshot", "first", "ParentNotReady")
    await station.example("StoragePool", name=fresh)
    await station.leap(120)
    found = await station.ready("Snapshot", "first")
    snapshot = f"/storage-pools/{fresh}/volumes/custom/data/snapshots/first"
    assert found["status"]["resourceID"] == f"/1.0{snapshot}"
    assert (await held(api, snapshot))["expires_at"] == "2099-01-01T00:00:00Z"

    for kind, name in (("Snapshot", "first"), ("Volume", "data"), ("StoragePool", "files")):
        await station.delete(kind, name)
    assert (await api.say("GET", f"/storage-pools/{fresh}")).status == 404
    await station.clear()


@EMBEDDED
async def test_a_change_of_a_key_is_a_patch_of_that_key_guarded_by_the_etag(
    station: Station, api: Raw, tap: Tap, fresh: str
) -> None:
    path = await profile(station, api, fresh, config={"limits.cpu": "1", "user.team": "blue"})
    etag = (await api.say("GET", path)).headers["etag"]
    await station.change("Profile", "web", config={"limits.cpu": "2", "user.team": "blue"})
    await station.ready("Profile", "web")
    assert tap.writes == ["POST /1.0/profiles", f"PATCH /1.0/profiles/{fresh}"]
    sent = tap.last("PATCH")
    assert (sent.body, sent.headers["If-Match"]) == ({"config": {"limits.cpu": "2"}}, etag)


@EMBEDDED
async def test_keys_and_devices_of_others_stay_whatever_we_write(station: Station, api: Raw, fresh: str) -> None:
    path = await profile(station, api, fresh, config={"user.a": "1"}, devices={"eth0": {"type": "none"}})
    await api.done("PATCH", path, {"config": {"user.theirs": "1"}, "devices": {"eth9": {"type": "none"}}})
    await station.change("Profile", "web", config={"user.b": "2"}, devices={"eth1": {"type": "none"}})
    await station.ready("Profile", "web")
    found = await held(api, path)
    assert found["config"] == {"user.b": "2", "user.theirs": "1"}
    assert found["devices"] == {"eth1": {"type": "none"}, "eth9": {"type": "none"}}


@EMBEDDED
async def test_a_device_is_removed_by_a_put_because_a_patch_cannot(
    station: Station, api: Raw, tap: Tap, fresh: str
) -> None:
    path = await profile(station, api, fresh, devices={"eth0": {"type": "none"}}, description="ours")
    await station.change("Profile", "web", devices=None)
    await station.ready("Profile", "web")
    found = await held(api, path)
    assert (found["devices"], found["description"]) == ({}, "ours")
    assert tap.writes[1:] == [f"PUT /1.0/profiles/{fresh}"]


@EMBEDDED
async def test_drift_is_only_reported_where_the_policy_says_so(station: Station, api: Raw, fresh: str) -> None:
    path = await profile(station, api, fresh, config={"limits.cpu": "1"}, policy={"drift": "report"})
    await api.done("PATCH", path, {"config": {"limits.cpu": "8"}})
    await station.look("Profile", "web")
    said = await station.condition("Profile", "web", "Drifted", "True")
    assert 'config["limits.cpu"]' in said
    assert (await held(api, path))["config"] == {"limits.cpu": "8"}


@EMBEDDED
async def test_what_lxd_and_others_add_to_a_project_stays_and_is_no_drift(
    station: Station, api: Raw, tap: Tap, fresh: str
) -> None:
    await station.serve("Project")
    await station.create("Project", "team", {"name": fresh, "config": {"features.images": "false"}})
    await station.ready("Project", "team")
    path, config = f"/projects/{fresh}", (await held(api, f"/projects/{fresh}"))["config"]
    await api.done("PUT", path, {"config": {**config, "user.theirs": "1"}})
    await station.look("Project", "team")
    await station.until("Project", "team", lambda held: "user.theirs" in held["status"]["observed"]["config"])
    assert tap.writes == ["POST /1.0/projects"]

    await station.change("Project", "team", config={"features.images": "false", "limits.cpu": "4"})
    await station.ready("Project", "team")
    assert (await held(api, path))["config"] == {**config, "user.theirs": "1", "limits.cpu": "4"}


@EMBEDDED
async def test_a_volume_keeps_its_description_when_its_config_changes(station: Station, api: Raw, fresh: str) -> None:
    await station.serve("StoragePool", "Volume")
    await station.example("StoragePool", name=fresh)
    await station.example("Volume")
    await station.ready("Volume", "data")
    await station.change("Volume", "data", config={"user.team": "red"})
    await station.ready("Volume", "data")
    found = await held(api, f"/storage-pools/{fresh}/volumes/custom/data")
    assert (found["description"], found["config"]) == ("what the site keeps", {"user.team": "red"})


@EMBEDDED
async def test_a_pool_is_changed_with_the_source_that_lxd_chose(station: Station, api: Raw, fresh: str) -> None:
    await station.serve("StoragePool")
    await station.example("StoragePool", name=fresh)
    await station.ready("StoragePool", "files")
    source = (await held(api, f"/storage-pools/{fresh}"))["config"]["source"]
    await station.change("StoragePool", "files", description="for more files")
    await station.ready("StoragePool", "files")
    found = await held(api, f"/storage-pools/{fresh}")
    assert (found["description"], found["config"]) == ("for more files", {"source": source})


@EMBEDDED
async def test_a_pool_in_use_says_so_until_its_volume_is_gone(station: Station, api: Raw, fresh: str) -> None:
    await station.serve("StoragePool")
    await station.example("StoragePool", name=fresh)
    await station.ready("StoragePool", "files")
    await api.done("POST", f"/storage-pools/{fresh}/volumes/custom", {"name": "theirs"})
    await station.begin_deletion("StoragePool", "files")
    assert "currently in use" in await station.waiting("StoragePool", "files", "DependencyNotReady")
    await api.done("DELETE", f"/storage-pools/{fresh}/volumes/custom/theirs")
    await station.leap(600)
    await station.gone("StoragePool", "files")


@EMBEDDED
async def test_a_driver_that_changes_is_refused_with_its_path(station: Station, fresh: str) -> None:
    await station.serve("StoragePool")
    await station.example("StoragePool", name=fresh)
    await station.ready("StoragePool", "files")
    with pytest.raises(StatusError, match=r"spec\.driver"):
        await station.change("StoragePool", "files", driver="btrfs")


@EMBEDDED
async def test_a_key_that_lxd_refuses_is_told_and_a_corrected_spec_goes_on(
    station: Station, api: Raw, fresh: str
) -> None:
    path = await profile(station, api, fresh, config={"user.a": "1"})
    await station.change("Profile", "web", config={"nonsense": "1"})
    assert "Unknown configuration key: nonsense" in await station.stalled("Profile", "web", "Refused")
    await station.change("Profile", "web", config={"user.b": "2"})
    await station.ready("Profile", "web")
    assert (await held(api, path))["config"] == {"user.b": "2"}


@EMBEDDED
async def test_a_profile_of_someone_else_is_not_touched(station: Station, api: Raw, fresh: str) -> None:
    await api.done("POST", "/profiles", {"name": fresh, "description": "theirs"})
    await station.serve("Profile")
    await station.create("Profile", "web", {"name": fresh, "description": "ours"})
    assert "exists and was not made by this object" in await station.stalled("Profile", "web", "AlreadyExists")
    assert (await held(api, f"/profiles/{fresh}"))["description"] == "theirs"
    await station.delete("Profile", "web")
    assert (await held(api, f"/profiles/{fresh}"))["description"] == "theirs"


@EMBEDDED
async def test_an_lxd_that_is_down_is_told_and_work_goes_on_when_it_is_back(
    home: ApiClient, namespace: str, tmp_path_factory: pytest.TempPathFactory, lxd: Lxd
) -> None:
    folder = tmp_path_factory.mktemp("down")
    station = Station(home, namespace, folder, "lxd", f"unix://{folder}/d/unix.socket")
    with Lxd(folder / "d") as server:
        async with station.working():
            await station.serve("Profile")
            await station.create("Profile", "web", {"config": {"user.a": "1"}})
            await station.ready("Profile", "web")
            server.kill()
            await station.change("Profile", "web", config={"user.a": "2"})
            await station.condition("Profile", "web", "Ready", "Unknown", "Unreachable")
            with Lxd(folder / "d"):
                await station.look("Profile", "web")
                await station.ready("Profile", "web")
                async with raw(server.url, under="/1.0") as api:
                    assert (await held(api, "/profiles/web"))["config"] == {"user.a": "2"}
                await station.delete("Profile", "web")


@EMBEDDED
async def test_a_description_that_a_creation_does_not_take_is_given_afterwards(
    station: Station, api: Raw, fresh: str
) -> None:
    await station.serve("StoragePool", "Volume", "Snapshot")
    await station.example("StoragePool", name=fresh)
    await station.example("Volume")
    await station.example("Snapshot", description="before the change")
    await station.leap(120)
    await station.ready("Snapshot", "first")
    found = await held(api, f"/storage-pools/{fresh}/volumes/custom/data/snapshots/first")
    assert found["description"] == "before the change"
