"""A worker's hold on a run: the right to write to the status of its job, until another takes it.

The run is in three places, and all must agree: the message, the claim of the registry, and the job's status, which has the
fence besides. Taking a run raises the fence in one write that is conditional on the job's revision; from then on every
write of whoever had it before is refused, because it sees another fence, or none at all.

Whether another worker is alive is judged by what this process sees of it while it has the message, and never by comparing
the clocks of two machines: a run whose word did not change for SILENT seconds of our own clock may be taken. Looking costs
no delivery of the message, so a dead worker's run is taken at the first one, however many workers there are.
"""

from __future__ import annotations

from typing import Self

from msgspec import UNSET

from trimtab.model.clock import Clock, format_time
from trimtab.model.errors import StatusError
from trimtab.model.logs import log
from trimtab.runtime.deadline import within
from trimtab.runtime.objects import is_deleting, typed
from trimtab.storage.blobs import BlobError
from trimtab.systems.images.kinds import DiscoveryJob, DiscoveryJobStatus, Registry
from trimtab.systems.images.messages import CreateCatalog
from trimtab.systems.images.pins import run_owner
from trimtab.systems.images.runs import claim
from trimtab.systems.images.runs.states import PROGRESSING, State, state_of, told
from trimtab.systems.images.runs.telling import Say, Superseded, tell
from trimtab.systems.images.worker.handling import Later, Tools

SILENT = 60.0
"""Seconds without a word after which another worker may take the run."""
LOOK = 10.0
"""Seconds between looks at a run that another has: shorter than the pauses between the words of one that lives."""
AGAIN = 30.0
"""Seconds until a message is handed out again whose run another worker lives at."""
ATTEMPTS = 8
LETTING_GO = 5.0


class Lost(Exception):  # noqa: N818 - it reads as what happened
    """The run is not ours any more: it ended, another worker took it, or what it was for is gone."""


class Sighting:
    """Of a run: the last word of whoever is at it, and since when it is the last by our own clock."""

    def __init__(self, clock: Clock, silent: float) -> None:
        self._clock, self._silent = clock, silent
        self._word, self._since = "", 0.0

    async def is_silent(self, status: DiscoveryJobStatus) -> bool:
        """Whether that worker counts as dead. Else a while has passed, and there is to be another look. Later when it
        said something since the last one."""
        now, word = self._clock.monotonic(), f"{status.fence} {status.heartbeat}"
        if self._word and word != self._word:
            raise Later(f"the worker {status.worker} is at it", AGAIN)
        if not self._word:
            self._word, self._since = word, now
        left = self._silent - (now - self._since)
        if left > 0:
            await self._clock.sleep(min(LOOK, left))
        return left <= 0


class Hold:
    """Made by `take`. `registry` is as it was then."""

    def __init__(self, tools: Tools, message: CreateCatalog, registry: Registry, job: DiscoveryJob) -> None:
        self.registry, self.run = registry, message.run
        self._tools, self._message, self._job = tools, message, job
        self._fence = (job.status or DiscoveryJobStatus()).fence or 0

    @classmethod
    async def take(cls, tools: Tools, message: CreateCatalog, silent: float = SILENT) -> Self | None:
        """None when there is nothing to do any more. Later while another worker is at it."""
        sighting, attempts = Sighting(tools.clock, silent), 0
        while attempts < ATTEMPTS:
            registry, job = await _registry(tools, message), await _job(tools, message)
            if registry is None or job is None or job.spec.registry != registry.name:
                return None
            status = job.status or DiscoveryJobStatus()
            if status.run_id != message.run or state_of(status) not in (State.PENDING, State.LISTING):
                return None
            if status.worker and status.worker != tools.name and not await sighting.is_silent(status):
                continue
            now = tools.clock.now()
            taken = status.replace(worker=tools.name, fence=(status.fence or 0) + 1, heartbeat=format_time(now))
            taken = told(taken, PROGRESSING, "True", "Listing", f"by {tools.name}", now)
            try:
                mine = await tools.client.patch(job, job.replace(status=taken), subresource="status")
            except StatusError as error:
                if error.code not in (404, 409):
                    raise
                attempts += 1
            else:
                return cls(tools, message, registry, mine)
        raise Later(f"the job {message.job} changes all the time", AGAIN)

    @property
    def fence(self) -> int:
        """How often the run was taken, by whomever."""
        return self._fence

    @property
    def owner(self) -> str:
        """Of the blobs of this run."""
        return run_owner(self.registry.namespace, self.registry.name, self.registry.metadata.uid or "", self.run)

    async def tell(self, say: Say) -> None:
        """Write to the status of the job. Lost when it is not ours to write."""
        if await _registry(self._tools, self._message) is None:
            raise Lost("the registry is gone, or not claimed for this run")

        def guarded(status: DiscoveryJobStatus) -> DiscoveryJobStatus:
            self._check(status)
            return say(status)

        try:
            self._job = await tell(self._tools.client, self._job, guarded, run=self.run)
        except Superseded as superseded:
            raise Lost(str(superseded)) from None

    async def verify(self) -> None:
        """Lost when it is not ours, as the server has it now."""
        registry, job = await _registry(self._tools, self._message), await _job(self._tools, self._message)
        if registry is None or job is None:
            raise Lost("the registry or the job is gone, or not claimed for this run")
        self._check(job.status or DiscoveryJobStatus())
        self._job = job

    async def let_go(self) -> None:
        """So that another need not wait until we count as dead. What goes wrong here only costs that time."""
        try:
            await within(self._tools.clock, LETTING_GO, self.tell(lambda status: status.replace(worker=UNSET)))
        except (Lost, StatusError, OSError, TimeoutError) as error:
            log.info("a run could not be let go", run=self.run, error=str(error))

    async def unpin(self) -> None:
        """What was pinned for a run that is over. While it goes on, with another worker, that one keeps its own."""
        registry, job = await _registry(self._tools, self._message), await _job(self._tools, self._message)
        if registry is not None and job is not None and (job.status or DiscoveryJobStatus()).run_id == self.run:
            return  # whoever ends the run lets go
        try:
            await self._tools.blobs.unpin(self.owner)
        except BlobError as error:
            log.warning("a catalogue that nobody wants could not be let go", owner=self.owner, error=str(error))

    def _check(self, status: DiscoveryJobStatus) -> None:
        if status.run_id != self.run or status.fence != self._fence:
            raise Lost("another worker has the run")
        if state_of(status) not in (State.PENDING, State.LISTING):
            raise Lost("the run has ended")


async def _registry(tools: Tools, message: CreateCatalog) -> Registry | None:
    """The registry, if it is the one that was meant and is claimed for this run."""
    try:
        found = typed(await tools.client.get(Registry, message.registry, message.namespace), Registry)
    except StatusError as error:
        if error.code == 404:
            return None
        raise
    if is_deleting(found) or (message.registry_uid and found.metadata.uid != message.registry_uid):
        return None
    running = claim.running(found.metadata.annotations or {})
    return found if running is not None and running.id == message.run else None


async def _job(tools: Tools, message: CreateCatalog) -> DiscoveryJob | None:
    try:
        found = typed(await tools.client.get(DiscoveryJob, message.job, message.namespace), DiscoveryJob)
    except StatusError as error:
        if error.code == 404:
            return None
        raise
    return None if is_deleting(found) or found.metadata.uid != message.job_uid else found
