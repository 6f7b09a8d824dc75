"""Runs, whole: what is promoted, what is rolled back, and what a user sees of it. On either server."""

from __future__ import annotations

from tests.systems.delivery.stage import ANALYSIS, Stage, condition
from trimtab.client.protocol import Query, Ref
from trimtab.model.document import convert
from trimtab.model.istio import VirtualService
from trimtab.model.kubernetes import ControllerRevision, Deployment, Pod, Service
from trimtab.model.objectmeta import ObjectMeta
from trimtab.storage.blobs import Digest, read
from trimtab.systems.delivery import replaying
from trimtab.systems.delivery.kinds import Analysis, CanaryDeployment
from trimtab.systems.delivery.kinds.fields import REVISION, ROLE


async def image_of(stage: Stage, name: str = "web") -> str:
    document = await stage.document(Deployment, name)
    return str(document["spec"]["template"]["spec"]["containers"][0]["image"])


async def test_a_good_release_is_promoted_step_by_step(stage: Stage) -> None:
    async with stage.working():
        await stage.stable()
        await stage.image("web:2")
        canary = await stage.ended("Succeeded")
    assert [weight for _, weight in stage.players.weights] == [0, 10, 50, 0]
    assert condition(canary, "Ready").reason == "Stable"  # type: ignore[union-attr]
    assert condition(canary, "Promoted").status == "True"  # type: ignore[union-attr]
    assert await image_of(stage) == "web:2"
    await stage.until_gone(Deployment, "web-canary")
    stage.order_is_right()


async def test_a_release_that_fails_is_rolled_back(stage: Stage) -> None:
    stage.gauge.rates = lambda workload: (10.0, 0.2 if workload.endswith("-canary") else 0.0)
    async with stage.working():
        await stage.stable()
        await stage.image("web:2")
        canary = await stage.ended("Failed")
    assert [weight for _, weight in stage.players.weights] == [0, 10, 0]
    assert condition(canary, "Ready").reason == "RolledBack"  # type: ignore[union-attr]
    assert canary.status.history[0].reason == "ChecksFailed"
    assert await image_of(stage) == "web:1"
    await stage.until_gone(Deployment, "web-canary")
    stage.order_is_right()


async def test_the_first_creation_makes_all_objects_with_their_owner(stage: Stage) -> None:
    async with stage.working():
        canary = await stage.stable()
    assert stage.players.weights == [("web", 0)]
    for kind, names in ((Deployment, ["web"]), (Service, ["web", "web-canary"]), (VirtualService, ["web"])):
        for name in names:
            document = await stage.document(kind, name)
            owners = document["metadata"]["ownerReferences"]
            assert [(o["kind"], o["uid"], o["controller"]) for o in owners] == [
                ("CanaryDeployment", canary.metadata.uid, True)
            ]
    stable, other = await stage.document(Service), await stage.document(Service, "web-canary")
    assert (stable["spec"]["selector"][ROLE], other["spec"]["selector"][ROLE]) == ("stable", "canary")
    assert condition(canary, "Ready").status == condition(canary, "Valid").status == "True"  # type: ignore[union-attr]
    assert canary.status.observed_generation == canary.metadata.generation
    revisions = (await stage.client.list(ControllerRevision, Query(namespace=stage.namespace))).items
    assert [each.data["revision"] for each in revisions] == [canary.status.stable_revision]


async def test_stable_and_canary_have_pods_of_their_own(stage: Stage) -> None:
    async with stage.working():
        await stage.stable()
        await stage.image("web:2")
        await stage.until(lambda status: status.run and status.run.verified_weight == 10)
        stable, canary = await stage.document(Deployment), await stage.document(Deployment, "web-canary")
    for document, role in ((stable, "stable"), (canary, "canary")):
        assert document["spec"]["selector"]["matchLabels"] == {"app": "web", ROLE: role}
        assert document["spec"]["template"]["metadata"]["labels"][ROLE] == role
    labels = [each["spec"]["template"]["metadata"]["labels"][REVISION] for each in (stable, canary)]
    assert labels[0] != labels[1]
    assert stable["spec"]["strategy"]["rollingUpdate"]["maxUnavailable"] == 0


async def test_a_canary_that_never_becomes_ready_gets_no_traffic(stage: Stage) -> None:
    stage.players.broken.add("web:2")
    async with stage.working():
        await stage.stable(progressDeadline="30s")
        canary = await stage.image("web:2")
        canary = await stage.phase("Starting")
        labels = {ROLE: "canary", REVISION: canary.status.run.revision.rpartition(":")[2][:12]}
        await _pod(stage, labels)
        ended = await stage.ended("Failed")
    assert stage.players.weights == [("web", 0)]
    failed = ended.status.history[0]
    assert failed.reason == "CanaryNotReady"
    assert "ImagePullBackOff" in failed.message
    assert "no such image" in failed.message
    assert await image_of(stage) == "web:1"


