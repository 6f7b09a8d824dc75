"""The operator of the benchmark, written with Trimtab: a ConfigMap for each Gadget, and a status."""

from __future__ import annotations

import time

from ledger import Ledger
from msgspec import UNSET, UnsetType

from trimtab.model.kubernetes import ConfigMap
from trimtab.model.objectmeta import ObjectMeta
from trimtab.model.resource import Resource, Spec
from trimtab.runtime.changes import Request
from trimtab.runtime.controller import Controller
from trimtab.runtime.owners import own
from trimtab.runtime.predicates import generation_changed
from trimtab.runtime.status import write_status


class Endpoint(Spec):
    name: str
    host: str | UnsetType = UNSET
    port: int
    protocol: str | UnsetType = UNSET


class GadgetSpec(Spec):
    size: str | UnsetType = UNSET
    replicas: int
    sequence: str = ""
    enabled: bool = False
    description: str | UnsetType = UNSET
    endpoints: tuple[Endpoint, ...] | UnsetType = UNSET
    tags: dict[str, str] | UnsetType = UNSET


class GadgetStatus(Spec):
    observed: str | UnsetType = UNSET


class Gadget(Resource, group="bench", version="v1"):
    spec: GadgetSpec
    status: GadgetStatus | UnsetType = UNSET


class Gadgets(Controller[Gadget]):
    owns = (ConfigMap,)
    when = generation_changed
    echo = False  # one call does all there is to do

    def __init__(self, ledger: Ledger, workers: int) -> None:
        self._ledger = ledger
        self.concurrency = workers

    async def start(self) -> None:
        self._ledger.set_ready()

    async def reconcile(self, request: Request) -> None:
        started = time.time_ns()
        self._ledger.called()
        gadget = await self.client.find(Gadget, request.name, request.namespace)
        if gadget is None or not gadget.spec.enabled:
            return
        sequence = gadget.spec.sequence
        await self._ensure_config_map(gadget, {"sequence": sequence})
        wanted = GadgetStatus(observed=sequence)
        if gadget.status != wanted:
            await write_status(self.client, gadget, wanted)
            self._ledger.done(int(sequence), started)

    async def _ensure_config_map(self, gadget: Gadget, data: dict[str, str]) -> None:
        found = await self.client.find(ConfigMap, gadget.name, gadget.namespace)
        if found is None:
            wanted = ConfigMap(metadata=ObjectMeta(name=gadget.name, namespace=gadget.namespace), data=data)
            await self.client.create(own(wanted, gadget))
        elif found.data != data:
            await self.client.patch(found, found.replace(data=data))
