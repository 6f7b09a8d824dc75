"""A connection to NATS with JetStream, as a queue needs it: reached at the first use, and for as long as it is open.

Everything that is asked over it is tried again while the server is away for a moment, so only ask what may be repeated.
What goes wrong is `QueueUnavailable`, without credentials. A password or token goes only over TLS, or over loopback; the
key of a credentials file never leaves this machine.
"""

from __future__ import annotations

import asyncio
import os
import ssl
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import unquote, urlsplit

import nats.errors
import nats.js.errors
from nats.aio.client import Client as NatsClient

from trimtab.model.clock import Clock
from trimtab.model.hosts import is_loopback
from trimtab.model.logs import log
from trimtab.runtime.queue.contract import QueueUnavailable
from trimtab.runtime.queue.nats_credentials import NatsCredentials, NatsCredentialsError

T = TypeVar("T")

ATTEMPTS = 3
PAUSE = 0.25  # seconds between attempts


class NatsConnection:
    """`prepare` makes what must be there (streams); it runs before the first use, and again after `forget`."""

    def __init__(
        self,
        url: str,
        prepare: Callable[[Any], Awaitable[None]],
        *,
        credentials_file: Path | None,
        token_file: Path | None,
        ca_file: Path | None,
        clock: Clock,
        timeout: float,
    ) -> None:
        self._servers = url.split(",")
        _check_servers(self._servers, secret=token_file is not None)
        self.place = ",".join(_place(server) for server in self._servers)
        self.closed = False
        self.timeout = timeout
        self._prepare = prepare
        self._prepared = False
        self._credentials = None if credentials_file is None else NatsCredentials(credentials_file)
        self._token_file = token_file
        self._ca_file = ca_file
        self._clock = clock
        self._starting = asyncio.Lock()
        self._client: NatsClient | None = None

    async def jetstream(self) -> Any:
        """The library's own view of JetStream. Errors are the library's, but for QueueUnavailable."""
        async with self._starting:
            client = await self._connected()
            js = client.jetstream(timeout=self.timeout)
            if not self._prepared:
                await self._prepare(js)
                self._prepared = True
            return js

    async def client(self) -> NatsClient:
        """For plain subjects, which need no stream. Errors as of `jetstream`."""
        async with self._starting:
            return await self._connected()

    async def request(self, subject: str, payload: bytes) -> None:
        """Sends, and waits until somebody has answered."""

        async def once() -> None:
            async with self._starting:
                client = await self._connected()
            await client.request(subject, payload, timeout=self.timeout)

        await self.asked(once)

    async def asked(self, once: Callable[[], Awaitable[T]]) -> T:
        """As `attempted`, but whatever goes wrong is QueueUnavailable."""
        try:
            return await self.attempted(once)
        except (nats.errors.Error, OSError) as error:
            raise self.unavailable(error) from None

    async def attempted(self, once: Callable[[], Awaitable[T]]) -> T:
        """The result of the first attempt that is answered."""
        for _ in range(ATTEMPTS - 1):
            try:
                return await once()
            except _UNANSWERED as error:
                log.info("the queue did not answer", place=self.place, error=self.cleaned(error))
                self.forget()
                await self._clock.sleep(PAUSE)
        return await once()

    @property
    def max_payload(self) -> int:
        """Of the server."""
        return 0 if self._client is None else self._client.max_payload

    def forget(self) -> None:
        """A server that lost its disk has no streams, and somebody may have deleted them."""
        self._prepared = False

    def unavailable(self, error: Exception) -> QueueUnavailable:
        return QueueUnavailable(f"the queue at {self.place}: {self.cleaned(error)}")

    def cleaned(self, error: Exception) -> str:
        """What an error says, without user, password and token."""
        text = f"{type(error).__name__}: {error}"
        for server in self._servers:
            parts = urlsplit(server)
            for secret in (parts.netloc.rpartition("@")[0], parts.password, unquote(parts.password or "")):
                text = text.replace(secret, "***") if secret else text
        return text

    async def close(self) -> None:
        self.closed = True
        client, self._client = self._client, None
        if client is not None:
            await client.close()

    async def _connected(self) -> NatsClient:
        if self.closed:
            raise QueueUnavailable("the queue is closed")
        if self._client is None or self._client.is_closed:
            self._client = await self._connect()
        return self._client

    async def _connect(self) -> NatsClient:
        client = _Client()
        last = ""
        reached = False
        refusal: Exception | None = None  # the reset that follows a refusal says less than the refusal

        async def failed(error: Exception) -> None:
            nonlocal last, refusal
            if refusal is not None:
                raise refusal
            before, last = last, self.cleaned(error)
            if last != before:  # not once for each attempt
                log.info("the connection to the queue broke", place=self.place, error=last)
            if not reached and (isinstance(error, _HOPELESS) or "Authorization Violation" in str(error)):
                refusal = error
                raise error  # out of `connect`, which would try on until the time is over

        try:
            if self._credentials is not None:
                self._credentials.check()
            async with asyncio.timeout(2 * self.timeout):
                await client.connect(
                    self._servers,
                    name="trimtab",
                    error_cb=failed,
                    connect_timeout=self.timeout,  # type: ignore[arg-type]
                    reconnect_time_wait=PAUSE,  # type: ignore[arg-type]
                    max_reconnect_attempts=-1,
                    tls=self._tls(),
                    token=None if self._token_file is None else self._token,
                    user_jwt_cb=None if self._credentials is None else self._credentials.jwt,
                    signature_cb=None if self._credentials is None else self._credentials.sign,
                )
        except (nats.errors.Error, NatsCredentialsError, OSError) as error:
            await client.close()
            raise QueueUnavailable(f"{self.place}: {last or self.cleaned(error)}") from None
        except BaseException:
            await client.close()
            raise
        reached = True
        return client

    def _tls(self) -> ssl.SSLContext:
        """Also for nats://, whose server may ask for TLS."""
        return ssl.create_default_context(cafile=None if self._ca_file is None else os.fspath(self._ca_file))

    def _token(self) -> str:
        """Asked at each connection: a mounted secret is renewed in place."""
        return "" if self._token_file is None else self._token_file.read_text().strip()


