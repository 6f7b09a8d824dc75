"""A controller that writes by all the contracts at once, from the cache: it converges, rests, and cleans up."""

from __future__ import annotations

from msgspec import UNSET

from tests.runtime.gadgets import Gadget, GadgetSpec, GadgetStatus, define
from tests.runtime.widgets import running, until, until_found
from trimtab.client.api import ApiClient
from trimtab.client.protocol import Query, Ref
from trimtab.model.conditions import is_false, is_true
from trimtab.model.kubernetes import ConfigMap, Event, Secret
from trimtab.model.objectmeta import ObjectMeta
from trimtab.runtime.apply import apply
from trimtab.runtime.changes import Request
from trimtab.runtime.controller import Controller, Result
from trimtab.runtime.finalizers import finalizer
from trimtab.runtime.inventory.keeper import Inventory
from trimtab.runtime.manager import Manager
from trimtab.runtime.owners import NotOurs, create_or_adopt, owned_by
from trimtab.runtime.status import ready, write_status

NAME = "writer.test.trimtab.dev"


class Writer(Controller[Gadget]):
    """Each gadget wants a ConfigMap of its name, and as many Secrets as its size says."""

    owns = (ConfigMap,)

    async def reconcile(self, request: Request) -> Result | None:
        gadget = await self.client.find(Gadget, request.name, request.namespace)
        if gadget is None:
            return None
        return await finalizer(self.client, gadget, f"{NAME}/cleanup", apply=self.make, cleanup=self.clean)

    async def make(self, gadget: Gadget) -> Result | None:
        metadata = ObjectMeta(name=gadget.name, namespace=gadget.namespace)
        try:
            child = await create_or_adopt(self.client, ConfigMap(metadata=metadata), gadget)
        except NotOurs as conflict:
            await self.tell(gadget, False, "Conflict", str(conflict))
            return None
        data = {"size": str(gadget.spec.size)}
        await apply(self.client, ConfigMap(metadata=metadata, data=data), manager=NAME, current=child)
        await self.inventory.apply(gadget, secrets(gadget))
        await self.tell(gadget, True, "Made", "all is there")
        return None

    async def clean(self, gadget: Gadget) -> Result | None:
        await self.inventory.apply(gadget, (), allow_mass_delete=True)
        self.events.normal(gadget, "Cleaned", "nothing is left")
        return None

    async def tell(self, gadget: Gadget, ok: bool, reason: str, message: str) -> None:
        status = gadget.status or GadgetStatus()
        conditions = ready(status.conditions, self.clock, gadget.metadata.generation, ok, reason, message)
        if conditions is not status.conditions:
            await write_status(self.client, gadget, status.replace(seen=gadget.spec.size, conditions=conditions))
            self.events.normal(gadget, reason, message)

    @property
    def inventory(self) -> Inventory:
        return Inventory(self.client, self.clock, manager=NAME)


def secrets(gadget: Gadget) -> list[dict[str, object]]:
    names = [f"{gadget.name}-{number}" for number in range(gadget.spec.size)]
    metadata = [{"name": name, "namespace": gadget.namespace} for name in names]
    return [{"apiVersion": "v1", "kind": "Secret", "metadata": one, "data": {"k": "AAAA"}} for one in metadata]


async def gone(client: ApiClient, name: str, namespace: str) -> None:
    """Wait by watching until there is no such gadget."""
    query = Query(namespace=namespace, fields=f"metadata.name={name}")
    listing = await client.list(Gadget, query)
    if listing.items:
        watch = client.watch(Gadget, query, listing.revision)
        async for event in watch:
            if event.type.value == "DELETED":
                break
        await watch.aclose()


async def names(client: ApiClient, namespace: str) -> list[str]:
    return [item.name for item in (await client.list(Secret, Query(namespace=namespace))).items]


async def test_it_converges_rests_and_cleans_up(client: ApiClient, namespace: str) -> None:
    await define(client)
    manager = Manager(client, name=NAME)
    manager.add(Writer())
    async with running(manager):
        metadata = ObjectMeta(name="g", namespace=namespace)
        await client.create(Gadget(metadata=metadata, spec=GadgetSpec(size=3)))
        made = await until_found(
            client, Gadget, "g", namespace, lambda g: g.status and is_true(g.status.conditions, "Ready")
        )
        child = await client.get(ConfigMap, "g", namespace)
        assert owned_by(child, made)
        assert child.data == {"size": "3"}
        assert await names(client, namespace) == ["g-0", "g-1", "g-2"]

        await client.patch(made, made.replace(spec=GadgetSpec(size=2)))
        made = await until_found(client, Gadget, "g", namespace, lambda g: g.status and g.status.seen == 2)
        assert await names(client, namespace) == ["g-0", "g-1"]

        await client.delete(Ref(Gadget, "g", namespace))
        await gone(client, "g", namespace)
        assert await names(client, namespace) == []
    told = (await client.list(Event, Query(namespace=namespace))).items
    assert {event.reason for event in told if event.reporting_controller == NAME} == {"Made", "Cleaned"}


async def test_an_object_in_the_way_becomes_a_condition(client: ApiClient, namespace: str) -> None:
    await define(client)
    await client.create(ConfigMap(metadata=ObjectMeta(name="g", namespace=namespace), data={"their": "own"}))
    manager = Manager(client, name=NAME)
    manager.add(Writer())
    async with running(manager):
        await client.create(Gadget(metadata=ObjectMeta(name="g", namespace=namespace), spec=GadgetSpec(size=1)))
        made = await until_found(client, Gadget, "g", namespace, lambda g: g.status is not UNSET)
        assert is_false(made.status.conditions, "Ready")
        assert made.status.conditions[0].reason == "Conflict"
    assert (await client.get(ConfigMap, "g", namespace)).data == {"their": "own"}


async def test_a_second_look_writes_nothing(client: ApiClient, namespace: str) -> None:
    await define(client)
    writer = Writer()
    manager = Manager(client, name=NAME)
    manager.add(writer)
    async with running(manager):
        await client.create(Gadget(metadata=ObjectMeta(name="g", namespace=namespace), spec=GadgetSpec(size=1)))
        await until_found(client, Gadget, "g", namespace, lambda g: g.status is not UNSET)
        await until(lambda: manager.synced)
        before = await revisions(client, namespace)
        for _ in range(3):
            await writer.reconcile(Request(namespace, "g"))
        assert await revisions(client, namespace) == before


async def revisions(client: ApiClient, namespace: str) -> list[object]:
    listings = [await client.list(kind, Query(namespace=namespace)) for kind in (Gadget, ConfigMap, Secret)]
    found = [item for listing in listings for item in listing.items if item.name != "kube-root-ca.crt"]
    return [item.metadata.resource_version for item in found]
