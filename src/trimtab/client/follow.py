"""List, then watch, for ever: the whole state of a kind and every change to it, across lost connections.

Life: LISTING → WATCHING → (the stream ends) WATCHING from the last revision → (410, the revision is gone) LISTING.

Guarantees: after each `Listing` come all changes since it, in order. After a new `Listing` what is not in it is deleted:
the caller compares. No change is missed; one may be seen twice around a resume.

Failures of the network are waited out with growing pauses; refusals (401, 403) are raised after `patience` in a row.
"""

from __future__ import annotations

import asyncio
import enum
import random
from collections.abc import AsyncIterator
from typing import Any

from trimtab.client.protocol import AnyKind, Client, Event, EventType, Listing, Query
from trimtab.model.errors import StatusError

FIRST_PAUSE, LONGEST_PAUSE = 0.1, 30.0


class Phase(enum.Enum):
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


async def follow(
    client: Client, kind: AnyKind, query: Query = Query(), *, patience: int = 5  # noqa: B008 - frozen
) -> AsyncIterator[Listing[Any] | Event[Any]]:
    """Yields a Listing, then Events; a new Listing whenever the past was lost. Bookmarks are kept to itself."""
    phase, revision = Phase.LISTING, ""
    failures = 0
    while True:
        outcome = Outcome.FAILED
        try:
            if phase is Phase.LISTING:
                listing = await client.list(kind, query)
                revision, outcome = listing.revision, Outcome.LISTED
                yield listing
            else:
                events = client.watch(kind, query, revision)
                try:
                    async for event in events:
                        revision, failures = event.revision, 0
                        if event.type is not EventType.BOOKMARK:
                            yield event
                finally:
                    await events.aclose()  # type: ignore[attr-defined]
                outcome = Outcome.ENDED
        except StatusError as error:
            outcome = Outcome.EXPIRED if error.code == 410 else Outcome.FAILED
            if error.code in (401, 403, 404) and failures >= patience:
                raise
        except (OSError, TimeoutError):
            outcome = Outcome.FAILED
        phase = after(phase, outcome)
        if outcome is Outcome.FAILED:
            await asyncio.sleep(_pause(failures))
            failures += 1
        elif outcome is Outcome.LISTED:
            failures = 0


def _pause(failures: int) -> float:
    return min(LONGEST_PAUSE, FIRST_PAUSE * 2**failures) * random.uniform(0.5, 1.0)  # noqa: S311 - jitter
