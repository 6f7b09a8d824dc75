"""What a write does to what is there. Pure: a backend loads `State` in its transaction, asks `decide` for each write in
turn, and carries out `statements`. Both databases do the same because the rules are here alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from trimtab.hub.storage.codec import encoded, equal, labels_of
from trimtab.hub.storage.contract import (
    INTENTS,
    PROJECTS,
    InUse,
    Published,
    Row,
    RowChange,
    RowConflict,
    RowKey,
    RowWrite,
    Shared,
    Snapshot,
    Unknown,
)
from trimtab.store.contract import Op

REFUSALS = (RowConflict, Published, InUse, Unknown)
"""What fails one write and leaves the others of its transaction alone."""

EVERYONE = "*"
"""As a project in the table of sharing."""

Step = tuple[str, list[tuple[object, ...]]]
"""A statement, and what to run it with, each in turn."""


class State:
    """What the database has, as far as the writes of one transaction ask for it, and what they have made of it so far."""

    def __init__(self) -> None:
        self.organizations: set[str] = set()
        self.rows: dict[RowKey, Row] = {}  # those that are written, and what is shared with projects that are deleted
        self.projects: dict[str, tuple[str, str]] = {}  # those that exist: ID → organisation, name
        self.going: set[str] = set()  # those of them that are being deleted
        self.asked: set[str] = set()  # IDs of projects of which all is known: they are not to be loaded again
        self.published: dict[tuple[str, str], Snapshot] = {}  # by ID of the row, and version
        self.used: dict[str, int] = {}  # rows of projects that are to be deleted, before the first of these writes
        self.made: dict[str, int] = {}  # and how many more they are since
        self.changes: list[RowChange] = []
        self.publishing: list[tuple[str, Snapshot, int]] = []


def decide(state: State, write: RowWrite, revision: int, now: str, new_id: Callable[[], str]) -> Row:
    """The row as it is after the write, which has `revision` when it changed. One of REFUSALS."""
    key = write.row.key
    current = state.rows.get(key)
    if write.expect is not None and write.expect != (current.revision if current else 0):
        raise RowConflict(key, current)
    if write.op is Op.DELETE:
        return _delete(state, key, current, revision)
    if key.organization not in state.organizations:
        raise Unknown(f'there is no organisation "{key.organization}"')
    if key.project and state.projects.get(key.project, ("", ""))[0] != key.organization:
        raise Unknown(f"{key.type} {key.name}: its project does not exist")
    if current is None and key.project in state.going and not key.type.startswith(INTENTS):
        raise Unknown(late(state.projects[key.project][1]))
    identity = current.id if current else new_id()
    snapshot, newest = _snapshot(state, write.row, current, identity, now)
    row = msgspec.structs.replace(
        write.row,
        id=identity,
        snapshot=snapshot,
        shared=_shared(write.row.shared, state.projects.__contains__),
        revision=revision,
        created=current.created if current else now,
        modified=now,
    )
    if current is not None and _unchanged(current, row):
        return current
    if newest and snapshot is not None:
        state.published[identity, snapshot.version] = snapshot
        state.publishing.append((identity, snapshot, revision))
    if current is None:
        state.made[key.project] = state.made.get(key.project, 0) + 1
        if key.type == PROJECTS:
            state.projects[identity] = (key.organization, key.name)
    if key.type == PROJECTS:
        state.going = state.going | {identity} if is_going(row) else state.going - {identity}
    state.rows[key] = row
    state.changes.append(RowChange(op=Op.PUT, row=row, before=current))
    return row


def _shared(shared: Shared, there: Callable[[str], bool]) -> Shared:
    return msgspec.structs.replace(shared, projects=tuple(filter(there, shared.projects)))


def is_going(project: Row) -> bool:
    """Whether it is being deleted."""
    return bool(project.envelope.get("deletionTimestamp"))


def late(project: str) -> str:
    """Why nothing new comes into it."""
    return f"the project {project} is being deleted: nothing new is made in it"


def _delete(state: State, key: RowKey, current: Row | None, revision: int) -> Row:
    if current is None:
        raise RowConflict(key, None)
    if key.type == PROJECTS and state.used.get(current.id, 0) + state.made.get(current.id, 0) > 0:
        raise InUse(f"the project {key.name} has resources: delete them first")
    if key.type == PROJECTS:
        revision = _unshare(state, current.id, revision)
        state.projects.pop(current.id, None)
        state.asked.add(current.id)
    last = msgspec.structs.replace(current, revision=revision)  # as the log tells it
    del state.rows[key]
    state.made[key.project] = state.made.get(key.project, 0) - 1
    state.changes.append(RowChange(op=Op.DELETE, row=last, before=current))
    return last


def _unshare(state: State, project: str, revision: int) -> int:
    """Nothing is shared with it any more. The revision that is next."""
    for key, row in sorted(state.rows.items()):
        if project not in row.shared.projects:
            continue
        left = _shared(row.shared, lambda other: other != project)
        envelope = {**row.envelope, "generation": row.envelope.get("generation", 0) + 1}
        state.rows[key] = msgspec.structs.replace(row, shared=left, envelope=envelope, revision=revision)
        state.changes.append(RowChange(op=Op.PUT, row=state.rows[key], before=row))
        revision += 1
    return revision


def _snapshot(state: State, row: Row, current: Row | None, identity: str, now: str) -> tuple[Snapshot | None, bool]:
    """The row's snapshot after the write, and whether it is the newest now. Who goes back to a version makes it the newest."""
    given, before = row.snapshot, current.snapshot if current else None
    if given is None:
        return before, False
    known = state.published.get((identity, given.version))
    if known is None:
        return msgspec.structs.replace(given, created=now), True
    if not equal(known.body, given.body):
        raise Published(row.key, given.version)
    return known, before is None or before.version != known.version


