"""Runs: what a scheduled or triggered piece of work did, kept in `status.history`, newest first.

Histories are values, as conditions are: each function returns the new tuple, and the same one when nothing changed. A
history is bounded, but a run that goes on, the last success and the last failure stay. What is long (the list of what
was found, an error's whole text) goes into a blob, of which the run names the digest.

Flow: `start` is written to the status before the work begins, `finish` when it ended. A run that is still Running when
its controller starts anew belonged to a process that is gone: `interrupted` closes it. Only the holder of a lease or
of a claim may say so.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from datetime import datetime
from random import Random
from typing import Annotated, Any, Literal, Protocol

from msgspec import UNSET, Meta, UnsetType

from trimtab.model.clock import Clock, format_time
from trimtab.model.markers import Artifact, Keyed
from trimtab.model.resource import Spec

LIMIT = 10
MAX_MESSAGE = 1024
MAX_COUNTS = 32
ATTEMPTS = "attempts"
"""Among the counts: how often in a row it was tried, and failed in the same way."""

Outcome = Literal["Running", "Succeeded", "Failed", "Cancelled"]
Ended = Literal["Succeeded", "Failed", "Cancelled"]

Time = Annotated[str, Meta(extra_json_schema={"format": "date-time"})]


class Run(Spec):
    """One run. `details` is the digest of a blob."""

    id: Annotated[str, Meta(max_length=63, description="Tells runs of one object apart.")]
    trigger: Annotated[str, Meta(max_length=63, description="Why it began, such as Schedule or Manual.")]
    started: Annotated[Time, Meta(description="When it began.")]
    outcome: Annotated[Outcome, Meta(description="How it ended, or that it goes on.")]
    finished: Annotated[Time, Meta(description="When it ended.")] | UnsetType = UNSET
    reason: Annotated[str, Meta(max_length=63, description="Why it ended so, in one CamelCase word.")] | UnsetType = (
        UNSET
    )
    message: Annotated[str, Meta(max_length=MAX_MESSAGE, description="What to know about it.")] | UnsetType = UNSET
    counts: Annotated[dict[str, int], Meta(max_length=MAX_COUNTS, description="How many of what.")] | UnsetType = UNSET
    details: (
        Annotated[str, Artifact(), Meta(max_length=128, description="Digest of the blob with all of it.")] | UnsetType
    ) = UNSET


History = Annotated[tuple[Run, ...], Keyed("id"), Meta(description="What ran, newest first.")]
"""The type of `status.history`, which is `History | UnsetType = UNSET`."""

Details = bytes | AsyncIterator[bytes]


class Blobs(Protocol):
    """Where details go, as far as runs need it: a `trimtab.storage` fulfils it."""

    async def put(self, data: Details, *, media_type: str = "") -> str: ...

    async def pin(self, digest: Any, owner: str) -> None: ...

    async def unpin(self, owner: str) -> None: ...


class Runs:
    """The runs of one object. It holds nothing of them: a history comes in and goes out."""

    def __init__(
        self,
        clock: Clock,
        *,
        blobs: Blobs | None = None,
        owner: str = "",
        limit: int = LIMIT,
        chance: Random | None = None,
    ) -> None:
        """`owner` is whose the blobs are: a path that ends in the object's uid."""
        if limit < 3:
            raise ValueError("a history has room for three runs at least: one that goes on, a success and a failure")
        if blobs is not None and not owner:
            raise ValueError("blobs need an owner: a path that ends in the uid of the object")
        self._clock = clock
        self._blobs = blobs
        self._owner = owner
        self._limit = limit
        self._chance = chance or Random()  # noqa: S311 - tells runs apart, guards nothing

    def start(self, history: tuple[Run, ...] | UnsetType, trigger: str) -> tuple[tuple[Run, ...], Run]:
        """A new run at the front. Write the history before the work begins."""
        now = self._clock.now()
        run_id = f"{now:%Y%m%dt%H%M%S}-{self._chance.getrandbits(32):08x}"
        run = Run(id=run_id, trigger=trigger, started=format_time(now), outcome="Running")
        return (run, *(history or ())), run

    async def finish(
        self,
        history: tuple[Run, ...] | UnsetType,
        run_id: str,
        outcome: Ended,
        *,
        reason: str | UnsetType = UNSET,
        message: str = "",
        counts: Mapping[str, int] | None = None,
        details: Details | None = None,
        media_type: str = "",
        fold: bool = False,
    ) -> tuple[Run, ...]:
        """The run has ended. Its details are kept when this returns; then write the history. With `fold` one that failed
        as the one before it did takes its place: `folded`."""
        now = self._clock.now()
        digest: str | UnsetType = UNSET
        if details is not None:
            if self._blobs is None:
                raise ValueError("details need a blob store, and these runs were given none")
            digest = await self._blobs.put(details, media_type=media_type)
            await self._blobs.pin(digest, self._pin(run_id))
        ended = finished(
            history, run_id, outcome, now=now, reason=reason, message=message, counts=counts, details=digest
        )
        return await self._bounded(ended, folded(ended, run_id) if fold else ended)

    async def interrupted(self, history: tuple[Run, ...] | UnsetType) -> tuple[Run, ...]:
        """Close what a process that is gone left Running; then write the history, if it is another one."""
        ended = interrupted(history, now=self._clock.now())
        return await self._bounded(ended, ended)

    async def forget(self, history: tuple[Run, ...] | UnsetType) -> None:
        """Let go of all details: the object is being deleted."""
        if self._blobs is not None:
            for run in history or ():
                if run.details:
                    await self._blobs.unpin(self._pin(run.id))

    async def _bounded(self, before: tuple[Run, ...], history: tuple[Run, ...]) -> tuple[Run, ...]:
        """Details of runs that leave are let go before the history is written: after a crash in between, the same
        runs leave again. The other way round their blobs would stay for ever."""
        kept = bounded(history, self._limit)
        ids = {run.id for run in kept}
        await self.forget(tuple(run for run in before if run.id not in ids))
        return kept

    def _pin(self, run_id: str) -> str:
        return f"{self._owner}/runs/{run_id}"


