"""All caches of one process: which groups a type has, what changed, and whether they may answer now.

A single process needs no more than this. On several replicas a `Fleet` is the gate, tells the others of changes and says who
owns a key. What is kept answers only while the gate is open: a replica that may have missed a change does not know it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from trimtab.hub.cache.generations import ALL, Change, Generations, Scope
from trimtab.hub.cache.group import Group
from trimtab.hub.cache.lru import Entry
from trimtab.hub.cache.metrics import families

if TYPE_CHECKING:
    from prometheus_client.core import Metric


class Question(msgspec.Struct, frozen=True, array_like=True):
    """What one replica asks another: a get (with a name) or a list of a type, its options in JSON.

    `position` is the last change of this scope that the asking replica has heard of: who has not heard of it may not
    answer. Whoever has heard its own beat `beat` of `session` has. `floor` and `at_least` are revisions below which an
    answer is none."""

    type: str
    name: str
    options: bytes
    position: str = ""
    session: str = ""
    beat: int = -1
    floor: int = 0
    at_least: int = 0


class Others(Protocol):
    """The other replicas, as the caches see them."""

    def open(self) -> bool:
        """Whether everything that others have written and acknowledged has been heard here."""
        ...

    def owner(self, key: bytes) -> str | None:
        """Who has the key; None when we do."""
        ...

    async def ask(self, owner: str, question: Question, scope: Scope) -> Entry | None: ...

    async def ready(self) -> None:
        """Before a write: `Down` when the others could not be told of it."""
        ...

    async def tell(self, change: Change) -> None:
        """Returns when no replica believes what was before the change."""
        ...


class Kind(msgspec.Struct, frozen=True):
    """A type's groups, and how its service is read for another replica."""

    get: Group
    list: Group
    read: Callable[[Question], Awaitable[Entry]]


class Caches:
    """`alone`: nobody else writes to the service. Where somebody may and there is no fleet to tell us, nothing is answered
    from memory."""

    def __init__(self, *, alone: bool = True) -> None:
        self._alone = alone
        self.generations = Generations()
        self.others: Others | None = None
        self.kinds: dict[str, Kind] = {}
        self._writing: dict[tuple[str, str, str, str], int] = {}

    def add(self, type: str, get: Group, list: Group, read: Callable[[Question], Awaitable[Entry]]) -> None:  # noqa: A002
        """`add("blueprints.infra", gets, lists, read)`: from now on changes of the type clear these groups."""
        if type in self.kinds:
            raise ValueError(f"{type} has its groups already")
        get.generations = list.generations = self.generations
        self.kinds[type] = Kind(get, list, read)

    def open(self) -> bool:
        return self._alone if self.others is None else self.others.open()

    def drop(self, change: Change) -> None:
        """In this process: nothing that was read before counts any more."""
        self.generations.move(change)
        if (kind := self.kinds.get(change.type)) is not None:
            kind.get.drop(change)
            kind.list.drop(change)

    def news(self, change: Change) -> None:
        """From the service's own log. Most of it is what was written here, and known."""
        kind = self.kinds.get(change.type)
        if kind is None:
            return
        if not change.revision or not change.name:
            self.drop(change)
            return
        kind.get.news(change)
        if self.generations.floor(Scope(change.type, change.organization, change.project)) < change.revision:
            self.generations.move(change)
            kind.list.drop(change)

    def flush(self) -> None:
        """Nothing is known any more."""
        self.generations.flush()
        for kind in self.kinds.values():
            kind.get.clear()
            kind.list.clear()

    @contextmanager
    def writing(self, change: Change) -> Iterator[None]:
        """While it is written, reads of it go past the cache: some show it before, some after, and none the other way
        round."""
        names = self._touched(change)
        for name in names:
            self._writing[name] = self._writing.get(name, 0) + 1
        try:
            yield
        finally:
            for name in names:
                if self._writing[name] == 1:
                    del self._writing[name]
                else:
                    self._writing[name] -= 1

    def written(self, scope: Scope, name: str) -> bool:
        """Whether a write of it is under way in this process."""
        return bool(self._writing) and (*scope, name) in self._writing

    async def tell(self, *changes: Change) -> None:
        """Here at once, and on all other replicas when it returns."""
        for change in changes:
            self.drop(change)
        if self.others is not None:
            await asyncio.gather(*map(self.others.tell, changes))

    def collect(self) -> Iterator[Metric]:
        """What Prometheus' client calls."""
        yield from families(
            (group.name, group.metrics) for kind in self.kinds.values() for group in (kind.get, kind.list)
        )

    def _touched(self, change: Change) -> tuple[tuple[str, str, str, str], ...]:
        of_type: Any = (change.type, change.organization)
        return ((*of_type, change.project, change.name), (*of_type, change.project, ""), (*of_type, ALL, ""))
