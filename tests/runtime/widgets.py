"""A kind with a class, controllers for it, and ways to wait for what they do. Each widget wants a ConfigMap of its name."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterator
from contextlib import aclosing
from typing import Any, TypeVar

from msgspec import UNSET, UnsetType
from structlog.testing import capture_logs

from trimtab.client.api import ApiClient
from trimtab.client.protocol import AnyKind, EventType, Query
from trimtab.client.transport import Call, Reply, Transport
from trimtab.model.crd import crd
from trimtab.model.errors import StatusError
from trimtab.model.kubernetes import ConfigMap
from trimtab.model.logs import log
from trimtab.model.objectmeta import ObjectMeta, OwnerReference
from trimtab.model.resource import Resource, Spec
from trimtab.model.scheme import Untyped
from trimtab.runtime.changes import Request
from trimtab.runtime.controller import Controller, Result
from trimtab.runtime.manager import Manager
from trimtab.runtime.predicates import generation_changed

PATIENCE = 30.0
COLLECTED = 90.0
"""Seconds until what an owner leaves is gone: a cluster's garbage collector looks for new kinds every half minute."""
T = TypeVar("T")


class Seen(list[T]):
    """What happened, in order; and a way to wait until enough has."""

    def __init__(self) -> None:
        self._more = asyncio.Event()

    def append(self, item: T) -> None:
        super().append(item)
        self._more.set()

    async def until(self, holds: Callable[[Seen[T]], Any]) -> None:
        async with asyncio.timeout(PATIENCE):
            while not holds(self):
                self._more.clear()
                await self._more.wait()

    async def reach(self, count: int) -> None:
        await self.until(lambda seen: len(seen) >= count)


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

    def __init__(self, namespace: str = "") -> None:
        self.query = Query(namespace=namespace)
        self.seen: Seen[Request] = Seen()

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


Act = Callable[["Doer", Request], Awaitable[Any]]


class Doer(Controller[Widget]):
    """Does what it is given, in one namespace, and keeps what it was asked for. `settings` are a controller's own."""

    def __init__(self, namespace: str, act: Act | None = None, **settings: Any) -> None:
        self.query = Query(namespace=namespace)
        self.seen: Seen[Request] = Seen()
        self._act = act
        for name, value in settings.items():
            setattr(self, name, value)

    async def reconcile(self, request: Request) -> Result | None:
        self.seen.append(request)
        return None if self._act is None else await self._act(self, request)

    @property
    def names(self) -> list[str]:
        return [request.name for request in self.seen]


class Tap:
    """A transport that keeps what is called through it, and can hold back what watches bring, or fail on it."""

    def __init__(self, inner: Transport) -> None:
        self._inner = inner
        self.calls: list[Call] = []
        self.flowing = asyncio.Event()
        self.flowing.set()
        self.mistake: Exception | None = None  # as code has them, not networks

    async def call(self, call: Call) -> Reply:
        self.calls.append(call)
        return await self._inner.call(call)

    async def stream(self, call: Call, inactivity: float) -> AsyncGenerator[bytes, None]:
        self.calls.append(call)
        async with aclosing(self._inner.stream(call, inactivity)) as lines:
            async for line in lines:
                await self.flowing.wait()
                if self.mistake is not None:
                    raise self.mistake
                yield line

    async def close(self) -> None:
        await self._inner.close()

    def watches(self, plural: str) -> list[Call]:
        return [call for call in self.calls if call.query.get("watch") and f"/{plural}" in call.path]

    def reads(self, plural: str) -> list[Call]:
        return [c for c in self.calls if c.safe and not c.query.get("watch") and f"/{plural}" in c.path]

    @property
    def writes(self) -> list[Call]:
        return [call for call in self.calls if not call.safe]


def tapped(client: ApiClient) -> tuple[ApiClient, Tap]:
    """The same client, through a tap."""
    tap = Tap(client.transport)
    return ApiClient(tap, client.scheme, namespace=client.namespace), tap


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


@contextlib.contextmanager
def logged() -> Iterator[list[Any]]:
    """What is logged meanwhile."""
    log.bind()  # sets logging up, which would undo the capture
    with capture_logs() as lines:
        yield lines  # type: ignore[misc]


async def until(holds: Callable[[], Any]) -> None:
    """Let things happen until `holds()` is true: for what gives no sign of itself."""
    async with asyncio.timeout(PATIENCE):
        while not holds():  # noqa: ASYNC110 - nothing could set an event
            await asyncio.sleep(0.005)


async def until_found(client: ApiClient, cls: AnyKind, name: str, namespace: str, holds: Callable[[Any], Any]) -> Any:
    """Follow an object until it is there and is as asked for."""
    async with asyncio.timeout(PATIENCE), aclosing(_followed(client, cls, name, namespace)) as states:
        async for found in states:
            if found is not None and holds(found):
                return found
    raise AssertionError("a followed object has no end")


async def until_gone(client: ApiClient, cls: AnyKind, name: str, namespace: str) -> None:
    async with asyncio.timeout(COLLECTED), aclosing(_followed(client, cls, name, namespace)) as states:
        async for found in states:
            if found is None:
                return


async def _followed(client: ApiClient, cls: AnyKind, name: str, namespace: str) -> AsyncGenerator[Any, None]:
    """An object as it is and becomes; None when it is not there. Goes on when the watch breaks."""
    query = Query(namespace=namespace, fields=f"metadata.name={name}")
    while True:
        with contextlib.suppress(StatusError, OSError, TimeoutError):
            listing = await client.list(cls, query)
            yield listing.items[0] if listing.items else None
            async with aclosing(client.watch(cls, query, listing.revision)) as events:
                async for event in events:
                    if event.type is not EventType.BOOKMARK:
                        yield None if event.type is EventType.DELETED else event.object
        await asyncio.sleep(0.05)
