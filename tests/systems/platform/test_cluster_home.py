"""A cluster without a hub gets the kinds as CRDs: a stock kube-apiserver takes them, and refuses what we refuse."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.systems.platform.stage import KINDS, Document
from trimtab.client.api import ApiClient
from trimtab.client.connect import connect
from trimtab.model import kubernetes
from trimtab.model.errors import StatusError
from trimtab.model.scheme import Scheme, Untyped
from trimtab.runtime.prepare import prepare
from trimtab.runtime.system import System

pytestmark = pytest.mark.cluster
YAML = {"uploadedYAML": {"paths": [{"name": "a.yaml"}]}}
WORKLOAD = {"namespace": "web", "placement": {"labels": "env=prod"}, "artifact": YAML}


@pytest.fixture
async def kube(real_cluster: Any) -> AsyncIterator[ApiClient]:
    scheme = kubernetes.register(Scheme())
    for kind in KINDS:
        scheme.register(kind)
    client = connect(real_cluster.kubeconfig, scheme=scheme)
    await prepare(client, (System(name="platform", kinds=KINDS),), rights=False)
    yield client
    await client.close()


@pytest.mark.parametrize(
    ("group", "kind", "spec", "says"),
    [
        ("apps", "Workload", WORKLOAD, ""),
        ("apps", "Workload", {**WORKLOAD, "artifact": {}}, "exactly one of uploadedYAML"),
        (
            "apps",
            "Workload",
            {**WORKLOAD, "artifact": {"uploadedYAML": {"paths": [{"name": "../x"}]}}},
            "relative to the document",
        ),
        ("apps", "Workload", {**WORKLOAD, "version": "latest"}, "latest is how readers ask"),
        ("infra", "Cluster", {"config": {"eks": {"deep": {"er": [1, None]}}}}, ""),
        ("infra", "Cluster", {"config": {"eks": {}, "aks": {}}}, "exactly one of imported"),
        ("infra", "Blueprint", {"sharing": {"enabled": True}}, "with nobody"),
        ("infra", "Addon", {"namespace": "x", "artifact": {"helmInRepo": {"repository": "r"}}}, "give chart"),
    ],
)
async def test_a_stock_server_judges_as_we_do(
    kube: ApiClient, group: str, kind: str, spec: Document, says: str
) -> None:
    metadata = {"name": f"t{uuid.uuid4().hex[:8]}", "namespace": "default"}
    document = {"apiVersion": f"{group}.trimtab.dev/v3", "kind": kind, "metadata": metadata, "spec": spec}
    if not says:
        await kube.create(Untyped(document), dry_run=True)
        return
    with pytest.raises(StatusError) as refused:
        await kube.create(Untyped(document), dry_run=True)
    assert says in refused.value.message
