"""Looking again: how often, and at what price for the service."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.systems.rest.arm_kit import (
    DOCUMENT,
    GROUP,
    KIND,
    SCALE_SET,
    SPEC,
    SUBSCRIPTION,
    scale_set,
    scale_sets,
    served,
)
from tests.systems.rest.station import Document, Station
from trimtab.lab.arm import INSTANT, ArmEmulator
from trimtab.systems.rest.reconciling.subject import WAKE

SETS = f"{GROUP}/providers/Microsoft.Compute/virtualMachineScaleSets"


@pytest.fixture
async def arm() -> AsyncIterator[ArmEmulator]:
    async with ArmEmulator([DOCUMENT], behaviour=INSTANT) as emulator:
        yield emulator


def reads(arm: ArmEmulator) -> list[str]:
    """What was read of scale sets: "list" or the name."""
    paths = [asked.path for asked in arm.requests if asked.method == "GET" and asked.path.startswith(SETS)]
    return [path.removeprefix(SETS).strip("/") or "list" for path in paths]


async def test_siblings_are_read_by_one_list(station: Station, arm: ArmEmulator) -> None:
    names = [f"set{number}" for number in range(8)]
    async with station.working():
        await served(station, arm)
        for name in names:
            await station.make(KIND, name, **SPEC)
        arm.log.clear()
        arm.change(f"{SETS}/set5", lambda body: body["tags"].update(theirs="1"))
        await station.leap(700)
        await station.until(KIND, "set5", lambda d: d["status"]["observed"]["tags"].get("theirs"))
        arm.change(f"{SETS}/set6", lambda body: body["tags"].update(theirs="1"))
        await station.leap(700)
        await station.until(KIND, "set6", lambda d: d["status"]["observed"]["tags"].get("theirs"))
    assert reads(arm) == ["list", "set5", "list", "set6"]


async def test_a_lone_object_is_asked_for_by_its_etag(station: Station, arm: ArmEmulator) -> None:
    async with station.working():
        await served(station, arm)
        await scale_set(station)
        arm.log.clear()
        await station.leap(700)
        arm.change(GROUP, lambda body: body.setdefault("tags", {}).update(theirs="1"))
        await station.leap(700)
        await station.until("ResourceGroup", "web", lambda d: d["status"]["observed"].get("tags"))
    assert {asked.status for asked in arm.requests if asked.path == SCALE_SET} <= {304}


async def test_a_restart_asks_the_service_nothing_of_what_is_settled(station: Station, arm: ArmEmulator) -> None:
    async with station.working():
        await served(station, arm)
        await scale_set(station)
    arm.log.clear()
    async with station.working():
        await station.make(KIND, "back", **SPEC)
    assert not [asked for asked in arm.requests if asked.path == SCALE_SET]


async def test_never_is_never(station: Station, arm: ArmEmulator) -> None:
    async with station.working():
        await served(station, arm, scale_sets(lambda spec: spec.update(refresh={"interval": "never"})))
        await scale_set(station)
        arm.log.clear()
        arm.change(GROUP, lambda body: body.setdefault("tags", {}).update(theirs="1"))
        await station.leap(100_000)
        await station.until("ResourceGroup", "web", lambda d: d["status"]["observed"].get("tags"))
    assert not [asked for asked in arm.requests if asked.path == SCALE_SET]


async def test_an_object_may_have_an_interval_of_its_own(station: Station, arm: ArmEmulator) -> None:
    async with station.working():
        await served(station, arm)
        await scale_set(station, policy={"refresh": "10s"})
        arm.change(SCALE_SET, lambda body: body["tags"].update(theirs="1"))
        await station.leap(11)
        await station.until(KIND, "front", lambda d: d["status"]["observed"]["tags"].get("theirs"))


async def test_who_is_told_looks_at_once(station: Station, arm: ArmEmulator) -> None:
    async with station.working():
        await served(station, arm)
        await scale_set(station)
        arm.scale(SCALE_SET, 1)
        await station.annotate(KIND, "front", **{WAKE: "now"})
        await station.until(KIND, "front", lambda d: arm.resources[SCALE_SET]["sku"]["capacity"] == 3)


async def test_too_many_requests_pause_the_subscription_and_not_one_object(station: Station, arm: ArmEmulator) -> None:
    async with station.working():
        await served(station, arm)
        arm.log.clear()
        arm.throttle(SUBSCRIPTION, retry_after=100)
        for number in range(10):
            await station.create(station.document(KIND, f"set{number}", SPEC))
            await station.condition(KIND, f"set{number}", "Synced", "Unknown", "Throttled")
        assert len([asked for asked in arm.requests if asked.status == 429]) == 1
        arm.unthrottle(SUBSCRIPTION)
        await station.leap(130)
        for number in range(10):
            await station.ready(KIND, f"set{number}")
    assert len([asked for asked in arm.requests if asked.method == "PUT" and asked.status < 400]) == 10


async def test_a_reference_to_another_object_becomes_its_id(station: Station, arm: ArmEmulator) -> None:
    def referring(spec: Document) -> None:
        spec["overlay"] = {"fields": {"tags.network": {"reference": "*"}}}

    async with station.working():
        await served(station, arm, scale_sets(referring))
        tags = {"network": {"ref": {"kind": "VirtualNetwork", "name": "net"}}}
        await station.create(station.document(KIND, "front", {**SPEC, "tags": tags}))
        await station.condition(KIND, "front", "ReferencesResolved", "False")
        properties = {"addressSpace": {"addressPrefixes": ["10.0.0.0/16"]}}
        made = await station.make(
            "VirtualNetwork", "net", parent={"name": "web"}, location="westus", properties=properties
        )
        await station.ready(KIND, "front")
    assert arm.resources[SCALE_SET]["tags"]["network"] == made.raw["status"]["resourceID"]
