"""What LXD really does: the facts that the definitions in examples/rest/lxd rest on."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.lab.raw import Raw, raw
from trimtab.lab.lxd import Lxd

PROFILES, PROJECTS, POOLS = "/1.0/profiles", "/1.0/projects", "/1.0/storage-pools"


@pytest.fixture
async def api(lxd: Lxd) -> AsyncIterator[Raw]:
    async with raw(lxd.url) as speaker:
        yield speaker


@pytest.fixture
async def pool(api: Raw, fresh: str) -> str:
    name = f"p{fresh}"
    await api.done("POST", POOLS, {"name": name, "driver": "dir", "description": "ours"})
    return f"{POOLS}/{name}"


async def profile(api: Raw, name: str, **fields: object) -> str:
    await api.done("POST", PROFILES, {"name": name, **fields})
    return f"{PROFILES}/{name}"


async def held(api: Raw, path: str) -> dict[str, object]:
    found: dict[str, object] = (await api.get(path))["metadata"]
    return found


def test_what_it_mounts_is_seen_by_nobody_else(lxd: Lxd) -> None:
    assert str(lxd.socket.parent) not in Path("/proc/self/mounts").read_text()


async def test_a_creation_names_its_resource_in_the_location(api: Raw, fresh: str) -> None:
    said = await api.say("POST", PROFILES, {"name": fresh})
    assert (said.status, said.headers["location"]) == (201, f"{PROFILES}/{fresh}")
    assert said.body["metadata"] is None


async def test_a_second_creation_is_an_error_500_that_says_already_exists(api: Raw, fresh: str) -> None:
    await profile(api, fresh)
    said = await api.say("POST", PROFILES, {"name": fresh})
    assert said.status == 500
    assert "already exists" in said.body["error"]


async def test_a_key_that_it_does_not_know_is_a_400_at_creation_and_a_500_later(api: Raw, fresh: str) -> None:
    refused = await api.say("POST", PROFILES, {"name": fresh, "config": {"nonsense": "1"}})
    assert (refused.status, refused.body["error"]) == (400, "Unknown configuration key: nonsense")
    path = await profile(api, fresh)
    refused = await api.say("PUT", path, {"config": {"nonsense": "1"}})
    assert (refused.status, refused.body["error"]) == (500, "Unknown configuration key: nonsense")


async def test_a_patch_with_an_old_etag_is_refused_by_412(api: Raw, fresh: str) -> None:
    path = await profile(api, fresh, config={"limits.cpu": "1"})
    etag = (await api.say("GET", path)).headers["etag"]
    assert (await api.say("PATCH", path, {"config": {"limits.cpu": "2"}}, If_Match=etag)).status == 200
    assert (await api.say("PATCH", path, {"config": {"limits.cpu": "3"}}, If_Match=etag)).status == 412
    assert (await held(api, path))["config"] == {"limits.cpu": "2"}


async def test_a_put_with_an_old_etag_is_refused_by_412(api: Raw, fresh: str) -> None:
    path = await profile(api, fresh)
    etag = (await api.say("GET", path)).headers["etag"]
    assert (await api.say("PUT", path, {"description": "new"}, If_Match=etag)).status == 200
    assert (await api.say("PUT", path, {"description": "newer"}, If_Match=etag)).status == 412


async def test_a_read_with_the_etag_is_answered_whole(api: Raw, fresh: str) -> None:
    path = await profile(api, fresh)
    etag = (await api.say("GET", path)).headers["etag"]
    assert (await api.say("GET", path, If_None_Match=etag)).status == 200


async def test_a_patch_merges_the_config_of_a_profile_and_null_removes_a_key(api: Raw, fresh: str) -> None:
    path = await profile(api, fresh, config={"limits.cpu": "1", "limits.memory": "1GiB"})
    await api.done("PATCH", path, {"config": {"limits.cpu": None, "user.team": "blue"}})
    assert (await held(api, path))["config"] == {"limits.memory": "1GiB", "user.team": "blue"}


async def test_a_patch_keeps_a_description_that_is_null_and_removes_one_that_is_empty(api: Raw, fresh: str) -> None:
    path = await profile(api, fresh, description="ours")
    await api.done("PATCH", path, {"description": None})
    assert (await held(api, path))["description"] == "ours"
    await api.done("PATCH", path, {"description": ""})
    assert (await held(api, path))["description"] == ""


async def test_a_patch_cannot_remove_a_device(api: Raw, fresh: str) -> None:
    path = await profile(api, fresh, devices={"eth0": {"type": "none"}})
    assert (await api.say("PATCH", path, {"devices": {"eth0": None}})).status == 500
    await api.done("PATCH", path, {"devices": {}})
    assert (await held(api, path))["devices"] == {"eth0": {"type": "none"}}


async def test_a_put_replaces_all_and_what_it_leaves_out_is_gone(api: Raw, fresh: str) -> None:
    path = await profile(api, fresh, description="ours", config={"user.a": "1"}, devices={"eth0": {"type": "none"}})
    await api.done("PUT", path, {"config": {"user.b": "2"}})
    assert await held(api, path) == {
        "name": fresh, "description": "", "config": {"user.b": "2"}, "devices": {}, "used_by": [],
    }  # fmt: skip


async def test_a_put_takes_what_a_read_gave_with_its_read_only_fields(api: Raw, fresh: str) -> None:
    path = await profile(api, fresh, config={"user.a": "1"})
    await api.done("PUT", path, await held(api, path))


async def test_what_is_deleted_is_gone_and_a_second_deletion_is_a_404(api: Raw, fresh: str) -> None:
    path = await profile(api, fresh)
    assert (await api.say("DELETE", path)).status == 200
    assert (await api.say("GET", path)).status == 404
    assert (await api.say("DELETE", path)).status == 404


async def test_a_project_is_given_features_that_nobody_asked_for(api: Raw, fresh: str) -> None:
    await api.done("POST", PROJECTS, {"name": fresh, "config": {"features.images": "false"}})
    assert (await held(api, f"{PROJECTS}/{fresh}"))["config"] == {
        "features.images": "false", "features.profiles": "true", "features.storage.volumes": "true",
    }  # fmt: skip


async def test_a_patch_of_a_project_replaces_its_whole_config(api: Raw, fresh: str) -> None:
    await api.done("POST", PROJECTS, {"name": fresh, "config": {"features.images": "false"}})
    await api.done("PATCH", f"{PROJECTS}/{fresh}", {"config": {"user.team": "blue"}})
    assert (await held(api, f"{PROJECTS}/{fresh}"))["config"] == {"user.team": "blue"}


async def test_a_pool_has_no_etag_and_the_server_adds_its_source(api: Raw, pool: str) -> None:
    said = await api.say("GET", pool)
    assert "etag" not in said.headers
    assert said.body["metadata"]["config"]["source"].endswith(pool.removeprefix("/1.0"))


async def test_a_put_of_a_pool_without_its_source_is_refused(api: Raw, pool: str) -> None:
    said = await api.say("PUT", pool, {"description": "new"})
    assert (said.status, said.body["error"]) == (500, "Pool source cannot be changed when not in pending state")
    config = (await held(api, pool))["config"]
    await api.done("PUT", pool, {"description": "new", "config": config})


async def test_a_patch_of_a_pool_wipes_the_description_that_it_does_not_name(api: Raw, pool: str) -> None:
    await api.done("PATCH", pool, {"config": {"rsync.bwlimit": "10"}})
    assert (await held(api, pool))["description"] == ""


async def test_a_patch_of_a_volume_wipes_the_description_that_it_does_not_name(api: Raw, pool: str) -> None:
    await api.done("POST", f"{pool}/volumes/custom", {"name": "data", "description": "ours"})
    await api.done("PATCH", f"{pool}/volumes/custom/data", {"config": {"user.a": "1"}})
    found = await held(api, f"{pool}/volumes/custom/data")
    assert (found["description"], found["config"]) == ("", {"user.a": "1"})


async def test_a_volume_is_made_with_200_and_no_location(api: Raw, pool: str) -> None:
    said = await api.say("POST", f"{pool}/volumes/custom", {"name": "data"})
    assert said.status == 200
    assert "location" not in said.headers


async def test_a_pool_in_use_is_not_deleted_by_400(api: Raw, pool: str) -> None:
    await api.done("POST", f"{pool}/volumes/custom", {"name": "data"})
    said = await api.say("DELETE", pool)
    assert (said.status, said.body["error"]) == (400, "The storage pool is currently in use")


async def test_a_snapshot_is_made_by_an_operation_that_the_location_names(api: Raw, pool: str) -> None:
    await api.done("POST", f"{pool}/volumes/custom", {"name": "data", "description": "ours"})
    snapshots = f"{pool}/volumes/custom/data/snapshots"
    said = await api.say("POST", snapshots, {"name": "first"})
    assert (said.status, said.headers["location"]) == (202, said.body["operation"])
    assert said.body["metadata"]["status"] in ("Running", "Success")
    operation = await held(api, said.body["operation"] + "/wait")
    assert (operation["status"], operation["err"]) == ("Success", "")
    found = await held(api, f"{snapshots}/first")
    assert (found["name"], found["description"], found["expires_at"]) == ("first", "ours", "0001-01-01T00:00:00Z")


async def test_lists_name_a_snapshot_with_its_volume_and_take_it_for_a_volume_too(api: Raw, pool: str) -> None:
    volumes = f"{pool}/volumes/custom"
    await api.done("POST", volumes, {"name": "data"})
    began = await api.done("POST", f"{volumes}/data/snapshots", {"name": "first"})
    await api.get(began["operation"] + "/wait")
    (listed,) = (await api.get(f"{volumes}/data/snapshots?recursion=1"))["metadata"]
    assert (listed["name"], listed["content_type"]) == ("data/first", "")
    assert [each["name"] for each in (await api.get(f"{volumes}?recursion=1"))["metadata"]] == ["data", "data/first"]
    paths = [f"{volumes}/data", f"{volumes}/data/snapshots/first"]
    assert (await api.get(volumes))["metadata"] == paths
    assert (await api.get(f"{volumes}/data/snapshots"))["metadata"] == paths[1:]


async def test_an_operation_that_it_does_not_know_is_a_404(api: Raw) -> None:
    assert (await api.say("GET", "/1.0/operations/00000000-0000-0000-0000-000000000000")).status == 404


async def test_a_killed_server_comes_back_with_what_it_had(tmp_path_factory: pytest.TempPathFactory, lxd: Lxd) -> None:
    folder = tmp_path_factory.mktemp("kill") / "d"
    with Lxd(folder) as server:
        async with raw(server.url) as api:
            await profile(api, "kept", description="ours")
        server.kill()
    with Lxd(folder) as server:
        async with raw(server.url) as api:
            assert (await held(api, f"{PROFILES}/kept"))["description"] == "ours"
