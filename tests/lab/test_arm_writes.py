"""What the ARM emulator takes in a PUT or a PATCH, what it refuses, and what it makes of it."""

from __future__ import annotations

from typing import Any

import pytest

from tests.lab.arm_calls import ACCOUNT, NETWORK, SET, SETS, STORAGE, VMSS, VNET, account, calls, network, scale_set

RULES = [{"value": "10.0.0.1"}]


async def test_a_put_replaces_the_whole() -> None:
    async with calls() as call:
        await call("PUT", SET, scale_set(tags={"a": "1"}, properties={"singlePlacementGroup": True}))
        after = (await call("PUT", SET, {"location": "westus"})).body
        assert "tags" not in after
        assert "sku" not in after
        assert "singlePlacementGroup" not in after["properties"]


async def test_a_put_can_be_a_merge() -> None:
    async with calls() as call:
        call.arm.behave(STORAGE, put="merge")
        await call("PUT", ACCOUNT, account(accessTier="Hot", networkAcls={"ipRules": RULES}))
        await call("PUT", ACCOUNT, {"location": "westus", "sku": {"name": "Standard_ZRS"}, "properties": {}})
        after = (await call("GET", ACCOUNT)).body
        assert after["sku"]["name"] == "Standard_ZRS"
        assert after["properties"]["accessTier"] == "Hot"
        assert after["properties"]["networkAcls"]["ipRules"]
        await call(
            "PUT", ACCOUNT, {"location": "westus", "sku": {"name": "Standard_ZRS"}, "properties": {"accessTier": None}}
        )
        assert "accessTier" not in (await call("GET", ACCOUNT)).body["properties"]


async def test_a_put_can_keep_the_collections_that_it_leaves_out() -> None:
    async with calls() as call:
        call.arm.behave(STORAGE, put="keep-collections")
        await call("PUT", ACCOUNT, account(accessTier="Hot", networkAcls={"ipRules": RULES}))
        after = (await call("PUT", ACCOUNT, account(networkAcls={}))).body["properties"]
        assert "accessTier" not in after
        assert [each["value"] for each in after["networkAcls"]["ipRules"]] == ["10.0.0.1"]
        after = (await call("PUT", ACCOUNT, account(networkAcls={"ipRules": []}))).body["properties"]
        assert after["networkAcls"]["ipRules"] == []


async def test_a_network_can_keep_the_subnets_that_a_put_leaves_out() -> None:
    async with calls() as call:
        call.arm.behave(VNET, put="keep-collections")
        await call("PUT", NETWORK, network("a"))
        await call("PUT", NETWORK, {"location": "westus", "properties": {}})
        assert (await call("GET", f"{NETWORK}/subnets/a")).status == 200


async def test_null_can_be_as_if_it_were_left_out_and_left_out_kept() -> None:
    async with calls() as call:
        await call("PUT", SET, scale_set(tags={"a": "1"}))
        call.arm.behave(VMSS, null_keeps=True)
        assert (await call("PUT", SET, {"location": "westus", "tags": None})).body["tags"] == {"a": "1"}
        call.arm.behave(VMSS, null_keeps=False)
        assert "tags" not in (await call("PUT", SET, {"location": "westus", "tags": None})).body


async def test_a_password_that_is_left_out_stays_as_it_was() -> None:
    profile = {"virtualMachineProfile": {"osProfile": {"adminPassword": "hush", "adminUsername": "me"}}}
    async with calls() as call:
        made = await call("PUT", SET, scale_set(properties=profile))
        assert "adminPassword" not in str(made.body)
        await call("PUT", SET, scale_set(properties={"virtualMachineProfile": {"osProfile": {"adminUsername": "me"}}}))
        known = call.arm.resources[SET]["properties"]["virtualMachineProfile"]["osProfile"]
        assert known["adminPassword"] == "hush"


