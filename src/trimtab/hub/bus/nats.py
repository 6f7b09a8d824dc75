"""The bus over a stream of NATS JetStream, which gives every message a number. Needs the extra `trimtab[nats]`.

Plain subjects would be faster by a hair, but two publishers are heard in another order by different subscribers, and on a
cluster of servers a lost route loses messages without a word. A stream has one order, and a hole in its numbers shows.
The stream is kept in memory for a minute: it is no history, so a server that starts anew begins another.

What is for one replica alone (`send`) goes over a plain subject.
"""

from __future__ import annotations

import asyncio
import contextlib
from pathlib import Path
from typing import Any

import nats.errors
import nats.js.errors
from nats.js.api import AckPolicy, ConsumerConfig, DeliverPolicy, DiscardPolicy, StorageType, StreamConfig

from trimtab.hub.bus.contract import MAX_MESSAGE, BusError, Lost
from trimtab.hub.bus.inbox import Inbox
from trimtab.model.clock import Clock, SystemClock
from trimtab.runtime.queue.contract import QueueUnavailable
from trimtab.runtime.queue.nats_connection import NatsConnection

STREAM = "trimtab-hub"
KEPT = 60.0
MAX_KEPT = 64 * 1024 * 1024

_BROKEN = (OSError, nats.errors.Error, nats.js.errors.Error, QueueUnavailable, TimeoutError)


class NatsBus:
    """Fulfils `Bus`. `replicas` of the stream: 3 on a cluster, so that it survives a server."""

    def __init__(
        self,
        url: str,
        *,
        stream: str = STREAM,
        replicas: int = 1,
        credentials_file: Path | None = None,
        token_file: Path | None = None,
        ca_file: Path | None = None,
        clock: Clock | None = None,
        timeout: float = 5.0,
    ) -> None:
        self.stream = stream
        self._replicas = replicas
        self.connection = NatsConnection(
            url,
            self._prepare,
            credentials_file=credentials_file,
            token_file=token_file,
            ca_file=ca_file,
            clock=clock or SystemClock(),
            timeout=timeout,
        )

    async def open(self, replica: str) -> NatsSession:
        session = NatsSession(self, replica)
        try:
            await session.listen()
        except _BROKEN as error:
            await session.close()
            raise Lost(f"NATS cannot be reached: {self.connection.cleaned(error)}") from None
        except BaseException:
            await session.close()
            raise
        return session

    async def close(self) -> None:
        await self.connection.close()

    async def _prepare(self, js: Any) -> None:
        config = StreamConfig(
            name=self.stream,
            subjects=[f"{self.stream}.all"],
            storage=StorageType.MEMORY,
            num_replicas=self._replicas,
            max_age=KEPT,
            max_bytes=MAX_KEPT,
            discard=DiscardPolicy.OLD,
        )
        try:
            await js.stream_info(self.stream)
        except nats.js.errors.NotFoundError:
            await js.add_stream(config)


class NatsSession:
    def __init__(self, bus: NatsBus, replica: str) -> None:
        self._bus = bus
        self._inbox = Inbox()
        self._mine = f"{bus.stream}.to.{replica}"
        self._js: Any = None
        self._client: Any = None
        self._subscriptions: list[Any] = []
        self._next = 0

    async def listen(self) -> None:
        self._bus.connection.forget()  # whether the stream is there still is asked at each session
        self._js = await self._bus.connection.jetstream()
        self._client = await self._bus.connection.client()
        info = await self._js.stream_info(self._bus.stream)
        self._next = info.state.last_seq + 1
        config = ConsumerConfig(
            deliver_policy=DeliverPolicy.BY_START_SEQUENCE,
            opt_start_seq=self._next,
            ack_policy=AckPolicy.NONE,
            mem_storage=True,
            inactive_threshold=KEPT,
        )
        subject = f"{self._bus.stream}.all"
        self._subscriptions.append(
            await self._js.subscribe(
                subject, stream=self._bus.stream, cb=self._numbered, config=config, manual_ack=True
            )
        )
        self._subscriptions.append(await self._client.subscribe(self._mine, cb=self._plain))

    async def publish(self, message: bytes) -> None:
        self._check(message)
        try:
            await self._js.publish(f"{self._bus.stream}.all", message)
        except _BROKEN as error:
            why = f"NATS does not answer: {self._bus.connection.cleaned(error)}"
            self._inbox.end(why)
            raise Lost(why) from None

    async def send(self, replica: str, message: bytes) -> None:
        self._check(message)
        try:
            await self._client.publish(f"{self._bus.stream}.to.{replica}", message)
        except _BROKEN as error:
            raise Lost(f"NATS does not take a message: {self._bus.connection.cleaned(error)}") from None

    async def receive(self) -> bytes:
        return await self._inbox.get()

    async def close(self) -> None:
        self._inbox.end("the session was closed")
        for subscription in self._subscriptions:
            with contextlib.suppress(*_BROKEN):
                async with asyncio.timeout(1):
                    await subscription.unsubscribe()
        self._subscriptions.clear()

    def _check(self, message: bytes) -> None:
        self._inbox.check()
        if len(message) > MAX_MESSAGE:
            raise BusError(f"a message has at most {MAX_MESSAGE} bytes, not {len(message)}")

    async def _numbered(self, message: Any) -> None:
        number = message.metadata.sequence.stream
        if number != self._next:
            self._inbox.end(f"the stream went on at {number}, not at {self._next}")
            return
        self._next += 1
        self._inbox.put(message.data)

    async def _plain(self, message: Any) -> None:
        self._inbox.put(message.data)
