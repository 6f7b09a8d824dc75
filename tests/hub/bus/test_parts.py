"""Messages in parts."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trimtab.hub.bus.contract import Lost
from trimtab.hub.bus.inbox import Inbox
from trimtab.hub.bus.parts import Joiner, split


@given(message=st.binary(max_size=3000), limit=st.integers(64, 400))
def test_parts_are_short_and_make_the_message_again(message: bytes, limit: int) -> None:
    parts = split(message, "abc", limit)
    assert all(len(part) <= limit for part in parts)
    joiner = Joiner()
    *before, whole = [joiner.add(part) for part in parts]
    assert set(before) <= {None}
    assert whole == message


def test_messages_whose_parts_come_between_each_other_are_told_apart() -> None:
    one, two = split(b"1" * 300, "one", 100), split(b"2" * 300, "two", 100)
    joiner = Joiner()
    whole = [joiner.add(part) for pair in zip(one, two, strict=True) for part in pair]
    assert [message for message in whole if message] == [b"1" * 300, b"2" * 300]


@pytest.mark.parametrize("part", ["", "x", "a/b/c:d", "a/1/2:zz", "a/0/1:%%%", "a/5/2:zz"])
def test_what_is_no_part_is_refused(part: str) -> None:
    with pytest.raises(ValueError, match="part"):
        Joiner().add(part)


@given(st.text(max_size=60))
def test_whatever_comes_does_no_harm(part: str) -> None:
    joiner = Joiner()
    with contextlib.suppress(ValueError):
        joiner.add(part)
    assert joiner.add(split(b"fine", "other", 100)[0]) == b"fine"


async def test_who_does_not_keep_up_has_lost_the_session() -> None:
    inbox = Inbox(limit=2)
    for message in (b"1", b"2", b"3"):
        inbox.put(message)
    with pytest.raises(Lost, match="does not keep up"):
        await inbox.get()
