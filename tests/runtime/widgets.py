"""A kind with a class and a controller for it, for tests of the runtime: each widget wants a ConfigMap of its name."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from typing import Any

from msgspec import UNSET, UnsetType

from trimtab.client.api import ApiClient
from trimtab.model.crd import crd
from trimtab.model.errors import StatusError
from trimtab.model.kubernetes import ConfigMap
from trimtab.model.objectmeta import ObjectMeta, OwnerReference
from trimtab.model.resource import Resource, Spec
from trimtab.model.scheme import Untyped
from trimtab.runtime.changes import Request
from trimtab.runtime.controller import Controller, Result
from trimtab.runtime.manager import Manager
from trimtab.runtime.predicates import generation_changed

PATIENCE = 30.0


class WidgetSpec(Spec):
    size: int
    secret: str | UnsetType = UNSET


class WidgetStatus(Spec):
    made: int | UnsetType = UNSET


class Widget(Resource, group="runtime.example.com", version="v1", plural="widgets"):
    spec: WidgetSpec
    status: WidgetStatus | UnsetType = UNSET


def widget(name: str, namespace: str, size: int = 1, **metadata: Any) -> Widget:
    return Widget(metadata=ObjectMeta(name=name, namespace=namespace, **metadata), spec=WidgetSpec(size=size))


class Maker(Controller[Widget]):
    """Makes the ConfigMaps, and says so in status."""

    owns = (ConfigMap,)
    when = generation_changed

    def __init__(self) -> None:
        self.seen: list[Request] = []

    async def reconcile(self, request: Request) -> Result | None:
        self.seen.append(request)
        found = await self.client.find(Widget, request.name, request.namespace)
        if found is None or found.metadata.deletion_timestamp is not UNSET:
            return None
        made = await self.client.find(ConfigMap, request.name, request.namespace)
        wanted = {"size": str(found.spec.size)}
        if made is None:
            await self.client.create(config_map(found, wanted))
        elif made.data != wanted:
            await self.client.patch(made, made.replace(data=wanted))
        status = WidgetStatus(made=found.spec.size)
        if found.status != status:
            await self.client.patch(found, found.replace(status=status), subresource="status")
        return None


def config_map(owner: Widget, data: dict[str, str]) -> ConfigMap:
    assert isinstance(owner.metadata.uid, str)
    reference = OwnerReference(
        api_version="runtime.example.com/v1",
        kind="Widget",
        name=owner.name,
        uid=owner.metadata.uid,
        controller=True,
        block_owner_deletion=True,
    )
    return ConfigMap(
        metadata=ObjectMeta(name=owner.name, namespace=owner.namespace, owner_references=(reference,)), data=data
    )


async def define(client: ApiClient, cls: type[Resource] = Widget) -> None:
    """Make the server serve the kind, and wait until it does."""
    client.scheme.register(cls)
    definition = crd(cls)
    try:
        await client.create(Untyped(definition))
    except StatusError as error:
        if error.reason != "AlreadyExists":
            raise
    async with asyncio.timeout(PATIENCE):
        while True:
            with contextlib.suppress(StatusError):
                await client.list(cls)
                return
            await asyncio.sleep(0.02)


@contextlib.asynccontextmanager
async def running(manager: Manager) -> AsyncIterator[Manager]:
    """Run a manager; it must end well when the block is left."""
    stop = asyncio.Event()
    task = asyncio.create_task(manager.run(stop))
    try:
        yield manager
    finally:
        stop.set()
        async with asyncio.timeout(PATIENCE):
            await task


async def until(holds: Callable[[], Any]) -> None:
    """Let things happen until `holds()` is true."""
    async with asyncio.timeout(PATIENCE):
        while not holds():
            await asyncio.sleep(0.005)


async def until_found(client: ApiClient, cls: type[Any], name: str, namespace: str, holds: Callable[[Any], Any]) -> Any:
    """Ask the server until the object is there and is as asked for."""
    async with asyncio.timeout(PATIENCE):
        while True:
            with contextlib.suppress(StatusError):
                found = await client.get(cls, name, namespace)
                if holds(found):
                    return found
            await asyncio.sleep(0.01)
