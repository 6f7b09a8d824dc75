"""What is said to SQLite, on a connection, in a thread."""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from typing import Any

import apsw
import msgspec

from trimtab.hub.storage.codec import decoded
from trimtab.hub.storage.contract import (
    PROJECTS,
    Identity,
    Row,
    RowChange,
    RowKey,
    RowPage,
    RowQuery,
    RowWrite,
    Snapshot,
)
from trimtab.hub.storage.decide import EVERYONE, REFUSALS, State, decide, is_going
from trimtab.hub.storage.grouping import BATCH, Outcome
from trimtab.hub.storage.reading import SQLITE, Listing, logged, page
from trimtab.store.contract import Gone, NotYet, Op


def decided(
    connection: apsw.Connection,
    state: State,
    writes: Sequence[RowWrite],
    revision: int,
    now: str,
    new_id: Callable[[], str],
) -> tuple[list[Outcome], int]:
    state.organizations = {name for (name,) in connection.execute("SELECT name FROM hub_organizations")}
    outcomes: list[Outcome] = []
    keys = {write.row.key for write in writes}
    for key in keys:
        _load(connection, state, key)
    for write in writes:
        _load_more(connection, state, write, keys)
        try:
            row = decide(state, write, revision + 1, now, new_id)
        except REFUSALS as refusal:
            outcomes.append(refusal)
            continue
        outcomes.append(row)
        revision = max(revision, row.revision)
    return outcomes, revision


def _load(connection: apsw.Connection, state: State, key: RowKey) -> None:
    row = get_row(connection, key)
    if row is not None:
        state.rows[key] = row
    _load_project(connection, state, key.project)


def _load_project(connection: apsw.Connection, state: State, project: str) -> None:
    if not project or project in state.asked:
        return
    state.asked.add(project)
    found = connection.execute(_PROJECT, (project, PROJECTS)).get
    if found is not None:
        organization, name, data = found
        state.projects[project] = (organization, name)
        if is_going(decoded(data)):
            state.going.add(project)


def _load_more(connection: apsw.Connection, state: State, write: RowWrite, keys: Container[RowKey]) -> None:
    """What only some writes ask for: whom they share with, a published version, how many rows a project has, and what is
    shared with it. `keys` were loaded, and may have changed since."""
    for project in write.row.shared.projects:
        _load_project(connection, state, project)
    current = state.rows.get(write.row.key)
    if current is None:
        return
    snapshot = write.row.snapshot
    if snapshot is not None and (current.id, snapshot.version) not in state.published:
        data = connection.execute(_SNAPSHOT, (current.id, snapshot.version)).get
        if data is not None:
            state.published[current.id, snapshot.version] = msgspec.json.decode(data, type=Snapshot)
    if write.op is Op.DELETE and current.key.type == PROJECTS and current.id not in state.used:
        state.used[current.id] = connection.execute(_USED, (current.id, BATCH + 1)).get
        guests = [decoded(data) for (data,) in connection.execute(_GUESTS, (current.key.organization, current.id))]
        for row in guests:
            if row.key not in keys and row.key not in state.rows:
                state.rows[row.key] = row
                _load_project(connection, state, row.key.project)


def get_row(connection: apsw.Connection, key: RowKey) -> Row | None:
    data = connection.execute(_GET, (key.organization, key.type, key.project, key.name)).get
    return None if data is None else decoded(data)


def counter(connection: apsw.Connection) -> tuple[int, int]:
    revision, compacted = connection.execute("SELECT revision, compacted FROM hub_counter").get
    return revision, compacted


def list_page(connection: apsw.Connection, query: RowQuery) -> RowPage:
    newest, compacted = counter(connection)
    listing = Listing(query, SQLITE)
    if query.revision in (0, newest):
        found = _run(connection, listing.newest(), listing.args)
        return page(found, listing.size, newest)
    if query.revision < compacted:
        raise Gone(query.revision, compacted)
    if query.revision > newest:
        raise NotYet(query.revision, newest)
    found = _run(connection, listing.at(query.revision), listing.args)
    return page(sorted(found), listing.size, query.revision)


