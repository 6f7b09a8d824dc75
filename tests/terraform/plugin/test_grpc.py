"""Our gRPC server against the gRPC of Google's, which knows nothing of us."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import grpc
import pytest

from tests.terraform.plugin.small import Small, attribute, schema
from trimtab.terraform.plugin.client import Client
from trimtab.terraform.plugin.grpc import RESOURCE_EXHAUSTED, UNAVAILABLE, Status, percent
from trimtab.terraform.plugin.identity import Identity
from trimtab.terraform.plugin.link import Link
from trimtab.terraform.plugin.listening import Listening
from trimtab.terraform.plugin.services import plugin_service
from trimtab.terraform.plugin.tls import client_context, server_context
from trimtab.terraform.protocol.contract import InvalidRequest, Message, Unimplemented
from trimtab.terraform.protocol.messages import METHODS
from trimtab.terraform.protocol.server import Endpoint
from trimtab.terraform.protocol.wire import decode, encode

LARGEST = 8 << 20


class Echo:
    """Answers with the request, after what a test wants to happen first."""

    def __init__(self) -> None:
        self.first: Callable[[bytes], object] = lambda body: None

    def __call__(self, path: str, body: bytes) -> bytes:
        if path != "/test.Echo/Say":
            raise Unimplemented(path)
        self.first(body)
        return body


@pytest.fixture
def echo() -> Echo:
    return Echo()


@pytest.fixture
def shut_down() -> threading.Event:
    return threading.Event()


@pytest.fixture
def server(tmp_path: Path, echo: Echo, shut_down: threading.Event) -> Iterator[str]:
    path = str(tmp_path / "s")
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(path)
    listener.listen(16)
    service = plugin_service(echo, shutdown=shut_down.set, largest=LARGEST)
    listening = Listening(listener, service, None)
    listening.start()
    yield path
    listening.close()


@pytest.fixture
def channel(server: str) -> Iterator[grpc.Channel]:
    options = [("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1)]
    with grpc.insecure_channel(f"unix:{server}", options=options) as opened:
        yield opened


@pytest.fixture
def client(server: str) -> Iterator[Client]:
    made = Client(dial(server))
    yield made
    made.close()


def dial(path: str) -> Link:
    sock = socket.socket(socket.AF_UNIX)
    sock.connect(path)
    return Link(sock)


def say(channel: grpc.Channel, body: bytes, path: str = "/test.Echo/Say", **more: float) -> bytes:
    answer: bytes = channel.unary_unary(path)(body, timeout=more.get("timeout", 30))
    return answer


@pytest.mark.parametrize("size", [0, 1, 16_384, 65_535, 65_536, 3_000_000, LARGEST])
def test_messages_of_any_size_come_back_whole(channel: grpc.Channel, client: Client, size: int) -> None:
    body = bytes(index * 7 % 256 for index in range(min(size, 65_536))) * (size // 65_536 or 1)
    body = (body + b"x" * size)[:size]
    assert say(channel, body) == body
    assert client.call("/test.Echo/Say", body) == body


@pytest.mark.parametrize("size", [16_384, 16_385, 100_000, 3_000_000])
def test_messages_of_any_size_come_back_whole_over_tls(
    tmp_path: Path, echo: Echo, identity: Identity, size: int
) -> None:
    pem = Path(identity.path).read_text()
    certificate = pem[: pem.index("-----BEGIN PRIVATE")]
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(tmp_path / "t"))
    listener.listen(1)
    service = plugin_service(echo, shutdown=lambda: None)
    listening = Listening(listener, service, server_context(identity.path, certificate))
    listening.start()
    link = dial(str(tmp_path / "t"))
    link.secure(client_context(identity.path, ssl.PEM_cert_to_DER_cert(certificate)), "localhost")
    client = Client(link)
    body = bytes(index * 7 % 251 for index in range(size))
    assert client.call("/test.Echo/Say", body) == body
    client.close()
    listening.close()


def test_a_hundred_calls_run_side_by_side(channel: grpc.Channel, echo: Echo) -> None:
    together = threading.Barrier(100)
    echo.first = lambda body: together.wait(60)
    with ThreadPoolExecutor(100) as threads:
        answers = list(threads.map(lambda number: say(channel, b"%d" % number, timeout=60), range(100)))
    assert answers == [b"%d" % number for number in range(100)]


def test_our_client_makes_a_hundred_calls_side_by_side(client: Client, echo: Echo) -> None:
    together = threading.Barrier(100)
    echo.first = lambda body: together.wait(60)
    with ThreadPoolExecutor(100) as threads:
        answers = list(threads.map(lambda number: client.call("/test.Echo/Say", b"%d" % number * 9999), range(100)))
    assert answers == [b"%d" % number * 9999 for number in range(100)]


@pytest.mark.parametrize(
    ("raises", "code"),
    [
        (InvalidRequest("no such thing: ü 100%\n"), grpc.StatusCode.INVALID_ARGUMENT),
        (Unimplemented("it"), grpc.StatusCode.UNIMPLEMENTED),
        (ZeroDivisionError("no such thing: ü 100%\n"), grpc.StatusCode.INTERNAL),
        (RecursionError("no such thing: ü 100%\n"), grpc.StatusCode.INTERNAL),
    ],
)
def test_what_a_call_raises_becomes_a_status_and_the_next_one_works(
    channel: grpc.Channel, echo: Echo, raises: Exception, code: grpc.StatusCode
) -> None:
    def fail(body: bytes) -> None:
        if body == b"fail":
            raise raises

    echo.first = fail
    with pytest.raises(grpc.RpcError) as error:
        say(channel, b"fail")
    assert error.value.code() == code
    if code != grpc.StatusCode.UNIMPLEMENTED:
        assert "no such thing: ü 100%\n" in error.value.details()
    assert say(channel, b"fine") == b"fine"


def test_a_message_that_is_too_large_is_refused_before_it_is_held(channel: grpc.Channel, client: Client) -> None:
    with pytest.raises(grpc.RpcError) as error:
        say(channel, b"x" * (LARGEST + 1))
    assert error.value.code() == grpc.StatusCode.RESOURCE_EXHAUSTED
    assert f"{LARGEST} bytes" in error.value.details()
    assert say(channel, b"fine") == b"fine"
    with pytest.raises(Status) as status:
        client.call("/test.Echo/Say", b"x" * (LARGEST + 1))
    assert status.value.code == RESOURCE_EXHAUSTED
    assert client.call("/test.Echo/Say", b"fine") == b"fine"


def test_a_call_that_is_cancelled_leaves_the_connection_as_it_was(channel: grpc.Channel, echo: Echo) -> None:
    begun, go_on = threading.Event(), threading.Event()

    def hold(body: bytes) -> None:
        if len(body) > 10:
            begun.set()
            go_on.wait(30)

    echo.first = hold
    call = channel.unary_unary("/test.Echo/Say").future(b"x" * 1_000_000)
    assert begun.wait(30)
    call.cancel()
    go_on.set()
    assert say(channel, b"fine") == b"fine"


def test_go_plugin_s_health_is_answered(channel: grpc.Channel) -> None:
    check = "/grpc.health.v1.Health/Check"
    assert say(channel, b"\x0a\x06plugin", check) == b"\x08\x01"
    assert say(channel, b"", check) == b"\x08\x01"
    with pytest.raises(grpc.RpcError) as error:
        say(channel, b"\x0a\x05other", check)
    assert error.value.code() == grpc.StatusCode.NOT_FOUND


def test_go_plugin_s_streams_are_held_open_beside_calls(channel: grpc.Channel) -> None:
    spoken = threading.Event()

    def knocks() -> Iterator[bytes]:
        yield b"\x08\x01"
        spoken.wait(30)

    broker = channel.stream_stream("/plugin.GRPCBroker/StartStream")(knocks())
    output = channel.unary_stream("/plugin.GRPCStdio/StreamStdio")(b"")
    assert output.initial_metadata() is not None
    assert say(channel, b"fine") == b"fine"
    assert broker.is_active()
    assert output.is_active()
    spoken.set()
    assert list(broker) == []  # it ends when the client has no more to say
    assert broker.code() == grpc.StatusCode.OK
    output.cancel()


def test_shutdown_is_answered_first(channel: grpc.Channel, shut_down: threading.Event) -> None:
    assert say(channel, b"", "/plugin.GRPCController/Shutdown") == b""
    assert shut_down.wait(10)


def test_our_client_hears_a_stream_of_messages_of_google_s_server(tmp_path: Path) -> None:
    class Talks(grpc.GenericRpcHandler):
        def service(self, details: grpc.HandlerCallDetails) -> grpc.RpcMethodHandler:
            return grpc.unary_stream_rpc_method_handler(
                lambda request, context: iter([b"one", b"x" * 200_000, b"three"])
            )

    server = grpc.server(ThreadPoolExecutor(2), handlers=[Talks()])
    server.add_insecure_port(f"unix:{tmp_path / 'g'}")
    server.start()
    client = Client(dial(str(tmp_path / "g")))
    heard: list[bytes] = []
    done = threading.Event()

    def hear(message: bytes) -> None:
        heard.append(message)
        if message == b"three":
            done.set()

    client.listen("/plugin.GRPCStdio/StreamStdio", hear)
    assert done.wait(30)
    assert heard == [b"one", b"x" * 200_000, b"three"]
    client.close()
    server.stop(None).wait()


def test_a_client_learns_at_once_that_its_server_died(client: Client, echo: Echo, server: str) -> None:
    echo.first = lambda body: client.link._socket.shutdown(socket.SHUT_RDWR)
    with pytest.raises(Status) as error:
        client.call("/test.Echo/Say", b"anyone?")
    assert error.value.code == UNAVAILABLE
    with pytest.raises(Status):
        client.call("/test.Echo/Say", b"anyone?")


def test_a_provider_s_large_schema_comes_whole(tmp_path: Path) -> None:
    class Large(Small):
        def GetProviderSchema(self, request: Message) -> Message:
            many = schema(*(attribute(f"a{index}", description="x" * 100, optional=True) for index in range(500)))
            return {"resource_schemas": {f"large_{index}": many for index in range(60)}}

    table = METHODS["GetProviderSchema"][1]
    path = str(tmp_path / "s")
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(path)
    listener.listen(1)
    listening = Listening(listener, plugin_service(Endpoint(Large()), shutdown=lambda: None), None)
    listening.start()
    with grpc.insecure_channel(f"unix:{path}", options=[("grpc.max_receive_message_length", -1)]) as channel:
        answer = say(channel, b"", "/tfplugin6.Provider/GetProviderSchema")
    listening.close()
    assert len(answer) > 3_000_000
    assert answer == encode(Large().GetProviderSchema({}), table)
    assert len(decode(answer, table)["resource_schemas"]) == 60


def test_a_provider_is_told_what_is_wrong_with_a_request(tmp_path: Path) -> None:
    endpoint = Endpoint(Small())
    with pytest.raises(InvalidRequest, match="cut short"):
        endpoint("/tfplugin6.Provider/ReadResource", b"\x0a\xff")
    with pytest.raises(Unimplemented):
        endpoint("/tfplugin5.Provider/ReadResource", b"")


def test_text_in_headers_is_printable() -> None:
    assert percent("50% of ü\n") == "50%25 of %C3%BC%0A"
