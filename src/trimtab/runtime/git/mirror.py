"""One remote repository in one folder of this machine.

Flow: `fetch` brings branches here; `files`, `read`, `changed` and `about` look at commits; `commit` makes one on top of
another, in memory and objects only; `push` puts it on a branch, when that is still where it was.

Guarantees: no work tree, so nothing of a repository is ever a file of this machine, run or followed. A push moves a
branch from `expected` to a commit that follows it, or does nothing; it never forces. A cancelled call leaves no
process, no lock and no key. Fetches and pushes of one folder are one at a time, between processes too; the rest needs
no lock, for objects are only ever added.

Caveats: the folder is a cache. One that is of another URL, broken, or over its limit of bytes is emptied and fetched
anew, and then commits that were made but not pushed are gone: push what you commit, or commit again.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar

from trimtab.model.clock import Clock, SystemClock
from trimtab.runtime.git import commits, edits, engine, trees
from trimtab.runtime.git.access import Remote
from trimtab.runtime.git.errors import NoSuchRef, TooLarge
from trimtab.runtime.git.limits import Limits
from trimtab.runtime.git.lock import exclusive
from trimtab.runtime.git.objects import CommitInfo, Person, Signer, TreeFile
from trimtab.runtime.git.refs import branch_name, candidates, is_commit, tracking
from trimtab.runtime.git.transport import Transport

T = TypeVar("T")
_ORIGIN = "trimtab-origin"
_HEAD = "HEAD"
_UNASKED = 32 << 20
"""Bytes that a server may send before it was asked what it has. What is larger is fetched anew, so that is lost on large ones."""


class Mirror:
    """`folder` is ours alone; it is made when it is needed. BadAddress when the URL is not allowed."""

    def __init__(
        self, folder: Path, remote: Remote, *, limits: Limits | None = None, clock: Clock | None = None
    ) -> None:
        self.folder, self.remote = folder, remote
        self._clock = clock or SystemClock()
        self._limits = limits or Limits()
        self._repository = folder / "repository"
        self._transport = Transport(self._repository, remote, self._limits)
        self._ready = False

    async def heads(self) -> Mapping[str, str]:
        """The branches that the remote has now, and where they are. Nothing is fetched."""
        async with self._alone():
            refs = await self._transport.refs("refs/heads/*")
        return {name.removeprefix("refs/heads/"): oid for name, oid in refs.items() if name.startswith("refs/heads/")}

    async def fetch(self, *refs: str) -> Mapping[str, str]:
        """Brings these branches, tags or commits (full ids), and says which commit each is; "HEAD" is the branch that
        the remote shows first. Without any: all branches. What is here already costs one question to the server."""
        for each in refs:
            if each != _HEAD and not is_commit(each):
                branch_name(each)
        async with self._alone():
            if (found := await self._straight(refs)) is not None:
                return found
            wanted = await self._wanted(refs)
            if len(wanted) > self._limits.fetched:
                raise TooLarge(
                    f"{len(wanted)} branches are too many for one fetch; name at most {self._limits.fetched}"
                )
            absent = await self._work(lambda repository: _absent(repository, wanted))
            if absent:
                await self._bring(absent)
            return await self._work(lambda repository: _arrived(repository, wanted))

    async def resolve(self, revision: str) -> str:
        """The commit of a branch, a tag, or an (abbreviated) id, as of the last fetch."""
        await self._prepared()
        return await self._work(lambda repository: commits.resolved(repository, revision))

    async def files(self, commit: str, path: str = "") -> Mapping[str, TreeFile]:
        """Every file below `path`, by its path from the root. Symlinks and submodules are listed and not followed."""
        await self._prepared()
        return await self._work(lambda repository: trees.listing(repository, commit, path, self._limits))

    async def read(
        self, oids: Iterable[str], *, max_bytes: int, sizes: Mapping[str, int] = MappingProxyType({})
    ) -> Mapping[str, bytes]:
        """The bytes of these blobs; TooLarge, before they are read, when they are more than `max_bytes` together. `sizes`: as
        `files` told of some."""
        await self._prepared()
        wanted = tuple(dict.fromkeys(oids))
        return await self._work(lambda repository: commits.contents(repository, wanted, max_bytes, self._limits, sizes))

    async def changed(self, old: str, new: str, path: str = "") -> frozenset[str]:
        """Paths of files that are not the same in both commits."""
        await self._prepared()
        return await self._work(lambda repository: trees.differing(repository, old, new, path, self._limits))

    async def commit(
        self,
        parent: str | None,
        changes: Mapping[str, bytes | None],
        *,
        message: str,
        author: Person,
        committer: Person,
        sign: Signer | None = None,
    ) -> str:
        """The id of a commit upon `parent` with these files written or (None) removed; `parent` itself when that
        changes nothing. It is on no branch until it is pushed. ValueError when a path cannot be written."""
        for path, content in changes.items():
            if content is not None and len(content) > self._limits.blob_bytes:
                raise TooLarge(f"path {path!r}: is larger than the {self._limits.blob_bytes} bytes that are allowed")
        await self._prepared()

        def make(repository: Any) -> str:
            base = trees.commit_of(repository, parent) if parent is not None else None
            tree = edits.edited(repository, base.tree if base is not None else None, changes)
            if base is not None and tree == base.tree.id:
                return str(base.id)
            return commits.made(repository, parent, tree, message, author, committer, sign, self._clock.now())

        return await self._work(make)

    async def push(self, commit: str, branch: str, *, expected: str | None) -> None:
        """Moves `branch` from `expected` (None: it must not exist) to `commit`. Moved when it is elsewhere; Uncertain
        when the connection ended before the server told. ValueError when `commit` does not follow `expected`."""
        branch_name(branch)
        async with self._alone():
            if not await self._work(lambda repository: commits.follows(repository, commit, expected)):
                raise ValueError(f"commit {commit} does not follow {expected}: pushing it would drop what is there")
            await self._transport.push(commit, branch, expected)
            await self._work(lambda repository: _note(repository, tracking(f"refs/heads/{branch}"), commit))

    async def is_ancestor(self, one: str, other: str) -> bool:
        """Whether `other` is, or follows, `one`."""
        await self._prepared()
        return await self._work(lambda repository: commits.follows(repository, other, one))

    async def about(self, commit: str) -> CommitInfo:
        await self._prepared()
        return await self._work(lambda repository: commits.described(repository, commit))

    async def _straight(self, refs: tuple[str, ...]) -> dict[str, str] | None:
        """One branch by one run of git, without a question before it: most names are a branch's, and most repositories are
        small. None for all else, and when that run fails by what a question would have told: then it is asked what there is."""
        if len(refs) != 1 or refs[0] == _HEAD or is_commit(refs[0]):
            return None
        wanted = {refs[0]: (candidates(refs[0])[0], "")}
        room = self._limits.repository_bytes - await _finished(lambda: _size(self._repository))
        if not await self._work(lambda repository: _noted(repository, wanted)):
            room = min(room, _UNASKED)
        try:
            await self._fetched(_specs(wanted), room, cautious=True)
        except (NoSuchRef, TooLarge):
            return None
        await self._transport.compact()
        return await self._work(lambda repository: _arrived(repository, wanted))

    async def _wanted(self, refs: tuple[str, ...]) -> dict[str, tuple[str, str]]:
        """As asked → (the remote's full name, or "" for a bare commit; its commit)."""
        named = [each for each in refs if not is_commit(each)]
        wanted = {each: ("", each) for each in refs if is_commit(each)}
        if not named and refs:
            return wanted
        patterns = [full for each in named for full in candidates(each)] or ["refs/heads/*"]
        there = await self._transport.refs(*patterns)
        if not refs:
            return {full.removeprefix("refs/heads/"): (full, oid) for full, oid in there.items()}
        for each in named:
            full = next((name for name in candidates(each) if name in there), None)
            if full is None:
                raise NoSuchRef(f"{self._transport.host} has no branch or tag {each!r}")
            wanted[each] = (full, there[full])
        return wanted

    async def _bring(self, absent: Mapping[str, tuple[str, str]]) -> None:
        specs = _specs(absent)
        taken = await _finished(lambda: _size(self._repository))
        try:
            await self._fetched(specs, self._limits.repository_bytes - taken)
        except TooLarge:
            if not taken:
                raise
            await _finished(lambda: self._make(anew=True))  # it may be old history that takes the room
            await self._fetched(specs, self._limits.repository_bytes)
        await self._transport.compact()

    async def _fetched(self, specs: list[str], room: int, *, cautious: bool = False) -> None:
        try:
            await self._transport.fetch(specs, room=room, cautious=cautious)
        except BaseException:
            await _finished(lambda: _sweep(self._repository))
            raise

    @contextlib.asynccontextmanager
    async def _alone(self) -> AsyncIterator[None]:
        await asyncio.to_thread(self.folder.mkdir, parents=True, exist_ok=True, mode=0o700)
        async with exclusive(self.folder / "lock", within=self._limits.time):
            if not self._is_there():
                await _finished(self._make)
                self._ready = True
            yield

    async def _prepared(self) -> None:
        if not self._is_there():
            async with self._alone():
                pass

    def _is_there(self) -> bool:
        """Looked at each time: whoever cleans up scratch may have removed it."""
        return self._ready and os.path.exists(self._repository / "HEAD")

    def _make(self, *, anew: bool = False) -> None:
        """The repository, of this URL. What an ended process left half done is removed; we hold the lock."""
        origin = self._repository / _ORIGIN
        if not anew and origin.exists() and origin.read_text() == self._transport.address.url:
            try:
                engine.opened(self._repository)
                _sweep(self._repository)
                return
            except engine.libgit2().GitError:
                pass
        shutil.rmtree(self._repository, ignore_errors=True)
        engine.created(self._repository)
        origin.write_text(self._transport.address.url)

    async def _work(self, act: Callable[[Any], T]) -> T:
        return await _finished(lambda: act(engine.opened(self._repository)))


async def _finished(act: Callable[[], T]) -> T:
    """Of a thread. A thread cannot be cancelled, so whoever is waits for its end: the lock must not be given up before."""
    working = asyncio.ensure_future(asyncio.to_thread(act))
    try:
        return await asyncio.shield(working)
    except asyncio.CancelledError:
        with contextlib.suppress(Exception):
            await working
        raise


def _absent(repository: Any, wanted: Mapping[str, tuple[str, str]]) -> dict[str, tuple[str, str]]:
    """Those whose objects are not here, or whose ref does not say so: a fetch that was cut off leaves no ref."""
    return {name: (full, oid) for name, (full, oid) in wanted.items() if not _here(repository, full, oid)}


def _here(repository: Any, full: str, oid: str) -> bool:
    if not full:
        return oid in repository
    reference = repository.references.get(tracking(full))
    return reference is not None and oid in (str(reference.target), commits.peeled(repository, reference.target))


def _noted(repository: Any, wanted: Mapping[str, tuple[str, str]]) -> bool:
    return all(repository.references.get(tracking(full)) is not None for full, _ in wanted.values())


def _specs(wanted: Mapping[str, tuple[str, str]]) -> list[str]:
    return [f"+{full}:{tracking(full)}" if full else oid for full, oid in wanted.values()]


def _arrived(repository: Any, wanted: Mapping[str, tuple[str, str]]) -> dict[str, str]:
    return {
        name: commits.peeled(repository, repository.references[tracking(full)].target if full else oid)
        for name, (full, oid) in wanted.items()
    }


def _note(repository: Any, reference: str, commit: str) -> None:
    repository.references.create(reference, commit, force=True)


def _size(folder: Path) -> int:
    return sum(file.stat().st_size for file in (folder / "objects").rglob("*") if file.is_file())


def _sweep(folder: Path) -> None:
    """Locks and half-written packs of processes that were ended."""
    for pattern in ("*.lock", "refs/**/*.lock", "objects/pack/tmp_*", "objects/pack/*.lock"):
        for file in folder.glob(pattern):
            file.unlink(missing_ok=True)
    for place in folder.glob("run-*"):
        shutil.rmtree(place, ignore_errors=True)
