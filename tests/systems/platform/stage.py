"""The platform at work for a test: a hub in this process, clusters that are other servers in this process, with wires that
a test can cut, and the system's controllers between them. The kinds are CRDs of the hub."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import uuid
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from pathlib import Path
from typing import Any

from tests.runtime.widgets import PATIENCE, until_gone
from tests.systems.images.station import LeapClock
from trimtab.client.api import ApiClient
from trimtab.client.config import Config
from trimtab.client.protocol import AnyKind, Client, EventType, Named, Query, Ref
from trimtab.client.transport import Call, Reply, Unreachable
from trimtab.model import kubernetes
from trimtab.model.errors import StatusError, unauthorized
from trimtab.model.hub import HubResource
from trimtab.model.kubernetes import Event
from trimtab.model.scheme import Scheme, Untyped
from trimtab.runtime.manager import Manager
from trimtab.runtime.metrics import Metrics
from trimtab.runtime.objects import with_metadata
from trimtab.runtime.prepare import prepare
from trimtab.runtime.queue import connect as connect_queue
from trimtab.runtime.system import Context, System
from trimtab.runtime.workers import Workers
from trimtab.server.auth.identity import MASTERS, User
from trimtab.server.core import Server
from trimtab.server.local import local_client
from trimtab.storage.scratch import Scratch
from trimtab.store.contract import Entry, Op, Write
from trimtab.store.contract import Query as StoreQuery
from trimtab.store.memory import MemoryStore
from trimtab.systems.platform.cluster_controller import ClusterController
from trimtab.systems.platform.faults import Fault
from trimtab.systems.platform.ground import Ground
from trimtab.systems.platform.kinds import Addon, Blueprint, Cluster, Project, Workload
from trimtab.systems.platform.project_controller import ProjectController
from trimtab.systems.platform.rendering.helm import Helm
from trimtab.systems.platform.workload_controller import WorkloadController

Document = dict[str, Any]
KINDS: tuple[type[HubResource], ...] = (Project, Addon, Blueprint, Cluster, Workload)
ADMIN = User("admin", groups=(MASTERS, "system:authenticated"))
TOKEN = "s3cr3t-token-of-the-kubeconfig"
CONFIG_MAP = Named("v1", "ConfigMap")


class Wire:
    """To a server in this process. A test can cut it, let its credentials expire, or refuse some calls."""

    def __init__(self, client: ApiClient) -> None:
        self._transport = client.transport
        self.cut = False
        self.expired = False
        self.refuse: Callable[[Call], Exception | None] = lambda call: None
        self.slow: Callable[[Call], bool] = lambda call: False
        self.calls: list[Call] = []
        self._more = asyncio.Event()

    async def call(self, call: Call) -> Reply:
        if self.slow(call):
            await asyncio.Event().wait()  # for ever
        if self.cut:
            raise Unreachable("https://cluster.test does not answer: Connection refused")
        if self.expired:
            raise unauthorized("Unauthorized")
        if (error := self.refuse(call)) is not None:
            raise error
        self.calls.append(call)
        self._more.set()
        return await self._transport.call(call)

    async def seen(self, enough: Callable[[list[Call]], bool]) -> None:
        """When such calls came."""
        async with asyncio.timeout(PATIENCE):
            while not enough(self.calls):
                self._more.clear()
                await self._more.wait()

    def stream(self, call: Call, inactivity: float) -> AsyncGenerator[bytes, None]:
        return self._transport.stream(call, inactivity)

    async def close(self) -> None:
        """The server goes on."""

    @property
    def writes(self) -> list[Call]:
        return [call for call in self.calls if not call.safe]


class Site:
    """A cluster: a server of its own, and the wire by which the platform reaches it."""

    def __init__(self, name: str, client: ApiClient, close: Callable[[], Any]) -> None:
        self.name, self.client, self.close = name, client, close
        self.wire = Wire(client)

    @property
    def url(self) -> str:
        return f"https://{self.name}.test"

    def dialled(self) -> ApiClient:
        return ApiClient(self.wire, kubernetes.register(Scheme()), namespace="default")

    async def config_maps(self, namespace: str) -> dict[str, Document]:
        found = (await self.client.list(CONFIG_MAP, Query(namespace=namespace))).items
        return {item.name: dict(item.raw.get("data") or {}) for item in found}

    async def has(self, kind: AnyKind, name: str, namespace: str = "") -> bool:
        try:
            await self.client.get(kind, name, namespace)
        except StatusError as error:
            if error.code != 404:
                raise
            return False
        return True


DEFINITIONS = "customresourcedefinitions.apiextensions.k8s.io"
_defined: list[Write] = []
"""The definitions of our kinds as a server took them once: to judge them is most of what a stage costs."""


async def served(scheme: Scheme | None = None, store: MemoryStore | None = None) -> tuple[ApiClient, Callable[[], Any]]:
    store = store or MemoryStore()
    server = Server(store)
    await server.start()

    async def close() -> None:
        await server.stop()
        await store.close()

    return local_client(server, ADMIN, scheme or kubernetes.register(Scheme())), close


def _again(entry: Entry) -> Write:
    """The write that makes the same object in another store."""
    head, _, tail = entry.value.partition(b'"resourceVersion":"%d' % entry.revision)
    return Write(
        op=Op.PUT,
        key=entry.key,
        head=head + b'"resourceVersion":"',
        tail=tail,
        labels=entry.labels,
        fields=entry.fields,
        schema=entry.schema,
    )


class Stage:
    """`hub` is the API of the hub; `site(name)` makes a cluster."""

    def __init__(self, hub: ApiClient, folder: Path, close: Callable[[], Any]) -> None:
        self.hub, self._folder, self._close = hub, folder, close
        self.clock: Any = LeapClock()
        self.files: dict[tuple[str, str], bytes] = {}
        self.sites: dict[str, Site] = {}
        self.helm = Helm()

    @classmethod
    async def made(cls, folder: Path) -> Stage:
        scheme = kubernetes.register(Scheme())
        for kind in KINDS:
            scheme.register(kind)
        store = MemoryStore()
        for write in _defined:
            await store.commit(write)
        hub, close = await served(scheme, store)
        await prepare(hub, (System(name="platform", kinds=KINDS),), rights=False)
        if not _defined:
            _defined.extend([_again(entry) for entry in (await store.list(StoreQuery(resource=DEFINITIONS))).entries])
        stage = cls(hub, folder, close)
        await stage.namespace("trimtab-system")
        return stage

    async def close(self) -> None:
        for site in self.sites.values():
            await site.close()
        await self._close()

    async def site(self, name: str) -> Site:
        client, close = await served()
        self.sites[name] = Site(name, client, close)
        return self.sites[name]

    @contextlib.asynccontextmanager
    async def working(self, *, client: ApiClient | None = None) -> AsyncIterator[None]:
        """The controllers run inside. Leaving it and entering it again is a restart."""
        client = client or self.hub
        manager = Manager(client, name="platform", clock=self.clock, metrics=Metrics())
        workers, queue = Workers(1), connect_queue(None, clock=self.clock)
        context = Context(
            client=client,
            clock=self.clock,
            blobs=None,
            scratch=Scratch(self._folder / "scratch", 1 << 30),
            queue=queue,
            workers=workers,
            metrics=manager.metrics,
            manager=manager,
        )
        ground = Ground(context, dial=self._dial, read_file=self._read, helm=self.helm)
        for controller in (ProjectController(), ClusterController(ground), WorkloadController(ground)):
            manager.add(controller)
        stop = asyncio.Event()
        running = asyncio.create_task(manager.run(stop))
        try:
            yield
        finally:
            stop.set()
            await running
            await workers.close()
            await queue.close()

    def _dial(self, config: Config) -> ApiClient:
        return next(site for site in self.sites.values() if site.url == config.server).dialled()

    async def _read(self, owner: Any, path: str) -> bytes:
        try:
            return self.files[owner.name, path]
        except KeyError:
            raise Fault("ArtifactMissing", f"file {path} was not uploaded yet") from None

    # --- what users do -----------------------------------------------------------------------------------------------

    async def namespace(self, name: str) -> None:
        await self.hub.apply(
            Untyped({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}), manager="tests"
        )

    async def create(self, kind: type[HubResource], project: str, name: str, spec: Document, **metadata: Any) -> Any:
        known = self.hub.scheme.kind_of(kind)
        place = {"namespace": project} if known.namespaced else {}
        document = {
            "apiVersion": known.api_version,
            "kind": known.kind,
            "metadata": {"name": name, **place, **metadata},
            "spec": spec,
        }
        return await self.hub.create(Untyped(document))

    async def change(self, kind: type[HubResource], project: str, name: str, mutate: Callable[[Document], Any]) -> None:
        while True:
            found = Untyped(dict((await self.hub.get(kind, name, project)).raw or {}))
            changed = json.loads(json.dumps(found.raw))
            mutate(changed["spec"])
            try:
                await self.hub.patch(found, Untyped(changed))
                return
            except StatusError as error:
                if error.code != 409:
                    raise

    async def annotate(self, kind: type[HubResource], project: str, name: str, annotations: dict[str, str]) -> None:
        while True:
            found = await self.hub.get(kind, name, project)
            kept = found.metadata.annotations or {}
            try:
                await self.hub.patch(found, with_metadata(found, annotations={**kept, **annotations}))
                return
            except StatusError as error:
                if error.code != 409:
                    raise

    async def nudge(self, kind: type[HubResource], project: str, name: str) -> None:
        """What time would bring: another look."""
        await self.annotate(kind, project, name, {"tests.trimtab.dev/nudge": uuid.uuid4().hex})

    async def secret(self, project: str, name: str, **values: str | bytes) -> None:
        encoded = {
            key: base64.b64encode(value if isinstance(value, bytes) else value.encode()).decode()
            for key, value in values.items()
        }
        metadata = {"name": name, "namespace": project}
        document = {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": encoded}
        await self.hub.apply(Untyped(document), manager="tests", force=True)

    async def imported(
        self, project: str, name: str, *, blueprint: str = "", version: str = "", **metadata: Any
    ) -> Site:
        """A cluster with a server of its own, and its Secret."""
        site = self.sites.get(name) or await self.site(name)
        await self.secret(project, f"{name}-access", kubeconfig=kubeconfig(site.url))
        spec: Document = {"config": {"imported": {"kubeconfigSecretRef": {"name": f"{name}-access"}}}}
        spec["sharing"] = metadata.pop("sharing", {"enabled": False})
        if blueprint:
            spec["blueprint"] = {"name": blueprint, **({"version": version} if version else {})}
        await self.create(Cluster, project, name, spec, **metadata)
        return site

    async def workload(self, project: str, name: str, content: str, clusters: list[str] | str, **spec: Any) -> None:
        self.files[name, "all.yaml"] = content.encode()
        placement: Document = (
            {"labels": clusters} if isinstance(clusters, str) else {"clusters": [{"name": each} for each in clusters]}
        )
        metadata = spec.pop("metadata", {})
        artifact = {"uploadedYAML": {"paths": [{"name": "all.yaml"}]}}
        whole = {"namespace": "web", "placement": placement, "artifact": artifact, **spec}
        await self.create(Workload, project, name, whole, **metadata)

    async def addon(self, project: str, name: str, content: str, **spec: Any) -> None:
        self.files[name, "addon.yaml"] = content.encode()
        artifact = {"uploadedYAML": {"paths": [{"name": "addon.yaml"}]}}
        await self.create(Addon, project, name, {"namespace": "addons", "artifact": artifact, **spec})

    async def delete(self, kind: type[HubResource], project: str, name: str) -> None:
        await self.hub.delete(Ref(kind, name, project))

    # --- what tests see ----------------------------------------------------------------------------------------------

    async def until(
        self, kind: AnyKind, project: str, name: str, met: Callable[[Document], Any], *, client: Client | None = None
    ) -> Document:
        """The object's document, once `met` is true of it."""
        return await until(client or self.hub, kind, project, name, met)

    async def condition(
        self, kind: AnyKind, project: str, name: str, type_: str, status: str, reason: str = ""
    ) -> Document:
        def met(document: Document) -> bool:
            found = condition_of(document, type_)
            return (
                found.get("status") == status
                and (not reason or found.get("reason") == reason)
                and found.get("observedGeneration") == document["metadata"]["generation"]
            )

        return await self.until(kind, project, name, met)

    async def ready(self, kind: AnyKind, project: str, name: str) -> Document:
        return await self.condition(kind, project, name, "Ready", "True")

    async def gone(self, kind: AnyKind, project: str, name: str) -> None:
        await until_gone(self.hub, kind, name, project)

    async def events(self, name: str, namespace: str = "") -> list[tuple[str, str]]:
        found = (await self.hub.list(Event, Query(namespace=namespace))).items
        raws = [item.raw or {} for item in found]
        return [(raw["reason"], raw.get("note", "")) for raw in raws if raw["regarding"]["name"] == name]


