"""What every store promises, tested on each."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

import pytest

from trimtab.store.contract import (
    ABSENT,
    MAX_VALUE,
    Batch,
    Conflict,
    Gone,
    Key,
    NotYet,
    Op,
    Query,
    Store,
    TooLarge,
    Unavailable,
    Watch,
    Write,
)

A, B, C = (Key("configmaps", "default", name) for name in "abc")
OTHER = Key("configmaps", "other", "a")
SECRET = Key("secrets", "default", "a")
ALL = Query(resource="configmaps")


def put(key: Key, text: str = "", **more: object) -> Write:
    return Write(key=key, head=f"{text}@".encode(), tail=b".", **more)  # type: ignore[arg-type]


def delete(key: Key, expect: int | None = None) -> Write:
    return Write(key=key, head=b"gone@", tail=b".", op=Op.DELETE, expect=expect)


class Having:
    """Selects what has a value."""

    def __init__(self, name: str, value: str) -> None:
        self.item = (name, value)

    def matches(self, values: Mapping[str, str]) -> bool:
        return self.item in values.items()


async def names(store: Store, query: Query) -> list[str]:
    return [entry.key.name for entry in (await store.list(query)).entries]


async def read(watch: Watch) -> Batch:
    return await asyncio.wait_for(anext(watch), 5)


class TestWrites:
    async def test_each_write_gets_the_next_revision(self, store: Store) -> None:
        assert [(await store.commit(put(key))).revision for key in (A, B, A)] == [1, 2, 3]
        assert store.revision == 3

    async def test_a_value_contains_its_revision(self, store: Store) -> None:
        await store.commit(put(A))
        assert (await store.commit(put(B, "text"))).value == b"text@2."

    async def test_concurrent_writes_are_all_stored_under_their_own_revisions(self, store: Store) -> None:
        keys = [Key("configmaps", "default", str(n)) for n in range(100)]
        entries = await asyncio.gather(*(store.commit(put(key)) for key in keys))
        assert sorted(entry.revision for entry in entries) == list(range(1, 101))
        assert sorted(entry.key for entry in (await store.list(ALL)).entries) == sorted(keys)

    async def test_create_fails_when_the_key_exists(self, store: Store) -> None:
        first = await store.commit(put(A))
        with pytest.raises(Conflict) as caught:
            await store.commit(put(A, expect=ABSENT))
        assert caught.value.current == first

    async def test_create_works_again_after_a_deletion(self, store: Store) -> None:
        await store.commit(put(A))
        await store.commit(delete(A))
        assert (await store.commit(put(A, expect=ABSENT))).revision == 3

    async def test_update_fails_when_the_revision_is_another(self, store: Store) -> None:
        await store.commit(put(A))
        second = await store.commit(put(A))
        with pytest.raises(Conflict) as caught:
            await store.commit(put(A, expect=1))
        assert caught.value.current == second

    async def test_update_of_an_absent_key_at_a_revision_fails(self, store: Store) -> None:
        with pytest.raises(Conflict) as caught:
            await store.commit(put(A, expect=1))
        assert caught.value.current is None

    async def test_deleting_what_is_not_there_is_a_conflict(self, store: Store) -> None:
        with pytest.raises(Conflict):
            await store.commit(delete(A))

    async def test_a_conflict_uses_no_revision_and_fails_only_its_own_write(self, store: Store) -> None:
        writes = [put(A, expect=ABSENT), put(A, expect=ABSENT), put(B), put(A, expect=7), delete(B, 2)]
        results = await asyncio.gather(*(store.commit(write) for write in writes), return_exceptions=True)
        outcome = [type(r).__name__ if isinstance(r, Exception) else r.revision for r in results]
        assert outcome == [1, "Conflict", 2, "Conflict", 3]

    async def test_of_concurrent_writers_to_one_revision_one_wins(self, store: Store) -> None:
        await store.commit(put(A))
        tries = (store.commit(put(A, str(n), expect=1)) for n in range(20))
        results = await asyncio.gather(*tries, return_exceptions=True)
        assert sum(not isinstance(result, Exception) for result in results) == 1

    async def test_a_value_that_is_too_large_is_refused(self, store: Store) -> None:
        with pytest.raises(TooLarge):
            await store.commit(Write(key=A, head=b"", tail=b"x" * MAX_VALUE))
        assert store.revision == 0

    async def test_the_largest_value_is_stored(self, store: Store) -> None:
        await store.commit(Write(key=A, head=b"", tail=b"x" * (MAX_VALUE - 1)))
        entry = await store.get(A)
        assert entry is not None
        assert len(entry.value) == MAX_VALUE

    async def test_a_closed_store_refuses_writes(self, store: Store) -> None:
        await store.close()
        with pytest.raises(Unavailable):
            await store.commit(put(A))


class TestReads:
    async def test_get_returns_what_was_committed(self, store: Store) -> None:
        labels, fields = {"app": "web"}, {"status.phase": "Running"}
        entry = await store.commit(put(A, labels=labels, fields=fields, schema="v1"))
        found = await store.get(A)
        assert found == entry
        assert found is not None
        assert (dict(found.labels), dict(found.fields), found.schema) == (labels, fields, "v1")

    async def test_get_of_an_absent_or_deleted_key_is_none(self, store: Store) -> None:
        assert await store.get(A) is None
        await store.commit(put(A))
        await store.commit(delete(A))
        assert await store.get(A) is None

    async def test_a_list_is_sorted_and_of_one_resource(self, store: Store) -> None:
        for key in (C, OTHER, SECRET, A, B):
            await store.commit(put(key))
        page = await store.list(ALL)
        assert [entry.key for entry in page.entries] == [A, B, C, OTHER]
        assert (page.revision, page.after, page.remaining) == (5, None, None)

    async def test_names_sort_by_code_point(self, store: Store) -> None:
        keys = [Key("configmaps", "", name) for name in ("a", "a.b", "a-b", "aa", "z", "é", "\uffff", "\U00010000")]
        for key in keys:
            await store.commit(put(key))
        assert [entry.key for entry in (await store.list(ALL)).entries] == sorted(keys)

    @pytest.mark.parametrize(
        ("query", "found"),
        [
            (Query(resource="configmaps", namespace="default"), [A, B]),
            (Query(resource="configmaps", name="a"), [A, OTHER]),
            (Query(resource="configmaps", namespace="other", name="a"), [OTHER]),
            (Query(resource="configmaps", namespace="nowhere"), []),
            (Query(resource="pods"), []),
        ],
    )
    async def test_a_list_may_name_namespace_and_name(self, store: Store, query: Query, found: list[Key]) -> None:
        for key in (A, B, OTHER, SECRET):
            await store.commit(put(key))
        assert [entry.key for entry in (await store.list(query)).entries] == found

    async def test_a_list_selects_by_labels_and_fields(self, store: Store) -> None:
        await store.commit(put(A, labels={"app": "web"}, fields={"phase": "Running"}))
        await store.commit(put(B, labels={"app": "web"}))
        await store.commit(put(C))
        assert await names(store, Query(resource="configmaps", labels=Having("app", "web"))) == ["a", "b"]
        assert await names(store, Query(resource="configmaps", fields=Having("phase", "Running"))) == ["a"]

    async def test_count_is_of_what_exists(self, store: Store) -> None:
        for write in (put(A), put(B), put(SECRET), delete(A), put(B)):
            await store.commit(write)
        assert await store.count("configmaps") == 1

    async def test_expired_lists_what_is_due_the_longest_due_first(self, store: Store) -> None:
        await store.commit(put(A, expires=20.0))
        await store.commit(put(B, expires=10.0))
        await store.commit(put(C, expires=30.0))
        await store.commit(put(OTHER))
        assert [entry.key for entry in await store.expired(20.0)] == [B, A]
        assert [entry.key for entry in await store.expired(20.0, limit=1)] == [B]

    async def test_a_write_without_expiry_and_a_deletion_end_an_expiry(self, store: Store) -> None:
        for write in (put(A, expires=1.0), put(B, expires=1.0), put(A), delete(B)):
            await store.commit(write)
        assert list(await store.expired(2.0)) == []


class TestPages:
    async def test_a_page_says_where_to_go_on_and_how_many_remain(self, store: Store) -> None:
        for key in (A, B, C, OTHER):
            await store.commit(put(key))
        first = await store.list(Query(resource="configmaps", limit=2))
        assert ([e.key for e in first.entries], first.after, first.remaining) == ([A, B], B, 2)
        second = await store.list(Query(resource="configmaps", limit=2, after=first.after))
        assert ([e.key for e in second.entries], second.after, second.remaining) == ([C, OTHER], None, None)

    async def test_a_page_with_a_selector_does_not_say_how_many_remain(self, store: Store) -> None:
        for key in (A, B, C):
            await store.commit(put(key, labels={"app": "web"}))
        page = await store.list(Query(resource="configmaps", limit=1, labels=Having("app", "web")))
        assert (page.after, page.remaining) == (A, None)

    async def test_a_list_goes_on_at_its_snapshot(self, store: Store) -> None:
        for key in (A, B, C):
            await store.commit(put(key, "old"))
        first = await store.list(Query(resource="configmaps", limit=1))
        for write in (put(B, "new"), delete(C), put(Key("configmaps", "default", "bb"))):
            await store.commit(write)
        rest = await store.list(Query(resource="configmaps", limit=5, after=A, revision=first.revision))
        assert [(e.key, e.value) for e in rest.entries] == [(B, b"old@2."), (C, b"old@3.")]
        assert rest.revision == 3

    async def test_what_remains_is_counted_at_the_snapshot(self, store: Store) -> None:
        for key in (A, B, C):
            await store.commit(put(key))
        for write in (delete(B), put(Key("configmaps", "default", "d")), put(C)):
            await store.commit(write)
        page = await store.list(Query(resource="configmaps", limit=1, revision=3))
        assert (page.after, page.remaining) == (A, 2)

    async def test_a_page_of_a_snapshot_is_full_although_newer_keys_come_first(self, store: Store) -> None:
        for key in (C, A, B):
            await store.commit(put(key))
        assert await names(store, Query(resource="configmaps", limit=1, revision=1)) == ["c"]

    async def test_a_snapshot_does_not_show_what_was_deleted_before_it(self, store: Store) -> None:
        for write in (put(A), delete(A), put(B), put(A)):
            await store.commit(write)
        assert await names(store, Query(resource="configmaps", revision=3)) == ["b"]

    async def test_a_snapshot_below_the_horizon_is_gone(self, store: Store) -> None:
        for _ in range(3):
            await store.commit(put(A))
        await store.compact(2)
        with pytest.raises(Gone) as caught:
            await store.list(Query(resource="configmaps", revision=1))
        assert caught.value.oldest == 2

    async def test_a_list_at_a_revision_to_come_is_refused(self, store: Store) -> None:
        with pytest.raises(NotYet):
            await store.list(Query(resource="configmaps", revision=1))


class TestCompaction:
    async def test_the_horizon_itself_can_still_be_listed_and_watched_from(self, store: Store) -> None:
        for write in (put(A, "1"), put(A, "2"), put(B), put(A, "3"), delete(B)):
            await store.commit(write)
        await store.compact(3)
        assert store.compacted == 3
        page = await store.list(Query(resource="configmaps", revision=3))
        assert [entry.value for entry in page.entries] == [b"2@2.", b"@3."]
        changes = (await read(store.watch(ALL, 3))).changes
        assert [(c.revision, c.before and c.before.revision) for c in changes] == [(4, 2), (5, 3)]

    async def test_what_exists_survives(self, store: Store) -> None:
        for write in (put(A), put(B), delete(A)):
            await store.commit(write)
        await store.compact(3)
        assert await names(store, ALL) == ["b"]
        assert store.revision == 3

    async def test_the_horizon_never_goes_back_nor_beyond_the_newest(self, store: Store) -> None:
        await store.commit(put(A))
        await store.compact(100)
        await store.compact(0)
        assert store.compacted == 1


class TestWatch:
    async def test_a_watch_from_the_past_yields_all_changes_in_order(self, store: Store) -> None:
        for write in (put(A, "1"), put(SECRET), put(A, "2"), delete(A)):
            await store.commit(write)
        batch = await read(store.watch(ALL, 0))
        assert [(c.op, c.entry.value) for c in batch.changes] == [
            (Op.PUT, b"1@1."),
            (Op.PUT, b"2@3."),
            (Op.DELETE, b"gone@4."),
        ]
        assert [c.before and c.before.value for c in batch.changes] == [None, b"1@1.", b"2@3."]
        assert batch.revision == 4

    async def test_a_live_watch_yields_the_same_changes_as_one_that_catches_up(self, store: Store) -> None:
        live = store.watch(ALL, 0)
        waiting = asyncio.ensure_future(read(live))
        await asyncio.sleep(0)
        writes = (put(A, "1", labels={"x": "y"}), put(A, "2", fields={"f": "g"}, schema="s"), delete(A), put(A, "3"))
        await asyncio.gather(*(store.commit(write) for write in writes))
        seen = list((await waiting).changes)
        while len(seen) < 4:
            seen += (await read(live)).changes
        assert tuple(seen) == (await read(store.watch(ALL, 0))).changes

    async def test_a_watch_joins_the_live_stream_without_gap_or_repetition(self, store: Store) -> None:
        async def write() -> None:
            for _ in range(50):
                await store.commit(put(A))

        seen: list[int] = []
        watch = store.watch(ALL, 0)
        writing = asyncio.ensure_future(write())
        while len(seen) < 50:
            seen += [change.revision for change in (await read(watch)).changes]
        await writing
        assert seen == list(range(1, 51))

    async def test_a_watch_sees_only_its_namespace_and_name(self, store: Store) -> None:
        narrow = Query(resource="configmaps", namespace="other", name="a")
        live = store.watch(narrow, 0)
        waiting = asyncio.ensure_future(read(live))
        await asyncio.sleep(0)
        for key in (A, B, Key("configmaps", "other", "b"), OTHER):
            await store.commit(put(key))
        assert [change.entry.key for change in (await waiting).changes] == [OTHER]
        assert [change.entry.key for change in (await read(store.watch(narrow, 0))).changes] == [OTHER]

    async def test_a_watch_from_below_the_horizon_is_gone(self, store: Store) -> None:
        for _ in range(3):
            await store.commit(put(A))
        await store.compact(2)
        with pytest.raises(Gone):
            await read(store.watch(ALL, 1))

    async def test_a_watch_from_the_future_waits_for_what_comes_after(self, store: Store) -> None:
        watch = store.watch(ALL, 2)
        waiting = asyncio.ensure_future(read(watch))
        await asyncio.sleep(0)
        for _ in range(3):
            await store.commit(put(A))
        assert [change.revision for change in (await waiting).changes] == [3]

    async def test_an_idle_watch_says_up_to_where_it_is_complete(self, store: Store) -> None:
        await store.commit(put(SECRET))
        watch = store.watch(ALL, 0, heartbeat=0.01)
        assert await read(watch) == Batch(1, ())
        await store.commit(put(SECRET))
        assert await read(watch) == Batch(2, ())

    async def test_a_watcher_that_does_not_keep_up_is_gone_and_holds_nobody_up(self, store: Store) -> None:
        slow, quick = store.watch(ALL, 0, heartbeat=0.001), store.watch(ALL, 0, heartbeat=0.001)
        await read(slow)
        await read(quick)
        for _ in range(30):
            await store.commit(put(A))
            while not (await read(quick)).changes:
                pass
        with pytest.raises(Gone):
            await read(slow)
        with pytest.raises(StopAsyncIteration):
            await read(slow)

    async def test_a_watcher_may_lag_only_so_many_bytes(self, store: Store) -> None:
        watch = store.watch(ALL, 0, heartbeat=0.001)
        await read(watch)
        for _ in range(3):
            await store.commit(put(A, "x" * 9000))
        with pytest.raises(Gone):
            await read(watch)

    async def test_a_closed_watch_ends(self, store: Store) -> None:
        watch = store.watch(ALL, 0)
        waiting = asyncio.ensure_future(anext(watch, None))
        await asyncio.sleep(0)
        await watch.aclose()
        assert await waiting is None
        assert await anext(watch, None) is None

    async def test_a_watch_that_is_closed_while_it_catches_up_ends(self, store: Store) -> None:
        for _ in range(3):
            await store.commit(put(A))
        watch = store.watch(ALL, 1)
        await read(watch)
        waiting = asyncio.ensure_future(anext(watch, None))
        await asyncio.sleep(0)
        await watch.aclose()
        await store.commit(put(A))
        assert await asyncio.wait_for(waiting, 5) is None

    async def test_closing_the_store_ends_its_watches(self, store: Store) -> None:
        watch = store.watch(ALL, 0)
        waiting = asyncio.ensure_future(anext(watch, None))
        await asyncio.sleep(0)
        await store.close()
        assert await waiting is None

    async def test_a_cancelled_read_loses_nothing(self, store: Store) -> None:
        watch = store.watch(ALL, 0)
        waiting = asyncio.ensure_future(anext(watch))
        await asyncio.sleep(0)
        waiting.cancel()
        await store.commit(put(A))
        assert [change.revision for change in (await read(watch)).changes] == [1]

    async def test_a_list_and_a_watch_from_its_revision_see_everything_once(self, store: Store) -> None:
        writes = [asyncio.ensure_future(store.commit(put(Key("configmaps", "", f"{n:03}")))) for n in range(60)]
        seen: list[str] = []
        since = 0
        while len(seen) < 60:
            page = await store.list(ALL)
            assert page.revision == store.revision >= since
            seen = [entry.key.name for entry in page.entries]
            since = page.revision
            if since < 60:
                batch = await read(store.watch(ALL, since))
                seen += [change.entry.key.name for change in batch.changes]
                assert seen == [f"{n:03}" for n in range(batch.revision)]
        await asyncio.gather(*writes)
