"""The stand-in for etcd in envtest: it listens where etcd would, says that it is well, and keeps nothing.

The stand-in for kube-apiserver holds the data itself, so that this program has little to do and nothing to load: it is the
standard library's sockets, one thread, and a few bytes for each connection.
"""

from __future__ import annotations

import os
import selectors
import signal
import socket
import sys
from collections.abc import Sequence
from urllib.parse import urlsplit

from trimtab.cli.envtest_flags import Flag, Parsed, WrongFlag, parse, usage

VERSION = "3.5.21"
MAX_HEAD = 16 * 1024
MAX_CONNECTIONS = 256
BACKLOG = 128

FLAGS = {
    "listen-client-urls": Flag("list", "Where to answer; several with commas between. Default: http://localhost:2379."),
    "help": Flag("bool", "Print this."),
    "version": Flag("bool", "Print the version."),
    **{name: Flag("list") for name in ("advertise-client-urls", "listen-peer-urls", "initial-advertise-peer-urls")},
    **{name: Flag("str") for name in ("data-dir", "wal-dir", "name", "log-level", "initial-cluster", "auto-compaction-mode",
                                      "auto-compaction-retention", "initial-cluster-state", "initial-cluster-token",
                                      "logger", "log-outputs")},
    **{name: Flag("int") for name in ("snapshot-count", "quota-backend-bytes", "max-request-bytes", "max-txn-ops")},
    **{name: Flag("bool") for name in ("unsafe-no-fsync", "force-new-cluster")},
}  # fmt: skip

_ANSWERS = {
    b"/health": b'{"health":"true","reason":""}',
    b"/readyz": b"ok",
    b"/livez": b"ok",
    b"/version": b'{"etcdserver":"%b","etcdcluster":"3.5.0"}' % VERSION.encode(),
}


def main(words: Sequence[str]) -> int:
    try:
        flags = parse(words, FLAGS)
        if flags.truth("help", False):
            print(usage("etcd", "Stands in for etcd in envtest; it keeps no data: its kube-apiserver does.", FLAGS))
            return 0
        if flags.truth("version", False):
            print(f"etcd Version: {VERSION}")
            return 0
        return _serve(flags)
    except WrongFlag as error:
        print(f"etcd: {error}", file=sys.stderr)
        return 2


def _serve(flags: Parsed) -> int:
    for name in flags.unknown:
        print(f"etcd: {name} is not known to this stand-in, and ignored", file=sys.stderr)
    signal.signal(signal.SIGTERM, _leave)
    signal.signal(signal.SIGINT, _leave)
    selector = selectors.DefaultSelector()
    for url in flags.listed("listen-client-urls") or ("http://localhost:2379",):
        for listener in _listeners(url):
            selector.register(listener, selectors.EVENT_READ, None)
    open_ = 0
    while True:
        for key, _ in selector.select():
            one = key.fileobj
            assert isinstance(one, socket.socket)  # noqa: S101 - nothing else is registered
            if key.data is None:
                open_ += _accept(selector, one, open_)
            elif not _answer(one, key.data):
                selector.unregister(one)
                one.close()
                open_ -= 1


def _leave(number: int, frame: object) -> None:
    os._exit(0)  # there is nothing to put in order


def _listeners(url: str) -> list[socket.socket]:
    parts = urlsplit(url)
    try:
        port = parts.port
    except ValueError as error:
        raise WrongFlag(f'--listen-client-urls: "{url}": {error}') from None
    if parts.scheme != "http" or not parts.hostname or port is None:
        raise WrongFlag(f'--listen-client-urls: "{url}": the stand-in serves http://HOST:PORT only')
    found: list[socket.socket] = []
    try:
        for family, kind, _, _, address in socket.getaddrinfo(parts.hostname, port, type=socket.SOCK_STREAM):
            listener = socket.socket(family, kind)
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if family == socket.AF_INET6:
                listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            try:
                listener.bind(address)
            except OSError:
                listener.close()
                if found:
                    continue  # localhost may have an address that this machine cannot use
                raise
            listener.listen(BACKLOG)
            listener.setblocking(False)
            found.append(listener)
    except OSError as error:
        raise WrongFlag(f'--listen-client-urls: "{url}": {error.strerror or error}') from None
    return found


def _accept(selector: selectors.BaseSelector, listener: socket.socket, open_: int) -> int:
    try:
        connection, _ = listener.accept()
    except OSError:
        return 0
    if open_ >= MAX_CONNECTIONS:
        connection.close()
        return 0
    connection.setblocking(False)
    selector.register(connection, selectors.EVENT_READ, bytearray())
    return 1


def _answer(connection: socket.socket, pending: bytearray) -> bool:
    """Answer all requests that are whole. False when the connection is to end."""
    try:
        data = connection.recv(MAX_HEAD)
        pending += data
        while (end := pending.find(b"\r\n\r\n")) >= 0:
            connection.send(_response(bytes(pending[:end])))
            del pending[: end + 4]
    except BlockingIOError:
        return False  # it does not read what it asked for
    except OSError:
        return False
    return bool(data) and len(pending) <= MAX_HEAD


def _response(head: bytes) -> bytes:
    words = head.split(b"\r\n", 1)[0].split(b" ")
    path = words[1].split(b"?")[0] if len(words) == 3 else b""
    body = _ANSWERS.get(path) if words[0] in (b"GET", b"HEAD") else None
    code, body = (b"404 Not Found", b"404 page not found\n") if body is None else (b"200 OK", body)
    kind = b"application/json" if body.startswith(b"{") else b"text/plain; charset=utf-8"
    shown = b"" if words[0] == b"HEAD" else body
    return b"HTTP/1.1 %b\r\nContent-Type: %b\r\nContent-Length: %d\r\n\r\n%b" % (code, kind, len(body), shown)
