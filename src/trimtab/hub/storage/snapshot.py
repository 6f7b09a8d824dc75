"""A copy of the hub's SQLite file while its owner goes on writing; see `trimtab.store.snapshot`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import apsw

from trimtab.hub.storage.codec import decoded
from trimtab.hub.storage.contract import Row
from trimtab.hub.storage.schema import LADDER
from trimtab.hub.storage.sqlite_file import APPLICATION_ID
from trimtab.hub.storage.sqlite_sql import counter, forget
from trimtab.store.snapshot import Told, copied, reading


class HubSnapshot:
    """The state of the hub's rows and blobs at one revision."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection
        self.revision, _ = counter(connection)

    def rows(self, organization: str) -> Iterator[Row]:
        found = self._connection.execute(
            "SELECT data FROM hub_resources WHERE organization = ? ORDER BY type, project_name, name", (organization,)
        )
        for (data,) in found:
            yield decoded(data)

    def types(self) -> dict[tuple[str, str], int]:
        """How many rows there are, by organisation and type."""
        found = self._connection.execute(
            "SELECT organization, type, count(*) FROM hub_resources GROUP BY organization, type ORDER BY 1, 2"
        )
        return {(organization, type_): count for organization, type_, count in found}

    def copy(self, target: Path, told: Told) -> None:
        copied(self._connection, target, told)


@contextmanager
def hub_snapshot(path: Path) -> Iterator[HubSnapshot]:
    """`Unusable` when the file is not one of the hub's."""
    with reading(path, APPLICATION_ID, len(LADDER)) as connection:
        yield HubSnapshot(connection)


def advance_hub(path: Path, to: int) -> None:
    """Let a copy go on at `to`, with nothing of the log left."""
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE)
    try:
        with connection:
            connection.execute("UPDATE hub_counter SET revision = ?", (to,))
            forget(connection, to)
    finally:
        connection.close()
