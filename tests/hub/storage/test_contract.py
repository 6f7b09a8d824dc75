"""The contract of the storage, in every home."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

import pytest

from tests.hub.storage.rows import ORG, TYPE, delete, key, listed, project, put, query
from trimtab.hub.storage.contract import (
    INTENTS,
    PROJECTS,
    InUse,
    Published,
    RowBatch,
    RowConflict,
    Shared,
    Snapshot,
    Storage,
    Unknown,
)
from trimtab.storage.blobs import BlobMissing, digest_of, read
from trimtab.store.contract import Gone, NotYet, Op, TooLarge


async def test_a_row_comes_back_with_an_id_a_revision_and_times(storage: Storage) -> None:
    home = await project(storage, "home")
    written = put(
        key("a", home),
        description="An é and a \u0000",
        labels={"team": "x"},
        annotations={"note": "y"},
        body={"n": 1, "f": 1.5, "list": [None, True, "\u0000"], "nested": {"a": {}}},
        status={"phase": "Ready"},
        envelope={"uid": "u", "generation": 3},
    )
    row = await storage.commit(written)
    assert len(row.id) == 32
    assert int(row.id, 16)
    assert row.revision == 2
    assert row.created == row.modified != ""
    assert await storage.get(row.key) == row
    for field in ("description", "labels", "annotations", "body", "status", "envelope"):
        assert getattr(row, field) == getattr(written.row, field)


async def test_what_is_not_there_is_none(storage: Storage) -> None:
    assert await storage.get(key("a")) is None
    assert await storage.get(key("a", "f" * 32)) is None
    assert await storage.versions(key("a")) == []


async def test_whoever_asks_for_what_cannot_be_finds_nothing(storage: Storage) -> None:
    nul = "a\0b"
    await storage.commit(put(key("a")))
    assert await storage.get(key(nul)) is None
    assert await storage.versions(key("a", nul)) == []
    assert await storage.ids(ORG, TYPE, nul, ["a"]) == {}
    assert set(await storage.ids(ORG, TYPE, None, ["a", nul])) == {"a"}
    assert await storage.names([nul]) == {}
    for asked in (query(nul), query(name=nul), query(labels={nul: "x"}), query(labels={"x": nul})):
        assert (await storage.list(asked)).rows == []


async def test_an_update_keeps_id_and_creation_and_gets_the_next_revision(storage: Storage) -> None:
    first = await storage.commit(put(key("a"), body={"n": 1}))
    second = await storage.commit(put(key("a"), body={"n": 2}))
    assert (second.id, second.created, second.revision) == (first.id, first.created, first.revision + 1)


async def test_a_write_that_changes_nothing_keeps_its_revision_and_is_not_logged(storage: Storage) -> None:
    first = await storage.commit(put(key("a"), body={"n": 1, "m": 2}, labels={"a": "b"}))
    again = await storage.commit(put(key("a"), body={"m": 2, "n": 1}, labels={"a": "b"}))
    assert again == first
    assert (await storage.horizon())[0] == first.revision


async def test_another_type_of_value_is_a_change(storage: Storage) -> None:
    values = (1, True, 1.0, "1", None)
    rows = [await storage.commit(put(key("a"), body={"n": value})) for value in values]
    assert [row.revision for row in rows] == [1, 2, 3, 4, 5]


async def test_a_write_names_the_revision_that_it_expects(storage: Storage) -> None:
    first = await storage.commit(put(key("a"), expect=0, body={"n": 1}))
    with pytest.raises(RowConflict) as exists:
        await storage.commit(put(key("a"), expect=0, body={"n": 2}))
    assert exists.value.current == first
    assert exists.value.key == first.key
    second = await storage.commit(put(key("a"), expect=first.revision, body={"n": 2}))
    with pytest.raises(RowConflict):
        await storage.commit(delete(key("a"), expect=first.revision))
    with pytest.raises(RowConflict) as missing:
        await storage.commit(put(key("b"), expect=7))
    assert missing.value.current is None
    last = await storage.commit(delete(key("a"), expect=second.revision))
    assert (last.revision, last.body) == (second.revision + 1, {"n": 2})


async def test_a_deletion_of_nothing_is_a_conflict(storage: Storage) -> None:
    with pytest.raises(RowConflict) as conflict:
        await storage.commit(delete(key("a")))
    assert conflict.value.current is None


async def test_of_many_writers_with_the_same_expectation_one_wins(storage: Storage) -> None:
    outcomes = await asyncio.gather(
        *(storage.commit(put(key("a"), expect=0, body={"n": n})) for n in range(20)), return_exceptions=True
    )
    won = [outcome for outcome in outcomes if not isinstance(outcome, BaseException)]
    assert len(won) == 1
    assert all(isinstance(outcome, RowConflict) for outcome in outcomes if isinstance(outcome, BaseException))
    assert await storage.get(key("a")) == won[0]


async def test_what_is_made_again_is_another_thing(storage: Storage) -> None:
    first = await storage.commit(put(key("a")))
    await storage.commit(delete(key("a")))
    second = await storage.commit(put(key("a"), expect=0))
    assert second.id != first.id
    known = await storage.names([first.id, second.id, "", "f" * 32])
    assert {each.id: (each.name, each.type, each.deleted) for each in known.values()} == {
        first.id: ("a", TYPE, True),
        second.id: ("a", TYPE, False),
    }


async def test_a_row_needs_its_organization_and_its_project(storage: Storage) -> None:
    with pytest.raises(Unknown, match="organisation"):
        await storage.commit(put(key("a", organization="acme")))
    with pytest.raises(Unknown, match="project"):
        await storage.commit(put(key("a", "f" * 32)))
    await storage.add_organization("acme")
    await storage.add_organization("acme")
    assert await storage.organizations() == ["acme", "default"]
    theirs = await project(storage, "home", "acme")
    with pytest.raises(Unknown, match="project"):
        await storage.commit(put(key("a", theirs)))
    await storage.commit(put(key("a", theirs, organization="acme")))
    assert await listed(storage, query()) == []


async def test_a_project_with_rows_stays(storage: Storage) -> None:
    home = await project(storage, "home")
    await storage.commit(put(key("a", home)))
    with pytest.raises(InUse, match="home"):
        await storage.commit(delete(key("home", kind=PROJECTS)))
    await storage.commit(delete(key("a", home)))
    await storage.commit(delete(key("home", kind=PROJECTS)))
    with pytest.raises(Unknown):
        await storage.commit(put(key("a", home)))
    again = await project(storage, "home")
    await storage.commit(put(key("a", again)))
    assert await storage.get(key("a", home)) is None
    assert await listed(storage, query(home)) == []


async def test_a_project_and_its_last_row_go_in_one_breath(storage: Storage) -> None:
    home = await project(storage, "home")
    await storage.commit(put(key("a", home)))
    await asyncio.gather(
        storage.commit(put(key("other"))),
        storage.commit(delete(key("a", home))),
        storage.commit(delete(key("home", kind=PROJECTS))),
    )
    known = await storage.names([home])
    assert (known[home].name, known[home].deleted) == ("home", True)


WRONG = {
    key(""): "name is empty",
    key("a\0b"): "name must have",
    key("a" * 2000): "name must have",
    key("a", kind=""): "type is empty",
    key("a", "b", kind=PROJECTS): "project must be empty",
}


async def test_a_key_that_no_row_can_have_is_refused(storage: Storage) -> None:
    for wrong, message in WRONG.items():
        with pytest.raises(ValueError, match=message):
            await storage.commit(put(wrong))


async def test_a_row_that_is_too_large_is_refused(storage: Storage) -> None:
    with pytest.raises(TooLarge):
        await storage.commit(put(key("a"), body={"text": "x" * (5 << 20)}))
    assert await storage.get(key("a")) is None


async def test_rows_are_listed_by_the_names_of_project_and_row(storage: Storage) -> None:
    places = {name: await project(storage, name) for name in ("zoo", "Bar", "ärger", "bar")}
    for name in ("b", "B", "a-1", "a.1", "ä"):
        for place in places.values():
            await storage.commit(put(key(name, place)))
    expected = [(p, n) for p in sorted(places) for n in sorted(("b", "B", "a-1", "a.1", "ä"))]
    ids = {place: name for name, place in places.items()}
    for limit in (1, 3, 500):
        rows = await listed(storage, query(limit=limit))
        assert [(ids[row.key.project], row.key.name) for row in rows] == expected
    assert [row.key.name for row in await listed(storage, query(places["zoo"], limit=2))] == sorted(
        ("b", "B", "a-1", "a.1", "ä")
    )
    assert [ids[row.key.project] for row in await listed(storage, query(name="b", limit=1))] == sorted(places)
    assert len(await listed(storage, query(places["bar"], name="b"))) == 1


async def test_a_list_is_chosen_by_labels(storage: Storage) -> None:
    for name, labels in {"a": {"x": "1", 'odd"/key.': "'"}, "b": {"x": "2"}, "c": {"x": "1"}}.items():
        await storage.commit(put(key(name), labels=labels))
    assert [row.key.name for row in await listed(storage, query(labels={"x": "1"}, limit=1))] == ["a", "c"]
    assert [row.key.name for row in await listed(storage, query(labels={"x": "1", 'odd"/key.': "'"}))] == ["a"]
    assert await listed(storage, query(labels={"x": "3"})) == []


async def test_a_list_goes_on_at_its_revision_while_rows_change(storage: Storage) -> None:
    home = await project(storage, "home")
    for name in "abcdef":
        await storage.commit(put(key(name, home), body={"n": 1}, labels={"old": name}))
    page = await storage.list(query(limit=2))
    await storage.commit(delete(key("a", home)))
    await storage.commit(delete(key("c", home)))
    await storage.commit(put(key("c", home), body={"n": 3}))
    await storage.commit(put(key("d", home), body={"n": 2}))
    await storage.commit(put(key("d", home), body={"n": 3}))
    await storage.commit(put(key("dd", home)))
    await storage.commit(delete(key("f", home)))
    rows = [*page.rows]
    while page.after is not None:
        page = await storage.list(query(limit=2, after=page.after, revision=page.revision))
        rows += page.rows
    assert [(row.key.name, row.body) for row in rows] == [(name, {"n": 1}) for name in "abcdef"]
    then = page.revision
    assert [row.key.name for row in await listed(storage, query(home, revision=then, limit=4))] == [*"abcdef"]
    assert [row.key.name for row in await listed(storage, query(revision=then, labels={"old": "c"}))] == ["c"]
    assert [row.key.name for row in await listed(storage, query(revision=then, name="f"))] == ["f"]
    assert [row.key.name for row in await listed(storage, query())] == ["b", "c", "d", "dd", "e"]
    assert await listed(storage, query(revision=1)) == []


async def test_a_revision_that_is_to_come_cannot_be_listed(storage: Storage) -> None:
    with pytest.raises(NotYet) as error:
        await storage.list(query(revision=7))
    assert (error.value.revision, error.value.current) == (7, 0)


async def follow(storage: Storage, since: int, count: int, types: tuple[str, ...] = ()) -> list[Any]:
    """This many changes."""
    found: list[Any] = []
    async with contextlib.aclosing(storage.changes(ORG, types, since)) as batches:  # type: ignore[type-var]
        async for batch in batches:
            assert batch.revision >= max([since, *(change.row.revision for change in batch.changes)])
            found += batch.changes
            if len(found) >= count:
                return found
    raise AssertionError("the changes ended")


@pytest.mark.row(37)
async def test_changes_tell_everything_in_order_from_any_revision(storage: Storage) -> None:
    one = await storage.commit(put(key("a"), body={"n": 1}))
    two = await storage.commit(put(key("a"), body={"n": 2}))
    other = await storage.commit(put(key("x", kind="addons.infra")))
    last = await storage.commit(delete(key("a")))
    changes = await follow(storage, 0, 4)
    assert [(change.op, change.row, change.before) for change in changes] == [
        (Op.PUT, one, None),
        (Op.PUT, two, one),
        (Op.PUT, other, None),
        (Op.DELETE, last, two),
    ]
    assert await follow(storage, two.revision, 1, (TYPE,)) == [changes[3]]
    assert await follow(storage, 0, 1, ("addons.infra", "none")) == [changes[2]]


@pytest.mark.row(37)
async def test_changes_wake_whoever_waits(storage: Storage) -> None:
    waiting = asyncio.create_task(follow(storage, 0, 200, (TYPE,)))
    rows = await asyncio.gather(*(storage.commit(put(key(f"n{n}"))) for n in range(200)))
    changes = await asyncio.wait_for(waiting, 30)
    assert [change.row.revision for change in changes] == [*range(1, 201)]
    assert {row.revision: row for row in rows} == {change.row.revision: change.row for change in changes}


@pytest.mark.row(37)
async def test_a_commit_wakes_whoever_follows_through_another_storage(
    made: Any, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By NOTIFY alone: nobody looks for an hour."""
    monkeypatch.setattr("trimtab.hub.storage.postgres_tail.LOOK", 3600)
    mine, yours = [await made("postgres", url=postgres_url) for _ in range(2)]
    await mine.commit(put(key("seen")))
    async with contextlib.aclosing(yours.changes(ORG, (TYPE,), 0)) as batches:
        await anext(batches)
        for number in range(3):
            row = await mine.commit(put(key(f"n{number}")))
            batch = await asyncio.wait_for(anext(batches), 10)
            assert [change.row for change in batch.changes] == [row]


