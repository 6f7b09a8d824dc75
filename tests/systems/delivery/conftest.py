"""Both homes, with the kinds of canary delivery and Istio's defined: `defined` is the client, `stage` has the system on it."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.runtime.conftest import ADMIN, client, scheme
from tests.systems.delivery.stage import Stage
from trimtab.client.api import ApiClient
from trimtab.model import istio
from trimtab.model.scheme import Scheme, Untyped
from trimtab.runtime.prepare import prepare
from trimtab.runtime.system import NAMESPACE, System
from trimtab.server.core import Server
from trimtab.server.local import local_client
from trimtab.store.memory import MemoryStore
from trimtab.systems.delivery.kinds import CanaryDeployment, MetricTemplate, ReleaseGroup

__all__ = ["client", "scheme"]

KINDS = (CanaryDeployment, MetricTemplate, ReleaseGroup, *istio.KINDS)


@pytest.fixture
async def namespace(client: ApiClient) -> str:
    """One of the test's own."""
    name = f"delivery-{uuid.uuid4().hex[:12]}"
    await client.create(Untyped({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}))
    return name


@pytest.fixture
async def defined(client: ApiClient, scheme: Scheme) -> ApiClient:
    """The kinds are served, and the system's namespace is there."""
    return await _defined(client, scheme)


async def _defined(client: ApiClient, scheme: Scheme) -> ApiClient:
    for kind in KINDS:
        scheme.register(kind)
    await prepare(client, (System(name="delivery", kinds=KINDS),), rights=False)
    system = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}
    await client.apply(Untyped(system), manager="tests")
    return client


@pytest.fixture
async def stage(defined: ApiClient, namespace: str, tmp_path: Path) -> AsyncIterator[Stage]:
    """The system, ready to work in a namespace of its own, with pods and a data plane that the test plays."""
    made = Stage(defined, namespace, tmp_path)
    yield made
    await made.close()


@pytest.fixture
async def here(scheme: Scheme, tmp_path: Path) -> AsyncIterator[Stage]:
    """The same on our own server alone, for what a server has no part in."""
    store = MemoryStore()
    server = Server(store)
    await server.start()
    try:
        client = await _defined(local_client(server, ADMIN, scheme), scheme)
        await client.create(Untyped({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}}))
        made = Stage(client, "shop", tmp_path)
        yield made
        await made.close()
    finally:
        await server.stop()
        await store.close()
