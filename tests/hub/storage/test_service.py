"""The storage as a process of its own, and how it is named and reached."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from typer.testing import CliRunner

from tests.hub.storage.conftest import Made, behind_http
from tests.hub.storage.rows import ORG, key, listed, put, query
from trimtab.cli import hub_storage
from trimtab.hub.storage.client import HttpStorage
from trimtab.hub.storage.connect import StorageConfigError
from trimtab.hub.storage.connect import storage as connect
from trimtab.hub.storage.contract import RowConflict, StorageUnavailable
from trimtab.hub.storage.sqlite import SqliteStorage
from trimtab.storage.blobs import BlobsUnavailable
from trimtab.testing.pki import Authority
from trimtab.testing.processes import Process

TOKEN = "a-token-for-tests"


@pytest.fixture
def token(tmp_path: Path) -> Path:
    path = tmp_path / "token"
    path.write_text(f"{TOKEN}\n")
    return path


@contextlib.contextmanager
def served(folder: Path, token: Path, *options: str, listen: str = "127.0.0.1:0") -> Iterator[tuple[str, Process]]:
    """`trimtab hub storage` on a file; its URL."""
    code = "import typer; from trimtab.cli.hub_storage import storage; typer.run(storage)"
    command = [sys.executable, "-c", code, "--database", str(folder / "hub.db"), "--token-file", str(token)]
    log = folder / "service.log"
    log.unlink(missing_ok=True)
    with Process([*command, "--listen", listen, *options], log=log) as process:
        process.wait_until(lambda: "serving at" in log.read_text(), within=30)
        yield log.read_text().split("serving at ")[1].split()[0], process


async def test_another_process_serves_the_storage(tmp_path: Path, token: Path) -> None:
    with served(tmp_path, token) as (url, process):
        storage = connect(url, token_file=token)
        try:
            await storage.ready()
            row = await storage.commit(put(key("a"), body={"n": 1}))
            async with contextlib.aclosing(storage.changes(ORG, (), 0)) as batches:  # type: ignore[type-var]
                assert (await anext(batches)).changes[0].row == row
                os.kill(process.pid, signal.SIGTERM)
                with pytest.raises(StorageUnavailable):
                    await anext(batches)
            process.stop()
            with pytest.raises(StorageUnavailable):
                await storage.commit(put(key("b")))
            port = url.rpartition(":")[2]
            with served(tmp_path, token, listen=f"127.0.0.1:{port}"):
                assert await storage.get(key("a")) == row
                with pytest.raises(RowConflict):
                    await storage.commit(put(key("a"), expect=0))
        finally:
            await storage.close()


async def test_the_service_speaks_tls_that_is_verified(tmp_path: Path, token: Path) -> None:
    authority = Authority(tmp_path)
    pair = authority.server("storage", hosts=("localhost", "127.0.0.1"))
    options = ("--tls-certificate", str(pair.certificate), "--tls-key", str(pair.key))
    with served(tmp_path, token, *options) as (url, _):
        assert url.startswith("https://")
        storage = connect(url, token_file=token, ca_file=authority.certificate)
        await storage.ready()
        await storage.close()
        stranger = connect(url, token_file=token)
        with pytest.raises(StorageUnavailable):
            await stranger.ready()
        await stranger.close()


async def test_nobody_gets_in_without_the_token(tmp_path: Path) -> None:
    storage = SqliteStorage(tmp_path / "hub.db")
    async with behind_http(storage) as client:
        await client.commit(put(key("a")))
        client._token = lambda: "another"  # type: ignore[attr-defined]
        with pytest.raises(StorageUnavailable, match="token"):
            await client.get(key("a"))
        client.blobs._token = lambda: "another"  # type: ignore[attr-defined]
        with pytest.raises(BlobsUnavailable, match="token"):
            await client.blobs.put(b"x")
    await storage.close()


@pytest.mark.parametrize(
    ("path", "body", "code"),
    [
        ("get", b"{", 400),
        ("get", b'["one","two"]', 400),
        ("commit", b'{"row": {"key": ["default", "t", "", ""]}}', 400),
        ("list", b'{"organization": "default"}', 400),
        ("nothing", b"", 404),
    ],
)
async def test_what_is_no_request_is_refused_with_a_reason(tmp_path: Path, path: str, body: bytes, code: int) -> None:
    storage = SqliteStorage(tmp_path / "hub.db")
    async with behind_http(storage) as client, aiohttp.ClientSession() as session:
        url: Any = client._url  # type: ignore[attr-defined]
        headers = {"Authorization": f"Bearer {client._token()}"}  # type: ignore[attr-defined]
        async with session.post(f"{url}/v1/{path}", data=body, headers=headers) as response:
            assert response.status == code
    await storage.close()


async def test_a_client_that_leaves_is_followed_no_more(tmp_path: Path) -> None:
    storage = SqliteStorage(tmp_path / "hub.db", heartbeat=0.01)
    ended = asyncio.Event()
    follow = storage.changes

    async def noted(*args: Any) -> Any:
        try:
            async for batch in follow(*args):
                yield batch
        finally:
            ended.set()

    storage.changes = noted  # type: ignore[method-assign]
    async with behind_http(storage) as client:
        async with contextlib.aclosing(client.changes(ORG, (), 0)) as batches:  # type: ignore[type-var]
            await anext(batches)
        await asyncio.wait_for(ended.wait(), 30)
    await storage.close()


async def test_large_rows_and_long_lists_come_whole_over_http(made: Made) -> None:
    storage = await made("http-sqlite")
    rows = [await storage.commit(put(key(f"n{n}"), body={"text": "é" * 700_000})) for n in range(6)]
    assert await listed(storage, query(limit=4)) == rows
    found: list[Any] = []
    async with contextlib.aclosing(storage.changes(ORG, (), 0)) as batches:
        while len(found) < 6:
            found += [change.row for change in (await anext(batches)).changes]
    assert found == rows


def test_a_token_does_not_travel_in_clear() -> None:
    with pytest.raises(ValueError, match="https"):
        HttpStorage("http://storage.example.com", token=lambda: "x")
    with pytest.raises(ValueError, match="no user"):
        HttpStorage("https://me:secret@storage.example.com", token=lambda: "x")


async def test_a_storage_is_named_by_its_url(tmp_path: Path, token: Path) -> None:
    path = tmp_path / "a b.db"
    for url in (str(path), f"file://{tmp_path}/a%20b.db", f"sqlite://{tmp_path}/a%20b.db"):
        storage = connect(url)
        await storage.ready()
        assert path.exists()
        await storage.close()
        path.unlink()
    shown = {
        "postgresql://me:secret@db.example.com/hub": "PostgresStorage('postgresql://db.example.com/hub')",
        "https://storage.example.com": "HttpStorage('https://storage.example.com')",
    }
    for url, text in shown.items():
        assert repr(connect(url, token_file=token if url.startswith("https") else None)) == text


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("", "is empty"),
        ("mysql://host/db", "cannot be mysql"),
        ("sqlite://host/file", "names the machine host"),
        ("https://storage.example.com", "needs a token"),
        ("postgresql://host:port/db", "no URL"),
    ],
)
def test_a_url_that_names_no_storage_is_refused(url: str, message: str) -> None:
    with pytest.raises(StorageConfigError, match=message):
        connect(url)


@pytest.mark.parametrize("url", ["hub.db", "sqlite:///hub.db", "postgresql://db.example.com/hub"])
def test_a_token_or_an_authority_for_a_storage_that_takes_none_is_refused(url: str, token: Path) -> None:
    for given in ({"token_file": token}, {"ca_file": token}):
        with pytest.raises(StorageConfigError, match=f"{token} is for a storage over https://"):
            connect(url, **given)


def test_the_command_says_what_is_wrong(
    tmp_path: Path, token: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("trimtab.cli.interrupts.stop_on_signals", lambda stop: None)

    def said(database: str, token_file: Path, listen: str = "127.0.0.1:0") -> tuple[int, str]:
        return hub_storage.run(database, token_file, listen), capsys.readouterr().err

    file = str(tmp_path / "hub.db")
    code, message = said(file, token, "0.0.0.0:0")
    assert (code, "--tls-certificate" in message) == (2, True)
    assert "cannot be read" in said(file, tmp_path / "none")[1]
    assert "is a service already" in said("https://x", token)[1]
    (tmp_path / "text").write_text("x" * 1000)
    code, message = said(str(tmp_path / "text"), token)
    assert (code, "not a database" in message) == (1, True)


def test_the_command_explains_itself() -> None:
    import typer

    app = typer.Typer()
    app.command()(hub_storage.storage)
    result = CliRunner().invoke(app, ["--help"])
    assert result.exit_code == 0
    assert "--database" in result.output


@pytest.mark.parametrize(
    "said",
    [b"nonsense\n", b'{"batch": {"revision": "x"}}\n', b'{"batch": 1}\n', b"[]\n", b'{"batch"', b"\xff\n", b"\n"],
)
async def test_changes_that_are_none_make_a_service_unavailable(said: bytes) -> None:
    async def answer(request: web.Request) -> web.Response:
        return web.Response(body=said)

    app = web.Application()
    app.router.add_post("/v1/changes", answer)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    client = HttpStorage(f"http://127.0.0.1:{runner.addresses[0][1]}", token=lambda: TOKEN)
    with pytest.raises(StorageUnavailable):
        async for _ in client.changes(ORG, (), 0):
            pass
    await client.close()
    await runner.cleanup()


async def test_changes_of_large_rows_come_in_lines_that_a_client_takes(tmp_path: Path) -> None:
    """Else whoever was away for a while would never get on."""
    storage = SqliteStorage(tmp_path / "hub.db")
    await storage.ready()
    text = "x" * 1_200_000
    for number in range(40):
        await storage.commit(put(key(f"n{number % 4}"), body={"text": text, "number": number}))
    newest, _ = await storage.horizon()
    seen: list[int] = []
    async with (
        behind_http(storage) as client,
        contextlib.aclosing(client.changes(ORG, (), 0)) as batches,  # type: ignore[type-var]
    ):
        async for batch in batches:
            seen += [change.row.body["number"] for change in batch.changes]
            assert batch.revision == batch.changes[-1].row.revision
            if batch.revision == newest:
                break
    await storage.close()
    assert seen == [*range(40)]
