"""A server that is down, overloaded, in trouble, or no such server at all."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.terraform.kinds.scripted import Reply, Server, answer, hang_up, scripted, stream
from trimtab.terraform.kinds import api as module
from trimtab.terraform.kinds import patience
from trimtab.terraform.kinds.access import Settings, access
from trimtab.terraform.kinds.api import ATTEMPTS, Api, ApiError, Unreachable
from trimtab.terraform.kinds.patience import Interrupted
from trimtab.terraform.kinds.watching import Unchunked
from trimtab.testing.ports import free_ports


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """As they are, only a hundred times shorter."""
    monkeypatch.setattr(module, "FIRST_PAUSE", 0.0025)
    monkeypatch.setattr(module, "LONGEST_PAUSE", 0.08)


@contextmanager
def talking(*script: Reply, cancelled: threading.Event | None = None) -> Iterator[tuple[Api, Server]]:
    with scripted(*script) as server, closing(to(server.url, cancelled)) as api:
        yield api, server


def to(url: str, cancelled: threading.Event | None = None) -> Api:
    return Api(access(Settings(endpoint=url, token="t"), {}), cancelled=cancelled)


@pytest.mark.row(62)
@pytest.mark.parametrize("trouble", [answer(429, Retry_After="1"), answer(500), answer(502), answer(503), hang_up])
def test_trouble_that_passes_is_waited_out(trouble: Reply) -> None:
    with talking(trouble, trouble, answer(200, {"a": 1})) as (api, server):
        assert api.get("/x") == {"a": 1}
        assert len(server.requests) == 3


@pytest.mark.row(62)
def test_trouble_that_stays_ends_in_the_servers_own_words() -> None:
    with talking(answer(503, {"message": "on strike"})) as (api, server):
        with pytest.raises(ApiError, match="on strike"):
            api.get("/x")
        assert len(server.requests) == ATTEMPTS


def test_nobody_there_is_said_with_the_address() -> None:
    url = f"http://127.0.0.1:{free_ports(1)[0]}"
    with closing(to(url)) as api, pytest.raises(Unreachable, match=url):
        api.get("/x")


@pytest.mark.parametrize(("code", "status"), [(403, {}), (422, {}), (500, {"kind": "Status", "code": 500})])
def test_a_refusal_is_not_repeated(code: int, status: dict[str, Any]) -> None:
    with talking(answer(code, {**status, "message": "no"})) as (api, server):
        with pytest.raises(ApiError, match="no"):
            api.get("/x")
        assert len(server.requests) == 1


def test_an_interrupt_ends_the_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "FIRST_PAUSE", 3600.0)
    monkeypatch.setattr(module, "LONGEST_PAUSE", 3600.0)
    cancelled = threading.Event()

    def interrupted(connection: socket.socket, line: str) -> None:
        cancelled.set()
        answer(503)(connection, line)

    with talking(interrupted, cancelled=cancelled) as (api, _), pytest.raises(Interrupted):
        api.get("/x")


HEAD = b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{"


@pytest.mark.parametrize("said", [b"", HEAD], ids=["before an answer", "in the middle of one"])
def test_an_interrupt_ends_a_read_whose_server_is_silent(said: bytes) -> None:
    cancelled = threading.Event()

    def silent(connection: socket.socket, _: str) -> None:
        connection.sendall(said)
        cancelled.set()

    with talking(silent, cancelled=cancelled) as (api, server):
        with pytest.raises(Interrupted, match=r"interrupted while the server was silent$"):
            api.get("/x")
        assert len(server.requests) == 1


def test_the_answer_to_a_write_is_waited_for_though_terraform_was_interrupted() -> None:
    cancelled = threading.Event()

    def late(connection: socket.socket, line: str) -> None:
        cancelled.set()
        time.sleep(1)
        answer(201, {"metadata": {}})(connection, line)

    with talking(late, cancelled=cancelled) as (api, _):
        assert api.apply("/x", {}).code == 201


def test_the_answer_to_a_write_is_not_waited_for_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patience, "GRACE", 0.5)
    cancelled = threading.Event()
    doubt = "whether it did what it was asked is not known"
    with talking(lambda *_: cancelled.set(), cancelled=cancelled) as (api, _), pytest.raises(Interrupted, match=doubt):
        api.apply("/x", {})


def test_a_server_that_stays_silent_is_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patience, "SILENCE", 0.3)
    with talking(lambda *_: None, answer(200, {"a": 1})) as (api, server):
        assert api.get("/x") == {"a": 1}
        assert len(server.requests) == 2


def test_an_answer_in_slow_pieces_is_read_to_its_end() -> None:
    def slow(connection: socket.socket, _: str) -> None:
        for piece in (b"HTTP/1.1 200 OK\r\nConte", b"nt-Length: 8\r\nConnection: close\r\n\r\n", b'{"a"', b": 1}"):
            connection.sendall(piece)
            time.sleep(0.5)

    with talking(slow) as (api, _):
        assert api.get("/x") == {"a": 1}


def test_an_answer_that_was_lost_is_known_to_be_perhaps_the_second() -> None:
    with talking(hang_up, answer(200, {"metadata": {}})) as (api, _):
        assert api.apply("/x", {}).repeated
    with talking(answer(201, {"metadata": {}})) as (api, _):
        assert not api.apply("/x", {}).repeated


@pytest.mark.parametrize("body", [b"<html>", b"[]", b"\xff"])
def test_what_is_no_object_is_an_error_and_no_crash(body: bytes) -> None:
    with talking(answer(200, body)) as (api, _), pytest.raises(ApiError, match="no JSON object"):
        api.get("/x")


@pytest.mark.parametrize("body", [{}, {"metadata": None}, {"metadata": ["x"]}, {"metadata": {"name": 1}}])
def test_an_object_without_a_name_is_an_error_and_no_crash(body: dict[str, Any]) -> None:
    with talking(answer(200, body)) as (api, _), pytest.raises(ApiError, match="no object: it has no metadata"):
        api.find("/x")
    with talking(answer(200, {"items": [body]})) as (api, _), pytest.raises(ApiError, match="no object"):
        list(api.list("/x"))


@pytest.mark.parametrize("page", [{"items": {"a": 1}}, {"items": "x"}, {"items": [], "metadata": ["x"]}])
def test_a_list_that_is_none_is_an_error_and_no_crash(page: dict[str, Any]) -> None:
    with talking(answer(200, page)) as (api, _), pytest.raises(ApiError, match="no list of objects"):
        list(api.list("/x"))
    with talking(answer(200, {"items": ["junk"]})) as (api, _), pytest.raises(ApiError, match="no object"):
        list(api.list("/x"))


def test_causes_are_told_field_by_field() -> None:
    status = {
        "message": "invalid",
        "details": {"causes": [{"field": "spec.a", "message": "too long", "reason": "FieldValueInvalid"}, "junk"]},
    }
    with talking(answer(422, status)) as (api, _):
        with pytest.raises(ApiError) as refused:
            api.get("/x")
        assert refused.value.causes == [("spec.a", "too long", "FieldValueInvalid")]


def test_pages_are_followed() -> None:
    one, two = ({"metadata": {"name": name}} for name in ("one", "two"))
    first = answer(200, {"items": [one], "metadata": {"continue": "more"}})
    with talking(first, answer(200, {"items": [two], "metadata": {}})) as (api, server):
        assert list(api.list("/x", {"labelSelector": "a=b"})) == [one, two]
        assert "continue=more" in server.requests[1]
        assert "labelSelector=a%3Db" in server.requests[1]


def test_connections_are_used_again() -> None:
    with talking(answer(200, {})) as (api, server):
        for _ in range(5):
            api.get("/x")
        assert len(server._connections) == 1


def test_many_threads_share_one_client() -> None:
    with talking(answer(200, {"a": 1})) as (api, server):
        found: list[Any] = []
        threads = [threading.Thread(target=lambda: found.append(api.get("/x"))) for _ in range(20)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert found == [{"a": 1}] * 20
        assert len(server.requests) == 20


def test_a_watch_gives_events_as_they_come_however_they_are_cut() -> None:
    text = b'{"type":"ADDED","object":{"n":1}}\n{"type":"DELETED","object":{"n":2}}\n'
    with talking(stream(text[:7], text[7:40], text[40:])) as (api, _):
        events = list(api.watch("/x", {}, within=30, cancelled=threading.Event()))
    assert [(event.type, event.object["n"]) for event in events] == [("ADDED", 1), ("DELETED", 2)]


def test_a_watch_of_known_length_ends_with_its_last_byte() -> None:
    with talking(answer(200, b'{"type":"ADDED","object":{"n":1}}\n')) as (api, _):
        (event,) = api.watch("/x", {}, within=3600, cancelled=threading.Event())
    assert event.object == {"n": 1}


def test_a_watch_ends_when_it_is_told_to() -> None:
    cancelled = threading.Event()
    with talking(stream(b'{"type":"ADDED","object":{}}\n', end=False)) as (api, _):
        for _ in api.watch("/x", {}, within=3600, cancelled=cancelled):
            cancelled.set()


def test_a_watch_ends_when_its_time_is_up() -> None:
    with talking(stream(end=False)) as (api, _):
        assert list(api.watch("/x", {}, within=0.3, cancelled=threading.Event())) == []


def test_a_watch_that_is_refused_is_one_error() -> None:
    with talking(answer(410, {"reason": "Expired"})) as (api, _):
        (event,) = api.watch("/x", {}, within=3600, cancelled=threading.Event())
    assert (event.type, event.object["reason"]) == ("ERROR", "Expired")


@given(st.lists(st.binary(min_size=1, max_size=20), max_size=5), st.integers(1, 7))
def test_chunks_come_off_wherever_the_bytes_are_cut(pieces: list[bytes], step: int) -> None:
    coded = b"".join(f"{len(piece):x};x=1\r\n".encode() + piece + b"\r\n" for piece in pieces) + b"0\r\n\r\n"
    decoder = Unchunked()
    content = b"".join(decoder.feed(coded[at : at + step]) for at in range(0, len(coded), step))
    assert content == b"".join(pieces)
    assert decoder.done


@pytest.mark.row(60)
@pytest.mark.parametrize(
    "said",
    [
        b"404 page not found",
        {"kind": "Status", "reason": "NotFound", "message": "the server could not find the requested resource"},
    ],
)
def test_a_kind_that_is_not_served_is_no_object_that_is_gone(said: Any) -> None:
    with talking(answer(404, said)) as (api, _), pytest.raises(ApiError):
        api.find("/apis/gone.example.com/v1/harbours/one")


@pytest.mark.row(60)
def test_an_object_that_is_gone_is_none() -> None:
    said = {"kind": "Status", "reason": "NotFound", "details": {"name": "one", "kind": "harbours"}}
    with talking(answer(404, said)) as (api, _):
        assert api.find("/apis/ports.example.com/v1/harbours/one") is None


def test_an_answer_that_is_cut_off_is_asked_for_again() -> None:
    def cut(connection: socket.socket, _: str) -> None:
        connection.sendall(b'HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{"a"')
        connection.shutdown(socket.SHUT_RDWR)

    with talking(cut, answer(200, {"a": 1})) as (api, server):
        assert api.get("/x") == {"a": 1}
        assert len(server.requests) == 2
