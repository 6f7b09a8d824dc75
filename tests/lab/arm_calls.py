"""Raw requests to the ARM emulator, and the IDs of the resources that its tests use."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import msgspec

from trimtab.lab.arm import INSTANT, ArmEmulator, Behaviour

DOCUMENT = Path(__file__).parents[2] / "examples" / "rest" / "compute.json"
VERSION = "2024-07-01"
SUBSCRIPTION = "/subscriptions/11111111-0000-4000-8000-000000000001"
GROUP = f"{SUBSCRIPTION}/resourceGroups/shop"
SETS = f"{GROUP}/providers/Microsoft.Compute/virtualMachineScaleSets"
SET = f"{SETS}/web"
NETWORKS = f"{GROUP}/providers/Microsoft.Network/virtualNetworks"
NETWORK = f"{NETWORKS}/main"
ACCOUNT = f"{GROUP}/providers/Microsoft.Storage/storageAccounts/shopdata"
VMSS, VNET, STORAGE = (
    "Microsoft.Compute/virtualMachineScaleSets",
    "Microsoft.Network/virtualNetworks",
    "Microsoft.Storage/storageAccounts",
)


def scale_set(capacity: int = 3, **more: Any) -> dict[str, Any]:
    return {"location": "westus", "sku": {"name": "Standard_D2s_v5", "capacity": capacity}, "properties": {}, **more}


def network(*subnets: str, **more: Any) -> dict[str, Any]:
    lists = [{"name": name, "properties": {"addressPrefix": f"10.0.{at}.0/24"}} for at, name in enumerate(subnets)]
    return {
        "location": "westus",
        "properties": {"addressSpace": {"addressPrefixes": ["10.0.0.0/16"]}, "subnets": lists},
        **more,
    }


def account(**properties: Any) -> dict[str, Any]:
    return {"location": "westus", "kind": "StorageV2", "sku": {"name": "Standard_LRS"}, "properties": properties}


class Said(msgspec.Struct, frozen=True):
    status: int
    body: Any
    headers: Mapping[str, str]

    @property
    def code(self) -> str:
        return str(self.body["error"]["code"])


class Calls:
    """The emulator and somebody who calls it."""

    def __init__(self, arm: ArmEmulator, session: aiohttp.ClientSession) -> None:
        self.arm = arm
        self._session = session

    async def __call__(
        self, method: str, path: str, body: Any = None, *, version: str = VERSION, query: str = "", **headers: str
    ) -> Said:
        """`path` may be a URL; headers are written with _ for -."""
        url = path if path.startswith("http") else f"{self.arm.url}{path}?api-version={version}{query}"
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        data = body if isinstance(body, bytes) else None if body is None else msgspec.json.encode(body)
        async with self._session.request(method, url, data=data, headers=given, allow_redirects=False) as response:
            content = await response.read()
            is_json = content and "json" in response.headers.get("Content-Type", "")
            return Said(response.status, msgspec.json.decode(content) if is_json else content, response.headers)


@asynccontextmanager
async def calls(behaviour: Behaviour = INSTANT, **more: Any) -> AsyncIterator[Calls]:
    """With the small document, and a resource group."""
    arm = ArmEmulator([DOCUMENT], behaviour=behaviour, **more)
    arm.put(GROUP, {"location": "westus"})
    async with arm, aiohttp.ClientSession() as session:
        yield Calls(arm, session)
