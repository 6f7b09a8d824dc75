"""Lists in both databases' words (the same index answers the first page and the last one), and what comes of their answers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import msgspec

from trimtab.hub.storage.codec import decoded
from trimtab.hub.storage.contract import RowChange, RowPage, RowQuery
from trimtab.store.contract import Op

MOST = 10_000
"""Rows of one page."""


class Dialect(msgspec.Struct, frozen=True):
    """How a database says that labels are equal (its function takes a value and gives its place in the statement), and the
    rows of a label in the label's order."""

    labels: Callable[[Mapping[str, str], Callable[[Any], str]], str]
    labelled: str


class Listing:
    """A statement under way. `size` is what the page may have; one more tells whether there is more.

    A list by labels goes along the first of them, in the table that has each label's rows in their order: a rare label is as
    quick as a frequent one."""

    def __init__(self, query: RowQuery, dialect: Dialect) -> None:
        self.query = query
        self.args: list[Any] = []
        self.size = max(1, min(query.limit or MOST, MOST))
        self._dialect = dialect

    def newest(self) -> str:
        """project_name, name, data."""
        return self._rows([])

    def at(self, revision: int) -> str:
        """What has not changed since the revision, and what was there then and has changed since: each in order."""
        place = self._place(revision)
        same = self._rows([f"revision <= {place}"])
        since = ["previous > 0", f"previous <= {place}", f"revision > {place}"]
        then = self._select("hub_log h", "h", "before", [*since, *self._labels(self.query.labels)])
        return f"SELECT * FROM ({same}) s UNION ALL SELECT * FROM ({then}) t"  # noqa: S608

    def _rows(self, more: list[str]) -> str:
        labels = [*self.query.labels.items()]
        if not labels:
            return self._select("hub_resources h", "h", "data", more)
        (label, value), *others = labels
        along = [f"l.label = {self._place(label)}", f"l.value = {self._place(value)}", *self._labels(dict(others))]
        return self._select(self._dialect.labelled, "l", "data", [*along, *more])

    def _select(self, source: str, of: str, data: str, more: list[str]) -> str:
        """In the order of what is not fixed, so that an index gives it."""
        order = f"{of}.name" if self.query.project is not None else f"{of}.project_name, {of}.name"
        return (
            f"SELECT {of}.project_name, {of}.name, {data} AS data FROM {source} "  # noqa: S608
            f"WHERE {' AND '.join([*self._conditions(of), *more])} ORDER BY {order} LIMIT {self.size + 1}"
        )

    def _conditions(self, of: str) -> list[str]:
        query, place = self.query, self._place
        terms = [f"{of}.organization = {place(query.organization)}", f"{of}.type = {place(query.type)}"]
        if query.project is not None:
            project = place(query.project)
            named = f"(SELECT i.name FROM hub_identities i WHERE i.id = {project})"  # noqa: S608
            terms += [f"{of}.project_name = {named}", f"project = {project}"]
        if query.name:
            terms.append(f"{of}.name = {place(query.name)}")
        if query.after is not None and query.project is not None:
            terms.append(f"{of}.name > {place(query.after[1])}")
        elif query.after is not None:
            terms.append(f"({of}.project_name, {of}.name) > ({place(query.after[0])}, {place(query.after[1])})")
        return terms

    def _labels(self, labels: Mapping[str, str]) -> list[str]:
        return [self._dialect.labels(labels, self._place)] if labels else []

    def _place(self, value: Any) -> str:
        self.args.append(value)
        return f"${len(self.args)}"


def _sqlite_labels(labels: Mapping[str, str], place: Callable[[Any], str]) -> str:
    each = "EXISTS (SELECT 1 FROM json_each(labels) j WHERE j.key = {} AND j.value = {})"
    return " AND ".join(each.format(place(name), place(value)) for name, value in labels.items())


def _postgres_labels(labels: Mapping[str, str], place: Callable[[Any], str]) -> str:
    return f"labels @> {place(msgspec.json.encode(labels).decode())}"


_SAME = "r.organization = l.organization AND r.type = l.type AND r.project_name = l.project_name AND r.name = l.name"

# Both forms keep the planner from going through all rows to look for their labels.
SQLITE = Dialect(_sqlite_labels, f"hub_labels l CROSS JOIN hub_resources r ON {_SAME}")
_OF_LABEL = f"SELECT r.data, r.labels, r.revision, r.project FROM hub_resources r WHERE {_SAME} LIMIT 1"  # noqa: S608
POSTGRES = Dialect(_postgres_labels, f"hub_labels l CROSS JOIN LATERAL ({_OF_LABEL}) r")


def page(found: Sequence[tuple[str, str, bytes]], size: int, revision: int) -> RowPage:
    """Of rows in order (project's name, name, data), of which those behind the first `size` tell that there is more."""
    rows = [decoded(data) for _, _, data in found[:size]]
    after = (found[size - 1][0], found[size - 1][1]) if len(found) > size else None
    return RowPage(rows=rows, revision=revision, after=after)


def logged(
    entries: Iterable[tuple[int, bytes | None, bytes | None]], newest: int, limit: int
) -> tuple[list[RowChange], int]:
    """Changes of entries of the log, and up to where they are all there are."""
    changes: list[RowChange] = []
    for revision, before, after in entries:
        old = None if before is None else decoded(before)
        if after is not None:
            changes.append(RowChange(op=Op.PUT, row=decoded(after), before=old))
        elif old is not None:
            changes.append(RowChange(op=Op.DELETE, row=msgspec.structs.replace(old, revision=revision), before=old))
    return changes, changes[-1].row.revision if len(changes) == limit else newest
