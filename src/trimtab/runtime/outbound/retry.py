"""Whether a request may be sent again, and when. Pure, but for the chance that is passed in.

What was surely not sent may be sent again. What may have arrived is repeated only when it is idempotent (RFC 9110
§9.2.2), or the caller says that it is.
"""

from __future__ import annotations

import enum
import random
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from trimtab.model.backoff import pause
from trimtab.runtime.outbound.budget import Budget
from trimtab.runtime.outbound.errors import OutboundError, TimedOut, Unreachable

IDEMPOTENT = frozenset({"GET", "HEAD", "OPTIONS", "TRACE", "PUT", "DELETE"})


class Failure(enum.Enum):
    """How an attempt failed, where another may do better."""

    NOT_SENT = "not sent"
    LOST = "lost"  # the connection broke, or nothing came in time
    BUSY = "busy"  # 429, or 502, 503, 504


def failure_of(outcome: OutboundError | int) -> Failure | None:
    """None: another attempt would end the same, or there is no time for one."""
    if isinstance(outcome, int):
        return Failure.BUSY if outcome in (429, 502, 503, 504) else None
    if isinstance(outcome, TimedOut) and outcome.final:
        return None
    if isinstance(outcome, Unreachable | TimedOut):
        return Failure.LOST if outcome.sent else Failure.NOT_SENT
    return None


def pause_before_retry(
    budget: Budget, failure: Failure, attempt: int, *, idempotent: bool, wish: float | None, chance: random.Random
) -> float | None:
    """Seconds to wait before the next attempt; None: there is none. `attempt` counts from 1; `wish` is Retry-After."""
    if attempt >= budget.attempts or (failure is not Failure.NOT_SENT and not idempotent):
        return None
    if wish is not None:
        return wish if wish <= budget.longest_wish else None
    return pause(attempt - 1, budget.first_pause, budget.longest_pause, chance)


def retry_after(value: str | None, now: datetime) -> float | None:
    """Seconds of a Retry-After header in either form (RFC 9110 §10.2.3); None when it is absent or nonsense."""
    if value is None or len(value) > 64:
        return None
    value = value.strip()
    if value.isascii() and value.isdigit():
        return float(value)
    try:
        moment = parsedate_to_datetime(value)
    except (ValueError, OverflowError):
        return None
    if moment.tzinfo is None:  # "-0000", and the old forms
        moment = moment.replace(tzinfo=UTC)
    return max(0.0, (moment - now).total_seconds())
