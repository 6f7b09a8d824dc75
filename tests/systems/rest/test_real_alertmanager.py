"""Alertmanager, managed: what a user does to objects, and what is then true of a real Alertmanager."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.lab.conftest import alertmanager, fresh
from tests.lab.raw import Raw, raw
from tests.systems.rest.real_homes import EMBEDDED, home, namespace, scheme
from tests.systems.rest.real_station import Station
from tests.systems.rest.real_tap import Tap, tapped
from trimtab.client.api import ApiClient
from trimtab.lab.alertmanager import Alertmanager

__all__ = ["alertmanager", "fresh", "home", "namespace", "scheme"]

POST = "POST /api/v2/silences"


@pytest.fixture
async def api(alertmanager: Alertmanager) -> AsyncIterator[Raw]:
    async with raw(alertmanager.url) as speaker:
        yield speaker


@pytest.fixture
async def tap(alertmanager: Alertmanager) -> AsyncIterator[Tap]:
    async with tapped(alertmanager.url) as listening:
        yield listening


@pytest.fixture
async def station(home: ApiClient, namespace: str, tmp_path: Path, tap: Tap) -> AsyncIterator[Station]:
    made = Station(home, namespace, tmp_path, "alertmanager", tap.url)
    async with made.working():
        yield made


def matching(team: str) -> list[dict[str, Any]]:
    return [{"name": "team", "value": team, "isRegex": False}]


async def silence(station: Station, fresh: str, **changes: Any) -> str:
    """The example's silence with a comment of its own, when it is ready: its path."""
    await station.example("Silence", **{"comment": fresh, **changes})
    return await path_of(station)


async def path_of(station: Station) -> str:
    return str((await station.ready("Silence", "disks"))["status"]["resourceID"])


async def active(api: Raw, comment: str) -> list[str]:
    """The IDs of silences with this comment that are not expired."""
    found = await api.get("/silences")
    return [each["id"] for each in found if each["comment"] == comment and each["status"]["state"] == "active"]


async def test_a_silence_is_created_changed_corrected_and_expired(
    station: Station, api: Raw, tap: Tap, fresh: str
) -> None:
    await station.serve("Silence")
    path = await silence(station, fresh)
    assert (await api.get(path))["status"] == {"state": "active"}

    await station.change("Silence", "disks", endsAt="2098-01-01T00:00:00Z")
    assert await path_of(station) == path
    assert (await api.get(path))["endsAt"] == "2098-01-01T00:00:00.000Z"

    theirs = {name: value for name, value in (await api.get(path)).items() if name not in ("status", "updatedAt")}
    await api.done("POST", "/silences", {**theirs, "createdBy": "someone"})
    await station.look("Silence", "disks")
    await station.until_said("Updated", "createdBy (drifted)")
    assert (await api.get(path))["createdBy"] == "site"

    await station.delete("Silence", "disks")
    assert (await api.get(path))["status"] == {"state": "expired"}
    assert set(tap.writes) == {POST, f"DELETE /api/v2{path}"}
    await station.clear()


async def test_other_matchers_make_a_new_silence_and_the_object_follows_it(
    station: Station, api: Raw, fresh: str
) -> None:
    await station.serve("Silence")
    first = await silence(station, fresh, matchers=matching("blue"))
    await station.change("Silence", "disks", matchers=matching("red"))
    second = await path_of(station)
    assert second != first
    assert (await api.get(first))["status"] == {"state": "expired"}
    assert await active(api, fresh) == [second.rpartition("/")[2]]
    await station.delete("Silence", "disks")
    assert await active(api, fresh) == []
    await station.clear()


async def test_a_silence_that_exists_is_taken_as_it_is_without_a_write(
    station: Station, api: Raw, tap: Tap, fresh: str
) -> None:
    body = {"matchers": matching(fresh), "startsAt": "2020-01-01T00:00:00Z", "endsAt": "2097-01-01T00:00:00Z"}
    made = await api.done("POST", "/silences", {**body, "createdBy": "someone", "comment": fresh})
    path = f"/silence/{made['silenceID']}"
    await station.serve("Silence")
    await station.example("Silence", resourceID=path, comment=fresh)
    assert await path_of(station) == path
    assert (await api.get(path))["createdBy"] == "someone"
    assert tap.writes == []
    await station.delete("Silence", "disks")
    await station.clear()


@EMBEDDED
async def test_a_start_that_alertmanager_moved_is_no_drift(station: Station, api: Raw, tap: Tap, fresh: str) -> None:
    await station.serve("Silence")
    path = await silence(station, fresh)
    assert (await api.get(path))["startsAt"] > "2026-01-01T00:00:00Z"
    count = len(tap.heard)
    await station.look("Silence", "disks")
    await tap.until(lambda: len(tap.heard) > count)
    await station.ready("Silence", "disks")
    assert tap.writes == [POST]


@EMBEDDED
async def test_a_change_is_a_post_with_the_id_and_all_that_alertmanager_requires(
    station: Station, api: Raw, tap: Tap, fresh: str
) -> None:
    await station.serve("Silence")
    path = await silence(station, fresh)
    await station.change("Silence", "disks", createdBy="branch")
    assert await path_of(station) == path
    sent = tap.last("POST").body
    assert sent["id"] == path.rpartition("/")[2]
    assert {"matchers", "startsAt", "endsAt", "createdBy", "comment"} <= set(sent)


@EMBEDDED
async def test_a_silence_that_someone_expired_is_made_anew(station: Station, api: Raw, fresh: str) -> None:
    await station.serve("Silence")
    first = await silence(station, fresh)
    await api.done("DELETE", first)
    await station.look("Silence", "disks")
    await station.until("Silence", "disks", lambda held: held["status"].get("resourceID") not in ("", None, first))
    assert await active(api, fresh) == [(await path_of(station)).rpartition("/")[2]]


@EMBEDDED
async def test_an_end_that_is_past_is_told_and_makes_nothing(station: Station, api: Raw, fresh: str) -> None:
    await station.serve("Silence")
    await station.example("Silence", comment=fresh, endsAt="2020-01-01T00:00:00Z")
    assert "start time must be before end time" in await station.stalled("Silence", "disks", "Refused")
    assert await active(api, fresh) == []
    await station.delete("Silence", "disks")


@EMBEDDED
async def test_a_silence_whose_answer_was_lost_is_found_again_and_not_made_twice(
    station: Station, api: Raw, tap: Tap, fresh: str
) -> None:
    await station.serve("Silence")
    tap.lose_answers = 1
    await station.example("Silence", comment=fresh)
    await tap.until(lambda: tap.writes == [POST])
    await station.leap(600)
    path = await path_of(station)
    assert await active(api, fresh) == [path.rpartition("/")[2]]
