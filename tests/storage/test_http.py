"""What is special to blobs over HTTP: who gets in, what is refused, a service that goes and comes."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import pytest
from aiohttp import web

from tests.storage.conftest import LIMIT, HttpHome, ImpatientClock
from trimtab.storage import serve
from trimtab.storage.blobs import CHUNK, BlobsUnavailable, BlobTooLarge, digest_of, read
from trimtab.storage.folder import FolderBlobs
from trimtab.storage.http import HttpBlobs
from trimtab.testing.clock import FakeClock
from trimtab.testing.pki import Authority

NOTHING = digest_of(b"")


@pytest.fixture
async def session() -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession() as session:
        yield session


@pytest.mark.parametrize("header", [None, "", "Bearer ", "Bearer wrong", "Basic dXNlcjpwYXNz", "Bearer wr\u00f6ng"])
async def test_nobody_gets_in_without_the_token(
    http_home: HttpHome, session: aiohttp.ClientSession, header: str | None
) -> None:
    headers = {} if header is None else {"Authorization": header}
    for method, path in [
        ("PUT", f"/blobs/{NOTHING}"),
        ("GET", f"/blobs/{NOTHING}"),
        ("POST", "/collect?grace=0"),
        ("DELETE", "/pins/owner"),
        ("GET", "/ready"),
        ("GET", "/anything"),
    ]:
        async with session.request(method, http_home.url + path, headers=headers) as response:
            assert response.status == 401, (method, path)


async def test_while_the_service_has_no_token_nobody_gets_in(http_home: HttpHome) -> None:
    app = serve.application(http_home.behind, token=lambda: "")
    async with running(app) as url:
        blobs = HttpBlobs(url, token=lambda: "")
        with pytest.raises(BlobsUnavailable, match="401"):
            await blobs.ready()
        await blobs.close()


async def test_a_token_that_was_renewed_is_used_at_once(http_home: HttpHome) -> None:
    tokens = ["wrong"]
    blobs = HttpBlobs(http_home.url, token=lambda: tokens[-1])
    with pytest.raises(BlobsUnavailable, match="token"):
        await blobs.ready()
    tokens.append(http_home.token)
    await blobs.ready()
    await blobs.close()


@pytest.mark.parametrize("grace", ["", "nan", "inf", "-1", "soon"])
async def test_a_grace_time_that_is_none_is_refused(
    http_home: HttpHome, session: aiohttp.ClientSession, grace: str
) -> None:
    headers = {"Authorization": f"Bearer {http_home.token}"}
    async with session.post(f"{http_home.url}/collect?grace={grace}", headers=headers) as response:
        assert response.status == 400


async def test_bytes_under_another_digest_are_refused(http_home: HttpHome, session: aiohttp.ClientSession) -> None:
    headers = {"Authorization": f"Bearer {http_home.token}"}
    async with session.put(f"{http_home.url}/blobs/{NOTHING}", headers=headers, data=b"something") as response:
        assert response.status == 422
        assert (await response.json())["reason"] == "BlobDamaged"


async def test_the_service_refuses_more_than_its_limit_whatever_the_client_thinks(http_home: HttpHome) -> None:
    blobs = HttpBlobs(http_home.url, token=lambda: http_home.token, max_bytes=10 * LIMIT)
    with pytest.raises((BlobTooLarge, BlobsUnavailable)):
        await blobs.put(bytes(LIMIT + 1))
    await blobs.close()


async def test_a_stream_of_unknown_length_is_cut_at_the_limit(
    http_home: HttpHome, session: aiohttp.ClientSession
) -> None:
    async def endless() -> AsyncIterator[bytes]:
        while True:
            yield bytes(CHUNK)

    headers = {"Authorization": f"Bearer {http_home.token}"}
    try:
        async with session.put(f"{http_home.url}/blobs/{NOTHING}", headers=headers, data=endless()) as response:
            assert response.status == 413
    except aiohttp.ClientConnectionError:
        pass  # the service hung up while we were still sending
    assert (await http_home.behind.collect(grace=0)).count == 0


async def test_too_many_uploads_at_once_are_told_to_come_again(
    http_home: HttpHome, session: aiohttp.ClientSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(serve, "UPLOADS", 0)
    headers = {"Authorization": f"Bearer {http_home.token}"}
    async with session.put(f"{http_home.url}/blobs/{NOTHING}", headers=headers, data=b"") as response:
        assert (response.status, response.headers["Retry-After"]) == (503, "1")


async def test_a_service_that_is_away_is_asked_again_until_it_is_back(http_home: HttpHome, tmp_path: Path) -> None:
    clock = NoticedClock()
    async with running(web.Application()) as url:
        pass
    blobs = HttpBlobs(url, token=lambda: "t", clock=clock)
    put = asyncio.create_task(blobs.put(b"late"))
    await clock.asked.wait()
    app = serve.application(FolderBlobs(tmp_path / "late"), token=lambda: "t")
    async with running(app, port=int(url.rpartition(":")[2])):
        await clock.advance(1)
        assert await put == digest_of(b"late")
        await blobs.close()


async def test_a_service_that_stays_away_is_given_up(tmp_path: Path) -> None:
    async with running(web.Application()) as url:
        pass
    clock = ImpatientClock()
    blobs = HttpBlobs(url, token=lambda: "t", clock=clock)
    with pytest.raises(BlobsUnavailable, match=url):
        await blobs.ready()
    assert len(clock.slept) == 4
    assert max(clock.slept) <= 5
    await blobs.close()


async def test_a_redirect_is_not_followed_with_the_token() -> None:
    asked = []

    async def elsewhere(request: web.Request) -> web.Response:
        asked.append(request.path)
        raise web.HTTPFound("/stolen")

    app = web.Application()
    app.router.add_get("/{path:.*}", elsewhere)
    async with running(app) as url:
        blobs = HttpBlobs(url, token=lambda: "t")
        with pytest.raises(BlobsUnavailable, match="302"):
            await blobs.ready()
        await blobs.close()
    assert asked == ["/ready"]


async def test_the_certificate_of_the_service_is_verified(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    serving = authority.server("blobs", hosts=("localhost",))
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(serving.certificate, serving.key)
    app = serve.application(FolderBlobs(tmp_path / "blobs"), token=lambda: "t")
    async with running(app, context) as url:
        trusting = HttpBlobs(url, token=lambda: "t", ca=str(authority.certificate))
        digest = await trusting.put(b"over TLS")
        assert await read(trusting, digest, max_bytes=100) == b"over TLS"
        await trusting.close()
        doubting = HttpBlobs(url, token=lambda: "t", clock=FakeClock())
        with pytest.raises(BlobsUnavailable, match="certificate verify failed"):
            await doubting.ready()
        await doubting.close()


@pytest.mark.parametrize("url", ["http://blobs.example", "ftp://blobs.example", "https://user:word@blobs.example"])
def test_a_url_that_would_give_secrets_away_is_refused(url: str) -> None:
    with pytest.raises(ValueError, match="blobs over HTTP") as caught:
        HttpBlobs(url, token=lambda: "t")
    assert "word@" not in str(caught.value)


class NoticedClock(FakeClock):
    """Says when somebody waits."""

    def __init__(self) -> None:
        super().__init__()
        self.asked = asyncio.Event()

    async def sleep(self, seconds: float) -> None:
        self.asked.set()
        await super().sleep(seconds)


class running:  # noqa: N801 - it reads as a word
    """The application on a port of loopback."""

    def __init__(self, app: web.Application, tls: ssl.SSLContext | None = None, *, port: int = 0) -> None:
        self._runner = web.AppRunner(app, lingering_time=0.1)
        self._tls = tls
        self._port = port

    async def __aenter__(self) -> str:
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", self._port, ssl_context=self._tls).start()
        return f"http{'s' if self._tls else ''}://127.0.0.1:{self._runner.addresses[0][1]}"

    async def __aexit__(self, *error: object) -> None:
        await self._runner.cleanup()