def finished(
    history: tuple[Run, ...] | UnsetType,
    run_id: str,
    outcome: Ended,
    *,
    now: datetime,
    reason: str | UnsetType = UNSET,
    message: str = "",
    counts: Mapping[str, int] | None = None,
    details: str | UnsetType = UNSET,
) -> tuple[Run, ...]:
    """The run has ended. One that has ended before, or is not there any more, stays as it is."""

    def end(run: Run) -> Run:
        if run.id != run_id or run.outcome != "Running":
            return run
        return run.replace(
            outcome=outcome,
            finished=format_time(now),
            reason=reason,
            message=_short(message) or UNSET,
            counts=dict(sorted(counts.items())[:MAX_COUNTS]) if counts else UNSET,
            details=details,
        )

    return _mapped(history or (), end)


def interrupted(history: tuple[Run, ...] | UnsetType, *, now: datetime) -> tuple[Run, ...]:
    """Everything that was Running has Failed: whoever ran it is gone, and nobody knows how far it came."""
    for run in history or ():
        history = finished(
            history, run.id, "Failed", now=now, reason="Interrupted", message="the process that ran this has ended"
        )
    return history or ()


def folded(history: tuple[Run, ...], run_id: str) -> tuple[Run, ...]:
    """The run in the place of the one before it, when both failed for the same reason with the same message: it began when
    that did, has its counts where it has none, and counts the attempts."""
    at = next((number for number, run in enumerate(history) if run.id == run_id), len(history))
    if at + 1 >= len(history) or history[at].outcome != "Failed":
        return history
    run, before = history[at : at + 2]
    if not failed_so(before, run.reason, run.message or ""):
        return history
    attempts = (before.counts or {}).get(ATTEMPTS, 1) + 1
    counts = {**(before.counts or {}), **(run.counts or {}), ATTEMPTS: attempts}
    one = run.replace(trigger=before.trigger, started=before.started, counts=dict(sorted(counts.items())[:MAX_COUNTS]))
    return (*history[:at], one, *history[at + 2 :])


def failed_so(run: Run, reason: str | UnsetType, message: str) -> bool:
    """Whether it failed, and for this reason with this message."""
    return run.outcome == "Failed" and (run.reason, run.message) == (reason, _short(message) or UNSET)


def bounded(history: tuple[Run, ...], limit: int = LIMIT) -> tuple[Run, ...]:
    """The newest `limit` runs; older ones that must stay push out the oldest that need not."""
    if len(history) <= limit:
        return history
    must = {run.id for run in history if run.outcome == "Running"}
    must |= {run.id for run in (last(history, "Succeeded"), last(history, "Failed")) if run is not None}
    room = max(limit - len(must), 0)
    others = [run.id for run in history if run.id not in must][:room]
    keep = must.union(others)
    return tuple(run for run in history if run.id in keep)


def last(history: tuple[Run, ...] | UnsetType, outcome: Outcome) -> Run | None:
    """The newest run with this outcome."""
    return next((run for run in history or () if run.outcome == outcome), None)


def running(history: tuple[Run, ...] | UnsetType) -> Run | None:
    """The run that has not ended, when there is one."""
    return last(history, "Running")


def _mapped(history: tuple[Run, ...], change: Callable[[Run], Run]) -> tuple[Run, ...]:
    changed = tuple(map(change, history))
    return history if all(a is b for a, b in zip(changed, history, strict=True)) else changed


def _short(message: str) -> str:
    return message if len(message) <= MAX_MESSAGE else message[: MAX_MESSAGE - 1] + "…"
