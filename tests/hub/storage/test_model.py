"""Any writes in any order: what the storage shows is what a dictionary and a list of its states would."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.hub.storage.rows import key, listed
from trimtab.hub.storage.contract import (
    PROJECTS,
    InUse,
    Published,
    Row,
    RowConflict,
    RowKey,
    RowQuery,
    RowWrite,
    Shared,
    Snapshot,
    Storage,
    Unknown,
)
from trimtab.store.contract import Op

PLACES = ("p", "q", "")
NAMES = ("a", "b", "c")
numbers = itertools.count()

writes = st.fixed_dictionaries(
    {
        "what": st.sampled_from(("put", "put", "put", "delete", "project", "going", "unproject")),
        "place": st.sampled_from(PLACES),
        "name": st.sampled_from(NAMES),
        "body": st.integers(0, 2),
        "label": st.sampled_from("xy"),
        "shared": st.sampled_from(("", "*", "p", "q", "nobody")),
        "version": st.sampled_from(("", "", "v1", "v2")),
        "expect": st.sampled_from((None, None, None, 0, "right")),
    }
)


class Model:
    """What is there, what was there at each revision, and what each revision changed."""

    def __init__(self, revision: int) -> None:
        self.rows: dict[RowKey, Row] = {}
        self.published: dict[str, dict[str, Any]] = {}
        self.past: list[tuple[int, dict[RowKey, Row]]] = [(revision, {})]
        self.changes: list[tuple[Op, Row, Row | None]] = []

    def refusal(self, write: RowWrite) -> type[Exception] | None:
        at = write.row.key
        current = self.rows.get(at)
        if write.expect is not None and write.expect != (current.revision if current else 0):
            return RowConflict
        if write.op is Op.DELETE:
            if current is None:
                return RowConflict
            return InUse if any(each.project == current.id for each in self.rows) else None
        home = next((row for row in self.rows.values() if row.id == at.project), None)
        if at.project and (home is None or (current is None and home.envelope)):
            return Unknown
        version = write.row.snapshot
        known = self.published.get(current.id, {}) if current else {}
        if version is not None and known.get(version.version, version.body) != version.body:
            return Published
        return None

    def took(self, write: RowWrite, row: Row) -> None:
        """Checks the answer to an allowed write, and takes it over."""
        current = self.rows.get(write.row.key)
        newest = self.past[-1][0]
        if current is not None and row == current:
            assert write.op is Op.PUT
            given = self._there(write.row)
            assert _said(given)[:-1] == _said(current)[:-1]
            assert given.snapshot is None or _said(given) == _said(current)
            return
        assert row.revision > newest
        if write.op is Op.DELETE:
            self._unshare(row)
            assert _said(row) == _said(current)
            del self.rows[row.key]
            self.published.pop(row.id, None)
        else:
            assert _said(row)[:-1] == _said(self._there(write.row))[:-1]
            assert (row.id == current.id) if current else all(row.id != each.id for each in self.rows.values())
            self.rows[row.key] = row
            if write.row.snapshot is not None:
                versions = self.published.setdefault(row.id, {})
                versions.setdefault(write.row.snapshot.version, write.row.snapshot.body)
        self.changes.append((write.op, row, current))
        self.past.append((row.revision, dict(self.rows)))

    def _there(self, row: Row) -> Row:
        """Shared with projects that are there only."""
        ids = {each.id for each in self.rows.values()}
        shared = msgspec.structs.replace(row.shared, projects=tuple(p for p in row.shared.projects if p in ids))
        return msgspec.structs.replace(row, shared=shared)

    def _unshare(self, project: Row) -> None:
        guests = [(at, row) for at, row in sorted(self.rows.items()) if project.id in row.shared.projects]
        for number, (at, row) in enumerate(guests, project.revision - len(guests)):
            left = msgspec.structs.replace(row, shared=Shared(), envelope={"generation": 1}, revision=number)
            self.rows[at] = left
            self.changes.append((Op.PUT, left, row))
            self.past.append((number, dict(self.rows)))


def _said(row: Row | None) -> tuple[Any, ...]:
    assert row is not None
    version = row.snapshot
    return (row.body, row.labels, row.shared, version and (version.version, version.body))


def _shared(name: str, ids: dict[str, str]) -> Shared:
    return Shared(everyone=name == "*", projects=() if name in ("", "*") else (ids.get(name, name),))


def _write(step: dict[str, Any], organization: str, model: Model, ids: dict[str, str]) -> RowWrite:
    if step["what"] in ("project", "going", "unproject"):
        at = key(step["place"] or "p", kind=PROJECTS, organization=organization)
        row = Row(key=at, envelope={"deletionTimestamp": "now"} if step["what"] == "going" else {})
    else:
        at = key(step["name"], ids.get(step["place"], ""), organization=organization)
        version = step["version"]
        row = Row(
            key=at,
            body={"n": step["body"]},
            labels={"l": step["label"]},
            shared=_shared(step["shared"], ids),
            snapshot=Snapshot(version=version, body={"n": step["body"]}) if version else None,
        )
    expect = step["expect"]
    if expect == "right":
        expect = model.rows[at].revision if at in model.rows else 0
    return RowWrite(row=row, op=Op.DELETE if step["what"] in ("delete", "unproject") else Op.PUT, expect=expect)


async def check(storage: Storage, steps: list[dict[str, Any]], together: int, limit: int, since: int) -> None:
    organization = f"o{next(numbers)}"
    await storage.add_organization(organization)
    await storage.commit(RowWrite(row=Row(key=key(organization))))  # revision 0 stands for the newest: begin after it
    model = Model((await storage.horizon())[0])
    names: dict[str, str] = {"": ""}  # of projects, by ID
    ids: dict[str, str] = {}
    for start in range(0, len(steps), together):  # what is asked for at once goes into one transaction, in its order
        asked = [_write(step, organization, model, ids) for step in steps[start : start + together]]
        outcomes = await asyncio.gather(*map(storage.commit, asked), return_exceptions=True)
        for write, outcome in zip(asked, outcomes, strict=True):
            refusal = model.refusal(write)
            if refusal is not None:
                assert type(outcome) is refusal
                continue
            assert isinstance(outcome, Row), outcome
            model.took(write, outcome)
            if outcome.key.type == PROJECTS:
                names[outcome.id] = outcome.key.name
                ids[outcome.key.name] = outcome.id
    await _compare(storage, organization, model, names, limit)
    await _follow(storage, organization, model, since)


async def _compare(storage: Storage, organization: str, model: Model, names: dict[str, str], limit: int) -> None:
    for revision, then in model.past:
        wanted = RowQuery(organization=organization, type="blueprints.infra", limit=limit, revision=revision)
        rows = [row for row in then.values() if row.key.type == wanted.type]
        rows.sort(key=lambda row: (names[row.key.project], row.key.name))
        # Versions go with the newest state: a row of the past has the version that it had.
        assert await listed(storage, wanted) == rows
        labelled = msgspec.structs.replace(wanted, labels={"l": "x"})
        assert await listed(storage, labelled) == [row for row in rows if row.labels == {"l": "x"}]
        for project in {row.key.project for row in rows}:
            of_project = msgspec.structs.replace(wanted, project=project)
            assert await listed(storage, of_project) == [row for row in rows if row.key.project == project]
    for at, row in model.rows.items():
        assert await storage.get(at) == row
        versions = {each.version: each.body for each in await storage.versions(at)}
        assert versions == model.published.get(row.id, {})
    made = {row.id: row.key.name for _, row, _ in model.changes}
    known = await storage.names([*made])
    assert {each.id: each.name for each in known.values()} == made
    assert {each.id for each in known.values() if not each.deleted} == {row.id for row in model.rows.values()}


async def _follow(storage: Storage, organization: str, model: Model, since: int) -> None:
    start = model.past[min(since, len(model.past) - 1)][0]
    expected = [change for change in model.changes if change[1].revision > start]
    found: list[Any] = []
    if not expected:
        return
    async with contextlib.aclosing(storage.changes(organization, (), start)) as batches:  # type: ignore[type-var]
        async for batch in batches:
            found += [(change.op, change.row, change.before) for change in batch.changes]
            if len(found) >= len(expected):
                break
    # The last state of what was deleted is told at the revision of its deletion.
    assert [(op, row.revision, row.key, before) for op, row, before in found] == [
        (op, row.revision, row.key, before) for op, row, before in expected
    ]
    assert [row for op, row, _ in found if op is Op.PUT] == [row for op, row, _ in expected if op is Op.PUT]


@pytest.mark.parametrize("home", ["sqlite", "postgres"], indirect=True)
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(
    steps=st.lists(writes, max_size=25), together=st.integers(1, 6), limit=st.integers(1, 4), since=st.integers(0, 25)
)
async def test_the_storage_is_a_dictionary_with_a_past(
    storage: Storage, steps: list[dict[str, Any]], together: int, limit: int, since: int
) -> None:
    await check(storage, steps, together, limit, since)
