"""Which members of a run are settled: every one has what the job waits for, has failed, or is gone.

The members are a frozen set of names; the run completes when none of them is pending, never when counts agree. All of this
is rebuilt from the resources at any time: a process that starts anew begins with every member pending, and asks again for
what is not there.
"""

from __future__ import annotations

import enum
import math
from datetime import datetime

from msgspec import UNSET

from trimtab.model.clock import Clock, format_micro_time
from trimtab.model.conditions import get_condition, is_true
from trimtab.runtime.cached import CachedClient
from trimtab.runtime.owners import owned_by
from trimtab.runtime.progress import ProgressStatus
from trimtab.runtime.queue import Queue, QueueFull
from trimtab.systems.images.databases import current
from trimtab.systems.images.kinds import (
    SBOM,
    DiscoveryJob,
    DiscoveryJobStatus,
    Image,
    ImageCounts,
    ImageError,
    Registry,
    VulnerabilityReport,
)
from trimtab.systems.images.kinds.job import MOST_ERRORS
from trimtab.systems.images.messages import SBOMS, GenerateSBOM, encode

WINDOW = 64
"""Images of one run that workers are asked for at a time, so that a large registry does not keep others waiting."""
NO_DATABASE = "NoDatabase"
ALL_EVERY = 30.0
AGAIN = 900.0
"""Seconds after which an image is asked for once more. The queue hands out what workers lost much sooner."""


class Fate(enum.Enum):
    PENDING = "pending"
    DONE = "done"
    FAILED = "failed"
    GONE = "gone"


class Settling:
    """Of one run."""

    def __init__(self, job: DiscoveryJob, registry: Registry, members: tuple[str, ...]) -> None:
        self.run = (job.status and job.status.run_id) or ""
        self.until = job.spec.until
        self.total = len(members)
        self.errors: list[ImageError] = []
        self._namespace, self._registry, self._registry_uid = job.namespace, registry.name, registry.metadata.uid or ""
        self._pending = dict.fromkeys(members)
        self._sboms: set[str] = set()
        self._unscanned: set[str] = set()
        self._fates = dict.fromkeys(Fate, 0)
        self._asked: dict[str, float] = {}
        self._tries = 0
        self._all_seen = -math.inf

    @property
    def pending(self) -> int:
        return len(self._pending)

    @property
    def failed(self) -> int:
        return self._fates[Fate.FAILED]

    def counts(self, before: ImageCounts) -> ImageCounts:
        """What the status says of it."""
        return before.replace(
            sboms=len(self._sboms),
            reports=self._fates[Fate.DONE] if self.until == "Reports" else before.reports,
            failed=self.failed,
            gone=self._fates[Fate.GONE],
        )

    def tallied(self, status: DiscoveryJobStatus) -> DiscoveryJobStatus:
        """The status with what became of the members; what the listing said of errors stays."""
        before = status.images or ImageCounts()
        of_listing = [error for error in status.errors or () if not error.image]
        count = (status.error_count or 0) - before.failed + self.failed
        errors = tuple((of_listing + self.errors)[:MOST_ERRORS])
        return status.replace(images=self.counts(before), errors=errors or UNSET, error_count=count or UNSET)

    def told(self, status: DiscoveryJobStatus, now: datetime) -> DiscoveryJobStatus:
        """The same, with how far it is."""
        status, done = self.tallied(status), self.total - self.pending
        before = status.progress
        if before and (before.done, before.total) == (done, self.total):
            return status  # nothing new
        stamp = format_micro_time(now)
        started = before.started if before else stamp
        progress = ProgressStatus(done=done, total=self.total, note=self.until, started=started, updated=stamp)
        return status.replace(progress=progress)

    async def look(self, client: CachedClient, clock: Clock) -> None:
        """See who of the pending is settled now. Mostly it is enough to look at those that workers were asked for."""
        now = clock.monotonic()
        everyone = now - self._all_seen >= ALL_EVERY
        if everyone:
            self._all_seen = now
        for name in tuple(self._pending if everyone else {**self._asked, **dict.fromkeys(self._unscanned)}):
            fate = await self._fate(client, name)
            if fate is not Fate.PENDING:
                self._settle(name, fate)

    def _settle(self, name: str, fate: Fate) -> None:
        self._fates[fate] += 1
        del self._pending[name]
        self._asked.pop(name, None)
        self._unscanned.discard(name)

    async def ask(self, client: CachedClient, queue: Queue, clock: Clock) -> None:
        """Ask workers for what is pending, a window of it at a time."""
        now = clock.monotonic()
        for name in tuple(self._pending):
            if name in self._unscanned:
                continue  # it only lacks its report, which comes by itself
            asked = self._asked.get(name)
            if asked is not None and now - asked < AGAIN:
                continue
            if asked is None and len(self._asked) >= WINDOW:
                return
            image = await client.find(Image, name, self._namespace)
            if image is None:
                self._settle(name, Fate.GONE)
                continue
            message = GenerateSBOM(
                namespace=self._namespace,
                registry=self._registry,
                registry_uid=self._registry_uid,
                image=name,
                image_uid=image.metadata.uid or "",
                run=self.run,
            )
            self._tries += asked is not None
            try:
                await queue.publish(SBOMS, encode(message), id=f"sbom/{self.run}/{image.metadata.uid}/{self._tries}")
            except QueueFull:
                return
            self._asked[name] = now

    async def _fate(self, client: CachedClient, name: str) -> Fate:
        image = await client.find(Image, name, self._namespace)
        if image is None or image.metadata.deletion_timestamp:
            return Fate.GONE
        attempt = image.status.attempt if image.status else UNSET
        if attempt and attempt.run == self.run and attempt.reason:
            self._fail(image, attempt.reason, attempt.message or "")
            return Fate.FAILED
        sbom = await client.find(SBOM, name, self._namespace)
        if sbom is None or not owned_by(sbom, image):
            return Fate.PENDING
        if not is_true(image.status.conditions if image.status else UNSET, "Ready"):
            return Fate.PENDING  # whoever made it had not yet kept its documents: a worker looks after that
        self._sboms.add(name)
        if self.until != "Reports":
            return Fate.DONE
        self._asked.pop(name, None)
        self._unscanned.add(name)
        return await self._scanned(client, image, sbom)

    async def _scanned(self, client: CachedClient, image: Image, sbom: SBOM) -> Fate:
        report = await client.find(VulnerabilityReport, sbom.name, self._namespace)
        if report is not None and owned_by(report, sbom):
            return Fate.DONE
        scanned = get_condition(sbom.status.conditions, "Scanned") if sbom.status else None
        if scanned is not None and scanned.status == "False":
            if scanned.reason == NO_DATABASE and await current(client) is not None:
                return Fate.PENDING  # it was imported since, and the scan is on its way
            self._fail(image, scanned.reason, scanned.message)
            return Fate.FAILED
        return Fate.PENDING

    def _fail(self, image: Image, reason: str, message: str) -> None:
        if len(self.errors) < MOST_ERRORS:
            spec = image.spec
            self.errors.append(
                ImageError(
                    repository=spec.repository, tag=spec.tag, image=image.name, reason=reason, message=message[:512]
                )
            )
