"""What a read of the ARM emulator shows, and how that differs from what was written when it is told to."""

from __future__ import annotations

from typing import Any

import pytest

from tests.lab.arm_calls import ACCOUNT, NETWORK, SET, SETS, VMSS, account, calls, network, scale_set
from trimtab.lab.arm import Late, Normalise

PASSWORD = {"virtualMachineProfile": {"osProfile": {"adminUsername": "me", "adminPassword": "hush"}}}


@pytest.mark.parametrize(
    ("written", "region", "shown"),
    [
        ("West US", "name", "westus"),
        ("westus", "display", "West US"),
        ("West US", "", "West US"),
        ("moon", "display", "moon"),
    ],
)
async def test_a_region_has_two_names(written: str, region: Any, shown: str) -> None:
    async with calls() as call:
        call.arm.behave(normalise=Normalise(region=region))
        assert (await call("PUT", SET, scale_set(location=written))).body["location"] == shown
        assert (await call("GET", SET)).body["location"] == shown


@pytest.mark.parametrize(
    ("how", "shown"), [("document", "Manual"), ("lower", "manual"), ("upper", "MANUAL"), ("", "mAnual")]
)
async def test_enums_have_the_case_that_the_service_likes(how: Any, shown: str) -> None:
    async with calls() as call:
        call.arm.behave(normalise=Normalise(enums=how))
        made = await call("PUT", SET, scale_set(properties={"upgradePolicy": {"mode": "mAnual"}}))
        assert made.body["properties"]["upgradePolicy"]["mode"] == shown


async def test_the_group_in_every_id_can_be_in_capitals() -> None:
    group = {"networkSecurityGroup": {"id": f"{SETS.partition('/providers')[0]}/providers/x/y/z"}}
    async with calls() as call:
        await call("PUT", NETWORK, network("a"))
        await call("PUT", f"{NETWORK}/subnets/a", {"properties": group})
        call.arm.behave(normalise=Normalise(ids="upper"))
        seen = (await call("GET", f"{NETWORK}/subnets/a")).body
        assert "/resourceGroups/SHOP/" in seen["id"]
        assert "/resourceGroups/SHOP/" in seen["properties"]["networkSecurityGroup"]["id"]
        assert "/resourceGroups/SHOP/" in (await call("GET", NETWORK)).body["properties"]["subnets"][0]["id"]


@pytest.mark.parametrize(
    ("how", "shown"), [("drop", {}), ("empty", {"addressSpace": {}}), ("keep", {"addressSpace": None})]
)
async def test_null_comes_back_as_nothing_as_something_empty_or_as_null(how: Any, shown: dict[str, Any]) -> None:
    async with calls() as call:
        call.arm.behave(normalise=Normalise(nulls=how))
        made = await call("PUT", NETWORK, {"location": "westus", "properties": {"addressSpace": None}})
        assert {name: value for name, value in made.body["properties"].items() if name == "addressSpace"} == shown


async def test_lists_that_were_not_written_can_be_there_and_empty_ones_not() -> None:
    async with calls() as call:
        call.arm.behave(normalise=Normalise(empties="fill"))
        seen = (await call("PUT", NETWORK, {"location": "westus", "properties": {"addressSpace": {}}})).body
        assert seen["properties"]["subnets"] == []
        assert seen["properties"]["addressSpace"] == {"addressPrefixes": []}
        call.arm.behave(normalise=Normalise(empties="drop"))
        await call(
            "PUT", NETWORK, {"location": "westus", "tags": {}, "properties": {"addressSpace": {"addressPrefixes": []}}}
        )
        seen = (await call("GET", NETWORK)).body
        assert "tags" not in seen
        assert seen["properties"]["addressSpace"] == {}


async def test_slashes_at_the_ends_can_be_cut_off() -> None:
    async with calls() as call:
        call.arm.behave(normalise=Normalise(slashes=True))
        assert (await call("PUT", SET, scale_set(tags={"path": "/a/b/"}))).body["tags"] == {"path": "a/b"}
        assert (await call("GET", SET)).body["id"] == SET


async def test_a_sku_can_be_filled_in() -> None:
    async with calls() as call:
        call.arm.behave(normalise=Normalise(sku=True))
        await call("PUT", ACCOUNT, {**account(), "sku": {"name": "premium_LRS"}})
        assert (await call("GET", ACCOUNT)).body["sku"] == {"name": "Premium_LRS", "tier": "Premium"}


