"""The fan-out by itself: what it holds on to, and for how long."""

from __future__ import annotations

import asyncio

from trimtab.store.contract import Batch, Change, Entry, Key, Op, Query, Revision
from trimtab.store.watch import Buffer, Fanout, Watcher


class EmptyLog:
    revision: Revision = 0
    compacted: Revision = 0

    def changes(self, query: Query, after: Revision) -> Batch:
        raise AssertionError("nobody is behind")


def change(revision: int, resource: str = "pods") -> Change:
    entry = Entry(key=Key(resource, "", "a"), revision=revision, value=b"x" * 10, labels={}, fields={}, schema="")
    return Change(op=Op.PUT, entry=entry, before=None)


async def live(fanout: Fanout, resource: str = "pods") -> Watcher:
    watcher = fanout.watch(Query(resource=resource), 0, 0.0001)
    await anext(watcher)
    return watcher


async def test_a_watch_that_nobody_reads_holds_nothing() -> None:
    fanout = Fanout(EmptyLog(), Buffer())
    fanout.watch(Query(resource="pods"), 0, 60)
    assert len(fanout) == 0


async def test_closing_a_watch_frees_it() -> None:
    fanout = Fanout(EmptyLog(), Buffer())
    watcher = await live(fanout)
    assert len(fanout) == 1
    await watcher.aclose()
    await watcher.aclose()
    assert len(fanout) == 0


async def test_a_watch_that_lags_is_let_go_at_once() -> None:
    fanout = Fanout(EmptyLog(), Buffer(changes=2))
    await live(fanout)
    for revision in range(1, 5):
        fanout.publish([change(revision)])
    assert len(fanout) == 0


async def test_one_that_has_read_all_may_get_more_than_its_buffer_at_once() -> None:
    log = EmptyLog()
    fanout = Fanout(log, Buffer(changes=2))
    watcher = await live(fanout)
    log.revision = 5
    fanout.publish([change(revision) for revision in range(1, 6)])
    assert len((await anext(watcher)).changes) == 5


async def test_watchers_of_other_resources_are_left_alone() -> None:
    fanout = Fanout(EmptyLog(), Buffer())
    other = await live(fanout, "secrets")
    waiting = asyncio.ensure_future(anext(other))
    fanout.publish([change(1)])
    assert (await waiting).changes == ()


async def test_all_watchers_share_one_change() -> None:
    fanout = Fanout(EmptyLog(), Buffer())
    watchers = [await live(fanout) for _ in range(3)]
    shared = change(1)
    fanout.publish([shared])
    for watcher in watchers:
        assert (await anext(watcher)).changes[0] is shared
