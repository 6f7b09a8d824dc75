"""A system: kinds, the controllers that serve them, what they may do, and what they need. All that a home must know.

The same record runs embedded and on a cluster, and `trimtab install` prints what it says.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from trimtab.client.api import ApiClient
from trimtab.client.protocol import AnyKind
from trimtab.model.admission import Admission
from trimtab.model.clock import Clock
from trimtab.model.conversion import Convertor
from trimtab.model.hub import HubKind
from trimtab.model.resource import Resource
from trimtab.runtime.controller import Controller

if TYPE_CHECKING:
    import asyncio

    from trimtab.runtime.manager import Manager
    from trimtab.runtime.metrics import Metrics
    from trimtab.runtime.queue import Queue
    from trimtab.runtime.workers import Workers
    from trimtab.storage.blobs import Blobs
    from trimtab.storage.scratch import Scratch

NAMESPACE = "trimtab-system"


class Rule(msgspec.Struct, frozen=True, kw_only=True):
    """A right beyond what the controllers' declarations say. `kinds` are classes, or resources as RBAC writes them:
    `"deployments.apps/scale"`. With `own_namespace` it holds only where the system itself lives."""

    kinds: tuple[type[Resource] | str, ...]
    verbs: tuple[str, ...]
    names: tuple[str, ...] = ()
    own_namespace: bool = False


class Context(msgspec.Struct, frozen=True, kw_only=True):
    """What a home gives to a system's controllers. `manager` runs them, for one that adds others while it works."""

    client: ApiClient
    clock: Clock
    blobs: Blobs | None
    scratch: Scratch
    queue: Queue
    workers: Workers
    metrics: Metrics
    manager: Manager | None = None
    manage: bool = False
    """Whether the system may define kinds: it holds its `managed_rules`."""
    webhooks: bool = False
    """Whether the API server asks this process about writes; beside the embedded one, admission is in it."""
    prometheus: str = ""
    """The address of the Prometheus to ask when a resource names none; "" for none. Without credentials."""
    data_dir: Path | None = None
    """The embedded home's folder, absolute; None on a cluster, where a pod's disk is nobody's home."""
    stopping: asyncio.Event | None = None
    """Set when the whole home ends. A controller that stops while it is not set will be back in another process."""


class System(msgspec.Struct, frozen=True, kw_only=True):
    """One system. `controllers` makes them for a home; `reconciles` are their classes, known without making any."""

    name: str
    kinds: tuple[type[Resource], ...] = ()
    hub: tuple[HubKind, ...] = ()
    """Kinds that the hub serves, from the services that hold them; they are not in `kinds`."""
    borrowed: tuple[type[Resource], ...] = ()
    """Kinds of others that it drives. On a cluster their owner defines them; the embedded home does it in their place."""
    reconciles: tuple[type[Controller[Any]], ...] = ()
    controllers: Callable[[Context], Iterable[Controller[Any]]] | None = None
    rules: tuple[Rule, ...] = ()
    managed_rules: tuple[Rule, ...] = ()
    """Granted only where the home lets systems define kinds: embedded, and on a cluster with `--manage-crds`."""
    admissions: tuple[Admission, ...] = ()
    convertors: tuple[Convertor, ...] = ()
    """Between the versions of its kinds. Embedded the server calls them; on a cluster they are a webhook of this system."""
    webhook_labels: str = ""
    """Selects further webhook configurations that call this system, made while it runs: they get its authority, too."""
    needs_blobs: bool = False
    requires: tuple[str, ...] = ()
    """Modules of its extra that it imports only when it needs them: without them it counts as not installed."""
    source: str = ""
    """The file of an operator of a user's own; "" for what is installed."""

    def __post_init__(self) -> None:
        if not re.fullmatch(r"[a-z0-9]([-a-z0-9]{0,50}[a-z0-9])?", self.name):
            raise ValueError(
                f'"{self.name}" is no name of a system: lower case letters, digits and dashes, as a DNS label'
            )

    def made(self, context: Context) -> tuple[Controller[Any], ...]:
        """Its controllers. Without a function of its own, each class is made without arguments."""
        if self.controllers is not None:
            return tuple(self.controllers(context))
        return tuple(cls() for cls in self.reconciles)

    @property
    def has_webhooks(self) -> bool:
        """Whether an API server of a cluster calls it."""
        return bool(self.admissions or self.convertors)

    @property
    def classes(self) -> tuple[type[Resource], ...]:
        """Its kinds, in all their versions."""
        versions = (cls for convertor in self.convertors for cls in (convertor.hub, convertor.spoke))
        return tuple(dict.fromkeys((*self.kinds, *versions)))

    @property
    def followed(self) -> tuple[AnyKind, ...]:
        """Every kind that its controllers watch."""
        found: dict[AnyKind, None] = {}
        for cls in self.reconciles:
            found |= dict.fromkeys((cls.kind, *cls.owns, *(watch.kind for watch in cls.watches)))
        return tuple(found)
