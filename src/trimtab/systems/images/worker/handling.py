"""What a handler of messages is, and what it is given to work with."""

from __future__ import annotations

from typing import Protocol, TypeVar

import msgspec

from trimtab.client.protocol import Client
from trimtab.model.clock import Clock
from trimtab.runtime.credentials import Credentials
from trimtab.runtime.workers import Workers
from trimtab.storage.blobs import Blobs
from trimtab.storage.scratch import Scratch
from trimtab.systems.images.messages import Message
from trimtab.systems.images.registry.connections import Connections

M = TypeVar("M", bound=Message, contravariant=True)


class Tools(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """What the workers of one process share. `name` tells this worker from all others."""

    name: str
    client: Client
    clock: Clock
    blobs: Blobs
    scratch: Scratch
    workers: Workers
    connections: Connections
    credentials: Credentials


class Later(Exception):  # noqa: N818 - it reads as what happened
    """Not now: hand the message out again after so many seconds."""

    def __init__(self, why: str, seconds: float) -> None:
        super().__init__(why)
        self.seconds = seconds


class Handler(Protocol[M]):
    """Does what a message asks for. What it raises is tried again, until the queue's limit of deliveries."""

    async def handle(self, message: M) -> None:
        """Do it, or find that it is done or no longer wanted. Later when somebody else is at it."""
        ...

    async def give_up(self, message: M, why: str) -> None:
        """It was tried too often, perhaps by workers that died of it: write down that it failed."""
        ...
