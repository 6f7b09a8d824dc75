"""The states of a run, as the status of its job tells them, and how they follow each other. Pure.

    NONE → PENDING → LISTING → LISTED → SETTLING → ENDED

A run begins when its registry is claimed (PENDING), a worker takes it (LISTING) and says what it found (LISTED), the
controller makes Images by that (SETTLING) and waits until each member of the run is settled. From every state a run may end.
ENDED is final: only a new run, with an id of its own, begins anew.
"""

from __future__ import annotations

import enum
from datetime import datetime
from typing import Literal

import msgspec
from msgspec import UNSET

from trimtab.model.clock import format_time
from trimtab.model.conditions import Truth, get_condition, set_condition
from trimtab.systems.images.kinds import DiscoveryJob, DiscoveryJobStatus, ImageCounts
from trimtab.systems.images.runs.claim import Running

PROGRESSING, COMPLETED = "Progressing", "Completed"
RESERVED = "discovery-job-"


class State(enum.Enum):
    NONE = "none"
    PENDING = "pending"
    LISTING = "listing"
    LISTED = "listed"
    SETTLING = "settling"
    ENDED = "ended"


class End(msgspec.Struct, frozen=True):
    """How a run ended. `completed` is that of the condition."""

    completed: Literal["True", "False"]
    reason: str
    message: str = ""

    @property
    def succeeded(self) -> bool:
        return self.completed == "True"


def state_of(status: DiscoveryJobStatus) -> State:
    """Which state a job's status tells."""
    completed = get_condition(status.conditions, COMPLETED)
    if completed is not None and completed.status != "Unknown":
        return State.ENDED
    if not status.run_id:
        return State.NONE
    if status.images:
        return State.SETTLING
    if status.listed:
        return State.LISTED
    return State.LISTING if status.worker else State.PENDING


def reserved_name(registry: str) -> str:
    """The job that tells of the scheduled discoveries of a registry."""
    return f"{RESERVED}{registry}"


def is_reserved(job: DiscoveryJob) -> bool:
    return job.name == reserved_name(job.spec.registry)


def asks(job: DiscoveryJob) -> bool:
    """Whether somebody wants a manual run of it: a new job, or another manualGUID. The reserved one only by its GUID."""
    status = job.status or DiscoveryJobStatus()
    state = state_of(status)
    if state not in (State.NONE, State.ENDED):
        return False
    wished, seen = job.spec.manual_guid or "", status.observed_manual_guid or ""
    if is_reserved(job):
        return bool(wished) and wished != seen
    return state is State.NONE or wished != seen


def belongs(job: DiscoveryJob, run: Running) -> bool:
    """Whether the claim of the registry is for this job to tell of."""
    if not run.id:
        return False  # somebody wrote it by hand
    return run.uid == job.metadata.uid if run.type == "manual" else is_reserved(job)


def begun(
    job: DiscoveryJob, run: Running, deadline: datetime, now: datetime, before: DiscoveryJobStatus | None = None
) -> DiscoveryJobStatus:
    """The status of a run that begins. What was there before is purged in the same write, unless it is of this run: then
    whoever saw it before us was late, and it stays."""
    generation = job.metadata.generation or UNSET
    before = before or job.status or DiscoveryJobStatus()
    if before.run_id == run.id:
        return before
    status = DiscoveryJobStatus(
        observed_generation=generation,
        observed_manual_guid=job.spec.manual_guid if run.type == "manual" else before.observed_manual_guid,
        run_id=run.id,
        fence=0,
        type=run.type,
        start_time=format_time(run.started_at),
        deadline=format_time(deadline),
    )
    status = told(status, PROGRESSING, "Unknown", "Pending", "waiting for a worker", now)
    return told(status, COMPLETED, "Unknown", "Running", "", now)


def refused(job: DiscoveryJob, end: End, now: datetime, blocked_by: str = "") -> DiscoveryJobStatus:
    """The status of a job that starts nothing."""
    status = DiscoveryJobStatus(
        observed_generation=job.metadata.generation or UNSET,
        observed_manual_guid=job.spec.manual_guid,
        type="manual",
        blocked_by=blocked_by or UNSET,
    )
    return ended(status, end, now)


def ended(status: DiscoveryJobStatus, end: End, now: datetime) -> DiscoveryJobStatus:
    """The status of a run that has ended; the same one when it had ended before."""
    if state_of(status) is State.ENDED:
        return status
    status = status.replace(completion_time=format_time(now), progress=UNSET)
    if end.succeeded:
        status = told(status, PROGRESSING, "True", "Finished", "", now)
    else:
        status = told(status, PROGRESSING, "False", end.reason, "", now)
    return told(status, COMPLETED, end.completed, end.reason, end.message, now)


def told(
    status: DiscoveryJobStatus, kind: str, truth: Truth, reason: str, message: str, now: datetime
) -> DiscoveryJobStatus:
    """The status with a condition."""
    return status.replace(
        conditions=set_condition(
            status.conditions,
            kind,
            truth,
            reason,
            message[:1024],
            now=now,
            observed_generation=status.observed_generation,
        )
    )


def event_reason(reason: str) -> str:
    """Of the event that tells how a run ended."""
    return reason if reason.startswith("Discovery") else f"Discovery{reason}"


def verdict(status: DiscoveryJobStatus, counts: ImageCounts, until: str) -> End:
    """How a run ended whose members are all settled."""
    errors = status.error_count or 0
    done = {"Images": counts.discovered, "SBOMs": counts.sboms, "Reports": counts.reports}[until]
    told_of = f"{done} of {counts.discovered} images have their {_DONE[until]}" if until != "Images" else ""
    found = f"{counts.discovered} images" + (f", {counts.removed} removed" if counts.removed else "")
    if counts.failed and not done:
        return End("False", "AllImagesFailed", f"none of {counts.discovered} images could be done; see status.errors")
    if errors and not counts.discovered:
        reasons = {error.reason for error in status.errors or ()}
        first = status.errors[0].message if status.errors else ""
        reason = reasons.pop() if len(reasons) == 1 else "NothingListed"
        return End("False", reason, f"nothing could be listed; {errors} errors, see status.errors; the first: {first}")
    if errors:
        return End("True", "PartiallySucceeded", f"{told_of or found}; {errors} errors: see status.errors")
    if not counts.discovered:
        return End("True", "NoImages", "no tag was selected that is an image")
    return End("True", "Succeeded", told_of or found)


_DONE = {"Images": "resource", "SBOMs": "SBOM", "Reports": "report"}
