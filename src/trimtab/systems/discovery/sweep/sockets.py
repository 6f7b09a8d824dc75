"""What all lanes of the thread share: one epoll, the TCP sockets, the buffer for datagrams, and who waits for which."""

from __future__ import annotations

import select

from trimtab.systems.discovery.sweep.job import MAX_DATAGRAM
from trimtab.systems.discovery.sweep.lane import AnyLane
from trimtab.systems.discovery.sweep.syscalls import Inbox, Streams


class Sockets:
    """Made and used in the thread of the sweep."""

    def __init__(self, limit: int) -> None:
        self.epoll = select.epoll()
        self.streams = Streams(self.epoll.fileno(), limit)
        self.inbox = Inbox(MAX_DATAGRAM)
        self.watched: dict[int, AnyLane] = {}

    def watch(self, fd: int, lane: AnyLane) -> None:
        """For datagrams. A TCP socket is watched from its connect on."""
        self.epoll.register(fd, select.EPOLLIN)
        self.watched[fd] = lane
