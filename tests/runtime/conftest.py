"""The two homes of a controller, in turn: our server in this process, and a real kube-apiserver."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator

import pytest

from trimtab.client.api import ApiClient
from trimtab.client.connect import connect
from trimtab.model import kubernetes
from trimtab.model.scheme import Scheme, Untyped
from trimtab.server.auth.identity import MASTERS, User
from trimtab.server.core import Server
from trimtab.server.local import local_client
from trimtab.store.memory import MemoryStore

ADMIN = User("admin", groups=(MASTERS, "system:authenticated"))
HOMES = ["local", pytest.param("kubernetes", marks=pytest.mark.cluster)]

_numbers = itertools.count(1)


@pytest.fixture
def scheme() -> Scheme:
    """Kubernetes' own kinds; a test may register more."""
    return kubernetes.register(Scheme())


@pytest.fixture(params=HOMES)
async def client(request: pytest.FixtureRequest, scheme: Scheme) -> AsyncIterator[ApiClient]:
    """An administrator's client of each server."""
    if request.param == "kubernetes":
        reached = connect(request.getfixturevalue("real_cluster").kubeconfig, scheme=scheme)
        yield reached
        await reached.close()
        return
    store = MemoryStore()
    server = Server(store)
    await server.start()
    try:
        yield local_client(server, ADMIN, scheme)
    finally:
        await server.stop()
        await store.close()


@pytest.fixture
async def namespace(client: ApiClient) -> str:
    """One of the test's own."""
    name = f"runtime-{next(_numbers)}"
    await client.create(Untyped({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}))
    return name