async def test_changes_of_another_organization_are_not_told(storage: Storage) -> None:
    await storage.add_organization("acme")
    await storage.commit(put(key("a", organization="acme")))
    await storage.commit(put(key("b")))
    assert [change.row.key.name for change in await follow(storage, 0, 1)] == ["b"]


async def test_whoever_has_seen_the_future_must_list_again(storage: Storage) -> None:
    with pytest.raises(Gone):
        await follow(storage, 5, 1)


async def test_an_idle_follower_hears_how_far_it_is(home: str, made: Any) -> None:
    storage = await made(home, heartbeat=0.01)
    await storage.commit(put(key("a", kind="other")))
    async with contextlib.aclosing(storage.changes(ORG, (TYPE,), 0)) as batches:
        assert await anext(batches) == RowBatch(revision=1)


@pytest.mark.row(9)
async def test_a_name_means_the_own_row_before_one_that_is_shared(storage: Storage) -> None:
    mine, yours, third = [await project(storage, name) for name in ("mine", "yours", "third")]
    own = await storage.commit(put(key("x", mine)))
    shared = await storage.commit(put(key("x", yours), shared=Shared(projects=(mine, third, mine))))
    for_all = await storage.commit(put(key("y", yours), shared=Shared(everyone=True)))
    await storage.commit(put(key("z", yours)))
    assert await storage.ids(ORG, TYPE, mine, ["x", "y", "z", "x"]) == {"x": own.id, "y": for_all.id}
    assert await storage.ids(ORG, TYPE, third, ["x", "y", "z"]) == {"x": shared.id, "y": for_all.id}
    assert set(await storage.ids(ORG, TYPE, yours, ["x", "y", "z"])) == {"x", "y", "z"}
    assert set(await storage.ids(ORG, TYPE, None, ["x", "y", "z"])) == {"x", "y", "z"}
    assert await storage.ids(ORG, PROJECTS, None, ["mine", "none"]) == {"mine": mine}
    assert await storage.ids(ORG, TYPE, mine, []) == {}


