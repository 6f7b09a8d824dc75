"""The GitSyncs' controller at work: when a sync runs, and why. What a run does is in `running`.

A run has a reason: the GitSync or its Repository changed, somebody asked (an annotation, by hand or by a webhook), a person
decided a conflict or confirmed deletions, its interval or its cron line is due, objects changed in the system, or the last
run may go better now. All of it is read from what is there, so that a process that takes over goes on.

A run that may go better by itself is tried again after a pause that grows, whatever wakes the controller meanwhile: its own
writes do. All other reasons count at once.
"""

from __future__ import annotations

import asyncio
import math
from random import Random
from typing import Any

from msgspec import UNSET

from trimtab.client.protocol import Query
from trimtab.model.clock import parse_time
from trimtab.runtime import Context, Request, Result
from trimtab.runtime.cached import CachedClient
from trimtab.runtime.credentials import Credentials
from trimtab.runtime.events import Recorder
from trimtab.runtime.guarded import Guarded
from trimtab.runtime.informers import Informers
from trimtab.runtime.limits import Backoff
from trimtab.runtime.runs import Runs
from trimtab.runtime.schedule import InvalidSchedule, Schedule
from trimtab.systems.gitops.acting import Actors
from trimtab.systems.gitops.following import Followers
from trimtab.systems.gitops.keeping import Kept, owner_of
from trimtab.systems.gitops.kinds import GitSync, GitSyncStatus, Repository, SyncConflict
from trimtab.systems.gitops.kinds.fields import CONFIRM, SYNC_NOW
from trimtab.systems.gitops.knowing import Knowledge
from trimtab.systems.gitops.parsing import Identity, SelectionError, selection
from trimtab.systems.gitops.reach import Mirrors
from trimtab.systems.gitops.reading import Reader
from trimtab.systems.gitops.run.claims import Claims
from trimtab.systems.gitops.run.tools import Memory, Tools
from trimtab.systems.gitops.running import Ran, Running
from trimtab.systems.gitops.scope import in_scope
from trimtab.systems.gitops.served import Served
from trimtab.systems.gitops.telling import Teller, Verdict

LONGEST = 10.0
"""Seconds that changes of the system wait at most, when others keep coming."""
FIRST_PAUSE, LONGEST_PAUSE = 0.5, 300.0
"""Seconds before a run that failed is tried again: doubled each time, and at most so many."""
BY_THEMSELVES = ("Retry", "Interval", "Cron", "Internal")
"""Reasons that nobody gave who may have mended something."""


