"""What pods say against a canary: crashes and too few of them are failed checks, unless it was not their own doing."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import msgspec

from tests.systems.delivery.stage import Stage
from tests.systems.delivery.test_findings_machine import NOW, facts, running
from trimtab.client.protocol import Named
from trimtab.model.scheme import Untyped
from trimtab.systems.delivery import pods
from trimtab.systems.delivery.kinds import CanaryDeployment, Counters
from trimtab.systems.delivery.machine.advance import advance, needed
from trimtab.systems.delivery.machine.facts import Need, Pods
from trimtab.systems.delivery.machine.runs import short, stamp


def container(*, ready: bool = True, restarts: int = 0, state: Any = None, last: Any = None) -> dict[str, Any]:
    status = {"name": "web", "image": "web", "imageID": "", "ready": ready, "restartCount": restarts}
    return {"status": {"containerStatuses": [{**status, "state": state or {}, "lastState": last or {}}]}}


POD = Named("v1", "Pod")
CRASHED = {"terminated": {"reason": "Error", "exitCode": 1, "message": "boom"}}
VANISHED = {"terminated": {"reason": "Unknown", "exitCode": 255}}
RUNNING = {"running": {"startedAt": "2026-01-01T00:00:00Z"}}


def test_what_ended_by_itself_is_told_and_not_excused() -> None:
    crashing = container(ready=False, restarts=2, state={"waiting": {"reason": "CrashLoopBackOff"}}, last=CRASHED)
    assert pods.why([crashing]) == "web: CrashLoopBackOff (exit code 1): boom"
    assert not pods.excused([crashing])
    assert pods.crashes([crashing, container()]) == 2


def test_what_its_machine_ended_is_excused_and_no_crash() -> None:
    ended = container(ready=False, restarts=1, state=VANISHED)
    begun = container(ready=False, restarts=1, state=RUNNING, last=VANISHED)
    assert pods.excused([ended, begun])
    assert pods.crashes([ended, begun]) == 0
    assert not pods.excused([ended, container(ready=False, state=RUNNING)])  # one whose probe fails


def test_pods_on_their_way_are_excused_and_pods_that_nobody_sees_are_not() -> None:
    assert pods.excused([container(ready=False, state={"waiting": {"reason": "ContainerCreating"}})])
    assert not pods.excused([])


async def _pod(here: Stage, canary: CanaryDeployment, restarts: int) -> None:
    """The one pod of the canary, with so many crashes behind it."""
    labels = {"delivery.trimtab.dev/role": "canary", "delivery.trimtab.dev/revision": short(canary.status.run.revision)}
    metadata = {"name": "web-canary-1", "namespace": here.namespace, "labels": labels}
    containers = [{"name": "web", "image": "web"}]
    document = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": containers}}
    if not restarts:
        await here.client.create(Untyped(document))
        return
    found = await here.client.get(POD, "web-canary-1", here.namespace)
    status = container(restarts=restarts, state=RUNNING, last=CRASHED)["status"]
    await here.client.patch(found, Untyped({**found.raw, "status": status}), subresource="status")


async def test_a_canary_that_crashes_between_its_checks_is_rolled_back(here: Stage) -> None:
    async with here.working():
        await here.stable(analysis={"stepWeights": [10, 20, 50], "passes": 4})
        await here.image("web:2")
        canary = await here.until(lambda s: s.run and s.run.checks)
        await _pod(here, canary, 0)
        for restarts in (1, 2):
            await _pod(here, canary, restarts)
            await here.until(lambda s, n=restarts: s.phase == "RollingBack" or not s.run or s.run.crashes >= n)
        canary = await here.ended("Failed")
    assert canary.status.history[0].reason == "ChecksFailed"
    assert "its containers ended by themselves" in canary.status.history[0].message


async def test_too_few_pods_for_an_interval_are_failed_checks(here: Stage) -> None:
    async with here.working():
        await here.stable(replicas=4, analysis={"stepWeights": [10, 100], "passes": 6})
        await here.image("web:2")
        await here.until(lambda s: s.run and s.run.checks)
        here.players.short["web-canary"] = 1
        await here.players.nudge()
        canary = await here.ended("Failed")
    assert canary.status.history[0].reason == "ChecksFailed"
    assert "pods: 1 of 4 pods are ready" in canary.status.history[0].message


async def test_a_spell_without_data_is_told(here: Stage) -> None:
    here.gauge.rates = lambda workload: (0.0, 0.0)
    async with here.working():
        await here.stable()
        await here.image("web:2")
        await here.until(lambda s: s.run and len(s.run.checks) >= 3)
    assert len(await here.told("NoData")) == 1


def test_pods_that_are_short_have_an_interval_before_a_check_says_so() -> None:
    due = {"verified": stamp(NOW), "window_start": stamp(NOW), "next_check_time": stamp(NOW), "weight": 10}
    short = Pods(exists=True, ready=1, wanted=2)
    status, given = running("Progressing", short_since=stamp(NOW), **due)  # the interval is 10 s
    assert needed(status, facts(given, canary=short, now=NOW + timedelta(seconds=5))) is Need.NOTHING
    assert needed(status, facts(given, canary=short, now=NOW + timedelta(seconds=11))) is Need.CHECK
    assert needed(status, facts(given, now=NOW + timedelta(seconds=5))) is Need.CHECK


def test_a_canary_without_ready_pods_fails_a_check_unless_it_is_excused() -> None:
    status, given = running("Progressing", weight=10, verified=stamp(NOW), counters=Counters(failed=0))
    none = Pods(exists=True, wanted=2)
    blamed = advance(status, facts(given, canary=none)).status
    assert (blamed.phase, blamed.run.counters.failed, blamed.run.recreated) == ("Starting", 1, 1)
    excused = advance(status, facts(given, canary=msgspec.structs.replace(none, excused=True))).status
    assert (excused.phase, excused.run.counters.failed, excused.run.recreated) == ("Starting", 0, 0)
    last, given = running("Progressing", weight=10, verified=stamp(NOW), counters=Counters(failed=1))  # of 2
    over = advance(last, facts(given, canary=none)).status
    assert (over.phase, over.run.reason) == ("RollingBack", "CanaryLost")
