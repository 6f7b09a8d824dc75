"""Under a further suffix a kind is the same: its secrets stay out of Git, and its files go with its documents."""

from __future__ import annotations

import json

import pytest

from tests.systems.gitops.desk import Desk
from tests.systems.gitops.test_up import ADDON, CLUSTER, MANIFEST
from tests.systems.gitops.test_white_labels import labelled, up
from trimtab.client.transport import Call
from trimtab.lab.git import run as git_run

__all__ = ["labelled", "up"]

OURS, THEIRS = "infra.trimtab.dev/v3", "infra.acme.example/v3"
APIS = pytest.mark.parametrize("api", [OURS, THEIRS])


@APIS
@pytest.mark.row(10)
async def test_a_secret_of_a_cluster_is_in_no_commit_under_any_name(up: Desk, api: str) -> None:
    up.git.create("team", {"edge.yaml": CLUSTER.replace(OURS, api)})
    await up.repository()
    await up.sync(systemToGit=True, exclude=["Project", "hub.*/Repository"])
    await up.ready()
    secret = {"nodes": {"one": {"ssh": {"passphrase": "hunter2"}}}, "kubernetesVersion": "v1.32.0"}
    change = json.dumps({"spec": {"config": {"mks": secret}}}).encode()
    path = f"/apis/{api}/namespaces/{up.namespace}/clusters/edge"
    media = "application/merge-patch+json"
    await up.client.transport.call(Call(method="PATCH", path=path, body=change, content_type=media))
    await up.again()
    await up.until(lambda sync: b"v1.32.0" in up.git.read()["edge.yaml"])
    assert "hunter2" not in git_run("-C", str(up.git.path()), "log", "-p", "main").decode()


@APIS
@pytest.mark.row(10)
@pytest.mark.row(27)
async def test_files_come_with_their_document_under_any_name(up: Desk, api: str) -> None:
    files = {"addons/ingress.yaml": ADDON.replace(OURS, api), "addons/ingress/all.yaml": MANIFEST}
    up.git.create("team", files)
    await up.repository()
    await up.sync()
    await up.ready()
    assert await up.live("inside") is None, "a file of a document is no document"
    path = f"/apis/{api}/namespaces/{up.namespace}/addons/ingress/artifacts/ingress/all.yaml"
    reply = await up.client.transport.call(Call(method="GET", path=path, accept="*/*"))
    assert reply.body == MANIFEST.encode()


@APIS
@pytest.mark.row(10)
@pytest.mark.row(40)
async def test_lineage_is_kept_under_any_name(up: Desk, api: str) -> None:
    up.git.create("team", {"edge.yaml": CLUSTER.replace(OURS, api)})
    await up.repository()
    await up.sync()
    await up.ready()
    path = f"/apis/{OURS}/namespaces/{up.namespace}/clusters/edge"
    reply = await up.client.transport.call(Call(method="GET", path=path, query={"includeLineage": "true"}))
    shown = json.loads(reply.body)["metadata"]["annotations"]
    assert shown["hub.trimtab.dev/lineage"].startswith(f"{up.namespace}/fleet@")
