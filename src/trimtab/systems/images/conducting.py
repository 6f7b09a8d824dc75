"""Conducts the runs of jobs: one step at a time, from the state that the job's status tells.

Each step may be repeated: killed anywhere, the next reconcile does it again. What must survive is written before what
depends on it: the claim before the run's status, the status before the message, the catalogue before its Images, the job's
end before the registry is free (which the registry's own controller does).
"""

from __future__ import annotations

import asyncio
from datetime import timedelta

from msgspec import UNSET

from trimtab.model.clock import Clock
from trimtab.model.errors import StatusError
from trimtab.model.logs import log
from trimtab.runtime import Context, Result
from trimtab.runtime.cached import CachedClient
from trimtab.runtime.events import Recorder
from trimtab.runtime.objects import is_deleting, with_metadata
from trimtab.runtime.owners import owner_reference
from trimtab.runtime.queue import QueueFull
from trimtab.storage.blobs import BlobDamaged, BlobMissing, Blobs, BlobTooLarge, Digest, read
from trimtab.systems.images.applying import InTheWay, apply
from trimtab.systems.images.cleaning import clean_up
from trimtab.systems.images.kinds import (
    DiscoveryJob,
    DiscoveryJobStatus,
    ImageCounts,
    Registry,
    RegistryStatus,
)
from trimtab.systems.images.kinds.job import REGISTRY_LABEL
from trimtab.systems.images.messages import CATALOG, CreateCatalog, encode
from trimtab.systems.images.registry.references import BadReference, endpoint
from trimtab.systems.images.runs import catalogue as catalogues
from trimtab.systems.images.runs import claim
from trimtab.systems.images.runs.catalogue import Catalogue, diff
from trimtab.systems.images.runs.claim import Running
from trimtab.systems.images.runs.pulse import Pulse
from trimtab.systems.images.runs.states import (
    PROGRESSING,
    End,
    State,
    asks,
    begun,
    belongs,
    ended,
    event_reason,
    refused,
    reserved_name,
    state_of,
    told,
    verdict,
)
from trimtab.systems.images.runs.telling import tell
from trimtab.systems.images.settling import Settling

PUBLISH_EVERY = 120.0
LOOK_EVERY = 0.25
TELL_EVERY = 1.0


