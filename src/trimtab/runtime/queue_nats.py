"""The queue of many machines: NATS JetStream. Needs the extra `trimtab[nats]`.

One stream of work-queue retention holds the messages of all subjects, `<stream>.<subject>`, on disk. Each subject has one
durable pull consumer that all who consume it share. A second stream, `<stream>-dead`, keeps what was given up.

The server counts deliveries without limit, and whoever gets one delivery too many buries the message and terminates it: a
limit at the server would leave the message in the stream, where nobody sees it and it still counts. A message is buried
before it is terminated, under an id of its own, so that a crash in between buries it once.

Settling waits for the server's answer, so what `ack` returned for does not come again after a connection or the server's
process broke. Two things are weaker when the server is killed: deliveries are counted from the start again, because it keeps
the count in memory for a while; and what a power cut can take back is said by its option `sync_interval`.
"""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import json
import os
import re
import ssl
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import unquote, urlsplit

import nats.errors
import nats.js.errors
from nats.aio.client import Client as NatsClient
from nats.js import api

from trimtab.model.clock import Clock, SystemClock
from trimtab.model.logs import log
from trimtab.runtime.nats_credentials import NatsCredentials, NatsCredentialsError
from trimtab.runtime.queue import (
    MAX_DEAD,
    MAX_DELIVERIES,
    MAX_DEPTH,
    MAX_PAYLOAD,
    WINDOW,
    DeadLetter,
    Message,
    PayloadTooLarge,
    QueueFull,
    QueueUnavailable,
    check_id,
    check_subject,
)

T = TypeVar("T")

ATTEMPTS = 3
PAUSE = 0.25  # seconds between attempts
POLL = 2.0  # seconds after which an idle consumer asks again: so long may the end of an outage go unnoticed
_ID, _DELIVERIES, _REASON = "Trimtab-Id", "Trimtab-Deliveries", "Trimtab-Reason"
_STORE_FAILED = 10077  # the server's code for a stream that is full
_STREAM_DIFFERS = 10058
_NO_MESSAGE = 10037


