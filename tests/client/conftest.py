"""Each way to reach a server in turn: in process, over HTTPS, over a unix socket, and a real kube-apiserver."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest

from tests.client.widgets import Widget, scheme
from trimtab.client.api import ApiClient
from trimtab.client.connect import connect
from trimtab.client.protocol import Named
from trimtab.model.crd import crd
from trimtab.model.errors import StatusError
from trimtab.model.scheme import Untyped
from trimtab.server.auth.identity import MASTERS, User
from trimtab.server.core import Server
from trimtab.server.local import local_client
from trimtab.store.memory import MemoryStore

ADMIN = User("admin", groups=(MASTERS, "system:authenticated"))
WAYS = ["local", "https", "unix", pytest.param("kubernetes", marks=pytest.mark.cluster)]

_numbers = itertools.count(1)


@pytest.fixture(params=WAYS)
async def client(request: pytest.FixtureRequest) -> AsyncIterator[ApiClient]:
    async with _reached(request) as reached:
        await define_widgets(reached)
        yield reached
        await reached.close()


@pytest.fixture
async def namespace(client: ApiClient) -> str:
    """One of the test's own."""
    name = f"client-{next(_numbers)}"
    await client.create(Untyped({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}))
    return name


@contextlib.asynccontextmanager
async def _reached(request: pytest.FixtureRequest) -> AsyncIterator[ApiClient]:
    if request.param == "local":
        store = MemoryStore()
        server = Server(store)
        await server.start()
        try:
            yield local_client(server, ADMIN, scheme())
        finally:
            await server.stop()
            await store.close()
    elif request.param == "kubernetes":
        yield connect(request.getfixturevalue("real_cluster").kubeconfig, scheme=scheme())
    else:
        kubeconfig = request.getfixturevalue("trimtab_server").kubeconfig
        if request.param == "unix":
            yield connect(socket=kubeconfig.with_name("trimtab.sock"), scheme=scheme())
        else:
            yield connect(kubeconfig, scheme=scheme())


async def define_widgets(client: ApiClient) -> None:
    await client.apply(Untyped(crd(Widget, scheme=client.scheme)), manager="tests", force=True)

    async def listed() -> bool:
        try:
            await client.list(Widget)
        except StatusError as error:
            if error.code != 404:
                raise
            return False
        return True

    await eventually(listed)


async def eventually(holds: Callable[[], Awaitable[Any]]) -> None:
    async with asyncio.timeout(20):
        while not await holds():  # noqa: ASYNC110 - nothing tells when
            await asyncio.sleep(0.01)


CONFIG_MAP = Named("v1", "ConfigMap")


def config_map(name: str, namespace: str, **data: str) -> Untyped:
    metadata: dict[str, Any] = {"name": name, "namespace": namespace}
    return Untyped({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data})
