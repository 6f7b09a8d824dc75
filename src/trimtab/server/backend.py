"""What the server calls to keep the objects of a kind. A store is one; the hub makes others over services that hold the data."""

from __future__ import annotations

from typing import Protocol

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
