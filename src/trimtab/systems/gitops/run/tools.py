"""What the runs of one process share, and what is remembered of a GitSync from one to the next."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from trimtab.client.protocol import Client
from trimtab.model.clock import Clock
from trimtab.systems.gitops.acting import Actors
from trimtab.systems.gitops.inventory import Entry
from trimtab.systems.gitops.keeping import Kept
from trimtab.systems.gitops.knowing import Knowledge
from trimtab.systems.gitops.parsing import Identity
from trimtab.systems.gitops.reach import Mirrors
from trimtab.systems.gitops.reading import Reader, Snapshot
from trimtab.systems.gitops.run.claims import Claims
from trimtab.systems.gitops.sending import Guard
from trimtab.systems.gitops.served import Served

if TYPE_CHECKING:
    from trimtab.runtime.credentials import Credentials
    from trimtab.runtime.events import Recorder
    from trimtab.storage.blobs import Blobs


class Tools(msgspec.Struct, frozen=True, kw_only=True):
    """What runs share in one process."""

    client: Client
    """For our own kinds; what is synced goes by `actors`."""
    clock: Clock
    blobs: Blobs
    mirrors: Mirrors
    credentials: Credentials
    served: Served
    knowledge: Knowledge
    reader: Reader
    actors: Actors
    guard: Guard
    events: Recorder
    suffix: str
    claims: Claims


class Memory(msgspec.Struct):
    """What this process remembers of a GitSync between runs. All of it can be had again."""

    kept: Kept | None = None
    snapshot: Snapshot | None = None
    judged: frozenset[str] = frozenset()
    settled: dict[Identity, tuple[str, Entry, int]] = msgspec.field(default_factory=dict)
    """Objects with which there was nothing to do: at which resourceVersion, by which entry and generation of the GitSync."""
    settled_in: Snapshot | None = None
    """What Git said when that was found out of all of them; None: it was found out of some."""
    sound: tuple[Snapshot, int] | None = None
    """The revision whose files beside documents were found to be in order, by which generation of the GitSync."""
    refused: frozenset[Identity] = frozenset()
    """What the last run left alone. Every run looks at it again: it is told of until there is an end to it."""
    looked_at: float | None = None
    """When all of it was last looked at, by the monotonic clock."""
    repository: tuple[str, int] = ("", 0)
    """Which Repository it was, and its generation."""
    confirmed: str = ""
    """The held plan whose confirmation a run was begun for: one that fails is tried again as any other."""
    decisions: frozenset[tuple[str, int]] = frozenset()
    """The same of decided conflicts: uid and generation."""
    retry_at: float | None = None
    """When the last run, which failed, may go better by itself, by the monotonic clock; None: it did not, or will not."""
    changed: set[Identity] = msgspec.field(default_factory=set)
    """Objects that changed in the system."""
    changed_first: float = 0.0
    changed_last: float = 0.0
