"""List, then watch, for ever: the whole state of a kind and every change to it, across lost connections.

Life: LISTING → WATCHING → (the stream ends) WATCHING from the last revision → (410, the revision is gone) LISTING.

Guarantees: after each `Listing` come all changes since it, in order. After a new `Listing` what is not in it is
deleted: the caller compares. No change is missed; one may be seen twice around a resume.

Failures of the network are waited out with growing pauses, and so is a server that ends each watch at once. Refusals
that may pass (401, 403, 404) are raised after `patience` in a row; those that cannot (a wrong selector) at once. All
that is waited out is told to `failed`, with the pause that follows.
"""

from __future__ import annotations

import enum
import random
from collections.abc import AsyncGenerator, Callable
from typing import Any, overload

from trimtab.client.protocol import AnyKind, Client, Event, EventType, Listing, Query, R
from trimtab.model import backoff
from trimtab.model.clock import Clock, SystemClock
from trimtab.model.errors import StatusError

FIRST_PAUSE, LONGEST_PAUSE = 0.1, 30.0
ALIVE = 1.0  # seconds; a watch that lasted as long was a good one, also when nothing happened
PASSING, HOPELESS = (401, 403, 404), (400, 405, 406, 422)


class Phase(enum.Enum):
    """What is being done."""

    LISTING = "listing"
    WATCHING = "watching"


class Outcome(enum.Enum):
    """How a phase ended."""

    LISTED = "listed"
    ENDED = "ended"  # the server closed the watch, as it does after a while
    EXPIRED = "expired"
    FAILED = "failed"


def after(phase: Phase, outcome: Outcome) -> Phase:
    """The next phase. Pure."""
    if outcome is Outcome.EXPIRED:
        return Phase.LISTING
    if outcome is Outcome.LISTED:
        return Phase.WATCHING
    return phase


@overload
def follow(
    client: Client,
    kind: type[R],
    query: Query = ...,
    *,
    patience: int = ...,
    clock: Clock | None = ...,
    failed: Callable[[Exception, float], None] | None = ...,
    bookmarks: bool = ...,
) -> AsyncGenerator[Listing[R] | Event[R], None]: ...
@overload
def follow(
    client: Client,
    kind: AnyKind,
    query: Query = ...,
    *,
    patience: int = ...,
    clock: Clock | None = ...,
    failed: Callable[[Exception, float], None] | None = ...,
    bookmarks: bool = ...,
) -> AsyncGenerator[Listing[Any] | Event[Any], None]: ...


async def follow(
    client: Client,
    kind: AnyKind,
    query: Query = Query(),  # noqa: B008 - frozen
    *,
    patience: int = 5,
    clock: Clock | None = None,
    failed: Callable[[Exception, float], None] | None = None,
    bookmarks: bool = False,
) -> AsyncGenerator[Listing[Any] | Event[Any], None]:
    """Yields a Listing, then Events; a new Listing whenever the past was lost. Bookmarks are told only
    when they are asked for: they say that all is well, about once a minute."""
    clock = clock or SystemClock()
    phase, revision = Phase.LISTING, ""
    failures = refusals = 0
    while True:
        began, outcome = clock.monotonic(), Outcome.FAILED
        problem: Exception | None = None
        try:
            if phase is Phase.LISTING:
                listing = await client.list(kind, query)
                revision, outcome, refusals = listing.revision, Outcome.LISTED, 0
                yield listing
            else:
                events = client.watch(kind, query, revision)
                try:
                    async for event in events:
                        revision, failures, refusals = event.revision, 0, 0
                        if bookmarks or event.type is not EventType.BOOKMARK:
                            yield event
                finally:
                    await events.aclose()
                outcome = Outcome.ENDED
        except StatusError as error:
            if error.code in HOPELESS or (error.code in PASSING and refusals >= patience):
                raise
            refusals += error.code in PASSING
            problem = error
            outcome = Outcome.EXPIRED if error.code == 410 else Outcome.FAILED
        except (OSError, TimeoutError) as error:
            problem = error
        pause = backoff.pause(failures, FIRST_PAUSE, LONGEST_PAUSE, random)
        if phase is Phase.WATCHING and clock.monotonic() - began >= ALIVE:
            failures, pause = 0, 0.0
        if problem is not None and failed is not None:
            failed(problem, pause)
        if pause and outcome is not Outcome.LISTED:
            await clock.sleep(pause)
            failures += 1
        phase = after(phase, outcome)
