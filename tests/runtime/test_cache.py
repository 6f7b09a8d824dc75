"""What a cache shows while the watch and our own writes race each other."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trimtab.client.entries import Delta, Entry, Snapshot, entry
from trimtab.client.protocol import EventType, Query
from trimtab.model.kubernetes import ConfigMap
from trimtab.model.scheme import Untyped
from trimtab.runtime.cache import Cache
from trimtab.runtime.changes import Request
from trimtab.runtime.index import Index

A, B = Request("n", "a"), Request("n", "b")


def made(name: str, revision: int, **labels: str) -> Entry:
    metadata: dict[str, Any] = {"name": name, "namespace": "n", "resourceVersion": str(revision), "uid": f"uid-{name}"}
    if labels:
        metadata["labels"] = labels
    return entry(json.dumps({"metadata": metadata, "data": {"revision": str(revision)}}).encode())


def cache_of(*entries: Entry, revision: int = 10, query: Query = Query()) -> Cache:  # noqa: B008 - frozen
    cache = Cache(None, ConfigMap, "v1", "ConfigMap", query)  # type: ignore[arg-type]
    cache.replace(Snapshot(list(entries), str(revision)), initial=True)
    return cache


def event(kind: str, found: Entry) -> Delta:
    return Delta(EventType(kind), found.revision, found)


def bookmark(revision: int) -> Delta:
    return Delta(EventType.BOOKMARK, str(revision))


def revision_of(cache: Cache, request: Request) -> str | None:
    found = cache.get(request)
    return None if found is None else found.revision


def test_an_object_is_decoded_as_its_class_with_its_names() -> None:
    cache = cache_of(made("a", 1))
    found = cache.decode(cache.get(A))  # type: ignore[arg-type]
    assert isinstance(found, ConfigMap)
    assert (found.api_version, found.kind, found.data) == ("v1", "ConfigMap", {"revision": "1"})


def test_an_object_that_does_not_fit_its_class_comes_as_it_is() -> None:
    odd = entry(b'{"metadata":{"name":"a","namespace":"n","resourceVersion":"1"},"data":{"x":1}}')
    assert isinstance(cache_of(odd).decode(odd), Untyped)


def test_our_own_write_is_seen_before_the_watch_tells_it() -> None:
    cache = cache_of(made("a", 5))
    cache.absorb(made("a", 12))
    cache.absorb(made("b", 13))
    assert (revision_of(cache, A), revision_of(cache, B)) == ("12", "13")
    assert {e.revision for e in cache.entries()} == {"12", "13"}


def test_an_older_event_does_not_hide_our_newer_write() -> None:
    cache = cache_of(made("a", 5))
    cache.absorb(made("a", 14))
    cache.advance(event("MODIFIED", made("a", 12)))
    assert revision_of(cache, A) == "14"


@pytest.mark.parametrize("passed", [bookmark(20), event("ADDED", made("b", 20)), event("DELETED", made("a", 20))])
def test_a_write_that_the_watch_has_passed_is_laid_over_no_more(passed: Delta) -> None:
    cache = cache_of()
    cache.absorb(made("a", 14))
    cache.advance(passed)
    assert cache.get(A) is None, "someone deleted it between 14 and 20"


def test_a_write_that_the_watch_has_already_passed_is_not_laid_over() -> None:
    cache = cache_of(made("a", 18), revision=20)
    cache.absorb(made("a", 15))
    cache.absorb(made("b", 16))
    assert (revision_of(cache, A), revision_of(cache, B)) == ("18", None)


def test_what_we_deleted_is_gone_at_once_and_its_successor_is_seen() -> None:
    cache = cache_of(made("a", 5))
    cache.forget(A)
    assert cache.get(A) is None
    assert list(cache.entries()) == []
    cache.advance(event("DELETED", made("a", 12)))
    cache.advance(event("ADDED", made("a", 13)))
    assert revision_of(cache, A) == "13"


def test_what_we_deleted_stays_gone_while_the_watch_is_still_at_its_predecessor() -> None:
    cache = cache_of(made("a", 5))
    cache.forget(A)
    cache.absorb(made("a", 13))
    cache.forget(A)
    for late in (event("DELETED", made("a", 12)), event("ADDED", made("a", 13))):
        cache.advance(late)
        assert (cache.get(A), list(cache.entries())) == (None, [])
    cache.advance(event("DELETED", made("a", 14)))
    cache.advance(event("ADDED", made("a", 15)))
    assert revision_of(cache, A) == "15"


def test_a_successor_that_the_watch_told_before_the_answer_to_our_deletion_is_not_hidden() -> None:
    cache = cache_of(made("a", 5))
    deleted = cache.uid(A)
    successor = entry(b'{"metadata":{"name":"a","namespace":"n","resourceVersion":"13","uid":"another"}}')
    cache.advance(event("DELETED", made("a", 12)))
    cache.advance(event("ADDED", successor))
    cache.forget(A, deleted)
    assert revision_of(cache, A) == "13"


def test_a_write_that_leaves_the_scope_leaves_the_cache() -> None:
    cache = cache_of(made("a", 5, app="web"), query=Query(labels="app=web"))
    cache.absorb(made("a", 12, app="other"))
    cache.absorb(made("b", 13))
    assert list(cache.entries()) == []


def test_a_new_list_tells_what_changed_and_what_is_gone() -> None:
    cache = cache_of(made("a", 1), made("b", 2), made("c", 3))
    changes = cache.replace(Snapshot([made("b", 2), made("c", 7), made("d", 8)], "9"), initial=False)
    told = [(c.request.name, c.before and c.before.revision, c.after and c.after.revision) for c in changes]
    assert told == [("a", "1", None), ("c", "3", "7"), ("d", None, "8")]


def test_a_new_list_tells_what_is_gone_of_our_own_writes() -> None:
    cache = cache_of()
    cache.absorb(made("a", 12))
    cache.absorb(made("b", 20))
    (change,) = cache.replace(Snapshot([], "15"), initial=False)
    assert (change.request, change.before and change.before.revision, change.after) == (A, "12", None)
    assert revision_of(cache, B) == "20", "the list is older"


def test_a_new_list_tells_that_another_object_took_the_name() -> None:
    cache = cache_of(made("a", 1))
    other = entry(b'{"metadata":{"name":"a","namespace":"n","resourceVersion":"12","uid":"another"}}')
    changes = cache.replace(Snapshot([other], "12"), initial=False)
    assert [(c.before and c.before.revision, c.after and c.after.revision) for c in changes] == [
        ("1", None),
        (None, "12"),
    ]


def test_an_index_that_fails_on_an_object_leaves_it_out() -> None:
    cache = cache_of(made("a", 1, app="web"), made("b", 2))
    cache.add_index(Index("app", lambda found: [found.metadata.labels["app"]]))
    assert cache.indexed("app", "web") == [A]
    cache.absorb(made("a", 12))
    assert cache.indexed("app", "web") == []


def test_an_event_that_is_told_twice_counts_once() -> None:
    cache = cache_of(made("a", 1))
    assert cache.advance(event("ADDED", made("a", 1))) is None
    assert cache.advance(event("MODIFIED", made("a", 11))) is not None
    assert cache.advance(event("MODIFIED", made("a", 11))) is None


def test_an_index_follows_changes_and_our_own_writes() -> None:
    cache = cache_of(made("a", 1, app="web"), made("b", 2, app="web"))
    cache.add_index(Index("app", lambda found: [found.metadata.labels["app"]] if found.metadata.labels else []))
    assert cache.indexed("app", "web") == [A, B]
    cache.advance(event("MODIFIED", made("a", 11, app="db")))
    assert (cache.indexed("app", "web"), cache.indexed("app", "db")) == ([B], [A])
    cache.absorb(made("b", 12, app="db"))
    assert (cache.indexed("app", "web"), cache.indexed("app", "db")) == ([], [A, B])
    cache.advance(event("DELETED", made("b", 13)))
    assert (cache.indexed("app", "web"), cache.indexed("app", "db")) == ([], [A])


def test_an_index_that_nobody_declared_is_named() -> None:
    with pytest.raises(LookupError, match='no index "colour"'):
        cache_of().indexed("colour", "red")


@given(st.lists(st.tuples(st.sampled_from("ab"), st.sampled_from(["write", "delete", "event"])), max_size=25))
def test_a_reader_never_sees_less_than_it_wrote(steps: list[tuple[str, str]]) -> None:
    """The server's history is a line of revisions; the watch lags behind it; our writes are answered at once."""
    cache, history, told = cache_of(), [], 0
    latest: dict[str, int] = {}
    revision = 10
    for name, step in steps:
        if step == "event":
            if told < len(history):
                cache.advance(history[told])
                told += 1
        elif step == "write":
            revision += 1
            latest[name] = revision
            history.append(event("MODIFIED", made(name, revision)))
            cache.absorb(made(name, revision))
        elif name in latest:
            revision += 1
            del latest[name]
            history.append(event("DELETED", made(name, revision)))
            cache.forget(Request("n", name))
        for each in "ab":
            wanted = latest.get(each)
            assert revision_of(cache, Request("n", each)) == (None if wanted is None else str(wanted))
        assert {e.name: int(e.revision) for e in cache.entries()} == latest
