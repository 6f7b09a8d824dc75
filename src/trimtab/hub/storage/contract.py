"""The storage service's contract. It knows IDs and rows; what a row means is its owner's business.

A row is one resource of a type ("blueprints.infra") in a project. Versions of it are snapshots beside it. The hub's
envelope is kept with it; only whether a project is being deleted is read in it. Every write gets the next revision, and is in
the log with the row before and after it.

Guarantees
  - Revisions are integers that only grow, in the order of commits, one sequence for the whole database, for all processes
    on it. A commit is atomic and durable when it returns; a write that changes nothing keeps its revision.
  - `get`, `list` see every acknowledged commit, of any process. `list` is of one revision, and goes on at that revision.
  - `changes` yields every commit after `since`, in order, without a gap, to every process, or raises store.contract.Gone.
  - An ID is given once and names the same thing for ever: `names` answers also for what was deleted.
  - Nothing new comes into a project that is being deleted, so that who finds it empty then may take it away. With a project
    goes all sharing with it, in the same commit: another of its name is another project.

Caveats: the log is a window (by age and by count). Lists at a revision below it are Gone.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import msgspec

from trimtab.storage.blobs import Blobs
from trimtab.store.contract import Op

PROJECTS = "projects.hub"
"""The type of projects; their rows have no project."""

INTENTS = "intents."
"""Before the type of what a row holds for a writer (`hub.holding`). Such rows are no resources: they may come into a project
that is being deleted, and nobody asks for their IDs when they are gone."""


class RowKey(NamedTuple):
    organization: str
    type: str
    project: str  # an ID; "" for projects themselves, and for types without one
    name: str


class Shared(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """With whom a row is shared, by project ID."""

    everyone: bool = False
    projects: tuple[str, ...] = ()


class Snapshot(msgspec.Struct, frozen=True, kw_only=True):
    """One published version. Immutable: the same version with another body is refused (`Published`)."""

    version: str
    body: dict[str, Any]
    created: str = ""  # given by the service; RFC 3339


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """One resource. `id`, `revision`, `created`, `modified` are the service's, and are ignored when a row is written."""

    key: RowKey
    id: str = ""
    description: str = ""
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    body: dict[str, Any] = {}
    status: dict[str, Any] | None = None
    shared: Shared = Shared()
    snapshot: Snapshot | None = None
    """The version that was last given in a write, which published it in the same commit unless it was published already.
    A write without one keeps it."""
    envelope: dict[str, Any] = {}
    revision: int = 0
    created: str = ""
    modified: str = ""


class RowWrite(msgspec.Struct, frozen=True, kw_only=True):
    """`expect`: the revision that the row must be at, 0 for "must not exist", None for no condition. Of a DELETE only the
    key counts."""

    row: Row
    op: Op = Op.PUT
    expect: int | None = None


class RowQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Rows of a type, sorted by the *names* of their project and of themselves. `project` is an ID; None is all."""

    organization: str
    type: str
    project: str | None = None
    name: str = ""
    labels: Mapping[str, str] = {}  # all of these must be equal; other selectors are the caller's
    limit: int = 500
    after: tuple[str, str] | None = None  # project's name, own name
    revision: int = 0  # 0: the newest


class RowPage(msgspec.Struct, frozen=True, kw_only=True):
    rows: list[Row]
    revision: int
    after: tuple[str, str] | None = None


class RowChange(msgspec.Struct, frozen=True, kw_only=True):
    """Of a DELETE, `row` is the last state at the revision of the deletion."""

    op: Op
    row: Row
    before: Row | None


class RowBatch(msgspec.Struct, frozen=True, kw_only=True):
    revision: int
    changes: tuple[RowChange, ...] = ()


class Identity(msgspec.Struct, frozen=True, kw_only=True):
    """Who an ID is."""

    id: str
    type: str
    project: str  # ID
    name: str
    deleted: bool = False


class RowConflict(Exception):  # noqa: N818
    """The compare-and-swap failed; `current` is what is there (None: nothing)."""

    def __init__(self, key: RowKey, current: Row | None) -> None:
        super().__init__(f"{key.type} {key.name} is not at the expected revision")
        self.key = key
        self.current = current


class Published(Exception):  # noqa: N818
    """This version was published with another body."""

    def __init__(self, key: RowKey, version: str) -> None:
        super().__init__(
            f'version "{version}" of {key.name} is published and cannot change: give the change a new version'
        )
        self.key = key
        self.version = version


class InUse(Exception):  # noqa: N818
    """A project cannot be deleted while it has rows."""


class Unknown(Exception):  # noqa: N818
    """A row names an organisation or a project that does not exist, or takes nothing new."""


class StorageUnavailable(Exception):  # noqa: N818
    """The database or the service cannot be reached now. The message has no credentials."""


class StorageUnusable(StorageUnavailable):
    """Waiting will not help: the database is another program's, of a newer release, or in use. The message says which."""


class Storage(Protocol):
    """The service, in this process or behind its API: the same."""

    async def get(self, key: RowKey) -> Row | None: ...

    async def list(self, query: RowQuery) -> RowPage: ...

    async def commit(self, write: RowWrite) -> Row:
        """The row as it is now; of a DELETE the last state at the deletion's revision. RowConflict, Published, InUse, Unknown;
        store.contract.TooLarge; ValueError for a name that cannot be kept."""
        ...

    def changes(self, organization: str, types: Sequence[str], since: int) -> AsyncIterator[RowBatch]:
        """All commits of these types after `since` (every type when empty); an empty batch at least once a minute."""
        ...

    async def horizon(self) -> tuple[int, int]:
        """The newest revision, and the oldest from which changes can be had."""
        ...

    async def ids(self, organization: str, type: str, project: str | None, names: Sequence[str]) -> Mapping[str, str]:  # noqa: A002
        """Name → ID of those that exist. With a project: its own rows, and those that are shared with it; own ones win."""
        ...

    async def names(self, ids: Sequence[str]) -> Mapping[str, Identity]: ...

    async def versions(self, key: RowKey) -> Sequence[Snapshot]:
        """Oldest first. They go with the row."""
        ...

    async def organizations(self) -> Sequence[str]: ...

    async def add_organization(self, name: str) -> None: ...

    @property
    def blobs(self) -> Blobs: ...

    async def ready(self) -> None:
        """Reach it; make tables, or bring those of an older release up to date. StorageUnavailable."""
        ...

    async def close(self) -> None: ...