_UNANSWERED = (nats.errors.TimeoutError, nats.errors.NoRespondersError, nats.js.errors.NoStreamResponseError)
_HOPELESS = (ssl.SSLError, nats.errors.SecureConnWantedError, nats.errors.AuthorizationError)


class _Client(NatsClient):
    """The library's client, with three of its habits mended."""

    async def close(self) -> None:
        """Also when the server has gone, to whom the library would send what is left, or a handshake has failed, whose
        end the library would wait for.
        """
        try:
            async with asyncio.timeout(1):
                await super().close()
        except OSError:
            if self._transport is not None:
                self._transport.close()  # type: ignore[no-untyped-call]

    async def _flush_pending(self, force_flush: bool = False) -> Any:
        """A cancellation that comes meanwhile is one: the library would swallow it, and its task go on for ever."""
        task = asyncio.current_task()
        before = task.cancelling() if task is not None else 0
        flushed = await super()._flush_pending(force_flush)
        if task is not None and task.cancelling() > before:
            raise asyncio.CancelledError
        return flushed

    def _connect_command(self) -> bytes:
        """Refuses a server without TLS where TLS was asked for: the library would go on in the clear."""
        current = self._current_server
        if current is not None and current.uri.scheme == "tls" and not self._server_info.get("tls_required"):
            raise nats.errors.SecureConnWantedError
        command: bytes = super()._connect_command()
        return command


def _check_servers(servers: list[str], *, secret: bool) -> None:
    for server in servers:
        parts = urlsplit(server)
        if parts.scheme not in ("nats", "tls") or not parts.hostname:
            raise ValueError("--nats must be nats://HOST[:PORT] or tls://HOST[:PORT], several with commas between")
        if (secret or parts.username) and parts.scheme != "tls" and not is_loopback(parts.hostname):
            raise ValueError(f"--nats {_place(server)}: a token or password goes only over tls://")


def _place(server: str) -> str:
    parts = urlsplit(server)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"
