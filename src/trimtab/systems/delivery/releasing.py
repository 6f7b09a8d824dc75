"""One reconcile of a CanaryDeployment: look, put right, ask what is due, move, write it down; and once more, until there
is something to wait for.

Order: what the status says is enforced; only then the machine moves the status, which is written before anything is done
about it. A crash anywhere leaves a status whose objects are made at the next look. Who looks then may have a cache that is
behind, so what is written or removed by a status is first confirmed: see `objects.grounds`.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING

import msgspec
from msgspec import UnsetType

from trimtab.client.protocol import Query
from trimtab.model.clock import Clock, format_time, parse_time
from trimtab.model.errors import FieldError, StatusError
from trimtab.model.kubernetes import Deployment
from trimtab.runtime.controller import Result
from trimtab.runtime.credentials import Credentials
from trimtab.runtime.objects import uid_of
from trimtab.runtime.status import write_status
from trimtab.runtime.system import Context
from trimtab.storage.blobs import BlobError, Digest
from trimtab.systems.delivery import world
from trimtab.systems.delivery.checking import Checker, pin_of
from trimtab.systems.delivery.groups.orders import order
from trimtab.systems.delivery.hooks.calling import Hooks
from trimtab.systems.delivery.kinds import CanaryDeployment, CanaryDeploymentStatus, ReleaseGroup, RunStatus
from trimtab.systems.delivery.kinds.canary import Drift
from trimtab.systems.delivery.letting_go import LettingGo
from trimtab.systems.delivery.machine.advance import advance, interrupted, needed
from trimtab.systems.delivery.machine.analysing import lost
from trimtab.systems.delivery.machine.facts import Facts, Move, Need, Outcome, Pods
from trimtab.systems.delivery.machine.runs import analysis_of, only_waits
from trimtab.systems.delivery.measures import Measures
from trimtab.systems.delivery.measuring.contract import SourceError
from trimtab.systems.delivery.measuring.sources import Sources
from trimtab.systems.delivery.objects.enforcing import remove
from trimtab.systems.delivery.objects.grounds import Grounds, Overtaken
from trimtab.systems.delivery.objects.names import canary_name
from trimtab.systems.delivery.problems import problems
from trimtab.systems.delivery.problems.neighbours import neighbour_problems
from trimtab.systems.delivery.putting_right import Enforcer
from trimtab.systems.delivery.revisions import snapshots
from trimtab.systems.delivery.revisions.configs import TooManyConfigs, Tracked, tracked
from trimtab.systems.delivery.revisions.hashing import revision_of
from trimtab.systems.delivery.telling import PEACE, Trouble, spells, told

if TYPE_CHECKING:
    from trimtab.runtime.cached import CachedClient
    from trimtab.runtime.events import Recorder

TURNS = 16
"""Moves of one reconcile; then others have their turn."""
AGAIN = 0.05
"""Seconds after which is looked again when someone wrote meanwhile."""
BLOCKED = 5.0
"""Seconds after which is looked again whether what was in the way is gone."""
FIGHT = 5
"""More corrections than this within `PEACE` seconds are a fight."""


class Releaser:
    """Of all CanaryDeployments of a process."""

    def __init__(self, context: Context, client: CachedClient, clock: Clock, events: Recorder) -> None:
        self._client, self._clock, self._events, self._blobs = client, clock, events, context.blobs
        self._credentials = Credentials(client, clock=clock)
        self._sources = Sources(client, default=context.prometheus, credentials=self._credentials, clock=clock)
        self._hooks = Hooks(self._credentials)
        self._checker = Checker(client, clock, self._sources, self._hooks, context.blobs)
        self._enforcer = Enforcer(client, clock)
        self._known: dict[str, tuple[int, tuple[FieldError, ...]]] = {}
        self._letting_go = LettingGo(client, clock, context.blobs)
        self.measures = Measures(context.metrics.registry)

    async def close(self) -> None:
        await self._hooks.close()
        await self._sources.close()
        await self._credentials.close()

    async def let_go(self, canary: CanaryDeployment) -> float | None:
        """Seconds to wait before it may go; None when traffic is back at stable."""
        wait = await self._letting_go.seconds(canary)
        if wait is None:
            self._enforcer.forget(uid_of(canary))
            self._known.pop(uid_of(canary), None)
        return wait

    async def release(self, canary: CanaryDeployment) -> Result | None:
        """The reconcile of one that stays."""
        for _ in range(TURNS):
            try:
                canary, again, after = await self._turn(canary)
            except Overtaken:
                return Result(requeue_after=AGAIN)
            except StatusError as error:
                if error.code != 409:
                    raise
                return Result(requeue_after=AGAIN)
            if not again:
                return None if after is None else Result(requeue_after=max(after, 0.01))
        return Result(requeue_after=0.01)

    async def _turn(self, canary: CanaryDeployment) -> tuple[CanaryDeployment, bool, float | None]:
        """The object after one move, whether to go on at once, and when to look again."""
        status = canary.status or CanaryDeploymentStatus()
        if not isinstance(status.override, UnsetType) and not status.override.reset:
            canary = await self._reset(canary)
            reset = status.replace(override=status.override.replace(reset=True))
            return await write_status(self._client, canary, reset), True, None
        found = self._problems(canary)
        if found:
            said = "; ".join(map(str, found))
            return await self._frozen(canary, status, Trouble("InvalidSpec", said))
        beside = [] if status.phase else neighbour_problems(canary, await self._older(canary))
        if beside:
            return await self._frozen(canary, status, Trouble("Conflict", "; ".join(each.detail for each in beside)))
        template = canary.spec.deployment["template"]
        try:
            configs = await tracked(self._client, canary.namespace, template)
        except TooManyConfigs as error:
            return await self._frozen(canary, status, Trouble("InvalidSpec", f"spec.deployment.template: {error}"))
        trouble = _missing(configs)
        if trouble is not None and (not status.phase or not status.target_revision):
            return await self._frozen(canary, status, trouble)
        if trouble is not None and status.target_revision:
            target = status.target_revision
        else:
            try:
                target = await self._target(canary, status, configs)
            except snapshots.SnapshotConflict as error:
                return await self._frozen(canary, status, Trouble("Conflict", str(error)))
            status = status.replace(
                target_revision=target, target_generation=canary.metadata.generation, tracked_configs=configs.configs
            )
        if not status.phase:
            begun = status.replace(phase="Initializing", stable_revision=target)
            written = await write_status(self._client, canary, begun)
            return written, True, None
        return await self._moved(canary, status, target, trouble)

    def _problems(self, canary: CanaryDeployment) -> Sequence[FieldError]:
        """Of its spec, which is looked at once for each generation."""
        uid, generation = uid_of(canary), canary.metadata.generation or 0
        known = self._known.get(uid)
        if known is None or known[0] != generation:
            known = self._known[uid] = (generation, tuple(problems(canary)))
        return known[1]

    async def _older(self, canary: CanaryDeployment) -> list[CanaryDeployment]:
        """Those of its namespace that were there first: of two that are in each other's way, the newer one waits. Asked
        only before anything is made; later admission sees to it."""
        listed = (await self._client.list(CanaryDeployment, Query(namespace=canary.namespace))).items
        return [other for other in listed if _rank(other) < _rank(canary)]

    async def _target(self, canary: CanaryDeployment, status: CanaryDeploymentStatus, configs: Tracked) -> str:
        """The revision of the spec, with its snapshot kept. One that is known by another hash keeps the name it has: an
        upgrade that hashes otherwise starts nothing."""
        template = canary.spec.deployment["template"]
        target = revision_of(template, configs.configs)
        if target != status.stable_revision and await snapshots.load(self._client, canary, target) is None:
            target = snapshots.known_as(target, await snapshots.listed(self._client, canary))
        await snapshots.save(self._client, canary, target, template, configs)
        return target

    async def _moved(
        self, canary: CanaryDeployment, status: CanaryDeploymentStatus, target: str, trouble: Trouble | None
    ) -> tuple[CanaryDeployment, bool, float | None]:
        now = self._clock.now()
        fighting = _fights(status, now)
        # What is on its way to stable is finished, whoever says stop: half of it would be neither.
        still = (fighting or canary.spec.suspend) and status.phase not in world.UNSTOPPABLE
        seen = await self._enforcer.enforced(canary, canary.status or status, dry=still)
        if isinstance(seen, Trouble):
            return await self._stopped(canary, status, target, seen)
        status = self._noted(canary, status, seen.drifts if not still else ())
        groups = (await self._client.list(ReleaseGroup, Query(namespace=canary.namespace))).items
        what, back = order(canary.name, status, groups)
        facts = Facts(
            now=now,
            generation=canary.metadata.generation or 0,
            spec=canary.spec,
            annotations=canary.metadata.annotations or {},
            target=target,
            stable=seen.stable,
            canary=seen.canary,
            live=seen.live,
            wait=seen.wait,
            drifted=seen.drifted,
            routes=seen.routes,
            drifts=seen.drifts if still else (),
            order=what,
            order_revision=back,
            earlier=status.earlier_revisions,
            fighting=fighting,
        )
        need = needed(status, facts)
        await self._warm(canary, status)
        outcome = None if need is Need.NOTHING else await self._asked(need, canary, status, seen.canary)
        move = advance(status, facts, outcome)
        if fighting and move.after is None and not isinstance(status.drift, UnsetType):
            peace = PEACE - _age(status.drift, now) + 1.0  # then it is tried again
            move = msgspec.structs.replace(move, after=peace)
        return await self._done(canary, status, facts, move, trouble)

    async def _stopped(
        self, canary: CanaryDeployment, status: CanaryDeploymentStatus, target: str, trouble: Trouble
    ) -> tuple[CanaryDeployment, bool, float | None]:
        """What is in the way holds a run; it can be left nevertheless, and pods that are gone get no traffic."""
        run = status.run
        if isinstance(run, UnsetType):
            return await self._frozen(canary, status, trouble)
        _, other = await world.documents_of(self._client, canary)
        facts = Facts(
            now=self._clock.now(),
            generation=canary.metadata.generation or 0,
            spec=canary.spec,
            annotations=canary.metadata.annotations or {},
            target=target,
            stable=Pods(),
            canary=world.pods(other, run.revision, 100),
            live=False,
        )
        move = interrupted(status, run, facts)
        if move is None and run.weight and status.phase in world.WITH_CANARY and not facts.canary.ready:
            move = lost(status, run, facts)
        if move is None:
            return await self._frozen(canary, status, trouble)
        return await self._done(canary, status, facts, move, trouble)

    async def _asked(self, need: Need, canary: CanaryDeployment, status: CanaryDeploymentStatus, pods: Pods) -> Outcome:
        run = status.run
        assert not isinstance(run, UnsetType)  # noqa: S101 - without a run nothing is needed
        late = 0.0
        if not isinstance(run.next_check_time, UnsetType):
            late = (self._clock.now() - parse_time(run.next_check_time)).total_seconds()
        outcome = await self._checker.asked(need, canary, status, pods)
        if outcome.check is not None:
            self.measures.checked(outcome.check.verdict, late)
        return outcome

    async def _warm(self, canary: CanaryDeployment, status: CanaryDeploymentStatus) -> None:
        """A data plane that we scrape ourselves has no past: it is scraped before the first window begins."""
        run = status.run
        if isinstance(run, UnsetType) or status.phase not in world.WITH_CANARY:
            return
        analysis = analysis_of(run)
        if isinstance(analysis, UnsetType) or not analysis.metrics:
            return
        try:
            await self._sources.source(canary.namespace, analysis.prometheus, window=10 * analysis.interval.seconds)
        except SourceError:
            return  # the check will say so

    async def _done(
        self,
        canary: CanaryDeployment,
        status: CanaryDeploymentStatus,
        facts: Facts,
        move: Move,
        trouble: Trouble | None,
    ) -> tuple[CanaryDeployment, bool, float | None]:
        after = move.status
        after = told(canary, after, self._clock, facts, trouble)
        ended = not isinstance(status.run, UnsetType) and isinstance(after.run, UnsetType)
        if ended:
            await self._unpin(canary, status, after)
        written = await write_status(self._client, canary, after)
        await self._replaced(canary, status.run, after.run)
        for said in (*move.said, *spells(status, after)):
            (self._events.warning if said.warning else self._events.normal)(canary, said.reason, said.note)
        if ended and not isinstance(status.run, UnsetType):
            self.measures.ended(status.run.result or "Cancelled", status.run.reason or "")
            keep = {each for each in (after.stable_revision, after.target_revision, *after.earlier_revisions) if each}
            await snapshots.prune(self._client, canary, keep, canary.spec.revision_history_limit)
        if move.remove and written is canary:  # else the server has just taken the status
            await Grounds(self._client, canary).confirm()
        gone = move.remove and await remove(self._client, written, Deployment, canary_name(canary))
        if move.after is not None and not gone and only_waits(status, after):
            return written, False, move.after
        changed = written is not canary
        return written, changed or gone, None if changed else move.after

    async def _reset(self, canary: CanaryDeployment) -> CanaryDeployment:
        """The flag is false again. That it was used is in the status already."""
        if not canary.spec.skip_analysis:
            return canary
        return await self._client.patch(canary, canary.replace(spec=canary.spec.replace(skip_analysis=False)))

    async def _unpin(
        self, canary: CanaryDeployment, before: CanaryDeploymentStatus, after: CanaryDeploymentStatus
    ) -> None:
        """Records of runs that leave the history are let go, before the history is written."""
        if self._blobs is None:
            return
        kept = {run.id for run in after.history or ()}
        for run in before.history or ():
            if run.id not in kept:
                await self._blobs.unpin(pin_of(canary, run.id))

    async def _replaced(
        self, canary: CanaryDeployment, before: RunStatus | UnsetType, after: RunStatus | UnsetType
    ) -> None:
        """A record that the status named until now, and that another has taken the place of, is let go."""
        if self._blobs is None or isinstance(before, UnsetType) or isinstance(after, UnsetType):
            return
        if not isinstance(before.record, UnsetType) and before.record != after.record:
            try:
                await self._blobs.unpin(pin_of(canary, before.id), Digest(before.record))
            except (BlobError, OSError):
                return  # it goes with the run

    async def _frozen(
        self, canary: CanaryDeployment, status: CanaryDeploymentStatus, trouble: Trouble
    ) -> tuple[CanaryDeployment, bool, float | None]:
        """Nothing moves and nothing is touched until someone changes something."""
        before = canary.status or CanaryDeploymentStatus()
        written = await write_status(self._client, canary, told(canary, before, self._clock, None, trouble))
        if written is not canary:
            self._events.warning(canary, trouble.reason, trouble.message)
        # What is wrong with the spec is mended by its author; what is in the way may go without our being told.
        return written, False, None if trouble.reason == "InvalidSpec" else BLOCKED

    def _noted(
        self, canary: CanaryDeployment, status: CanaryDeploymentStatus, drifts: Sequence[str]
    ) -> CanaryDeploymentStatus:
        """What was put back at one look counts once, within the last ten minutes."""
        for text in drifts:
            self._events.warning(canary, "DriftCorrected", text)
            self.measures.drifted(text.partition(" ")[0])
        if not drifts:
            return status
        known, now = status.drift, self._clock.now()
        if isinstance(known, UnsetType) or not known.since or _age(known, now) > PEACE:
            known = Drift(since=format_time(now))
        return status.replace(drift=known.replace(count=known.count + 1, last=drifts[-1][:1024]))


def _rank(canary: CanaryDeployment) -> tuple[bool, str, str]:
    """Who has begun goes before who has not."""
    begun = not isinstance(canary.status, UnsetType) and bool(canary.status.phase)
    return not begun, str(canary.metadata.creation_timestamp or ""), canary.name


def _missing(configs: Tracked) -> Trouble | None:
    if not configs.needed:
        return None
    names = ", ".join(f"{each.kind} {each.name}" for each in configs.needed)
    return Trouble("ConfigMissing", f"the template needs {names}: create what is missing")


def _fights(status: CanaryDeploymentStatus, now: datetime) -> bool:
    drift = status.drift
    return not isinstance(drift, UnsetType) and drift.count > FIGHT and _age(drift, now) <= PEACE


def _age(drift: Drift, now: datetime) -> float:
    return (now - parse_time(drift.since)).total_seconds() if drift.since else 0.0
