"""Keeps registries: their reserved jobs, their schedules, and their claims, which it frees when runs have ended.

Only this frees a registry: in one write that moves running-* to last-*, after the run's outcome is in the registry's status.
So a crash in between repeats the same steps. The schedule's memory is in the annotations too: when the last discovery began.
"""

from __future__ import annotations

from datetime import datetime

from msgspec import UNSET

from trimtab.model.clock import Clock, format_time, parse_time
from trimtab.model.errors import StatusError
from trimtab.model.objectmeta import ObjectMeta
from trimtab.runtime import Context, Result
from trimtab.runtime.cached import CachedClient
from trimtab.runtime.events import Recorder
from trimtab.runtime.objects import is_deleting, typed, with_metadata
from trimtab.runtime.owners import owner_reference
from trimtab.runtime.schedule import InvalidSchedule
from trimtab.runtime.status import ready, write_status
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
from trimtab.systems.images.pins import catalog_owner, run_owner
from trimtab.systems.images.runs import claim
from trimtab.systems.images.runs.claim import Running
from trimtab.systems.images.runs.ending import PUSH, REMOVAL_HELD, after, held_message, outcome_of
from trimtab.systems.images.runs.scheduling import digest_of, next_time, told
from trimtab.systems.images.runs.states import State, event_reason, reserved_name, state_of

MARGIN = 120.0
"""Seconds that a job has to end its run after the deadline, before the registry is freed without its word."""
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
        registry = await self._observed(registry)
        running = claim.running(registry.metadata.annotations or {})
        if running is not None:
            return await self._look_after(registry, running)
        if reserved is None:
            return await self._say(registry, None, "ReservedNameConflict")
        try:
            due, only, following = self._due(registry)
        except InvalidSchedule as error:
            return await self._say(registry, None, "InvalidSchedule", told(error))
        if due:
            return await self._claim(registry, only)
        await self._say(registry, following)
        if following is None:
            return None
        return Result(requeue_after=_bounded((following - self._clock.now()).total_seconds()))

    async def _observed(self, registry: Registry) -> Registry:
        """Note since when these cron lines are followed: a nightly one that is added by day does not run by day."""
        shown = registry.status or RegistryStatus()
        digest = digest_of(registry.spec.discovery_schedule or DiscoverySchedule())
        if shown.observed_schedule == digest:
            return registry
        since = self._clock.now() if shown.observed_schedule else registry.metadata.creation_timestamp
        return await write_status(
            self._client,
            registry,
            shown.replace(observed_schedule=digest, schedule_since=format_time(since or self._clock.now())),
        )

    async def let_go(self, registry: Registry) -> None:
        """The registry is being deleted: its Images and jobs go by their owner references."""
        self._measures.forget(registry.namespace, registry.name)
        await self._blobs.unpin(catalog_owner(registry.namespace, registry.name, registry.metadata.uid or ""))
        running = claim.running(registry.metadata.annotations or {})
        if running is not None:
            await self._unpin_run(registry, running)

    def _due(self, registry: Registry) -> tuple[bool, claim.Only | None, datetime | None]:
        """Whether to discover now, what of it, and when next."""
        now = self._clock.now()
        annotations = registry.metadata.annotations or {}
        schedule = registry.spec.discovery_schedule or DiscoverySchedule()
        since = registry.status.schedule_since if registry.status else UNSET
        followed_since = parse_time(since) if since else registry.metadata.creation_timestamp or now
        following = next_time(schedule, now, claim.last_whole(annotations), followed_since)
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
            id=claim.run_id(now),
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
        ended = status.run_id == run.id and state_of(status) is State.ENDED
        if job is not None and not ended and not self._is_over(registry, run):
            shown = registry.status or RegistryStatus()
            active = ActiveRun(id=run.id, type=run.type, job=job.name, started_at=format_time(run.started_at))
            await write_status(self._client, registry, shown.replace(active_run=active, next_discovery_time=UNSET))
            return Result(requeue_after=LOOK_EVERY)
        if job is None and await self._exists(registry, run):
            return Result(requeue_after=1.0)  # our cache is old
        return await self._free(registry, run, job if ended else None)

    def _is_over(self, registry: Registry, run: Running) -> bool:
        """Whether nobody can be at it any more: a claim of no run, or one whose job should have ended it long ago."""
        age = (self._clock.now() - run.started_at).total_seconds()
        return not run.id or age > registry.spec.discovery_timeout.seconds + MARGIN

    async def _free(self, registry: Registry, run: Running, job: DiscoveryJob | None) -> Result:
        """First the run's outcome, then the claim: whoever dies in between does both again."""
        now, end = self._clock.now(), outcome_of(job)
        shown = registry.status or RegistryStatus()
        if end.catalog and end.catalog != shown.catalog:
            shown = await self._kept(registry, shown, end.catalog)
        images, missing = await self._images(registry)
        shown = after(shown, run, end, generation=registry.metadata.generation or UNSET, now=now)
        registry = await write_status(self._client, registry, shown.replace(images=images, missing=missing))
        await self._unpin_run(registry, run)
        annotations = claim.released(registry.metadata.annotations or {}, now, succeeded=end.succeeded, again=end.again)
        if end.counts.removed:
            annotations.pop(claim.RELEASE, None)
        await self._client.patch(registry, with_metadata(registry, annotations=annotations))
        seconds = (now - run.started_at).total_seconds()
        self._measures.ended(registry.namespace, registry.name, run.type, end.reason, seconds)
        if end.counts.held:
            self._events.warning(registry, REMOVAL_HELD, held_message(end.counts.held, run.id))
        say = self._events.normal if end.succeeded else self._events.warning
        say(registry, event_reason(end.reason), end.message or end.reason)
        return Result(requeue_after=0.0)

    async def _kept(self, registry: Registry, shown: RegistryStatus, catalog: str) -> RegistryStatus:
        """The status that names this catalogue, which is pinned. The one before the last is let go first, whom nobody reads:
        so whoever dies here leaves nothing that is pinned and not named."""
        owner = catalog_owner(registry.namespace, registry.name, registry.metadata.uid or "")
        if shown.previous_catalog and shown.previous_catalog not in (catalog, shown.catalog):
            await self._blobs.unpin(owner, Digest(shown.previous_catalog))
        try:
            await self._blobs.pin(Digest(catalog), owner)
        except BlobMissing:
            return shown
        return shown.replace(catalog=catalog, previous_catalog=shown.catalog)

    async def _unpin_run(self, registry: Registry, run: Running) -> None:
        await self._blobs.unpin(run_owner(registry.namespace, registry.name, registry.metadata.uid or "", run.id))

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
        elif (last := next((run for run in shown.history or () if run.trigger != PUSH), None)) is None:
            waiting = "no discovery yet" if following else "no discovery yet, and no schedule: create a DiscoveryJob"
            conditions = ready(conditions, self._clock, generation, None, "NeverDiscovered", waiting)
        else:
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
        if job is None or is_deleting(job) or (run.uid and job.metadata.uid != run.uid):
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
        return not is_deleting(job) and (not run.uid or job.metadata.uid == run.uid)


def _bounded(seconds: float) -> float:
    return max(0.05, min(seconds, LOOK_EVERY))
