"""The ARM emulator behind a station: one subscription, one resource group, a scale set to work with."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.systems.rest.station import EXAMPLES, Document, Station
from trimtab.lab.arm import ArmEmulator
from trimtab.model.scheme import Untyped

DOCUMENT = EXAMPLES / "compute.json"
SUBSCRIPTION = "00000000-0000-0000-0000-000000000001"
GROUP = f"/subscriptions/{SUBSCRIPTION}/resourceGroups/web"
SCALE_SET = f"{GROUP}/providers/Microsoft.Compute/virtualMachineScaleSets/front"
KIND = "VirtualMachineScaleSet"

SPEC: Document = {
    "parent": {"name": "web"},
    "location": "westus",
    "sku": {"name": "Standard_D2_v3", "capacity": 3},
    "tags": {"tag1": "value"},
}


async def served(
    station: Station, arm: ArmEmulator, change: Callable[[Document], Any] | None = None, **service: Any
) -> None:
    """All kinds of the document, and the resource group `web`."""
    await station.serve(arm.url, DOCUMENT, parameters={"subscriptionId": SUBSCRIPTION}, change=change, **service)
    await station.make("ResourceGroup", "web", location="westus")


def of(plural: str, change: Callable[[Document], Any]) -> Callable[[Document], Any]:
    """A change of one definition alone."""

    def changed(spec: Document) -> None:
        if spec["names"]["plural"] == plural:
            change(spec)

    return changed


def scale_sets(change: Callable[[Document], Any]) -> Callable[[Document], Any]:
    return of("virtualmachinescalesets", change)


def writes(arm: ArmEmulator) -> list[tuple[str, Any]]:
    """Method and body of what was written to the scale set."""
    return [
        (asked.method, asked.body)
        for asked in arm.requests
        if asked.method in ("PUT", "PATCH", "DELETE", "POST") and asked.path.lower() == SCALE_SET.lower()
    ]


async def scale_set(station: Station, **spec: Any) -> Untyped:
    return await station.make(KIND, "front", **{**SPEC, **spec})
