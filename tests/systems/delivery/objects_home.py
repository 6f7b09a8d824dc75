"""Both homes with the kinds that a canary's objects are of, and clients that see less than there is."""

from __future__ import annotations

import uuid
from typing import Any

import pytest

from tests.systems.delivery.objects_kit import REVISION, TEMPLATE, canary
from trimtab.client.api import ApiClient
from trimtab.client.protocol import Named
from trimtab.model import istio
from trimtab.model.errors import not_found
from trimtab.model.scheme import Scheme, Untyped
from trimtab.runtime.prepare import prepare
from trimtab.runtime.system import System
from trimtab.systems.delivery.kinds import CanaryDeployment
from trimtab.systems.delivery.objects.enforcing import Enforced, enforce
from trimtab.systems.delivery.objects.routing import Traffic, destination_rules, owned_virtual_service
from trimtab.systems.delivery.objects.services import canary_service, stable_service
from trimtab.systems.delivery.objects.workloads import stable_deployment

DEPLOYMENT, SERVICE = Named("apps/v1", "Deployment"), Named("v1", "Service")
ROUTES = Named("networking.istio.io/v1", "VirtualService")
ALL = [
    ("Service", "web"),
    ("Service", "web-canary"),
    ("Deployment", "web"),
    ("DestinationRule", "web"),
    ("DestinationRule", "web-canary"),
    ("VirtualService", "web"),
]


@pytest.fixture
async def shop(client: ApiClient, scheme: Scheme) -> ApiClient:
    """The kinds are served, Istio's too, which nobody else defines here."""
    system = System(name="delivery", kinds=(CanaryDeployment,), borrowed=istio.KINDS)
    for kind in (*system.kinds, *system.borrowed):
        scheme.register(kind)
    await prepare(client, (system,), rights=False, borrowed=True)
    return client


@pytest.fixture
async def owner(shop: ApiClient) -> CanaryDeployment:
    """In a namespace of its own."""
    name = f"shop-{uuid.uuid4().hex[:12]}"
    await shop.create(Untyped({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}))
    return await made(shop, name)


async def made(client: ApiClient, namespace: str, name: str = "web", **spec: Any) -> CanaryDeployment:
    if name == "web":
        spec = {"virtualService": {"trafficPolicy": {"loadBalancer": {"simple": "RANDOM"}}}, **spec}
    return await client.create(canary(name, namespace, **spec))


def wanted(owner: CanaryDeployment, weight: int = 10) -> list[dict[str, Any]]:
    return [
        stable_service(owner),
        canary_service(owner),
        stable_deployment(owner, TEMPLATE, REVISION),
        *destination_rules(owner),
        owned_virtual_service(owner, Traffic(weight=weight)),
    ]


async def enforced(client: ApiClient, owner: CanaryDeployment, weight: int = 10, **options: Any) -> Enforced:
    return await enforce(client, owner, wanted(owner, weight), **{"adopt": False, **options})


async def changed(client: ApiClient, kind: Named, owner: CanaryDeployment, change: Any, name: str = "web") -> None:
    """Someone changes an object by hand."""
    found = await client.get(kind, name, owner.namespace)
    before = Untyped({**found.raw, "apiVersion": kind.api_version, "kind": kind.kind})
    await client.patch(before, Untyped(change(before.raw)))


def in_spec(**fields: Any) -> Any:
    return lambda raw: {**raw, "spec": {**raw["spec"], **fields}}


class Behind:
    """A client whose cache is behind: it has these objects, and no others."""

    def __init__(self, client: ApiClient, objects: dict[tuple[str, str], Any], live: Any = None) -> None:
        self._objects, self.live = objects, live or client
        self.scheme, self.apply, self.patch = client.scheme, client.apply, client.patch

    async def get(self, kind: Named, name: str, namespace: str = "") -> Any:
        if (kind.kind, name) not in self._objects:
            raise not_found("things", "", name)
        return self._objects[kind.kind, name]


class Late:
    """A server that was asked a moment too early: at first there is none of anything."""

    def __init__(self, client: ApiClient) -> None:
        self._client = client
        self._asked: set[tuple[Any, str]] = set()

    async def get(self, kind: Any, name: str, namespace: str = "") -> Any:
        if (kind, name) not in self._asked:
            self._asked.add((kind, name))
            raise not_found("things", "", name)
        return await self._client.get(kind, name, namespace)


class Untouchable:
    """A client that refuses to write."""

    def __init__(self, client: ApiClient) -> None:
        self._client = client
        self.get, self.scheme = client.get, client.scheme

    async def apply(self, *args: Any, **options: Any) -> Any:
        raise AssertionError("nothing is to be written")

    patch = create = delete = apply
