"""`trimtab up` is killed at random moments while Git and the system change: in the end both say the same, all that was changed
on either side is there once, what was deleted is gone, nothing else is, and the branch is one line of commits."""

from __future__ import annotations

import asyncio
import os
import random
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.test_discovery_kill import controllers_of
from tests.needs import needs
from tests.systems.gitops.desk import config
from trimtab.client.api import ApiClient
from trimtab.client.connect import connect
from trimtab.client.protocol import Query, Ref
from trimtab.client.transport import FAILURES
from trimtab.lab.git import run as git_run
from trimtab.lab.git_daemon import GitDaemon
from trimtab.model import kubernetes
from trimtab.model.document import convert
from trimtab.model.errors import StatusError
from trimtab.model.hub import HubMeta
from trimtab.model.kubernetes import ConfigMap
from trimtab.model.objectmeta import ObjectMeta
from trimtab.model.scheme import Scheme
from trimtab.model.yaml import load_all
from trimtab.systems.gitops.kinds import GitSync, GitSyncSpec, Repository, RepositorySpec
from trimtab.testing.embedded import TrimtabServer
from trimtab.testing.ports import free_ports

pytestmark = pytest.mark.slow

KILLS, COUNT = 4, 12
FLAGS = ("--systems", "platform,gitops")
Documents = dict[str, dict[str, str]]


class World:
    """A home that is killed, a Git server that is not, and people who change things in both."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._daemon = GitDaemon(folder / "git", free_ports(1)[0])
        self.git = self._daemon.repositories
        self._scheme = kubernetes.register(Scheme())
        for kind in (Repository, GitSync):
            self._scheme.register(kind)
        self._server = TrimtabServer(folder, flags=FLAGS)

    @property
    def url(self) -> str:
        return self._daemon.url()

    def kill(self) -> None:
        """As a power cut would, controllers first, and start it again on the same folder."""
        os.kill(controllers_of(self._server), signal.SIGKILL)
        self._server.kill()
        self._server = TrimtabServer(self._folder, flags=FLAGS)

    def stop(self) -> None:
        self._server.stop()
        self._daemon.stop()

    def log(self) -> str:
        return self._server.log()[-4000:]

    async def do(self, act: Callable[[ApiClient], Any]) -> Any:
        """Until it is done, whoever else writes, and wherever the server is for a moment."""
        async with asyncio.timeout(30):
            while True:
                client = connect(self._server.kubeconfig, scheme=self._scheme)
                try:
                    return await act(client)
                except FAILURES as error:
                    if isinstance(error, StatusError) and error.code not in (409, 429, 500, 503):
                        raise
                finally:
                    await client.close()

    async def begin(self, files: dict[str, str]) -> None:
        self.git.create("team", files)
        where = RepositorySpec(endpoint=self.url)
        spec = {
            "repository": "team",
            "systemToGit": True,
            "include": ["ConfigMap"],
            "triggers": {"interval": "1s"},
            "deletionGuard": {"maxCount": COUNT},
        }
        sync = GitSync(metadata=HubMeta(name="fleet", namespace="default"), spec=convert(spec, GitSyncSpec))
        repository = Repository(metadata=HubMeta(name="team", namespace="default"), spec=where)
        await self.do(lambda client: client.create(repository))
        await self.do(lambda client: client.create(sync))

    async def followed(self, seen: Callable[[GitSync, int], bool]) -> None:
        """The GitSync, from change to change; `seen` gets how many there were."""

        async def act(client: ApiClient) -> None:
            query, count = Query(namespace="default", fields="metadata.name=fleet"), 0
            listing = await client.list(GitSync, query)
            if seen(listing.items[0], count):
                return
            async for event in client.watch(GitSync, query, listing.revision):
                count += 1
                if isinstance(event.object, GitSync) and seen(event.object, count):
                    return

        await self.do(act)

    async def live(self) -> dict[str, dict[str, str]]:
        listing = await self.do(lambda client: client.list(ConfigMap, Query(namespace="default")))
        return {item.name: dict(item.data or {}) for item in listing.items if item.name != "kube-root-ca.crt"}

    async def until(self, expected: Documents) -> None:
        try:
            await self.followed(lambda sync, count: self.agrees(sync, expected))
        except TimeoutError:
            sync = await self.do(lambda client: client.get(GitSync, "fleet", "default"))
            raise AssertionError(f"{sync.raw['status']}\n{self.written()}") from None

    def agrees(self, sync: GitSync, expected: Documents) -> bool:
        """Git has what is expected, and the sync has seen that."""
        ready = [each for each in sync.status.conditions or () if each.type == "Ready"] if sync.status else []
        at_rest = bool(ready) and ready[0].reason == "Synced" and sync.status.last_applied_revision == self.git.head()
        return at_rest and dict(self.written()) == expected

    def written(self) -> list[tuple[str, dict[str, str]]]:
        """Name and data of every document in Git."""
        files = [data for path, data in sorted(self.git.read().items()) if path.endswith(".yaml")]
        return [(each["metadata"]["name"], each["data"]) for data in files for each in load_all(data.decode())]


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    needs("git")
    made = World(tmp_path)
    yield made
    made.stop()


@pytest.mark.parametrize("seed", [1, 2])
async def test_kills_at_random_moments_lose_nothing_and_leave_both_sides_the_same(world: World, seed: int) -> None:
    chance = random.Random(seed)
    expected = {f"{side}{n}": {"turn": "0"} for side in ("git", "system") for n in range(COUNT)}
    await world.begin({f"{name}.yaml": config(name, **data) for name, data in expected.items()})
    await world.until(expected)
    for turn in range(1, KILLS + 1):
        await change_git(world, chance, expected, turn)
        await change_system(world, chance, expected, turn)
        wanted = chance.randrange(4)
        await world.followed(lambda sync, count, wanted=wanted: count >= wanted or world.agrees(sync, expected))  # type: ignore[misc]
        world.kill()
    await world.until(expected)
    assert await world.live() == expected, world.log()
    assert sorted(world.written(), key=str) == sorted(expected.items(), key=str)
    assert not git_run("-C", str(world.git.path()), "rev-list", "--merges", "main")


async def change_git(world: World, chance: random.Random, expected: Documents, turn: int) -> None:
    """In one commit half of its documents change, one goes and some come."""
    mine = sorted(name for name in expected if name.startswith("git"))
    gone, *changed = chance.sample(mine, len(mine) // 2)
    new = {name: {"turn": str(turn)} for name in (*changed, *(f"git-new{turn}-{n}" for n in range(8)))}
    del expected[gone]
    expected |= new
    world.git.commit("team", {f"{gone}.yaml": None, **{f"{name}.yaml": config(name, **new[name]) for name in new}})


async def change_system(world: World, chance: random.Random, expected: Documents, turn: int) -> None:
    """One goes, half of them change, most of those again and again, and one comes."""
    mine = sorted(name for name in expected if name.startswith("system"))
    gone, *changed = chance.sample(mine, len(mine) // 2)
    del expected[gone]
    await world.do(lambda client: client.delete(Ref(ConfigMap, gone, "default")))
    for name in (*changed, f"system-new{turn}"):
        expected[name] = {"turn": str(turn)}
        made = ConfigMap(metadata=ObjectMeta(name=name, namespace="default"), data=expected[name])
        await world.do(lambda client, made=made: client.apply(made, manager="users", force=True))  # type: ignore[misc]
