"""Before a CanaryDeployment goes: traffic back, nothing made any more, and only what is its own taken along."""

from __future__ import annotations

from typing import Any

from tests.systems.delivery.stage import Stage
from tests.systems.delivery.test_triggers import at_ten
from trimtab.client.protocol import Query, Ref
from trimtab.model.istio import VirtualService
from trimtab.model.kubernetes import ControllerRevision, Deployment, Service
from trimtab.runtime.objects import with_metadata
from trimtab.systems.delivery.canary_controller import FINALIZER
from trimtab.systems.delivery.kinds import CanaryDeployment


async def names(stage: Stage, kind: Any) -> set[str]:
    return {each.name for each in (await stage.client.list(kind, Query(namespace=stage.namespace))).items}


async def test_traffic_goes_back_before_anything_else_goes(stage: Stage) -> None:
    async with stage.working():
        await stage.stable()
        await stage.image("web:2")
        await stage.until(at_ten)
        stage.players.deaf = True
        await stage.delete()
        await stage.phase("Terminating")
        await stage.quiet()
        assert await stage.weight() == 0
        assert {"web", "web-canary"} <= await names(stage, Deployment)
        stage.players.deaf = False
        await stage.players.nudge()
        await stage.until_gone(CanaryDeployment)
        for kind in (Deployment, Service, VirtualService, ControllerRevision):
            await stage.until_gone(kind, "web")
    stage.order_is_right()


async def test_a_data_plane_that_never_answers_is_not_waited_for_for_ever(here: Stage) -> None:
    async with here.working():
        await here.stable()
        await here.image("web:2")
        await here.until(at_ten)
        here.players.deaf = True
        await here.delete()
        await here.until_gone(CanaryDeployment)


async def test_nothing_is_made_while_it_is_deleted(here: Stage) -> None:
    async with here.working():
        canary = await here.stable()
        assert FINALIZER in canary.metadata.finalizers
        await here.edit(lambda held: with_metadata(held, finalizers=(*held.metadata.finalizers, "example.dev/wait")))
        await here.delete()
        await here.until_object(CanaryDeployment, "web", lambda c: FINALIZER not in (c.metadata.finalizers or ()))
        await here.client.delete(Ref(Service, "web", here.namespace))
        await here.client.delete(Ref(VirtualService, "web", here.namespace))
        await here.image("web:2")
        await here.later(60)
        assert "web" not in await names(here, Service)
        assert "web" not in await names(here, VirtualService)
        assert (await here.get()).status.run is not None
        assert "web-canary" not in await names(here, Deployment)
        await here.edit(lambda held: with_metadata(held, finalizers=()))


async def test_orphans_stay_and_belong_to_nobody(here: Stage) -> None:
    async with here.working():
        await here.stable(deletionPolicy="Orphan")
        await here.image("web:2")
        await here.until(at_ten)
        await here.delete()
        await here.until_gone(CanaryDeployment)
        await here.later(60)
        assert await names(here, Deployment) == {"web", "web-canary"}
        for kind in (Deployment, Service, VirtualService):
            assert "ownerReferences" not in (await here.document(kind))["metadata"]
        assert await here.weight() == 0


async def test_one_that_was_never_valid_can_go(here: Stage) -> None:
    async with here.working():
        await here.create(service={"ports": []})
        await here.until(lambda s: s.conditions)
        await here.delete()
        await here.until_gone(CanaryDeployment)
    assert not await names(here, Deployment)
