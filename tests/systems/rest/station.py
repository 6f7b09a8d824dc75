"""The generic reconciler at work for a test: its controllers in this process, on either server, for one service."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import uuid
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from tests.runtime.widgets import PATIENCE, until_gone
from tests.systems.images.station import LeapClock
from tests.systems.rest.leaping import leap
from trimtab.client.api import ApiClient
from trimtab.client.protocol import EventType, Named, Query, Ref
from trimtab.client.transport import FAILURES
from trimtab.model.clock import SystemClock
from trimtab.model.errors import StatusError
from trimtab.model.kubernetes import Event
from trimtab.model.scheme import Untyped
from trimtab.runtime.controller import Controller
from trimtab.runtime.credentials import Credentials
from trimtab.runtime.manager import Manager
from trimtab.runtime.metrics import Metrics
from trimtab.runtime.objects import with_metadata
from trimtab.runtime.queue import connect as connect_queue
from trimtab.runtime.system import Context
from trimtab.runtime.workers import Workers
from trimtab.storage.scratch import Scratch
from trimtab.systems.rest.calling.connecting import Connections
from trimtab.systems.rest.compiling.proposing import propose
from trimtab.systems.rest.defining import CRD, OURS
from trimtab.systems.rest.definition_controller import DefinitionController
from trimtab.systems.rest.documents import Documents
from trimtab.systems.rest.kinds import RestDefinition, RestService
from trimtab.systems.rest.openapi.loading import from_path
from trimtab.systems.rest.service_controller import ServiceController

Document = dict[str, Any]

GROUP = "rest.trimtab.dev/v1alpha1"
EXAMPLES = Path(__file__).resolve().parents[3] / "examples" / "rest"
LABEL = "tests.trimtab.dev/station"
RBAC = "rbac.authorization.k8s.io/v1"
DEFINED = (Named(RBAC, "ClusterRoleBinding"), Named(RBAC, "ClusterRole"))


class SwiftClock:
    """Real time, many times as fast: for what takes minutes at a service."""

    def __init__(self, factor: float) -> None:
        self._system, self._factor = SystemClock(), factor
        self._began, self._at = self._system.now(), self._system.monotonic()

    def now(self) -> datetime:
        return self._began + timedelta(seconds=self.monotonic() - self._at)

    def monotonic(self) -> float:
        return self._at + (self._system.monotonic() - self._at) * self._factor

    async def sleep(self, seconds: float) -> None:
        await self._system.sleep(seconds / self._factor)


class Station:
    """One namespace and one service with a name of its own. Leaving `working` and entering it again is a restart."""

    def __init__(self, client: ApiClient, namespace: str, folder: Path) -> None:
        self.client, self.namespace = client, namespace
        self.service = f"svc{uuid.uuid4().hex[:10]}"
        self.group = f"{self.service}.rest.trimtab.dev"
        self.clock: Any = LeapClock()
        self._folder = folder
        self._metrics: Metrics | None = None  # of the controllers that work

    @contextlib.asynccontextmanager
    async def working(
        self,
        *,
        client: ApiClient | None = None,
        callers: Callable[[Connections], Any] = lambda made: made,
        manage: bool = True,
    ) -> AsyncIterator[None]:
        """The controllers run inside. `client` and `callers` are what they reach the API and the services by, when a
        test comes between."""
        client = client or self.client
        manager = Manager(client, name="rest", clock=self.clock, metrics=Metrics())
        self._metrics = manager.metrics
        workers = Workers(1)
        queue = connect_queue(None, clock=self.clock)
        context = Context(
            client=client,
            clock=self.clock,
            blobs=None,
            scratch=Scratch(self._folder / "scratch", 1 << 20),
            queue=queue,
            workers=workers,
            metrics=manager.metrics,
            manager=manager,
            manage=manage,
        )
        documents = Documents(self.clock)
        credentials = Credentials(client, clock=self.clock)
        connections = callers(Connections(credentials, clock=self.clock))
        own = Query(labels=f"{LABEL}={self.service}")
        services = ServiceController(context, documents)
        definitions = DefinitionController(context, documents, connections, Query(namespace=self.namespace))
        for controller in (services, definitions):
            _limit(controller, own)
            manager.add(controller)
        stop = asyncio.Event()
        running = asyncio.create_task(manager.run(stop))
        try:
            yield
        finally:
            stop.set()
            await running
            self._metrics = None
            await credentials.close()
            await workers.close()
            await queue.close()

    async def close(self) -> None:
        """Take what is cluster-wide away."""
        with contextlib.suppress(*FAILURES):
            for kind in (RestDefinition, RestService):
                for found in (await self.client.list(kind, Query(labels=f"{LABEL}={self.service}"))).items:
                    await self.client.patch(found, with_metadata(found, finalizers=()))
                    await self.client.delete(Ref(kind, found.name))
            for kind in (CRD, *DEFINED):
                for found in (await self.client.list(kind, Query(labels=f"{OURS}={self.service}"))).items:
                    if kind is CRD:
                        await self._let_go(found)
                    await self.client.delete(Ref(kind, found.name))

    async def _let_go(self, definition: Untyped) -> None:
        """Objects that are left would hold their kind."""
        names = definition.raw["spec"]["names"]
        for left in (await self.client.list(Named(f"{self.group}/v1", names["kind"]))).items:
            await self.client.patch(left, with_metadata(left, finalizers=()))

    # --- what users do -----------------------------------------------------------------------------------------------

    async def serve(
        self,
        endpoint: str,
        document: Path | str,
        *,
        definitions: Sequence[Document] | None = None,
        change: Callable[[Document], Any] | None = None,
        **spec: Any,
    ) -> None:
        """A RestService with its document inline, and definitions: those given, or all that are proposed. `change` is
        called on each definition's spec. Returns when all are ready."""
        text = document.read_text() if isinstance(document, Path) else document  # noqa: ASYNC240 - a test
        service = {"endpoint": endpoint, "document": {"inline": text}, **spec}
        await self.create(
            {"apiVersion": GROUP, "kind": "RestService", "metadata": self._meta(self.service), "spec": service}
        )
        if definitions is None:
            assert isinstance(document, Path)
            proposals = propose(from_path(document), self.service)
            definitions = [self.client.scheme.document(proposal) for proposal in proposals]
        for definition in definitions:
            spec_ = {**definition["spec"], "serviceRef": self.service}
            if change is not None:
                change(spec_)
            name = f"{spec_['names']['plural']}.{self.service}"
            await self.create(
                {"apiVersion": GROUP, "kind": "RestDefinition", "metadata": self._meta(name), "spec": spec_}
            )
        for definition in definitions:
            await self.ready(
                Named(GROUP, "RestDefinition"), f"{definition['spec']['names']['plural']}.{self.service}", ""
            )

    def _meta(self, name: str) -> Document:
        return {"name": name, "labels": {LABEL: self.service}}

    def kind(self, kind: str) -> Named:
        return Named(f"{self.group}/v1", kind)

    def document(self, kind: str, name: str, spec: Mapping[str, Any]) -> Document:
        metadata = {"name": name, "namespace": self.namespace}
        return {"apiVersion": f"{self.group}/v1", "kind": kind, "metadata": metadata, "spec": dict(spec)}

    async def create(self, document: Document) -> Untyped:
        return await self.client.create(Untyped(document))

    async def make(self, kind: str, name: str, /, **spec: Any) -> Untyped:
        """An object of a generated kind; returns when it is ready."""
        await self.create(self.document(kind, name, spec))
        return await self.ready(self.kind(kind), name)

    async def change(self, kind: str, name: str, mutate: Callable[[Document], Any]) -> Untyped:
        """`mutate` changes the spec in place."""
        while True:
            found = await self.get(kind, name)
            changed = json.loads(json.dumps(found.raw))
            mutate(changed["spec"])
            try:
                return await self.client.patch(found, Untyped(changed))
            except StatusError as error:
                if error.code != 409:
                    raise

    async def annotate(self, kind: str, name: str, **annotations: str) -> None:
        while True:
            found = await self.get(kind, name)
            kept = dict(found.metadata.annotations or {})
            try:
                await self.client.patch(found, with_metadata(found, annotations={**kept, **annotations}))
                return
            except StatusError as error:
                if error.code != 409:
                    raise

    async def delete(self, kind: str, name: str) -> None:
        await self.client.delete(Ref(self.kind(kind), name, self.namespace))

    async def leap(self, seconds: float) -> None:
        """Time passes, between two reconciles."""
        await leap(self.clock, seconds, self._metrics)

    async def secret(self, name: str, **values: str) -> None:
        data = {key: base64.b64encode(value.encode()).decode() for key, value in values.items()}
        metadata = {"name": name, "namespace": self.namespace}
        document = {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": data}
        await self.client.apply(Untyped(document), manager="tests", force=True)

    # --- what tests see ----------------------------------------------------------------------------------------------

    async def get(self, kind: str, name: str) -> Untyped:
        return await self.client.get(self.kind(kind), name, self.namespace)

    async def until(
        self, kind: str | Named, name: str, met: Callable[[Document], Any], namespace: str | None = None
    ) -> Untyped:
        """The object, once `met` is true of its document."""
        named = self.kind(kind) if isinstance(kind, str) else kind
        where = self.namespace if namespace is None else namespace
        query = Query(namespace=where, fields=f"metadata.name={name}")
        last: Document = {}
        try:
            async with asyncio.timeout(PATIENCE):
                while True:
                    listing = await self.client.list(named, query)
                    for found in listing.items:
                        last = _raw(self.client, found)
                        if met(last):
                            return Untyped(last)
                    try:
                        async for event in self.client.watch(named, query, listing.revision):
                            if event.object is None or event.type is EventType.DELETED:
                                continue
                            last = _raw(self.client, event.object)
                            if met(last):
                                return Untyped(last)
                    except StatusError as error:
                        if error.code != 410:
                            raise
        except TimeoutError:
            shown = json.dumps(last.get("status", {}), indent=1)[:4000]
            raise AssertionError(f"{name} never came to what was waited for; its status: {shown}") from None

    async def ready(self, kind: str | Named, name: str, namespace: str | None = None) -> Untyped:
        return await self.condition(kind, name, "Ready", "True", namespace=namespace)

    async def condition(
        self,
        kind: str | Named,
        name: str,
        type_: str,
        status: str,
        reason: str = "",
        namespace: str | None = None,
    ) -> Untyped:
        """The object, once it has a condition that speaks of its present generation."""

        def met(document: Document) -> bool:
            found = condition_of(document, type_)
            return (
                found.get("status") == status
                and (not reason or found.get("reason") == reason)
                and found.get("observedGeneration") == document["metadata"]["generation"]
            )

        return await self.until(kind, name, met, namespace)

    async def gone(self, kind: str, name: str) -> None:
        await until_gone(self.client, self.kind(kind), name, self.namespace)

    async def events(self, name: str) -> list[tuple[str, str]]:
        """Reason and message of the events about an object."""
        found = (await self.client.list(Event, Query(namespace=self.namespace))).items
        raws = [_raw(self.client, event) for event in found]
        return [
            (raw.get("reason", ""), raw.get("note", raw.get("message", "")))
            for raw in raws
            if (raw.get("regarding") or raw.get("involvedObject") or {}).get("name") == name
        ]


def condition_of(document: Document, type_: str) -> Document:
    conditions = (document.get("status") or {}).get("conditions") or ()
    return next((each for each in conditions if each["type"] == type_), {})


def _raw(client: ApiClient, obj: Any) -> Document:
    found = client.scheme.document(obj)
    return json.loads(json.dumps(found))


def _limit(controller: Controller[Any], query: Query) -> None:
    controller.query = query
