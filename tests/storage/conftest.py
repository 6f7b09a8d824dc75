"""The homes of blobs in turn: a folder, PostgreSQL, and HTTP in front of a folder."""

from __future__ import annotations

import os
import secrets
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Protocol

import asyncpg
import pytest
from aiohttp import web

from trimtab.storage.blobs import Blobs, Digest
from trimtab.storage.folder import FolderBlobs
from trimtab.storage.http import HttpBlobs
from trimtab.storage.postgres import PostgresBlobs
from trimtab.storage.serve import application
from trimtab.testing.clock import FakeClock
from trimtab.testing.postgres import PostgresMissing, PostgresServer

LIMIT = 4 << 20


class Home(Protocol):
    """Blobs, and what a test may do to them behind their back."""

    blobs: Blobs

    async def age(self, seconds: float) -> None:
        """Lets time pass for all that is there."""

    async def damage(self, digest: Digest) -> None:
        """Changes one byte of what is stored."""

    async def another(self) -> Blobs:
        """A second one in the same place, as another process would have."""


class ImpatientClock(FakeClock):
    """Lets nobody wait, and notes who wanted to."""

    def __init__(self) -> None:
        super().__init__()
        self.slept: list[float] = []

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)


class FolderHome:
    def __init__(self, root: Path) -> None:
        self.root = root
        self.clock = FakeClock()
        self.blobs: Blobs = FolderBlobs(root, clock=self.clock, max_bytes=LIMIT)

    async def age(self, seconds: float) -> None:
        await self.clock.advance(seconds)

    async def damage(self, digest: Digest) -> None:
        path = self.root / "sha256" / digest[7:9] / digest[7:]
        content = bytearray(path.read_bytes())
        content[-1] ^= 1
        path.write_bytes(content)

    async def another(self) -> Blobs:
        return FolderBlobs(self.root, clock=self.clock, max_bytes=LIMIT)


class PostgresHome:
    def __init__(self, url: str) -> None:
        self.url = url
        self.blobs: Blobs = PostgresBlobs(url, max_bytes=LIMIT)
        self.others: list[Blobs] = []

    async def age(self, seconds: float) -> None:
        await self.execute("UPDATE trimtab_blobs SET touched = touched - make_interval(secs => $1)", seconds)

    async def damage(self, digest: Digest) -> None:
        await self.execute(
            "UPDATE trimtab_blob_chunks SET data = set_byte(data, 0, get_byte(data, 0) # 1) WHERE digest = $1", digest
        )

    async def another(self) -> Blobs:
        self.others.append(PostgresBlobs(self.url, max_bytes=LIMIT))
        return self.others[-1]

    async def execute(self, statement: str, *args: object) -> None:
        connection = await asyncpg.connect(self.url, ssl=False)
        try:
            await connection.execute(statement, *args)
        finally:
            await connection.close()


class HttpHome(FolderHome):
    def __init__(self, root: Path, port: int, token: str) -> None:
        super().__init__(root)
        self.behind = self.blobs
        self.url = f"http://127.0.0.1:{port}"
        self.token = token
        self.blobs = self.connected()
        self.others: list[Blobs] = []

    def connected(self) -> HttpBlobs:
        return HttpBlobs(self.url, token=lambda: self.token, max_bytes=LIMIT)

    async def another(self) -> Blobs:
        self.others.append(self.connected())
        return self.others[-1]


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """TRIMTAB_REQUIRE_POSTGRES=1 makes its absence fail, not skip."""
    try:
        server = PostgresServer()
    except PostgresMissing as missing:
        if os.environ.get("TRIMTAB_REQUIRE_POSTGRES"):
            pytest.fail(str(missing), pytrace=False)
        pytest.skip(str(missing))
    with server:
        yield server


@pytest.fixture
async def postgres_home(postgres: PostgresServer) -> AsyncIterator[PostgresHome]:
    """A schema of the test's own."""
    schema = f"test_{secrets.token_hex(6)}"
    home = PostgresHome(f"{postgres.url}?search_path={schema}")
    await home.execute(f"CREATE SCHEMA {schema}")
    await home.blobs.ready()
    yield home
    for blobs in (home.blobs, *home.others):
        await blobs.close()


@pytest.fixture
async def http_home(tmp_path: Path) -> AsyncIterator[HttpHome]:
    token = secrets.token_hex(16)
    behind: list[Blobs] = []

    class Late:  # the service is made before its home is
        def __getattr__(self, name: str) -> object:
            return getattr(behind[0], name)

    runner = web.AppRunner(application(Late(), token=lambda: token, max_bytes=LIMIT), lingering_time=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    port: int = runner.addresses[0][1]
    home = HttpHome(tmp_path / "blobs", port, token)
    behind.append(home.behind)
    yield home
    for blobs in (home.blobs, *home.others):
        await blobs.close()
    await runner.cleanup()


@pytest.fixture(params=["folder", "postgres", "http"])
def home(request: pytest.FixtureRequest) -> Home:
    """Each of the three, for what must hold in all."""
    if request.param == "folder":
        return FolderHome(request.getfixturevalue("tmp_path") / "blobs")
    found: Home = request.getfixturevalue(f"{request.param}_home")
    return found