@pytest.mark.row(9)
async def test_sharing_ends_with_the_write_that_ends_it_and_with_the_row(storage: Storage) -> None:
    mine, yours = [await project(storage, name) for name in ("mine", "yours")]
    await storage.commit(put(key("x", yours), shared=Shared(projects=(mine,), everyone=True)))
    await storage.commit(put(key("x", yours), shared=Shared(projects=(mine,))))
    assert len(await storage.ids(ORG, TYPE, mine, ["x"])) == 1
    await storage.commit(put(key("x", yours)))
    assert await storage.ids(ORG, TYPE, mine, ["x"]) == {}
    await storage.commit(put(key("x", yours), shared=Shared(everyone=True)))
    await storage.commit(delete(key("x", yours)))
    assert await storage.ids(ORG, TYPE, mine, ["x"]) == {}


@pytest.mark.row(9)
async def test_with_a_project_goes_what_is_shared_with_it(storage: Storage) -> None:
    """Another of its name is another project: it has nothing of the old one's."""
    mine, yours, third = [await project(storage, name) for name in ("mine", "yours", "third")]
    before = await storage.commit(
        put(key("x", yours), shared=Shared(projects=(mine, third)), envelope={"generation": 1})
    )
    gone = await storage.commit(delete(key("mine", kind=PROJECTS)))
    row = await storage.get(key("x", yours))
    assert row is not None
    assert (row.shared, row.envelope) == (Shared(projects=(third,)), {"generation": 2})
    assert before.revision < row.revision < gone.revision
    told = [(change.op, change.row.key.name) for change in await follow(storage, before.revision, 2)]
    assert told == [(Op.PUT, "x"), (Op.DELETE, "mine")]
    again = await project(storage, "mine")
    assert await storage.ids(ORG, TYPE, again, ["x"]) == {}
    late = await storage.commit(put(key("y", yours), shared=Shared(projects=(mine, third))))
    assert late.shared == Shared(projects=(third,))


