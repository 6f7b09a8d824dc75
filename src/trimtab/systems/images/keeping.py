"""Keeps registries: their reserved jobs, their schedules, and their claims, which it frees when runs have ended.

Only this frees a registry: in one write that moves running-* to last-*, after the run's outcome is in the registry's status.
So a crash in between repeats the same steps. The schedule's memory is in the annotations too: when the last discovery began.
"""

from __future__ import annotations

import secrets
from datetime import datetime

from msgspec import UNSET

from trimtab.model.clock import Clock, format_time
from trimtab.model.conditions import get_condition
from trimtab.model.duration import Duration
from trimtab.model.errors import StatusError
from trimtab.model.objectmeta import ObjectMeta
from trimtab.runtime import Context, Result
from trimtab.runtime.cached import CachedClient
from trimtab.runtime.events import Recorder
from trimtab.runtime.objects import typed, with_metadata
from trimtab.runtime.owners import owner_reference
from trimtab.runtime.runs import LIMIT, Run, bounded
from trimtab.runtime.schedule import InvalidSchedule, Schedule
from trimtab.runtime.status import condition, ready, write_status
from trimtab.storage.blobs import BlobMissing, Blobs, Digest
from trimtab.systems.images.applying import BY_REGISTRY
from trimtab.systems.images.kinds import (
    ActiveRun,
    DiscoveryJob,
    DiscoveryJobSpec,
    DiscoveryJobStatus,
    DiscoverySchedule,
    Image,
    Registry,
    RegistryStatus,
)
from trimtab.systems.images.kinds.job import REGISTRY_LABEL, RESERVED_LABEL
from trimtab.systems.images.measures import Measures
from trimtab.systems.images.runs import claim
from trimtab.systems.images.runs.claim import Running
from trimtab.systems.images.runs.states import COMPLETED, State, reserved_name, state_of

LOOK_EVERY = 60.0
"""Seconds between looks at a schedule, at most: the clock may be set."""


