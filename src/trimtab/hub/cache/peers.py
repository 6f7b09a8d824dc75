"""Replicas ask each other for what they own, over HTTP: `POST /cache` with a question, answered by an entry.

Everyone has the same token, from a secret; without it nothing is answered. Between machines it is HTTPS, with certificates
that are verified. Whatever goes wrong here is no failure of a read: who asked reads the service itself.
"""

from __future__ import annotations

import hashlib
import hmac
import ssl
from collections.abc import Awaitable, Callable
from http import HTTPStatus
from urllib.parse import urlsplit

import aiohttp
import msgspec
from aiohttp import web

from trimtab.hub.cache.caches import Question
from trimtab.hub.cache.lru import Entry
from trimtab.hub.contract import HubError
from trimtab.model.clock import Clock, SystemClock
from trimtab.model.errors import StatusError
from trimtab.model.hosts import is_loopback
from trimtab.model.logs import log

MAX_QUESTION = 64 * 1024
MAX_ANSWER = 32 * 1024 * 1024
TIMEOUT = 2.0
PAUSE = 1.0
"""Seconds for which a replica is not asked that did not answer."""

Serve = Callable[[Question], Awaitable[Entry | None]]

_encode = msgspec.msgpack.Encoder().encode
_question = msgspec.msgpack.Decoder(Question).decode
_entry = msgspec.msgpack.Decoder(Entry).decode


class Peers:
    """`token` is asked at each request, so that it can be renewed. `advertised` is the host that others reach us by."""

    def __init__(
        self,
        *,
        token: Callable[[], str],
        host: str = "127.0.0.1",
        port: int = 0,
        advertised: str = "",
        server_tls: ssl.SSLContext | None = None,
        client_tls: ssl.SSLContext | None = None,
        server_name: str | None = None,
        timeout: float = TIMEOUT,
        clock: Clock | None = None,
    ) -> None:
        if server_tls is None and not is_loopback(host):
            raise ValueError(f"replicas at {host} talk over TLS: give server_tls")
        self._token = token
        self._host = host
        self._port = port
        self._advertised = advertised or host
        self._server_tls = server_tls
        self._client_tls = client_tls
        self._server_name = server_name
        self._timeout = timeout
        self._now = (clock or SystemClock()).monotonic
        self._runner: web.AppRunner | None = None
        self._client: aiohttp.ClientSession | None = None
        self._failed: dict[str, float] = {}
        self.address = ""
        """Where others ask us; known after `start`."""

    async def start(self, serve: Serve) -> None:
        async def answer(request: web.Request) -> web.Response:
            return await self._answer(request, serve)

        application = web.Application(client_max_size=MAX_QUESTION)
        application.router.add_post("/cache", answer)
        self._runner = web.AppRunner(application, access_log=None, shutdown_timeout=1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, self._host, self._port, ssl_context=self._server_tls)
        await site.start()
        port = self._runner.addresses[0][1]
        scheme = "http" if self._server_tls is None else "https"
        host = f"[{self._advertised}]" if ":" in self._advertised else self._advertised
        self.address = f"{scheme}://{host}:{port}"
        self._client = aiohttp.ClientSession(
            timeout=aiohttp.ClientTimeout(total=self._timeout),
            auto_decompress=False,
            trust_env=False,
        )

    async def stop(self) -> None:
        if self._client is not None:
            await self._client.close()
        if self._runner is not None:
            await self._runner.cleanup()

    def usable(self, address: str) -> bool:
        """Whether it can be asked, and did not fail just now. A token goes to other machines over TLS only."""
        if not address or self._failed.get(address, 0.0) > self._now():
            return False
        parts = urlsplit(address)
        return parts.scheme == "https" or is_loopback(parts.hostname or "")

    async def ask(self, address: str, question: Question) -> Entry | None:
        if self._client is None or not self.usable(address):
            return None
        try:
            async with self._client.post(
                f"{address}/cache",
                data=_encode(question),
                headers={"Authorization": f"Bearer {self._token()}"},
                ssl=self._client_tls or True,
                server_hostname=self._server_name,
                allow_redirects=False,
            ) as response:
                if response.status != HTTPStatus.OK:
                    return None
                data = await _bounded(response.content, MAX_ANSWER)
                return None if data is None else _entry(data)
        except (aiohttp.ClientError, TimeoutError, OSError, msgspec.DecodeError) as error:
            log.info("another replica of the hub did not answer", address=address, error=type(error).__name__)
            self._failed = {name: until for name, until in self._failed.items() if until > self._now()}
            self._failed[address] = self._now() + PAUSE
            return None

    async def _answer(self, request: web.Request, serve: Serve) -> web.Response:
        expected = self._token()
        given = request.headers.get("Authorization", "").removeprefix("Bearer ")
        if not expected or not hmac.compare_digest(_hashed(given), _hashed(expected)):
            return web.Response(status=HTTPStatus.UNAUTHORIZED)
        try:
            question = _question(await request.read())
            entry = await serve(question)
        except msgspec.DecodeError:
            return web.Response(status=HTTPStatus.BAD_REQUEST)
        except (HubError, StatusError):  # who asked reads the service itself, and gets the failure first hand
            return web.Response(status=HTTPStatus.BAD_GATEWAY)
        if entry is None or len(entry.value) > MAX_ANSWER:
            return web.Response(status=HTTPStatus.CONFLICT)
        return web.Response(body=_encode(entry), content_type="application/vnd.msgpack")


def _hashed(text: str) -> bytes:
    """Of one length, whatever bytes somebody sent."""
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).digest()


async def _bounded(content: aiohttp.StreamReader, limit: int) -> bytes | None:
    """All of it, or None when it is longer."""
    data = bytearray()
    async for chunk in content.iter_chunked(256 * 1024):
        data += chunk
        if len(data) > limit:
            return None
    return bytes(data)