async def test_nothing_new_comes_into_a_project_that_is_being_deleted(storage: Storage) -> None:
    mine = await project(storage, "mine")
    old = await storage.commit(put(key("old", mine)))
    await storage.commit(put(key("mine", kind=PROJECTS), envelope={"deletionTimestamp": "2026-11-18T00:00:00Z"}))
    with pytest.raises(Unknown, match="the project mine is being deleted: nothing new is made in it"):
        await storage.commit(put(key("new", mine)))
    assert (await storage.commit(put(key("old", mine), body={"n": 1}))).revision > old.revision
    held = await storage.commit(put(key("old", mine, kind=f"{INTENTS}{TYPE}")))
    await storage.commit(delete(held.key))
    assert await storage.names([held.id]) == {}


@pytest.mark.row(28)
@pytest.mark.row(15)
async def test_a_published_version_is_for_ever(storage: Storage) -> None:
    one = await storage.commit(put(key("a"), body={"v": "v1"}, snapshot=Snapshot(version="v1", body={"n": 1})))
    assert one.snapshot is not None
    assert one.snapshot.created != ""
    with pytest.raises(Published, match="v1") as refused:
        await storage.commit(put(key("a"), body={"v": "v1"}, snapshot=Snapshot(version="v1", body={"n": 2})))
    assert (refused.value.key, refused.value.version) == (one.key, "v1")
    assert await storage.get(key("a")) == one
    two = await storage.commit(put(key("a"), body={"v": "v2"}, snapshot=Snapshot(version="v2", body={"n": 2})))
    draft = await storage.commit(put(key("a"), body={"v": ""}))
    assert draft.snapshot == two.snapshot
    assert [(each.version, each.body) for each in await storage.versions(key("a"))] == [
        ("v1", {"n": 1}),
        ("v2", {"n": 2}),
    ]