@pytest.mark.parametrize(("how", "shown"), [("omit", None), ("mask", "***"), ("empty", ""), ("show", "hush")])
async def test_secrets_are_left_out_masked_emptied_or_shown(how: Any, shown: str | None) -> None:
    async with calls() as call:
        call.arm.behave(normalise=Normalise(secrets=how))
        made = await call("PUT", SET, scale_set(properties=PASSWORD))
        assert made.body["properties"]["virtualMachineProfile"]["osProfile"].get("adminPassword") == shown
        listed = (await call("GET", SETS)).body["value"][0]
        assert listed["properties"]["virtualMachineProfile"]["osProfile"].get("adminPassword") == shown


async def test_a_mask_that_is_written_back_is_the_password_from_then_on() -> None:
    async with calls() as call:
        call.arm.behave(normalise=Normalise(secrets="mask"))
        await call("PUT", SET, scale_set(properties=PASSWORD))
        await call("PUT", SET, (await call("GET", SET)).body)
        assert call.arm.resources[SET]["properties"]["virtualMachineProfile"]["osProfile"]["adminPassword"] == "***"


async def test_a_child_can_be_named_with_its_parent() -> None:
    async with calls() as call:
        call.arm.behave(normalise=Normalise(child_names=True))
        await call("PUT", NETWORK, network("a"))
        assert (await call("GET", f"{NETWORK}/subnets/a")).body["name"] == "main/a"
        assert (await call("GET", NETWORK)).body["name"] == "main"


async def test_a_field_can_be_hidden_and_a_type_be_in_capitals() -> None:
    async with calls() as call:
        call.arm.behave(normalise=Normalise(hidden=("properties.overprovision", "location"), uppercase_type=True))
        seen = (await call("PUT", SET, scale_set())).body
        assert "overprovision" not in seen["properties"]
        assert "location" not in seen
        assert seen["type"] == VMSS.upper()
        assert call.arm.resources[SET]["properties"]["overprovision"] is True


async def test_the_service_can_add_a_value_some_time_after_the_write() -> None:
    async with calls() as call:
        call.arm.behave(VMSS, late=(Late(path="properties.priority", value="Regular", reads=2),))
        await call("PUT", SET, scale_set())
        seen = [(await call("GET", SET)).body["properties"].get("priority") for _ in range(4)]
        assert seen == [None, None, "Regular", "Regular"]


async def test_a_read_right_after_a_creation_can_find_nothing() -> None:
    async with calls() as call:
        call.arm.behave(VMSS, missing_reads=2)
        await call("PUT", SET, scale_set())
        assert (await call("GET", SETS)).body["value"] == []
        assert [(await call("GET", SET)).status for _ in range(3)] == [404, 404, 200]


async def test_a_read_right_after_a_change_can_show_what_was_before() -> None:
    async with calls() as call:
        call.arm.behave(VMSS, stale_reads=1)
        await call("PUT", SET, scale_set(3))
        await call("PUT", SET, scale_set(4))
        assert [(await call("GET", SET)).body["sku"]["capacity"] for _ in range(2)] == [3, 4]


async def test_a_read_of_what_is_known_already_is_304() -> None:
    async with calls() as call:
        await call("PUT", SET, scale_set())
        etag = (await call("GET", SET)).headers["ETag"]
        seen = await call("GET", SET, If_None_Match=etag)
        assert (seen.status, seen.body) == (304, b"")
        call.arm.scale(SET, 9)
        assert (await call("GET", SET, If_None_Match=etag)).status == 200


async def test_a_list_can_show_less_than_a_read() -> None:
    async with calls() as call:
        await call("PUT", SET, scale_set(tags={"a": "1"}))
        everything = (await call("GET", f"{SETS.partition('/providers')[0]}/resources")).body["value"]
        assert "properties" in (await call("GET", SETS)).body["value"][0]
        call.arm.behave(brief_lists=True)
        (listed,) = (await call("GET", SETS)).body["value"]
        assert (listed["id"], listed["tags"], "properties" in listed) == (SET, {"a": "1"}, False)
        assert everything == [listed]


async def test_one_type_can_behave_otherwise_than_the_rest() -> None:
    async with calls() as call:
        call.arm.behave(VMSS, normalise=Normalise(region="display"))
        await call("PUT", SET, scale_set())
        await call("PUT", NETWORK, network())
        assert (await call("GET", SET)).body["location"] == "West US"
        assert (await call("GET", NETWORK)).body["location"] == "westus"


async def test_a_switch_that_is_turned_shows_at_once() -> None:
    async with calls() as call:
        await call("PUT", SET, scale_set())
        assert (await call("GET", SET)).body["location"] == "westus"
        call.arm.behave(normalise=Normalise(region="display"))
        assert (await call("GET", SET)).body["location"] == "West US"


async def test_a_word_that_is_no_position_of_a_switch_is_refused() -> None:
    async with calls() as call:
        with pytest.raises(ValueError, match="put"):
            call.arm.behave(put="sometimes")
