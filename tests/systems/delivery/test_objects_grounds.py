"""Nothing is written or removed by a CanaryDeployment that is another by now; and nobody is asked when nothing is to be
written."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from msgspec import UNSET

from tests.runtime.conftest import client, scheme
from tests.systems.delivery.crash_kit import Process, hearing_late, patient
from tests.systems.delivery.objects_home import DEPLOYMENT, ROUTES, SERVICE, changed, enforced, in_spec, owner, shop
from tests.systems.delivery.objects_kit import canary, virtual_service
from tests.systems.delivery.stage import Stage
from trimtab.client.api import ApiClient
from trimtab.client.protocol import Ref
from trimtab.model.kubernetes import Deployment
from trimtab.model.scheme import Untyped
from trimtab.runtime.objects import with_metadata
from trimtab.runtime.status import write_status
from trimtab.systems.delivery.kinds import CanaryDeployment
from trimtab.systems.delivery.kinds.canary import CanaryDeploymentStatus
from trimtab.systems.delivery.objects.driving import drive
from trimtab.systems.delivery.objects.grounds import Grounds, Overtaken
from trimtab.systems.delivery.objects.routing import Traffic
from trimtab.systems.delivery.objects.tidying import tidy

__all__ = ["client", "owner", "scheme", "shop"]


class Cached:
    """As much of a client with a cache as grounds need. `looked` are the objects that its cache was told of."""

    def __init__(self, client: ApiClient) -> None:
        self.live, self.looked = client, list[str]()

    async def look(self, kind: Any, name: str, namespace: str = "") -> None:
        self.looked.append(name)


async def overtaken() -> None:
    raise Overtaken("it is another by now")


async def test_what_only_its_metadata_changed_of_still_stands(shop: ApiClient, owner: CanaryDeployment) -> None:
    await shop.patch(owner, with_metadata(owner, annotations={"team": "edge"}))
    await Grounds(Cached(shop), owner).confirm()  # type: ignore[arg-type]


async def test_a_status_a_spec_and_an_object_of_the_past_are_overtaken(
    shop: ApiClient, owner: CanaryDeployment
) -> None:
    cached = Cached(shop)
    grounds: Any = [Grounds(cached, owner)]  # type: ignore[arg-type]
    told = await write_status(shop, owner, CanaryDeploymentStatus(phase="Promoting"))
    grounds.append(Grounds(cached, told))  # type: ignore[arg-type]
    edited = await shop.patch(told, told.replace(spec=told.spec.replace(suspend=True)))
    grounds.append(Grounds(cached, edited))  # type: ignore[arg-type]
    await shop.delete(Ref(CanaryDeployment, owner.name, owner.namespace))
    for each in grounds:
        with pytest.raises(Overtaken):
            await each.confirm()
    assert cached.looked == ["web"] * 3, "the next look has it from the server"


async def test_the_server_is_asked_once_for_a_look(shop: ApiClient, owner: CanaryDeployment) -> None:
    grounds = Grounds(Cached(shop), owner)  # type: ignore[arg-type]
    await grounds.confirm()
    await shop.delete(Ref(CanaryDeployment, owner.name, owner.namespace))
    await grounds.confirm()


async def test_what_is_overtaken_makes_and_changes_nothing(shop: ApiClient, owner: CanaryDeployment) -> None:
    with pytest.raises(Overtaken):
        await enforced(shop, owner, confirm=overtaken)
    first = await enforced(shop, owner, 10)
    assert len(first.made) == len(first.objects), "it made nothing before"
    assert (await enforced(shop, owner, 10, confirm=overtaken)).drifts == (), "nobody is asked: nothing differs"
    with pytest.raises(Overtaken):
        await enforced(shop, owner, 50, confirm=overtaken)
    await changed(shop, DEPLOYMENT, owner, in_spec(replicas=9))
    with pytest.raises(Overtaken):
        await enforced(shop, owner, 10, confirm=overtaken)
    (drift,) = (await enforced(shop, owner, 10, dry=True, confirm=overtaken)).drifts
    assert drift.field == "spec.replicas", "it is all that differs, and is as it was left"


async def test_what_is_overtaken_adopts_nothing(shop: ApiClient, owner: CanaryDeployment) -> None:
    service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web", "namespace": owner.namespace}}
    made = await shop.create(Untyped({**service, "spec": {"ports": [{"port": 80}]}}))
    with pytest.raises(Overtaken):
        await enforced(shop, owner, adopt=True, confirm=overtaken)
    found = await shop.get(SERVICE, "web", owner.namespace)
    assert found.raw["metadata"]["resourceVersion"] == made.raw["metadata"]["resourceVersion"]


async def test_what_is_overtaken_drives_and_tidies_nothing(shop: ApiClient, owner: CanaryDeployment) -> None:
    front = virtual_service({"route": [{"destination": {"host": "web"}}]})
    await shop.create(Untyped({**front, "metadata": {"name": "front", "namespace": owner.namespace}}))
    driver = canary(namespace=owner.namespace, uid=owner.metadata.uid or "", virtualService={"name": "front"})
    with pytest.raises(Overtaken):
        await drive(shop, driver, Traffic(weight=10), confirm=overtaken)
    assert (await shop.get(ROUTES, "front", owner.namespace)).raw["spec"] == front["spec"]
    driven = (await drive(shop, driver, Traffic(weight=10))).objects["VirtualService", "front"]
    with pytest.raises(Overtaken):
        await tidy(shop, owner, [], confirm=overtaken)
    assert (await shop.get(ROUTES, "front", owner.namespace)).raw["spec"] == driven["spec"]
    await enforced(shop, owner)
    with pytest.raises(Overtaken):
        await tidy(shop, driver, [], confirm=overtaken)
    assert await shop.get(ROUTES, "web", owner.namespace)


async def test_who_takes_over_keeps_the_canary_of_a_run_that_it_has_not_heard_of(here: Stage) -> None:
    """It has heard that the run before was over, whose canary was to go."""
    patient(here)
    async with here.working():
        await here.stable(analysis={"scaleDownDelay": "60s"})
        await here.image("web:2")
        found = await here.until(lambda status: status.run and status.run.verified_weight == 10)
        await here.annotate(abort=found.status.run.id)
        over = await here.phase("Finalising")
    here.clock.leap(120)
    before = await here.document(Deployment, "web-canary")
    waits, may = asyncio.Event(), asyncio.Event()

    async def turn(instance: str) -> None:
        waits.set()
        await may.wait()

    async with Process(here, hearing_late(here, "canarydeployments"), turn=turn).running():
        await here.clock.passing(waits.wait())
        run = over.status.run.replace(id="another", result=UNSET, reason=UNSET, message=UNSET)
        await write_status(here.client, over, over.status.replace(phase="Starting", run=run))
        may.set()
        await here.quiet()
        after = await here.document(Deployment, "web-canary")
    assert after["metadata"]["uid"] == before["metadata"]["uid"]
    assert "deletionTimestamp" not in after["metadata"]
