"""A controller: what a user writes. It makes the world match one kind of object.

`reconcile` may be called at any time, any number of times, never twice at a time for one object. It reads the world as it
is, compares, acts, writes status when that changed, and says when to be called again. A crash at any line must lose
nothing: what has to survive is in a resource before the act that depends on it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar, get_args, get_origin

import msgspec

from trimtab.client.protocol import AnyKind, Object, Query
from trimtab.model.clock import Clock
from trimtab.model.logs import log
from trimtab.runtime.changes import Change, Request
from trimtab.runtime.index import Index
from trimtab.runtime.predicates import Predicate, any_change

if TYPE_CHECKING:
    from trimtab.runtime.cached import CachedClient
    from trimtab.runtime.events import Recorder

O = TypeVar("O", bound=Object)  # noqa: E741 - an object


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """When to reconcile again without a change: in so many seconds; or soon, with a growing back-off; else not. Of those
    that are due, a higher `priority` goes first; fresh changes have 0. If not set, it stays as it was this time."""

    requeue_after: float | None = None
    requeue: bool = False
    priority: int | None = None


class TerminalError(Exception):
    """Trying again is useless until the object changes. It is logged and counted, and not tried again."""


class Watch(msgspec.Struct, frozen=True, kw_only=True):
    """Another kind whose changes matter: `Watch(kind=Secret, to=rules_that_use)`. `to` maps a change, of which it sees the
    old and the new object, to what must be reconciled; it runs at once and must not wait. `indexes` are ways to find its
    objects by `self.client.indexed`."""

    kind: AnyKind
    to: Callable[[Change], Iterable[Request]]
    when: Predicate = any_change
    query: Query = Query()
    indexes: tuple[Index, ...] = ()


class Controller(Generic[O]):
    """Subclass it with the kind: `class CanaryController(Controller[CanaryDeployment])`, and write `reconcile`."""

    kind: AnyKind
    """Taken from the brackets; set it for a kind that has no class."""

    name: str = ""
    """In logs, metrics and events. The kind in lower case when not set; unique within a manager."""

    owns: ClassVar[tuple[AnyKind, ...]] = ()
    """Kinds that `reconcile` makes: a change of one reconciles its controlling owner."""

    watches: ClassVar[tuple[Watch, ...]] = ()
    indexes: ClassVar[tuple[Index, ...]] = ()
    """Ways to find objects of the own kind: by `self.client.indexed`, and in the mapping of a Watch."""

    when: Predicate = any_change
    """Which changes of the own kind count."""

    echo: bool = True
    """Whether a reconcile's own writes bring it another reconcile, as every other change does. A reconcile that does one
    step at a time, writes, returns, and goes on when it is called again, lives on that. One that does all there is to do
    in one call may set False, and saves the calls that find nothing to do."""

    query: Query = Query()
    """Which objects of the own kind, and of those it owns in which namespace."""

    concurrency: int = 4
    timeout: float | None = 300.0
    """Seconds that one reconcile may take; None is for ever."""

    client: CachedClient
    clock: Clock
    events: Recorder
    log: Any
    wake: Callable[[Request], None]
    """Asks for a reconcile of one object, for what no watch can tell. There from `start` on."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        for base in cls.__dict__.get("__orig_bases__", ()):
            if get_origin(base) is not None and issubclass(get_origin(base), Controller):
                (argument,) = get_args(base)
                if isinstance(argument, type):
                    cls.kind = argument

    async def reconcile(self, request: Request) -> Result | None:
        """Make the world match the object. Return None when there is nothing to wait for."""
        raise NotImplementedError(f"{type(self).__name__} has no reconcile")

    async def start(self) -> None:
        """Called once, when the caches are filled and before the first reconcile."""

    async def pause(self) -> None:
        """Called when reconciles have stopped, as when another process leads: end at once whatever else acts. When this
        process leads again, every object is reconciled anew."""

    async def stop(self) -> None:
        """Called when the last reconcile has ended."""

    def bind(self, name: str, client: CachedClient, clock: Clock, events: Recorder) -> None:
        """What a manager gives to a controller when it is added."""
        self.name = name
        self.client, self.clock, self.events = client, clock, events
        self.log = log.bind(controller=name)
