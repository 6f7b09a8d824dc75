"""What is new in the system and keeps a lineage gets that after the push that brought it to Git. In between a process may end."""

from __future__ import annotations

import asyncio
import json
import uuid
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.systems.gitops.conftest import KINDS
from tests.systems.gitops.desk import Desk
from tests.systems.gitops.test_faults import Odd
from trimtab.client.connect import connect
from trimtab.client.protocol import Named, Ref
from trimtab.client.transport import Call, Unreachable
from trimtab.lab.git_daemon import GitDaemon
from trimtab.model import kubernetes
from trimtab.model.scheme import Scheme, Untyped
from trimtab.runtime.prepare import prepare
from trimtab.runtime.system import System
from trimtab.systems.gitops import exporting
from trimtab.systems.platform.kinds.blueprint import Blueprint
from trimtab.testing.embedded import TrimtabServer

API = "infra.trimtab.dev/v3"
BLUEPRINT = Named(API, "Blueprint")


@pytest.fixture(scope="module")
def quiet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TrimtabServer]:
    """No controller of Git sync works but a test's own."""
    with TrimtabServer(tmp_path_factory.mktemp("quiet"), flags=("--systems", "platform")) as server:
        yield server


@pytest.fixture
async def hub(quiet: TrimtabServer, git_daemon: GitDaemon, tmp_path: Path) -> AsyncIterator[Desk]:
    scheme = kubernetes.register(Scheme())
    for kind in (*KINDS, Blueprint):
        scheme.register(kind)
    client = connect(quiet.kubeconfig, scheme=scheme)
    await prepare(client, (System(name="gitops", kinds=KINDS),), rights=False)
    project = f"team-{uuid.uuid4().hex[:8]}"
    await client.create(
        Untyped({"apiVersion": "hub.trimtab.dev/v3", "kind": "Project", "metadata": {"name": project}, "spec": {}})
    )
    try:
        yield Desk(client, project, tmp_path, git_daemon)
    finally:
        await client.close()


async def make_blueprint(hub: Desk) -> None:
    metadata = {"name": "base", "namespace": hub.namespace}
    await hub.client.create(
        Untyped({"apiVersion": API, "kind": "Blueprint", "metadata": metadata, "spec": {"addons": [{"name": "web"}]}})
    )


async def addons(hub: Desk) -> list[str]:
    live = await hub.client.get(BLUEPRINT, "base", hub.namespace)
    return [addon["name"] for addon in live.raw["spec"]["addons"]]


async def cut_after_push(hub: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """A Blueprint is made, and is in Git. Whoever brought it there ended at once."""
    cut, really = asyncio.Event(), exporting.push

    async def push(*args: Any) -> None:
        await really(*args)
        cut.set()
        raise Unreachable("it is cut off")

    async def refuse(call: Call) -> None:
        if cut.is_set():
            raise Unreachable("it is cut off")

    hub.git.create("team", {"README": "documents come here"})
    await hub.repository()
    await hub.sync(systemToGit=True, include=["Blueprint"])
    async with hub.working("first"):
        await hub.ready()
    await make_blueprint(hub)
    with monkeypatch.context() as patched:
        patched.setattr(exporting, "push", push)
        async with hub.working("killed", Odd(hub.client, before=refuse).client):
            await asyncio.wait_for(cut.wait(), 30)
    assert [path for path in hub.git.read() if path.endswith(".yaml")]
    assert await lineage(hub) == ""


async def lineage(hub: Desk) -> str:
    path = f"/apis/{API}/namespaces/{hub.namespace}/blueprints/base"
    reply = await hub.client.transport.call(Call(method="GET", path=path, query={"includeLineage": "true"}))
    annotations = json.loads(reply.body)["metadata"].get("annotations") or {}
    return str(annotations.get("hub.trimtab.dev/lineage", ""))


@pytest.mark.row(40)
async def test_it_gets_its_lineage_and_keeps_what_it_says(hub: Desk) -> None:
    hub.git.create("team", {"README": "documents come here"})
    await hub.repository()
    await hub.sync(systemToGit=True, include=["Blueprint"])
    await make_blueprint(hub)
    async with hub.working("first"):
        sync = await hub.reason("Synced")
        assert (await lineage(hub)).startswith(f"{hub.namespace}/fleet@")
        assert await addons(hub) == ["web"]
        assert [run.outcome for run in sync.status.history] == ["Succeeded"]
        await hub.again()
        assert await addons(hub) == ["web"]
        assert len(hub.git.history()) == 2


async def test_what_git_lost_and_the_system_keeps_says_what_it_said(hub: Desk) -> None:
    """It was applied from Git before: what an apply does not name would go."""
    document = f"apiVersion: {API}\nkind: Blueprint\nmetadata:\n  name: base\nspec:\n  addons:\n  - name: web\n"
    hub.git.create("team", {"base.yaml": document, "README": "ours"})
    await hub.repository()
    await hub.sync(systemToGit=True, include=["Blueprint"])
    async with hub.working("first"):
        await hub.ready()
    hub.git.commit("team", {"base.yaml": None})
    live = await hub.client.get(BLUEPRINT, "base", hub.namespace)
    labelled = {**live.raw["metadata"], "labels": {"tier": "one"}}
    await hub.client.patch(live, Untyped({**live.raw, "metadata": labelled}))
    async with hub.working("next"):
        await hub.reason("Conflicts")
        (conflict,) = await hub.conflicts()
        await hub.client.patch(conflict, conflict.replace(spec=conflict.spec.replace(resolution="system")))
        await hub.reason("Synced")
        assert await addons(hub) == ["web"]
        assert any(b"tier: one" in data and b"name: web" in data for data in hub.git.read().values())


@pytest.mark.row(40)
async def test_it_has_its_lineage_when_another_goes_on(hub: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    await cut_after_push(hub, monkeypatch)
    async with hub.working("next"):
        await hub.again()
        await hub.ready()
        assert (await lineage(hub)).startswith(f"{hub.namespace}/fleet@")
        assert await addons(hub) == ["web"]
        assert len(hub.git.history()) == 2


async def test_what_is_changed_in_between_goes_to_git_and_is_no_conflict(
    hub: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    await cut_after_push(hub, monkeypatch)
    live = await hub.client.get(BLUEPRINT, "base", hub.namespace)
    await hub.client.patch(live, Untyped({**live.raw, "spec": {"addons": [{"name": "dns"}]}}))
    async with hub.working("next"):
        await hub.again()
        await hub.ready()
        assert await hub.conflicts() == []
        assert await addons(hub) == ["dns"]
        assert any(b"name: dns" in data for data in hub.git.read().values())
        assert (await lineage(hub)).startswith(f"{hub.namespace}/fleet@")


async def test_what_is_deleted_in_between_stays_deleted(hub: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    await cut_after_push(hub, monkeypatch)
    await hub.client.delete(Ref(BLUEPRINT, "base", hub.namespace))
    async with hub.working("next"):
        await hub.again()
        await hub.ready()
        assert await hub.live("base", "Blueprint", API) is None
        assert list(hub.git.read()) == ["README"]