class NatsQueue:
    """Fulfils `Queue`. Reached at the first use; reconnects by itself for as long as it is open.

    `url` is nats:// or tls://, several with commas. A password or token goes only over TLS, or over loopback. The key of a
    credentials file never leaves this machine.
    """

    def __init__(
        self,
        url: str,
        *,
        stream: str = "trimtab",
        credentials_file: Path | None = None,
        token_file: Path | None = None,
        ca_file: Path | None = None,
        clock: Clock | None = None,
        max_depth: int = MAX_DEPTH,
        max_deliveries: int = MAX_DELIVERIES,
        max_payload: int = MAX_PAYLOAD,
        window: float = WINDOW,
        replicas: int = 1,
        timeout: float = 5.0,
    ) -> None:
        if not re.fullmatch(r"[A-Za-z0-9_-]{1,64}", stream):
            raise ValueError(f"{stream[:80]!r} is no name of a stream: letters, digits, - and _")
        self._servers = url.split(",")
        _check_servers(self._servers, secret=token_file is not None)
        self._place = ",".join(_place(server) for server in self._servers)
        self._stream = stream
        self._dead = f"{stream}-dead"
        self._credentials = None if credentials_file is None else NatsCredentials(credentials_file)
        self._token_file = token_file
        self._ca_file = ca_file
        self._clock = clock or SystemClock()
        self._max_depth = max_depth
        self._max_deliveries = max_deliveries
        self._max_payload = max_payload
        self._window = window
        self._replicas = replicas
        self._timeout = timeout
        self._starting = asyncio.Lock()
        self._client: NatsClient | None = None
        self._streams_made = False
        self._closed = False

    def __repr__(self) -> str:
        return f"NatsQueue({self._place!r}, stream={self._stream!r})"

    async def publish(self, subject: str, payload: bytes, *, id: str = "") -> bool:  # noqa: A002
        check_subject(subject)
        if len(payload) > self._max_payload:
            raise PayloadTooLarge(len(payload), self._max_payload)
        # An id makes a repetition harmless, so each message has one.
        headers = {api.Header.MSG_ID.value: check_id(id) or uuid.uuid4().hex}

        async def once() -> bool:
            js = await self._jetstream()
            acknowledged = await js.publish(
                f"{self._stream}.{subject}", payload, timeout=self._timeout, stream=self._stream, headers=dict(headers)
            )
            return not acknowledged.duplicate

        try:
            return await self._attempted(once)
        except nats.errors.MaxPayloadError:
            raise PayloadTooLarge(len(payload), self._client.max_payload if self._client else 0) from None
        except nats.js.errors.APIError as error:
            if error.err_code == _STORE_FAILED:
                raise QueueFull(subject, self._max_depth) from None
            raise self._unavailable(error) from None
        except (nats.errors.Error, OSError) as error:
            raise self._unavailable(error) from None

    async def consume(self, subject: str, *, concurrency: int = 1, deadline: float = 60.0) -> AsyncIterator[Message]:
        check_subject(subject)
        slots = asyncio.Semaphore(concurrency)
        subscription: Any = None
        try:
            while not self._closed:
                async with _held(slots) as slot:
                    try:
                        if subscription is None:
                            subscription = await self._subscribe(subject, deadline)
                        [raw] = await subscription.fetch(1, timeout=POLL)
                    except nats.errors.TimeoutError:
                        continue  # nothing came, or the server was away
                    except (nats.errors.Error, QueueUnavailable, OSError) as error:
                        if self._closed:
                            return
                        log.warning("the queue is away", subject=subject, error=self._cleaned(error))
                        await _unsubscribed(subscription)
                        subscription = None
                        self._streams_made = False  # somebody may have deleted them
                        await self._clock.sleep(PAUSE)
                        continue
                    delivery = _Delivery(self, raw, subject, deadline, slot.pass_on())
                if delivery.deliveries <= self._max_deliveries:
                    yield delivery
                else:
                    await self._give_up(delivery)
        finally:
            await _unsubscribed(subscription)

    async def dead(self, subject: str, *, limit: int = 100) -> list[DeadLetter]:
        check_subject(subject)
        found: list[DeadLetter] = []
        sequence = 1
        while len(found) < limit:
            letter = await self._letter(subject, sequence)
            if letter is None:
                break
            sequence = letter[0] + 1
            found.append(letter[1])
        return found

    async def depth(self, subject: str) -> int:
        full = f"{self._stream}.{check_subject(subject)}"

        async def once() -> int:
            js = await self._jetstream()
            info = await js.stream_info(self._stream, subjects_filter=full)
            return int((info.state.subjects or {}).get(full, 0))

        return await self._asked(once)

    async def ready(self) -> None:
        await self._asked(self._jetstream)

    async def close(self) -> None:
        self._closed = True
        client, self._client = self._client, None
        if client is not None:
            await client.close()

    async def settle(self, raw: Any, answer: bytes) -> None:
        """Tells the server, and waits until it has heard."""

        async def once() -> None:
            await self._jetstream()
            if self._client is not None:
                await self._client.request(raw.reply, answer, timeout=self._timeout)

        await self._asked(once)

    async def bury(self, delivery: _Delivery, reason: str) -> None:
        """Into the list of the dead, then out of the queue."""
        meta = delivery.raw.metadata
        headers = {
            api.Header.MSG_ID.value: f"{meta.timestamp.timestamp()}-{meta.sequence.stream}",
            _ID: delivery.id,
            _DELIVERIES: str(min(delivery.deliveries, self._max_deliveries)),
            _REASON: _header(reason),
        }

        async def once() -> None:
            js = await self._jetstream()
            subject = f"{self._dead}.{delivery.subject}"
            await js.publish(subject, delivery.payload, timeout=self._timeout, stream=self._dead, headers=dict(headers))

        await self._asked(once)
        await self.settle(delivery.raw, b"+TERM")

    @property
    def max_deliveries(self) -> int:
        return self._max_deliveries

    async def _give_up(self, delivery: _Delivery) -> None:
        try:
            await self.bury(delivery, f"not settled in time, {self._max_deliveries} times")
        except QueueUnavailable as error:  # it comes again, and with it the next attempt
            log.warning("a message could not be given up", subject=delivery.subject, error=str(error))
        delivery.let_go()

    async def _letter(self, subject: str, sequence: int) -> tuple[int, DeadLetter] | None:
        """The first one from a sequence on, with its sequence."""

        async def once() -> tuple[int, DeadLetter] | None:
            js = await self._jetstream()
            try:
                raw = await js.get_msg(self._dead, seq=sequence, subject=f"{self._dead}.{subject}", next=True)
            except nats.js.errors.NotFoundError as error:
                if error.err_code == _NO_MESSAGE:
                    return None
                raise
            headers = raw.headers or {}
            letter = DeadLetter(
                subject,
                raw.data or b"",
                headers.get(_ID, ""),
                int(headers.get(_DELIVERIES, 0)),
                headers.get(_REASON, ""),
            )
            return raw.seq, letter

        return await self._asked(once)

    async def _subscribe(self, subject: str, deadline: float) -> Any:
        js = await self._jetstream()
        name = subject.replace(".", "=")  # a name has no points, a subject has no =
        config = api.ConsumerConfig(
            durable_name=name,
            filter_subject=f"{self._stream}.{subject}",
            ack_policy=api.AckPolicy.EXPLICIT,
            ack_wait=deadline,
            max_deliver=-1,
            max_ack_pending=-1,
        )
        await js.add_consumer(self._stream, config)
        return await js.pull_subscribe_bind(name, stream=self._stream)

    async def _asked(self, once: Callable[[], Awaitable[T]]) -> T:
        try:
            return await self._attempted(once)
        except (nats.errors.Error, OSError) as error:
            raise self._unavailable(error) from None

    async def _attempted(self, once: Callable[[], Awaitable[T]]) -> T:
        for _ in range(ATTEMPTS - 1):
            try:
                return await once()
            except (
                nats.errors.TimeoutError,
                nats.errors.NoRespondersError,
                nats.js.errors.NoStreamResponseError,
            ) as gone:
                log.info("the queue did not answer", error=self._cleaned(gone))
                self._streams_made = False  # a server that lost its disk has none
                await self._clock.sleep(PAUSE)
        return await once()

    async def _jetstream(self) -> Any:
        async with self._starting:
            if self._closed:
                raise QueueUnavailable("the queue is closed")
            if self._client is None or self._client.is_closed:
                self._client = await self._connect()
            js = self._client.jetstream(timeout=self._timeout)
            if not self._streams_made:
                for config in self._configs():
                    await _make_stream(js, config)
                self._streams_made = True
            return js

    async def _connect(self) -> NatsClient:
        client = _Client()
        last = ""
        reached = False

        async def failed(error: Exception) -> None:
            nonlocal last
            before, last = last, self._cleaned(error)
            if last != before:  # not once for each attempt
                log.info("the connection to the queue broke", place=self._place, error=last)
            if not reached and (isinstance(error, _HOPELESS) or "Authorization Violation" in str(error)):
                raise error  # out of `connect`, which would try on until the time is over

        try:
            if self._credentials is not None:
                self._credentials.check()
            async with asyncio.timeout(2 * self._timeout):
                await client.connect(
                    self._servers,
                    name="trimtab",
                    error_cb=failed,
                    connect_timeout=self._timeout,  # type: ignore[arg-type]
                    reconnect_time_wait=PAUSE,  # type: ignore[arg-type]
                    max_reconnect_attempts=-1,
                    tls=self._tls(),
                    token=None if self._token_file is None else self._token,
                    user_jwt_cb=None if self._credentials is None else self._credentials.jwt,
                    signature_cb=None if self._credentials is None else self._credentials.sign,
                )
        except (nats.errors.Error, NatsCredentialsError, OSError) as error:
            await client.close()
            raise QueueUnavailable(f"{self._place}: {last or self._cleaned(error)}") from None
        except BaseException:
            await client.close()
            raise
        reached = True
        return client

    def _configs(self) -> list[api.StreamConfig]:
        work = api.StreamConfig(
            name=self._stream,
            subjects=[f"{self._stream}.>"],
            retention=api.RetentionPolicy.WORK_QUEUE,
            discard=api.DiscardPolicy.NEW,
            discard_new_per_subject=True,
            max_msgs_per_subject=self._max_depth,
            storage=api.StorageType.FILE,
            num_replicas=self._replicas,
            duplicate_window=self._window,
        )
        dead = api.StreamConfig(
            name=self._dead,
            subjects=[f"{self._dead}.>"],
            retention=api.RetentionPolicy.LIMITS,
            discard=api.DiscardPolicy.OLD,
            max_msgs_per_subject=MAX_DEAD,
            storage=api.StorageType.FILE,
            num_replicas=self._replicas,
            duplicate_window=self._window,
        )
        return [work, dead]

    def _tls(self) -> ssl.SSLContext:
        """Also for nats://, whose server may ask for TLS."""
        return ssl.create_default_context(cafile=None if self._ca_file is None else os.fspath(self._ca_file))

    def _token(self) -> str:
        """Asked at each connection: a mounted secret is renewed in place."""
        return "" if self._token_file is None else self._token_file.read_text().strip()

    def _unavailable(self, error: Exception) -> QueueUnavailable:
        return QueueUnavailable(f"the queue at {self._place}: {self._cleaned(error)}")

    def _cleaned(self, error: Exception) -> str:
        text = f"{type(error).__name__}: {error}"
        for server in self._servers:
            parts = urlsplit(server)
            for secret in (parts.netloc.rpartition("@")[0], parts.password, unquote(parts.password or "")):
                text = text.replace(secret, "***") if secret else text
        return text


