"""The example that asked for this system: a scale set on the ARM emulator, from its creation to its end."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.systems.rest.arm_kit import DOCUMENT, KIND, SCALE_SET, SPEC, of, scale_set, scale_sets, served, writes
from tests.systems.rest.station import Document, Station, condition_of
from trimtab.client.transport import Call
from trimtab.lab.arm import INSTANT, ArmEmulator


@pytest.fixture
async def arm() -> AsyncIterator[ArmEmulator]:
    async with ArmEmulator([DOCUMENT], behaviour=INSTANT) as emulator:
        yield emulator


async def test_a_scale_set_is_made_and_its_status_says_what_is_there(station: Station, arm: ArmEmulator) -> None:
    async with station.working():
        await served(station, arm)
        made = await scale_set(station)
    assert made.raw["status"]["resourceID"] == SCALE_SET
    assert arm.resources[SCALE_SET]["sku"]["capacity"] == 3
    assert made.raw["status"]["observed"]["sku"]["capacity"] == 3


async def test_a_change_of_capacity_is_one_patch_of_it_alone(station: Station, arm: ArmEmulator) -> None:
    async with station.working():
        await served(station, arm)
        await scale_set(station)
        await station.change(KIND, "front", lambda spec: spec["sku"].update(capacity=5))
        await station.ready(KIND, "front")
    assert writes(arm)[1:] == [("PATCH", {"sku": {"capacity": 5}})]
    assert arm.resources[SCALE_SET]["sku"]["capacity"] == 5


async def test_scale_writes_the_capacity(station: Station, arm: ArmEmulator) -> None:
    def scaled(spec: Document) -> None:
        spec["scale"] = {
            "specReplicasPath": ".spec.sku.capacity",
            "statusReplicasPath": ".status.observed.sku.capacity",
        }

    async with station.working():
        await served(station, arm, scale_sets(scaled))
        await scale_set(station)
        path = f"/apis/{station.group}/v1/namespaces/{station.namespace}/virtualmachinescalesets/front/scale"
        call = Call(
            method="PATCH", path=path, body=b'{"spec":{"replicas":7}}', content_type="application/merge-patch+json"
        )
        await station.client.transport.call(call)
        await station.ready(KIND, "front")
    assert writes(arm)[1:] == [("PATCH", {"sku": {"capacity": 7}})]


async def test_tags_are_sent_whole_because_a_patch_replaces_them(station: Station, arm: ArmEmulator) -> None:
    async with station.working():
        await served(station, arm)
        await scale_set(station)
        arm.change(SCALE_SET, lambda body: body["tags"].update(other="theirs"))
        await station.change(KIND, "front", lambda spec: spec["tags"].update(tag2="more"))
        await station.ready(KIND, "front")
    assert writes(arm)[1:] == [("PATCH", {"tags": {"tag1": "value", "tag2": "more", "other": "theirs"}})]


async def test_a_tag_that_left_the_spec_leaves_the_service(station: Station, arm: ArmEmulator) -> None:
    async with station.working():
        await served(station, arm)
        await scale_set(station, tags={"tag1": "value", "tag2": "more"})
        await station.change(KIND, "front", lambda spec: spec["tags"].pop("tag2"))
        await station.ready(KIND, "front")
    assert arm.resources[SCALE_SET]["tags"] == {"tag1": "value"}


async def test_the_instance_view_is_joined_into_the_status(station: Station, arm: ArmEmulator) -> None:
    def joined(spec: Document) -> None:
        spec["joins"] = [{"name": "instanceView", "path": "instanceView", "interval": "1m"}]

    async with station.working():
        await served(station, arm, scale_sets(joined))
        made = await scale_set(station, policy={"drift": "ignore"})
        view = made.raw["status"]["joined"]["instanceView"]["value"]
        assert view["virtualMachine"]["statusesSummary"][0]["count"] == 3
        arm.scale(SCALE_SET, 4)
        await station.leap(61)
        await station.until(
            KIND,
            "front",
            lambda d: (
                d["status"]["joined"]["instanceView"]["value"]["virtualMachine"]["statusesSummary"][0]["count"] == 4
            ),
        )


async def test_an_initial_capacity_is_the_autoscalers_afterwards(station: Station, arm: ArmEmulator) -> None:
    def initial(spec: Document) -> None:
        spec["overlay"] = {"fields": {"sku.capacity": {"class": "initial"}}}

    async with station.working():
        await served(station, arm, scale_sets(initial))
        await scale_set(station)
        arm.scale(SCALE_SET, 9)
        await station.change(KIND, "front", lambda spec: spec["tags"].update(tag2="more"))
        await station.until(KIND, "front", lambda d: d["status"]["observed"]["sku"]["capacity"] == 9)
        done = await station.ready(KIND, "front")
    assert arm.resources[SCALE_SET]["sku"]["capacity"] == 9
    assert condition_of(done.raw, "Drifted")["status"] == "False"


async def test_an_id_in_the_spec_adopts_what_exists_without_a_write(station: Station, arm: ArmEmulator) -> None:
    async with station.working():
        await served(station, arm)
        arm.put(SCALE_SET, {"location": "westus", "sku": {"name": "Standard_D2_v3", "capacity": 8}, "tags": {"a": "b"}})
        spec = {**SPEC, "resourceID": SCALE_SET}
        spec.pop("parent")
        adopted = await station.make(KIND, "front", **spec)
    assert writes(arm) == []
    assert adopted.raw["status"]["sync"]["knownDifferences"]["sku.capacity"] == "8"
    assert adopted.raw["status"]["resourceID"] == SCALE_SET


async def test_after_an_adoption_only_what_changes_in_the_spec_is_written(station: Station, arm: ArmEmulator) -> None:
    async with station.working():
        await served(station, arm)
        arm.put(SCALE_SET, {"location": "westus", "sku": {"name": "Standard_D2_v3", "capacity": 8}, "tags": {"a": "b"}})
        spec = {**SPEC, "resourceID": SCALE_SET}
        spec.pop("parent")
        await station.make(KIND, "front", **spec)
        await station.change(KIND, "front", lambda spec: spec["sku"].update(capacity=4))
        await station.ready(KIND, "front")
    assert writes(arm) == [("PATCH", {"sku": {"capacity": 4}})]


async def test_a_deleted_object_takes_its_resource_along(station: Station, arm: ArmEmulator) -> None:
    async with station.working():
        await served(station, arm)
        await scale_set(station)
        await station.delete(KIND, "front")
        await station.gone(KIND, "front")
    assert SCALE_SET not in arm.resources


async def test_a_detached_object_leaves_its_resource(station: Station, arm: ArmEmulator) -> None:
    async with station.working():
        await served(station, arm)
        await scale_set(station, policy={"deletion": "detach"})
        await station.delete(KIND, "front")
        await station.gone(KIND, "front")
    assert SCALE_SET in arm.resources


async def test_a_subnet_that_is_a_kind_of_its_own_survives_a_write_of_its_network(
    station: Station, arm: ArmEmulator
) -> None:
    kept = of("virtualnetworks", lambda spec: spec.update(overlay={"fields": {"properties.subnets": {"keep": True}}}))
    async with station.working():
        await served(station, arm, kept)
        await station.make(
            "VirtualNetwork",
            "net",
            parent={"name": "web"},
            location="westus",
            properties={"addressSpace": {"addressPrefixes": ["10.0.0.0/16"]}},
        )
        subnet = await station.make(
            "Subnet", "inner", parent={"name": "net"}, properties={"addressPrefix": "10.0.1.0/24"}
        )
        await station.change(
            "VirtualNetwork",
            "net",
            lambda spec: spec["properties"]["addressSpace"].update(addressPrefixes=["10.0.0.0/16", "10.1.0.0/16"]),
        )
        await station.ready("VirtualNetwork", "net")
    assert subnet.raw["status"]["resourceID"] in arm.resources
