"""Takes connections, each in a thread of its own, until it is closed.

A connection is a stranger's until its TLS handshake is done. A stranger has a few seconds for it, and when there are too many
the oldest goes: whoever opens connections and says nothing stands in nobody's way. One that was let in may be idle for ever.
Without TLS nobody is a stranger, and the folder of the socket says who may come.
"""

from __future__ import annotations

import contextlib
import socket
import ssl
import sys
import threading
from typing import Final

from trimtab.terraform.plugin.http2 import Connection, Handler
from trimtab.terraform.plugin.link import Broken, Link

CONNECTIONS: Final = 64
"""Terraform opens one."""
STRANGERS: Final = 64
"""Connections that are at their handshake at once."""
PATIENCE: Final = 5.0
"""Seconds that a stranger has for it: Terraform needs some milliseconds."""


class Listening:
    def __init__(
        self,
        listener: socket.socket,
        handler: Handler,
        context: ssl.SSLContext | None,
        *,
        patience: float = PATIENCE,
    ) -> None:
        self._listener = listener
        self._handler = handler
        self._context = context
        self._patience = patience
        self._lock = threading.Lock()
        self._strangers: dict[Link, None] = {}
        """The oldest first."""
        self._connections: dict[Link, Connection] = {}
        self._closed = False

    def start(self) -> None:
        threading.Thread(target=self._accept, name="accept", daemon=True).start()

    def close(self, *, goodbye: bool = False) -> None:
        with self._lock:
            self._closed = True
            strangers, connections = list(self._strangers), dict(self._connections)
        with contextlib.suppress(OSError):  # not every system lets a listener be shut down; it is closed in any case
            self._listener.shutdown(socket.SHUT_RDWR)  # wakes the thread that waits in accept
        self._listener.close()
        for link, connection in connections.items():
            if goodbye:
                link.hurry()
                with contextlib.suppress(Broken):  # it has gone first
                    connection.goodbye()
            link.close()
        for link in strangers:
            link.close()

    def _accept(self) -> None:
        while True:
            try:
                sock, _ = self._listener.accept()
            except OSError:
                if self._closed:
                    return
                continue  # a peer that went away before it was taken
            link = Link(sock)
            too_many = self._meet(link)
            if too_many is not None:
                too_many.close()
            if too_many is not link:
                threading.Thread(target=self._serve, args=(link,), name="connection", daemon=True).start()

    def _meet(self, link: Link) -> Link | None:
        """Counts a stranger in, and gives the one that has to go for it."""
        with self._lock:
            if self._closed:
                return link
            self._strangers[link] = None
            if len(self._strangers) <= STRANGERS:
                return None
            oldest = next(iter(self._strangers))
            del self._strangers[oldest]
            return oldest

    def _serve(self, link: Link) -> None:
        try:
            if self._context is not None:
                link.secure(self._context, within=self._patience)
            connection = Connection(link, self._handler)
            if self._let_in(link, connection):
                connection.run()
        except Broken as error:
            print(f"a client was refused: {error}", file=sys.stderr)
        finally:
            link.close()
            with self._lock:
                self._strangers.pop(link, None)
                self._connections.pop(link, None)

    def _let_in(self, link: Link, connection: Connection) -> bool:
        with self._lock:
            if link not in self._strangers:
                return False  # it had to go for another one
            del self._strangers[link]
            if self._closed or len(self._connections) >= CONNECTIONS:
                return False
            self._connections[link] = connection
            return True
