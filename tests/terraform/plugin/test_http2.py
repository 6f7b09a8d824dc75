"""Peers that behave badly: each loses its own connection, and the others notice nothing."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Iterator
from pathlib import Path

import h2.config
import h2.connection
import h2.events
import h2.settings
import pytest

from trimtab.terraform.plugin.client import Client
from trimtab.terraform.plugin.grpc import frame
from trimtab.terraform.plugin.link import Link
from trimtab.terraform.plugin.listening import CONNECTIONS, Listening
from trimtab.terraform.plugin.pool import THREADS
from trimtab.terraform.plugin.services import plugin_service

HEADERS = [
    (":method", "POST"),
    (":scheme", "http"),
    (":path", "/test/Large"),
    (":authority", "x"),
    ("content-type", "application/grpc"),
    ("te", "trailers"),
]
LARGE = b"y" * 2_000_000
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[str]:
    path = str(tmp_path / "s")
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(path)
    listener.listen(128)
    calls = lambda path, body: LARGE if path == "/test/Large" else body  # noqa: E731
    service = plugin_service(calls, shutdown=lambda: None, largest=3 << 20)
    listening = Listening(listener, service, None)
    listening.start()
    yield path
    listening.close()


@pytest.fixture
def good(server: str) -> Iterator[Client]:
    """A client that was there before, and must not notice."""
    sock = raw(server)
    sock.settimeout(None)
    client = Client(Link(sock))
    assert client.call("/test/Echo", b"before") == b"before"
    yield client
    assert client.call("/test/Echo", b"after") == b"after"
    assert client.call("/test/Large", b"") == LARGE
    client.close()


def raw(path: str) -> socket.socket:
    sock = socket.socket(socket.AF_UNIX)
    sock.connect(path)
    sock.settimeout(30)
    return sock


def end_of(sock: socket.socket) -> bytes:
    """All that still comes."""
    data = b""
    while True:
        try:
            part = sock.recv(65536)
        except ConnectionError:
            return data
        if not part:
            return data
        data += part


class Peer:
    """A client with its hands on h2."""

    def __init__(self, path: str, **settings: int) -> None:
        self.sock = raw(path)
        self.h2 = h2.connection.H2Connection(h2.config.H2Configuration(validate_outbound_headers=False))
        values = {getattr(h2.settings.SettingCodes, name): value for name, value in settings.items()}
        self.h2.local_settings = h2.settings.Settings(initial_values=values)
        self.h2.initiate_connection()
        self.flush()

    def flush(self) -> None:
        self.sock.sendall(self.h2.data_to_send())

    def ask(self, stream: int, headers: list[tuple[str, str]] = HEADERS, body: bytes = frame(b"")) -> None:
        self.h2.send_headers(stream, headers)
        self.h2.send_data(stream, body, end_stream=True)
        self.flush()

    def events(self) -> list[h2.events.Event]:
        data = self.sock.recv(65536)
        return self.h2.receive_data(data) if data else []

    def until(self, kind: type[h2.events.Event]) -> h2.events.Event:
        while True:
            events = self.events()
            assert events, "the connection ended"
            for event in events:
                if isinstance(event, kind):
                    return event
            self.flush()


@pytest.mark.parametrize(
    "nonsense",
    [
        b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\0" * 40,  # a TLS handshake
        PREFACE + b"\0\0\0\x04\0\0\0\0\0" + b"\x00\xff\xff\x00\x00\x00\x00\x00\x01" + b"x" * 65535,  # a frame too large
        PREFACE + b"\0\0\0\x04\0\0\0\0\0" + b"\0\0\x04\x01\x04\0\0\0\x01" + b"\xff\xff\xff\xff",  # no such header
        PREFACE + b"\0\0\0\x04\0\0\0\0\0" + b"\0\0\x01\x00\x01\0\0\0\x01x",  # data of no stream
        PREFACE + b"\0\0\x01\x04\0\0\0\0\0x",  # settings that are none
    ],
    ids=["http1", "tls", "large", "header", "no stream", "settings"],
)
def test_a_peer_that_does_not_speak_http2_is_let_go(good: Client, server: str, nonsense: bytes) -> None:
    with raw(server) as sock:
        sock.sendall(nonsense)
        end_of(sock)  # it comes


def test_headers_that_are_no_text_are_passed_over(good: Client, server: str) -> None:
    peer = Peer(server)
    odd = [(name.encode(), value.encode()) for name, value in HEADERS] + [(b"x-odd", b"\xff\xfe")]
    peer.ask(1, odd)  # type: ignore[arg-type]
    event = peer.until(h2.events.ResponseReceived)
    assert isinstance(event, h2.events.ResponseReceived)
    peer.sock.close()


def test_a_peer_that_dies_in_the_middle_of_a_frame_is_forgotten(good: Client, server: str) -> None:
    for _ in range(CONNECTIONS + 10):
        with raw(server) as sock:
            sock.sendall(PREFACE + b"\0\0\x10\x04")


def test_a_peer_that_reads_nothing_holds_up_nobody(good: Client, server: str) -> None:
    peer = Peer(server, INITIAL_WINDOW_SIZE=1 << 24)
    peer.h2.increment_flow_control_window(1 << 24)
    for number in range(THREADS + 20):
        peer.ask(1 + 2 * number)
    assert good.call("/test/Large", b"") == LARGE
    peer.sock.close()


def test_an_answer_waits_for_the_peer_s_window_and_goes_on_with_it(good: Client, server: str) -> None:
    peer = Peer(server, INITIAL_WINDOW_SIZE=10)
    peer.ask(1)
    first = peer.until(h2.events.DataReceived)
    assert isinstance(first, h2.events.DataReceived)
    assert len(first.data or b"") == 10
    got = len(first.data or b"")
    peer.h2.increment_flow_control_window(1 << 24, stream_id=1)
    peer.h2.increment_flow_control_window(1 << 24)
    peer.flush()
    ended = False
    while not ended:
        for event in peer.events():
            got += len(event.data or b"") if isinstance(event, h2.events.DataReceived) else 0
            ended = ended or isinstance(event, h2.events.StreamEnded)
    assert got == len(LARGE) + 5
    peer.sock.close()


def test_an_answer_that_waits_ends_with_its_stream(good: Client, server: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trimtab.terraform.plugin.pool.Pool.__init__.__defaults__", (2,))
    peer = Peer(server, INITIAL_WINDOW_SIZE=10)
    for number in range(10):  # two threads can begin ten answers only if they are free again
        peer.ask(1 + 2 * number)
        peer.until(h2.events.DataReceived)
        peer.h2.reset_stream(1 + 2 * number)
        peer.flush()
    peer.sock.close()


def test_the_threads_of_a_connection_end_with_it(good: Client, server: str) -> None:
    before = set(threading.enumerate())
    peer = Peer(server, INITIAL_WINDOW_SIZE=10)
    for number in range(10):
        peer.ask(1 + 2 * number)
        peer.until(h2.events.DataReceived)
    own = set(threading.enumerate()) - before
    assert len(own) == 11  # ten wait with their answers, one reads
    peer.sock.close()
    for thread in own:
        thread.join(30)
        assert not thread.is_alive()


def test_pings_are_answered(good: Client, server: str) -> None:
    peer = Peer(server)
    peer.h2.ping(b"12345678")
    peer.flush()
    event = peer.until(h2.events.PingAckReceived)
    assert isinstance(event, h2.events.PingAckReceived)
    assert event.ping_data == b"12345678"
    peer.sock.close()


def test_a_peer_that_floods_with_pings_and_never_reads_is_let_go(good: Client, server: str) -> None:
    sock = raw(server)
    sock.sendall(PREFACE + b"\0\0\0\x04\0\0\0\0\0")
    pings = b"\0\0\x08\x06\0\0\0\0\0abcdefgh" * 1000
    sock.settimeout(2)
    try:
        for _ in range(2000):
            sock.sendall(pings)
    except (TimeoutError, ConnectionError):
        pass  # either it was let go, or it is no longer read from: nothing grows
    else:
        pytest.fail("34 MB of pings were taken by a server that could not answer one")
    sock.close()


def test_a_peer_that_says_goodbye_is_let_go_at_once(good: Client, server: str) -> None:
    """Clients of gRPC say it when they close; they do not wait for what they have asked."""
    peer = Peer(server, INITIAL_WINDOW_SIZE=10)
    peer.ask(1)
    peer.until(h2.events.DataReceived)
    peer.sock.sendall(b"\0\0\x08\x07\0\0\0\0\0" + struct.pack(">II", 0, 0))
    end_of(peer.sock)
    peer.sock.close()


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ([(":method", "GET"), *HEADERS[1:]], "405"),
        ([*HEADERS[:4], ("content-type", "text/html")], "415"),
        (HEADERS[:4], "415"),
    ],
)
def test_a_request_that_is_not_grpc_is_refused(
    good: Client, server: str, headers: list[tuple[str, str]], status: str
) -> None:
    peer = Peer(server)
    peer.ask(1, headers)
    event = peer.until(h2.events.ResponseReceived)
    assert isinstance(event, h2.events.ResponseReceived)
    assert (b":status", status.encode()) in [(bytes(name), bytes(value)) for name, value in event.headers or ()]
    peer.sock.close()


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"", b"3"),
        (b"\0\0\0\0", b"3"),
        (frame(b"a") + frame(b"b"), b"3"),
        (b"\0\0\0\0\x09abc", b"3"),
        (b"\1\0\0\0\x01a", b"12"),
    ],
)
def test_a_body_that_is_not_one_message_is_refused(good: Client, server: str, body: bytes, code: bytes) -> None:
    peer = Peer(server)
    peer.ask(1, HEADERS, body)
    event = peer.until(h2.events.ResponseReceived)
    assert isinstance(event, h2.events.ResponseReceived)
    assert (b"grpc-status", code) in [(bytes(name), bytes(value)) for name, value in event.headers or ()]
    peer.sock.close()


def test_streams_that_are_opened_and_reset_at_once_cost_nothing(good: Client, server: str) -> None:
    peer = Peer(server)
    for number in range(3000):
        peer.h2.send_headers(1 + 2 * number, HEADERS)
        peer.h2.reset_stream(1 + 2 * number)
        peer.flush()
    peer.h2.ping(b"12345678")
    peer.flush()
    peer.until(h2.events.PingAckReceived)
    peer.sock.close()


def test_large_requests_that_never_end_are_refused_when_they_are_too_many(good: Client, server: str) -> None:
    peer = Peer(server)
    body = frame(b"x" * (2 << 20))[:-1]
    refused = []
    for number in range(10):
        stream = 1 + 2 * number
        peer.h2.send_headers(stream, HEADERS)
        left = body
        while left and stream not in refused:
            room = min(peer.h2.local_flow_control_window(stream), peer.h2.max_outbound_frame_size, len(left))
            if room:
                peer.h2.send_data(stream, left[:room])
                left = left[room:]
                peer.flush()
            else:
                refused += [event.stream_id for event in peer.events() if isinstance(event, h2.events.ResponseReceived)]
        if refused:
            break
    assert refused, "20 MB were taken and held"
    peer.sock.close()
