"""What starts a run, what is applied in place, and what does neither."""

from __future__ import annotations

from typing import Any

from tests.systems.delivery.stage import Stage, condition, spec
from tests.systems.delivery.test_runs import image_of
from trimtab.client.protocol import Query, Ref
from trimtab.model.istio import DestinationRule, VirtualService
from trimtab.model.kubernetes import ConfigMap, ControllerRevision, Deployment, Secret, Service
from trimtab.model.objectmeta import ObjectMeta
from trimtab.model.scheme import Untyped
from trimtab.systems.delivery.kinds import CanaryDeploymentStatus


def at_ten(status: CanaryDeploymentStatus) -> Any:
    return status.run and status.run.verified and status.run.verified_weight == 10


async def config(stage: Stage, color: str, kind: Any = ConfigMap) -> None:
    data = {"color": color if kind is ConfigMap else color.encode()}
    made = kind(metadata=ObjectMeta(name="colors", namespace=stage.namespace), data=data)
    found = [
        each
        for each in (await stage.client.list(kind, Query(namespace=stage.namespace))).items
        if each.name == "colors"
    ]
    if found:
        await stage.client.patch(found[0], found[0].replace(data=data))
    else:
        await stage.client.create(made)


def reading(kind: str) -> Any:
    """The container reads all of it."""
    field = {"ConfigMap": "configMapRef", "Secret": "secretRef"}[kind]

    def mutate(spec: dict[str, Any]) -> None:
        spec["deployment"]["template"]["spec"]["containers"][0]["envFrom"] = [{field: {"name": "colors"}}]

    return mutate


async def reads(stage: Stage, name: str, field: str = "configMapRef") -> str:
    document = await stage.document(Deployment, name)
    return str(document["spec"]["template"]["spec"]["containers"][0]["envFrom"][0][field]["name"])


async def test_a_tracked_config_map_starts_a_run_and_stable_keeps_the_one_that_was_proven(stage: Stage) -> None:
    await config(stage, "red")
    async with stage.working():
        given = {"deployment": _deployment_reading("ConfigMap")}
        await stage.stable(**given)
        proven = await reads(stage, "web")
        await config(stage, "blue")
        await stage.until(at_ten)
        tried = await reads(stage, "web-canary")
        assert await reads(stage, "web") == proven
        canary = await stage.ended("Succeeded")
    assert await reads(stage, "web") == tried != proven
    copy = await stage.client.get(ConfigMap, tried, stage.namespace)
    assert (copy.data, copy.immutable) == ({"color": "blue"}, True)
    assert [each.name for each in canary.status.tracked_configs] == ["colors"]


def _deployment_reading(kind: str) -> dict[str, Any]:
    made = spec()
    reading(kind)(made)
    return dict(made["deployment"])


async def test_a_tracked_secret_starts_a_run_and_nothing_of_it_is_told(here: Stage) -> None:
    await config(here, "hunter2", Secret)
    async with here.working():
        await here.stable(deployment=_deployment_reading("Secret"))
        await config(here, "hunter3", Secret)
        await here.until(at_ten)
        canary = await here.ended("Succeeded")
    assert "hunter" not in str(canary.raw)
    for revision in (await here.client.list(ControllerRevision, Query(namespace=here.namespace))).items:
        assert "aHVudGVy" not in str(revision.raw)


async def test_a_config_that_is_missing_is_waited_for(here: Stage) -> None:
    async with here.working():
        await here.create(deployment=_deployment_reading("ConfigMap"))
        canary = await here.until(lambda s: s.conditions)
        assert condition(canary, "Ready").reason == "ConfigMissing"  # type: ignore[union-attr]
        assert not (await here.client.list(Deployment, Query(namespace=here.namespace))).items
        await config(here, "red")
        await here.phase("Stable")


async def test_replicas_alone_are_applied_at_once_and_start_nothing(stage: Stage) -> None:
    async with stage.working():
        await stage.stable()
        changed = await stage.change(lambda spec: spec["deployment"].update(replicas=5))
        await stage.until(lambda s: s.observed_generation == changed.metadata.generation)
        canary = await stage.until(lambda s: condition_reason(s, "Ready") == "Stable")
        document = await stage.document(Deployment)
    assert document["spec"]["replicas"] == 5
    assert not canary.status.history


def condition_reason(status: CanaryDeploymentStatus, kind: str) -> str:
    return next((str(each.reason) for each in status.conditions or () if each.type == kind), "")


