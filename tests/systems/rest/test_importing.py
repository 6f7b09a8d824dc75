"""What exists becomes documents; applied, they are adopted without a write, on both servers."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest

from tests.systems.rest.arm_kit import DOCUMENT, GROUP, SCALE_SET, SUBSCRIPTION
from tests.systems.rest.station import Document, Station
from trimtab.client.protocol import Query
from trimtab.lab.arm import INSTANT, ArmEmulator, Normalise
from trimtab.model.clock import SystemClock
from trimtab.model.kubernetes import ConfigMap
from trimtab.model.scheme import Untyped
from trimtab.runtime.credentials import Credentials
from trimtab.runtime.system import NAMESPACE
from trimtab.systems.rest.calling.connecting import Connections
from trimtab.systems.rest.importing import Imported, Importer, Kind
from trimtab.systems.rest.kinds import RestService
from trimtab.systems.rest.models import kept

NETWORK = f"{GROUP}/providers/Microsoft.Network/virtualNetworks/Net_1"
STORAGE = f"{GROUP}/providers/Microsoft.Storage/storageAccounts/files"
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


async def kinds_of(station: Station) -> list[Kind]:
    query = Query(namespace=NAMESPACE, labels=f"rest.trimtab.dev/service={station.service}")
    found = [kept(each) for each in (await station.client.list(ConfigMap, query)).items]
    return [Kind(model=model) for model in found if model is not None]


async def imported(station: Station, identifier: str = "", **more: Any) -> list[Imported]:
    """What is imported of an ID; without one, of all."""
    service = await station.client.get(RestService, station.service)
    children = more.pop("children", True)
    async with Credentials(station.client) as credentials, Connections(credentials) as connections:
        importer = Importer(
            await connections.caller(service, station.namespace),
            await kinds_of(station),
            values=service.spec.parameters,
            namespace=station.namespace,
            clock=SystemClock(),
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
        looks = len(arm.requests)
        for each in found:
            kind, name = each.document["kind"], each.document["metadata"]["name"]
            await station.annotate(kind, name, **{"rest.trimtab.dev/wake": "1"})
        arm.change(SCALE_SET, lambda body: body["tags"].update(theirs="1"))
        station.clock.leap(700)
        await station.until(
            "VirtualMachineScaleSet", "front", lambda d: d["status"]["observed"]["tags"].get("theirs") == "1"
        )
        arm.change(SCALE_SET, lambda body: body["tags"].pop("theirs"))
        again = await imported(station)
    assert len(arm.requests) > looks
    assert written(arm) == []
    assert [each.document for each in again] == [each.document for each in found]
    assert "hush-hush" not in str(found)
    assert len(found) == 6