async def test_what_was_read_can_be_written_back() -> None:
    async with calls() as call:
        for path, body in ((SET, scale_set()), (NETWORK, network("a", "b")), (ACCOUNT, account(localUserPassword="x"))):
            await call("PUT", path, body)
            before = (await call("GET", path)).body
            assert (await call("PUT", path, before)).status == 200
            after = (await call("GET", path)).body
            assert after["properties"].keys() == before["properties"].keys()


@pytest.mark.parametrize(
    "change",
    [
        {"properties": {"provisioningState": "Updating"}},
        {"properties": {"uniqueId": "another"}},
        {"id": "/subscriptions/x"},
    ],
    ids=["the state", "an identifier", "the ID"],
)
async def test_a_read_only_field_with_another_value_is_refused(change: dict[str, Any]) -> None:
    async with calls() as call:
        await call("PUT", SET, scale_set())
        refused = await call("PUT", SET, {**scale_set(), **change})
        assert (refused.status, refused.code) == (400, "InvalidRequestContent")
        assert "read-only" in refused.body["error"]["message"]
        call.arm.behave(read_only="ignore")
        assert (await call("PUT", SET, {**scale_set(), **change})).body["id"] == SET
        assert call.arm.resources[SET]["properties"]["provisioningState"] == "Succeeded"


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({"sku": {}}, "LocationRequired"),
        (scale_set(sku={"capacity": [3]}), "InvalidRequestContent"),
        (scale_set(sku="large"), "InvalidRequestContent"),
        (scale_set(colour="red"), "InvalidRequestContent"),
        (scale_set(properties={"virtualMachineProfile": {"dataDisks": [{}]}}), "InvalidParameter"),
        ([], "InvalidRequestContent"),
        (b"{", "InvalidRequestContent"),
    ],
)
async def test_a_body_that_does_not_fit_is_refused(body: Any, code: str) -> None:
    async with calls() as call:
        refused = await call("PUT", SET, body)
        assert (refused.status, refused.code) == (400, code)
        assert SET not in call.arm.resources


async def test_a_field_that_nobody_knows_can_be_dropped_or_kept() -> None:
    async with calls() as call:
        call.arm.behave(unknown="drop")
        assert "colour" not in (await call("PUT", SET, scale_set(colour="red"))).body
        call.arm.behave(unknown="keep")
        assert (await call("PUT", SET, scale_set(colour="red"))).body["colour"] == "red"


async def test_what_is_given_at_creation_cannot_be_changed() -> None:
    async with calls() as call:
        await call("PUT", SET, scale_set(zones=["1"]))
        refused = await call("PUT", SET, scale_set(location="eastus", zones=["1"]))
        assert (refused.status, refused.code) == (409, "InvalidResourceLocation")
        refused = await call("PUT", SET, scale_set(zones=["2"]))
        assert (refused.status, refused.code) == (409, "PropertyChangeNotAllowed")
        assert (await call("PUT", SET, scale_set(location="West US", zones=["1"]))).status == 200
        call.arm.behave(create_only="ignore")
        assert (await call("PUT", SET, scale_set(zones=["2"]))).status == 200


async def test_a_patch_changes_what_it_names_and_replaces_the_tags_whole() -> None:
    async with calls() as call:
        await call("PUT", SET, scale_set(tags={"a": "1", "b": "2"}, properties={"singlePlacementGroup": True}))
        change = {"sku": {"capacity": 9}, "tags": {"c": "3"}, "properties": {"overprovision": False}}
        after = (await call("PATCH", SET, change)).body
        assert after["sku"] == {"name": "Standard_D2s_v5", "capacity": 9, "tier": "Standard"}
        assert after["tags"] == {"c": "3"}
        assert after["properties"]["singlePlacementGroup"] is True
        assert after["properties"]["overprovision"] is False
        assert (
            "singlePlacementGroup"
            not in (await call("PATCH", SET, {"properties": {"singlePlacementGroup": None}})).body
        )