async def test_replicas_in_mid_run_scale_both_and_do_not_reset_it(here: Stage) -> None:
    async with here.working():
        await here.stable(replicas=4)
        await here.image("web:2")
        before = await here.until(at_ten)
        assert (await here.document(Deployment, "web-canary"))["spec"]["replicas"] == 2
        await here.change(lambda spec: spec["deployment"].update(replicas=8))
        await here.until_object(Deployment, "web", lambda d: d.raw["spec"]["replicas"] == 8)
        await here.until_object(Deployment, "web-canary", lambda d: d.raw["spec"]["replicas"] == 4)
        assert (await here.get()).status.run.id == before.status.run.id
        canary = await here.ended("Succeeded")
    assert len(canary.status.history) == 1
    assert [weight for _, weight in here.players.weights] == [0, 10, 50, 0]


async def test_template_and_replicas_together_scale_at_once_and_promote_later(here: Stage) -> None:
    def both(spec: dict[str, Any]) -> None:
        spec["deployment"]["replicas"] = 6
        spec["deployment"]["template"]["spec"]["containers"][0]["image"] = "web:2"

    async with here.working():
        await here.stable()
        await here.change(both)
        await here.until(at_ten)
        document = await here.document(Deployment)
        assert document["spec"]["replicas"] == 6
        assert document["spec"]["template"]["spec"]["containers"][0]["image"] == "web:1"
        await here.ended("Succeeded")
    assert await image_of(here) == "web:2"


async def test_service_routes_and_deployment_options_are_applied_in_place_also_in_mid_run(stage: Stage) -> None:
    def options(spec: dict[str, Any]) -> None:
        spec["service"]["ports"].append({"name": "more", "port": 81, "targetPort": 8080})
        spec["deployment"]["minReadySeconds"] = 3
        spec["virtualService"] = {
            "spec": {"hosts": ["web"], "http": [{"timeout": "7s", "route": [{"destination": {"host": "web"}}]}]},
            "trafficPolicy": {"loadBalancer": {"simple": "RANDOM"}},
        }

    async with stage.working():
        await stage.stable()
        await stage.image("web:2")
        before = await stage.until(at_ten)
        await stage.change(options)
        for name in ("web", "web-canary"):
            await stage.until_object(Service, name, lambda s: len(s.raw["spec"]["ports"]) == 2)
            await stage.until_object(DestinationRule, name, lambda d: True)
            await stage.until_object(Deployment, name, lambda d: d.raw["spec"].get("minReadySeconds") == 3)
        await stage.until_object(VirtualService, "web", lambda v: v.raw["spec"]["http"][-1].get("timeout") == "7s")
        assert await stage.weight() == 10
        assert (await stage.get()).status.run.id == before.status.run.id
        canary = await stage.ended("Succeeded")
        assert len(canary.status.history) == 1
        assert not canary.status.drift, "what the spec says is no drift"
        await stage.change(lambda spec: spec["virtualService"].pop("trafficPolicy"))
        await stage.until_gone(DestinationRule, "web")
        await stage.until_gone(DestinationRule, "web-canary")


async def test_a_change_that_means_the_same_starts_nothing(here: Stage) -> None:
    def resources(cpu: str) -> Any:
        container = {"requests": {"cpu": cpu}}
        return lambda s: s["deployment"]["template"]["spec"]["containers"][0].update(resources=container)

    async with here.working():
        await here.create(skipAnalysis=True)
        await here.phase("Stable")
        await here.change(resources("500m"))
        before = await here.ended("Succeeded")
        changed = await here.change(resources("0.5"))
        after = await here.until(lambda s: s.observed_generation == changed.metadata.generation)
    assert len(after.status.history) == len(before.status.history) == 1


async def test_a_revision_known_by_another_hash_starts_nothing(here: Stage) -> None:
    """As after an upgrade that hashes otherwise."""
    async with here.working():
        before = await here.stable()
        old = before.status.stable_revision
        [snapshot] = (await here.client.list(ControllerRevision, Query(namespace=here.namespace))).items
    other = f"v0:{'0' * 64}"
    owner = snapshot.raw["metadata"]["ownerReferences"]
    meta = {"name": f"web-{'0' * 12}", "namespace": here.namespace, "labels": snapshot.raw["metadata"]["labels"]}
    document = {**snapshot.raw, "metadata": {**meta, "ownerReferences": owner}, "revision": 7}
    document |= {
        "apiVersion": "apps/v1",
        "kind": "ControllerRevision",
        "data": {**snapshot.raw["data"], "revision": other},
    }
    await here.client.create(Untyped(document))
    await here.client.delete(Ref(ControllerRevision, snapshot.name, here.namespace))
    now = await here.get()
    moved = now.status.replace(stable_revision=other, target_revision=other)
    await here.client.patch(now, now.replace(status=moved), subresource="status")
    async with here.working():
        await here.quiet()
        after = await here.get()
    assert after.status.stable_revision == after.status.target_revision == other != old
    assert after.status.phase == "Stable"
    assert not after.status.history