@pytest.mark.row(28)
async def test_the_same_version_with_the_same_body_may_be_given_again(storage: Storage) -> None:
    v1, v2 = (Snapshot(version=f"v{n}", body={"n": n}) for n in (1, 2))
    first = await storage.commit(put(key("a"), snapshot=v1))
    assert await storage.commit(put(key("a"), snapshot=v1)) == first
    await storage.commit(put(key("a"), snapshot=v2))
    back = await storage.commit(put(key("a"), snapshot=v1))
    assert back.snapshot == first.snapshot
    assert [each.version for each in await storage.versions(key("a"))] == ["v2", "v1"], "it is the newest then"
    await storage.commit(put(key("a"), body={"draft": True}))
    await storage.commit(put(key("a"), snapshot=v1))
    assert [each.version for each in await storage.versions(key("a"))] == ["v2", "v1"]


@pytest.mark.row(28)
async def test_versions_go_with_the_row(storage: Storage) -> None:
    await storage.commit(put(key("a"), snapshot=Snapshot(version="v1", body={"n": 1})))
    await storage.commit(delete(key("a")))
    assert await storage.versions(key("a")) == []
    await storage.commit(put(key("a"), snapshot=Snapshot(version="v1", body={"n": 2})))
    assert [each.body for each in await storage.versions(key("a"))] == [{"n": 2}]


@pytest.mark.row(28)
async def test_of_two_bodies_for_one_version_the_first_is_published(storage: Storage) -> None:
    await storage.commit(put(key("a")))
    outcomes = await asyncio.gather(
        *(storage.commit(put(key("a"), snapshot=Snapshot(version="v1", body={"n": n}))) for n in range(5)),
        return_exceptions=True,
    )
    assert sum(isinstance(outcome, Published) for outcome in outcomes) == 4
    assert len(await storage.versions(key("a"))) == 1


async def test_what_the_log_forgot_is_gone(home: str, made: Any) -> None:
    storage = await made(home)
    for n in range(10):
        await storage.commit(put(key("a"), body={"n": n}))
    await storage.behind.compact(5)
    assert await storage.horizon() == (10, 5)
    with pytest.raises(Gone) as listing:
        await storage.list(query(revision=4))
    assert (listing.value.revision, listing.value.oldest) == (4, 5)
    with pytest.raises(Gone):
        await follow(storage, 4, 1)
    assert [row.body for row in await listed(storage, query(revision=5))] == [{"n": 4}]
    assert [change.row.revision for change in await follow(storage, 5, 5)] == [6, 7, 8, 9, 10]


async def test_blobs_are_kept_beside_the_rows(storage: Storage) -> None:
    digest = await storage.blobs.put(b"x" * 3_000_000, media_type="text/plain")
    await storage.blobs.pin(digest, "owner")
    assert await read(storage.blobs, digest, max_bytes=3_000_000) == b"x" * 3_000_000
    with pytest.raises(BlobMissing):
        await storage.blobs.stat(digest_of(b"never"))
