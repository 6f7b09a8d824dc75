"""What a sync would do with any revision, or with a folder of this machine. Nothing is written, anywhere."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from trimtab.client.api import ApiClient
from trimtab.model.clock import Clock
from trimtab.runtime.credentials import Credentials
from trimtab.runtime.events import Recorder
from trimtab.storage.blobs import Blobs
from trimtab.storage.scratch import Scratch
from trimtab.systems.gitops.acting import Actors
from trimtab.systems.gitops.artifacts import MAX_BYTES
from trimtab.systems.gitops.conducting import Unguarded
from trimtab.systems.gitops.kinds import GitSync
from trimtab.systems.gitops.knowing import Knowledge
from trimtab.systems.gitops.parsing import Parsed
from trimtab.systems.gitops.planning import Plan
from trimtab.systems.gitops.reach import Mirrors
from trimtab.systems.gitops.reading import MAX_FILES, Contents, Reader, Snapshot, normal_root
from trimtab.systems.gitops.run.asking import git_repository, options_of
from trimtab.systems.gitops.run.claims import Claims
from trimtab.systems.gitops.run.source import check_trust, head_of
from trimtab.systems.gitops.run.tools import Memory, Tools
from trimtab.systems.gitops.running import Running
from trimtab.systems.gitops.served import Served

if TYPE_CHECKING:
    from trimtab.runtime.git.mirror import Mirror
    from trimtab.runtime.git.objects import TreeFile


class Previewer:
    """With the rights of whoever asks: they need to read the GitSync, its Repository and Secret, and what it applies."""

    def __init__(
        self, client: ApiClient, clock: Clock, blobs: Blobs, scratch: Scratch, credentials: Credentials
    ) -> None:
        knowledge, served = Knowledge(client.scheme), Served(client.transport)
        self._tools = Tools(
            client=client,
            clock=clock,
            blobs=blobs,
            mirrors=Mirrors(scratch, credentials),
            credentials=credentials,
            served=served,
            knowledge=knowledge,
            reader=Reader(served, knowledge),
            actors=Actors(client, lambda path: False),  # lineage is for who may see it; the inventory tells the same
            guard=Unguarded,
            events=Recorder(client, clock, component="trimtab.dev/preview"),
            suffix=client.scheme.suffix,
            claims=Claims(client, blobs, lambda sync: None),
        )

    async def revision(self, sync: GitSync, revision: str = "") -> tuple[Snapshot, Plan]:
        """Of a branch, a tag or a commit; the synced branch when none is named. RemoteError; running.Stop."""
        options_of(sync)
        repository = await git_repository(self._tools.client, sync, sync.spec.repository)
        async with self._tools.mirrors.open(repository) as mirror:
            snapshot = await self._snapshot(mirror, sync, revision)
            return snapshot, await self._plan(sync, snapshot, mirror)

    async def _snapshot(self, mirror: Mirror, sync: GitSync, revision: str) -> Snapshot:
        """Of the synced branch as a run reads it: the first commit may be ours, and others must be trusted."""
        root = normal_root(sync.spec.path)
        if revision and revision != sync.spec.revision:
            commit = (await mirror.fetch(revision))[revision]
        else:
            commit = await head_of(mirror, sync)
            if not commit:
                await self._tools.served.know(())
                return Snapshot("", root, {}, Parsed())
            await check_trust(mirror, commit, sync, self._tools)
        return await self._tools.reader.read(mirror, commit, root, sync.namespace)

    async def folder(self, sync: GitSync, folder: Path) -> tuple[Snapshot, Plan]:
        """Of a folder that stands for the synced one."""
        files, contents = local_files(folder)
        snapshot = await self._tools.reader.snapshot(Snapshot("", "", files, Parsed()), contents, sync.namespace)
        return snapshot, await self._plan(sync, snapshot, contents)

    async def _plan(self, sync: GitSync, snapshot: Snapshot, contents: Contents) -> Plan:
        return await Running(self._tools, sync, Memory(), "Preview").preview(snapshot, contents)


class Local:
    """Blobs of a folder."""

    def __init__(self, blobs: Mapping[str, bytes]) -> None:
        self._blobs = blobs

    async def read(
        self, oids: Iterable[str], *, max_bytes: int, sizes: Mapping[str, int] = MappingProxyType({})
    ) -> Mapping[str, bytes]:
        return {oid: self._blobs[oid] for oid in oids}


def local_files(folder: Path) -> tuple[dict[str, TreeFile], Local]:
    """What is below a folder, as Git would have it; links are not followed."""
    from trimtab.runtime.git.objects import TreeFile

    found: dict[str, TreeFile] = {}
    blobs: dict[str, bytes] = {}
    for place, folders, names in os.walk(folder, followlinks=False):
        links = [name for name in folders if Path(place, name).is_symlink()]
        folders[:] = sorted(name for name in folders if name != ".git")
        for name in sorted((*names, *links)):
            path = Path(place, name)
            link = path.is_symlink()
            if not link and not path.is_file():
                continue
            if len(found) >= MAX_FILES:
                raise ValueError(f"{folder} has more than {MAX_FILES} files")
            data = os.fsencode(path.readlink()) if link else _read(path)
            oid = hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()  # noqa: S324
            blobs[oid] = data
            at = path.relative_to(folder).as_posix()
            found[at] = TreeFile(oid=oid, size=len(data), mode=0o120000 if link else 0o100644)
    return found, Local(blobs)


def _read(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(MAX_BYTES + 1)
