"""Calls over HTTP/1.1, to any server on the network or on a unix socket, with aiohttp.

Flow: credentials → request → answer, or another attempt as `retry.py` allows. A 401 is tried once more with new
credentials. Guarantees: certificates are verified; nothing is redirected; answers, lines and waiting are bounded; a
write is never sent twice unless the server surely did not look at the first.
"""

from __future__ import annotations

import os
import platform
import ssl
import sys
from collections.abc import AsyncGenerator, Callable, Mapping
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

import aiohttp
import msgspec
import yarl

from trimtab import __version__
from trimtab.client import tls
from trimtab.client.config import Config, ConfigError
from trimtab.client.credentials import Identity
from trimtab.client.retry import Failure, Policy, failure_of, pause
from trimtab.client.transport import Call, Reply, Silent, Unreachable, refusal
from trimtab.model.clock import Clock, SystemClock
from trimtab.model.errors import StatusError, unauthorized

USER_AGENT = f"trimtab/{__version__} ({sys.platform}/{platform.machine()})"


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """What is waited for and taken in at most."""

    connect: float = 10.0  # seconds
    request: float = 60.0
    body: int = 256 * 1024 * 1024
    line: int = 16 * 1024 * 1024


class HttpTransport:
    """One server, with a pool of connections that are kept alive. `warn` hears what the server warns of."""

    def __init__(
        self,
        config: Config,
        *,
        limits: Limits = Limits(),  # noqa: B008 - frozen
        policy: Policy = Policy(),  # noqa: B008
        clock: Clock | None = None,
        warn: Callable[[str], None] | None = None,
        user_agent: str = USER_AGENT,
    ) -> None:
        self.config = config
        self._limits = limits
        self._policy = policy
        self._clock = clock or SystemClock()
        self._warn = warn
        self._base = "http://localhost" if config.socket else config.server
        self._secure = self._base.startswith("https://")
        self._headers = [("User-Agent", user_agent), *config.headers]
        if config.socket or urlsplit(self._base).hostname in ("localhost", "127.0.0.1", "::1"):
            self._headers.append(("Accept-Encoding", "identity"))  # to squeeze costs more than to carry
        self._session: aiohttp.ClientSession | None = None
        self._shown: tuple[bytes, bytes] | None = None  # whose certificate the session shows
        self._tls: ssl.SSLContext | bool = True

    async def call(self, call: Call) -> Reply:
        timeout = aiohttp.ClientTimeout(total=self._limits.request, sock_connect=self._limits.connect)
        response, body = await self._answer(call, timeout)
        return Reply(code=response.status, body=body)

    async def stream(self, call: Call, inactivity: float) -> AsyncGenerator[bytes, None]:
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=self._limits.connect, sock_read=inactivity)
        response, _ = await self._answer(call, timeout, whole=False)
        try:
            parts: list[bytes] = []  # of a line that goes on in the next chunk
            size = 0
            while chunk := await response.content.readany():
                *lines, rest = chunk.split(b"\n")
                if lines and parts:
                    lines[0] = b"".join((*parts, lines[0]))
                    parts, size = [], 0
                for line in lines:
                    if line:
                        yield line
                if rest:
                    parts.append(rest)
                    size += len(rest)
                if size > self._limits.line:
                    raise StatusError(500, "InternalError", f"a line of the answer is over {self._limits.line} bytes")
        except (TimeoutError, aiohttp.ClientError) as raised:
            raise self._broken(raised, timeout)[1] from None
        finally:
            _abort(response)

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def _answer(
        self, call: Call, timeout: aiohttp.ClientTimeout, *, whole: bool = True
    ) -> tuple[aiohttp.ClientResponse, bytes]:
        """A good answer with its body, or without when it is not wanted whole."""
        attempt, renewed = 1, False
        while True:
            wish: int | None = None
            error: Exception
            identity = await self._identity()
            try:
                response = await self._send(call, identity, timeout)
                body = await self._body(response) if whole or response.status >= 300 else b""
            except (TimeoutError, aiohttp.ClientError, OSError) as raised:
                failure, error = self._broken(raised, timeout)
            else:
                self._hear(response.headers.getall("Warning", ()))
                if response.status < 300:
                    return response, body
                error = refused = refusal(response.status, body, _retry_after(response.headers))
                if response.status == 401 and not renewed and self._renews(identity):
                    renewed = True
                    continue
                found = failure_of(response.status)
                if found is None:
                    raise error
                failure, wish = found, refused.retry_after
            seconds = pause(self._policy, call, failure, attempt, wish)
            if seconds is None:
                raise error
            await self._clock.sleep(seconds)
            attempt += 1

    async def _identity(self) -> Identity:
        """Who we are now. Credentials that cannot be had are a 401 like those that are refused: both may pass."""
        if not self._secure or self.config.credentials is None:  # never in the clear
            return _NOBODY
        try:
            return await self.config.credentials.current()
        except ConfigError as error:
            raise unauthorized(str(error)) from None

    def _renews(self, refused: Identity) -> bool:
        return self.config.credentials is not None and self.config.credentials.refused(refused)

    async def _send(self, call: Call, identity: Identity, timeout: aiohttp.ClientTimeout) -> aiohttp.ClientResponse:
        session = await self._connected(identity)
        headers = [*self._headers, ("Accept", call.accept)]
        if identity.authorization:
            headers.append(("Authorization", identity.authorization))
        if call.body:
            headers.append(("Content-Type", call.content_type))
        target = self._base + call.path + (f"?{urlencode(call.query, quote_via=quote)}" if call.query else "")
        return await session.request(
            call.method,
            yarl.URL(target, encoded=True),
            headers=headers,
            data=call.body or None,
            timeout=timeout,
            ssl=self._tls,
            server_hostname=self.config.tls_server_name or None,
            allow_redirects=False,
        )

    async def _connected(self, identity: Identity) -> aiohttp.ClientSession:
        """The session whose connections show the current certificate."""
        shown = (identity.certificate, identity.key)
        if self._session is None or shown != self._shown:
            old, self._session, self._shown = self._session, self._opened(identity), shown
            if old is not None:
                await old.close()
        return self._session

    def _opened(self, identity: Identity) -> aiohttp.ClientSession:
        connector: aiohttp.BaseConnector
        if self.config.socket:
            connector = aiohttp.UnixConnector(self.config.socket, limit=0)
        else:
            connector = aiohttp.TCPConnector(limit=0, limit_per_host=0)
        self._tls = tls.context(self.config, identity) if self._secure else True
        session = aiohttp.ClientSession(connector=connector, trust_env=False, cookie_jar=aiohttp.DummyCookieJar())
        session._retry_connection = False  # it would send a DELETE twice; `retry.py` decides
        return session

    async def _body(self, response: aiohttp.ClientResponse) -> bytes:
        chunks: list[bytes] = []
        size = 0
        async with response:
            while chunk := await response.content.readany():
                chunks.append(chunk)
                size += len(chunk)
                if size > self._limits.body:
                    response.close()
                    raise StatusError(500, "InternalError", f"the answer is over {self._limits.body} bytes")
        return chunks[0] if len(chunks) == 1 else b"".join(chunks)

    def _broken(self, raised: Exception, timeout: aiohttp.ClientTimeout) -> tuple[Failure, Exception]:
        """What kind of failure it was, and how to say it."""
        server = self.config.server
        if isinstance(raised, aiohttp.ClientConnectorCertificateError):
            why = getattr(raised.certificate_error, "verify_message", "") or str(raised.certificate_error)
            raise ConfigError(f"{server}: its certificate is not trusted: {why}") from None
        if isinstance(raised, aiohttp.ClientConnectorError):
            why = os.strerror(raised.os_error.errno) if raised.os_error.errno else str(raised.os_error)
            return Failure.NOT_SENT, Unreachable(f"{server} does not answer: {why}")
        if isinstance(raised, aiohttp.ConnectionTimeoutError):
            return Failure.NOT_SENT, Silent(f"{server} did not answer within {self._limits.connect:g} s")
        if isinstance(raised, TimeoutError):
            waited = timeout.total or timeout.sock_read
            return Failure.LOST, Silent(f"{server} did not answer within {waited:g} s")
        return Failure.LOST, Unreachable(f"{server}: the connection broke: {raised}")

    def _hear(self, warnings: Any) -> None:
        if self._warn is not None:
            for value in warnings:
                self._warn(_warning(value))


def _abort(response: aiohttp.ClientResponse) -> None:
    """End a stream's connection at once: it cannot be used again, and a peer that is gone would not say goodbye."""
    connection = response.connection
    if connection is not None and connection.transport is not None:
        connection.transport.abort()
    response.close()


_NOBODY = Identity()


def _retry_after(headers: Mapping[str, str]) -> int | None:
    value = headers.get("Retry-After", "")
    return int(value) if value.isdecimal() and len(value) < 9 else None


def _warning(value: str) -> str:
    """The text of RFC 7234 §5.5: `299 - "text"`."""
    _, quoted, rest = value.partition('"')
    text = rest.rpartition('"')[0] if quoted else value
    return text.replace('\\"', '"').replace("\\\\", "\\")
