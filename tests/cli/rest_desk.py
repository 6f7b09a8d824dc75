"""The program beside a service: the ARM emulator, with the generic reconciler at work on it in this process."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Program, Ran
from tests.cli.rest_kit import quiet
from tests.systems.rest.arm_kit import DOCUMENT, GROUP, SCALE_SET, SUBSCRIPTION
from tests.systems.rest.station import Station
from trimtab.client.connect import connect
from trimtab.lab.arm import INSTANT, ArmEmulator
from trimtab.model.scheme import Untyped
from trimtab.runtime.prepare import prepare
from trimtab.runtime.system import System
from trimtab.systems.rest.kinds import RestDefinition, RestService
from trimtab.testing.peer import ApiServer

__all__ = ["quiet"]

STORAGE = f"{GROUP}/providers/Microsoft.Storage/storageAccounts/files"
LOCALLY = pytest.mark.parametrize("discovery_server", ["quiet_server"], indirect=True)
"""What the API server has no part in is tried on one of them."""


class Desk:
    """The program, and a service that it may import from."""

    def __init__(self, program: Program, station: Station, arm: ArmEmulator) -> None:
        self.program, self.station, self.arm = program, station, arm

    async def __call__(self, *words: str, stdin: str = "") -> Ran:
        """In a thread: the emulator answers from this process."""
        return await asyncio.to_thread(self.program, *words, stdin=stdin)

    async def imported(self, *words: str) -> Ran:
        return await self("rest", "import", self.station.service, *words)

    async def serve(self, **service: Any) -> None:
        self.arm.put(GROUP, {"location": "westus"})
        self.arm.put(SCALE_SET, {"location": "westus", "sku": {"name": "Standard_D2_v3", "capacity": 3}})
        account = {"location": "westus", "kind": "StorageV2", "sku": {"name": "Standard_LRS"}}
        self.arm.put(STORAGE, {**account, "properties": {"localUserPassword": "hush-hush"}})
        parameters = {"subscriptionId": SUBSCRIPTION}
        await self.station.serve(self.arm.url, DOCUMENT, parameters=parameters, **service)


@pytest.fixture
async def desk(discovery_server: ApiServer, tmp_path: Path, quiet: Program) -> AsyncIterator[Desk]:
    client = connect(discovery_server.kubeconfig)
    for kind in (RestService, RestDefinition):
        client.scheme.register(kind)
    await prepare(client, (System(name="rest", kinds=(RestService, RestDefinition)),), rights=False)
    system = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "trimtab-system"}}
    await client.apply(Untyped(system), manager="tests")
    station = Station(client, quiet.namespace, tmp_path)
    try:
        async with ArmEmulator([DOCUMENT], behaviour=INSTANT) as arm, station.working():
            yield Desk(quiet, station, arm)
    finally:
        await station.close()
        await client.close()
