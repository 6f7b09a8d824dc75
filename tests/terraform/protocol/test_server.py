"""A provider that is made when it is first needed."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.terraform.plugin.small import Small
from trimtab.terraform.protocol.contract import Encoded, InvalidRequest, Message, Unimplemented
from trimtab.terraform.protocol.messages import METHODS
from trimtab.terraform.protocol.server import Endpoint, Lazy
from trimtab.terraform.protocol.wire import decode, encode


def test_it_is_made_once_however_many_ask() -> None:
    made: list[Small] = []
    together = threading.Barrier(8)

    def make() -> Small:
        made.append(Small())
        return made[0]

    lazy = Lazy(make)

    def ask(_: int) -> Message | Encoded:
        together.wait()
        return lazy.call("GetMetadata", {})

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(ask, range(8)))
    assert len(made) == 1


def test_it_is_not_made_before_it_is_needed_and_a_stop_reaches_it_when_it_is() -> None:
    made: list[Small] = []

    def make() -> Small:
        made.append(Small())
        return made[0]

    lazy = Lazy(make)
    lazy.stop()
    assert made == []
    lazy.warm()
    assert made[0].stopped.is_set()


def test_one_that_cannot_be_made_says_why_in_each_answer_that_has_room_for_it() -> None:
    def make() -> Small:
        raise ValueError("the file of kinds is gone")

    endpoint = Endpoint(Lazy(make))
    answer = endpoint("/tfplugin6.Provider/GetProviderSchema", b"")
    (told,) = decode(answer, METHODS["GetProviderSchema"][1])["diagnostics"]
    assert told == {"severity": 1, "summary": "The provider could not start", "detail": "the file of kinds is gone"}
    with pytest.raises(RuntimeError, match="the file of kinds is gone"):
        endpoint("/tfplugin6.Provider/CallFunction", b"")


def test_an_endpoint_answers_its_own_protocol_only() -> None:
    endpoint = Endpoint(Small())
    request = encode({"name": "x", "arguments": []}, METHODS["CallFunction"][0])
    for path in ("/tfplugin5.Provider/CallFunction", "/tfplugin6.Provider/Nothing", "/CallFunction", ""):
        with pytest.raises(Unimplemented):
            endpoint(path, request)
    with pytest.raises(InvalidRequest):
        endpoint("/tfplugin6.Provider/CallFunction", request[:-1] + b"\xff\xff")
    with pytest.raises(ValueError, match="5 or 6, not 7"):
        Endpoint(Small(), 7)


def test_stop_is_passed_on_and_answered() -> None:
    small = Small()
    assert Endpoint(small)("/tfplugin6.Provider/StopProvider", b"") == b""
    assert small.stopped.is_set()
    assert small.calls == []
