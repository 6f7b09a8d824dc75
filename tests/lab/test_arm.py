"""The ARM emulator's resources: what exists, where it hangs, what a list shows, what the service adds."""

from __future__ import annotations

import json

import pytest

from tests.lab.arm_calls import (
    ACCOUNT,
    DOCUMENT,
    GROUP,
    NETWORK,
    SET,
    SETS,
    SUBSCRIPTION,
    VMSS,
    account,
    calls,
    network,
    scale_set,
)
from trimtab.lab.arm import ArmEmulator


async def test_a_resource_is_created_read_changed_and_deleted() -> None:
    async with calls() as call:
        assert (await call("GET", SET)).code == "ResourceNotFound"
        assert (await call("PUT", SET, scale_set())).status == 201
        assert (await call("GET", SET)).body["sku"]["capacity"] == 3
        assert (await call("PUT", SET, scale_set(4))).status == 200
        assert (await call("GET", SET)).body["sku"]["capacity"] == 4
        assert (await call("HEAD", SET)).status == 204
        assert (await call("DELETE", SET)).status == 200
        assert (await call("HEAD", SET)).status == 404
        assert (await call("DELETE", SET)).status == 204


async def test_the_service_says_by_itself_who_a_resource_is_and_how_it_is() -> None:
    async with calls() as call:
        made = (await call("PUT", SET, scale_set())).body
        assert (made["id"], made["name"], made["type"]) == (SET, "web", VMSS)
        assert made["properties"]["provisioningState"] == "Succeeded"
        assert {"uniqueId", "timeCreated"} <= set(made["properties"])
        assert made["etag"]
        assert made["systemData"]["createdBy"]


async def test_defaults_of_the_document_are_filled_in() -> None:
    async with calls() as call:
        made = (await call("PUT", SET, scale_set(properties={"upgradePolicy": {}}))).body
        assert made["sku"]["tier"] == "Standard"
        assert made["properties"]["overprovision"] is True
        assert made["properties"]["upgradePolicy"] == {"mode": "Manual"}


async def test_what_the_service_added_stays_when_it_is_changed() -> None:
    async with calls() as call:
        before = (await call("PUT", SET, scale_set())).body["properties"]
        after = (await call("PUT", SET, {"location": "westus"})).body["properties"]
        assert (after["uniqueId"], after["timeCreated"]) == (before["uniqueId"], before["timeCreated"])


async def test_names_are_found_in_any_case_and_kept_as_they_were_first_written() -> None:
    async with calls() as call:
        await call("PUT", SET, scale_set())
        other = SET.replace("web", "WEB").replace("resourceGroups/shop", "RESOURCEGROUPS/Shop")
        assert (await call("GET", other)).body["id"] == SET
        assert (await call("PUT", other, scale_set(7))).body["id"] == SET
        assert call.arm.resources[other]["sku"]["capacity"] == 7


async def test_nothing_is_created_in_a_group_that_is_not_there() -> None:
    async with calls() as call:
        other = SET.replace("/shop/", "/none/")
        for method in ("PUT", "GET", "DELETE"):
            refused = await call(method, other, scale_set() if method == "PUT" else None)
            assert (refused.status, refused.code) == (404, "ResourceGroupNotFound")


async def test_a_child_needs_its_parent() -> None:
    async with calls() as call:
        for method in ("PUT", "GET", "DELETE"):
            refused = await call(method, f"{NETWORK}/subnets/a", {"properties": {}} if method == "PUT" else None)
            assert (refused.status, refused.code) == (404, "ParentResourceNotFound")


async def test_what_is_below_a_resource_goes_with_it() -> None:
    async with calls() as call:
        await call("PUT", NETWORK, network("a", "b"))
        await call("DELETE", NETWORK)
        assert (await call("GET", f"{NETWORK}/subnets/a")).code == "ParentResourceNotFound"
        await call("PUT", NETWORK, network())
        assert (await call("GET", f"{NETWORK}/subnets/a")).code == "ResourceNotFound"
        await call("DELETE", GROUP)
        assert len(call.arm.resources) == 0