class Conductor:
    """Of all jobs of this process. Called for one job at a time, as reconciles are."""

    def __init__(self, context: Context, client: CachedClient, clock: Clock, events: Recorder) -> None:
        if context.blobs is None:
            raise ValueError("image discovery needs a place for blobs")
        self._client, self._clock, self._events, self._queue = client, clock, events, context.queue
        self._blobs: Blobs = context.blobs
        self._pulse = Pulse(clock)
        self._published: dict[str, float] = {}
        self._settling: dict[str, Settling] = {}
        self._looked: dict[str, float] = {}
        self._told: dict[str, float] = {}

    async def conduct(self, job: DiscoveryJob) -> Result | None:
        """The next step of the job's run. Superseded when the job is not what it was."""
        if is_deleting(job):
            return None
        registry = await self._client.find(Registry, job.spec.registry, job.namespace)
        running = claim.running((registry.metadata.annotations if registry else None) or {})
        status = job.status or DiscoveryJobStatus()
        if registry is not None and running is not None and belongs(job, running) and status.run_id != running.id:
            return await self._begin(job, registry, running)
        if state_of(status) in (State.NONE, State.ENDED):
            self._forget(job)
            if not asks(job):
                return None
            if running is not None and running.id == status.run_id:
                return Result(requeue_after=1.0)  # its last run is over, and the registry is about to be free
            return await self._start(job, registry, running)
        if registry is None or is_deleting(registry):
            return await self._end(job, End("False", "RegistryNotFound", f"the registry {job.spec.registry} is gone"))
        if running is None or running.id != status.run_id:
            if await self._is_claimed(job, registry):
                return Result(requeue_after=1.0)  # our cache is old
            return await self._end(job, End("False", "Canceled", "the registry's claim was taken away from this run"))
        if late := self._pulse.late(job):
            return await self._end(job, late)
        match state_of(status):
            case State.PENDING | State.LISTING:
                return await self._await_listing(job, registry, running)
            case State.LISTED:
                return await self._apply(job, registry)
            case _:
                return await self._settle(job, registry)

    def forget(self, uid: str) -> None:
        """The job is gone."""
        self._pulse.forget(uid)
        for kept in (self._published, self._settling, self._looked, self._told):
            kept.pop(uid, None)

    async def _start(self, job: DiscoveryJob, registry: Registry | None, running: Running | None) -> Result | None:
        """Claim the registry, or say why not."""
        now = self._clock.now()
        if registry is None or is_deleting(registry):
            missing = f"there is no registry {job.spec.registry} in namespace {job.namespace}"
            return await self._refuse(job, End("False", "RegistryNotFound", missing))
        job = await self._labelled(job, registry)
        if running is not None:
            holder = running.job or reserved_name(registry.name)
            message = f"a discovery of {registry.name} is running since {running.started_at:%H:%M:%S} UTC, by {holder}"
            return await self._refuse(job, End("False", "DiscoveryAlreadyRunning", message), holder)
        run = Running(
            id=claim.run_id(now),
            type="manual",
            started_at=now.replace(microsecond=0),
            job=job.name,
            generation=job.metadata.generation or 0,
            uid=job.metadata.uid or "",
        )
        claimed = with_metadata(registry, annotations=claim.claimed(registry.metadata.annotations or {}, run))
        try:
            registry = await self._client.patch(registry, claimed)
        except StatusError as error:
            if error.code not in (404, 409):
                raise
            return Result(requeue_after=0.05)  # somebody wrote to it: look again
        return await self._begin(job, registry, run)

    async def _begin(self, job: DiscoveryJob, registry: Registry, run: Running) -> Result | None:
        """Install the run in the job's status: what was there before is purged in the same write."""
        self._forget(job)
        deadline = run.started_at + timedelta(seconds=registry.spec.discovery_timeout.seconds)
        now = self._clock.now()
        job = await self._labelled(job, registry)
        if run.type == "manual":
            await clean_up(self._client, registry, job)
        job = await tell(self._client, job, lambda status: begun(job, run, deadline, now, status))
        self._events.normal(registry, "DiscoveryStarted", f"a {run.type} discovery has started: {run.id}")
        return await self._await_listing(job, registry, run)

    async def _labelled(self, job: DiscoveryJob, registry: Registry) -> DiscoveryJob:
        """The registry owns its jobs, so that they go with it; the label finds them."""
        uid = registry.metadata.uid or ""
        owners = job.metadata.owner_references or ()
        labels = job.metadata.labels or {}
        if labels.get(REGISTRY_LABEL) == uid and any(owner.uid == uid for owner in owners):
            return job
        others = tuple(owner for owner in owners if owner.kind != "Registry")
        owner = owner_reference(registry, self._client.scheme, controller=not any(o.controller for o in others))
        owned = with_metadata(job, labels={**labels, REGISTRY_LABEL: uid}, owner_references=(*others, owner))
        changed: DiscoveryJob = await self._client.patch(job, owned)
        return changed

    async def _await_listing(self, job: DiscoveryJob, registry: Registry, run: Running) -> Result:
        """See that a worker knows of it. The queue hands it out again when that worker dies."""
        uid = job.metadata.uid or ""
        now = self._clock.monotonic()
        if now - self._published.get(uid, -PUBLISH_EVERY) >= PUBLISH_EVERY:
            message = CreateCatalog(
                namespace=job.namespace,
                registry=registry.name,
                registry_uid=registry.metadata.uid or "",
                type=run.type,
                job=job.name,
                job_uid=uid,
                run=run.id,
                only={name: list(tags) for name, tags in run.only.items()} if run.only is not None else None,
            )
            try:
                await self._queue.publish(CATALOG, encode(message), id=f"catalog/{uid}/{run.id}")
                self._published[uid] = now
            except QueueFull:
                return Result(requeue_after=5.0)
        return Result(requeue_after=self._pulse.wait(job))

    async def _apply(self, job: DiscoveryJob, registry: Registry) -> Result | None:
        """Make the Images that the catalogue names, mark those that it has no more."""
        status = job.status or DiscoveryJobStatus()
        listed = status.listed
        if not listed or not listed.catalog:
            reason, message = (listed.reason, listed.message) if listed else (UNSET, UNSET)
            return await self._end(job, End("False", reason or "InternalError", message or "nothing was listed"))
        if listed.registry_uri and listed.registry_uri != _host(registry):
            why = f"{listed.registry_uri} was listed, and spec.uri is another one by now: discover again"
            return await self._end(job, End("False", "RegistryChanged", why))
        registry_status = registry.status or RegistryStatus()
        new = await self._catalogue(listed.catalog)
        if new is None:
            return await self._end(job, End("False", "CatalogLost", f"the catalogue {listed.catalog} cannot be read"))
        before = await self._catalogue(registry_status.catalog) if registry_status.catalog else None
        run = status.run_id or ""
        released = (registry.metadata.annotations or {}).get(claim.RELEASE, "")
        try:
            applied = await apply(
                self._client,
                registry,
                new,
                run=run,
                complete=listed.complete,
                now=self._clock.now(),
                released=bool(released) and released == registry_status.held_run,
            )
        except InTheWay as error:  # Images of an earlier registry of this name, on their way out
            log.info("images are in the way", job=job.name, error=str(error))
            return Result(requeue_after=1.0)
        except BadReference as error:
            return await self._end(job, End("False", "InvalidRegistry", str(error)))
        counts = ImageCounts(
            discovered=len(applied.members),
            created=applied.created,
            unchanged=applied.unchanged,
            missing=applied.missing,
            removed=applied.removed,
            held=applied.held,
        )
        changes = diff(before or Catalogue(), new)
        now = self._clock.now()

        def say(told_status: DiscoveryJobStatus) -> DiscoveryJobStatus:
            done = told_status.replace(images=counts, diff=changes, progress=UNSET)
            return told(done, PROGRESSING, "True", _STAGES[job.spec.until], f"{counts.discovered} images", now)

        job = await tell(self._client, job, say, run=run)
        self._settling[job.metadata.uid or ""] = Settling(job, registry, applied.members)
        return await self._settle(job, registry)

    async def _settle(self, job: DiscoveryJob, registry: Registry) -> Result | None:
        """See which members are settled, and ask for the others."""
        uid, now = job.metadata.uid or "", self._clock.monotonic()
        status = job.status or DiscoveryJobStatus()
        counts = status.images or ImageCounts()
        if job.spec.until == "Images":
            return await self._end(job, verdict(status, counts, "Images"))
        since = now - self._looked.get(uid, -LOOK_EVERY)
        if since < LOOK_EVERY:
            return Result(requeue_after=max(LOOK_EVERY - since, 0.01))
        settling = self._settling.get(uid)
        if settling is None or settling.run != status.run_id:
            members = await self._members(status, registry)
            if members is None:
                return await self._end(job, End("False", "CatalogLost", "the catalogue of this run cannot be read"))
            settling = self._settling[uid] = Settling(job, registry, members)
        await settling.look(self._client, self._clock)
        self._looked[uid] = self._clock.monotonic()
        if not settling.pending:
            told_status = settling.tallied(status)
            end = verdict(told_status, told_status.images or counts, job.spec.until)
            return await self._end(job, end, settling)
        await settling.ask(self._client, self._queue, self._clock)
        if now - self._told.get(uid, -TELL_EVERY) >= TELL_EVERY:
            self._told[uid] = now
            await tell(self._client, job, lambda s: settling.told(s, self._clock.now()), run=settling.run)
        return Result(requeue_after=min(1.0, self._pulse.wait(job)))

    async def _end(self, job: DiscoveryJob, end: End, settling: Settling | None = None) -> Result | None:
        """The run has ended; the registry's controller sees it, and frees the registry."""
        now = self._clock.now()

        def say(status: DiscoveryJobStatus) -> DiscoveryJobStatus:
            return ended(settling.tallied(status) if settling is not None else status, end, now)

        await tell(self._client, job, say, run=(job.status and job.status.run_id) or None)
        self._forget(job)
        say_so = self._events.normal if end.succeeded else self._events.warning
        say_so(job, event_reason(end.reason), end.message or end.reason)
        return None

    async def _refuse(self, job: DiscoveryJob, end: End, blocked_by: str = "") -> Result | None:
        await tell(self._client, job, lambda status: refused(job, end, self._clock.now(), blocked_by))
        self._events.warning(job, event_reason(end.reason), end.message)
        return None

    async def _is_claimed(self, job: DiscoveryJob, registry: Registry) -> bool:
        """Whether the registry, as the server has it, is still this run's."""
        try:
            fresh = await self._client.live.get(Registry, registry.name, registry.namespace)
        except StatusError as error:
            if error.code == 404:
                return False
            raise
        running = claim.running(fresh.metadata.annotations or {})
        return running is not None and running.id == (job.status and job.status.run_id)

    async def _members(self, status: DiscoveryJobStatus, registry: Registry) -> tuple[str, ...] | None:
        found = await self._catalogue(status.listed.catalog) if status.listed and status.listed.catalog else None
        return None if found is None else catalogues.members(found, registry.name)

    async def _catalogue(self, digest: str) -> Catalogue | None:
        """None when it is lost; BlobsUnavailable when it cannot be asked for now."""
        try:
            content = await read(self._blobs, Digest(digest), max_bytes=catalogues.MAX_BYTES)
            return await asyncio.to_thread(catalogues.decode, content)  # a large one takes a while
        except (BlobMissing, BlobDamaged, BlobTooLarge, ValueError) as error:
            log.warning("a catalogue cannot be read", digest=digest, error=str(error))
            return None

    def _forget(self, job: DiscoveryJob) -> None:
        self.forget(job.metadata.uid or "")


def _host(registry: Registry) -> str:
    try:
        return endpoint(registry.spec.uri, plain_http=registry.spec.plain_http).name
    except BadReference:
        return ""


_STAGES = {"Images": "Cataloguing", "SBOMs": "GeneratingSBOMs", "Reports": "GeneratingReports"}