class Conductor:
    """Of one process."""

    def __init__(
        self,
        context: Context,
        client: CachedClient,
        events: Recorder,
        informers: Informers,
        wake: Any,
        *,
        quiet: float,
    ) -> None:
        if context.blobs is None:
            raise ValueError("Git sync keeps its inventories in blobs, and was given no place for them")
        self._clock, self._client, self._wake, self._quiet = context.clock, client, wake, quiet
        knowledge = Knowledge(context.client.scheme)
        served = Served(context.client.transport)
        credentials = Credentials(context.client, clock=context.clock)
        self._credentials = credentials
        self._memories: dict[str, Memory] = {}
        self._by_request: dict[Request, Memory] = {}
        chance = Random()  # noqa: S311 - spreads retries, guards nothing
        self._pauses: Backoff[str] = Backoff(first=FIRST_PAUSE, longest=LONGEST_PAUSE, random=chance)
        self._followers = Followers(informers, self._told)
        live = client.live
        self._tools = Tools(
            client=client,
            clock=context.clock,
            blobs=context.blobs,
            mirrors=Mirrors(context.scratch, credentials),
            credentials=credentials,
            served=served,
            knowledge=knowledge,
            reader=Reader(served, knowledge, workers=context.workers),
            actors=Actors(context.client, knowledge.keeps_lineage),
            guard=live.guard if isinstance(live, Guarded) else Unguarded,
            events=events,
            suffix=context.client.scheme.suffix,
            claims=Claims(client, context.blobs, self._at_work),
        )

    async def close(self) -> None:
        await self._followers.close()
        await self._tools.actors.close()
        await self._credentials.close()

    async def conduct(self, sync: GitSync) -> Result | None:
        memory = self._memory(sync)
        if sync.spec.suspend:
            await self._followers.follow(_request(sync), None)
            await self._suspended(sync)
            return None
        reason = await self._reason(sync, memory)
        if reason is None:
            return self._wait(sync, memory)
        return await self._run(sync, memory, *reason)

    async def let_go(self, sync: GitSync) -> None:
        """The GitSync goes; what it applied stays."""
        await self._followers.follow(_request(sync), None)
        status = sync.status or GitSyncStatus()
        await Runs(self._clock, blobs=self._tools.blobs, owner=owner_of(sync)).forget(status.history)
        await Kept(self._tools.blobs, owner_of(sync)).forget()
        self._memories.pop(str(sync.metadata.uid), None)
        self._pauses.forget(str(sync.metadata.uid))
        self._by_request.pop(_request(sync), None)

    # --- why and when ----------------------------------------------------------------------------------------------

    async def _reason(self, sync: GitSync, memory: Memory) -> tuple[str, bool] | None:
        """The trigger, and whether all is looked at."""
        status = sync.status or GitSyncStatus()
        annotations = sync.metadata.annotations or {}
        asked = annotations.get(SYNC_NOW, "")[:253]
        repository = await self._client.find(Repository, sync.spec.repository, sync.namespace)
        seen = (str(repository.metadata.uid), int(repository.metadata.generation or 0)) if repository else ("", 0)
        moved, memory.repository = memory.repository != seen, seen
        plan = status.held.plan if status.held and annotations.get(CONFIRM) == status.held.plan else ""
        confirmed, memory.confirmed = plan not in ("", memory.confirmed), plan
        decisions = await self._decisions(sync) if status.conflicts else frozenset()
        decided, memory.decisions = not decisions <= memory.decisions, decisions
        if memory.looked_at is None or status.observed_generation != sync.metadata.generation:
            return ("Changed" if status.observed_generation else "Created"), True
        if confirmed:
            return "Confirmed", True
        if asked and asked != (status.handled_request or ""):
            return ("Webhook", False) if asked.startswith("webhook ") else ("Manual", True)
        if moved:
            return "RepositoryChanged", True
        if decided:
            return "Resolved", False
        if self._cron_due(sync) == 0.0:
            return "Cron", True
        if self._interval_due(sync, memory) <= 0:
            return "Interval", True
        if memory.changed and self._changes_due(memory) <= 0:
            return "Internal", False
        return ("Retry", True) if self._retry_due(memory) <= 0 else None

    def _wait(self, sync: GitSync, memory: Memory) -> Result:
        times = [self._interval_due(sync, memory), self._retry_due(memory)]
        if memory.changed:
            times.append(self._changes_due(memory))
        cron = self._cron_due(sync)
        if cron is not None:
            times.append(cron)
        return Result(requeue_after=max(min(times), 0.01))

    def _interval_due(self, sync: GitSync, memory: Memory) -> float:
        since = self._clock.monotonic() - (memory.looked_at or 0.0)
        return float(sync.spec.triggers.interval.seconds) - since

    def _retry_due(self, memory: Memory) -> float:
        return math.inf if memory.retry_at is None else memory.retry_at - self._clock.monotonic()

    def _changes_due(self, memory: Memory) -> float:
        return min(memory.changed_last + self._quiet, memory.changed_first + LONGEST) - self._clock.monotonic()

    def _cron_due(self, sync: GitSync) -> float | None:
        """Seconds until the next time of a cron line; 0 when it is now."""
        triggers = sync.spec.triggers
        if not triggers.cron:
            return None
        now = self._clock.now()
        last = parse_time(sync.status.last_run_time) if sync.status and sync.status.last_run_time else None
        made = sync.metadata.creation_timestamp
        try:
            coming = Schedule(cron=triggers.cron, zone=triggers.time_zone).next(
                now, last, parse_time(made) if isinstance(made, str) else None
            )
        except InvalidSchedule:
            return None  # its condition says so
        return max((coming - now).total_seconds(), 0.0) if coming is not None else None

    async def _decisions(self, sync: GitSync) -> frozenset[tuple[str, int]]:
        """Which conflicts a person decided, and in which generation of them."""
        listing = await self._client.list(SyncConflict, Query(namespace=sync.namespace))
        return frozenset(
            (str(item.metadata.uid), int(item.metadata.generation or 0))
            for item in listing.items
            if item.spec.git_sync == sync.name and item.spec.resolution is not UNSET
        )

    # --- runs ------------------------------------------------------------------------------------------------------

    async def _run(self, sync: GitSync, memory: Memory, trigger: str, everything: bool) -> Result:
        stale = trigger in ("Created", "Changed", "Interval", "Cron", "Retry")
        stale = await self._follow(sync, stale)
        changed, memory.changed = memory.changed, set()
        if problem := _schedule_problem(sync):
            memory.looked_at, memory.retry_at = self._clock.monotonic(), None
            await self._tell(sync, Verdict(False, "InvalidSchedule", problem, stalled=True))
            return Result(requeue_after=sync.spec.triggers.interval.seconds)
        waits = bool(
            sync.status and sync.status.held
        )  # who looks at a part sees none of what waits, and it would be forgotten
        everything = everything or waits or memory.retry_at is not None
        if trigger not in BY_THEMSELVES:
            self._pauses.forget(str(sync.metadata.uid))
        running = Running(self._tools, sync, memory, trigger, stamp=trigger == "Cron")
        try:
            async with asyncio.timeout(sync.spec.timeout.seconds):
                ran = await running.run(everything=everything, changed=changed, stale=stale)
        except TimeoutError:
            try:
                ran = await running.timed_out()
            finally:
                memory.kept = None  # what was cut off is read again
        except BaseException:
            memory.changed |= changed
            memory.kept = None
            memory.retry_at = self._clock.monotonic()
            raise
        self._remember(running.sync, memory, ran, everything=everything)
        return self._wait(running.sync, memory)

    def _remember(self, sync: GitSync, memory: Memory, ran: Ran, *, everything: bool) -> None:
        """When it runs next, by itself."""
        key, now = str(sync.metadata.uid), self._clock.monotonic()
        if ran.again:
            memory.retry_at = now + self._pauses.next(key)
        else:
            memory.retry_at = None
            self._pauses.forget(key)
        if memory.looked_at is None or (everything and not ran.verdict.ok):  # the next look is at the next interval
            memory.looked_at = now

    async def _follow(self, sync: GitSync, stale: bool) -> bool:
        """Whether it is `stale` still which kinds there are."""
        spec = sync.spec
        if not (spec.system_to_git and spec.triggers.internal):
            await self._followers.follow(_request(sync), None)
            return stale
        try:
            chosen = selection(spec.include, spec.exclude)
        except SelectionError:
            return stale
        await (self._tools.served.refresh() if stale else self._tools.served.know(()))
        scope = in_scope(self._tools.served, self._tools.knowledge, chosen, sync)
        try:
            await self._followers.follow(_request(sync), scope)
        except TimeoutError:
            self._tools.events.warning(sync, "NotFollowed", "changes in the system are found at each interval only")
        return False

    def _told(self, request: Request, identity: Identity) -> None:
        memory = self._by_request.get(request)
        if memory is None:
            return
        now = self._clock.monotonic()
        memory.changed_first = memory.changed_first if memory.changed else now
        memory.changed_last = now
        memory.changed.add(identity)
        self._wake(request)

    def _at_work(self, sync: GitSync) -> Kept | None:
        memory = self._memories.get(str(sync.metadata.uid))
        return memory.kept if memory is not None else None

    def _memory(self, sync: GitSync) -> Memory:
        memory = self._memories.setdefault(str(sync.metadata.uid), Memory())
        self._by_request[_request(sync)] = memory
        return memory

    async def _suspended(self, sync: GitSync) -> None:
        await self._tell(sync, Verdict(False, "Suspended", "spec.suspend: nothing is synced until it is taken away"))

    async def _tell(self, sync: GitSync, verdict: Verdict) -> None:
        teller = Teller(self._client, self._clock, sync)
        status = teller.status
        synced = next((c.status == "True" for c in status.conditions or () if c.type == "Synced"), False)
        await teller.write(
            conditions=teller.conditions(verdict, conflicts=status.conflicts or 0, in_sync=synced),
            observed_generation=sync.metadata.generation,
            progress=UNSET,
        )


class Unguarded:
    """The guard of writes where there is no election."""

    async def __aenter__(self) -> None: ...

    async def __aexit__(self, *problem: object) -> None: ...


def _request(sync: GitSync) -> Request:
    return Request(sync.namespace, sync.name)


def _schedule_problem(sync: GitSync) -> str:
    triggers = sync.spec.triggers
    found = Schedule(cron=triggers.cron, zone=triggers.time_zone).problems("spec.triggers") if triggers.cron else ()
    names = {"spec.triggers.zone": "spec.triggers.timeZone"}
    return "; ".join(f"{names.get(each.path, each.path)}: {each.body}" for each in found)
