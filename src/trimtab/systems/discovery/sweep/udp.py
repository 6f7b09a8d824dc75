"""A UDP probe: one datagram to each address, from one socket for each family.

An answer must come from the address and port that was asked, and be accepted by the probe; everything else is foreign,
and dropped. It counts also when it comes late, as long as the last try is not over. What a device or a router says of a
datagram by ICMP comes with the address that was asked (IP_RECVERR).
"""

from __future__ import annotations

import errno
import math
import select
import socket

from trimtab.systems.discovery.findings import Outcome
from trimtab.systems.discovery.sweep import syscalls
from trimtab.systems.discovery.sweep.job import Probe
from trimtab.systems.discovery.sweep.lane import (
    MOMENTARY,
    NO_ROUTE,
    REFUSED,
    UNREACHABLE,
    Burst,
    Item,
    Lane,
    Owner,
    Tally,
)
from trimtab.systems.discovery.sweep.sockets import Sockets

BUFFER = 16 << 20
"""Bytes that the kernel should hold for us each way; without privileges it allows less."""
MOST_AT_ONCE = 4096
"""Datagrams read from one socket in one turn, so that a flood does not stop everything else."""
_ERRORS: dict[int, tuple[int, int]] = {
    socket.AF_INET: (socket.IPPROTO_IP, 11),
    socket.AF_INET6: (socket.IPPROTO_IPV6, 25),
}
"""IP_RECVERR and IPV6_RECVERR."""
_COMPLAINTS = dict.fromkeys(REFUSED, Outcome.REFUSED) | dict.fromkeys(UNREACHABLE, Outcome.UNREACHABLE)
_FORCED = {socket.SO_RCVBUF: 33, socket.SO_SNDBUF: 32}


class Datagrams(Lane[bytes]):
    """The key is the packed address. Loops are written out here: each of them turns for every packet."""

    def __init__(self, number: int, probe: Probe, owner: Owner, tally: Tally, sockets: Sockets) -> None:
        super().__init__(number, probe, owner, tally)
        self._shared = sockets
        self._names = syscalls.Names(probe.port)
        self._outbox = syscalls.Outbox(probe.payload)
        self._own: dict[int, socket.socket] = {}
        self._put_off: Burst[bytes] = Burst(math.inf)
        """What waits to be asked again: an answer may still come."""

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

    def ready(self, fd: int, events: int) -> bool:
        inbox, accepts = self._shared.inbox, self.probe.accepts
        complaints = bool(events & select.EPOLLERR)
        for _ in range(MOST_AT_ONCE // inbox.SIZE):
            if complaints:
                heard = inbox.complaints(fd)
                for name, code in heard:
                    self._complained(self._names.host(name), code)
                complaints = bool(heard)
            received = inbox.receive(fd)
            for name, data in received:
                key = self._names.host(name)
                if key not in self._pending or (accepts is not None and not accepts(data)):
                    self._tally.foreign += 1
                elif (item := self._take(key)) is not None:
                    self._ended(key, item, Outcome.OPEN, data)
            if len(received) < inbox.SIZE and not complaints:
                return True
        return False

    def close(self) -> None:
        for each in self._own.values():
            self._shared.watched.pop(each.fileno(), None)
            each.close()
        self._own.clear()
        self._put_off.items.clear()
        self._clear()

    def expire(self, now: float) -> None:
        tries, put_off = self.probe.tries, self._put_off
        while self._bursts and self._bursts[0].deadline <= now:
            for key, item in self._bursts.popleft().items.items():
                if item.attempt < tries:
                    repeated = Item(item.place, item.attempt + 1, item.heard)
                    self.again.append(repeated)
                    put_off.items[key] = repeated
                    self._pending[key] = put_off
                else:
                    self._pending.pop(key, None)
                    self.owner.settled(item.place, self._number, item.heard)

    def _timed_out(self, key: bytes) -> Outcome:
        return Outcome.SILENT

    def _repeat(self, key: bytes, item: Item) -> None:
        super()._repeat(key, item)
        self._put_off.items[key] = item
        self._pending[key] = self._put_off

    def _complained(self, key: bytes, code: int) -> None:
        outcome = _COMPLAINTS.get(code)
        if outcome is not None and (item := self._take(key)) is not None:
            self._ended(key, item, outcome)

    def _send_some(self, count: int, burst: Burst[bytes], now: float) -> int:
        """The next ones of one family. How many were tried."""
        items: list[Item] = []
        names: list[bytes] = []
        keys: list[bytes] = []
        queue = self.fresh or self.again
        while queue and len(items) < count:
            item = queue.popleft()
            name, key = self._names.of(self.owner.address(item.place))
            if names and len(names[0]) != len(name):
                queue.appendleft(item)
                break
            if item.attempt == 1 or key in self._put_off.items:  # else it was answered meanwhile
                items.append(item)
                names.append(name)
                keys.append(key)
        if not items:
            return 0
        sent, code = self._send_to(names)
        for key, item in zip(keys[:sent], items, strict=False):
            burst.items[key] = item
            self._pending[key] = burst
            if item.attempt > 1:
                del self._put_off.items[key]
        queue.extendleft(reversed(items[sent + bool(code) :]))
        if sent:
            self._tally.sent += sent
            self._stuck_since = None
        if code:
            self._failed(keys[sent], items[sent], code, now)
        return sent + bool(code and code not in MOMENTARY)

    def _failed(self, key: bytes, item: Item, code: int, now: float) -> None:
        if code in UNREACHABLE and code != NO_ROUTE:
            self._take(key)
            self._ended(key, item, Outcome.UNREACHABLE)
        elif not self._not_sent(item, code, now):
            self._take(key)

    def _send_to(self, names: list[bytes]) -> tuple[int, int]:
        """How many went, and errno of the next one if it failed."""
        try:
            fd = self._socket(syscalls.family(names[0])).fileno()
        except OSError as error:
            return 0, error.errno or errno.EIO
        sent, code = 0, 0
        for _ in range(4):
            sent, code = self._outbox.send(fd, names)
            if code not in _COMPLAINTS:  # which may be about an earlier datagram: then the next call succeeds
                break
        return sent, code

    def _socket(self, family: int) -> socket.socket:
        found = self._own.get(family)
        if found is None:
            found = self._own[family] = socket.socket(family, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
            for option, forced in _FORCED.items():
                try:
                    found.setsockopt(socket.SOL_SOCKET, forced, BUFFER)
                except PermissionError:
                    found.setsockopt(socket.SOL_SOCKET, option, BUFFER)
            level, option = _ERRORS[family]
            found.setsockopt(level, option, 1)
            self._shared.watch(found.fileno(), self)
        return found