async def test_a_spec_that_goes_back_takes_the_run_back(stage: Stage) -> None:
    async with stage.working():
        await stage.stable()
        await stage.image("web:2")
        await stage.until(at_ten)
        await stage.image("web:1")
        canary = await stage.ended("Cancelled")
        await stage.quiet()
    assert canary.status.history[0].reason == "Reverted"
    assert not canary.status.failed_revision
    assert [weight for _, weight in stage.players.weights] == [0, 10, 0]
    await stage.until_gone(Deployment, "web-canary")
    stage.order_is_right()


async def test_a_newer_revision_takes_the_place_of_the_run_from_the_first_step(here: Stage) -> None:
    async with here.working():
        await here.stable()
        await here.image("web:2")
        await here.until(lambda s: s.run and s.run.verified_weight == 50)
        await here.image("web:3")
        canary = await here.ended("Succeeded", runs=2)
    assert [(run.outcome, run.reason) for run in canary.status.history] == [
        ("Succeeded", "Promoted"),
        ("Cancelled", "Superseded"),
    ]
    assert [weight for _, weight in here.players.weights] == [0, 10, 50, 0, 10, 50, 0]
    assert await image_of(here) == "web:3"
    here.order_is_right()


async def test_a_new_analysis_is_for_the_next_run(here: Stage) -> None:
    async with here.working():
        await here.stable()
        await here.image("web:2")
        await here.until(at_ten)
        await here.change(lambda spec: spec["analysis"].update(stepWeights=[30], interval="20s"))
        await here.ended("Succeeded")
        assert [weight for _, weight in here.players.weights] == [0, 10, 50, 0]
        await here.image("web:3")
        await here.ended("Succeeded", runs=2)
    assert [weight for _, weight in here.players.weights] == [0, 10, 50, 0, 30, 0]


async def test_what_failed_does_not_run_again_until_it_is_asked_for(here: Stage) -> None:
    here.gauge.rates = lambda workload: (10.0, 0.2 if workload.endswith("-canary") else 0.0)
    async with here.working():
        await here.stable()
        await here.image("web:2")
        await here.ended("Failed")
        await here.later(3600)
        assert len((await here.get()).status.history) == 1
        await here.change(lambda spec: spec.update(retryToken="2"))
        await here.ended("Failed", runs=2)
        await here.annotate(retry="3")
        await here.ended("Failed", runs=3)
        here.gauge.rates = lambda workload: (10.0, 0.0)
        await here.annotate(retry="4")
        canary = await here.ended("Succeeded", runs=4)
    assert not canary.status.failed_revision


async def test_what_failed_without_analysis_is_not_tried_for_ever(here: Stage) -> None:
    here.players.broken.add("web:2")
    async with here.working():
        await here.stable(analysis=None, progressDeadline="20s")
        await here.image("web:2")
        await here.ended("Failed")
        await here.later(3600)
        canary = await here.get()
    assert len(canary.status.history) == 1
    assert await image_of(here) == "web:1"


async def test_without_analysis_a_change_goes_straight_out(stage: Stage) -> None:
    async with stage.working():
        await stage.stable(analysis=None)
        await stage.image("web:2")
        canary = await stage.ended("Succeeded")
    assert stage.players.weights == [("web", 0)]
    assert canary.status.history[0].trigger == "NoAnalysis"
    assert await image_of(stage) == "web:2"


async def test_a_way_back_within_the_rollback_window_goes_straight_out(here: Stage) -> None:
    async with here.working():
        await here.stable(rollbackWindow=1)
        await here.image("web:2")
        await here.ended("Succeeded")
        await here.image("web:3")
        await here.ended("Succeeded", runs=2)
        await here.image("web:2")
        canary = await here.ended("Succeeded", runs=3)
        assert canary.status.history[0].trigger == "RollbackWindow"
        await here.image("web:1")  # two before: it is proven again
        canary = await here.ended("Succeeded", runs=4)
    assert canary.status.history[0].trigger == "Revision"


async def test_the_first_spec_may_be_replaced_before_it_serves(here: Stage) -> None:
    here.players.broken.add("web:0")
    async with here.working():
        await here.create(image="web:0")
        await here.phase("Initializing")
        await here.image("web:1")
        canary = await here.phase("Stable")
    assert not canary.status.history
    assert await image_of(here) == "web:1"