def _unchanged(current: Row, row: Row) -> bool:
    return equal(current, msgspec.structs.replace(row, revision=current.revision, modified=current.modified))


def statements(state: State, at: float) -> list[Step]:
    """All that the decided changes write, in order, but for the counter. `at` is the time that the log shows."""
    first: dict[RowKey, Row | None] = {}
    for change in state.changes:
        first.setdefault(change.row.key, change.before)
    steps = [
        *_log(state, at),
        *_rows(state, first),
        *_identities(state.changes),
        *_sharing(state, first),
        *_labels(state, first),
    ]
    steps.append((_PUBLISH, [_publication(*each) for each in state.publishing]))
    steps.append((_UNPUBLISH, [(each.row.id,) for each in state.changes if each.op is Op.DELETE]))
    return [step for step in steps if step[1]]


def _log(state: State, at: float) -> list[Step]:
    names = _project_names(state)
    entries: list[tuple[object, ...]] = []
    for change in state.changes:
        key, before = change.row.key, change.before
        entries.append(
            (
                change.row.revision,
                key.organization,
                key.type,
                names[key],
                key.name,
                key.project,
                before.revision if before else 0,
                at,
                labels_of(before) if before else "{}",
                encoded(before) if before else None,
                encoded(change.row) if change.op is Op.PUT else None,
            )
        )
    return [(_LOG, entries)]


def _project_names(state: State) -> dict[RowKey, str]:
    """Of what changed. A project may have gone after its last row, in one transaction."""
    known = {change.row.id: change.row.key.name for change in state.changes if change.row.key.type == PROJECTS}
    known |= {project: name for project, (_, name) in state.projects.items()}
    known[""] = ""
    return {change.row.key: known[change.row.key.project] for change in state.changes}


def _rows(state: State, first: dict[RowKey, Row | None]) -> list[Step]:
    names = _project_names(state)
    puts: list[tuple[object, ...]] = []
    removals: list[tuple[object, ...]] = []
    for key in first:
        row = state.rows.get(key)
        place = (key.organization, key.type, names[key], key.name)
        if row is None:
            removals.append(place)
        else:
            puts.append((*place, key.project, row.id, row.revision, labels_of(row), encoded(row)))
    return [(_PUT, puts), (_REMOVE, removals)]


