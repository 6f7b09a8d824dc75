"""Fixtures for tests with real servers: both homes with the system's kinds, and a namespace of the test's own."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator

import pytest

from tests.runtime.conftest import ADMIN, HOMES, scheme
from trimtab.client.api import ApiClient
from trimtab.client.connect import connect
from trimtab.model.scheme import Scheme, Untyped
from trimtab.runtime.prepare import prepare
from trimtab.server.core import Server
from trimtab.server.local import local_client
from trimtab.store.memory import MemoryStore
from trimtab.systems.rest.system import SYSTEM

__all__ = ["EMBEDDED", "home", "namespace", "scheme"]

EMBEDDED = pytest.mark.parametrize("home", ["local"], indirect=True)
"""For a test whose matter is the service and not the home: each server goes through its life on both."""


@pytest.fixture(params=HOMES)
async def home(request: pytest.FixtureRequest, scheme: Scheme) -> AsyncIterator[ApiClient]:
    """Ours with our admission, and a real kube-apiserver without."""
    for kind in SYSTEM.kinds:
        scheme.register(kind)
    if request.param == "kubernetes":
        reached = connect(request.getfixturevalue("real_cluster").kubeconfig, scheme=scheme)
        await prepare(reached, (SYSTEM,), manage=True)
        yield reached
        await reached.close()
        return
    store = MemoryStore()
    server = Server(store, admission=SYSTEM.admissions, scheme=scheme)
    await server.start()
    try:
        client = local_client(server, ADMIN, scheme)
        await prepare(client, (SYSTEM,), manage=True)
        yield client
    finally:
        await server.stop()
        await store.close()


@pytest.fixture
async def namespace(home: ApiClient) -> str:
    name = f"rest-{uuid.uuid4().hex[:12]}"
    await home.create(Untyped({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}))
    return name
