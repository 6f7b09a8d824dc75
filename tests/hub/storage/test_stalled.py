"""A process that stands still at one moment of a transaction or another, while it has the lock that all writers need. What
goes between it and PostgreSQL passes a way that the test holds."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator, Callable
from urllib.parse import urlsplit, urlunsplit

import pytest

from tests.hub.storage.conftest import Made, execute
from tests.hub.storage.rows import key, listed, put, query
from tests.hub.storage.test_faults import changes

FLUSH, SYNC = b"H\0\0\0\4", b"S\0\0\0\4"  # what a conversation with PostgreSQL is divided by
LARGE = "x" * (3 << 20)
HOLDER = (
    "SELECT a.state, a.wait_event FROM pg_stat_activity a JOIN pg_locks l ON l.pid = a.pid "
    "WHERE l.relation = 'hub_counter'::regclass AND l.mode = 'RowShareLock' AND a.wait_event_type = 'Client'"
)


class Way:
    """To PostgreSQL. After it has carried what `last` knows, nothing goes any more, in neither direction, until `go_on`."""

    def __init__(self, url: str) -> None:
        self._parts = urlsplit(url)
        self.last: Callable[[bytes], bool] = lambda said: False
        self.held = asyncio.Event()
        self._goes = asyncio.Event()
        self._goes.set()
        self._tasks: set[asyncio.Task[None]] = set()

    def go_on(self) -> None:
        self.last = lambda said: False
        self._goes.set()

    @contextlib.asynccontextmanager
    async def url(self) -> AsyncIterator[str]:
        server = await asyncio.start_server(self._come, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        try:
            user = self._parts.netloc.rpartition("@")[0]
            yield urlunsplit(self._parts._replace(netloc=f"{user}@127.0.0.1:{port}"))
        finally:
            server.close()
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _come(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        beyond = socket.socket()
        beyond.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        beyond.setblocking(False)
        await asyncio.get_running_loop().sock_connect(beyond, (self._parts.hostname, self._parts.port))
        answers, asks = await asyncio.open_connection(sock=beyond, limit=4096)
        for source, to, watched in ((reader, asks, True), (answers, writer, False)):
            task = asyncio.create_task(self._carry(source, to, watched))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _carry(self, source: asyncio.StreamReader, to: asyncio.StreamWriter, watched: bool) -> None:
        try:
            with contextlib.suppress(OSError):
                while said := await source.read(1 << 16):
                    await self._goes.wait()
                    to.write(said)
                    await to.drain()
                    if watched and self.last(said):
                        self._goes.clear()
                        self.held.set()
                    await self._goes.wait()
        finally:
            to.close()


@pytest.mark.parametrize(
    ("text", "last", "seen"),
    [
        pytest.param(
            "",
            lambda said: b"the-row" in said and said.endswith(SYNC),
            ("idle in transaction", "ClientRead"),
            id="idle",
        ),
        pytest.param(
            "", lambda said: b"hub_identities" in said and said.endswith(FLUSH), ("active", "ClientRead"), id="prepared"
        ),
        pytest.param(
            LARGE, lambda said: b"the-row" in said and said.endswith(SYNC), ("active", "ClientWrite"), id="answered"
        ),
    ],
)
@pytest.mark.row(36)
async def test_a_process_that_stands_still_with_the_lock_holds_up_nobody_for_long(
    text: str,
    last: Callable[[bytes], bool],
    seen: tuple[str, str],
    postgres_url: str,
    made: Made,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("trimtab.hub.storage.postgres_link.STALLED", 0.5)
    other = await made("postgres", url=postgres_url)
    await other.commit(put(key("the-row"), body={"text": text}))
    way = Way(postgres_url)
    async with way.url() as url:
        stalled = await made("postgres", url=url)
        await stalled.ready()
        way.last = last
        first = asyncio.create_task(stalled.commit(put(key("the-row"), body={"text": "short"})))
        await way.held.wait()
        async with asyncio.timeout(20):
            while (await execute(postgres_url, HOLDER)) != [seen]:
                pass
            await other.commit(put(key("b"), expect=0))
            way.go_on()
            await first
        rows = {row.key.name: row for row in await listed(other, query())}
        assert {name: row.revision for name, row in rows.items()} == {"b": 2, "the-row": 3}
        assert rows["the-row"].body == {"text": "short"}
        assert [change.row.revision for change in await changes(other)] == [1, 2, 3]
        await stalled.close()
