"""The embedded server with the pods of the local system: `bench` runs them for a test and leaves no process behind."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.runtime.conftest import scheme
from tests.systems.local.pods_kit import Bench
from trimtab.client.api import ApiClient
from trimtab.model.scheme import Scheme, Untyped
from trimtab.server.auth.identity import MASTERS, User
from trimtab.server.core import Server
from trimtab.server.local import local_client
from trimtab.store.memory import MemoryStore

__all__ = ["scheme"]

ADMIN = User("admin", groups=(MASTERS, "system:authenticated"))


@pytest.fixture
async def client(scheme: Scheme) -> AsyncIterator[ApiClient]:
    """Of our server in this process: on a cluster others run Deployments."""
    store = MemoryStore()
    server = Server(store)
    await server.start()
    try:
        reached = local_client(server, ADMIN, scheme)
        await reached.create(Untyped({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}}))
        yield reached
    finally:
        await server.stop()
        await store.close()


@pytest.fixture
async def bench(client: ApiClient, tmp_path: Path) -> AsyncIterator[Bench]:
    made = Bench(client, tmp_path)
    yield made
    await made.close()
