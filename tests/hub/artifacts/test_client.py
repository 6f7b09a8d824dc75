"""Files of objects on their way to the disk of a client."""

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.hub.artifacts.papers import LIMIT, Desk, Paper, desk
from tests.server.api import ADMIN
from trimtab.client.api import ApiClient
from trimtab.client.artifacts import Artifact, artifacts, download, upload
from trimtab.client.bodies import Body
from trimtab.client.config import unix
from trimtab.client.http import HttpTransport
from trimtab.client.transport import Call, Reply, Unreachable
from trimtab.model.errors import StatusError
from trimtab.model.scheme import Scheme
from trimtab.server.local import local_client
from trimtab.storage.blobs import digest_of


@pytest.fixture
async def papers(tmp_path: Path) -> AsyncIterator[Desk]:
    async with desk(tmp_path, ADMIN) as found:
        yield found


@pytest.fixture(params=["http", "local"])
async def client(request: pytest.FixtureRequest, papers: Desk) -> AsyncIterator[ApiClient]:
    if request.param == "http":
        made = ApiClient(HttpTransport(unix(papers.socket)), Scheme())
    else:
        made = local_client(papers.server, ADMIN, Scheme())
    yield made
    await made.close()


@pytest.mark.row(27)
async def test_a_file_comes_to_the_disk_whole(papers: Desk, client: ApiClient, tmp_path: Path) -> None:
    await papers.make("one", files=[{"name": "a b/ü.bin"}])
    data = os.urandom(5_000_000)
    assert (await papers.put("one", "a%20b/%C3%BC.bin", data)).code == 200
    to = tmp_path / "file"
    assert await download(client, Paper, "one", "a b/ü.bin", to, expected=digest_of(data)) == digest_of(data)
    assert to.read_bytes() == data
    assert to.stat().st_mode & 0o777 == 0o600


async def test_what_fails_leaves_what_was_there(papers: Desk, client: ApiClient, tmp_path: Path) -> None:
    await papers.make("one", files=[{"name": "a"}, {"name": "b"}])
    await papers.put("one", "a", b"x" * 1000)
    folder = tmp_path / "out"
    folder.mkdir()
    to = folder / "file"
    to.write_bytes(b"before")
    for path, more in (("a", {"max_bytes": 999}), ("a", {"expected": digest_of(b"y")}), ("b", {}), ("c", {})):
        with pytest.raises(StatusError):
            await download(client, Paper, "one", path, to, **more)
    assert [path.name for path in folder.iterdir()] == ["file"]
    assert to.read_bytes() == b"before"


@pytest.mark.row(27)
async def test_a_path_never_leads_to_another_object(papers: Desk, client: ApiClient, tmp_path: Path) -> None:
    await papers.make("one", files=[{"name": "a"}])
    await papers.make("two", files=[{"name": "a"}])
    await papers.put("two", "a", b"of the other")
    for path in ("../../two/artifacts/a", "%2e%2e/%2e%2e/two/artifacts/a", "a?x=y", "a#b"):
        with pytest.raises(StatusError) as raised:
            await download(client, Paper, "one", path, tmp_path / "file")
        assert raised.value.code in (400, 404)


async def pieces(data: bytes, size: int = 70_001) -> AsyncIterator[bytes]:
    for start in range(0, len(data), size):
        yield data[start : start + size]


async def closed(writer: asyncio.StreamWriter) -> None:
    writer.close()
    with contextlib.suppress(ConnectionError):
        await writer.wait_closed()


class Plain:
    """A transport that knows whole bodies only."""

    def __init__(self, inner: Any) -> None:
        self.call, self.stream, self.close = inner.call, inner.stream, inner.close


@pytest.mark.row(27)
async def test_a_file_goes_from_the_disk_to_the_server(papers: Desk, client: ApiClient, tmp_path: Path) -> None:
    await papers.make("one", files=[{"name": "a b/ü.bin"}, {"name": "b", "sensitive": True}])
    data = os.urandom(5_000_000)
    (tmp_path / "file").write_bytes(data)
    assert await upload(client, Paper, "one", "a b/ü.bin", tmp_path / "file") == digest_of(data)
    assert (await papers.get("one", "a%20b/%C3%BC.bin")).body == data
    assert await artifacts(client, Paper, "one") == (
        Artifact(path="a b/ü.bin", digest=digest_of(data), size=5_000_000),
        Artifact(path="b", sensitive=True),
    )


@pytest.mark.parametrize("size", [None, 3_000_000])
async def test_bytes_go_to_the_server_as_they_are_made(papers: Desk, client: ApiClient, size: int | None) -> None:
    await papers.make("one", files=[{"name": "a"}])
    data = os.urandom(3_000_000)
    assert await upload(client, Paper, "one", "a", pieces(data), size=size, expected=digest_of(data)) == digest_of(data)
    assert (await papers.get("one", "a")).body == data
    assert await upload(client, Paper, "one", "a", pieces(b"")) == digest_of(b"")
    assert (await papers.get("one", "a")).body == b""


async def test_a_transport_without_uploads_sends_whole_bodies(papers: Desk, client: ApiClient) -> None:
    await papers.make("one", files=[{"name": "a"}])
    plain = ApiClient(Plain(client.transport), Scheme())
    assert await upload(plain, Paper, "one", "a", pieces(b"abc")) == digest_of(b"abc")
    assert (await papers.get("one", "a")).body == b"abc"


