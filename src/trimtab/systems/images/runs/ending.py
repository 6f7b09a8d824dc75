"""What a registry says when a run of it has ended. Pure."""

from __future__ import annotations

from datetime import datetime

import msgspec
from msgspec import UNSET, UnsetType

from trimtab.model.clock import format_time
from trimtab.model.conditions import get_condition, set_condition
from trimtab.runtime.runs import LIMIT, MAX_MESSAGE, Run, bounded
from trimtab.systems.images.kinds import DiscoveryJob, DiscoveryJobStatus, ImageCounts, RegistryStatus
from trimtab.systems.images.runs.claim import RELEASE, Running
from trimtab.systems.images.runs.states import COMPLETED

PUSH = "push"
"""What triggered a run for what was pushed: it says nothing of the registry as a whole."""
REMOVAL_HELD = "RemovalHeld"
COUNTS = ("discovered", "created", "missing", "removed", "held", "sboms", "reports", "failed", "gone")


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """How the run ended. `again` is whether what was pushed must be taken once more: it was not listed, or not all of it."""

    succeeded: bool = False
    reason: str = "Canceled"
    message: str = "its DiscoveryJob is gone, or never took it"
    again: bool = True
    counts: ImageCounts = ImageCounts()
    is_whole: bool = False
    catalog: str = ""


def outcome_of(job: DiscoveryJob | None) -> Outcome:
    """As its job tells it; of a job that is gone, that it was canceled."""
    status = (job.status if job is not None else UNSET) or DiscoveryJobStatus()
    completed = get_condition(status.conditions, COMPLETED)
    if job is None or completed is None:
        return Outcome()
    counts, listed = status.images or ImageCounts(), status.listed
    missed = not counts.discovered or bool(status.listing and status.listing.failed)
    return Outcome(
        succeeded=completed.status == "True",
        reason=completed.reason,
        message=completed.message.replace("status.errors", f"status.errors of discoveryjob/{job.name}"),
        again=missed and completed.reason != "NoImages",
        counts=counts,
        is_whole=bool(status.images and listed and listed.complete),
        catalog=(listed.catalog or "") if status.images and listed else "",
    )


def after(
    shown: RegistryStatus, run: Running, end: Outcome, *, generation: int | UnsetType, now: datetime
) -> RegistryStatus:
    """The registry's status. It may be asked for again after a crash: a run is in the history once."""
    conditions = shown.conditions or ()
    if run.only is None:
        conditions = set_condition(
            conditions, "Ready", end.succeeded, end.reason, end.message, now=now, observed_generation=generation
        )
    held = end.counts.held
    if end.is_whole:
        conditions = set_condition(
            conditions,
            REMOVAL_HELD,
            bool(held),
            "TooMany" if held else "NoneHeld",
            held_message(held, run.id) if held else "",
            now=now,
            observed_generation=generation,
        )
        shown = shown.replace(held_run=run.id if held else UNSET)
    history = shown.history or ()
    if not any(known.id == run.id for known in history):
        history = bounded((_run(run, end, now), *history), LIMIT)
    return shown.replace(history=history, active_run=UNSET, conditions=conditions)


def held_message(held: int, run: str) -> str:
    return (
        f"{held} images would be removed, more than spec.removal.maxPercent allows: none was; `trimtab images release`"
        f" lets them go, or the annotation {RELEASE}={run}"
    )


def _run(run: Running, end: Outcome, now: datetime) -> Run:
    counts = {name: count for name in COUNTS if (count := getattr(end.counts, name))}
    return Run(
        id=run.id,
        trigger=PUSH if run.only is not None else run.type,
        started=format_time(run.started_at),
        finished=format_time(now),
        outcome="Succeeded" if end.succeeded else "Cancelled" if end.reason == "Canceled" else "Failed",
        reason=end.reason,
        message=end.message[:MAX_MESSAGE] or UNSET,
        counts=counts or UNSET,
    )
