"""Git sync at work for a test: a real Git daemon, its controllers in this process, on either server."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import shutil
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import msgspec

from tests.runtime.widgets import PATIENCE, until_found
from trimtab.client.api import ApiClient
from trimtab.client.protocol import Named, Query
from trimtab.lab.git import GitServer
from trimtab.lab.git_daemon import GitDaemon
from trimtab.model.clock import SystemClock
from trimtab.model.conditions import get_condition
from trimtab.model.document import convert, plain
from trimtab.model.errors import StatusError
from trimtab.model.hub import HubMeta
from trimtab.model.kubernetes import ConfigMap, Event, Secret
from trimtab.model.objectmeta import ObjectMeta
from trimtab.runtime.manager import Manager
from trimtab.runtime.metrics import Metrics
from trimtab.runtime.queue import connect as connect_queue
from trimtab.runtime.system import Context
from trimtab.runtime.workers import Workers
from trimtab.storage.folder import FolderBlobs
from trimtab.storage.scratch import Scratch
from trimtab.systems.gitops.gitsync_controller import GitSyncController
from trimtab.systems.gitops.kinds import GitSync, GitSyncSpec, Repository, RepositorySpec, SyncConflict
from trimtab.systems.gitops.kinds.fields import SYNC_NOW
from trimtab.systems.gitops.repository_controller import RepositoryController

Document = dict[str, Any]


def config(name: str, **data: str) -> str:
    """A ConfigMap as a file."""
    lines = "".join(f"  {key}: {value!r}\n" for key, value in data.items())
    return f"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {name}\ndata:\n{lines}"


class Desk:
    """One namespace, one Repository (`team`) and the controllers of Git sync."""

    def __init__(self, client: ApiClient, namespace: str, folder: Path, daemon: GitDaemon) -> None:
        self.client, self.namespace, self.daemon = client, namespace, daemon
        self.git = GitServer(daemon.repositories.folder / namespace)
        self.blobs = FolderBlobs(folder / "blobs")
        self.controller: GitSyncController | None = None
        self._folder = folder
        self._asked = 0

    # --- the system ------------------------------------------------------------------------------------------------

    @contextlib.asynccontextmanager
    async def working(self, name: str = "one", client: ApiClient | None = None) -> AsyncIterator[GitSyncController]:
        """The controllers run inside. To leave it and to enter it again is a restart."""
        workers = Workers(2)
        used = client or self.client
        clock = SystemClock()
        manager = Manager(used, name="gitops", clock=clock, metrics=Metrics())
        context = Context(
            client=used,
            clock=clock,
            blobs=self.blobs,
            scratch=Scratch(self._folder / name, 1 << 30),
            queue=connect_queue(None, clock=clock),
            workers=workers,
            metrics=Metrics(),
            manager=manager,
        )
        syncs, repositories = GitSyncController(context), RepositoryController(context)
        syncs.quiet = 0.05
        for controller in (repositories, syncs):
            controller.query = Query(namespace=self.namespace)
            manager.add(controller)
        stop = asyncio.Event()
        task = asyncio.create_task(manager.run(stop))
        self.controller = syncs
        try:
            yield syncs
        finally:
            stop.set()
            await task
            await workers.close()
            await context.queue.close()

    def url(self, name: str = "team") -> str:
        return self.daemon.url(f"{self.namespace}/{name}")

    # --- what a test writes ----------------------------------------------------------------------------------------

    async def repository(self, name: str = "team", **spec: Any) -> Repository:
        made = Repository(
            metadata=HubMeta(name=name, namespace=self.namespace),
            spec=convert({"endpoint": self.url(name), **spec}, RepositorySpec),
        )
        return await self.client.create(made)

    async def sync(self, name: str = "fleet", **spec: Any) -> GitSync:
        wanted = {"repository": "team", **spec}
        made = GitSync(metadata=HubMeta(name=name, namespace=self.namespace), spec=convert(wanted, GitSyncSpec))
        return await self.client.create(made)

    async def change(self, name: str = "fleet", annotations: dict[str, str] | None = None, **spec: Any) -> GitSync:
        """Another spec, or annotations, whoever else writes."""
        while True:
            held = await self.client.get(GitSync, name, self.namespace)
            words = {**(held.metadata.annotations or {}), **(annotations or {})}
            metadata = msgspec.structs.replace(held.metadata, annotations=words)
            document = {**plain(held.spec), **spec}
            changed = held.replace(metadata=metadata, spec=convert(document, GitSyncSpec))
            with contextlib.suppress(StatusError):
                return await self.client.patch(held, changed)

    async def ask(self, name: str = "fleet", how: str = "manual") -> str:
        """Ask for a run; wait with `answered`."""
        self._asked += 1
        word = f"{how} {self._asked}"
        await self.change(name, {SYNC_NOW: word})
        return word

    async def answered(self, word: str, name: str = "fleet") -> GitSync:
        return await self.until(lambda sync: sync.status.handled_request == word, name)

    async def again(self, name: str = "fleet", how: str = "manual") -> GitSync:
        """One more run, to its end."""
        return await self.answered(await self.ask(name, how), name)

    async def secret(self, name: str, **values: str) -> None:
        data = {key: base64.b64encode(value.encode()).decode() for key, value in values.items()}
        await self.client.create(Secret(metadata=ObjectMeta(name=name, namespace=self.namespace), data=data))

    async def lose_blobs(self) -> None:
        """As when somebody emptied their place."""
        await asyncio.to_thread(shutil.rmtree, self._folder / "blobs")
        await self.blobs.ready()

    # --- what a test sees ------------------------------------------------------------------------------------------

    async def until(self, holds: Callable[[GitSync], Any], name: str = "fleet") -> GitSync:
        def seen(sync: GitSync) -> bool:
            return bool(sync.status) and bool(holds(sync))

        try:
            return await until_found(self.client, GitSync, name, self.namespace, seen)
        except TimeoutError:
            found = await self.client.get(GitSync, name, self.namespace)
            raise AssertionError(f"not within {PATIENCE} s: {found.raw['status']}") from None

    async def ready(self, name: str = "fleet", revision: str = "") -> GitSync:
        """In sync with what the branch is at, or with this commit."""
        wanted = revision or self.git.head("team")

        def holds(sync: GitSync) -> bool:
            return sync.status.last_applied_revision == wanted and reason(sync) == "Synced"

        return await self.until(holds, name)

    async def reason(self, wanted: str, name: str = "fleet") -> GitSync:
        return await self.until(lambda sync: reason(sync) == wanted, name)

    async def live(self, name: str, kind: str = "ConfigMap", version: str = "v1") -> Document | None:
        listing = await self.client.list(Named(version, kind), Query(namespace=self.namespace))
        return next((dict(item.raw) for item in listing.items if item.name == name), None)

    async def names(self) -> list[str]:
        """Of the ConfigMaps, but for that of the cluster."""
        listing = await self.client.list(ConfigMap, Query(namespace=self.namespace))
        return sorted(item.name for item in listing.items if item.name != "kube-root-ca.crt")

    async def versions(self) -> dict[str, str]:
        """Resource versions of everything that a loop would move."""
        found = {}
        for kind in (ConfigMap, GitSync, SyncConflict, Repository):
            listing = await self.client.list(kind, Query(namespace=self.namespace))
            for item in listing.items:
                found[f"{kind.__name__} {item.name}"] = str(item.metadata.resource_version)
        return found

    async def conflicts(self) -> list[SyncConflict]:
        listing = await self.client.list(SyncConflict, Query(namespace=self.namespace))
        return list(listing.items)

    async def events(self) -> list[str]:
        listing = await self.client.list(Event, Query(namespace=self.namespace))
        return [str(item.reason) for item in listing.items]


def reason(sync: GitSync) -> str:
    found = get_condition(sync.status.conditions, "Ready") if sync.status else None
    return found.reason if found is not None else ""


def message(sync: GitSync) -> str:
    found = get_condition(sync.status.conditions, "Ready") if sync.status else None
    return found.message if found is not None else ""
