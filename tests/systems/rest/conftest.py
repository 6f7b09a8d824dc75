"""Both homes, with the kinds of the generic reconciler defined: `defined` is the client, `station` has the system for it."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.runtime.conftest import client, scheme
from tests.systems.rest.station import Station
from trimtab.client.api import ApiClient
from trimtab.model.scheme import Scheme, Untyped
from trimtab.runtime.prepare import prepare
from trimtab.runtime.system import System
from trimtab.systems.rest.kinds import RestDefinition, RestService

__all__ = ["client", "scheme"]

KINDS = (RestService, RestDefinition)


@pytest.fixture
async def namespace(client: ApiClient) -> str:
    """One of the test's own."""
    name = f"rest-{uuid.uuid4().hex[:12]}"
    await client.create(Untyped({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}))
    return name


@pytest.fixture
async def defined(client: ApiClient, scheme: Scheme) -> ApiClient:
    """The kinds are served, and the system's namespace is there."""
    for kind in KINDS:
        scheme.register(kind)
    await prepare(client, (System(name="rest", kinds=KINDS),), rights=False)
    system = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "trimtab-system"}}
    await client.apply(Untyped(system), manager="tests")
    return client


@pytest.fixture
async def station(defined: ApiClient, namespace: str, tmp_path: Path) -> AsyncIterator[Station]:
    """The system, ready to work in a namespace of its own, on a service of its own."""
    made = Station(defined, namespace, tmp_path)
    yield made
    await made.close()
