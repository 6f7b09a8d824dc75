"""The ARM emulator on Azure's own documents, where they are at hand; what it reads of documents, on ones of our own."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import aiohttp
import pytest
import yaml

from tests.lab.arm_calls import GROUP, Calls
from tests.needs import needs
from trimtab.lab.arm import INSTANT, ArmEmulator, Behaviour
from trimtab.lab.arm.documents import BUILT_IN, read

SPECS = Path(__file__).parents[3] / "shared" / "data" / "azure-specs" / "specification"
PLACES = {
    "scale set": "compute/resource-manager/Microsoft.Compute/ComputeRP/stable/2024-07-01/virtualMachineScaleSet.json",
    "network": "network/resource-manager/Microsoft.Network/stable/2024-03-01/virtualNetwork.json",
    "storage": "storage/resource-manager/Microsoft.Storage/stable/2023-05-01/storage.json",
    "blob": "storage/resource-manager/Microsoft.Storage/stable/2023-05-01/blob.json",
    "redis": "redis/resource-manager/Microsoft.Cache/stable/2024-11-01/redis.json",
}


def azure(*names: str) -> list[Path]:
    needs(*(SPECS / PLACES[each] for each in names))
    return [SPECS / PLACES[each] for each in names]


async def lived(
    path: str, version: str, body: dict[str, Any], document: Path, change: dict[str, Any]
) -> dict[str, Any]:
    """A resource is created, read, patched, written back as it was read, listed and deleted; what it was at last."""
    arm = ArmEmulator([document], behaviour=INSTANT)
    arm.put(GROUP, {"location": "westus"})
    async with arm, aiohttp.ClientSession() as session:
        call = Calls(arm, session)
        made = await call("PUT", path, body, version=version)
        assert made.status == 201, made.body
        assert (await call("PATCH", path, change, version=version)).status == 200
        read = await call("GET", path, version=version)
        assert read.body["tags"] == change["tags"]
        again = await call("PUT", path, read.body, version=version)
        assert again.status == 200, again.body
        listed = await call("GET", path.rpartition("/")[0], version=version)
        assert [each["id"] for each in listed.body["value"]] == [path]
        last: dict[str, Any] = (await call("GET", path, version=version)).body
        assert (await call("DELETE", path, version=version)).status == 200
        return last


async def test_a_scale_set_of_azure_lives() -> None:
    (document,) = azure("scale set")
    path = f"{GROUP}/providers/Microsoft.Compute/virtualMachineScaleSets/web"
    profile = {
        "osProfile": {"computerNamePrefix": "web", "adminUsername": "me", "adminPassword": "hush"},
        "storageProfile": {"imageReference": {"publisher": "p", "offer": "o", "sku": "s", "version": "latest"}},
    }
    body = {
        "location": "westus",
        "sku": {"name": "Standard_D1_v2", "tier": "Standard", "capacity": 3},
        "properties": {"overprovision": True, "upgradePolicy": {"mode": "Manual"}, "virtualMachineProfile": profile},
    }
    last = await lived(path, "2024-07-01", body, document, {"tags": {"a": "1"}, "sku": {"capacity": 5}})
    assert last["sku"]["capacity"] == 5
    assert "hush" not in str(last)


async def test_a_network_of_azure_lives_with_its_subnets() -> None:
    (document,) = azure("network")
    path = f"{GROUP}/providers/Microsoft.Network/virtualNetworks/main"
    subnets = [{"name": "a", "properties": {"addressPrefix": "10.0.0.0/24"}}]
    body = {
        "location": "westus",
        "properties": {"addressSpace": {"addressPrefixes": ["10.0.0.0/16"]}, "subnets": subnets},
    }
    last = await lived(path, "2024-03-01", body, document, {"tags": {"a": "1"}})
    (subnet,) = last["properties"]["subnets"]
    assert subnet["id"] == f"{path}/subnets/a"


async def test_a_storage_account_of_azure_lives_and_its_keys_are_listed() -> None:
    account, blob = azure("storage", "blob")
    path = f"{GROUP}/providers/Microsoft.Storage/storageAccounts/shopdata"
    body = {"location": "westus", "kind": "StorageV2", "sku": {"name": "Standard_LRS"}, "properties": {}}
    last = await lived(path, "2023-05-01", body, account, {"tags": {"a": "1"}})
    assert last["properties"]["primaryEndpoints"]["blob"]
    arm = ArmEmulator([account, blob], behaviour=INSTANT)
    arm.put(path, body)
    async with arm, aiohttp.ClientSession() as session:
        call = Calls(arm, session)
        keys = (await call("POST", f"{path}/listKeys", version="2023-05-01")).body["keys"]
        assert [each["keyName"] for each in keys] == ["key1", "key2"]
        container = f"{path}/blobServices/default/containers/pictures"
        made = await call("PUT", container, {"properties": {}}, version="2023-05-01")
        assert made.status == 201, made.body
        assert (await call("GET", f"{path}/blobServices/default", version="2023-05-01")).body["name"] == "default"


async def test_a_cache_of_azure_lives_and_its_keys_are_listed() -> None:
    (document,) = azure("redis")
    path = f"{GROUP}/providers/Microsoft.Cache/redis/sessions"
    body = {"location": "westus", "properties": {"sku": {"name": "Premium", "family": "P", "capacity": 1}}}
    last = await lived(path, "2024-11-01", body, document, {"tags": {"a": "1"}})
    assert last["properties"]["hostName"]
    arm = ArmEmulator([document], behaviour=INSTANT)
    arm.put(path, body)
    async with arm, aiohttp.ClientSession() as session:
        call = Calls(arm, session)
        first = (await call("POST", f"{path}/listKeys", version="2024-11-01")).body
        second = (await call("POST", f"{path}/regenerateKey", {"keyType": "Primary"}, version="2024-11-01")).body
        assert first["primaryKey"] != second["primaryKey"]
        assert first["secondaryKey"] == second["secondaryKey"]


def test_all_documents_of_azure_that_are_at_hand_can_be_read() -> None:
    needs(SPECS)
    files = [each for each in SPECS.rglob("*.json") if "examples" not in each.parts]
    routes = read([BUILT_IN, *files])
    assert len(routes.all) > 1000
    network = routes.of_type("microsoft.network/virtualnetworks")
    assert network is not None
    assert set(network.embedded) == {"subnets", "virtualNetworkPeerings"}


def thing(**more: Any) -> dict[str, Any]:
    path = "/subscriptions/{s}/resourceGroups/{g}/providers/Lab.Things/things/{name}"
    return {
        "swagger": "2.0",
        "info": {"version": "1"},
        "paths": {
            path: {
                "put": {
                    "parameters": [{"in": "body", "name": "body", "schema": {"$ref": "#/definitions/Thing"}}],
                    "responses": {"200": {"schema": {"$ref": "#/definitions/Thing"}}},
                    **more,
                },
                "get": {"responses": {"200": {"schema": {"$ref": "#/definitions/Thing"}}}},
            }
        },
        "definitions": {
            "Thing": {
                "properties": {"shape": {"$ref": "#/definitions/Shape"}, "next": {"$ref": "#/definitions/Thing"}}
            },
            "Shape": {"discriminator": "kind", "required": ["kind"], "properties": {"kind": {"type": "string"}}},
            "Circle": {
                "x-ms-discriminator-value": "circle",
                "allOf": [{"$ref": "#/definitions/Shape"}],
                "properties": {"radius": {"type": "integer"}},
            },
        },
    }


async def put_thing(document: Any, body: Any) -> Any:
    path = f"{GROUP}/providers/Lab.Things/things/a"
    arm = ArmEmulator([document], behaviour=INSTANT)
    arm.put(GROUP, {"location": "westus"})
    async with arm, aiohttp.ClientSession() as session:
        return await Calls(arm, session)("PUT", path, body, version="1")


async def test_a_type_that_contains_itself_and_variants_by_a_discriminator_are_understood() -> None:
    good = {"next": {"next": {"shape": {"kind": "circle", "radius": 3}}}}
    assert (await put_thing(thing(), good)).status == 201
    bad = await put_thing(thing(), {"next": {"shape": {"kind": "circle", "side": 3}}})
    assert (bad.status, "next.shape.side" in bad.body["error"]["message"]) == (400, True)


async def test_an_example_says_what_the_service_adds() -> None:
    example = {"responses": {"200": {"body": {"name": "other", "host": "a.lab.test", "note": "never"}}}}
    document = thing(**{"x-ms-examples": {"one": example}})
    document["definitions"]["Thing"]["properties"] |= {
        "host": {"type": "string", "readOnly": True},
        "note": {"type": "string"},
    }
    made = (await put_thing(document, {})).body
    assert (made["name"], made["host"]) == ("a", "a.lab.test")
    assert "note" not in made


async def test_what_stands_beside_a_reference_counts(tmp_path: Path) -> None:
    document = thing()
    document["definitions"]["Thing"]["properties"]["host"] = {
        "$ref": "./other.json#/definitions/Host",
        "readOnly": True,
    }
    (tmp_path / "other.json").write_text('{"definitions": {"Host": {"type": "string"}}}', "utf-8-sig")
    (tmp_path / "main.json").write_text(json.dumps(document))
    assert "read-only" in (await put_thing(tmp_path / "main.json", {"host": "x"})).body["error"]["message"]


async def test_a_document_of_openapi_3_is_understood() -> None:
    schema = {"type": "object", "required": ["size"], "properties": {"size": {"type": ["integer", "null"]}}}
    content = {"content": {"application/json": {"schema": schema}}}
    path = "/subscriptions/{s}/resourceGroups/{g}/providers/Lab.Things/things/{name}"
    item = {"put": {"requestBody": content, "responses": {"200": content}}, "get": {"responses": {"200": content}}}
    document = {"openapi": "3.1.0", "info": {"version": "1"}, "paths": {path: item}}
    assert (await put_thing(document, {"size": 3})).body["size"] == 3
    assert (await put_thing(document, {})).status == 400
    assert (await put_thing(document, {"size": {}})).status == 400


@pytest.mark.parametrize("path", ["/subscriptions/s/resourceGroups/g", "/subscriptions/s"])
async def test_an_extension_is_below_whatever_it_is_of(path: str) -> None:
    document = thing()
    document["paths"] = {"/{scope}/providers/Lab.Notes/notes/{name}": next(iter(document["paths"].values()))}
    arm = ArmEmulator([document], behaviour=INSTANT)
    arm.put("/subscriptions/s/resourceGroups/g", {"location": "westus"})
    async with arm, aiohttp.ClientSession() as session:
        made = await Calls(arm, session)("PUT", f"{path}/providers/Lab.Notes/notes/n", {}, version="1")
        assert (made.status, made.body["id"]) == (201, f"{path}/providers/Lab.Notes/notes/n")
        assert made.body["type"] == "Lab.Notes/notes"


def test_references_that_go_round_in_a_circle_are_refused() -> None:
    document = thing()
    document["definitions"]["Thing"] = {"$ref": "#/definitions/Thing"}
    with pytest.raises(ValueError, match="circle"):
        read([document])


async def test_every_write_that_azure_took_in_recorded_traffic_is_taken_here_too() -> None:
    needs(*(RECORDINGS / each for each in RECORDED))
    documents = azure(*PLACES)
    routes = read([BUILT_IN, *documents])
    arm = ArmEmulator(documents, behaviour=Behaviour(asynchronous=False, strict_versions=False))
    taken: Counter[str] = Counter()
    async with arm, aiohttp.ClientSession() as session:
        call = Calls(arm, session)
        for method, path, body in [each for name in RECORDED for each in writes_that_worked(RECORDINGS / name)]:
            if routes.find(path) is not None:
                answer = await call(method, path, body, version="any")
                assert answer.status < 300, (method, path, answer.body)
                taken[method] += 1
    assert taken["PUT"] > 20
    assert taken["DELETE"] > 5


RECORDINGS = SPECS.parents[1] / "arm-recordings"
RECORDED = (
    "Test_Compute_VMSS_20220301_CRUD.yaml",
    "Test_Cache_Redis_20241101_CRUD.yaml",
    "Test_Storage_StorageAccount_20210401_CRUD.yaml",
    "Test_Networking_VirtualNetwork_20240301_CRUD.yaml",
    "Test_Networking_Subnet_CreatedThenVNETUpdated_20240301_SubnetStillExists.yaml",
)


def writes_that_worked(recording: Path) -> list[tuple[str, str, Any]]:
    """Of real traffic: method, path, body."""
    found = []
    for each in yaml.load(recording.read_text(), Loader=yaml.CSafeLoader)["interactions"]:
        asked, answered = each["request"], each["response"]
        if asked["method"] in ("PUT", "PATCH", "DELETE") and answered["code"] < 300:
            body = json.loads(asked["body"]) if asked.get("body") else None
            found.append((asked["method"], urlsplit(asked["url"]).path, body))
    return found
