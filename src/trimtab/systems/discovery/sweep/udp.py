"""A UDP probe: one datagram to each address, from one socket for each family.

An answer must come from the address and port that was asked, and be accepted by the probe; everything else is foreign,
and dropped. What a router says of a datagram is not heard: the socket is not connected.
"""

from __future__ import annotations

import socket

from trimtab.systems.discovery.findings import Outcome
from trimtab.systems.discovery.sweep import syscalls
from trimtab.systems.discovery.sweep.job import Probe
from trimtab.systems.discovery.sweep.lane import MOMENTARY, Burst, Item, Lane, Owner, Tally
from trimtab.systems.discovery.sweep.sockets import Sockets

BUFFER = 16 << 20
"""Bytes that the kernel should hold for us each way; without privileges it allows less."""
MOST_AT_ONCE = 4096
"""Datagrams read from one socket in one turn, so that a flood does not stop everything else."""
_FORCED = {socket.SO_RCVBUF: 33, socket.SO_SNDBUF: 32}


class Datagrams(Lane[bytes]):
    """The key is the endpoint: port and address."""

    def __init__(self, number: int, probe: Probe, owner: Owner, tally: Tally, sockets: Sockets) -> None:
        super().__init__(number, probe, owner, tally)
        self._shared = sockets
        self._outbox = syscalls.Outbox(probe.payload)
        self._own: dict[int, socket.socket] = {}

    def wants(self, now: float) -> int:
        return 0 if now < self._paused_until else self.waiting

    def send(self, packets: int, now: float) -> int:
        burst: Burst[bytes] = Burst(now + self.probe.timeout)
        tried = 0
        while tried < packets and self.waiting and now >= self._paused_until:
            tried += self._send_some(min(packets - tried, self._outbox.SIZE), burst, now)
        if burst.items:
            self._bursts.append(burst)
        return tried

    def ready(self, fd: int) -> bool:
        accepts = self.probe.accepts
        for _ in range(MOST_AT_ONCE // self._shared.inbox.SIZE):
            received = self._shared.inbox.receive(fd)
            for name, data in received:
                key = syscalls.endpoint(name)
                if key not in self._pending or (accepts is not None and not accepts(data)):
                    self._tally.foreign += 1
                elif (item := self._take(key)) is not None:
                    self._ended(item, Outcome.OPEN, data)
            if len(received) < self._shared.inbox.SIZE:
                return True
        return False

    def close(self) -> None:
        for each in self._own.values():
            self._shared.watched.pop(each.fileno(), None)
            each.close()
        self._own.clear()
        self._clear()

    def _timed_out(self, key: bytes) -> Outcome:
        return Outcome.SILENT

    def _send_some(self, count: int, burst: Burst[bytes], now: float) -> int:
        """The next ones of one family. How many were tried; at least one."""
        items: list[Item] = []
        names: list[bytes] = []
        while self.waiting and len(items) < count:
            name = syscalls.sockaddr(self.owner.address(self._first().place), self.probe.port)
            if names and len(names[0]) != len(name):
                break
            items.append(self._next())
            names.append(name)
        try:
            fd = self._socket(syscalls.family(names[0])).fileno()
        except OSError as error:
            sent, code = 0, error.errno or 0
        else:
            sent, code = self._outbox.send(fd, names)
        for item, name in zip(items[:sent], names, strict=False):
            self._sent(burst, syscalls.endpoint(name), item)
        for item in reversed(items[sent + bool(code) :]):
            self._put_back(item)
        if code:
            self._not_sent(items[sent], code, now)
        return sent + bool(code and code not in MOMENTARY)

    def _socket(self, family: int) -> socket.socket:
        found = self._own.get(family)
        if found is None:
            found = self._own[family] = socket.socket(family, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
            for option, forced in _FORCED.items():
                try:
                    found.setsockopt(socket.SOL_SOCKET, forced, BUFFER)
                except PermissionError:
                    found.setsockopt(socket.SOL_SOCKET, option, BUFFER)
            self._shared.watch(found.fileno(), self)
        return found
