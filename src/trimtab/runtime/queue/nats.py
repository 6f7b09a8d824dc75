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
import json
import re
import uuid
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import nats.errors
import nats.js.errors
from nats.js import api

from trimtab.model.clock import Clock, SystemClock
from trimtab.model.logs import log
from trimtab.runtime.queue.contract import (
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
from trimtab.runtime.queue.nats_connection import PAUSE, NatsConnection

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
        self._stream = stream
        self._dead = f"{stream}-dead"
        self._clock = clock or SystemClock()
        self._max_depth = max_depth
        self._max_deliveries = max_deliveries
        self._max_payload = max_payload
        self._window = window
        self._replicas = replicas
        self._nats = NatsConnection(
            url,
            self._make_streams,
            credentials_file=credentials_file,
            token_file=token_file,
            ca_file=ca_file,
            clock=self._clock,
            timeout=timeout,
        )

    def __repr__(self) -> str:
        return f"NatsQueue({self._nats.place!r}, stream={self._stream!r})"

    async def publish(self, subject: str, payload: bytes, *, id: str = "") -> bool:  # noqa: A002
        check_subject(subject)
        if len(payload) > self._max_payload:
            raise PayloadTooLarge(len(payload), self._max_payload)
        # An id makes a repetition harmless, so each message has one.
        headers = {api.Header.MSG_ID.value: check_id(id) or uuid.uuid4().hex}

        async def once() -> bool:
            js = await self._nats.jetstream()
            acknowledged = await js.publish(
                f"{self._stream}.{subject}",
                payload,
                timeout=self._nats.timeout,
                stream=self._stream,
                headers=dict(headers),
            )
            return not acknowledged.duplicate

        try:
            return await self._nats.attempted(once)
        except nats.errors.MaxPayloadError:
            raise PayloadTooLarge(len(payload), self._nats.max_payload) from None
        except nats.js.errors.APIError as error:
            if error.err_code == _STORE_FAILED:
                raise QueueFull(subject, self._max_depth) from None
            raise self._nats.unavailable(error) from None
        except (nats.errors.Error, OSError) as error:
            raise self._nats.unavailable(error) from None

    async def consume(self, subject: str, *, concurrency: int = 1, deadline: float = 60.0) -> AsyncIterator[Message]:
        check_subject(subject)
        slots = asyncio.Semaphore(concurrency)
        subscription: Any = None
        try:
            while not self._nats.closed:
                _heed_cancellation()
                async with _held(slots) as slot:
                    try:
                        if subscription is None:
                            subscription = await self._subscribe(subject, deadline)
                        [raw] = await subscription.fetch(1, timeout=POLL)
                    except nats.errors.TimeoutError:
                        continue  # nothing came, or the server was away
                    except (nats.errors.Error, QueueUnavailable, OSError) as error:
                        if self._nats.closed:
                            return
                        log.warning("the queue is away", subject=subject, error=self._nats.cleaned(error))
                        await _unsubscribed(subscription)
                        subscription = None
                        self._nats.forget()
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
            js = await self._nats.jetstream()
            info = await js.stream_info(self._stream, subjects_filter=full)
            return int((info.state.subjects or {}).get(full, 0))

        return await self._nats.asked(once)

    async def ready(self) -> None:
        await self._nats.asked(self._nats.jetstream)

    async def close(self) -> None:
        await self._nats.close()

    async def settle(self, raw: Any, answer: bytes) -> None:
        """Tells the server, and waits until it has heard."""
        await self._nats.request(raw.reply, answer)

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
            js = await self._nats.jetstream()
            subject = f"{self._dead}.{delivery.subject}"
            await js.publish(
                subject, delivery.payload, timeout=self._nats.timeout, stream=self._dead, headers=dict(headers)
            )

        await self._nats.asked(once)
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
            js = await self._nats.jetstream()
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

        return await self._nats.asked(once)

    async def _subscribe(self, subject: str, deadline: float) -> Any:
        js = await self._nats.jetstream()
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

    async def _make_streams(self, js: Any) -> None:
        for config in self._configs():
            await _make_stream(js, config)

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


def _heed_cancellation() -> None:
    """The library swallows some, and whoever waits for the end of the task would wait for ever."""
    task = asyncio.current_task()
    if task is not None and task.cancelling():
        raise asyncio.CancelledError


async def _unsubscribed(subscription: Any) -> None:
    """What the server still sends to it comes again after the deadline."""
    if subscription is not None:
        with contextlib.suppress(nats.errors.Error):
            await subscription.unsubscribe()


def _header(text: str) -> str:
    """What fits in a header: printable ASCII, of bounded length."""
    return re.sub(r"[^ -~]", "?", text)[:512].strip()
