"""Docker's API, managed: what a user does to objects, and what is then true of a real Podman. Nothing can be updated."""

from __future__ import annotations

import base64
import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.lab.conftest import fresh, podman
from tests.lab.raw import Raw, raw
from tests.systems.rest.real_homes import EMBEDDED, home, namespace, scheme
from tests.systems.rest.real_station import Station
from tests.systems.rest.real_tap import Tap, tapped
from trimtab.client.api import ApiClient
from trimtab.lab.podman import Podman
from trimtab.model.errors import StatusError

__all__ = ["fresh", "home", "namespace", "podman", "scheme"]


@pytest.fixture
async def api(podman: Podman) -> AsyncIterator[Raw]:
    async with raw(podman.url, under="/v1.41") as speaker:
        yield speaker


@pytest.fixture
async def tap(podman: Podman) -> AsyncIterator[Tap]:
    async with tapped(podman.url) as listening:
        yield listening


@pytest.fixture
async def station(home: ApiClient, namespace: str, tmp_path: Path, tap: Tap) -> AsyncIterator[Station]:
    made = Station(home, namespace, tmp_path, "docker", tap.url)
    async with made.working():
        yield made


async def test_a_volume_is_created_kept_and_deleted(station: Station, api: Raw, tap: Tap, fresh: str) -> None:
    await station.serve("Volume")
    await station.example("Volume", name=fresh)
    found = await station.ready("Volume", "data")
    assert found["status"]["resourceID"] == f"/v1.41/volumes/{fresh}"
    assert (await api.get(f"/volumes/{fresh}"))["Labels"] == {"team": "blue"}

    await station.look("Volume", "data")
    await station.ready("Volume", "data")
    await station.delete("Volume", "data")
    assert (await api.say("GET", f"/volumes/{fresh}")).status == 404
    assert tap.writes == ["POST /v1.41/volumes/create", f"DELETE /v1.41/volumes/{fresh}"]
    await station.clear()


async def test_a_volume_that_exists_is_taken_as_it_is_without_a_write(
    station: Station, api: Raw, tap: Tap, fresh: str
) -> None:
    await api.done("POST", "/volumes/create", {"Name": fresh, "Labels": {"team": "red"}})
    await station.serve("Volume")
    await station.create("Volume", "data", {"resourceID": f"/v1.41/volumes/{fresh}", "Labels": {"team": "blue"}})
    await station.ready("Volume", "data")
    assert (await api.get(f"/volumes/{fresh}"))["Labels"] == {"team": "red"}
    assert tap.writes == []
    await station.delete("Volume", "data")
    await station.clear()


async def test_a_network_is_made_anew_when_it_changes_and_the_policy_allows(
    station: Station, api: Raw, tap: Tap, fresh: str
) -> None:
    await station.serve("Network")
    await station.example("Network", name=fresh, IPAM={})
    await station.ready("Network", "back")
    await station.change("Network", "back", Labels={"team": "red"})
    await station.ready("Network", "back")
    found = await api.get(f"/networks/{fresh}")
    assert (found["Labels"], found["Internal"]) == ({"team": "red"}, True)
    create, path = "POST /v1.41/networks/create", f"/v1.41/networks/{fresh}"
    assert tap.writes == [create, f"DELETE {path}", create]
    await station.delete("Network", "back")
    assert (await api.say("GET", f"/networks/{fresh}")).status == 404
    await station.clear()


@EMBEDDED
async def test_a_label_of_a_volume_that_changes_is_refused_with_its_path(station: Station, fresh: str) -> None:
    await station.serve("Volume")
    await station.example("Volume", name=fresh)
    await station.ready("Volume", "data")
    with pytest.raises(StatusError, match=r"spec\.Labels"):
        await station.change("Volume", "data", Labels={"team": "red"})


@EMBEDDED
async def test_a_volume_that_someone_replaced_has_drifted_and_is_left_alone(
    station: Station, api: Raw, tap: Tap, fresh: str
) -> None:
    await station.serve("Volume")
    await station.example("Volume", name=fresh)
    await station.ready("Volume", "data")
    await api.done("DELETE", f"/volumes/{fresh}")
    await api.done("POST", "/volumes/create", {"Name": fresh, "Labels": {"team": "red"}})
    await station.look("Volume", "data")
    assert "Labels.team" in await station.condition("Volume", "data", "Drifted", "True")
    assert (await api.get(f"/volumes/{fresh}"))["Labels"] == {"team": "red"}
    assert len(tap.writes) == 1


@EMBEDDED
async def test_a_volume_of_someone_else_is_not_touched_though_docker_would_answer_that_it_was_made(
    station: Station, api: Raw, tap: Tap, fresh: str
) -> None:
    await api.done("POST", "/volumes/create", {"Name": fresh, "Labels": {"team": "red"}})
    await station.serve("Volume")
    await station.example("Volume", name=fresh)
    assert "exists and was not made by this object" in await station.stalled("Volume", "data", "AlreadyExists")
    assert tap.writes == []


@EMBEDDED
async def test_what_podman_adds_to_a_network_is_no_drift(station: Station, tap: Tap, fresh: str) -> None:
    await station.serve("Network")
    await station.example("Network", name=fresh, IPAM={})
    await station.ready("Network", "back")
    count = len(tap.heard)
    await station.look("Network", "back")
    await tap.until(lambda: len(tap.heard) > count)
    found = await station.ready("Network", "back")
    assert found["status"]["observed"]["IPAM"]["Config"]
    assert len(tap.writes) == 1


@EMBEDDED
async def test_a_secret_is_given_by_reference_made_anew_when_it_changes_and_shown_nowhere(
    station: Station, api: Raw, tap: Tap, fresh: str
) -> None:
    await station.serve("Secret")
    first, second = (base64.b64encode(value).decode() for value in (b"hush-hush", b"not-a-word"))
    await station.secret("password", base64=first)
    await station.example("Secret", name=fresh)
    await station.ready("Secret", "password")
    assert tap.last("POST").body["Data"] == first
    known = (await api.get(f"/secrets/{fresh}"))["ID"]

    await station.set_secret("password", base64=second)
    await tap.until(lambda: len(tap.writes) == 3)
    await station.ready("Secret", "password")
    assert tap.last("POST").body["Data"] == second
    assert (await api.get(f"/secrets/{fresh}"))["ID"] != known

    shown = json.dumps([*await station.everything()])
    assert first not in shown
    assert second not in shown


@EMBEDDED
async def test_a_secret_in_the_spec_itself_is_refused(station: Station, fresh: str) -> None:
    await station.serve("Secret")
    with pytest.raises(StatusError, match=r"spec\.Data"):
        await station.create("Secret", "password", {"name": fresh, "Data": "aHVzaA=="})


@EMBEDDED
async def test_a_driver_that_podman_refuses_is_told_and_a_corrected_spec_goes_on(
    station: Station, api: Raw, fresh: str
) -> None:
    await station.serve("Network")
    await station.example("Network", name=fresh, IPAM={}, Driver="nonsense")
    assert "unsupported driver nonsense" in await station.stalled("Network", "back", "Refused")
    await station.change("Network", "back", Driver="bridge")
    await station.ready("Network", "back")
    assert (await api.get(f"/networks/{fresh}"))["Driver"] == "bridge"
