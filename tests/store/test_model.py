"""The store on SQLite does what a dictionary with a list of changes does, whatever is asked of it in whatever order."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, TypeVar

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from trimtab.store.contract import ABSENT, Batch, Change, Conflict, Entry, Gone, Key, Op, Query, Write
from trimtab.store.sqlite import SqliteStore

T = TypeVar("T")

KEYS = st.builds(
    Key, st.sampled_from(["configmaps", "secrets"]), st.sampled_from(["", "x", "y"]), st.sampled_from("abc")
)
QUERIES = st.builds(
    Query,
    resource=st.sampled_from(["configmaps", "secrets"]),
    namespace=st.sampled_from([None, "", "x"]),
    name=st.sampled_from([None, None, "a"]),
)
EXPECT = st.sampled_from(["any", "any", "absent", "current", "stale"])
WRITES = st.tuples(KEYS, EXPECT, st.sampled_from([Op.PUT, Op.PUT, Op.DELETE]), st.sampled_from([None, 5.0]))


class Model:
    """What a store is."""

    def __init__(self) -> None:
        self.entries: dict[Key, Entry] = {}
        self.expires: dict[Key, float] = {}
        self.history: list[Change] = []
        self.states: list[dict[Key, Entry]] = [{}]  # by revision
        self.compacted = 0

    def apply(self, write: Write) -> Entry | None:
        """None is a conflict."""
        before = self.entries.get(write.key)
        at = before.revision if before else 0
        if (write.expect is not None and write.expect != at) or (write.op is Op.DELETE and before is None):
            return None
        revision = len(self.states)
        value = write.head + str(revision).encode() + write.tail
        entry = Entry(key=write.key, revision=revision, value=value, labels=write.labels, fields={}, schema="")
        self.expires.pop(write.key, None)
        if write.op is Op.DELETE:
            del self.entries[write.key]
        else:
            self.entries[write.key] = entry
            if write.expires is not None:
                self.expires[write.key] = write.expires
        self.history.append(Change(op=write.op, entry=entry, before=before))
        self.states.append(dict(self.entries))
        return entry

    def listed(self, query: Query, revision: int) -> list[Entry]:
        return [entry for key, entry in sorted(self.states[revision].items()) if asked(query, key)]


def asked(query: Query, key: Key) -> bool:
    return (
        key.resource == query.resource
        and query.namespace in (None, key.namespace)
        and query.name in (None, key.name)
        and (query.after is None or key > query.after)
    )


class StoreMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.runner = asyncio.Runner()
        self.model = Model()
        self.store = self.run(SqliteStore.open(Path(self.folder.name) / "store.db"))
        self.watches: list[tuple[Query, int, Any, list[Change]]] = []

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return self.runner.run(work)

    def teardown(self) -> None:
        self.run(self.store.close())
        self.runner.close()
        self.folder.cleanup()

    def revision(self, fraction: float) -> int:
        """Some revision of the past."""
        return int(fraction * (len(self.model.states) - 1))

    @rule(asked=st.lists(WRITES, min_size=1, max_size=6))
    def commit(self, asked: list[tuple[Key, str, Op, float | None]]) -> None:
        writes, wanted = [], []
        for key, expect, op, expires in asked:
            current = self.model.entries.get(key)
            at = current.revision if current else 0
            condition = {"any": None, "absent": ABSENT, "current": at, "stale": at + 7}[expect]
            labels = {"n": key.name} if expires else {}
            write = Write(key=key, head=b"<", tail=b">", op=op, expect=condition, expires=expires, labels=labels)
            writes.append(write)
            wanted.append(self.model.apply(write))

        async def concurrently() -> list[Any]:
            return await asyncio.gather(*(self.store.commit(write) for write in writes), return_exceptions=True)

        results = self.run(concurrently())
        assert [None if isinstance(result, Conflict) else result for result in results] == wanted

    @rule(fraction=st.floats(0, 1))
    def compact(self, fraction: float) -> None:
        before = self.revision(fraction)
        self.run(self.store.compact(before))
        self.model.compacted = max(self.model.compacted, before)

    @rule(query=QUERIES, fraction=st.floats(0, 1), limit=st.sampled_from([None, 1, 2, 3]), after=st.none() | KEYS)
    def list_at(self, query: Query, fraction: float, limit: int | None, after: Key | None) -> None:
        revision = self.revision(fraction)
        after = None if after is None else after._replace(resource=query.resource)
        query = Query(
            resource=query.resource,
            namespace=query.namespace,
            name=query.name,
            limit=limit,
            after=after,
            revision=revision,
        )
        if revision < self.model.compacted:
            with pytest.raises(Gone):
                self.run(self.store.list(query))
            return
        found = self.run(self.store.list(query))
        wanted = self.model.listed(query, revision)
        cut = limit is not None and len(wanted) > limit
        assert found.entries == (wanted[:limit] if cut else wanted)
        assert found.after == (found.entries[-1].key if cut else None)
        assert found.remaining == (len(wanted) - (limit or 0) if cut else None)

    @rule(query=QUERIES, fraction=st.floats(0, 1))
    def catch_up(self, query: Query, fraction: float) -> None:
        since = self.revision(fraction)
        watch = self.store.watch(query, since, heartbeat=0.0001)
        if since < self.model.compacted:
            with pytest.raises(Gone):
                self.run(watch.__anext__())
            return
        assert self.read(watch) == self.wanted(query, since)
        self.watches.append((query, since, watch, self.wanted(query, since)))

    @precondition(lambda self: self.watches)
    @rule(data=st.data())
    def go_on_watching(self, data: st.DataObject) -> None:
        query, since, watch, seen = data.draw(st.sampled_from(self.watches))
        seen += self.read(watch)
        assert seen == self.wanted(query, since)

    def wanted(self, query: Query, since: int) -> list[Change]:
        return [change for change in self.model.history[since:] if asked(query, change.entry.key)]

    def read(self, watch: Any) -> list[Change]:
        """All that there is, up to the first heartbeat."""
        seen: list[Change] = []
        while True:
            batch: Batch = self.run(watch.__anext__())
            if not batch.changes:
                assert batch.revision == len(self.model.states) - 1
                return seen
            seen += batch.changes

    @rule()
    def reopen(self) -> None:
        self.run(self.store.close())
        self.watches = []
        self.store = self.run(SqliteStore.open(Path(self.folder.name) / "store.db"))

    @invariant()
    def agrees(self) -> None:
        assert self.store.revision == len(self.model.states) - 1
        assert self.store.compacted == self.model.compacted
        for resource in ("configmaps", "secrets"):
            present = [key for key in self.model.entries if key.resource == resource]
            assert self.run(self.store.count(resource)) == len(present)
            assert all(self.run(self.store.get(key)) == self.model.entries[key] for key in present)
        assert {entry.key for entry in self.run(self.store.expired(6.0))} == set(self.model.expires)


TestStore = StoreMachine.TestCase
TestStore.settings = settings(max_examples=40, stateful_step_count=30, deadline=None)