async def test_null_in_a_patch_removes_and_a_list_in_a_patch_replaces() -> None:
    async with calls() as call:
        await call("PUT", ACCOUNT, account(accessTier="Hot", networkAcls={"ipRules": RULES}))
        change = {"properties": {"accessTier": None, "networkAcls": {"ipRules": [{"value": "10.0.0.2"}]}}}
        after = (await call("PATCH", ACCOUNT, change)).body["properties"]
        assert "accessTier" not in after
        assert [each["value"] for each in after["networkAcls"]["ipRules"]] == ["10.0.0.2"]


async def test_a_patch_takes_only_what_its_own_type_has() -> None:
    async with calls() as call:
        await call("PUT", NETWORK, network("a"))
        refused = await call("PATCH", NETWORK, {"properties": {"subnets": []}})
        assert (refused.status, refused.code) == (400, "InvalidRequestContent")
        call.arm.behave(patch_unknown="ignore")
        after = await call("PATCH", NETWORK, {"tags": {"a": "1"}, "properties": {"subnets": []}})
        assert after.body["tags"] == {"a": "1"}
        assert len(after.body["properties"]["subnets"]) == 1
        assert (await call("PATCH", f"{SETS}/none", {})).code == "ResourceNotFound"


async def test_a_write_with_the_etag_that_is_no_longer_the_one_is_refused() -> None:
    async with calls() as call:
        await call("PUT", SET, scale_set())
        etag = (await call("GET", SET)).headers["ETag"]
        call.arm.scale(SET, 5)
        for method, body in (("PUT", scale_set()), ("PATCH", {"tags": {}}), ("DELETE", None)):
            refused = await call(method, SET, body, If_Match=etag)
            assert (refused.status, refused.code) == (412, "PreconditionFailed")
        call.arm.behave(etag_mismatch=409)
        refused = await call("PUT", SET, scale_set(), If_Match=etag)
        assert (refused.status, refused.code) == (409, "EtagMismatch")
        assert (await call("PUT", SET, scale_set(), If_Match=(await call("GET", SET)).headers["ETag"])).status == 200


async def test_a_creation_can_ask_that_nothing_is_there_and_a_change_that_something_is() -> None:
    async with calls() as call:
        assert (await call("PUT", SET, scale_set(), If_Match="*")).status == 412
        assert (await call("PUT", SET, scale_set(), If_None_Match="*")).status == 201
        assert (await call("PUT", SET, scale_set(), If_None_Match="*")).status == 412


async def test_there_can_be_no_etags() -> None:
    async with calls() as call:
        call.arm.behave(etags=False)
        await call("PUT", SET, scale_set())
        seen = await call("GET", SET)
        assert "ETag" not in seen.headers
        assert "etag" not in seen.body
        assert (await call("PUT", SET, scale_set(), If_Match='"no"')).status == 200


async def test_an_update_can_give_a_resource_another_name() -> None:
    async with calls() as call:
        call.arm.behave(VMSS, renames=True)
        await call("PUT", SET, scale_set())
        moved = (await call("PUT", SET, scale_set(5))).body["id"]
        assert moved != SET
        assert (await call("GET", SET)).status == 404
        assert (await call("GET", moved)).body["sku"]["capacity"] == 5
        assert (await call("PUT", moved, scale_set(6))).body["id"] not in (SET, moved)


@pytest.mark.parametrize("method", ["PUT", "GET", "DELETE"])
async def test_a_name_that_the_document_does_not_allow_is_refused(method: str) -> None:
    async with calls() as call:
        for path in (f"{SETS}/-web", ACCOUNT.replace("shopdata", "Shop"), f"{NETWORK}/subnets/{'a' * 81}"):
            refused = await call(method, path, {} if method == "PUT" else None)
            assert (refused.status, refused.code) == (400, "InvalidResourceName")


async def test_the_deletion_of_nothing_can_be_refused() -> None:
    async with calls() as call:
        call.arm.behave(delete_missing=404)
        assert (await call("DELETE", SET)).code == "ResourceNotFound"
