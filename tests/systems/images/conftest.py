"""Both homes, with the kinds of image discovery defined: `defined` is the client."""

from __future__ import annotations

import uuid

import pytest

from tests.runtime.conftest import client, scheme
from trimtab.client.api import ApiClient
from trimtab.model.scheme import Scheme, Untyped
from trimtab.runtime.prepare import prepare
from trimtab.runtime.system import System
from trimtab.systems.images.kinds import SBOM, DiscoveryJob, Image, Registry, VEXSource, VulnerabilityReport

__all__ = ["client", "scheme"]

KINDS = (Registry, DiscoveryJob, Image, SBOM, VulnerabilityReport, VEXSource)


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