def _identities(changes: Sequence[RowChange]) -> list[Step]:
    new: list[tuple[object, ...]] = []
    gone: list[tuple[object, ...]] = []
    forgotten: list[tuple[object, ...]] = []
    for change in changes:
        if change.op is Op.DELETE:
            (forgotten if change.row.key.type.startswith(INTENTS) else gone).append((change.row.id,))
        elif change.before is None:
            key = change.row.key
            new.append((change.row.id, key.organization, key.type, key.project, key.name))
    return [(_IDENTITY, new), (_IDENTITY_GONE, gone), (_IDENTITY_FORGOTTEN, forgotten)]


def _sharing(state: State, first: dict[RowKey, Row | None]) -> list[Step]:
    old: list[tuple[object, ...]] = []
    new: list[tuple[object, ...]] = []
    for key, before in first.items():
        after = state.rows.get(key)
        if before and after and (before.id, before.shared) == (after.id, after.shared):
            continue
        place = (key.organization, key.type, key.name)
        old += [(*place, project, before.id) for project in _with(before.shared)] if before else []
        new += [(*place, project, after.id) for project in _with(after.shared)] if after else []
    return [(_UNSHARE, old), (_SHARE, new)]


def _labels(state: State, first: dict[RowKey, Row | None]) -> list[Step]:
    names = _project_names(state)
    old: list[tuple[object, ...]] = []
    new: list[tuple[object, ...]] = []
    for key, before in first.items():
        after = state.rows.get(key)
        was, now = (set(row.labels.items()) if row else set() for row in (before, after))
        place = (key.organization, key.type)
        old += [(*place, *pair, names[key], key.name) for pair in was - now]
        new += [(*place, *pair, names[key], key.name) for pair in now - was]
    return [(_UNLABEL, old), (_LABEL, new)]


def _with(shared: Shared) -> list[str]:
    return sorted({*shared.projects, *([EVERYONE] if shared.everyone else [])})


def _publication(identity: str, snapshot: Snapshot, revision: int) -> tuple[object, ...]:
    return (identity, snapshot.version, revision, encoded(snapshot))


_LOG = "INSERT INTO hub_log VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)"
_PUT = (
    "INSERT INTO hub_resources VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9) "
    "ON CONFLICT (organization, type, project_name, name) DO UPDATE SET project = excluded.project, "
    "id = excluded.id, revision = excluded.revision, labels = excluded.labels, data = excluded.data"
)
_REMOVE = "DELETE FROM hub_resources WHERE organization = $1 AND type = $2 AND project_name = $3 AND name = $4"
_IDENTITY = "INSERT INTO hub_identities VALUES ($1, $2, $3, $4, $5, false)"
_IDENTITY_GONE = "UPDATE hub_identities SET deleted = true WHERE id = $1"
_IDENTITY_FORGOTTEN = "DELETE FROM hub_identities WHERE id = $1"
_UNSHARE = (
    "DELETE FROM hub_sharing WHERE organization = $1 AND type = $2 AND name = $3 AND project = $4 AND resource = $5"
)
_SHARE = "INSERT INTO hub_sharing VALUES ($1, $2, $3, $4, $5)"
_UNLABEL = (
    "DELETE FROM hub_labels WHERE organization = $1 AND type = $2 AND label = $3 AND value = $4 "
    "AND project_name = $5 AND name = $6"
)
_LABEL = "INSERT INTO hub_labels VALUES ($1, $2, $3, $4, $5, $6)"
_PUBLISH = (
    "INSERT INTO hub_snapshots VALUES ($1, $2, $3, $4) "
    "ON CONFLICT (resource, version) DO UPDATE SET number = excluded.number"
)
_UNPUBLISH = "DELETE FROM hub_snapshots WHERE resource = $1"
