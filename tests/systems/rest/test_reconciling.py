"""The step: what is written when, and what is not, on the ARM emulator and both API servers."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.systems.rest.arm_kit import (
    DOCUMENT,
    GROUP,
    KIND,
    SCALE_SET,
    SPEC,
    SUBSCRIPTION,
    of,
    scale_set,
    scale_sets,
    served,
    writes,
)
from tests.systems.rest.station import Document, Station, SwiftClock, condition_of
from trimtab.lab.arm import INSTANT, ArmEmulator, Dropped, ErrorInside, Html, Late, Normalise, Refused, Truncated, shape
from trimtab.systems.rest.reconciling.subject import WAKE

STORAGE = f"{GROUP}/providers/Microsoft.Storage/storageAccounts/files"


@pytest.fixture
async def arm() -> AsyncIterator[ArmEmulator]:
    async with ArmEmulator([DOCUMENT], behaviour=INSTANT) as emulator:
        yield emulator


async def later(station: Station) -> None:
    """It is time to look again."""
    await station.leap(700)


# --- drift ---------------------------------------------------------------------------------------------------------------


async def test_drift_is_corrected_with_the_next_look(station: Station, arm: ArmEmulator) -> None:
    async with station.working():
        await served(station, arm)
        await scale_set(station)
        arm.scale(SCALE_SET, 1)
        await later(station)
        await station.until(KIND, "front", lambda d: d["status"]["sync"].get("corrected"))
        await station.ready(KIND, "front")
    assert writes(arm)[1:] == [("PATCH", {"sku": {"capacity": 3}})]


async def test_drift_that_is_only_reported_is_named_and_left(station: Station, arm: ArmEmulator) -> None:
    async with station.working():
        await served(station, arm)
        await scale_set(station, policy={"drift": "report"})
        arm.scale(SCALE_SET, 1)
        await later(station)
        found = await station.condition(KIND, "front", "Drifted", "True")
    assert "sku.capacity" in condition_of(found.raw, "Drifted")["message"]
    assert len(writes(arm)) == 1


async def test_what_nobody_asked_for_is_no_drift(station: Station, arm: ArmEmulator) -> None:
    async with station.working():
        await served(station, arm)
        await scale_set(station)
        arm.change(SCALE_SET, lambda body: body["tags"].update(theirs="1"))
        await later(station)
        found = await station.until(KIND, "front", lambda d: d["status"]["observed"]["tags"].get("theirs"))
    assert condition_of(found.raw, "Drifted")["status"] == "False"
    assert len(writes(arm)) == 1


async def test_what_the_service_answers_otherwise_is_known_and_no_drift(station: Station, arm: ArmEmulator) -> None:
    arm.behave(normalise=Normalise(region="display", enums="upper", ids="upper", sku=True))
    async with station.working():
        await served(station, arm)
        await scale_set(station)
        for _ in range(2):
            await later(station)
            arm.change(SCALE_SET, lambda body: body["tags"].update(moved=str(station.clock.monotonic())))
            moved = arm.resources[SCALE_SET]["tags"]["moved"]
            await station.until(KIND, "front", lambda d, m=moved: d["status"]["observed"]["tags"].get("moved") == m)
    assert len(writes(arm)) == 1


async def test_drift_that_comes_back_each_time_is_left_and_said(station: Station, arm: ArmEmulator) -> None:
    async with station.working():
        await served(station, arm, scale_sets(lambda spec: spec.update(refresh={"interval": "1m"})))
        await scale_set(station)
        for times in range(3):
            arm.scale(SCALE_SET, 10 + times)
            await station.leap(61)
            await station.until(
                KIND,
                "front",
                lambda d, n=times: len(d["status"]["sync"].get("corrected", {}).get("sku.capacity", ())) > n,
            )
            await station.ready(KIND, "front")
        arm.scale(SCALE_SET, 20)
        await station.leap(61)
        found = await station.condition(KIND, "front", "Drifted", "True", "DriftContested")
    assert "sku.capacity" in condition_of(found.raw, "Drifted")["message"]
    assert arm.resources[SCALE_SET]["sku"]["capacity"] == 20


# --- plan, create-only, adoption ------------------------------------------------------------------------------------------


async def test_plan_mode_says_what_would_be_done_and_does_nothing(station: Station, arm: ArmEmulator) -> None:
    async with station.working():
        await served(station, arm)
        await scale_set(station)
        await station.change(KIND, "front", lambda spec: spec.update(policy={"mode": "plan"}))
        await station.change(KIND, "front", lambda spec: spec["sku"].update(capacity=6))
        found = await station.condition(KIND, "front", "Ready", "False", "Planned")
    plan = found.raw["status"]["plan"]
    assert (plan["action"], plan["method"]) == ("patch", "PATCH")
    assert [(change["path"], change["why"], change["new"]) for change in plan["changes"]] == [
        ("sku.capacity", "changed", 6)
    ]
    assert len(writes(arm)) == 1


async def test_a_plan_of_what_is_not_there_is_a_creation(station: Station, arm: ArmEmulator) -> None:
    async with station.working():
        await served(station, arm)
        await station.create(station.document(KIND, "front", {**SPEC, "policy": {"mode": "plan"}}))
        found = await station.condition(KIND, "front", "Ready", "False", "Planned")
    assert found.raw["status"]["plan"]["action"] == "create"
    assert not found.metadata.finalizers
    assert writes(arm) == []


async def test_a_changed_create_only_field_blocks_and_is_named(station: Station, arm: ArmEmulator) -> None:
    async with station.working():
        await served(station, arm)
        await scale_set(station)
        await station.change(KIND, "front", lambda spec: spec.update(location="eastus"))
        found = await station.condition(KIND, "front", "Stalled", "True", "ImmutableChanged")
    assert "location" in condition_of(found.raw, "Stalled")["message"]
    assert len(writes(arm)) == 1


async def test_a_changed_create_only_field_recreates_when_the_policy_says_so(
    station: Station, arm: ArmEmulator
) -> None:
    async with station.working():
        await served(station, arm)
        await scale_set(station, policy={"createOnly": "recreate"})
        await station.change(KIND, "front", lambda spec: spec.update(location="eastus"))
        await station.ready(KIND, "front")
    assert [method for method, _ in writes(arm)] == ["PUT", "DELETE", "PUT"]
    assert arm.resources[SCALE_SET]["location"] == "eastus"


async def test_what_exists_already_is_not_taken_unasked(station: Station, arm: ArmEmulator) -> None:
    arm.put(SCALE_SET, {"location": "westus", "sku": {"name": "Standard_D2_v3", "capacity": 8}})
    async with station.working():
        await station.serve(arm.url, DOCUMENT, parameters={"subscriptionId": SUBSCRIPTION})
        await station.make("ResourceGroup", "web", location="westus", policy={"adopt": "adopt"})
        await station.create(station.document(KIND, "front", SPEC))
        found = await station.condition(KIND, "front", "Ready", "False", "AlreadyExists")
        assert not found.metadata.finalizers
        await station.delete(KIND, "front")
        await station.gone(KIND, "front")
    assert arm.resources[SCALE_SET]["sku"]["capacity"] == 8
    assert writes(arm) == []


async def test_what_exists_is_made_what_the_spec_says_when_asked(station: Station, arm: ArmEmulator) -> None:
    arm.put(SCALE_SET, {"location": "westus", "sku": {"name": "Standard_D2_v3", "capacity": 8}})
    async with station.working():
        await station.serve(arm.url, DOCUMENT, parameters={"subscriptionId": SUBSCRIPTION})
        await station.make("ResourceGroup", "web", location="westus", policy={"adopt": "adopt"})
        await scale_set(station, policy={"adopt": "overwrite"})
    assert arm.resources[SCALE_SET]["sku"]["capacity"] == 3


async def test_a_lost_status_is_adoption_and_no_write(station: Station, arm: ArmEmulator) -> None:
    async with station.working():
        await served(station, arm)
        made = await scale_set(station)
    arm.scale(SCALE_SET, 11)
    document = {**made.raw, "status": {"observedGeneration": 0}}
    await station.client.patch(await station.get(KIND, "front"), type(made)(document), subresource="status")
    async with station.working():
        found = await station.ready(KIND, "front")
    assert found.raw["status"]["sync"]["knownDifferences"] == {"sku.capacity": "11"}
    assert len(writes(arm)) == 1


async def test_what_someone_deleted_is_made_again(station: Station, arm: ArmEmulator) -> None:
    async with station.working():
        await served(station, arm)
        await scale_set(station)
        arm.remove(SCALE_SET)
        await later(station)
        await station.until(KIND, "front", lambda d: SCALE_SET in arm.resources)
        await station.ready(KIND, "front")
    assert [method for method, _ in writes(arm)] == ["PUT", "PUT"]


# --- merge PUT, removal, secrets -------------------------------------------------------------------------------------------


async def test_what_a_patch_does_not_take_goes_by_a_put_that_keeps_all_else(station: Station, arm: ArmEmulator) -> None:
    async with station.working():
        await served(station, arm)
        await station.make(
            "VirtualNetwork",
            "net",
            parent={"name": "web"},
            location="westus",
            properties={"addressSpace": {"addressPrefixes": ["10.0.0.0/16"]}},
        )
        network = f"{GROUP}/providers/Microsoft.Network/virtualNetworks/net"
        arm.change(network, lambda body: body.setdefault("tags", {}).update(theirs="1"))
        await station.change(
            "VirtualNetwork",
            "net",
            lambda spec: spec["properties"]["addressSpace"].update(addressPrefixes=["10.0.0.0/16", "10.1.0.0/16"]),
        )
        await station.ready("VirtualNetwork", "net")
    sent = [asked for asked in arm.requests if asked.path == network and asked.method in ("PUT", "PATCH")]
    assert [asked.method for asked in sent] == ["PUT", "PUT"]
    assert arm.resources[network]["tags"] == {"theirs": "1"}
    assert "provisioningState" not in sent[1].body["properties"]


async def test_a_secret_is_sent_and_never_shown(station: Station, arm: ArmEmulator) -> None:
    secret = "correct horse battery staple"
    async with station.working():
        await served(station, arm)
        await station.secret("login", password=secret)
        made = await storage(station)
        assert secret not in str(made.raw)
        await station.secret("login", password="another one, much longer")
        await station.until(
            "StorageAccount", "files", lambda d: _holds(arm.resources[STORAGE], "another one, much longer")
        )
        done = await station.ready("StorageAccount", "files")
    assert "another one" not in str(done.raw)
    assert not any("another one" in message or secret in message for _, message in await station.events("files"))


async def test_a_reference_to_a_secret_that_is_not_there_waits_for_it(station: Station, arm: ArmEmulator) -> None:
    async with station.working():
        await served(station, arm)
        await station.create(station.document("StorageAccount", "files", STORAGE_SPEC))
        found = await station.condition("StorageAccount", "files", "ReferencesResolved", "False")
        assert "login" in condition_of(found.raw, "ReferencesResolved")["message"]
        await station.secret("login", password="long enough to be one")
        await station.ready("StorageAccount", "files")


async def test_a_child_waits_for_its_parent(station: Station, arm: ArmEmulator) -> None:
    async with station.working():
        await station.serve(arm.url, DOCUMENT, parameters={"subscriptionId": SUBSCRIPTION})
        await station.create(station.document(KIND, "front", SPEC))
        await station.condition(KIND, "front", "Ready", "False", "ParentNotReady")
        await station.make("ResourceGroup", "web", location="westus")
        await station.ready(KIND, "front")


async def test_keys_are_exported_to_a_secret(station: Station, arm: ArmEmulator) -> None:
    def exported(spec: Document) -> None:
        read = spec["operations"]["read"]
        call = {"method": "POST", "path": read["path"] + "/listKeys", "query": read.get("query", {})}
        spec["exports"] = [{"to": "Secret", "name": "{name}-keys", "data": {"key": "keys[0].value"}, "operation": call}]

    async with station.working():
        await served(station, arm, of("storageaccounts", exported))
        await station.secret("login", password="long enough to be one")
        made = await storage(station)
        from trimtab.model.kubernetes import Secret

        found = await station.client.get(Secret, "files-keys", station.namespace)
    assert found.data["key"]
    assert found.metadata.owner_references[0].uid == made.metadata.uid


STORAGE_SPEC: Document = {
    "parent": {"name": "web"},
    "location": "westus",
    "sku": {"name": "Standard_LRS"},
    "kind": "StorageV2",
    "properties": {"localUserPassword": {"secretRef": {"name": "login", "key": "password"}}},
}


async def storage(station: Station) -> Any:
    return await station.make("StorageAccount", "files", **STORAGE_SPEC)


def _holds(value: Any, wanted: str) -> bool:
    if isinstance(value, dict):
        return any(_holds(each, wanted) for each in value.values())
    return value == wanted


# --- operations and faults --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text", ["201+AAO nonterminal", "202+LOC empty", "200 nonterminal", "202+AAO+LOC empty", "200+AAO terminal"]
)
async def test_a_creation_that_takes_its_time_is_followed_to_its_end(
    station: Station, arm: ArmEmulator, text: str
) -> None:
    station.clock = SwiftClock(60)
    async with station.working():
        await served(station, arm)
        arm.behave(
            "Microsoft.Compute/virtualMachineScaleSets",
            asynchronous=True,
            operations={"create": shape(text, polls=2, retry_after=1)},
        )
        await station.create(station.document(KIND, "front", SPEC))
        done = await station.ready(KIND, "front")
    assert "operation" not in done.raw["status"]["sync"]
    assert len(writes(arm)) == 1


async def test_a_change_during_an_operation_follows_it(station: Station, arm: ArmEmulator) -> None:
    station.clock = SwiftClock(60)
    async with station.working():
        await served(station, arm)
        await scale_set(station)
        arm.behave(
            "Microsoft.Compute/virtualMachineScaleSets",
            asynchronous=True,
            operations={"patch": shape("202+LOC empty", polls=2, retry_after=60)},
        )
        await station.change(KIND, "front", lambda spec: spec["sku"].update(capacity=5))
        await station.until(KIND, "front", lambda d: d["status"]["sync"].get("operation"))
        await station.change(KIND, "front", lambda spec: spec["tags"].update(tag2="more"))
        await station.ready(KIND, "front")
    assert arm.resources[SCALE_SET]["tags"] == {"tag1": "value", "tag2": "more"}
    assert [method for method, _ in writes(arm)] == ["PUT", "PATCH", "PATCH"]


async def test_a_failed_operation_says_why(station: Station, arm: ArmEmulator) -> None:
    async with station.working():
        await served(station, arm)
        failing = shape(
            "201+AAO nonterminal", polls=0, outcome="Failed", error_code="QuotaExceeded", error_message="no cores left"
        )
        arm.behave("Microsoft.Compute/virtualMachineScaleSets", asynchronous=True, operations={"create": failing})
        await station.create(station.document(KIND, "front", SPEC))
        await station.until(KIND, "front", lambda d: (d.get("status") or {}).get("sync", {}).get("operation"))
        await station.leap(60)
        found = await station.until(
            KIND, "front", lambda d: "no cores left" in condition_of(d, "Ready").get("message", "")
        )
        assert condition_of(found.raw, "Ready")["status"] == "False"
        await station.leap(3700)
        found = await station.until(
            KIND, "front", lambda d: condition_of(d, "Ready").get("reason") == "ProvisioningFailed"
        )
    assert "it is Failed: " in condition_of(found.raw, "Ready")["message"]
    assert "no cores left" in condition_of(found.raw, "Ready")["message"]  # the resource itself does not say it


@pytest.mark.parametrize(
    "fault", [Html(), Truncated(), ErrorInside("Broken", "not today"), Refused(500, "InternalServerError", "oops")]
)
async def test_an_answer_that_makes_no_sense_is_said_and_tried_again(
    station: Station, arm: ArmEmulator, fault: Any
) -> None:
    async with station.working():
        await served(station, arm)
        arm.fault(fault, "GET", "virtualMachineScaleSets/front", times=10)
        await station.create(station.document(KIND, "front", SPEC))
        await station.until(KIND, "front", lambda d: condition_of(d, "Ready").get("status") in ("False", "Unknown"))
        arm.clear_faults()
        await station.leap(3700)
        await station.ready(KIND, "front")
    assert [method for method, _ in writes(arm)] == ["PUT"]


async def test_a_lost_answer_to_a_creation_makes_no_second_one(station: Station, arm: ArmEmulator) -> None:
    async with station.working():
        await served(station, arm)
        arm.fault(Dropped(after_effect=True), "PUT", "virtualMachineScaleSets/front")
        await station.create(station.document(KIND, "front", SPEC))
        await station.leap(60)
        await station.ready(KIND, "front")
    assert [method for method, _ in writes(arm)] == ["PUT"]


async def test_an_unreachable_endpoint_leaves_ready_unknown(station: Station, arm: ArmEmulator) -> None:
    async with station.working():
        await served(station, arm)
        await scale_set(station)
        arm.fault(Dropped(), "", "virtualMachineScaleSets", times=1000)
        await later(station)
        await station.condition(KIND, "front", "Ready", "Unknown", "Unreachable")
        arm.clear_faults()
        await station.leap(60)
        await station.ready(KIND, "front")


async def test_a_default_that_comes_late_is_no_drift(station: Station, arm: ArmEmulator) -> None:
    async with station.working():
        await served(station, arm)
        arm.behave(late=(Late(path="properties.late", value=True, reads=1),))
        await scale_set(station)
        await later(station)
        found = await station.until(KIND, "front", lambda d: d["status"]["observed"].get("properties", {}).get("late"))
    assert condition_of(found.raw, "Drifted")["status"] == "False"
    assert len(writes(arm)) == 1


async def test_another_name_is_another_resource_and_is_refused(station: Station, arm: ArmEmulator) -> None:
    async with station.working():
        await served(station, arm)
        await scale_set(station)
        await station.change(KIND, "front", lambda spec: spec.update(name="elsewhere"))
        await station.condition(KIND, "front", "Stalled", "True", "ImmutableChanged")
        await station.change(KIND, "front", lambda spec: spec.pop("name"))
        await station.ready(KIND, "front")
    assert len(writes(arm)) == 1


async def test_a_paused_object_shows_what_is_there_and_writes_nothing(station: Station, arm: ArmEmulator) -> None:
    async with station.working():
        await served(station, arm)
        await scale_set(station)
        arm.scale(SCALE_SET, 1)
        await station.change(KIND, "front", lambda spec: spec.update(policy={"paused": True}))
        await station.condition(KIND, "front", "Synced", "Unknown", "Paused")
        found = await station.get(KIND, "front")
    assert found.raw["status"]["observed"]["sku"]["capacity"] == 1
    assert len(writes(arm)) == 1


async def test_what_someone_else_is_changing_is_waited_for(station: Station, arm: ArmEmulator) -> None:
    async with station.working():
        await served(station, arm)
        await scale_set(station)
        arm.change(SCALE_SET, lambda body: body["properties"].update(provisioningState="Updating"))
        await station.change(KIND, "front", lambda spec: spec["sku"].update(capacity=5))
        await station.condition(KIND, "front", "Progressing", "True", "Waiting")
        assert len(writes(arm)) == 1
        arm.change(SCALE_SET, lambda body: body["properties"].update(provisioningState="Succeeded"))
        await station.leap(61)
        await station.ready(KIND, "front")
    assert writes(arm)[1:] == [("PATCH", {"sku": {"capacity": 5}})]


async def test_a_resource_that_another_object_manages_is_not_taken(station: Station, arm: ArmEmulator) -> None:
    async with station.working():
        await served(station, arm)
        await scale_set(station)
        spec = {key: value for key, value in SPEC.items() if key != "parent"}
        await station.create(station.document(KIND, "second", {**spec, "resourceID": SCALE_SET.upper()}))
        await station.condition(KIND, "second", "Stalled", "True", "AlreadyManaged")
        await station.delete(KIND, "second")
        await station.gone(KIND, "second")
    assert SCALE_SET in arm.resources


async def test_a_parent_goes_after_its_parts_and_takes_them_along(station: Station, arm: ArmEmulator) -> None:
    async with station.working():
        await served(station, arm)
        await scale_set(station)
        arm.log.clear()
        await station.delete("ResourceGroup", "web")
        await station.gone("ResourceGroup", "web")
        await station.gone(KIND, "front")
    assert [asked.path for asked in arm.requests if asked.method == "DELETE"] == [SCALE_SET, GROUP]


@pytest.mark.parametrize("policy", [{"deletion": "detach"}, {"mode": "plan"}], ids=str)
async def test_a_part_that_must_stay_keeps_the_whole(station: Station, arm: ArmEmulator, policy: Document) -> None:
    async with station.working():
        await served(station, arm)
        await scale_set(station)
        await station.change(KIND, "front", lambda spec: spec.update(policy=policy))
        await station.delete("ResourceGroup", "web")
        found = await station.until(
            "ResourceGroup", "web", lambda d: condition_of(d, "Stalled").get("reason") == "ChildrenDetached"
        )
        assert "front" in condition_of(found.raw, "Stalled")["message"]
        assert SCALE_SET in arm.resources
        await station.change("ResourceGroup", "web", lambda spec: spec.update(policy={"deletion": "detach"}))
        await station.gone("ResourceGroup", "web")
    assert SCALE_SET in arm.resources


async def test_what_the_service_calls_failed_is_written_again_after_a_while(station: Station, arm: ArmEmulator) -> None:
    async with station.working():
        await served(station, arm)
        await scale_set(station)
        arm.change(SCALE_SET, lambda body: body["properties"].update(provisioningState="Failed"))
        await later(station)
        await station.condition(KIND, "front", "Ready", "False", "ProvisioningFailed")
        assert len(writes(arm)) == 1
        await station.leap(1900)
        await station.ready(KIND, "front")
    assert [method for method, _ in writes(arm)] == ["PUT", "PUT"]


async def test_a_secret_that_the_service_repeats_elsewhere_is_in_no_status(station: Station, arm: ArmEmulator) -> None:
    secret = "correct horse battery staple"
    async with station.working():
        await served(station, arm)
        await station.secret("login", password=secret)
        made = await station.make("StorageAccount", "files", **STORAGE_SPEC, tags={"note": "mine"})
        assert secret not in str(made.raw)
        arm.change(STORAGE, lambda body: body["tags"].update(note=secret))
        await station.change("StorageAccount", "files", lambda spec: spec.update(policy={"mode": "plan"}))
        planned = await station.condition("StorageAccount", "files", "Ready", "False", "Planned")
    assert secret not in str(planned.raw)


async def test_a_read_that_makes_no_sense_is_tried_again_soon(station: Station, arm: ArmEmulator) -> None:
    async with station.working():
        await served(station, arm)
        await scale_set(station)
        arm.fault(ErrorInside("Broken", "not today"), "GET", "virtualMachineScaleSets/front", times=1)
        await station.annotate(KIND, "front", **{WAKE: "now"})
        await station.condition(KIND, "front", "Ready", "Unknown", "Unreachable")
        await station.leap(31)
        await station.ready(KIND, "front")


async def test_a_spec_that_cannot_be_remembered_is_refused_before_it_is_sent(
    station: Station, arm: ArmEmulator
) -> None:
    async with station.working():
        await served(station, arm)
        tags = {f"tag{number}": "x" * 250 for number in range(1200)}
        await station.create(station.document(KIND, "front", {**SPEC, "tags": tags}))
        await station.condition(KIND, "front", "Stalled", "True", "SpecTooLarge")
    assert writes(arm) == []
