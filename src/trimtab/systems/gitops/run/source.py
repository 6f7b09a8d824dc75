"""What Git says: the head of the branch, whether it is to be trusted, and the documents in it."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import TYPE_CHECKING, Any

from msgspec import UnsetType

from trimtab.runtime.git.errors import NoSuchRef
from trimtab.systems.gitops.kinds import GitSync, GitSyncStatus
from trimtab.systems.gitops.parsing import Parsed
from trimtab.systems.gitops.reading import Snapshot, normal_root
from trimtab.systems.gitops.run.tools import Memory, Tools
from trimtab.systems.gitops.run.verdicts import Stop
from trimtab.systems.gitops.telling import Verdict
from trimtab.systems.gitops.verifying import Untrusted, check_signature

if TYPE_CHECKING:
    from trimtab.runtime.git.mirror import Mirror


async def head_of(mirror: Mirror, sync: GitSync) -> str:
    """The commit of the branch now; "" when the first one will be ours. RemoteError."""
    spec = sync.spec
    try:
        return (await mirror.fetch(spec.revision))[spec.revision]
    except NoSuchRef:
        if not spec.system_to_git:
            raise
        return ""


async def check_branch(mirror: Mirror, name: str, field: str) -> None:
    """Stop when what could not be written to is a tag: that is found by its name, too, and no push moves it. RemoteError."""
    for full, is_tag in ((f"refs/heads/{name}", False), (f"refs/tags/{name}", True)):
        with contextlib.suppress(NoSuchRef):
            await mirror.fetch(full)
            if is_tag:
                message = f"{field}: is written to, so it must be the name of a branch; {name!r} is a tag"
                raise Stop(Verdict(False, "InvalidSpec", message, stalled=True))
            return


@contextlib.asynccontextmanager
async def meanwhile(ask: Callable[[], Coroutine[Any, Any, None]] | None) -> AsyncIterator[None]:
    """Ask for something while the block waits for Git. It is there, or its error raised, when the block is left."""
    if ask is None:
        yield
        return
    asking = asyncio.create_task(ask())
    try:
        yield
        await asking
    finally:
        asking.cancel()
        await asyncio.gather(asking, return_exceptions=True)


async def snapshot_of(mirror: Mirror, head: str, sync: GitSync, tools: Tools, memory: Memory) -> Snapshot:
    """The synced folder of a commit, which is verified unless it was. Stop when it is not trusted."""
    root = normal_root(sync.spec.path)
    if not head:
        return Snapshot("", root, {}, Parsed())
    if await check_trust(mirror, head, sync, tools):
        await _tell_rewritten(mirror, head, sync, tools)
    before = memory.snapshot
    if before is None or (before.commit, before.root) != (head, root):
        same_folder = before if before is not None and before.root == root else None
        memory.snapshot = await tools.reader.read(mirror, head, root, sync.namespace, same_folder)
        return memory.snapshot
    return before


async def check_trust(mirror: Mirror, head: str, sync: GitSync, tools: Tools) -> bool:
    """Whether it is another commit than the one that is applied. Stop when nobody whom the GitSync trusts signed that."""
    status = sync.status or GitSyncStatus()
    if status.observed_generation == sync.metadata.generation and head == (status.last_applied_revision or ""):
        return False
    if not isinstance(sync.spec.verify, UnsetType):
        try:
            await check_signature(mirror, head, sync, tools.credentials)
        except Untrusted as error:
            raise Stop(Verdict(False, "Untrusted", str(error), patient=True)) from None
    return True


async def _tell_rewritten(mirror: Mirror, head: str, sync: GitSync, tools: Tools) -> None:
    status = sync.status or GitSyncStatus()
    applied = status.last_applied_revision or ""
    if not applied or head == (status.last_attempted_revision or ""):
        return  # what was looked at before was told of then
    try:
        follows = await mirror.is_ancestor(applied, head)
    except NoSuchRef:
        follows = False
    if not follows:
        note = f"{sync.spec.revision} was rewritten: {head[:12]} does not follow {applied[:12]}"
        tools.events.warning(sync, "HistoryRewritten", note)
