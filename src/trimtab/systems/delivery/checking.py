"""One check: measure the window, judge it, ask those who want to be asked, and write it down.

What a check says goes into the status before the next one; the whole of it, with the raw numbers and the queries as they
were sent, goes into the run's record, a blob that can be replayed with other thresholds.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import timedelta
from typing import TYPE_CHECKING

import msgspec
from msgspec import UNSET, UnsetType

from trimtab.model.clock import Clock, parse_time
from trimtab.model.logs import log
from trimtab.runtime.objects import uid_of
from trimtab.storage.blobs import BlobError, Digest, read
from trimtab.systems.delivery import replaying
from trimtab.systems.delivery.judging.budget import pause, settle
from trimtab.systems.delivery.judging.judges import judge_all
from trimtab.systems.delivery.kinds import (
    Analysis,
    CanaryDeployment,
    CanaryDeploymentStatus,
    Check,
    MetricTemplate,
    RunStatus,
)
from trimtab.systems.delivery.kinds.analysis import Hook, Metric
from trimtab.systems.delivery.machine.analysing import WINDOWS
from trimtab.systems.delivery.machine.facts import Need, Outcome, Pods
from trimtab.systems.delivery.machine.runs import analysis_of, stamp, step_of
from trimtab.systems.delivery.measuring.contract import Measured, SourceError, Target, Window
from trimtab.systems.delivery.measuring.measure import measure
from trimtab.systems.delivery.objects.names import canary_name, stable_name

if TYPE_CHECKING:
    from trimtab.runtime.cached import CachedClient
    from trimtab.storage.blobs import Blobs
    from trimtab.systems.delivery.hooks.calling import Hooks
    from trimtab.systems.delivery.measuring.sources import Sources


class Checker:
    """Of all runs of a process."""

    def __init__(self, client: CachedClient, clock: Clock, sources: Sources, hooks: Hooks, blobs: Blobs | None) -> None:
        self._client, self._clock, self._sources, self._hooks, self._blobs = client, clock, sources, hooks, blobs

    async def asked(
        self,
        need: Need,
        canary: CanaryDeployment,
        status: CanaryDeploymentStatus,
        pods: Pods = Pods(),  # noqa: B008 - frozen
    ) -> Outcome:
        """What came of what the machine needs."""
        run = status.run
        assert not isinstance(run, UnsetType)  # noqa: S101 - without a run nothing is needed
        if need is Need.CHECK:
            return await self._check(canary, status, run, pods)
        point: Hook = need.value
        answer = await self._hooks.ask(point, canary, run)
        return Outcome(allowed=answer.allowed, message=answer.message)

    async def _check(
        self, canary: CanaryDeployment, status: CanaryDeploymentStatus, run: RunStatus, pods: Pods
    ) -> Outcome:
        analysis, step = analysis_of(run), step_of(run)
        assert not isinstance(analysis, UnsetType)  # noqa: S101 - checks are made at steps
        assert step is not None  # noqa: S101
        now = self._clock.now()
        start = now if isinstance(run.window_start, UnsetType) else parse_time(run.window_start)
        # After a pause, or a time without controllers: what was long ago does not speak for now.
        start = max(start, now - timedelta(seconds=WINDOWS * analysis.interval.seconds))
        metrics = analysis.metrics if step.judged else ()
        measuring = [self._measured(canary, analysis, metric, Window(start, now)) for metric in metrics]
        during, back, measured = await asyncio.gather(
            self._hooks.ask("Rollout", canary, run),
            self._hooks.ask("Rollback", canary, run),
            asyncio.gather(*measuring),
        )
        refusals = (*_unsound(pods, run), *(() if during.allowed else (*during.refused, *during.failed)))
        judged = judge_all(analysis.replace(metrics=metrics), measured, run.evidence, refusals)
        counters, settled = settle(analysis, run.counters, judged.checks, refusals, passes=step.passes)
        check = Check(
            time=stamp(now),
            step=run.step,
            weight=run.weight,
            window_start=stamp(start),
            verdict=settled.verdict,
            metrics=judged.checks,
            message=settled.message or UNSET,
        )
        outcome = Outcome(
            check=check,
            settled="Stay" if settled.action in ("Hold", "Repeat") else settled.action,  # type: ignore[arg-type]
            reason=settled.reason,
            message=settled.message,
            counters=counters,
            evidence=judged.evidence,
            moved=judged.used or any(each.lost for each in measured),  # what was lost does not come back
            pause=pause(analysis, settled.verdict),
            record=await self._recorded(canary, run, check, measured, refusals),
            crashes=pods.crashes,
        )
        if back.agreed:
            return msgspec.structs.replace(
                outcome, settled="Rollback", reason="RollbackRequested", message="a webhook asked for it"
            )
        return await self._confirmed(outcome, canary, status, run)

    async def _confirmed(
        self, outcome: Outcome, canary: CanaryDeployment, status: CanaryDeploymentStatus, run: RunStatus
    ) -> Outcome:
        """Before more traffic, or the promotion, others may be asked."""
        if outcome.settled in ("Rollback", "Freeze"):
            return outcome
        waiting = status.phase == "WaitingPromotion"
        if not waiting and outcome.settled != "Advance":
            return outcome
        last = waiting or run.step + 1 >= run.steps
        answer = await self._hooks.ask("ConfirmPromotion" if last else "ConfirmTrafficIncrease", canary, run)
        if answer.allowed:
            return outcome
        return msgspec.structs.replace(outcome, allowed=False, message=answer.message)

    async def _measured(self, canary: CanaryDeployment, analysis: Analysis, metric: Metric, window: Window) -> Measured:
        query, server = "" if isinstance(metric.query, UnsetType) else metric.query, analysis.prometheus
        if not isinstance(metric.template_ref, UnsetType):
            template = await self._client.find(MetricTemplate, metric.template_ref, canary.namespace)
            if template is None:
                problem = f"there is no MetricTemplate {metric.template_ref}"
                return Measured(name=metric.name, error=True, problem=problem)
            query = template.spec.query
            server = server if isinstance(template.spec.prometheus, UnsetType) else template.spec.prometheus
        target = Target(
            namespace=canary.namespace,
            name=canary.name,
            canary=canary_name(canary),
            stable=stable_name(canary),
            service=canary.name,
        )
        try:
            source = await self._sources.source(canary.namespace, server)
        except SourceError as error:
            return Measured(name=metric.name, error=True, problem=str(error), query=query)
        return await measure(source, metric, target, window, query)

    async def _recorded(
        self,
        canary: CanaryDeployment,
        run: RunStatus,
        check: Check,
        measured: Sequence[Measured],
        refusals: Sequence[str],
    ) -> str | UnsetType:
        """The digest of the record with this check in it. A record that cannot be kept stops no release."""
        if self._blobs is None:
            return UNSET
        try:
            before = b""
            if not isinstance(run.record, UnsetType):
                before = await read(self._blobs, Digest(run.record), max_bytes=replaying.LARGEST)
            digest = await self._blobs.put(replaying.appended(before, check, measured, refusals))
            await self._blobs.pin(digest, pin_of(canary, run.id))
            return str(digest)  # the one before is let go once the status names this one
        except (BlobError, OSError) as error:
            log.warning("a check is not in the run's record", canary=str(canary.name), run=run.id, error=str(error))
            return run.record


def _unsound(pods: Pods, run: RunStatus) -> tuple[str, ...]:
    """What its pods say against it, whatever requests met: those that are not there answer none."""
    if not pods.ok:
        return (f"pods: {pods.message}",)
    if pods.crashes > run.crashes:
        return (f"pods: its containers ended by themselves, {pods.crashes - run.crashes} times since the last check",)
    return ()


def pin_of(canary: CanaryDeployment, run: str) -> str:
    return f"delivery/{uid_of(canary)}/runs/{run}"
