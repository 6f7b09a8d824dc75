"""The database of the hub dies in the midst of a sync: what was applied stays, the rest follows when it is back, and no word
of the sync is that all is well before it is."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from tests.needs import needs
from trimtab.client.api import ApiClient
from trimtab.client.connect import connect
from trimtab.client.protocol import Named, Query
from trimtab.client.transport import FAILURES
from trimtab.lab.git_daemon import GitDaemon
from trimtab.model.errors import StatusError
from trimtab.model.scheme import Untyped
from trimtab.testing.embedded import TrimtabServer
from trimtab.testing.ports import free_ports
from trimtab.testing.postgres import PostgresServer

pytestmark = pytest.mark.slow

HUB, INFRA = "hub.trimtab.dev/v3", "infra.trimtab.dev/v3"
SYNC, ADDON = Named(HUB, "GitSync"), Named(INFRA, "Addon")
COUNT = 600
PATIENCE = 60.0


class World:
    """A home whose hub is in PostgreSQL, and a Git server."""

    def __init__(self, folder: Path, postgres: PostgresServer, daemon: GitDaemon, server: TrimtabServer) -> None:
        self.postgres, self.git, self._daemon, self._server = postgres, daemon.repositories, daemon, server
        self.client: ApiClient = connect(server.kubeconfig)

    async def begin(self) -> None:
        self.git.create("team", addons("one"))
        where = {"name": "team", "namespace": "default"}
        for kind, spec in (
            ("Repository", {"endpoint": self._daemon.url()}),
            ("GitSync", {"repository": "team", "triggers": {"interval": "1s"}}),
        ):
            made = {"apiVersion": HUB, "kind": kind, "metadata": where, "spec": spec}
            await self.client.apply(Untyped(made), manager="test", force=True)

    async def namespaces(self) -> list[str]:
        """What each Addon says; 503 while the database is away is waited out."""
        while True:
            try:
                found = await self.client.list(ADDON, Query(namespace="default"))
                return [item.raw["spec"]["namespace"] for item in found.items]
            except FAILURES as error:
                if isinstance(error, StatusError) and error.code not in (429, 500, 503):
                    raise

    async def until(self, wanted: Callable[[list[str]], bool]) -> list[str]:
        async with asyncio.timeout(PATIENCE):
            while not wanted(found := await self.namespaces()):
                pass
        return found

    async def synced(self) -> dict[str, Any]:
        """The status that says so of the head."""
        head = self.git.head()
        async with asyncio.timeout(PATIENCE):
            while True:
                try:
                    status = (await self.client.get(SYNC, "team", "default")).raw.get("status") or {}
                except FAILURES:
                    continue
                ready = [each for each in status.get("conditions") or () if each["type"] == "Ready"]
                if ready and ready[0]["reason"] == "Synced" and status.get("lastAppliedRevision") == head:
                    return dict(status)


def addons(namespace: str) -> dict[str, str]:
    files = "artifact: {uploadedYAML: {paths: [{name: a.txt}]}}"
    head = f"apiVersion: {INFRA}\nkind: Addon\n"
    return {
        f"a{n:03}.yaml": f"{head}metadata: {{name: a{n:03}}}\nspec: {{namespace: {namespace}, {files}}}\n"
        for n in range(COUNT)
    } | {"a.txt": "words"}


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    needs("git")
    with PostgresServer() as postgres, GitDaemon(tmp_path / "git", *free_ports(1)) as daemon:
        flags = ("--systems", "platform,gitops", "--hub-storage", postgres.url)
        with TrimtabServer(tmp_path, flags=flags) as server:
            made = World(tmp_path, postgres, daemon, server)
            yield made
            await made.client.close()


async def test_a_database_that_dies_in_the_midst_of_a_sync_leaves_nothing_half_done_for_good(world: World) -> None:
    await world.begin()
    some = await world.until(lambda found: len(found) > 0)
    assert len(some) < COUNT, "it was too fast to be cut"
    world.postgres.kill()
    world.postgres.restart()
    status = await world.synced()
    assert await world.namespaces() == ["one"] * COUNT
    assert status["inventory"]["count"] == COUNT

    world.git.commit("team", addons("two"))
    some = await world.until(lambda found: "two" in found)
    assert "one" in some, "it was too fast to be cut"
    world.postgres.kill()
    world.postgres.restart()
    await world.synced()
    assert await world.namespaces() == ["two"] * COUNT
