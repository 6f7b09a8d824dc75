"""Whatever is wrong around it, a CanaryDeployment can be deleted."""

from __future__ import annotations

import asyncio
from typing import Any

from tests.systems.delivery.stage import Stage
from tests.systems.delivery.test_triggers import at_ten
from trimtab.client.api import ApiClient
from trimtab.client.protocol import Named, Ref
from trimtab.client.transport import Call, Reply
from trimtab.model.errors import StatusError
from trimtab.systems.delivery.kinds import CanaryDeployment

CRD = Named("apiextensions.k8s.io/v1", "CustomResourceDefinition")


class Refusing:
    """A way to the API on which writes of VirtualServices are denied, as a policy of the cluster may."""

    def __init__(self, client: ApiClient) -> None:
        self._transport = client.transport
        self.client = ApiClient(self, client.scheme, namespace=client.namespace)
        self.denies = False

    async def call(self, call: Call) -> Reply:
        if self.denies and call.method != "GET" and "/virtualservices/" in call.path:
            raise StatusError(403, "Forbidden", "a policy denies it", {})
        return await self._transport.call(call)

    def stream(self, call: Call, inactivity: float) -> Any:
        return self._transport.stream(call, inactivity)

    async def close(self) -> None:
        await self._transport.close()


async def test_a_policy_that_denies_routes_does_not_keep_it_for_ever(here: Stage) -> None:
    way = Refusing(here.client)
    async with here.working(client=way.client):
        await here.stable()
        await here.image("web:2")
        await here.until(at_ten)
        way.denies = True
        await here.delete()
        async with asyncio.timeout(6):
            await here.until_gone(CanaryDeployment)


async def test_it_can_go_when_istios_kinds_are_gone(here: Stage) -> None:
    async with here.working():
        await here.stable()
        await here.client.delete(Ref(CRD, "virtualservices.networking.istio.io", ""))
        await here.quiet()
        await here.delete()
        async with asyncio.timeout(15):
            await here.until_gone(CanaryDeployment)


async def test_it_can_go_when_istios_kinds_are_gone_and_the_controllers_began_anew(here: Stage) -> None:
    async with here.working():
        await here.stable()
    await here.client.delete(Ref(CRD, "virtualservices.networking.istio.io", ""))
    async with here.working():
        await here.delete()
        async with asyncio.timeout(15):
            await here.until_gone(CanaryDeployment)
