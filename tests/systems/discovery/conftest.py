"""Both homes, with the kinds of discovery defined: `defined` is the client, `station` has the controller for it."""

from __future__ import annotations

import uuid
from pathlib import Path

import pytest

from tests.runtime.conftest import client, scheme
from tests.systems.discovery.station import Station
from trimtab.client.api import ApiClient
from trimtab.model.scheme import Scheme, Untyped
from trimtab.runtime.prepare import prepare
from trimtab.systems.discovery.system import SYSTEM

__all__ = ["client", "scheme"]


@pytest.fixture
async def namespace(client: ApiClient) -> str:
    """One of the test's own."""
    name = f"sweeps-{uuid.uuid4().hex[:12]}"
    await client.create(Untyped({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}))
    return name


@pytest.fixture
async def defined(client: ApiClient, scheme: Scheme) -> ApiClient:
    """The kinds are served. On a cluster they stay: tests are apart by namespace."""
    for kind in SYSTEM.kinds:
        scheme.register(kind)
    await prepare(client, (SYSTEM,), rights=False)
    return client


@pytest.fixture
async def station(defined: ApiClient, namespace: str, tmp_path: Path) -> Station:
    """Discovery, ready to work in a namespace of its own."""
    return Station(defined, namespace, tmp_path)