def _run(connection: apsw.Connection, statement: str, args: Sequence[Any]) -> list[tuple[str, str, bytes]]:
    return [*connection.execute(statement.replace("$", "?"), args)]


def read_log(connection: apsw.Connection, after: int, limit: int) -> tuple[list[RowChange], int]:
    newest, compacted = counter(connection)
    if after < compacted:
        raise Gone(after, compacted)
    found = connection.execute(
        "SELECT revision, before, after FROM hub_log WHERE revision > ? ORDER BY revision LIMIT ?", (after, limit)
    )
    return logged(found, newest, limit)


def forget(connection: apsw.Connection, until: int) -> None:
    if until > counter(connection)[1]:
        connection.execute("DELETE FROM hub_log WHERE revision <= ?", (until,))
        connection.execute("UPDATE hub_counter SET compacted = ?", (until,))


def find_ids(
    connection: apsw.Connection, organization: str, type_: str, project: str | None, names: Sequence[str]
) -> dict[str, str]:
    found: dict[str, str] = {}
    for name in dict.fromkeys(names):
        if project is None:
            row = connection.execute(_ID_ANYWHERE, (organization, type_, name)).get
        else:
            row = connection.execute(_ID, (organization, type_, project, name)).get or (
                connection.execute(_ID_SHARED, (organization, type_, name, project, EVERYONE)).get
            )
        if row is not None:
            found[name] = row
    return found


def find_names(connection: apsw.Connection, ids: Sequence[str]) -> dict[str, Identity]:
    found: dict[str, Identity] = {}
    for each in dict.fromkeys(ids):
        row = connection.execute(_IDENTITY, (each,)).get if each else None
        if row is not None:
            found[each] = Identity(id=each, type=row[0], project=row[1], name=row[2], deleted=bool(row[3]))
    return found


def find_versions(connection: apsw.Connection, key: RowKey) -> list[Snapshot]:
    row = get_row(connection, key)
    if row is None:
        return []
    found = connection.execute("SELECT data FROM hub_snapshots WHERE resource = ? ORDER BY number", (row.id,))
    return [msgspec.json.decode(data, type=Snapshot) for (data,) in found]


_WHERE = (
    "WHERE organization = ?1 AND type = ?2 AND project_name = (SELECT name FROM hub_identities WHERE id = ?3) "
    "AND name = ?4 AND project = ?3"
)
_GET = f"SELECT data FROM hub_resources {_WHERE}"  # noqa: S608
_ID = f"SELECT id FROM hub_resources {_WHERE}"  # noqa: S608
_ID_ANYWHERE = (
    "SELECT id FROM hub_resources WHERE organization = ? AND type = ? AND name = ? ORDER BY project_name LIMIT 1"
)
# What is shared with the project itself before what is shared with all; of several always the same one.
_ID_SHARED = (
    "SELECT resource FROM hub_sharing WHERE organization = ?1 AND type = ?2 AND name = ?3 AND project IN (?4, ?5) "
    "ORDER BY project = ?5, resource LIMIT 1"
)
_IDENTITY = "SELECT type, project, name, deleted FROM hub_identities WHERE id = ?"
_PROJECT = (
    "SELECT i.organization, i.name, r.data FROM hub_identities i JOIN hub_resources r "
    "ON r.organization = i.organization AND r.type = i.type AND r.project_name = '' AND r.name = i.name "
    "WHERE i.id = ? AND i.type = ? AND NOT i.deleted"
)
_GUESTS = (
    "SELECT r.data FROM hub_sharing s JOIN hub_resources r "
    "ON r.organization = s.organization AND r.type = s.type AND r.name = s.name AND r.id = s.resource "
    "WHERE s.organization = ? AND s.project = ?"
)
_SNAPSHOT = "SELECT data FROM hub_snapshots WHERE resource = ? AND version = ?"
_USED = "SELECT count(*) FROM (SELECT 1 FROM hub_identities WHERE project = ? AND NOT deleted LIMIT ?)"