_HOPELESS = (ssl.SSLError, nats.errors.SecureConnWantedError, nats.errors.AuthorizationError)


class _Client(NatsClient):
    """The library's client, with two of its habits mended."""

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

    def _connect_command(self) -> bytes:
        """Refuses a server without TLS where TLS was asked for: the library would go on in the clear."""
        current = self._current_server
        if current is not None and current.uri.scheme == "tls" and not self._server_info.get("tls_required"):
            raise nats.errors.SecureConnWantedError
        command: bytes = super()._connect_command()
        return command


class _Delivery:
    """Fulfils `Message`."""

    def __init__(self, queue: NatsQueue, raw: Any, subject: str, deadline: float, let_go: Callable[[], None]) -> None:
        self._queue = queue
        self.raw = raw
        self.subject = subject
        self.payload: bytes = raw.data
        self.id: str = (raw.headers or {}).get(api.Header.MSG_ID.value, "")
        self.deliveries: int = raw.metadata.num_delivered
        self._deadline = deadline
        self._release = let_go
        self._settled = False
        self._timer = asyncio.get_running_loop().call_later(deadline, let_go)

    async def ack(self) -> None:
        async with self._settling() as first:
            if first:
                await self._queue.settle(self.raw, b"+ACK")

    async def nak(self, delay: float | None = None) -> None:
        async with self._settling() as first:
            if first and self.deliveries >= self._queue.max_deliveries:
                await self._queue.bury(self, f"refused {self.deliveries} times")
            elif first:
                options = b" " + json.dumps({"delay": int(delay * 1e9)}).encode() if delay else b""
                await self._queue.settle(self.raw, b"-NAK" + options)

    async def extend(self) -> None:
        if not self._settled:
            await self._queue.settle(self.raw, b"+WPI")
            self._timer.cancel()
            self._timer = asyncio.get_running_loop().call_later(self._deadline, self._release)

    async def term(self, reason: str = "") -> None:
        async with self._settling() as first:
            if first:
                await self._queue.bury(self, reason or "terminated")

    def let_go(self) -> None:
        self._timer.cancel()
        self._release()

    @contextlib.asynccontextmanager
    async def _settling(self) -> AsyncIterator[bool]:
        """Whether this is the first settling; one that failed does not count, and may be tried again."""
        first, self._settled = not self._settled, True
        try:
            yield first
        except QueueUnavailable:
            self._settled = False
            raise
        if first:
            self.let_go()


