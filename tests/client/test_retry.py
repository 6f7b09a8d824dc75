"""What may be sent again: reads always, writes only when the server surely did nothing with them."""

from __future__ import annotations

import random

import pytest

from trimtab.client.retry import LONGEST_PAUSE, Failure, Policy, failure_of, pause
from trimtab.client.transport import Call


class Luckless(random.Random):
    """Always draws the longest."""

    def random(self) -> float:
        return 1.0


READ, WRITE = Call(method="GET", path="/"), Call(method="POST", path="/")


def waited(call: Call, failure: Failure, attempt: int = 1, wish: int | None = None) -> float | None:
    return pause(Policy(), call, failure, attempt, wish, chance=Luckless())


@pytest.mark.parametrize(
    ("call", "failure", "wish", "again"),
    [
        (READ, Failure.NOT_SENT, None, True),
        (READ, Failure.LOST, None, True),
        (READ, Failure.DOWN, None, True),
        (WRITE, Failure.NOT_SENT, None, True),
        (WRITE, Failure.LOST, None, False),
        (WRITE, Failure.DOWN, 1, False),
        (WRITE, Failure.BUSY, 1, True),
        (READ, Failure.BUSY, None, False),
        (READ, Failure.BUSY, 3600, False),
    ],
)
def test_only_what_is_safe_is_sent_again(call: Call, failure: Failure, wish: int | None, again: bool) -> None:
    assert (waited(call, failure, wish=wish) is not None) is again


def test_pauses_grow_up_to_a_bound() -> None:
    pauses = [pause(Policy(attempts=20), READ, Failure.LOST, n, chance=Luckless()) for n in range(1, 20)]
    assert pauses[:3] == [0.1, 0.2, 0.4]
    assert pauses[-1] == LONGEST_PAUSE


def test_what_the_server_wishes_is_heeded() -> None:
    seconds = waited(WRITE, Failure.BUSY, wish=3)
    assert seconds is not None
    assert 3 <= seconds <= 3.2


def test_after_the_last_attempt_it_gives_up() -> None:
    assert waited(READ, Failure.LOST, attempt=Policy().attempts) is None


@pytest.mark.parametrize(("code", "failure"), [(429, Failure.BUSY), (503, Failure.DOWN), (500, None), (409, None)])
def test_codes_are_sorted(code: int, failure: Failure | None) -> None:
    assert failure_of(code) is failure
