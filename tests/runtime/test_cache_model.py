"""A cache held against a model: a server with one line of revisions, a watch that lags and is lost, answers that are late,
and others who write too."""

from __future__ import annotations

import json
from collections import deque
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from trimtab.client.entries import Delta, Entry, Snapshot, entry
from trimtab.client.protocol import EventType, Query
from trimtab.model.kubernetes import ConfigMap
from trimtab.runtime.cache import Cache
from trimtab.runtime.changes import Change, Request
from trimtab.runtime.index import Index

NAMES = "ab"


class Model:
    """The server, what its watchers are still to be told, and what we are still to be answered."""

    def __init__(self) -> None:
        self.cache = Cache(None, ConfigMap, "v1", "ConfigMap", Query())  # type: ignore[arg-type]
        self.cache.add_index(Index("revision", lambda found: [found.data["revision"]]))
        self.revision = 10
        self.objects: dict[str, Entry] = {}
        self.past = [dict(self.objects)]  # after each event
        self.history: list[Delta] = []
        self.told = 0
        self.answers: deque[tuple[str, Any, Any]] = deque()
        self.own: dict[str, int] = {}  # the revision of our last write that was answered
        self.read: dict[str, str | None] = dict.fromkeys(NAMES)  # what a reconcile last saw
        self.stale: set[str] = set()  # names of which a change was told since
        self.take(self.cache.replace(Snapshot([], "10"), initial=True))

    # --- steps -----------------------------------------------------------------------------------------------------

    def write(self, name: str, ours: bool) -> None:
        self.revision += 1
        before = self.objects.get(name)
        uid = f"uid-{self.revision}" if before is None else json.loads(before.body)["metadata"]["uid"]
        metadata = {"name": name, "namespace": "n", "resourceVersion": str(self.revision), "uid": uid}
        made = entry(json.dumps({"metadata": metadata, "data": {"revision": str(self.revision)}}).encode())
        self.objects[name] = made
        self._happened(EventType.ADDED if before is None else EventType.MODIFIED, made)
        if ours:
            self.answers.append(("wrote", made, None))

    def delete(self, name: str, ours: bool) -> None:
        if name not in self.objects:
            return
        self.revision += 1
        meant = self.cache.uid(Request("n", name))
        gone = self.objects.pop(name)
        self._happened(EventType.DELETED, Entry("n", name, str(self.revision), gone.body))
        if ours:
            self.answers.append(("deleted", Request("n", name), meant))

    def _happened(self, kind: EventType, made: Entry) -> None:
        self.history.append(Delta(kind, str(self.revision), made))
        self.past.append(dict(self.objects))

    def answer(self) -> None:
        if self.answers:
            what, subject, uid = self.answers.popleft()
            if what == "wrote":
                self.cache.absorb(subject)
                self.own[subject.name] = int(subject.revision)
            else:
                self.cache.forget(subject, uid)
                self.own.pop(subject.name, None)

    def event(self) -> None:
        if self.told < len(self.history):
            change = self.cache.advance(self.history[self.told])
            self.told += 1
            self.take([] if change is None else [change])

    def relist(self, how_far: float) -> None:
        """The past was lost: a list of some state that is not older than ours."""
        self.told += round(how_far * (len(self.history) - self.told))
        revision = 10 + self.told
        self.take(self.cache.replace(Snapshot(list(self.past[self.told].values()), str(revision)), initial=False))

    def reconcile(self, name: str) -> None:
        self.read[name] = self.seen(name)
        self.stale.discard(name)

    # --- what must hold --------------------------------------------------------------------------------------------

    def take(self, changes: list[Change]) -> None:
        self.stale |= {change.request.name for change in changes}

    def seen(self, name: str) -> str | None:
        found = self.cache.get(Request("n", name))
        return None if found is None else found.revision

    def check(self) -> None:
        states = {name: found for name in NAMES if (found := self.seen(name)) is not None}
        assert {found.name: found.revision for found in self.cache.entries()} == states
        for name, revision in states.items():
            assert int(revision) >= self.own.get(name, 0), "older than our own write"
            assert self.cache.indexed("revision", revision) == [Request("n", name)]
        for name, revision in self.own.items():
            if name not in states:
                gone = [d for d in self.history if d.type is EventType.DELETED and d.entry and d.entry.name == name]
                assert any(int(d.revision) > revision for d in gone), "our own write is not seen"

    def check_end(self) -> None:
        while self.answers:
            self.answer()
        while self.told < len(self.history):
            self.event()
            self.check()
        final = {name: found.revision for name, found in self.objects.items()}
        assert {name: found for name in NAMES if (found := self.seen(name)) is not None} == final
        for name, read in self.read.items():
            assert read == final.get(name) or name in self.stale, "something changed, and nobody was told"


names, ours = st.sampled_from(NAMES), st.booleans()
steps = st.one_of(
    st.tuples(st.just("write"), names, ours),
    st.tuples(st.just("delete"), names, ours),
    st.tuples(st.just("event")),
    st.tuples(st.just("answer")),
    st.tuples(st.just("reconcile"), names),
    st.tuples(st.just("relist"), st.floats(0, 1)),
)


@settings(max_examples=400)
@given(st.lists(steps, max_size=30))
def test_readers_see_their_writes_and_hear_of_every_change(plan: list[tuple[Any, ...]]) -> None:
    model = Model()
    for step, *arguments in plan:
        getattr(model, step)(*arguments)
        model.check()
    model.check_end()
