"""A kind as a class, and a small operator for it: whatever ship has no place yet is put to sea.

    python examples/client/ships.py [KUBECONFIG]        # .trimtab/kubeconfig unless told; Ctrl-C ends it
    kubectl apply -f examples/client/ships.yaml && kubectl get ships -w

The class gives the CustomResourceDefinition, and the client gives typed objects back.
"""

import asyncio
import sys
from typing import Annotated

from msgspec import UNSET, UnsetType

from trimtab.client.connect import connect
from trimtab.client.follow import follow
from trimtab.client.protocol import EventType, Listing
from trimtab.model.crd import crd
from trimtab.model.kind import Column
from trimtab.model.markers import Immutable
from trimtab.model.resource import Resource, Spec
from trimtab.model.scheme import Scheme, Untyped


class ShipSpec(Spec):
    port: Annotated[str, Immutable()]
    crew: int = 1


class ShipStatus(Spec):
    place: str | UnsetType = UNSET


class Ship(
    Resource,
    group="fleet.example.com",
    version="v1",
    plural="ships",
    columns=(Column("Port", ".spec.port"), Column("Place", ".status.place")),
):
    spec: ShipSpec
    status: ShipStatus | UnsetType = UNSET


async def main(kubeconfig: str) -> None:
    scheme = Scheme()
    scheme.register(Ship)
    client = connect(kubeconfig, scheme=scheme)
    await client.apply(Untyped(crd(Ship)), manager="harbour")
    async for told in follow(client, Ship):  # all ships there are, then every change
        if isinstance(told, Listing):
            ships = told.items
        else:
            ships = [] if told.type is EventType.DELETED else [told.object]
        for ship in ships:
            if ship.status is UNSET:
                print(f"{ship.name} leaves {ship.spec.port} with a crew of {ship.spec.crew}", flush=True)
                sailing = ship.replace(status=ShipStatus(place="at sea"))
                await client.patch(ship, sailing, subresource="status")


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1] if len(sys.argv) > 1 else ".trimtab/kubeconfig"))
