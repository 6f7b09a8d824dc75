"""The cache, between hydration and the service. Reads are answered from memory, writes tell everybody before they return.

    Cached(accessor, "blueprints.infra", caches)

Guarantees
  - A get or list that begins after an apply or delete was acknowledged, on any replica, sees it.
  - A write that failed in a way that may have done something clears what was kept, too.
  - A list is never one from whose revision cannot be watched any more, once that is known.

What is asked at a version, or at a revision of the past, goes past the cache. The pages of a long list that goes on at the
revision of its first one are kept like that one. Documents are kept as bytes, so nobody can change what another will read;
lineage is always in them.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial
from typing import Any

import msgspec

from trimtab.hub.cache.caches import Caches, Question
from trimtab.hub.cache.generations import Change, Scope, revision_of
from trimtab.hub.cache.group import Group, Load
from trimtab.hub.cache.keys import key_of, scope_of
from trimtab.hub.cache.lru import Entry
from trimtab.hub.contract import (
    ApplyOptions,
    DeleteOptions,
    GetOptions,
    Hub,
    HubBatch,
    HubError,
    HubList,
    ListOptions,
    Missing,
    Refused,
    WatchOptions,
)
from trimtab.hub.proxies.passing import Passing
from trimtab.hub.storage.contract import PROJECTS
from trimtab.model.logs import log
from trimtab.store.contract import Gone

_encode = msgspec.msgpack.Encoder().encode
_hub = msgspec.msgpack.Decoder(dict[str, Any]).decode
_list = msgspec.msgpack.Decoder(HubList).decode
_get_options = msgspec.json.Decoder(GetOptions).decode
_list_options = msgspec.json.Decoder(ListOptions).decode


class Cached(Passing):
    """`gets` and `lists` are the type's groups: names, sizes and expiries are theirs. They are registered with `caches`."""

    def __init__(
        self,
        accessor: Any,
        type: str,  # noqa: A002
        caches: Caches,
        *,
        gets: Group | None = None,
        lists: Group | None = None,
    ) -> None:
        super().__init__(accessor)
        self._type = type
        self._caches = caches
        self._gets = gets or Group(f"{type}/get", kind="get")
        self._lists = lists or Group(f"{type}/list", kind="list")
        self._oldest = 0
        self._writes: set[asyncio.Task[Any]] = set()
        caches.add(type, self._gets, self._lists, self._answer)

    async def get(self, name: str, options: GetOptions) -> Hub:
        if options.version or not name:
            return await super().get(name, options)
        scope = scope_of(self._type, options)
        entry = await self._read(self._gets, name, options, scope, partial(self._load_get, name, options))
        if entry.missing:
            raise Missing(entry.value.decode())
        found: Hub = _hub(entry.value)
        return found

    async def list(self, options: ListOptions) -> HubList:
        if bool(options.after) != bool(options.revision):  # a list that goes on has both
            return await super().list(options)
        scope = scope_of(self._type, options)
        entry = await self._read(self._lists, "", options, scope, partial(self._load_list, options))
        page: HubList = _list(entry.value)
        return page

    async def apply(self, hub: Hub, options: ApplyOptions) -> Hub:
        if options.dry_run:
            return await super().apply(hub, options)
        name = str(hub.get("metadata", {}).get("name", ""))
        applied: Hub = await self._write(
            name, options.organization, options.project, lambda: self.inner.apply(hub, options)
        )
        return applied

    async def delete(self, name: str, options: DeleteOptions) -> None:
        if options.dry_run:
            await super().delete(name, options)
            return
        await self._write(
            name,
            options.organization,
            options.project,
            lambda: self.inner.delete(name, options),
            wide=self._type == PROJECTS,
        )

    async def watch(self, options: WatchOptions, since: int) -> AsyncIterator[HubBatch]:
        """Whoever has seen a change here does not read what was before it here."""
        batches = self.inner.watch(options, since)
        try:
            async for batch in batches:
                for change in batch.changes:
                    self._caches.news(Change.of(self._type, options.organization, change.hub))
                yield batch
        except Gone as gone:
            self._oldest = max(self._oldest, gone.oldest)
            raise
        finally:
            if (end := getattr(batches, "aclose", None)) is not None:
                await end()

    async def horizon(self) -> tuple[int, int]:
        newest, oldest = await super().horizon()
        self._oldest = max(self._oldest, oldest)
        return newest, oldest

    async def drain(self) -> None:
        """Returns when the writes have ended whose callers gave up: before the process ends."""
        await asyncio.gather(*self._writes, return_exceptions=True)

    async def _read(
        self, group: Group, name: str, options: GetOptions | ListOptions, scope: Scope, load: Load
    ) -> Entry:
        caches = self._caches
        if not caches.open() or caches.written(scope, name):
            return await group.past(load)
        key = key_of(self._type, name, options)
        at_least = self._oldest if group.lists else 0
        entry = group.look(key, scope, at_least)
        if entry is not None:
            return entry
        others = caches.others
        owner = None if others is None else others.owner(key)
        if others is None or owner is None:
            return await group.fetch(key, scope, load)
        floor = caches.generations.floor(scope)
        question = Question(self._type, name, options.key(), floor=floor, at_least=at_least)
        return await group.fetch(key, scope, load, lambda: others.ask(owner, question, scope))

    async def _answer(self, question: Question) -> Entry:
        """For another replica, by the cache and the service of this one."""
        options: GetOptions | ListOptions
        load: Load
        if question.name:
            options = get_options = _get_options(question.options)
            group, load = self._gets, partial(self._load_get, question.name, get_options)
        else:
            options = list_options = _list_options(question.options)
            group, load = self._lists, partial(self._load_list, list_options)
        scope = scope_of(self._type, options)
        group.served()
        if self._caches.written(scope, question.name):
            return await group.past(load)
        if question.floor > self._caches.generations.floor(scope):
            change = Change(self._type, scope.organization, scope.project, question.name, revision=question.floor)
            self._caches.generations.move(change)  # lists fall by this alone
            if question.name:
                group.drop(change)
        key = key_of(self._type, question.name, options)
        self._oldest = max(self._oldest, question.at_least)
        return group.look(key, scope, question.at_least) or await group.fetch(key, scope, load)

    async def _load_get(self, name: str, options: GetOptions) -> Entry:
        try:
            hub = await self.inner.get(name, _with_lineage(options))
        except Missing as missing:
            return Entry(str(missing).encode(), missing=True)
        return Entry(_encode(hub), revision_of(hub))

    async def _load_list(self, options: ListOptions) -> Entry:
        page = await self.inner.list(_with_lineage(options))
        return Entry(_encode(page), page.revision)

    async def _write(
        self, name: str, organization: str, project: str, act: Callable[[], Awaitable[Any]], *, wide: bool = False
    ) -> Any:
        """The write goes on when its caller gives up: what it did must be told in any case. `wide`: it may change resources
        of every type, as a project does that goes: with it goes all sharing with it."""
        task = asyncio.create_task(self._written(Change(self._type, organization, project, name), act, wide))
        self._writes.add(task)
        task.add_done_callback(self._writes.discard)
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            task.add_done_callback(_ended_unseen)
            raise

    async def _written(self, change: Change, act: Callable[[], Awaitable[Any]], wide: bool) -> Any:
        others = [Change(type_, change.organization) for type_ in self._caches.kinds if wide and type_ != self._type]
        with self._caches.writing(change):
            if self._caches.others is not None:
                await self._caches.others.ready()
            try:
                result = await act()
            except Refused:
                raise
            except BaseException:  # Stale: we may have shown what is no more. Down: it may have been done all the same
                with contextlib.suppress(HubError):  # what failed first is what the caller must know
                    await self._caches.tell(change, *others)
                raise
            revision = revision_of(result) if result is not None else 0
            await self._caches.tell(msgspec.structs.replace(change, revision=revision), *others)
            return result


def _ended_unseen(task: asyncio.Task[Any]) -> None:
    if not task.cancelled() and (error := task.exception()) is not None:
        log.info("a write failed whose caller had given up", error=str(error))


def _with_lineage(options: Any) -> Any:
    return options if options.include_lineage else msgspec.structs.replace(options, include_lineage=True)