class Keeper:
    """Of all registries. Called for one registry at a time, as reconciles are."""

    def __init__(self, context: Context, client: CachedClient, clock: Clock, events: Recorder) -> None:
        if context.blobs is None:
            raise ValueError("image discovery needs a place for blobs")
        self._client, self._clock, self._events = client, clock, events
        self._blobs: Blobs = context.blobs
        self._measures = Measures(context.metrics.registry)

    async def keep_up(self, registry: Registry) -> Result | None:
        reserved = await self._reserved(registry)
        running = claim.running(registry.metadata.annotations or {})
        if running is not None:
            return await self._look_after(registry, running)
        if reserved is None:
            return await self._say(registry, None, "ReservedNameConflict")
        try:
            due, only, following = self._due(registry)
        except InvalidSchedule as error:
            return await self._say(registry, None, "InvalidSchedule", str(error))
        if due:
            return await self._claim(registry, only)
        await self._say(registry, following)
        if following is None:
            return None
        return Result(requeue_after=_bounded((following - self._clock.now()).total_seconds()))

    async def let_go(self, registry: Registry) -> None:
        """The registry is being deleted: its Images and jobs go by their owner references."""
        self._measures.forget(registry.namespace, registry.name)
        await self._blobs.unpin(_catalog_owner(registry))
        running = claim.running(registry.metadata.annotations or {})
        if running is not None:
            await self._unpin_run(registry, running)

    def _due(self, registry: Registry) -> tuple[bool, claim.Only | None, datetime | None]:
        """Whether to discover now, what of it, and when next."""
        now = self._clock.now()
        annotations = registry.metadata.annotations or {}
        schedule = schedule_of(registry.spec.discovery_schedule or DiscoverySchedule())
        since = registry.metadata.creation_timestamp or None
        following = schedule.next(now, claim.last_started(annotations), since)
        if following is not None and following <= now:
            return True, None, following
        pushed = None if schedule.suspend else claim.pushed(annotations)
        if not pushed:
            return False, None, following
        again = claim.pushed_after(annotations)
        if again is not None and again > now:
            return False, None, min(again, following) if following is not None else again
        return True, pushed, following

    async def _claim(self, registry: Registry, only: claim.Only | None) -> Result | None:
        """A scheduled run: its job is the reserved one, whose controller sees the claim."""
        now = self._clock.now()
        run = Running(
            id=f"{now:%Y%m%dt%H%M%S}-{secrets.token_hex(4)}",
            type="scheduled",
            started_at=now.replace(microsecond=0),
            only=only,
        )
        annotations = claim.claimed(registry.metadata.annotations or {}, run)
        registry = await self._client.patch(registry, with_metadata(registry, annotations=annotations))
        return await self._look_after(registry, run)

    async def _look_after(self, registry: Registry, run: Running) -> Result | None:
        """The run that has the registry: say so, and free the registry when it has ended."""
        job = await self._job(registry, run)
        status = (job.status if job else UNSET) or DiscoveryJobStatus()
        if job is not None and not (status.run_id == run.id and state_of(status) is State.ENDED):
            shown = registry.status or RegistryStatus()
            active = ActiveRun(id=run.id, type=run.type, job=job.name, started_at=format_time(run.started_at))
            await write_status(self._client, registry, shown.replace(active_run=active, next_discovery_time=UNSET))
            return Result(requeue_after=LOOK_EVERY)
        if job is None and await self._exists(registry, run):
            return Result(requeue_after=1.0)  # our cache is old
        return await self._free(registry, run, job, status)

    async def _free(
        self, registry: Registry, run: Running, job: DiscoveryJob | None, status: DiscoveryJobStatus
    ) -> Result | None:
        now = self._clock.now()
        completed = get_condition(status.conditions, COMPLETED) if job is not None else None
        succeeded = completed is not None and completed.status == "True"
        reason = completed.reason if completed else "Canceled"
        message = completed.message if completed else "its DiscoveryJob was deleted"
        if job is not None:
            message = message.replace("status.errors", f"status.errors of discoveryjob/{job.name}")
        shown = registry.status or RegistryStatus()
        counts = status.images or None
        catalog = status.listed.catalog if counts and status.listed and status.listed.catalog else UNSET
        if catalog and catalog != shown.catalog:
            try:
                await self._blobs.pin(Digest(catalog), _catalog_owner(registry))
            except BlobMissing:
                catalog = UNSET
        done = Run(
            id=run.id,
            trigger=run.type,
            started=format_time(run.started_at),
            finished=format_time(now),
            outcome="Succeeded" if succeeded else "Cancelled" if reason == "Canceled" else "Failed",
            reason=reason,
            message=message[:1024] or UNSET,
            counts={name: count for name, count in _counts(status).items() if count} or UNSET,
        )
        history = shown.history or ()
        if not any(known.id == run.id for known in history):
            history = bounded((done, *history), LIMIT)
        generation = registry.metadata.generation or UNSET
        images, missing = await self._images(registry)
        conditions = ready(shown.conditions, self._clock, generation, succeeded, reason, message)
        held = counts.held if counts else 0
        if counts and status.listed and status.listed.complete:
            text = f"{held} images would be removed, more than spec.removal.maxPercent allows: none was; to let them"
            text += f" go annotate {claim.RELEASE}={run.id}" if held else ""
            conditions = condition(
                conditions, self._clock, generation, "RemovalHeld", bool(held), "TooMany" if held else "NoneHeld",
                text if held else "",
            )  # fmt: skip
            shown = shown.replace(held_run=run.id if held else UNSET)
        if held:
            self._events.warning(registry, "RemovalHeld", text)
        old = shown.catalog
        registry = await write_status(
            self._client,
            registry,
            shown.replace(
                history=history,
                active_run=UNSET,
                conditions=conditions,
                images=images,
                missing=missing,
                catalog=catalog or shown.catalog,
            ),
        )
        if catalog and old and old != catalog:
            await self._blobs.unpin(_catalog_owner(registry), Digest(old))
        await self._unpin_run(registry, run)
        listed = bool(counts and counts.discovered)
        annotations = claim.released(registry.metadata.annotations or {}, now, succeeded=succeeded, listed=listed)
        if counts and counts.removed:
            annotations.pop(claim.RELEASE, None)
        await self._client.patch(registry, with_metadata(registry, annotations=annotations))
        seconds = (now - run.started_at).total_seconds()
        self._measures.ended(registry.namespace, registry.name, run.type, reason, seconds)
        say = self._events.normal if succeeded else self._events.warning
        say(registry, f"Discovery{reason}", message or reason)
        return Result(requeue_after=0.0)

    async def _unpin_run(self, registry: Registry, run: Running) -> None:
        job = await self._job(registry, run)
        uid = run.uid or (job.metadata.uid if job else "")
        name = run.job or reserved_name(registry.name)
        if uid:
            await self._blobs.unpin(run_owner(registry.namespace, name, uid, run.id))

    async def _say(
        self, registry: Registry, following: datetime | None, reason: str = "", message: str = ""
    ) -> Result | None:
        """What is true of a registry that no run has."""
        shown = registry.status or RegistryStatus()
        generation = registry.metadata.generation or UNSET
        conditions = shown.conditions
        if reason:
            message = message or f"{reserved_name(registry.name)} is a job of another registry: delete it"
            conditions = ready(conditions, self._clock, generation, False, reason, message)
        elif not shown.history:
            waiting = "no discovery yet" if following else "no discovery yet, and no schedule: create a DiscoveryJob"
            conditions = ready(conditions, self._clock, generation, None, "NeverDiscovered", waiting)
        elif (last := shown.history[0]).outcome != "Running":
            conditions = ready(
                conditions, self._clock, generation, last.outcome == "Succeeded", last.reason or "Unknown",
                last.message or "",
            )  # fmt: skip
        images, missing = await self._images(registry)
        await write_status(
            self._client,
            registry,
            shown.replace(
                conditions=conditions,
                observed_generation=generation,
                active_run=UNSET,
                next_discovery_time=format_time(following) if following is not None else UNSET,
                images=images,
                missing=missing,
            ),
        )
        return None

    async def _images(self, registry: Registry) -> tuple[int, int]:
        images = await self._client.indexed(Image, BY_REGISTRY.name, registry.metadata.uid or "")
        missing = sum(bool(image.status and image.status.missing_since) for image in images)
        self._measures.counted(registry.namespace, registry.name, len(images), missing)
        return len(images), missing

    async def _reserved(self, registry: Registry) -> DiscoveryJob | None:
        """The job that tells of scheduled runs; None when another registry's job has its name."""
        name = reserved_name(registry.name)
        found = await self._client.find(DiscoveryJob, name, registry.namespace)
        if found is not None:
            return found if found.spec.registry == registry.name else None
        job = DiscoveryJob(
            metadata=ObjectMeta(
                name=name,
                namespace=registry.namespace,
                labels={RESERVED_LABEL: "true", REGISTRY_LABEL: registry.metadata.uid or ""},
                owner_references=(owner_reference(registry, self._client.scheme),),
            ),
            spec=DiscoveryJobSpec(registry=registry.name),
        )
        try:
            return await self._client.create(job)
        except StatusError as error:
            if error.code != 409:
                raise
            return typed(await self._client.live.get(DiscoveryJob, name, registry.namespace), DiscoveryJob)

    async def _job(self, registry: Registry, run: Running) -> DiscoveryJob | None:
        name = run.job or reserved_name(registry.name)
        job = await self._client.find(DiscoveryJob, name, registry.namespace)
        if job is None or (run.uid and job.metadata.uid != run.uid):
            return None
        return job

    async def _exists(self, registry: Registry, run: Running) -> bool:
        name = run.job or reserved_name(registry.name)
        try:
            job = await self._client.live.get(DiscoveryJob, name, registry.namespace)
        except StatusError as error:
            if error.code == 404:
                return False
            raise
        return not run.uid or job.metadata.uid == run.uid


def schedule_of(schedule: DiscoverySchedule) -> Schedule:
    """As the runtime knows schedules."""
    period = Duration.of(schedule.discovery_period.seconds) if schedule.discovery_period else UNSET
    return Schedule(cron=schedule.cron_schedule, period=period, zone=schedule.time_zone, suspend=schedule.suspend)


def run_owner(namespace: str, job: str, uid: str, run: str) -> str:
    """Who pins the catalogue of a run while it goes on."""
    return f"images/DiscoveryJob/{namespace}/{job}/{uid}/{run}"


def _catalog_owner(registry: Registry) -> str:
    return f"images/Registry/{registry.namespace}/{registry.name}/{registry.metadata.uid}/catalog"


def _counts(status: DiscoveryJobStatus) -> dict[str, int]:
    counts = status.images
    if not counts:
        return {}
    names = ("discovered", "created", "missing", "removed", "held", "sboms", "reports", "failed", "gone")
    return {name: getattr(counts, name) for name in names}


def _bounded(seconds: float) -> float:
    return max(0.05, min(seconds, LOOK_EVERY))