async def _pod(stage: Stage, labels: dict[str, str]) -> None:
    """One that cannot start."""
    meta = ObjectMeta(name="web-canary-1", namespace=stage.namespace, labels=labels)
    container = {"name": "web", "image": "web:2"}
    made = await stage.client.create(Pod(metadata=meta, spec={"containers": [container]}))
    waiting = {"reason": "ImagePullBackOff", "message": "no such image"}
    said = {
        "name": "web",
        "ready": False,
        "restartCount": 0,
        "image": "web:2",
        "imageID": "",
        "state": {"waiting": waiting},
    }
    status = {"phase": "Pending", "containerStatuses": [said]}
    await stage.client.patch(made, made.replace(status=status), subresource="status")


async def test_a_canary_that_loses_its_pods_loses_its_traffic_and_starts_the_step_anew(here: Stage) -> None:
    async with here.working():
        await here.stable()
        await here.image("web:2")
        await here.until(lambda status: status.run and status.run.verified_weight == 10)
        here.players.lost.add("web-canary")
        await here.players.nudge()
        await here.phase("Starting")
        await here.quiet()
        assert await here.weight() == 0
        here.players.lost.clear()
        await here.players.nudge()
        await here.ended("Succeeded")
    assert [weight for _, weight in here.players.weights] == [0, 10, 0, 10, 50, 0]
    here.order_is_right()


async def test_a_canary_deployment_deleted_by_hand_is_made_again_and_the_third_time_fails(here: Stage) -> None:
    async with here.working():
        await here.stable()
        await here.image("web:2")
        for time in range(3):
            await here.until(
                lambda s, time=time: s.run and s.phase == "Progressing" and s.run.verified and s.run.recreated == time
            )
            here.players.broken.add("web:2")  # new pods take a while
            await here.client.delete(Ref(Deployment, "web-canary", here.namespace))
            await here.until(lambda s: s.phase in ("Starting", "RollingBack", "Finalising", "Stable"))
            here.players.broken.clear()
            await here.players.nudge()
        canary = await here.ended("Failed")
    assert canary.status.history[0].reason == "CanaryLost"
    assert 50 not in [weight for _, weight in here.players.weights]


async def test_a_canary_with_too_few_pods_for_long_fails_though_its_step_is_old(here: Stage) -> None:
    """It is how long pods are missing that counts, not how long the step has lasted."""
    async with here.working():
        patient = {"manual": ["Step"], "stepWeights": [10, 100], "threshold": 100}
        await here.stable(progressDeadline="60s", replicas=4, analysis=patient)
        await here.image("web:2")
        await here.until(lambda s: s.run and s.run.waiting_for)
        await here.later(300)
        here.players.short["web-canary"] = 1
        await here.players.nudge()
        canary = await here.until(lambda s: s.run and s.run.short_since)
        assert canary.status.phase == "Progressing"
        canary = await here.ended("Failed")
    assert canary.status.history[0].reason == "CanaryNotReady"


async def test_a_promotion_that_fails_restores_stable_and_keeps_the_canary_serving_meanwhile(here: Stage) -> None:
    async with here.working():
        await here.stable(progressDeadline="120s")
        here.players.stuck.add("web")  # no new pod of stable becomes ready
        await here.image("web:2")
        await here.phase("Promoting")
        await here.later(10)
        assert await here.weight() == 50
        await here.phase("RollingBack")
        here.players.stuck.clear()
        await here.players.nudge()
        canary = await here.ended("Failed")
    assert canary.status.history[0].reason == "PromotionFailed"
    assert await image_of(here) == "web:1"
    here.order_is_right()


async def test_what_is_promoted_is_what_was_analysed(here: Stage) -> None:
    """A newer spec that comes while stable is updated waits for its own run."""
    async with here.working():
        await here.stable()
        here.players.stuck.add("web")
        await here.image("web:2")
        await here.phase("Promoting")
        await here.image("web:3")
        await here.quiet()
        assert await image_of(here) == "web:2"
        here.players.stuck.clear()
        await here.players.nudge()
        canary = await here.ended("Succeeded", runs=2)
    assert await image_of(here) == "web:3"
    assert [run.outcome for run in canary.status.history] == ["Succeeded", "Succeeded"]


async def test_a_run_leaves_a_record_that_can_be_replayed(here: Stage) -> None:
    async with here.working():
        await here.stable()
        await here.image("web:2")
        canary = await here.ended("Succeeded")
    record = await read(here.blobs, Digest(canary.status.history[0].details), max_bytes=replaying.LARGEST)
    lines, _ = replaying.decode(record)
    assert [line.check.weight for line in lines] == [10, 50]
    stricter = {**ANALYSIS, "metrics": [{"name": "request-success-rate", "thresholdRange": {"min": 101}}]}
    assert replaying.replay(record, convert(ANALYSIS, Analysis)).ending == "Promoted"
    assert replaying.replay(record, convert({**stricter, "threshold": 1}, Analysis)).ending == "RolledBack"


async def test_a_status_is_written_only_when_it_changes(here: Stage) -> None:
    async with here.working():
        before = await here.stable()
        await here.quiet()
        before = await here.get()
        await here.annotate(team="shop")
        await here.quiet()
        await here.later(3600)
    after = await here.get()
    assert after.status == before.status
    assert isinstance(after, CanaryDeployment)
