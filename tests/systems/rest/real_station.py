"""The generic reconciler at work on a real server: its example applied, its controllers in this process, on either home.

The home is the API server that the objects are in: ours with our admission, or a real kube-apiserver. On the second one
everything that is cluster-wide has a name of the test's own, and goes when the test ends.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import copy
import gzip
import uuid
from collections.abc import AsyncIterator, Callable, Mapping
from pathlib import Path
from typing import Any

from msgspec import to_builtins

from tests.runtime.widgets import PATIENCE, until_found, until_gone
from tests.systems.images.station import LeapClock
from tests.systems.rest.leaping import leap
from tests.systems.rest.real_examples import FOLDER, documents
from trimtab.client.api import ApiClient
from trimtab.client.protocol import Named, Query, Ref
from trimtab.model.conditions import Condition, get_condition
from trimtab.model.errors import StatusError
from trimtab.model.scheme import Untyped
from trimtab.runtime.credentials import Credentials
from trimtab.runtime.manager import Manager
from trimtab.runtime.metrics import Metrics
from trimtab.runtime.queue import connect as connect_queue
from trimtab.runtime.system import Context
from trimtab.runtime.workers import Workers
from trimtab.storage.scratch import Scratch
from trimtab.systems.rest.calling.connecting import Connections
from trimtab.systems.rest.definition_controller import DefinitionController
from trimtab.systems.rest.documents import Documents
from trimtab.systems.rest.kinds import RestDefinition, RestService
from trimtab.systems.rest.reconciling.subject import WAKE
from trimtab.systems.rest.service_controller import ServiceController

EVENT = Named("events.k8s.io/v1", "Event")
LABEL = "test.trimtab.dev/station"


class Station:
    """One server by its example, in one namespace."""

    def __init__(self, client: ApiClient, namespace: str, folder: Path, server: str, endpoint: str) -> None:
        self.client, self.namespace, self.server, self.endpoint = client, namespace, server, endpoint
        self.service = f"{server}-{uuid.uuid4().hex[:8]}"
        self.group = f"{self.service}.rest.trimtab.dev"
        self.clock = LeapClock()
        self._folder = folder
        self._metrics: Metrics | None = None  # of the controllers that work
        self._definitions: list[str] = []
        self._kinds: list[str] = []

    # --- the system --------------------------------------------------------------------------------------------------

    @contextlib.asynccontextmanager
    async def working(self) -> AsyncIterator[Station]:
        """The controllers run inside. To leave it and to enter it again is a restart."""
        workers = Workers(1)
        queue = connect_queue(None, clock=self.clock)
        manager = Manager(self.client, name="rest", clock=self.clock, metrics=Metrics())
        self._metrics = manager.metrics
        context = Context(
            client=self.client,
            clock=self.clock,
            blobs=None,
            scratch=Scratch(self._folder / "scratch", 1 << 20),
            queue=queue,
            workers=workers,
            metrics=Metrics(),
            manager=manager,
            manage=True,
        )
        known = Documents(self.clock)
        connections = Connections(Credentials(self.client, clock=self.clock), clock=self.clock)
        for controller in (
            ServiceController(context, known),
            DefinitionController(context, known, connections, Query(namespace=self.namespace)),
        ):
            controller.query = Query(labels=f"{LABEL}={self.service}")
            manager.add(controller)
        stop = asyncio.Event()
        task = asyncio.create_task(manager.run(stop))
        try:
            yield self
        finally:
            stop.set()
            await task
            self._metrics = None
            await queue.close()
            await workers.close()

    async def leap(self, seconds: float) -> None:
        """Time passes, between two reconciles."""
        await leap(self.clock, seconds, self._metrics)

    async def serve(self, *kinds: str, wait: bool = True) -> None:
        """Apply the example: its document, its service and the definitions of these kinds; they are served then."""
        document = (FOLDER / self.server / "openapi.yaml").read_text()
        chosen = [each for each in documents(self.server, "definitions.yaml") if each["spec"]["names"]["kind"] in kinds]
        await self._serve({"data": {"openapi.yaml": document}}, chosen, wait=wait)

    async def serve_whole(self, document: bytes, *definitions: RestDefinition, **parameters: str) -> None:
        """The same with another document and other definitions; the service has these parameters."""
        packed = base64.b64encode(gzip.compress(document)).decode()
        chosen = [
            {"apiVersion": "rest.trimtab.dev/v1alpha1", "kind": "RestDefinition", "spec": to_builtins(each.spec)}
            for each in definitions
        ]
        await self._serve({"binaryData": {"openapi.yaml.gz": packed}}, chosen, parameters)

    async def _serve(
        self,
        content: dict[str, dict[str, str]],
        definitions: list[dict[str, Any]],
        parameters: Mapping[str, str] | None = None,
        *,
        wait: bool = True,
    ) -> None:
        await self._make({"apiVersion": "v1", "kind": "ConfigMap", **content}, self.server)
        ((key, _),) = [pair for held in content.values() for pair in held.items()]
        for each in documents(self.server, "service.yaml"):
            if each["kind"] == "RestService":
                each["spec"]["document"]["configMap"]["key"] = key
                each["spec"].setdefault("parameters", {}).update(parameters or {})
                await self._make_service(each)
            else:
                each["metadata"].pop("namespace", None)
                await self._make(each)
        for each in definitions:
            name = f"{each['spec']['names']['plural']}.{self.service}"
            each["metadata"] = {"name": name, "labels": {LABEL: self.service}}
            each["spec"]["serviceRef"] = self.service
            await self.client.create(Untyped(each))
            self._definitions.append(name)
            self._kinds.append(each["spec"]["names"]["kind"])
        for name in self._definitions if wait else ():
            await until_found(self.client, RestDefinition, name, "", lambda held: _is(held, "Ready"))

    async def _make_service(self, document: dict[str, Any]) -> None:
        spec = document["spec"]
        spec["endpoint"] = self.endpoint
        spec["document"]["configMap"]["namespace"] = self.namespace
        if "credentials" in spec:
            spec["credentials"]["secretRef"]["namespace"] = self.namespace
        document["metadata"] = {"name": self.service, "labels": {LABEL: self.service}}
        await self.client.create(Untyped(document))

    async def clear(self) -> None:
        """Everything that is cluster-wide goes; objects must have gone before."""
        for name in self._definitions:
            await self.client.delete(Ref(RestDefinition, name))
            await until_gone(self.client, RestDefinition, name, "")
        await self.client.delete(Ref(RestService, self.service))
        await until_gone(self.client, RestService, self.service, "")

    # --- what users do -----------------------------------------------------------------------------------------------

    def kind(self, kind: str) -> Named:
        return Named(f"{self.group}/v1", kind)

    async def example(self, kind: str, **changes: Any) -> dict[str, Any]:
        """The object of this kind in object.yaml, made; with its spec changed."""
        (found,) = [
            each
            for each in documents(self.server, "object.yaml")
            if each["kind"] == kind and each["apiVersion"].startswith(self.server)
        ]
        spec = {**found["spec"], **changes}
        await self.create(kind, found["metadata"]["name"], spec)
        return spec

    async def create(self, kind: str, name: str, spec: Mapping[str, Any]) -> Untyped:
        return await self._make({"apiVersion": f"{self.group}/v1", "kind": kind, "spec": dict(spec)}, name)

    async def secret(self, name: str, **values: str) -> None:
        await self._make({"apiVersion": "v1", "kind": "Secret", "stringData": values}, name)

    async def set_secret(self, name: str, **values: str) -> None:
        """Change one that is there."""

        def edited(document: dict[str, Any]) -> None:
            document["data"] = {key: base64.b64encode(value.encode()).decode() for key, value in values.items()}

        await self.edit(Named("v1", "Secret"), name, edited)

    async def edit(self, kind: str | Named, name: str, edited: Callable[[dict[str, Any]], Any]) -> None:
        """Change a document, whoever else writes it meanwhile."""
        named = self.kind(kind) if isinstance(kind, str) else kind
        while True:
            held = await self.client.get(named, name, self.namespace)
            document = copy.deepcopy(dict(held.raw))
            edited(document)
            try:
                await self.client.patch(held, Untyped(document))
                return
            except StatusError as error:
                if error.code != 409:
                    raise

    async def change(self, kind: str, name: str, **fields: Any) -> None:
        """Set fields of a spec; None removes one."""

        def edited(document: dict[str, Any]) -> None:
            spec = {**document["spec"], **fields}
            document["spec"] = {field: value for field, value in spec.items() if value is not None}

        await self.edit(kind, name, edited)

    async def delete(self, kind: str, name: str) -> None:
        """And wait until it is gone."""
        await self.begin_deletion(kind, name)
        await self.gone(kind, name)

    async def begin_deletion(self, kind: str, name: str) -> None:
        await self.client.delete(Ref(self.kind(kind), name, self.namespace))

    async def gone(self, kind: str, name: str) -> None:
        await until_gone(self.client, self.kind(kind), name, self.namespace)

    async def look(self, kind: str, name: str) -> None:
        """Have it looked at now, as a service's own word of a change does."""

        def edited(document: dict[str, Any]) -> None:
            document["metadata"].setdefault("annotations", {})[WAKE] = uuid.uuid4().hex

        await self.edit(kind, name, edited)

    # --- what is to be seen ------------------------------------------------------------------------------------------

    async def until(self, kind: str, name: str, holds: Callable[[dict[str, Any]], Any]) -> dict[str, Any]:
        """The object's document, as soon as this is true of it."""
        found = await until_found(
            self.client, self.kind(kind), name, self.namespace, lambda held: holds(dict(held.raw))
        )
        return dict(found.raw)

    async def ready(self, kind: str, name: str) -> dict[str, Any]:
        """The object, when it is as its spec says."""
        return await self.until(kind, name, lambda held: _current(held) and _says(held, "Ready") == "True")

    async def stalled(self, kind: str, name: str, reason: str) -> str:
        """What is said when nothing more will happen until someone acts."""
        return await self.condition(kind, name, "Stalled", "True", reason)

    async def waiting(self, kind: str, name: str, reason: str) -> str:
        """What the condition Ready says, when it is not true for this reason."""
        return await self.condition(kind, name, "Ready", "False", reason)

    async def condition(self, kind: str, name: str, condition: str, status: str, reason: str = "") -> str:
        """What a condition says, as soon as it has this status and reason."""

        def holds(held: dict[str, Any]) -> bool:
            said = _condition(held, condition) or {}
            return said.get("status") == status and (not reason or said.get("reason") == reason)

        found = _condition(await self.until(kind, name, holds), condition) or {}
        return str(found["message"])

    async def definition_says(self, plural: str, reason: str) -> str:
        """What the condition Ready of a definition says, for this reason."""
        name = f"{plural}.{self.service}"

        def holds(held: Any) -> bool:
            return (_condition(held.raw, "Ready") or {}).get("reason") == reason

        found = await until_found(self.client, RestDefinition, name, "", holds)
        return str((_condition(found.raw, "Ready") or {})["message"])

    async def until_said(self, reason: str, part: str) -> str:
        """An event with this reason whose text has this part."""
        query = Query(namespace=self.namespace)
        async with asyncio.timeout(PATIENCE):
            while True:
                listing = await self.client.list(EVENT, query)
                said = [each.raw["note"] for each in listing.items if each.raw["reason"] == reason]
                if hits := [text for text in said if part in text]:
                    return str(hits[-1])
                async with contextlib.aclosing(self.client.watch(EVENT, query, listing.revision)) as changes:
                    async for _ in changes:
                        break

    async def everything(self) -> list[Any]:
        """What a reader of the namespace sees of our kinds, and all events."""
        found: list[Any] = []
        for kind in (*map(self.kind, self._kinds), EVENT):
            found += (await self.client.list(kind, Query(namespace=self.namespace))).items
        return [dict(each.raw) for each in found]

    async def _make(self, document: dict[str, Any], name: str = "") -> Untyped:
        metadata = {**document.get("metadata", {}), "namespace": self.namespace}
        if name:
            metadata["name"] = name
        made: Untyped = await self.client.create(Untyped({**document, "metadata": metadata}))
        return made


def _is(obj: Any, kind: str) -> bool:
    found: Condition | None = get_condition(obj.status.conditions, kind) if obj.status else None
    return found is not None and found.status == "True"


def _condition(document: Mapping[str, Any], kind: str) -> Mapping[str, Any] | None:
    conditions = (document.get("status") or {}).get("conditions") or ()
    return next((each for each in conditions if each["type"] == kind), None)


def _says(document: Mapping[str, Any], kind: str) -> str:
    return str((_condition(document, kind) or {}).get("status", ""))


def _current(document: Mapping[str, Any]) -> bool:
    return bool((document.get("status") or {}).get("observedGeneration") == document["metadata"]["generation"])
