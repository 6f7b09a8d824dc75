"""What the objects say of the world: which revision is ready, since when routes are as they are, what was there before."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from tests.systems.delivery.objects_kit import TEMPLATE, canary
from tests.systems.delivery.test_findings_machine import NEW, NOW, OLD, running
from trimtab.model.document import convert
from trimtab.systems.delivery import world
from trimtab.systems.delivery.kinds import Analysis, CanaryDeploymentStatus
from trimtab.systems.delivery.kinds.fields import REVISION
from trimtab.systems.delivery.machine.runs import short, stamp
from trimtab.systems.delivery.putting_right import _expected
from trimtab.systems.delivery.revisions.snapshots import Snapshot

ANALYSIS = convert({"stepWeight": 10, "settle": "5s", "verification": "Settle"}, Analysis)


def at(seconds: float) -> Any:
    return NOW + timedelta(seconds=seconds)


def deployment(revision: str, ready: int = 2, **status: Any) -> dict[str, Any]:
    counts = {"replicas": 2, "updatedReplicas": 2, "readyReplicas": ready, "observedGeneration": 3}
    labels = {"metadata": {"labels": {REVISION: short(revision)}}}
    return {
        "metadata": {"generation": 3},
        "spec": {"replicas": 2, "template": labels},
        "status": {**counts, **status},
    }


def routes(*entries: tuple[str, str]) -> dict[str, Any]:
    fields = [{"manager": manager, "operation": "Apply", "time": time} for manager, time in entries]
    return {"metadata": {"generation": 1, "managedFields": fields}, "spec": {}}


def test_pods_of_another_revision_are_not_those_that_are_waited_for() -> None:
    right, wrong = world.pods(deployment(NEW), NEW, 100), world.pods(deployment(OLD), NEW, 100)
    assert (right.ok, wrong.ok) == (True, False)
    assert wrong.ready == 2  # they answer requests all the same
    late = {"type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded"}
    given_up = [world.pods(deployment(each, 0, conditions=[late]), NEW, 100).failed for each in (NEW, OLD)]
    assert given_up == [True, False]


def test_routes_settle_from_the_last_moment_at_which_they_may_have_been_written() -> None:
    """The server notes whole seconds: what it wrote at 1.9 it says of 1."""
    document = routes(("delivery", "2026-01-01T00:00:01Z"), ("kubectl", "2026-01-01T00:00:09Z"))
    assert world.written(document, NOW) == at(2)
    assert world.live(document, ANALYSIS, at(6.9))[0] is False
    assert world.live(document, ANALYSIS, at(7))[0] is True
    assert world.written(routes(("kubectl", "2026-01-01T00:00:09Z")), at(3)) == at(3)


def test_routes_are_not_older_than_the_wish_for_them() -> None:
    """A server whose clock is behind ours."""
    status, _ = running("Progressing", weight=10)
    run = status.run.replace(since=stamp(at(100)))
    document = routes(("delivery", "2026-01-01T00:00:01Z"))
    assert world.live(document, ANALYSIS, at(104), run)[0] is False
    assert world.live(document, ANALYSIS, at(105), run)[0] is True


def test_stable_runs_what_is_promoted_only_while_it_is_promoted() -> None:
    for phase in ("Starting", "Progressing", "WaitingPromotion", "RollingBack", "Finalising", "Terminating"):
        assert world.stable_revision(running(phase)[0]) == OLD
    assert world.stable_revision(running("Promoting")[0]) == NEW


def test_copies_of_requests_go_to_a_canary_only_at_its_step() -> None:
    given = {"mirror": True, "mirrorWeight": 30}
    for phase, mirror in (("Starting", 0), ("Progressing", 30), ("WaitingPromotion", 30), ("RollingBack", 0)):
        status, _ = running(phase, given)
        assert world.traffic(canary(), status).mirror == mirror


def test_what_never_was_is_not_missed() -> None:
    owner = canary(uid="u")
    status, _ = running("Progressing", weight=10)
    made = Snapshot(revision=OLD, template=TEMPLATE)
    for phase, missed in (("Starting", False), ("Progressing", True), ("WaitingPromotion", True)):
        now = status.replace(phase=phase, observed_generation=owner.metadata.generation)
        documents = world.wanted(owner, now, made, made, 2)
        expected = _expected(owner, now, documents)
        assert (("Deployment", "web-canary") in expected) is missed
        assert ("Deployment", "web") in expected
    first = CanaryDeploymentStatus(phase="Initializing", observed_generation=owner.metadata.generation)
    assert not _expected(owner, first, world.wanted(owner, first, made, None, 2))
    other = status.replace(observed_generation=99)
    assert not _expected(owner, other, world.wanted(owner, other, made, made, 2))
