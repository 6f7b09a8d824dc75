"""A TCP probe: connect without blocking, and see whether it succeeds.

A connection that opened is reset at once: nothing is said on it, and neither side keeps anything. A connect whose time
is over is asked once more by getpeername before it counts as silent. A retransmission is a new connect.

Caveat: the kernel repeats a SYN itself after one second, so a probe with a longer timeout sends a few packets more than
the budget counts.
"""

from __future__ import annotations

import errno

from trimtab.systems.discovery.findings import Outcome
from trimtab.systems.discovery.sweep import syscalls
from trimtab.systems.discovery.sweep.job import Probe
from trimtab.systems.discovery.sweep.lane import NO_ROUTE, REFUSED, UNREACHABLE, Burst, Item, Lane, Owner, Tally
from trimtab.systems.discovery.sweep.sockets import Sockets


class Connects(Lane[int]):
    """The key is the socket."""

    def __init__(self, number: int, probe: Probe, owner: Owner, tally: Tally, sockets: Sockets) -> None:
        super().__init__(number, probe, owner, tally)
        self._streams = sockets.streams
        self._watched = sockets.watched
        self._names = syscalls.Names(probe.port)

    def wants(self, now: float) -> int:
        return 0 if now < self._paused_until else min(self.waiting, self._streams.free)

    def send(self, packets: int, now: float) -> int:
        burst: Burst[int] = Burst(now + self.probe.timeout)
        streams, tried = self._streams, 0
        while tried < packets and self.waiting and streams.free > 0:
            item = self._next()
            name, _ = self._names.of(self.owner.address(item.place))
            fd, code = streams.open(syscalls.family(name))
            if code:
                if self._not_sent(item, code, now):
                    break
                continue
            tried += 1
            code = streams.connect(fd, name)
            if code == errno.EINPROGRESS:
                self._watched[fd] = self
                self._sent(burst, fd, item)
            elif not self._ended_at_once(fd, code, item, now):
                break
        if burst.items:
            self._bursts.append(burst)
        return tried

    def ready(self, fd: int, events: int) -> bool:
        item = self._take(fd)
        del self._watched[fd]
        if item is not None:
            self._ended(fd, item, self._conclude(fd, self._streams.error(fd)))
        return True

    def close(self) -> None:
        for fd in self._pending:
            del self._watched[fd]
            self._streams.close(fd)
        self._clear()

    def _timed_out(self, fd: int) -> Outcome:
        del self._watched[fd]
        if self._streams.connected(fd):
            self._tally.late += 1
            return self._conclude(fd, 0)
        return self._conclude(fd, self._streams.error(fd) or errno.ETIMEDOUT)

    def _ended_at_once(self, fd: int, code: int, item: Item, now: float) -> bool:
        """False when the lane must pause."""
        if code == 0 or code in REFUSED or (code in UNREACHABLE and code != NO_ROUTE):
            self._tally.sent += 1
            self._stuck_since = None
            self._ended(fd, item, self._conclude(fd, code))
            return True
        self._streams.close(fd)
        return not self._not_sent(item, code, now)

    def _conclude(self, fd: int, code: int) -> Outcome:
        """Closes the socket of a connect that ended so."""
        if code == 0:
            self._streams.reset(fd)
            return Outcome.OPEN
        self._streams.close(fd)
        if code in REFUSED:
            return Outcome.REFUSED
        return Outcome.UNREACHABLE if code in UNREACHABLE else Outcome.SILENT
