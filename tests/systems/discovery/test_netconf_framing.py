"""NETCONF's framings: however a stream is cut, the messages are the same, and what is malformed is an error."""

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trimtab.systems.discovery.identify.netconf_framing import (
    END,
    BadFraming,
    Chunked,
    Decoder,
    EndOfMessage,
    chunked,
    ended,
)

MESSAGES = st.lists(st.binary(max_size=40).filter(lambda message: END not in message + END[:-1]), max_size=5)
CUTS = st.lists(st.integers(0, 400), max_size=12)


def pieces(stream: bytes, cuts: list[int]) -> list[bytes]:
    places = [0, *sorted(cut for cut in cuts if cut < len(stream)), len(stream)]
    return [stream[a:b] for a, b in itertools.pairwise(places)]


def decoded(decoder: Decoder, parts: list[bytes]) -> list[bytes]:
    return [message for part in parts for message in decoder.feed(part)]


@given(MESSAGES, CUTS)
@settings(max_examples=100)
def test_messages_of_1_0_come_out_however_they_are_cut(messages: list[bytes], cuts: list[int]) -> None:
    stream = b"".join(ended(message) for message in messages)
    assert decoded(EndOfMessage(), pieces(stream, cuts)) == messages


@given(st.lists(st.lists(st.binary(min_size=1, max_size=40), min_size=1, max_size=4), max_size=4), CUTS)
@settings(max_examples=100)
def test_messages_of_1_1_come_out_however_they_are_cut(messages: list[list[bytes]], cuts: list[int]) -> None:
    stream = b"".join(b"".join(b"\n#%d\n%b" % (len(c), c) for c in chunks) + b"\n##\n" for chunks in messages)
    assert decoded(Chunked(), pieces(stream, cuts)) == [b"".join(chunks) for chunks in messages]


@given(st.binary(max_size=60), CUTS)
@settings(max_examples=150)
def test_any_bytes_give_the_same_result_however_they_are_cut(stream: bytes, cuts: list[int]) -> None:
    def outcome(parts: list[bytes]) -> tuple[list[bytes], bool]:
        decoder, messages = Chunked(limit=1000), []
        try:
            for part in parts:
                messages.extend(decoder.feed(part))
        except BadFraming:
            return messages, True
        return messages, False

    assert outcome(pieces(stream, cuts))[1] == outcome([stream])[1]


@given(st.binary(min_size=1, max_size=100))
def test_what_is_framed_by_1_1_is_read_by_it(message: bytes) -> None:
    assert list(Chunked().feed(chunked(message))) == [message]


@pytest.mark.parametrize(
    "stream",
    [
        b"<hello/>",
        b"\n<hello/>",
        b"\n#0\n",
        b"\n#01\nx",
        b"\n#-1\nx",
        b"\n#+1\nx",
        b"\n# 1\nx",
        b"\n#\nx",
        b"\n#x\nx",
        b"\n##\n",
        b"\n#3\nabc\n##x\n",
        b"\n#4294967296\n",
        b"\n#99999999999999999999",
        b"\n#3\nabcd\n##\n",
        b"\n#\xd9\xa1\nx",
    ],
)
def test_malformed_chunks_are_errors(stream: bytes) -> None:
    with pytest.raises(BadFraming):
        list(Chunked().feed(stream))


def test_a_message_before_a_malformed_chunk_is_given() -> None:
    decoder = Chunked().feed(chunked(b"good") + b"bad")
    assert next(decoder) == b"good"
    with pytest.raises(BadFraming):
        next(decoder)


@pytest.mark.parametrize("decoder", [EndOfMessage(limit=10), Chunked(limit=10)])
def test_a_message_over_the_limit_is_an_error_before_all_of_it_came(decoder: Decoder) -> None:
    with pytest.raises(BadFraming):
        list(decoder.feed(b"\n#11\n" + b"x" * 12))


def test_what_comes_behind_a_hello_is_kept_for_the_next_framing() -> None:
    decoder = EndOfMessage()
    assert list(decoder.feed(ended(b"<hello/>") + chunked(b"more"))) == [b"<hello/>"]
    assert list(Chunked().feed(decoder.rest())) == [b"more"]
