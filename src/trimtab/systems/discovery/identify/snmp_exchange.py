"""One question and its answer over UDP, with retransmission.

The socket is connected: only the device's own port is heard, and a port that is closed says so at once. A datagram that
`read` makes nothing of (a late answer to another question) is passed over; the time does not start again for it.
"""

from __future__ import annotations

import asyncio
import functools
import re
import socket
from collections.abc import Callable
from typing import Any, TypeVar

from trimtab.model.duration import Duration
from trimtab.systems.discovery.identify.snmp_messages import LARGEST
from trimtab.systems.discovery.kinds import TargetConnectionProfileSpec

MOST_PASSED_OVER = 64

_IPV4 = re.compile(r"(?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)(?:\.(?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)){3}", re.ASCII)

T = TypeVar("T")


class Exchange:
    """A UDP socket to one device. OSError when our machine has none to give, or does not know the address."""

    def __init__(self, address: str, port: int) -> None:
        family, place = _place(address, port)
        self._socket = socket.socket(family, socket.SOCK_DGRAM)
        try:
            self._socket.setblocking(False)
            self._socket.connect(place)
        except OSError:
            self._socket.close()
            raise

    async def ask(self, question: bytes, read: Callable[[bytes], T | None], *, each: float, attempts: int) -> T:
        """What `read` makes of the first answer. TimeoutError after all attempts; OSError when there is nobody; and what
        `read` raises."""
        loop = asyncio.get_running_loop()
        for attempt in range(attempts):
            self._socket.send(question)
            try:
                async with asyncio.timeout(each):
                    for _ in range(MOST_PASSED_OVER):
                        answer = read(await loop.sock_recv(self._socket, LARGEST))
                        if answer is not None:
                            return answer
            except TimeoutError:
                if attempt + 1 == attempts:
                    raise
        raise TimeoutError

    def close(self) -> None:
        self._socket.close()


def _place(address: str, port: int) -> tuple[socket.AddressFamily, tuple[Any, ...]]:
    """Where to connect to. OSError when it is not an IP address: a name would be looked up, and block everyone."""
    if _IPV4.fullmatch(address):  # nearly always, and much faster than to ask the system
        return socket.AF_INET, (address, port)
    flags = socket.AI_NUMERICHOST  # it knows scopes, as in fe80::1%eth0
    family, _, _, _, place = socket.getaddrinfo(address, port, type=socket.SOCK_DGRAM, flags=flags)[0]
    return family, place


def patience(profile: TargetConnectionProfileSpec) -> tuple[float, int]:
    """How long to wait for an answer, and how often to ask for it: together the profile's timeout."""
    attempts = 1 + profile.probe_retries
    return max(seconds(profile.timeout), 0.001) / attempts, attempts


@functools.lru_cache(maxsize=256)
def seconds(duration: Duration) -> float:
    """A duration is read from its text; a sweep asks for the same one for each of thousands of devices."""
    return duration.seconds