async def test_a_resource_group_is_like_other_resources_without_its_document() -> None:
    async with calls() as call, ArmEmulator() as bare:
        other = f"{bare.url}{SUBSCRIPTION}/resourceGroups/new?api-version=2021-04-01"
        assert (await call("PUT", other, {"location": "eastus"})).status == 201
        assert (await call("PATCH", other, {"tags": {"team": "a"}})).body["tags"] == {"team": "a"}
        assert (await call("HEAD", other)).status == 204
        listed = await call("GET", f"{bare.url}{SUBSCRIPTION}/resourceGroups?api-version=2021-04-01")
        assert [each["name"] for each in listed.body["value"]] == ["new"]


async def test_a_list_comes_in_pages() -> None:
    async with calls() as call:
        call.arm.behave(page_size=2)
        for name in "abcde":
            await call("PUT", f"{SETS}/{name}", scale_set())
        found, page = [], await call("GET", SETS)
        sizes = [len(page.body["value"])]
        found += page.body["value"]
        while "nextLink" in page.body:
            page = await call("GET", page.body["nextLink"])
            sizes.append(len(page.body["value"]))
            found += page.body["value"]
        assert sizes == [2, 2, 1]
        assert [each["name"] for each in found] == list("abcde")


async def test_a_list_may_begin_with_an_empty_page() -> None:
    async with calls() as call:
        call.arm.behave(page_size=2, empty_page=True)
        for name in "abc":
            await call("PUT", f"{SETS}/{name}", scale_set())
        names: list[str] = []
        page = await call("GET", SETS)
        assert page.body["value"] == []
        while "nextLink" in page.body:
            page = await call("GET", page.body["nextLink"])
            names += [each["name"] for each in page.body["value"]]
        assert names == list("abc")


async def test_lists_are_of_a_group_of_a_subscription_of_a_parent_and_of_everything() -> None:
    async with calls() as call:
        await call("PUT", SET, scale_set())
        await call("PUT", NETWORK, network("a"))
        call.arm.put(SET.replace("/shop/", "/other/"), scale_set())

        async def names(path: str) -> list[str]:
            return [each["id"].removeprefix(SUBSCRIPTION) for each in (await call("GET", path)).body["value"]]

        web = SET.removeprefix(SUBSCRIPTION)
        assert await names(SETS) == [web]
        assert await names(f"{SUBSCRIPTION}/providers/{VMSS}") == [web, web.replace("/shop/", "/other/")]
        assert await names(f"{NETWORK}/subnets") == [f"{NETWORK.removeprefix(SUBSCRIPTION)}/subnets/a"]
        assert await names(f"{GROUP}/resources") == [web, NETWORK.removeprefix(SUBSCRIPTION)]
        assert (await call("GET", f"{NETWORK}x/subnets")).code == "ParentResourceNotFound"


async def test_the_instance_view_counts_the_machines() -> None:
    async with calls() as call:
        await call("PUT", SET, scale_set(3))
        call.arm.scale(SET, 8)
        seen = (await call("GET", f"{SET}/instanceView")).body
        assert seen["virtualMachine"]["statusesSummary"] == [{"code": "ProvisioningState/succeeded", "count": 8}]
        assert seen["statuses"][0]["code"] == "ProvisioningState/succeeded"
        assert (await call("GET", f"{SETS}/none/instanceView")).code == "ResourceNotFound"


async def test_keys_are_the_same_until_one_is_made_anew() -> None:
    async with calls() as call:
        await call("PUT", ACCOUNT, account())
        first = (await call("POST", f"{ACCOUNT}/listKeys")).body["keys"]
        assert (await call("POST", f"{ACCOUNT}/listKeys")).body["keys"] == first
        second = (await call("POST", f"{ACCOUNT}/regenerateKey", {"keyName": "key1"})).body["keys"]
        assert second[0]["value"] != first[0]["value"]
        assert second[1] == first[1]
        assert (await call("POST", f"{ACCOUNT}x/listKeys")).status == 404