class _Slot:
    """One of the places of a consumer, to be given back once."""

    def __init__(self, slots: asyncio.Semaphore) -> None:
        self._slots = slots
        self.passed_on = False
        self._free = False

    def pass_on(self) -> Callable[[], None]:
        """Whoever gets the function gives the place back."""
        self.passed_on = True
        return self.give_back

    def give_back(self) -> None:
        if not self._free:
            self._free = True
            self._slots.release()


@contextlib.asynccontextmanager
async def _held(slots: asyncio.Semaphore) -> AsyncIterator[_Slot]:
    await slots.acquire()
    slot = _Slot(slots)
    try:
        yield slot
    finally:
        if not slot.passed_on:
            slot.give_back()


async def _make_stream(js: Any, config: api.StreamConfig) -> None:
    try:
        await js.add_stream(config)
    except nats.js.errors.BadRequestError as error:
        if error.err_code != _STREAM_DIFFERS:
            raise
        await js.update_stream(config)


async def _unsubscribed(subscription: Any) -> None:
    """What the server still sends to it comes again after the deadline."""
    if subscription is not None:
        with contextlib.suppress(nats.errors.Error):
            await subscription.unsubscribe()


def _check_servers(servers: list[str], *, secret: bool) -> None:
    for server in servers:
        parts = urlsplit(server)
        if parts.scheme not in ("nats", "tls") or not parts.hostname:
            raise ValueError("--nats must be nats://HOST[:PORT] or tls://HOST[:PORT], several with commas between")
        if (secret or parts.username) and parts.scheme != "tls" and not _is_loopback(parts.hostname):
            raise ValueError(f"--nats {_place(server)}: a token or password goes only over tls://")


def _place(server: str) -> str:
    parts = urlsplit(server)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _header(text: str) -> str:
    """What fits in a header: printable ASCII, of bounded length."""
    return re.sub(r"[^ -~]", "?", text)[:512].strip()
