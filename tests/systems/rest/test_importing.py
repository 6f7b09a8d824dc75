"""What exists becomes documents; applied, they are adopted without a write, on both servers."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from types import ModuleType
from typing import Any

import msgspec
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from hypothesis import given, settings

from tests.runtime.widgets import until
from tests.systems.rest.arm_kit import DOCUMENT, GROUP, SCALE_SET, SUBSCRIPTION
from tests.systems.rest.station import Document, Station, SwiftClock
from tests.systems.rest.syncing_kit import ARM, BODIES, KEY, PLAIN, kind
from tests.systems.rest.test_recordings import MODEL, OURS, RECORDED, SPECIFICATIONS, recordings
from trimtab.client.protocol import Query
from trimtab.lab.arm import INSTANT, ArmEmulator, Normalise, Refused
from trimtab.model.kubernetes import ConfigMap
from trimtab.model.scheme import Untyped
from trimtab.runtime.credentials import Credentials
from trimtab.runtime.system import NAMESPACE
from trimtab.systems.rest.addressing import resource_path
from trimtab.systems.rest.calling.connecting import Connections
from trimtab.systems.rest.calling.contract import CallError
from trimtab.systems.rest.hooks import Hooks
from trimtab.systems.rest.importing import BadIdentifier, Imported, Importer, Kind, NotThere
from trimtab.systems.rest.importing.naming import Names
from trimtab.systems.rest.importing.specs import written as spec_of
from trimtab.systems.rest.kinds import RestService
from trimtab.systems.rest.model import Model, Node, Overlay
from trimtab.systems.rest.models import kept
from trimtab.systems.rest.rendering import render
from trimtab.systems.rest.syncing.adopting import adopt
from trimtab.systems.rest.syncing.difference import difference
from trimtab.systems.rest.syncing.secrets import sealed
from trimtab.systems.rest.validating import problems

__all__ = ["recordings"]

NETWORK = f"{GROUP}/providers/Microsoft.Network/virtualNetworks/Net_1"
STORAGE = f"{GROUP}/providers/Microsoft.Storage/storageAccounts/files"
LOCALLY = pytest.mark.parametrize("client", ["local"], indirect=True)
"""What the API server has no part in is tried on one of them."""
STRANGE = Normalise(region="display", enums="upper", ids="upper", sku=True, child_names=True, empties="fill")


@pytest.fixture
async def arm() -> AsyncIterator[ArmEmulator]:
    async with ArmEmulator([DOCUMENT], behaviour=INSTANT) as emulator:
        yield emulator


def furnish(arm: ArmEmulator) -> None:
    """A resource group with a scale set, a network with subnets, and an account with a secret."""
    arm.put(GROUP, {"location": "westus", "tags": {"team": "blue"}})
    profile = {
        "osProfile": {"adminUsername": "ops", "adminPassword": "hush-hush-1"},
        "dataDisks": [{"lun": 0, "diskSizeGB": 8, "caching": "None"}, {"lun": 1, "caching": "ReadOnly"}],
    }
    arm.put(
        SCALE_SET,
        {
            "location": "westus",
            "sku": {"name": "standard_D2_v3", "capacity": 3},
            "tags": {"a.b": "c", "odd key": ""},
            "properties": {"upgradePolicy": {"mode": "Rolling"}, "virtualMachineProfile": profile},
        },
    )
    space = {"addressSpace": {"addressPrefixes": ["10.0.0.0/16"]}}
    arm.put(NETWORK, {"location": "westus", "properties": space})
    for number, name in enumerate(("Front", "back")):
        arm.put(f"{NETWORK}/subnets/{name}", {"properties": {"addressPrefix": f"10.0.{number}.0/24"}})
    account = {"localUserPassword": "hush-hush-2"}
    arm.put(
        STORAGE,
        {"location": "westus", "kind": "StorageV2", "sku": {"name": "Standard_LRS"}, "properties": account},
    )


async def serve(station: Station, arm: ArmEmulator) -> None:
    await station.serve(arm.url, DOCUMENT, parameters={"subscriptionId": SUBSCRIPTION})


async def kinds_of(station: Station, hooks: Hooks) -> list[Kind]:
    query = Query(namespace=NAMESPACE, labels=f"rest.trimtab.dev/service={station.service}")
    found = [kept(each) for each in (await station.client.list(ConfigMap, query)).items]
    return [Kind(model=model, hooks=hooks) for model in found if model is not None]


async def imported(station: Station, identifier: str = "", **more: Any) -> list[Imported]:
    """What is imported of an ID; without one, of all."""
    service = await station.client.get(RestService, station.service)
    children, hooks = more.pop("children", True), more.pop("hooks", Hooks())
    async with Credentials(station.client) as credentials, Connections(credentials) as connections:
        importer = Importer(
            await connections.caller(service, station.namespace),
            await kinds_of(station, hooks),
            values=service.spec.parameters,
            namespace=station.namespace,
            clock=SwiftClock(100),
            **more,
        )
        walk = importer.one(identifier, children=children) if identifier else importer.all(children=children)
        return [each async for each in walk]


async def apply(station: Station, found: Sequence[Imported]) -> None:
    for each in found:
        await station.client.apply(Untyped(each.document), manager="tests")
    for each in found:
        await station.ready(each.document["kind"], each.document["metadata"]["name"])


def of(found: Sequence[Imported], kind: str) -> list[Document]:
    return [each.document for each in found if each.document["kind"] == kind]


def specs(found: Sequence[Imported], kind: str) -> list[Document]:
    return [document["spec"] for document in of(found, kind)]


def written(arm: ArmEmulator) -> list[str]:
    return [f"{asked.method} {asked.path}" for asked in arm.requests if asked.method != "GET"]


@pytest.mark.parametrize("normalise", [Normalise(), STRANGE, Normalise(secrets="mask"), Normalise(secrets="show")])
async def test_what_is_imported_and_applied_is_adopted_without_a_write(
    station: Station, arm: ArmEmulator, normalise: Normalise
) -> None:
    furnish(arm)
    arm.behave(normalise=normalise)
    async with station.working():
        await serve(station, arm)
        found = await imported(station)
        for each in found:
            if each.secrets:
                await station.secret(each.secret, **dict.fromkeys(each.secrets, "long enough to be one"))
        await apply(station, found)
        before = len(arm.requests)
        for each in found:
            kind, name = each.document["kind"], each.document["metadata"]["name"]
            await station.annotate(kind, name, **{"rest.trimtab.dev/wake": "1"})
        wanted = {each.document["spec"]["resourceID"].casefold() for each in found}
        await until(lambda: wanted <= {asked.path.casefold() for asked in arm.requests[before:]})
        again = await imported(station)
    assert written(arm) == []
    assert [each.document for each in again] == [each.document for each in found]
    assert "hush-hush" not in str(found)
    assert [(each.document["kind"], each.document["metadata"]["name"]) for each in found] == [
        ("ResourceGroup", "web"),
        ("StorageAccount", "files"),
        ("VirtualMachineScaleSet", "front"),
        ("VirtualNetwork", "net-1"),
        ("Subnet", "back"),
        ("Subnet", "front"),
    ]


@LOCALLY
async def test_a_change_after_the_import_is_that_change_alone(station: Station, arm: ArmEmulator) -> None:
    furnish(arm)
    async with station.working():
        await serve(station, arm)
        await apply(station, await imported(station))
        await station.change(
            "VirtualNetwork",
            "net-1",
            lambda spec: spec["properties"]["addressSpace"]["addressPrefixes"].append("10.1.0.0/16"),
        )
        await station.ready("VirtualNetwork", "net-1")
        await station.change("VirtualMachineScaleSet", "front", lambda spec: spec["sku"].update(capacity=4))
        await station.ready("VirtualMachineScaleSet", "front")
    assert written(arm) == [f"PUT {NETWORK}", f"PATCH {SCALE_SET}"]
    assert [subnet["name"] for subnet in arm.view(NETWORK)["properties"]["subnets"]] == ["Front", "back"]


@LOCALLY
async def test_a_document_says_what_may_be_written_and_is_no_default(station: Station, arm: ArmEmulator) -> None:
    furnish(arm)
    async with station.working():
        await serve(station, arm)
        found = await imported(station)
    assert specs(found, "VirtualNetwork") == [
        {
            "resourceID": NETWORK,
            "name": "Net_1",
            "parent": {"name": "web"},
            "location": "westus",
            "properties": {"addressSpace": {"addressPrefixes": ["10.0.0.0/16"]}},
        }
    ]
    assert specs(found, "VirtualMachineScaleSet")[0]["properties"] == {
        "upgradePolicy": {"mode": "Rolling"},
        "virtualMachineProfile": {
            "osProfile": {"adminUsername": "ops"},
            "dataDisks": [{"lun": 0, "diskSizeGB": 8}, {"lun": 1, "caching": "ReadOnly"}],
        },
    }
    assert [each.untold for each in found if each.untold] == [
        ("properties.localUserPassword",),
        ("properties.virtualMachineProfile.osProfile.adminPassword",),
    ]


@LOCALLY
async def test_a_secret_that_a_service_shows_becomes_a_reference(station: Station, arm: ArmEmulator) -> None:
    furnish(arm)
    arm.behave(normalise=Normalise(secrets="mask"))
    async with station.working():
        await serve(station, arm)
        found = await imported(station, STORAGE)
    reference = {"name": "files-storageaccount", "key": "localUserPassword"}
    assert specs(found, "StorageAccount")[0]["properties"] == {"localUserPassword": {"secretRef": reference}}
    assert (found[0].secret, found[0].secrets) == (
        "files-storageaccount",
        {"localUserPassword": "properties.localUserPassword"},
    )


# --- which ----------------------------------------------------------------------------------------------------------------


@LOCALLY
async def test_one_is_imported_with_or_without_what_is_below_it(station: Station, arm: ArmEmulator) -> None:
    furnish(arm)
    async with station.working():
        await serve(station, arm)
        whole = await imported(station, NETWORK)
        alone = await imported(station, f"{arm.url}{NETWORK.upper()}/?api-version=1", children=False)
        subnets = await imported(station, only=["Subnet"])
        tops = await imported(station, children=False)
    assert [each.document["kind"] for each in whole] == ["VirtualNetwork", "Subnet", "Subnet"]
    assert "parent" not in whole[0].document["spec"]
    assert [each.document for each in alone] == [whole[0].document]
    assert [each.document["spec"]["resourceID"] for each in subnets] == [
        f"{NETWORK}/subnets/back",
        f"{NETWORK}/subnets/Front",
    ]
    assert [each.document["kind"] for each in tops] == ["ResourceGroup"]


@LOCALLY
async def test_an_id_of_nothing_is_told_from_one_that_is_none(station: Station, arm: ArmEmulator) -> None:
    async with station.working():
        await serve(station, arm)
        with pytest.raises(NotThere, match="there is no VirtualMachineScaleSet"):
            await imported(station, SCALE_SET)
        with pytest.raises(BadIdentifier, match=r"they are like /subscriptions/\{subscriptionId\}/resourceGroups/"):
            await imported(station, "/subscriptions/a/elephants/b")


@LOCALLY
async def test_a_list_that_may_not_be_read_is_said_and_the_rest_is_imported(station: Station, arm: ArmEmulator) -> None:
    furnish(arm)
    said: list[str] = []
    async with station.working():
        await serve(station, arm)
        arm.fault(Refused(403, "AuthorizationFailed", "not for you"), "GET", "storageAccounts$", times=99)
        found = await imported(station, problem=said.append)
    assert len(found) == 5
    assert len(said) == 1
    assert said[0].startswith("StorageAccount was left out: ")
    assert "not for you" in said[0]


@LOCALLY
async def test_a_service_that_asks_for_a_pause_gets_it(station: Station, arm: ArmEmulator) -> None:
    furnish(arm)
    async with station.working():
        await serve(station, arm)
        arm.fault(Refused(500, "Oops", "once"), "GET", "virtualNetworks$")
        assert len(await imported(station)) == 6
        arm.fault(Refused(500, "Oops", "for ever"), "GET", "virtualNetworks$", times=99)
        with pytest.raises(CallError, match="for ever"):
            await imported(station)


@LOCALLY
async def test_a_brief_list_is_read_one_by_one(station: Station, arm: ArmEmulator) -> None:
    furnish(arm)
    async with station.working():
        await serve(station, arm)
        whole = await imported(station)
        arm.behave(brief_lists=True, page_size=1)
        assert [each.document for each in await imported(station)] == [each.document for each in whole]


@LOCALLY
async def test_lists_that_tell_all_spare_reads(station: Station, arm: ArmEmulator) -> None:
    for number in range(20):
        arm.put(f"{GROUP}/providers/Microsoft.Network/virtualNetworks/net{number:02}", {"location": "westus"})
    async with station.working():
        await serve(station, arm)
        before = len(arm.requests)
        found = await imported(station, only=["VirtualNetwork"])
        reads = [asked for asked in arm.requests[before:] if "virtualNetworks/" in asked.path]
    assert len(found) == 20
    assert len(reads) == 8


class Filter:
    """A hook that leaves accounts out, and marks the rest."""

    @staticmethod
    async def import_filter(ctx: Any, document: Document, following: Any) -> Document | None:
        made: Document = await following(document)
        return None if ctx.model.kind == "StorageAccount" else {**made, "metadata": {**made["metadata"], "labels": {}}}


@LOCALLY
async def test_a_hook_may_change_and_leave_out(station: Station, arm: ArmEmulator) -> None:
    furnish(arm)
    async with station.working():
        await serve(station, arm)
        found = await imported(station, hooks=Hooks([Filter]))
    assert len(found) == 5
    assert all(each.document["metadata"]["labels"] == {} for each in found)


# --- IDs that the server chooses -------------------------------------------------------------------------------------------

NOTE = {
    "type": "object",
    "required": ["text"],
    "properties": {
        "id": {"type": "string", "readOnly": True},
        "text": {"type": "string"},
        "level": {"type": "string", "default": "info"},
        "Labels": {"type": "object", "additionalProperties": {"type": "string"}},
    },
}
ONE = {"name": "noteID", "in": "path", "required": True, "type": "string"}
BODY = {"name": "note", "in": "body", "schema": {"$ref": "#/definitions/Note"}}
ANSWER = {"200": {"description": "it", "schema": {"$ref": "#/definitions/Note"}}}
NOTES = {
    "swagger": "2.0",
    "info": {"title": "Notes", "version": "1"},
    "paths": {
        "/notes": {
            "post": {"parameters": [BODY], "responses": ANSWER},
            "get": {
                "responses": {
                    "200": {"description": "all", "schema": {"type": "array", "items": {"$ref": "#/definitions/Note"}}}
                }
            },
        },
        "/notes/{noteID}": {
            "parameters": [ONE],
            "get": {"responses": ANSWER},
            "put": {"parameters": [BODY], "responses": ANSWER},
            "delete": {"responses": {"204": {"description": "gone"}}},
        },
    },
    "definitions": {"Note": NOTE},
}
DEFINITION = {
    "spec": {
        "names": {"kind": "Note", "plural": "notes"},
        "operations": {
            "create": {"method": "POST", "path": "/notes"},
            "read": {"method": "GET", "path": "/notes/{noteID}"},
            "update": {"method": "PUT", "path": "/notes/{noteID}"},
            "delete": {"method": "DELETE", "path": "/notes/{noteID}"},
            "list": {"method": "GET", "path": "/notes"},
        },
        "identity": {"parameter": "noteID", "assigned": "server", "answer": "id", "find": ["text"]},
    }
}


async def test_what_has_an_id_of_the_servers_choice_is_adopted_too(station: Station) -> None:
    notes = {"7F_a": {"text": "one", "level": "info"}, "b/9": {"text": "two", "level": "high", "Labels": {"x": "y"}}}
    asked: list[str] = []

    async def answer(request: web.Request) -> web.Response:
        asked.append(request.method)
        key = request.match_info.get("noteID")
        if key is None:
            return web.json_response([{"id": name, **note} for name, note in notes.items()])
        if request.method == "PUT":
            notes[key] = await request.json()
        return web.json_response({"id": key, **notes[key]})

    application = web.Application()
    application.router.add_route("*", "/notes", answer)
    application.router.add_route("*", "/notes/{noteID}", answer)
    async with TestServer(application) as server, station.working():
        await station.serve(str(server.make_url("")).rstrip("/"), json.dumps(NOTES), definitions=[DEFINITION])
        found = await imported(station)
        await apply(station, found)
        assert set(asked) == {"GET"}
        assert [each.document for each in await imported(station)] == [each.document for each in found]
        await station.change("Note", "b-9", lambda spec: spec.update(text="three"))
        await station.ready("Note", "b-9")
    assert specs(found, "Note") == [
        {"resourceID": "/notes/7F_a", "text": "one"},
        {"resourceID": "/notes/b%2F9", "text": "two", "level": "high", "Labels": {"x": "y"}},
    ]
    assert [document["metadata"]["name"] for document in of(found, "Note")] == ["7f-a", "b-9"]
    assert [method for method in asked if method != "GET"] == ["PUT"]
    assert notes["b/9"] == {"text": "three", "level": "high", "Labels": {"x": "y"}}


# --- specs and names -------------------------------------------------------------------------------------------------------


class AnySecret:
    """Every Secret has every key."""

    async def secret(self, name: str, key: str) -> str | None:
        return f"{name}/{key}"

    async def resource_id(self, kind: str, name: str, api_version: str) -> str | None:
        return None


@pytest.mark.parametrize("path", [ARM, PLAIN])
@given(live=BODIES)
@settings(max_examples=60, deadline=None)
def test_whatever_a_service_has_is_imported_as_it_is(path: str, live: Document) -> None:
    model = kind(path=path)
    found = spec_of(model, live, "s", {})
    assert found.refused == ()
    assert not any(secret in str(found) for secret in ("hunter2", "swordfish"))
    assert taken_as_it_is(model, live)
    ours = {**found.spec, "resourceID": resource_path(model)}
    assert problems(model, ours) == []


def taken_as_it_is(model: Model, live: Document) -> bool:
    """Whether what is imported of a read is what was read, so that nothing is left to write."""
    found = spec_of(model, live, "s", {"resourceID": "/any"})
    wanted = sealed(model, asyncio.run(render(model, found.spec, AnySecret())), KEY)
    applied, known = adopt(model, wanted, live, as_is=True)
    return not known and difference(model, desired=wanted, applied=applied, live=live).empty


def test_a_recording_of_ours_is_taken_as_it_is(recordings: ModuleType) -> None:
    assert all(taken_as_it_is(MODEL, look.live) for look in recordings.looks(OURS))


@pytest.mark.slow
@pytest.mark.skipif(not RECORDED.is_dir(), reason="the recordings of ARM are not here (../shared/data/arm-recordings)")
@pytest.mark.skipif(
    not SPECIFICATIONS.is_dir(), reason="the documents of ARM are not here (../shared/data/azure-specs)"
)
def test_what_arm_was_recorded_to_say_is_taken_as_it_is(recordings: ModuleType) -> None:
    model_for = recordings.compiled(SPECIFICATIONS)
    reads = [(model_for(look.url.partition("?")[0]), look.live) for look in recordings.looks(RECORDED)]
    assert len(reads) > 200
    assert [live["id"] for model, live in reads if not taken_as_it_is(model, live)] == []


def test_the_keys_of_a_map_are_said_though_nothing_is_in_them() -> None:
    model = kind()
    holder = Node(type="map", items=Node(type="object", properties={}, additional=True))
    spec = msgspec.structs.replace(model.spec, properties={**model.spec.properties, "holders": holder})
    found = spec_of(msgspec.structs.replace(model, spec=spec), {"holders": {"a": {}}, "tags": {}}, "s", {})
    assert found.spec == {"holders": {"a": {}}}


def test_secrets_of_one_name_have_keys_of_their_own() -> None:
    rules = [{"name": "a", "password": "***"}, {"name": "b", "password": "shown"}]
    found = spec_of(kind(), {"properties": {"rules": rules, "steps": [{"x": 1, "key": "k"}, {}]}}, "s", {})
    assert found.spec["properties"]["rules"] == [
        {"name": "a", "password": {"secretRef": {"name": "s", "key": "password"}}},
        {"name": "b", "password": {"secretRef": {"name": "s", "key": "properties.rules-1-.password"}}},
    ]
    assert found.spec["properties"]["steps"] == [{"x": 1, "key": {"secretRef": {"name": "s", "key": "key"}}}, {}]
    assert "shown" not in str(found)


def test_what_admission_would_refuse_is_left_out_and_said() -> None:
    model = kind()
    odd = msgspec.structs.replace(
        model,
        spec=msgspec.structs.replace(model.spec, properties={**model.spec.properties, "age": Node(type="integer")}),
    )
    found = spec_of(odd, {"age": "old", "properties": {"size": 11, "hosts": ["a", 7]}}, "s", {})
    assert found.spec == {"properties": {"size": 11}}
    assert [each.partition(":")[0] for each in found.refused] == ["age", "properties.hosts"]


def test_what_is_empty_or_a_default_is_not_said() -> None:
    live = {"properties": {"size": 10, "rules": [], "net": {"deep": {}}, "note": "", "extra": None, "create": "x"}}
    assert spec_of(kind(), live, "s", {}).spec == {"properties": {"note": ""}}


def test_what_is_someone_elses_is_not_said() -> None:
    model = kind(overlay=Overlay(ignored=("properties.rules[].port", "tags.*"), keep=("properties.net.a",)))
    live = {"tags": {"x": "1"}, "properties": {"rules": [{"name": "a", "port": 1}], "net": {"a": "1", "b": "2"}}}
    assert spec_of(model, live, "s", {}).spec == {"properties": {"rules": [{"name": "a"}], "net": {"b": "2"}}}


@pytest.mark.parametrize("wish", ["Web_1", "web.1", "web 1", "--web--1--"])
def test_a_name_is_one_that_kubernetes_takes(wish: str) -> None:
    assert Names().name("Zone", "/a", wish) == "web-1"


def test_a_name_that_is_taken_gets_the_parents_then_a_number() -> None:
    names = Names()
    given = [names.name("Subnet", f"/{number}", "default", parent) for number, parent in enumerate(("a", "b", "b", ""))]
    assert given == ["default", "b-default", "b-default-2", "default-2"]
    assert names.name("Network", "/x", "default") == "default"


def test_what_has_an_object_keeps_its_name_and_no_other_takes_one() -> None:
    names = Names({("Zone", "mine"): "/zones/A", ("Zone", "b"): "/zones/other"})
    assert names.name("Zone", "/ZONES/a", "a") == "mine"
    assert names.name("Zone", "/zones/b", "b") == "b-2"


def test_names_without_a_letter_are_named_after_their_kind() -> None:
    assert Names().name("Zone", "/a", "ÄÖ/..") == "zone"