async def test_an_upload_that_fails_changes_nothing(papers: Desk, client: ApiClient, tmp_path: Path) -> None:
    await papers.make("one", files=[{"name": "a"}])
    await papers.put("one", "a", b"before")

    async def breaks() -> AsyncIterator[bytes]:
        yield b"x" * 100_000
        raise OSError("the disk is gone")

    for source, more in (
        (breaks(), {}),
        (breaks(), {"size": 200_000}),
        (pieces(b"x" * 1000), {"size": 999}),
        (pieces(b"x" * 1000), {"size": 1001}),
        (pieces(b"x" * 1000), {"expected": digest_of(b"y")}),
        (pieces(b"x" * 1000), {"max_bytes": 999}),
        (pieces(b""), {"size": 1000, "max_bytes": 999}),
        (pieces(b"x" * (LIMIT + 1)), {}),
        (tmp_path / "nothing", {}),
    ):
        with pytest.raises((StatusError, OSError)) as raised:
            await upload(client, Paper, "one", "a", source, **more)
        assert not isinstance(raised.value, Unreachable), more
    assert (await papers.get("one", "a")).body == b"before"
    assert await upload(client, Paper, "one", "a", pieces(b"after")) == digest_of(b"after")
    assert await papers.kept() == 1
    assert papers.partial() == []


async def test_who_is_refused_does_not_send_all_of_it(papers: Desk, tmp_path: Path) -> None:
    await papers.make("one", files=[{"name": "a"}])
    sent = 0

    async def endless() -> AsyncIterator[bytes]:
        nonlocal sent
        while sent < 1 << 30:
            sent += 1 << 18
            yield bytes(1 << 18)

    client = ApiClient(HttpTransport(unix(papers.socket)), Scheme())
    with pytest.raises(StatusError) as raised:
        await upload(client, Paper, "one", "b", endless(), max_bytes=1 << 31)
    assert raised.value.code == 404
    assert sent < 1 << 26
    assert await upload(client, Paper, "one", "a", pieces(b"abc")) == digest_of(b"abc")
    await client.close()


async def test_a_server_that_kept_other_bytes_is_not_believed(papers: Desk, client: ApiClient) -> None:
    await papers.make("one", files=[{"name": "a"}])
    inner = client.transport

    class Lying(Plain):
        async def upload(self, call: Call, body: Body) -> Reply:
            await inner.upload(call, body)  # type: ignore[attr-defined]
            return Reply(code=200, body=b'{"digest": "%s"}' % digest_of(b"other").encode())

    with pytest.raises(StatusError, match="kept other bytes"):
        await upload(ApiClient(Lying(inner), Scheme()), Paper, "one", "a", pieces(b"abc"))


async def test_only_what_can_be_read_again_is_sent_again(tmp_path: Path) -> None:
    """A server that is busy is asked once more; what was read of an iterator is gone."""
    bodies: list[bytes] = []
    ended = asyncio.Semaphore(0)

    async def busy_once(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        if b"chunked" in head:
            data = (await reader.readuntil(b"0\r\n\r\n")).split(b"\r\n")[1]
        else:
            data = await reader.readexactly(3)
        bodies.append(data)
        code = "200 OK" if len(bodies) > 1 else "429 Too Many Requests\r\nretry-after: 0"
        writer.write(f"HTTP/1.1 {code}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n".encode())
        await closed(writer)
        ended.release()

    server = await asyncio.start_unix_server(busy_once, tmp_path / "busy")
    transport = HttpTransport(unix(str(tmp_path / "busy")))
    call = Call(method="PUT", path="/apis/g/v1/namespaces/n/papers/one/artifacts/a")
    with pytest.raises(StatusError) as raised:
        await transport.upload(call, Body(pieces(b"abc"), limit=10))
    assert raised.value.code == 429
    assert bodies == [b"abc"]
    bodies.clear()
    (tmp_path / "file").write_bytes(b"abc")
    assert (await transport.upload(call, Body(tmp_path / "file", limit=10))).code == 200
    assert bodies == [b"abc", b"abc"]
    await transport.close()
    for _ in range(3):
        await ended.acquire()
    server.close()
    await server.wait_closed()


async def test_a_connection_on_which_not_all_was_sent_is_not_used_again(tmp_path: Path) -> None:
    connections: list[bytes] = []
    ended = asyncio.Semaphore(0)

    async def hasty(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connections.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(b"HTTP/1.1 403 Forbidden\r\ncontent-length: 0\r\n\r\n")  # and it does not say that it will close
        with contextlib.suppress(ConnectionError):
            while await reader.read(1 << 16):
                pass
        await closed(writer)
        ended.release()

    async def slowly() -> AsyncIterator[bytes]:
        while True:
            await asyncio.sleep(0.001)
            yield b"x"

    server = await asyncio.start_unix_server(hasty, tmp_path / "hasty")
    transport = HttpTransport(unix(str(tmp_path / "hasty")))
    call = Call(method="PUT", path="/apis/g/v1/namespaces/n/papers/one/artifacts/a")
    for _ in range(2):
        async with asyncio.timeout(10):
            with pytest.raises(StatusError) as raised:
                await transport.upload(call, Body(slowly(), limit=1 << 30))
        assert raised.value.code == 403
    assert len(connections) == 2
    await transport.close()
    for _ in connections:
        await ended.acquire()
    server.close()
    await server.wait_closed()
