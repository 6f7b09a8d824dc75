"""A bus within one process, for tests of what goes over a bus, and for several hubs in one process."""

from __future__ import annotations

import asyncio

from trimtab.hub.bus.contract import MAX_MESSAGE, BusError
from trimtab.hub.bus.inbox import Inbox


class LocalBus:
    """Fulfils `Bus`."""

    def __init__(self) -> None:
        self._sessions: dict[str, LocalSession] = {}

    async def open(self, replica: str) -> LocalSession:
        if (before := self._sessions.get(replica)) is not None:
            before.inbox.end("this replica opened another session")
        session = LocalSession(self, replica)
        self._sessions[replica] = session
        return session

    async def close(self) -> None:
        for session in list(self._sessions.values()):
            await session.close()

    def deliver(self, message: bytes) -> None:
        for session in self._sessions.values():
            session.inbox.put(message)

    def deliver_to(self, replica: str, message: bytes) -> None:
        if (session := self._sessions.get(replica)) is not None:
            session.inbox.put(message)

    def leave(self, session: LocalSession) -> None:
        if self._sessions.get(session.replica) is session:
            del self._sessions[session.replica]


class LocalSession:
    def __init__(self, bus: LocalBus, replica: str) -> None:
        self.replica = replica
        self.inbox = Inbox()
        self._bus = bus

    async def publish(self, message: bytes) -> None:
        self.inbox.check()
        if len(message) > MAX_MESSAGE:
            raise BusError(f"a message has at most {MAX_MESSAGE} bytes, not {len(message)}")
        self._bus.deliver(message)
        await asyncio.sleep(0)  # others hear it no later than on a real bus

    async def send(self, replica: str, message: bytes) -> None:
        self.inbox.check()
        self._bus.deliver_to(replica, message)

    async def receive(self) -> bytes:
        return await self.inbox.get()

    async def close(self) -> None:
        self.inbox.end("the session was closed")
        self._bus.leave(self)
