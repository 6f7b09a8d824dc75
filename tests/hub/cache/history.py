"""Histories: what each client asked, when it asked and was answered, and what it got. And whether that may have been.

Writers write growing revisions to a resource. A read that began after a write was acknowledged must show that write's revision
or a newer one. A write that failed, or was never answered, may have happened or not, so it binds nobody.

Times are of one clock that all who take part share (CLOCK_MONOTONIC is one for all processes of a machine).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator

import msgspec


class Event(msgspec.Struct, frozen=True, array_like=True):
    """`revision` that was read or written, 0 for nothing there; `answered` is None when no answer came, or a failure."""

    op: str  # "read" | "write"
    key: str
    began: float
    answered: float | None
    revision: int
    client: str = ""
    kind: str = "get"  # of reads, how: get | list | all


def violations(history: Iterable[Event]) -> Iterator[str]:
    """One line for each answer that may not be."""
    by_key: dict[str, list[Event]] = defaultdict(list)
    for event in history:
        by_key[event.key].append(event)
    for key, events in by_key.items():
        yield from _stale(key, events)


def _stale(key: str, events: list[Event]) -> Iterator[str]:
    acknowledged = sorted(
        ((event.answered, event.revision) for event in events if event.op == "write" and event.answered is not None),
    )
    reads = sorted((event for event in events if event.op == "read" and event.answered is not None), key=_began)
    newest = position = 0
    for read in reads:
        while position < len(acknowledged) and acknowledged[position][0] < read.began:
            newest = max(newest, acknowledged[position][1])
            position += 1
        if read.revision < newest:
            yield (
                f"{read.client} began a {read.kind} of {key} at {read.began:.6f} and got revision {read.revision}, "
                f"though {newest} had been acknowledged"
            )


def _began(event: Event) -> float:
    return event.began
