"""The hub's contracts: what a service's owner writes (Accessor, Convertor), and what comes between (Proxy).

A resource travels as a `Hub`: its document, `apiVersion, kind, metadata, spec[, status]`. Kubernetes' own metadata (uid,
resourceVersion, generation, managedFields, finalizers, …: the *envelope*) travels in it too, between the backend and whoever
keeps envelopes: the storage service by itself, the ledger for all other services. The codec shows five words only.

Guarantees an accessor gives
  - `get` and `list` see every acknowledged `apply` and `delete`. `apply` creates or updates. `delete` of what is not there
    changes nothing and raises `Missing`, so it may be sent again.
  - A failure is a `HubError` (or StatusError, which passes as it is); half of a write over several services is a
    condition in the status that comes back, never silence.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from functools import cache
from typing import Any, Protocol, TypeVar

import msgspec

from trimtab.store.contract import Op

Hub = dict[str, Any]
HubStatus = dict[str, Any]

ENVELOPE = (
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "finalizers",
    "ownerReferences",
    "managedFields",
    "generateName",
)
"""The metadata that services know nothing of."""

ORGANIZATION = "default"


class Options(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    """What every call says. `project` is a name above hydration and an ID below it; "" for kinds without a project."""

    organization: str = ORGANIZATION
    project: str = ""
    include_lineage: bool = False

    def key(self) -> bytes:
        """Canonical JSON: equal requests have equal keys.

        A default is left out only where it is the very same object, and one that came over a wire may be its twin."""
        twins = {
            name: default
            for name, default in _defaults(type(self))
            if (value := getattr(self, name)) is not default and value == default
        }
        return _key(msgspec.structs.replace(self, **twins) if twins else self)


_key = msgspec.json.Encoder(order="sorted").encode


@cache
def _defaults(options: type[Options]) -> tuple[tuple[str, Any], ...]:
    """Those of which there can be two that are equal."""
    named = ((field.name, field.default) for field in msgspec.structs.fields(options))
    return tuple((name, default) for name, default in named if default is not None and not isinstance(default, bool))


class GetOptions(Options, frozen=True, kw_only=True):
    version: str = ""  # a published version, or "latest"; "" is the resource as it is


class ListOptions(Options, frozen=True, kw_only=True):
    """`all_projects` lists over projects; then `project` is ""."""

    all_projects: bool = False
    name: str = ""
    labels: str = ""  # selectors, as kubectl writes them
    fields: str = ""
    limit: int = 0
    after: tuple[str, str] | None = None  # go on after this project and name
    revision: int = 0  # the state at this revision; 0 is the newest


class ApplyOptions(Options, frozen=True, kw_only=True):
    """`expect`: the revision that the resource must be at, 0 for "must not exist", None for no condition."""

    expect: int | None = None
    dry_run: bool = False
    force: bool = False
    field_manager: str = ""
    user: str = ""


class DeleteOptions(Options, frozen=True, kw_only=True):
    expect: int | None = None
    dry_run: bool = False


class StatusOptions(Options, frozen=True, kw_only=True):
    pass


class WatchOptions(Options, frozen=True, kw_only=True):
    all_projects: bool = True
    name: str = ""


class HubList(msgspec.Struct, frozen=True, kw_only=True):
    """A page of one revision, sorted by project and name. `after`: there is more behind this one."""

    items: list[Hub]
    revision: int = 0
    after: tuple[str, str] | None = None


class HubChange(msgspec.Struct, frozen=True, kw_only=True):
    """One change; of a DELETE `hub` is the last state, at the revision of the deletion."""

    op: Op
    hub: Hub
    before: Hub | None


class HubBatch(msgspec.Struct, frozen=True, kw_only=True):
    """Changes in order; with them a watcher is complete up to `revision`. Empty when idle."""

    revision: int
    changes: tuple[HubChange, ...] = ()


class Accessor(Protocol):
    """The only thing that talks to a service. It understands the hub's view only."""

    async def get(self, name: str, options: GetOptions) -> Hub: ...

    async def list(self, options: ListOptions) -> HubList: ...

    async def apply(self, hub: Hub, options: ApplyOptions) -> Hub: ...

    async def delete(self, name: str, options: DeleteOptions) -> None: ...

    async def status(self, name: str, options: StatusOptions) -> HubStatus: ...


class Watched(Accessor, Protocol):
    """An accessor that keeps envelopes and revisions. All of the chain above the ledger does."""

    def watch(self, options: WatchOptions, since: int) -> AsyncIterator[HubBatch]:
        """Every change after `since`; store.contract.Gone when that is too long ago. A batch at least once a minute."""
        ...

    async def horizon(self) -> tuple[int, int]:
        """The newest revision, and the oldest from which can be watched."""
        ...


class Notifying(Protocol):
    """What an accessor of a foreign service may have besides: it tells what changed there without us."""

    def notifications(self) -> AsyncIterator[tuple[str, str]]:
        """(project ID or name as the accessor has it, name) of what changed; ("", "") when anything may have."""
        ...


Proxy = Callable[[Any], Any]
"""From an accessor to one that does something before or after it: `Proxy(accessor) -> accessor`."""

S = TypeVar("S")


class Convertor(Protocol[S]):
    """Between a hub kind and one spoke: the resources of a service that together are one. Pure, lossless, no I/O."""

    def convert_to(self, spoke: S) -> Any:
        """The hub object (of the kind's class)."""
        ...

    def convert_from(self, hub: Any) -> S: ...


class HubError(Exception):
    """A service cannot do what was asked; `reason` and `code` are those of the Status that a client gets."""

    code = 500
    reason = "InternalError"


class Missing(HubError):  # noqa: N818
    """There is no such resource."""

    code = 404
    reason = "NotFound"


class Stale(HubError):  # noqa: N818
    """The compare-and-swap failed; `current` is what is there (None: nothing)."""

    code = 409
    reason = "Conflict"

    def __init__(self, message: str, current: Hub | None = None) -> None:
        super().__init__(message)
        self.current = current


class Refused(HubError):  # noqa: N818
    """What was asked is wrong; `problems` are (field, what is wrong and what would be right)."""

    code = 422
    reason = "Invalid"

    def __init__(self, problems: Sequence[tuple[str, str]]) -> None:
        super().__init__("; ".join(f"{field}: {why}" for field, why in problems))
        self.problems = tuple(problems)


class Republished(Refused):
    """A version that was published says something else now."""

    def __init__(self, version: str, why: str) -> None:
        super().__init__([("spec.version", why)])
        self.version = version


class Down(HubError):  # noqa: N818
    """The service cannot be reached or is busy: nothing that was asked is known to be done. It may work later."""

    code = 503
    reason = "ServiceUnavailable"
