"""An example of use: a bug that a user's operator has only when it dies at the wrong moment, found and repeated.

The operator sends one invoice for each order. The first version remembers in memory which orders it has served. Ordinary
tests pass, for years. The simulation finds what happens when the process dies between the invoice and the next change.
"""

from __future__ import annotations

from collections import Counter

import pytest

from trimtab.model.errors import StatusError
from trimtab.model.kubernetes import ConfigMap
from trimtab.model.objectmeta import ObjectMeta
from trimtab.model.resource import Resource, Spec
from trimtab.runtime.changes import Request
from trimtab.runtime.controller import Controller
from trimtab.runtime.manager import Manager
from trimtab.testing.simulation import Simulation, replay, simulate
from trimtab.testing.world import CALM, Host, World


class OrderSpec(Spec):
    item: str


class Order(Resource, group="example", version="v1", plural="orders"):
    spec: OrderSpec


class Forgetful(Controller[Order]):
    """Wrong: what it has done is in its memory, and the name of an invoice is left to the server."""

    name = "billing"

    def __init__(self) -> None:
        self._served: set[str] = set()

    async def reconcile(self, request: Request) -> None:
        order = await self.client.find(Order, request.name, request.namespace)
        if order is None or order.name in self._served:
            return
        metadata = ObjectMeta(generate_name="invoice-", namespace=order.namespace)
        await self.client.create(ConfigMap(metadata=metadata, data={"order": order.name}))
        self._served.add(order.name)


class Careful(Controller[Order]):
    """Right: the invoice itself says that it was sent, and its name makes a second one impossible."""

    name = "billing"

    async def reconcile(self, request: Request) -> None:
        order = await self.client.find(Order, request.name, request.namespace)
        if order is None:
            return
        metadata = ObjectMeta(name=f"invoice-{order.name}", namespace=order.namespace)
        try:
            await self.client.create(ConfigMap(metadata=metadata, data={"order": order.name}))
        except StatusError as error:
            if error.reason != "AlreadyExists":
                raise


async def each_order_has_one_invoice(world: World, billing: type[Controller[Order]]) -> None:
    async def operator(host: Host) -> None:
        manager = Manager(host.client, clock=host.clock, chance=host.random)
        manager.add(billing())
        await manager.run()

    await world.install(Order)
    world.start("operator", operator)
    orders = [f"order-{number}" for number in range(10)]
    for name in orders:
        await world.client.create(
            Order(metadata=ObjectMeta(name=name, namespace="default"), spec=OrderSpec(item="rudder"))
        )
        await world.some_time()
    await world.calm()
    invoices = [item for item in (await world.client.list(ConfigMap)).items if item.name.startswith("invoice-")]
    sent = Counter((invoice.data or {})["order"] for invoice in invoices)
    assert sent == dict.fromkeys(orders, 1)


@simulate(schedules=30)
async def test_the_careful_operator_sends_one_invoice_whatever_happens(world: World) -> None:
    await each_order_has_one_invoice(world, Careful)


async def forgetful(world: World) -> None:
    await each_order_has_one_invoice(world, Forgetful)


def test_an_ordinary_test_does_not_find_the_bug() -> None:
    assert Simulation(0, weather=CALM).run(forgetful).error is None


def test_the_simulation_finds_it_and_its_seed_repeats_it() -> None:
    with pytest.raises(AssertionError) as caught:
        simulate(schedules=30)(forgetful)()
    assert "repeats it step by step" in caught.value.__notes__[-1]

    found = next(outcome for seed in range(30) if (outcome := Simulation(seed).run(forgetful)).error is not None)
    again = replay(found.seed, forgetful)
    assert str(again.error) == str(found.error)
    assert again.story == found.story
    assert again.fingerprint == found.fingerprint
