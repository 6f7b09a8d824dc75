"""A worker's bench for tests: tools on either server, a registry with a proxy before it, and Images of what is pushed."""

from __future__ import annotations

import inspect
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

from msgspec import UNSET

from trimtab.client.api import ApiClient
from trimtab.lab import registry_images as made
from trimtab.lab.registry import Registry as LabRegistry
from trimtab.lab.registry_faults import FaultProxy
from trimtab.model.clock import Clock, SystemClock
from trimtab.model.conditions import Condition, get_condition
from trimtab.model.objectmeta import ObjectMeta
from trimtab.runtime.credentials import Credentials
from trimtab.runtime.outbound import Budget, Limits
from trimtab.runtime.owners import own
from trimtab.runtime.workers import Workers
from trimtab.storage.folder import FolderBlobs
from trimtab.storage.scratch import Scratch
from trimtab.systems.images.kinds import SBOM, Image, ImageLayer, ImageSpec, Registry, RegistrySpec
from trimtab.systems.images.kinds.job import REGISTRY_LABEL
from trimtab.systems.images.messages import GenerateSBOM
from trimtab.systems.images.registry.connections import Connections
from trimtab.systems.images.registry.references import image_name
from trimtab.systems.images.worker.handling import Tools
from trimtab.testing.ports import free_ports

QUICK = Budget(concurrent=8, rate=1000, burst=1000, attempts=2, first_pause=0.001)
RUN = "run-1"


class Bench:
    """One namespace with a Registry object `main`, whose registry is behind `proxy`."""

    def __init__(
        self, client: ApiClient, namespace: str, folder: Path, tools: Tools, proxy: FaultProxy, pusher: made.Pusher
    ) -> None:
        self.client, self.namespace, self.folder = client, namespace, folder
        self.tools, self.proxy, self.pusher = tools, proxy, pusher
        self.registry: Registry

    async def ready(self, **spec: Any) -> None:
        metadata = ObjectMeta(name="main", namespace=self.namespace)
        spec = {"uri": self.proxy.host, "plain_http": True} | spec
        self.registry = await self.client.create(Registry(metadata=metadata, spec=RegistrySpec(**spec)))

    async def pushed(self, repository: str, tag: str, image: made.Made, **more: Any) -> Image:
        await self.pusher.push(repository, tag, image)
        return await self.known(repository, tag, image, **more)

    async def known(self, repository: str, tag: str, image: made.Made, **more: Any) -> Image:
        """The Image that a listing would have made."""
        metadata = ObjectMeta(
            name=image_name("main", repository, tag, image.digest),
            namespace=self.namespace,
            labels={REGISTRY_LABEL: self.registry.metadata.uid or ""},
        )
        spec = ImageSpec(
            registry="main",
            registry_uri=self.proxy.host,
            repository=repository,
            tag=tag,
            digest=image.digest,
            platform="linux/amd64",
            **{"layers": layers_of(image), "created": "2026-01-01T00:00:00Z"} | more,
        )
        return await self.client.create(own(Image(metadata=metadata, spec=spec), self.registry))

    def message(self, image: Image, run: str = RUN) -> GenerateSBOM:
        return GenerateSBOM(
            namespace=self.namespace,
            registry="main",
            registry_uid=self.registry.metadata.uid or "",
            image=image.name,
            image_uid=image.metadata.uid or "",
            run=run,
        )

    async def image(self, image: Image) -> Image:
        return await self.client.get(Image, image.name, self.namespace)

    async def sbom(self, image: Image) -> SBOM:
        return await self.client.get(SBOM, image.name, self.namespace)


def layers_of(image: made.Made) -> tuple[ImageLayer, ...]:
    diff_ids = json.loads(image.blobs[0].content)["rootfs"]["diff_ids"]
    described = json.loads(image.manifest.content)["layers"]
    return tuple(
        ImageLayer(digest=each["digest"], diff_id=diff_id or UNSET, size=each["size"], media_type=each["mediaType"])
        for each, diff_id in zip(described, diff_ids, strict=True)
    )


@asynccontextmanager
async def bench(
    client: ApiClient, namespace: str, folder: Path, registry: LabRegistry | None, clock: Clock | None = None
) -> AsyncIterator[Bench]:
    (port,) = free_ports(1)
    url = registry.url if registry else ""
    async with AsyncExitStack() as stack:
        proxy = await stack.enter_async_context(FaultProxy(port, url))
        pusher = await stack.enter_async_context(made.Pusher(url))
        connections = await stack.enter_async_context(Connections(QUICK, limits=Limits(total=20, read=2)))
        credentials = await stack.enter_async_context(Credentials(client))
        workers = await stack.enter_async_context(Workers(1))
        blobs = FolderBlobs(folder / "blobs")
        await blobs.ready()
        tools = Tools(
            name="worker-1",
            client=client,
            clock=clock or SystemClock(),
            blobs=blobs,
            scratch=Scratch(folder / "scratch", 1 << 30),
            workers=workers,
            connections=connections,
            credentials=credentials,
        )
        yield Bench(client, namespace, folder, tools, proxy, pusher)


class Crash(BaseException):
    """The process ended here."""


class Steps:
    """Counts calls to the outside, and ends the process at one of them: before it, or when it is done."""

    def __init__(self, at: int, *, done: bool) -> None:
        self.at, self.done, self.count = at, done, 0

    def through(self, inner: Any) -> Any:
        """The same object, with its calls counted."""
        return _Counted(inner, self)

    async def take(self, call: Callable[[], Awaitable[Any]]) -> Any:
        self.count += 1
        if self.count != self.at:
            return await call()
        if self.done:
            await call()
        raise Crash


class _Counted:
    def __init__(self, inner: Any, steps: Steps) -> None:
        self._inner, self._steps = inner, steps

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._inner, name)
        if not inspect.iscoroutinefunction(found):
            return found
        return lambda *args, **kwargs: self._steps.take(lambda: found(*args, **kwargs))


def condition(obj: Any, kind: str) -> Condition | None:
    return get_condition(obj.status.conditions, kind) if obj.status else None
