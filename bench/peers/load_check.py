"""Whether each watcher saw what the log says: every event of its selector, once, in order, none lost. Pure."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from load_watchers import TYPES, Watched
from load_writers import hashed

Selection = tuple[str, str]


class Row(NamedTuple):
    """One write as the store's log holds it."""

    revision: int
    namespace: str
    name: str
    deleted: bool
    part: str


class Expected(NamedTuple):
    revisions: list[int]
    kinds: list[int]
    places: list[int]


class Log:
    """All writes, and what they mean to whoever selects some of them."""

    def __init__(self, rows: Sequence[Row], selections: Iterable[Selection]) -> None:
        self.rows = rows
        self._expected = {selection: Expected([], [], []) for selection in selections}
        parts: dict[tuple[str, str], str] = {}
        for row in rows:
            key = (row.namespace, row.name)
            before, now = parts.get(key), None if row.deleted else row.part
            if now is None:
                parts.pop(key, None)
            else:
                parts[key] = now
            place = hashed(*key)
            for namespace in (row.namespace, ""):
                self._note((namespace, ""), row.revision, before is not None, now is not None, place)
                for part in {before, now} - {None}:
                    self._note((namespace, str(part)), row.revision, before == part, now == part, place)

    def _note(self, selection: Selection, revision: int, before: bool, now: bool, place: int) -> None:
        expected = self._expected.get(selection)
        if expected is not None and (before or now):
            kind = "DELETED" if not now else "MODIFIED" if before else "ADDED"
            expected.revisions.append(revision)
            expected.kinds.append(TYPES[kind])
            expected.places.append(place)

    def state(self, selection: Selection, at: int) -> dict[int, int]:
        """What a list at a revision must show."""
        state: dict[int, int] = {}
        expected = self._expected[selection]
        for index in range(bisect_right(expected.revisions, at)):
            if expected.kinds[index] == TYPES["DELETED"]:
                state.pop(expected.places[index], None)
            else:
                state[expected.places[index]] = expected.revisions[index]
        return state

    def faults(self, watched: Watched) -> list[str]:
        """What is wrong with a watcher's story; empty when nothing is."""
        selection = (watched.namespace, watched.part)
        expected = self._expected[selection]
        found = list(watched.disorder)
        for number, segment in enumerate(watched.segments):
            if segment.listed is not None and segment.listed != self.state(selection, segment.since):
                found.append(f"the list at {segment.since} is not the state at that revision")
            start = bisect_right(expected.revisions, segment.since)
            seen, wanted = segment.revisions.tolist(), expected.revisions[start:]
            last = number == len(watched.segments) - 1
            if not last:
                wanted = wanted[: len(seen)]
            if seen != wanted:
                found.append(_difference(seen, wanted))
            elif segment.kinds.tolist() != expected.kinds[start : start + len(seen)]:
                found.append("events of the wrong type")
            elif segment.places.tolist() != expected.places[start : start + len(seen)]:
                found.append("events of the wrong object")
        return found


def _difference(seen: list[int], wanted: list[int]) -> str:
    if seen == wanted[: len(seen)]:
        return f"the last {len(wanted) - len(seen)} events never came"
    if sorted(seen) == wanted:
        return "events out of order"
    repeated = len(seen) - len(set(seen))
    lost, strange = set(wanted) - set(seen), set(seen) - set(wanted)
    first = f", the first {min(lost)}" if lost else ""
    return f"{len(lost)} events lost{first}; {repeated} repeated; {len(strange)} that are not in the log"


def unacknowledged(rows: Sequence[Row], acknowledged: Mapping[int, int]) -> int:
    """Acknowledged writes that are not in the log as they were acknowledged."""
    logged = {row.revision: hashed(row.namespace, row.name) for row in rows}
    return sum(logged.get(revision) != place for revision, place in acknowledged.items())