async def until(
    client: Any,
    kind: AnyKind,
    project: str,
    name: str,
    met: Callable[[Document], Any],
    *,
    patience: float = PATIENCE,
) -> Document:
    query = Query(namespace=project, fields=f"metadata.name={name}")
    last: Document = {}
    try:
        async with asyncio.timeout(patience):
            while True:
                listing = await client.list(kind, query)
                for found in listing.items:
                    last = dict(found.raw or {})
                    if met(last):
                        return last
                with contextlib.suppress(StatusError):
                    async for event in client.watch(kind, query, listing.revision):
                        if event.object is None or event.type is EventType.DELETED:
                            continue
                        last = dict(event.object.raw or {})
                        if met(last):
                            return last
    except TimeoutError:
        shown = json.dumps(last.get("status", {}), indent=1)[:4000]
        raise AssertionError(f"{name} never came to what was waited for; its status: {shown}") from None


def condition_of(document: Document, type_: str) -> Document:
    conditions = (document.get("status") or {}).get("conditions") or ()
    return next((each for each in conditions if each["type"] == type_), {})


def part_of(document: Document, name: str, field: str = "clusters") -> Document:
    parts = (document.get("status") or {}).get(field) or ()
    return next((each for each in parts if each["name"] == name), {})


def kubeconfig(server: str, **user: Any) -> str:
    return json.dumps(
        {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "it",
            "contexts": [{"name": "it", "context": {"cluster": "it", "user": "it"}}],
            "clusters": [{"name": "it", "cluster": {"server": server}}],
            "users": [{"name": "it", "user": {"token": TOKEN, **user}}],
        }
    )


def config_map(name: str, namespace: str = "", **data: str) -> str:
    place = f"\n  namespace: {namespace}" if namespace else ""
    return f"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {name}{place}\ndata: {json.dumps(data)}\n---\n"
