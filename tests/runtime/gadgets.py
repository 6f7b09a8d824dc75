"""A small kind with a status, for tests of what controllers write."""

from __future__ import annotations

from msgspec import UNSET, UnsetType

from trimtab.client.api import ApiClient
from trimtab.client.follow import follow
from trimtab.client.protocol import Listing, Named, Query
from trimtab.model.conditions import Conditions
from trimtab.model.crd import crd
from trimtab.model.resource import Resource, Spec
from trimtab.model.scheme import Untyped

CRD = Named("apiextensions.k8s.io/v1", "CustomResourceDefinition")


class GadgetSpec(Spec):
    size: int = 1


class GadgetStatus(Spec):
    seen: int | UnsetType = UNSET
    conditions: Conditions | UnsetType = UNSET


class Gadget(Resource, group="writes.test.trimtab.dev", version="v1", plural="gadgets"):
    spec: GadgetSpec = GadgetSpec()
    status: GadgetStatus | UnsetType = UNSET


async def define(client: ApiClient) -> None:
    """Make the server serve gadgets, and the client know them."""
    client.scheme.register(Gadget)
    definition = crd(Gadget)
    await client.apply(Untyped(definition), manager="test", force=True)
    following = follow(client, CRD, Query(fields=f"metadata.name={definition['metadata']['name']}"))
    async for told in following:
        found = told.items if isinstance(told, Listing) else [told.object]
        conditions = [c for item in found for c in item.raw.get("status", {}).get("conditions") or ()]
        if any(c["type"] == "Established" and c["status"] == "True" for c in conditions):
            break
    await following.aclose()
