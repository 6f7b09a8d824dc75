"""Both homes, with the kinds of discovery defined: `defined` is the client, `station` has the controller for it."""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.runtime.conftest import client, scheme
from tests.systems.discovery.station import Station
from trimtab.client.api import ApiClient
from trimtab.client.protocol import Named, Query, Ref
from trimtab.client.transport import FAILURES
from trimtab.model.scheme import Scheme, Untyped
from trimtab.runtime.objects import with_metadata
from trimtab.runtime.prepare import prepare
from trimtab.systems.discovery.system import SYSTEM

__all__ = ["client", "scheme"]

RULE = Named("discovery.trimtab.dev/v1alpha1", "DiscoveryRule")


@pytest.fixture
async def namespace(client: ApiClient) -> AsyncIterator[str]:
    """One of the test's own. Its rules go with the test: on a cluster, later ones would sweep them too."""
    name = f"sweeps-{uuid.uuid4().hex[:12]}"
    await client.create(Untyped({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}))
    yield name
    with contextlib.suppress(*FAILURES):  # not every test has the kind
        for rule in (await client.list(RULE, Query(namespace=name))).items:
            await client.patch(rule, with_metadata(rule, finalizers=()))
            await client.delete(Ref(RULE, rule.name, name))


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
