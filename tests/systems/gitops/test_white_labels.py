"""Git sync on a hub that serves its kinds under a second suffix: each object is one, by whichever name."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from tests.systems.gitops.desk import Desk, message
from trimtab.client.connect import connect
from trimtab.client.protocol import Named
from trimtab.lab.git_daemon import GitDaemon
from trimtab.model import kubernetes
from trimtab.model.scheme import Scheme, Untyped
from trimtab.systems.gitops.kinds import GitSync, Repository, SyncConflict
from trimtab.testing.embedded import TrimtabServer

OURS, THEIRS = "infra.trimtab.dev/v3", "infra.acme.example/v3"


def blueprint(api: str, addon: str = "web") -> str:
    return f"apiVersion: {api}\nkind: Blueprint\nmetadata:\n  name: base\nspec:\n  addons:\n  - name: {addon}\n"


@pytest.fixture(scope="module")
def labelled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TrimtabServer]:
    flags = ("--systems", "platform,gitops", "--group-suffix", "acme.example")
    with TrimtabServer(tmp_path_factory.mktemp("labelled"), flags=flags) as server:
        yield server


@pytest.fixture
async def up(labelled: TrimtabServer, git_daemon: GitDaemon, tmp_path: Path) -> AsyncIterator[Desk]:
    """The controllers are those of the server."""
    scheme = kubernetes.register(Scheme())
    for kind in (Repository, GitSync, SyncConflict):
        scheme.register(kind)
    client = connect(labelled.kubeconfig, scheme=scheme)
    project = f"team-{uuid.uuid4().hex[:8]}"
    await client.create(
        Untyped({"apiVersion": "hub.trimtab.dev/v3", "kind": "Project", "metadata": {"name": project}, "spec": {}})
    )
    try:
        yield Desk(client, project, tmp_path, git_daemon)
    finally:
        await client.close()


async def test_one_object_by_two_names_is_there_twice(up: Desk) -> None:
    up.git.create("team", {"a.yaml": blueprint(OURS), "b.yaml": blueprint(THEIRS, "dns")})
    await up.repository()
    await up.sync(systemToGit=True)
    told = message(await up.reason("InvalidDocuments"))
    other = f"infra.trimtab.dev/Blueprint {up.namespace}/base"
    assert f"is in a.yaml:1, as {other}, too: keep one of them" in told
    assert await up.live("base", "Blueprint", OURS) is None


@pytest.mark.parametrize("api", [OURS, THEIRS])
async def test_what_git_has_by_one_name_is_not_new_by_the_other(up: Desk, api: str) -> None:
    up.git.create("team", {"a.yaml": blueprint(api)})
    await up.repository()
    await up.sync(systemToGit=True, include=["Blueprint"])
    await up.ready()
    other = THEIRS if api == OURS else OURS
    live = await up.client.get(Named(other, "Blueprint"), "base", up.namespace)
    await up.client.patch(live, Untyped({**live.raw, "metadata": {**live.raw["metadata"], "labels": {"x": "1"}}}))
    await up.until(lambda sync: b"x:" in up.git.read()["a.yaml"])
    await up.again()
    await up.ready()
    assert list(up.git.read()) == ["a.yaml"]


async def test_what_is_new_in_the_system_is_written_once_by_our_own_name(up: Desk) -> None:
    up.git.create("team", {"README": "documents come here"})
    await up.repository()
    await up.sync(systemToGit=True, include=["Blueprint"])
    await up.ready()
    document = {"apiVersion": THEIRS, "kind": "Blueprint", "metadata": {"name": "base", "namespace": up.namespace}}
    await up.client.create(Untyped({**document, "spec": {"addons": []}}))
    await up.until(lambda sync: sync.status.inventory and sync.status.inventory.count == 1)
    await up.again()
    await up.ready()
    (path,) = set(up.git.read()) - {"README"}
    assert OURS.encode() in up.git.read()[path]


async def test_a_document_that_takes_the_other_name_takes_its_object_along(up: Desk) -> None:
    """It is not gone from Git, so it is not deleted."""
    up.git.create("team", {"a.yaml": blueprint(OURS)})
    await up.repository()
    await up.sync(deletionGuard={"maxCount": 100})
    await up.ready()
    before = await up.live("base", "Blueprint", OURS)
    up.git.commit("team", {"a.yaml": blueprint(THEIRS, "dns")})
    await up.again()
    sync = await up.ready()
    after = await up.live("base", "Blueprint", OURS)
    assert before is not None
    assert after is not None
    assert after["metadata"]["uid"] == before["metadata"]["uid"]
    assert [each["name"] for each in after["spec"]["addons"]] == ["dns"]
    assert sync.status.inventory.count == 1
