"""Connections that do not show who they are: they are let go, and never stand in Terraform's way."""

from __future__ import annotations

import contextlib
import socket
import ssl
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from trimtab.terraform.plugin.client import Client
from trimtab.terraform.plugin.identity import Identity
from trimtab.terraform.plugin.link import Link
from trimtab.terraform.plugin.listening import STRANGERS, Listening
from trimtab.terraform.plugin.services import plugin_service
from trimtab.terraform.plugin.tls import client_context, server_context


class Door:
    """A server that echoes over TLS, and two ways to its socket."""

    def __init__(self, path: Path, identity: Identity) -> None:
        self._path, self._identity = str(path), identity
        pem = Path(identity.path).read_text()
        self._certificate = pem[: pem.index("-----BEGIN PRIVATE")]

    @contextlib.contextmanager
    def serving(self, patience: float) -> Iterator[None]:
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(self._path)
        listener.listen(64)
        service = plugin_service(lambda path, body: body, shutdown=lambda: None)
        context = server_context(self._identity.path, self._certificate)
        listening = Listening(listener, service, context, patience=patience)
        listening.start()
        try:
            yield
        finally:
            listening.close()

    def stranger(self) -> socket.socket:
        sock = socket.socket(socket.AF_UNIX)
        sock.connect(self._path)  # waits for its turn, which it would not with a timeout
        sock.settimeout(30)
        return sock

    def friend(self) -> Client:
        link = Link(self.stranger())
        link.secure(client_context(self._identity.path, ssl.PEM_cert_to_DER_cert(self._certificate)), "localhost")
        return Client(link)


@pytest.fixture
def door(tmp_path: Path, identity: Identity) -> Door:
    return Door(tmp_path / "s", identity)


@contextlib.contextmanager
def crowd(door: Door, number: int) -> Iterator[list[socket.socket]]:
    with contextlib.ExitStack() as stack:
        yield [stack.enter_context(door.stranger()) for _ in range(number)]


def test_a_crowd_of_idle_connections_does_not_keep_terraform_out(door: Door) -> None:
    with door.serving(patience=600), crowd(door, STRANGERS + 6):
        client = door.friend()
        assert client.call("/test.Echo/Say", b"hello") == b"hello"
        client.close()


def test_a_crowd_of_idle_connections_does_not_end_one_that_was_let_in(door: Door) -> None:
    with door.serving(patience=600):
        client = door.friend()
        with crowd(door, 2 * STRANGERS):
            assert client.call("/test.Echo/Say", b"hello") == b"hello"
        client.close()


def test_of_too_many_strangers_the_oldest_goes(door: Door) -> None:
    with door.serving(patience=600), crowd(door, STRANGERS + 1) as (oldest, next_, *_):
        assert oldest.recv(1) == b""
        next_.settimeout(0.1)
        with pytest.raises(TimeoutError):
            next_.recv(1)


def test_a_stranger_that_says_nothing_is_let_go_when_patience_is_over(door: Door) -> None:
    with door.serving(patience=0.2), crowd(door, 1) as (silent,):
        assert silent.recv(1) == b""


def test_a_stranger_that_says_a_byte_now_and_then_gets_no_more_time(door: Door) -> None:
    with door.serving(patience=0.5), crowd(door, 1) as (slow,):
        said = threading.Thread(target=trickle, args=(slow,), daemon=True)
        said.start()
        assert slow.recv(1) == b""
        said.join(30)


def trickle(sock: socket.socket) -> None:
    """The beginning of a TLS record that would hold 16 KiB, a byte at a time."""
    with contextlib.suppress(OSError):  # it was let go
        for byte in b"\x16\x03\x01\x40\x00\x01" + bytes(300):
            sock.sendall(bytes([byte]))
            time.sleep(0.05)


def test_one_that_was_let_in_may_be_idle_for_as_long_as_it_likes(door: Door) -> None:
    with door.serving(patience=0.2):
        client = door.friend()
        time.sleep(0.5)
        assert client.call("/test.Echo/Say", b"hello") == b"hello"
        client.close()
