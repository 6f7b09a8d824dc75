"""What pods say against a canary: crashes and too few of them are failed checks, unless it was not their own doing."""

from __future__ import annotations

from typing import Any

from tests.systems.delivery.stage import Stage
from trimtab.client.protocol import Named
from trimtab.model.scheme import Untyped
from trimtab.systems.delivery import pods
from trimtab.systems.delivery.kinds import CanaryDeployment
from trimtab.systems.delivery.machine.runs import short


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
