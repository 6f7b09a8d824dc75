"""Whether a failed call may be sent again, and when. Pure, but for the chance that is passed in.

A read may be repeated whatever happened to it. A write only when the server surely did nothing with it: it was never
sent, or it was turned away unread (429). What became of any other write nobody knows; the caller must look.
"""

from __future__ import annotations

import enum
import random

import msgspec

from trimtab.client.transport import Call
from trimtab.model import backoff

FIRST_PAUSE = 0.1
LONGEST_PAUSE = 10.0
LONGEST_WISH = 60  # seconds; a server that wants more is not waited for


class Failure(enum.Enum):
    """How a call failed."""

    NOT_SENT = "not sent"  # no connection came about
    LOST = "lost"  # the connection broke, or the time was over, after something was sent
    BUSY = "busy"  # 429
    DOWN = "down"  # 502, 503, 504: from a proxy, or from a server that starts or stops


class Policy(msgspec.Struct, frozen=True):
    """How often to try in all."""

    attempts: int = 5


def failure_of(code: int) -> Failure | None:
    """None for answers that a repetition would not change."""
    if code == 429:
        return Failure.BUSY
    return Failure.DOWN if code in (502, 503, 504) else None


def pause(
    policy: Policy,
    call: Call,
    failure: Failure,
    attempt: int,
    wish: int | None = None,
    chance: backoff.Chance = random,
) -> float | None:
    """Seconds to wait before the next attempt; None: give up. `attempt` counts from 1; `wish` is Retry-After."""
    if attempt >= policy.attempts:
        return None
    if failure is Failure.BUSY and wish is None:
        return None
    if failure in (Failure.LOST, Failure.DOWN) and not call.safe:
        return None
    if wish is not None:
        return wish + chance.uniform(0.0, 0.1) if wish <= LONGEST_WISH else None
    return backoff.pause(attempt - 1, FIRST_PAUSE, LONGEST_PAUSE, chance)