async def test_other_actions_are_taken() -> None:
    async with calls() as call:
        await call("PUT", SET, scale_set())
        taken = await call("POST", f"{SET}/restart")
        assert (taken.status, taken.body) == (200, {})


async def test_subnets_are_in_their_network_and_resources_of_their_own() -> None:
    async with calls() as call:
        await call("PUT", NETWORK, network("a"))
        alone = (await call("GET", f"{NETWORK}/subnets/a")).body
        assert alone["properties"]["addressPrefix"] == "10.0.0.0/24"
        before = (await call("GET", NETWORK)).body
        await call("PUT", f"{NETWORK}/subnets/b", {"properties": {"addressPrefix": "10.0.9.0/24"}})
        after = (await call("GET", NETWORK)).body
        assert [each["name"] for each in after["properties"]["subnets"]] == ["a", "b"]
        assert after["properties"]["subnets"][0] == alone
        assert after["etag"] != before["etag"]
        await call("DELETE", f"{NETWORK}/subnets/a")
        assert [each["name"] for each in (await call("GET", NETWORK)).body["properties"]["subnets"]] == ["b"]


@pytest.mark.parametrize(
    "body", [network(), {"location": "westus", "properties": {}}], ids=["an empty list", "no list at all"]
)
async def test_a_put_of_a_network_without_a_subnet_deletes_it(body: dict[str, object]) -> None:
    async with calls() as call:
        await call("PUT", NETWORK, network("a"))
        await call("PUT", NETWORK, body)
        assert (await call("GET", f"{NETWORK}/subnets/a")).status == 404


async def test_a_change_of_a_subnet_by_its_network_is_seen_at_the_subnet() -> None:
    async with calls() as call:
        await call("PUT", NETWORK, network("a"))
        whole = (await call("GET", NETWORK)).body
        whole["properties"]["subnets"][0]["properties"]["addressPrefix"] = "10.0.77.0/24"
        assert (await call("PUT", NETWORK, whole)).status == 200
        assert (await call("GET", f"{NETWORK}/subnets/a")).body["properties"]["addressPrefix"] == "10.0.77.0/24"


async def test_a_path_that_no_document_has_is_refused() -> None:
    async with calls() as call:
        refused = await call("GET", f"{GROUP}/providers/Microsoft.Web/sites/a")
        assert (refused.status, refused.code) == (404, "InvalidResourceType")
        refused = await call("PATCH", f"{NETWORK}/subnets/a", {})
        assert (refused.status, refused.code) == (405, "MethodNotAllowed")


async def test_the_version_of_the_api_must_be_given_and_be_the_documents() -> None:
    async with calls() as call:
        assert (await call("GET", SET, version="")).code == "MissingApiVersionParameter"
        assert (await call("GET", SET, version="1999-01-01")).code == "NoRegisteredProviderFound"
        call.arm.behave(strict_versions=False)
        assert (await call("GET", SET, version="1999-01-01")).code == "ResourceNotFound"


async def test_somebody_else_changes_makes_and_deletes_resources() -> None:
    async with calls() as call:
        await call("PUT", SET, scale_set())
        before = (await call("GET", SET)).body["etag"]
        call.arm.change(SET, lambda body: body.update(tags={"by": "hand"}))
        seen = (await call("GET", SET)).body
        assert seen["tags"] == {"by": "hand"}
        assert seen["etag"] != before
        call.arm.put(f"{SETS}/theirs", scale_set(1))
        assert (await call("GET", f"{SETS}/theirs")).body["sku"]["capacity"] == 1
        call.arm.remove(SET)
        assert (await call("GET", SET)).status == 404


async def test_a_document_is_a_file_or_what_was_read_from_it() -> None:
    async with ArmEmulator([json.loads(DOCUMENT.read_text())]) as arm:
        arm.put(NETWORK, network("a"))
        assert f"{NETWORK}/subnets/a" in arm.resources
