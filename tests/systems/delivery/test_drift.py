"""What others change in objects of ours, and objects that are not ours at all."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest

from tests.systems.delivery.stage import Stage, condition, spec
from tests.systems.delivery.test_runs import image_of
from tests.systems.delivery.test_triggers import at_ten, condition_reason
from trimtab.client.protocol import Ref
from trimtab.model.istio import VirtualService
from trimtab.model.kubernetes import Deployment, Service
from trimtab.model.scheme import Untyped
from trimtab.systems.delivery.kinds import CanaryDeployment


async def vandalise(stage: Stage, kind: Any, mutate: Callable[[dict[str, Any]], Any], name: str = "web") -> None:
    """Change an object by hand."""
    found = (await stage.client.get(kind, name, stage.namespace)).raw
    names = stage.client.scheme.kind_of(kind)
    before = {**found, "apiVersion": names.api_version, "kind": names.kind}
    after = copy.deepcopy(before)
    mutate(after)
    await stage.client.patch(Untyped(before), Untyped(after))


def all_to_the_canary(document: dict[str, Any]) -> None:
    stable, canary = document["spec"]["http"][0]["route"]
    stable["weight"], canary["weight"] = 0, 100


async def test_weights_edited_by_hand_are_put_back_to_the_current_ones_and_the_window_is_discarded(
    stage: Stage,
) -> None:
    async with stage.working():
        await stage.stable()
        await stage.image("web:2")
        before = await stage.until(at_ten)
        await stage.later(3)
        await vandalise(stage, VirtualService, all_to_the_canary)
        await stage.until(lambda s: s.drift and s.run and s.run.verified)
        assert await stage.weight() == 10
        after = await stage.until(
            lambda s: s.run and s.run.window_start and s.run.window_start > before.status.run.window_start
        )
        assert after.status.run.window_start == after.status.run.verified
        assert after.status.run.checks == ()
        canary = await stage.ended("Succeeded")
    assert "VirtualService web" in canary.status.drift.last
    assert "was 100, not 10" in canary.status.drift.last or "was 0, not 90" in canary.status.drift.last
    assert await stage.told("DriftCorrected")


@pytest.mark.parametrize("kind", [VirtualService, Service])
async def test_what_is_deleted_by_hand_is_made_again_at_the_current_weight(here: Stage, kind: Any) -> None:
    async with here.working():
        await here.stable()
        await here.image("web:2")
        await here.until(at_ten)
        uid = (await here.client.get(kind, "web", here.namespace)).metadata.uid
        await here.client.delete(Ref(kind, "web", here.namespace))
        await here.until_object(kind, "web", lambda found: found.metadata.uid != uid)
        assert await here.weight() == 10
        canary = await here.ended("Succeeded")
    assert "was deleted" in canary.status.drift.last
    assert [weight for _, weight in here.players.weights] == [0, 10, 50, 0]


async def test_a_selector_and_a_stable_template_edited_by_hand_are_put_back(here: Stage) -> None:
    async with here.working():
        await here.stable()
        await vandalise(here, Service, lambda d: d["spec"]["selector"].pop("delivery.trimtab.dev/role"))
        await here.until(lambda s: s.drift and "Service web" in (s.drift.last or ""))
        assert (await here.document(Service))["spec"]["selector"]["delivery.trimtab.dev/role"] == "stable"
        await vandalise(
            here, Deployment, lambda d: d["spec"]["template"]["spec"]["containers"][0].update(image="evil:1")
        )
        await here.until(lambda s: s.drift and "Deployment web" in (s.drift.last or ""))
        assert await image_of(here) == "web:1"
        await vandalise(here, Deployment, lambda d: d["spec"].update(replicas=9))
        await here.until_object(Deployment, "web", lambda d: d.raw["spec"]["replicas"] == 2)
        canary = await here.get()
    assert canary.status.phase == "Stable"
    assert not canary.status.history


async def test_replicas_of_an_autoscaler_are_its_own(here: Stage) -> None:
    async with here.working():
        await here.stable(autoscalerRef={"name": "web"})
        await vandalise(here, Deployment, lambda d: d["spec"].update(replicas=9))
        await here.later(60)
        assert (await here.document(Deployment))["spec"]["replicas"] == 9
        await here.image("web:2")
        await here.until(at_ten)
        assert (await here.document(Deployment, "web-canary"))["spec"]["replicas"] == 5
        await here.ended("Succeeded")
    assert (await here.document(Deployment))["spec"]["replicas"] == 9


async def test_a_fight_is_told_and_holds_the_run_until_it_is_over(here: Stage) -> None:
    async with here.working():
        await here.stable()
        await here.image("web:2")
        await here.until(at_ten)
        for time in range(1, 7):
            await vandalise(here, VirtualService, all_to_the_canary)
            await here.until(lambda s, time=time: s.drift and s.drift.count >= time)
            await here.quiet()
        canary = await here.until(lambda s: any(c.type == "DriftConflict" for c in s.conditions))
        assert "VirtualService" in condition(canary, "DriftConflict").message  # type: ignore[union-attr]
        await here.later(120)
        assert (await here.get()).status.run.checks == canary.status.run.checks
        await vandalise(here, VirtualService, lambda d: d["spec"]["http"][0].update(timeout="3s"))
        await here.later(1)
        assert (await here.document(VirtualService))["spec"]["http"][0].get("timeout") == "3s", "we stopped fighting"
        ended = await here.ended("Succeeded")
    assert condition(ended, "DriftConflict") is None
    assert "timeout" not in (await here.document(VirtualService))["spec"]["http"][0]


async def test_a_way_back_is_gone_although_others_fight(here: Stage) -> None:
    """Traffic leaves the canary before its pods go, whoever else writes weights."""
    async with here.working():
        await here.stable()
        await here.image("web:2")
        running = await here.until(at_ten)
        for time in range(1, 7):
            await vandalise(here, VirtualService, all_to_the_canary)
            await here.until(lambda s, time=time: s.drift and s.drift.count >= time)
            await here.quiet()
        await here.until(lambda s: any(c.type == "DriftConflict" for c in s.conditions))
        await vandalise(here, VirtualService, all_to_the_canary)
        await here.annotate(abort=running.status.run.id)
        await here.ended("Failed")
    assert await here.weight() == 0
    here.order_is_right()


async def foreign(stage: Stage, **metadata: Any) -> None:
    document = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "web", "namespace": stage.namespace, **metadata},
        "spec": {"selector": {"app": "old"}, "ports": [{"port": 80}]},
    }
    await stage.client.create(Untyped(document))


async def test_what_is_not_ours_is_a_conflict_that_ends_when_it_is_gone(stage: Stage) -> None:
    await foreign(stage)
    async with stage.working():
        await stage.create()
        canary = await stage.until(lambda s: condition_reason(s, "Ready") == "Conflict")
        assert "Service web exists and is not ours" in condition(canary, "Ready").message  # type: ignore[union-attr]
        await stage.later(60)
        document = await stage.document(Service)
        assert document["spec"]["selector"] == {"app": "old"}
        assert "ownerReferences" not in document["metadata"]
        await stage.client.delete(Ref(Service, "web", stage.namespace))
        await stage.phase("Stable")


async def test_what_is_not_ours_is_taken_when_it_is_allowed(stage: Stage) -> None:
    await foreign(stage, annotations={"delivery.trimtab.dev/adopt": "web"})
    async with stage.working():
        await stage.stable()
    document = await stage.document(Service)
    assert document["spec"]["selector"]["delivery.trimtab.dev/role"] == "stable"
    assert document["metadata"]["ownerReferences"][0]["name"] == "web"


async def test_what_is_not_ours_is_taken_when_the_spec_says_so(here: Stage) -> None:
    await foreign(here)
    async with here.working():
        await here.create()
        await here.until(lambda s: condition_reason(s, "Ready") == "Conflict")
        await here.change(lambda spec: spec.update(adopt=True))
        await here.phase("Stable")


async def test_what_another_controls_is_never_taken(here: Stage) -> None:
    owner = {"apiVersion": "example.dev/v1", "kind": "Shop", "name": "shop", "uid": "0-0-0", "controller": True}
    await foreign(here, ownerReferences=[owner], annotations={"delivery.trimtab.dev/adopt": "web"})
    async with here.working():
        await here.create(adopt=True)
        canary = await here.until(lambda s: condition_reason(s, "Ready") == "Conflict")
    assert "is controlled by Shop shop" in condition(canary, "Ready").message  # type: ignore[union-attr]


async def test_of_two_on_one_set_of_pods_the_newer_waits(here: Stage) -> None:
    async with here.working():
        await here.stable()
        await here.create("shop", deployment=spec()["deployment"])
        canary = await here.until(lambda s: condition_reason(s, "Ready") == "Conflict", "shop")
        assert 'CanaryDeployment "web"' in condition(canary, "Ready").message  # type: ignore[union-attr]
        await here.image("web:2")
        await here.ended("Succeeded")
        await here.delete()
        await here.phase("Stable", "shop")


async def test_an_invalid_spec_freezes_the_run_and_leaves_traffic_alone(stage: Stage) -> None:
    async with stage.working():
        await stage.stable()
        await stage.image("web:2")
        before = await stage.until(at_ten)
        await stage.change(lambda spec: spec["service"].update(ports=[]))
        canary = await stage.until(lambda s: condition_reason(s, "Valid") == "InvalidSpec")
        assert "spec.service.ports" in condition(canary, "Valid").message  # type: ignore[union-attr]
        assert canary.status.observed_generation == canary.metadata.generation
        await stage.later(3600)
        held = await stage.get()
        assert held.status.run == before.status.run
        assert await stage.weight() == 10
        await stage.change(
            lambda spec: spec["service"].update(ports=[{"name": "http", "port": 80, "targetPort": 8080}])
        )
        canary = await stage.ended("Succeeded")
    assert canary.status.history[0].id == before.status.run.id
    assert condition(canary, "Valid").status == "True"  # type: ignore[union-attr]


ROUTES = {
    "hosts": ["shop.example"],
    "gateways": ["front"],
    "http": [
        {"match": [{"uri": {"prefix": "/old"}}], "route": [{"destination": {"host": "legacy"}}]},
        {"timeout": "9s", "route": [{"destination": {"host": "web"}}]},
    ],
}


async def test_a_virtual_service_of_others_is_driven_and_given_back(stage: Stage) -> None:
    document = {
        "apiVersion": "networking.istio.io/v1",
        "kind": "VirtualService",
        "metadata": {"name": "front", "namespace": stage.namespace, "labels": {"team": "edge"}},
        "spec": ROUTES,
    }
    await stage.client.create(Untyped(document))
    async with stage.working():
        await stage.stable(virtualService={"name": "front"})
        await stage.image("web:2")
        await stage.until(at_ten)
        old, ours = (await stage.document(VirtualService, "front"))["spec"]["http"]
        assert old == ROUTES["http"][0]  # type: ignore[index]
        assert ours["timeout"] == "9s"
        assert {each["destination"]["host"]: each["weight"] for each in ours["route"]} == {"web": 90, "web-canary": 10}
        await vandalise(
            stage, VirtualService, lambda d: d["spec"]["http"][0].update(timeout="1s"), "front"
        )  # a route of theirs
        await stage.ended("Succeeded")
        await stage.image("web:3")
        await stage.until(at_ten)
        await stage.delete()
        await stage.until_gone(CanaryDeployment)
    after = await stage.document(VirtualService, "front")
    assert after["spec"]["http"] == [{**ROUTES["http"][0], "timeout": "1s"}, ROUTES["http"][1]]  # type: ignore[index]
    assert not [name for name in after["metadata"].get("annotations") or {} if "trimtab" in name]
    assert after["metadata"]["labels"] == {"team": "edge"}


async def test_a_virtual_service_that_is_not_there_is_waited_for(here: Stage) -> None:
    async with here.working():
        await here.create(virtualService={"name": "front"})
        await here.until(lambda s: condition_reason(s, "Ready") == "Conflict")
        metadata = {"name": "front", "namespace": here.namespace}
        made = {"apiVersion": "networking.istio.io/v1", "kind": "VirtualService", "metadata": metadata, "spec": ROUTES}
        await here.client.create(Untyped(made))
        await here.phase("Stable")
