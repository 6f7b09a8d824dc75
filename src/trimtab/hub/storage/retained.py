"""How much of the log may go. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from trimtab.store.retention import Retention

SWEEP = 256
"""The least that one transaction looks at, beside twice as much as it adds: the log shrinks faster than it grows."""


def is_due(newest: int, compacted: int, retention: Retention) -> bool:
    """Whether it is worth to look; not at every commit, for a few revisions."""
    return newest - compacted >= retention.revisions + SWEEP


def horizon(oldest: Iterable[tuple[int, float]], newest: int, now: float, retention: Retention) -> int:
    """The last revision that may go, of the oldest entries of the log (revision, time), in order; 0 for none."""
    last = 0
    for revision, at in oldest:
        if revision > newest - retention.revisions or at > now - retention.seconds:
            break
        last = revision
    return last
