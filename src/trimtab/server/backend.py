"""What the server calls to keep the objects of a kind. A store is one; the hub makes others over services that hold the data."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from typing import Protocol, runtime_checkable

from trimtab.store.contract import Entry, Key, Page, Query, Revision, Watch, Write


class Backend(Protocol):
    """Serves one kind. The contract is the store's, for the keys of that kind."""

    @property
    def revision(self) -> Revision: ...

    @property
    def compacted(self) -> Revision: ...

    async def get(self, key: Key) -> Entry | None: ...

    async def list(self, query: Query) -> Page: ...

    async def commit(self, write: Write) -> Entry: ...

    def watch(self, query: Query, since: Revision, *, heartbeat: float = 60.0) -> Watch: ...


@runtime_checkable
class VersionedBackend(Protocol):
    """A backend that keeps published versions of its objects, too."""

    async def published(self, key: Key, version: str) -> Entry | None:
        """The object as it was published; `latest` is the newest version. StatusError 404 when there is no such version."""
        ...


@runtime_checkable
class RehearsingBackend(Protocol):
    """A backend that has more to say against a write than the server knows."""

    async def rehearse(self, write: Write) -> None:
        """Raise what `commit` would, and do nothing."""
        ...


@runtime_checkable
class TurnTaking(Protocol):
    """A backend so slow that writers of one object should not race."""

    def turn(self, key: Key, *, again: bool) -> AbstractAsyncContextManager[None]:
        """Around a read and the write that follows from it; `again`: they failed before."""
        ...
