"""Both homes, with the kinds of image discovery defined: `defined` is the client, `station` has the system for it."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.runtime.conftest import client, scheme
from tests.systems.images.documents import KINDS
from trimtab.client.api import ApiClient
from trimtab.lab.registry import Registry as LabRegistry
from trimtab.lab.registry_images import Pusher
from trimtab.model.scheme import Scheme, Untyped
from trimtab.runtime.prepare import prepare
from trimtab.runtime.system import System
from trimtab.testing.nats import NatsServer
from trimtab.testing.ports import free_ports

if TYPE_CHECKING:
    from tests.systems.images.station import Station

__all__ = ["client", "scheme"]


@pytest.fixture
async def namespace(client: ApiClient) -> str:
    """One of the test's own."""
    name = f"images-{uuid.uuid4().hex[:12]}"
    await client.create(Untyped({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}))
    return name


@pytest.fixture
async def defined(client: ApiClient, scheme: Scheme) -> ApiClient:
    """The kinds are served. On a cluster they stay: tests are apart by namespace."""
    for kind in KINDS:
        scheme.register(kind)
    await prepare(client, (System(name="images", kinds=KINDS),), rights=False)
    return client


@pytest.fixture(scope="session")
def image_nats(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NatsServer]:
    """One server for all; each station has a stream of its own."""
    with NatsServer(tmp_path_factory.mktemp("nats")) as server:
        yield server


@pytest.fixture(params=["in-process", "nats"])
async def station(
    request: pytest.FixtureRequest, defined: ApiClient, namespace: str, tmp_path: Path
) -> AsyncIterator[Station]:
    """Image discovery and a registry, ready to work in a namespace of its own, with each queue in turn."""
    from tests.systems.images.station import Station, without_database

    nats = request.getfixturevalue("image_nats").url if request.param == "nats" else ""
    await without_database(defined)
    (port,) = free_ports(1)
    with LabRegistry(tmp_path / "registry", port) as lab:
        async with Pusher(lab.url) as pusher:
            yield Station(defined, namespace, tmp_path, lab, pusher, nats)
