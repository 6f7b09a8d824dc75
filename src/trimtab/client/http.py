"""Calls over HTTP/1.1, to any server on the network or on a unix socket.

Flow: credentials → request → answer, or another attempt as `retry.py` allows. A 401 is tried once more with new
credentials. Guarantees: certificates are verified; nothing is redirected; answers, lines and waiting are bounded; a
write is never sent twice unless the server surely did not look at the first.
"""

from __future__ import annotations

import os
import platform
import ssl
import sys
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from urllib.parse import urlsplit

import msgspec

from trimtab import __version__
from trimtab.client import batches, tls
from trimtab.client.bodies import Body
from trimtab.client.config import Config, ConfigError
from trimtab.client.credentials import Identity
from trimtab.client.retry import Failure, Policy, failure_of, pause
from trimtab.client.transport import Call, Reply, Silent, Unreachable, refusal
from trimtab.client.wire import Answer, Broken, NotConnected, TooLong, Wire
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
    """One server, with connections that are kept alive. `warn` hears what the server warns of."""

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
        address = urlsplit("http://localhost" if config.socket else config.server)
        self._secure = address.scheme == "https"
        self._prefix = address.path.rstrip("/")
        self._target = config.socket or (address.hostname or "", address.port or (443 if self._secure else 80))
        local = config.socket or address.hostname in ("localhost", "127.0.0.1", "::1")
        self._coding = _header("Accept-Encoding", "identity" if local else "gzip")  # nearby, to carry costs less
        headers = [("Host", address.netloc.rpartition("@")[2]), ("User-Agent", user_agent)]
        self._headers = b"".join(_header(name, value) for name, value in (*headers, *config.headers))
        self._wire: Wire | None = None
        self._shown: tuple[bytes, bytes] | None = None  # whose certificate the connections show

    async def call(self, call: Call) -> Reply:
        answer = await self._answer(call)
        return Reply(code=answer.code, body=answer.body)

    @property
    def batches(self) -> bool:
        """A socket is our own server's, and there it takes many applies in one request (`server/batch.py`)."""
        return bool(self.config.socket)

    async def batch(self, calls: Sequence[Call]) -> list[Reply | StatusError]:
        reply = await self.call(Call(method="POST", path=batches.PATH, body=batches.body_of(calls)))
        return batches.replies_of(reply.body, len(calls))

    async def upload(self, call: Call, body: Body) -> Reply:
        """A call with a body that is sent as it is read. BodyFailed when it cannot be read."""
        answer = await self._answer(call, body=body)
        return Reply(code=answer.code, body=answer.body)

    async def stream(self, call: Call, inactivity: float) -> AsyncGenerator[bytes, None]:
        answer = await self._answer(call, inactivity)
        parts: list[bytes] = []  # of a line that goes on in the next chunk
        size = 0
        try:
            async with aclosing(answer.chunks(inactivity)) as chunks:
                async for chunk in chunks:
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
                        raise StatusError(
                            500, "InternalError", f"a line of the answer is over {self._limits.line} bytes"
                        )
        except (TimeoutError, OSError) as raised:
            raise self._broken(raised, inactivity)[1] from None

    async def chunks(self, call: Call, inactivity: float) -> AsyncGenerator[bytes, None]:
        """The bytes of an answer as they come, whatever they are."""
        answer = await self._answer(call, inactivity)
        try:
            async with aclosing(answer.chunks(inactivity)) as chunks:
                async for chunk in chunks:
                    yield chunk
        except (TimeoutError, OSError) as raised:
            raise self._broken(raised, inactivity)[1] from None

    async def close(self) -> None:
        if self._wire is not None:
            self._wire.close()
            self._wire = None

    async def _answer(self, call: Call, inactivity: float | None = None, body: Body | None = None) -> Answer:
        """A good answer: whole, or with `inactivity` as a stream."""
        attempt, renewed = 1, False
        while True:
            wish: int | None = None
            error: Exception
            identity = await self._identity()
            within = self._limits.request if inactivity is None else inactivity
            try:
                answer = await self._send(call, identity, within, stream=inactivity is not None, body=body)
            except (TimeoutError, OSError) as raised:
                failure, error = self._broken(raised, within)
            else:
                self._hear(answer)
                if answer.code < 300:
                    return answer
                error = refused = refusal(answer.code, answer.body, _retry_after(answer))
                if answer.code == 401 and not renewed and _again(body) and self._renews(identity):
                    renewed = True
                    continue
                found = failure_of(answer.code)
                if found is None:
                    raise error
                failure, wish = found, refused.retry_after
            seconds = pause(self._policy, call, failure, attempt, wish)
            if seconds is None or not _again(body):
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

    async def _send(self, call: Call, identity: Identity, within: float, *, stream: bool, body: Body | None) -> Answer:
        wire = self._connected(identity)
        parts = [
            f"{call.method} {self._prefix}{call.url} HTTP/1.1\r\n".encode(),
            self._headers,
            _header("Accept", call.accept),
        ]
        parts.append(_AS_IT_IS if stream else self._coding)
        if identity.authorization:
            parts.append(_header("Authorization", identity.authorization))
        if call.body or body is not None:
            parts.append(_header("Content-Type", call.content_type))
        if body is not None:
            parts.append(body.header)
        elif call.body or not call.safe:
            parts.append(b"Content-Length: %d\r\n" % len(call.body))
        request = b"".join((*parts, b"\r\n", call.body))
        try:
            if body is None:
                return await wire.ask(request, stream=stream, limit=self._limits.body, within=within)
            async with aclosing(body.framed()) as more:
                return await wire.ask(request, stream=stream, limit=self._limits.body, within=within, more=more)
        except TooLong:
            raise StatusError(500, "InternalError", f"the answer is over {self._limits.body} bytes") from None

    def _connected(self, identity: Identity) -> Wire:
        """The connections that show the current certificate."""
        shown = (identity.certificate, identity.key)
        if self._wire is None or shown != self._shown:
            if self._wire is not None:
                self._wire.close()
            context = tls.context(self.config, identity) if self._secure else None
            self._wire = Wire(self._target, context, self.config.tls_server_name, self._limits.connect)
            self._shown = shown
        return self._wire

    def _broken(self, raised: Exception, within: float) -> tuple[Failure, Exception]:
        """What kind of failure it was, and how to say it."""
        server = self.config.server
        if isinstance(raised, ssl.SSLCertVerificationError):
            raise ConfigError(f"{server}: its certificate is not trusted: {raised.verify_message}") from None
        if isinstance(raised, ssl.SSLError):
            return Failure.NOT_SENT, Unreachable(f"{server}: no TLS came about: {raised.reason or raised}")
        if isinstance(raised, NotConnected):
            return Failure.NOT_SENT, Silent(f"{server} {raised}")
        if isinstance(raised, TimeoutError):
            return Failure.LOST, Silent(f"{server} did not answer within {within:g} s")
        if isinstance(raised, Broken):
            return Failure.LOST, Unreachable(f"{server}: the connection broke: {raised}")
        number = raised.errno if isinstance(raised, OSError) else None
        why = os.strerror(number) if number is not None and number > 0 else str(raised)
        return Failure.NOT_SENT, Unreachable(f"{server} does not answer: {why}")

    def _hear(self, answer: Answer) -> None:
        if self._warn is not None:
            for value in answer.values(b"warning"):
                self._warn(_warning(value))


def _again(body: Body | None) -> bool:
    """Whether a call can be made once more."""
    return body is None or body.ready


_NOBODY = Identity()


def _header(name: str, value: str) -> bytes:
    if "\r" in value or "\n" in value:
        raise ConfigError(f"the header {name} would hold a line break")
    return f"{name}: {value}\r\n".encode("latin-1", "replace")


_AS_IT_IS = _header("Accept-Encoding", "identity")


def _retry_after(answer: Answer) -> int | None:
    value = next(iter(answer.values(b"retry-after")), "")
    return int(value) if value.isdecimal() and len(value) < 9 else None


def _warning(value: str) -> str:
    """The text of RFC 7234 §5.5: `299 - "text"`."""
    _, quoted, rest = value.partition('"')
    text = rest.rpartition('"')[0] if quoted else value
    return text.replace('\\"', '"').replace("\\\\", "\\")
