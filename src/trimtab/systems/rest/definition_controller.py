"""The controller of RestDefinitions: compiles what is known of a kind, defines it where it may, and runs its controller.

Flow: service and document → Model (`compiling`) → ConfigMap → CRD and rights, where the home lets us define kinds → an
ObjectController for the kind. A definition whose document cannot be had now goes on with the Model that is kept.

Guarantees: a definition goes only when no object of its kind is left: they could not let go of their resources. Nothing
that someone else made is overwritten: a CRD without our label is used, and not changed.
"""

from __future__ import annotations

import asyncio
import random
from typing import Any

import msgspec
from msgspec import UNSET

from trimtab.client.protocol import Named, Query, Ref
from trimtab.model.clock import format_time
from trimtab.model.errors import StatusError
from trimtab.model.kubernetes import ConfigMap
from trimtab.runtime import Context, Controller, Request, Result, generation_changed
from trimtab.runtime.apply import apply
from trimtab.runtime.changes import Change
from trimtab.runtime.controller import Watch
from trimtab.runtime.finalizers import finalizer
from trimtab.runtime.objects import is_deleting, uid_of, uncached
from trimtab.runtime.status import ready, write_status
from trimtab.runtime.system import NAMESPACE
from trimtab.systems.rest import models
from trimtab.systems.rest.calling.connecting import Connections
from trimtab.systems.rest.compiling.compile import compile_model
from trimtab.systems.rest.compiling.fields import fields
from trimtab.systems.rest.compiling.problems import CompileError
from trimtab.systems.rest.defining import Defining, NotDefined
from trimtab.systems.rest.documents import Documents, NoDocument, look_every
from trimtab.systems.rest.hooks import Hooks, NoHook, installed
from trimtab.systems.rest.keys import installation_key
from trimtab.systems.rest.kinds import RestDefinition, RestDefinitionStatus, RestService
from trimtab.systems.rest.kinds.definition import Quirk
from trimtab.systems.rest.measures import Measures
from trimtab.systems.rest.model import Model
from trimtab.systems.rest.object_controller import ObjectController
from trimtab.systems.rest.reconciling.board import Board
from trimtab.systems.rest.reconciling.looking import Looks
from trimtab.systems.rest.reconciling.place import Place
from trimtab.systems.rest.syncing.removing import RUNGS
from trimtab.systems.rest.validating.definitions import rivals

FINALIZER = "rest.trimtab.dev/kind"
AGAIN = 30.0
MOST_QUIRKS = 64
ALL = Query()


class Problem(Exception):  # noqa: N818 - it reads as what happened
    """Why a definition is not ready."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


def _definitions_of(change: Change) -> list[Request]:
    found = []
    for informer in change.informers.of(RestDefinition):
        for entry in informer.cache.entries(""):
            definition = informer.cache.decode(entry)
            if isinstance(definition, RestDefinition) and definition.spec.service_ref == change.request.name:
                found.append(Request("", entry.name))
    return found


class DefinitionController(Controller[RestDefinition]):
    when = generation_changed
    echo = False
    concurrency = 2
    watches = (Watch(kind=RestService, to=_definitions_of),)

    def __init__(self, context: Context, documents: Documents, connections: Connections, query: Query = ALL) -> None:
        """`query` limits the objects that are reconciled, for tests."""
        self._context, self._documents, self._connections = context, documents, connections
        self._defining = Defining(manage=context.manage, webhooks=context.webhooks)
        self._board = Board()
        self._measures = Measures(context.metrics.registry)
        self._objects = query
        self._running: dict[str, ObjectController] = {}
        self._quirks: dict[str, dict[tuple[str, str], Quirk]] = {}
        self._key = b""

    async def start(self) -> None:
        self._key = await installation_key(self.client)

    async def stop(self) -> None:
        await self._connections.close()

    async def reconcile(self, request: Request) -> Result | None:
        definition = await self.client.find(RestDefinition, request.name)
        if definition is None:
            await self._end(request.name)
            return None
        try:
            return await finalizer(self.client, definition, FINALIZER, apply=self._define, cleanup=self._let_go)
        except Problem as problem:
            await self._say(definition, False, problem.reason, str(problem))
            return Result(requeue_after=AGAIN)

    # --- defining ----------------------------------------------------------------------------------------------------

    async def _define(self, definition: RestDefinition) -> Result | None:
        service = await self.client.find(RestService, definition.spec.service_ref)
        if service is None:
            raise Problem("ServiceNotFound", f"there is no RestService {definition.spec.service_ref!r}")
        await self._refuse_rival(definition)
        model, stale = await self._model(definition, service)
        try:
            hooks = installed(model.overlay.hooks)
        except NoHook as error:
            raise Problem("HookNotInstalled", str(error)) from None
        try:
            await self._defining.define(self.client, model, await self._siblings(model))
        except NotDefined as error:
            raise Problem("NotDefined", str(error)) from None
        await self._run(definition, service, model, hooks)
        counts: dict[str, int] = {}
        for row in fields(model):
            counts[row.cls.value] = counts.get(row.cls.value, 0) + 1
        before = definition.status or RestDefinitionStatus()
        status = before.replace(
            api_version=f"{model.group}/{model.version}",
            model=f"{NAMESPACE}/{models.name_of(model.plural, model.group)}",
            model_digest=models.digest_of(model),
            fields=counts,
        )
        message = f"the document cannot be read now, and the kind goes on as it was: {stale}" if stale else ""
        await self._say(definition, True, "Served", message, status)
        every = look_every(service)
        return Result(requeue_after=AGAIN if stale else every) if every != float("inf") or stale else None

    async def _model(self, definition: RestDefinition, service: RestService) -> tuple[Model, str]:
        """What is known of the kind, and why it may be old. It is kept before anything is built on it."""
        group = f"{service.name}.{self.client.scheme.group('rest')}"
        name = models.name_of(definition.spec.names.plural, group)
        there = await self._kept(name)
        known = models.kept(there)
        try:
            document = await self._documents.of(service, self.client)
        except NoDocument as error:
            if known is None or not models.made_of(there).startswith(f"{_identity(definition)} "):
                raise Problem("DocumentUnreadable", str(error)) from None
            return known, str(error)
        made_of = f"{_identity(definition)} {uid_of(service)}/{service.metadata.generation} {document.digest}"
        if known is not None and models.made_of(there) == made_of:
            return known, ""
        try:
            model = await asyncio.to_thread(
                compile_model,
                document,
                definition,
                service=service.spec,
                service_name=service.name,
                group=group,
                parent=await self._parent(definition),
            )
            kept = models.config_map(model, made_of)
        except CompileError as error:
            raise Problem("Invalid", str(error)) from None
        except models.ModelTooLarge as error:
            raise Problem("ModelTooLarge", str(error)) from None
        await apply(uncached(self.client), kept, manager="trimtab-rest", current=there)
        return model, ""

    async def _refuse_rival(self, definition: RestDefinition) -> None:
        """Who was there first has a kind, or a path. Admission says it at once; this is for those who got past it."""
        listed = (await self.client.list(RestDefinition, Query())).items
        found = rivals(definition, [other for other in listed if _age(other) < _age(definition)])
        if found:
            raise Problem("Duplicate", "; ".join(f"{each.path}: {each.detail}" for each in found[:5]))

    async def _parent(self, definition: RestDefinition) -> RestDefinition | None:
        if not definition.spec.parent:
            return None
        for other in (await self.client.list(RestDefinition, Query())).items:
            spec = other.spec
            if (spec.service_ref, spec.names.kind) == (definition.spec.service_ref, definition.spec.parent):
                return other
        return None

    async def _kept(self, name: str) -> ConfigMap | None:
        try:
            return await uncached(self.client).get(ConfigMap, name, NAMESPACE)
        except StatusError as error:
            if error.code != 404:
                raise
            return None

    async def _siblings(self, model: Model) -> list[Model]:
        """All kinds of the same service, for what is granted to them together. Only their names count there."""
        found = [model]
        for other in (await self.client.list(RestDefinition, Query())).items:
            spec = other.spec
            if spec.service_ref == model.service and spec.names.plural != model.plural and not is_deleting(other):
                scale = spec.scale.spec_replicas_path if spec.scale else ""
                names = {"kind": spec.names.kind, "plural": spec.names.plural, "version": spec.version}
                found.append(msgspec.structs.replace(model, **names, scale_spec=scale))
        return found

    # --- running -----------------------------------------------------------------------------------------------------

    async def _run(self, definition: RestDefinition, service: RestService, model: Model, hooks: Hooks) -> None:
        controller = self._running.get(definition.name)
        digest = models.digest_of(model)
        if controller is None:
            controller = ObjectController(f"{model.group}/{model.version}", model.kind, model.plural, self._objects)
        before = controller.place
        if (
            before is not None
            and before.digest == digest
            and before.service.metadata.generation == service.metadata.generation
        ):
            return
        clock = self._context.clock
        controller.place = Place(
            model=model,
            digest=digest,
            hooks=hooks,
            client=self._context.manager.cached if self._context.manager is not None else self.client,
            clock=clock,
            chance=random.Random(),  # noqa: S311 - jitter
            connections=self._connections,
            service=service,
            key=self._key,
            board=self._board,
            looks=Looks(model, clock),
            events=self.events,
            log=self.log,
            measures=self._measures,
            learn=lambda path, behaviour, evidence, of: self._learn(definition.name, path, behaviour, evidence, of),
            children=lambda: self._children(model),
            removals=_learned(definition),
        )
        if definition.name in self._running:
            controller.wake_all()
            return
        if self._context.manager is None:
            raise RuntimeError("the rest system runs its controllers by the manager of its home, and there is none")
        self._context.manager.add(controller)
        self._running[definition.name] = controller

    def _children(self, model: Model) -> list[Named]:
        others = [c.place.model for c in self._running.values() if c.place is not None]
        below = [other for other in others if (other.service, other.parent) == (model.service, model.kind)]
        return [Named(f"{other.group}/{other.version}", other.kind) for other in below]

    async def _end(self, name: str) -> None:
        controller = self._running.pop(name, None)
        if controller is not None and self._context.manager is not None:
            self._board.forget(controller.wake)
            if controller.place is not None:
                self._measures.forget(controller.place.model.service, controller.place.model.kind)
            await self._context.manager.remove(controller)

    async def _let_go(self, definition: RestDefinition) -> Result | None:
        group = f"{definition.spec.service_ref}.{self.client.scheme.group('rest')}"
        kind = Named(f"{group}/{definition.spec.version}", definition.spec.names.kind)
        left = await _count(uncached(self.client), kind)
        if left:
            why = f"{left} objects of the kind are left: delete them first, with spec.policy.deletion: detach to leave the rest"
            raise Problem("InUse", why)
        await self._end(definition.name)
        others = (await self.client.list(RestDefinition, Query())).items
        last = not any(o.spec.service_ref == definition.spec.service_ref and o.name != definition.name for o in others)
        await self._defining.undefine(
            self.client, definition.spec.names.plural, group, definition.spec.service_ref if last else ""
        )
        try:
            name = models.name_of(definition.spec.names.plural, group)
            await self.client.delete(Ref(ConfigMap, name, NAMESPACE))
        except StatusError as error:
            if error.code != 404:
                raise
        return None

    # --- learning and saying -----------------------------------------------------------------------------------------

    def _learn(self, name: str, path: str, behaviour: str, evidence: str, of: Request) -> None:
        found = self._quirks.setdefault(name, {})
        if (path, behaviour) in found:
            return
        found[path, behaviour] = Quirk(
            path=path[:1024],
            behaviour=behaviour,
            evidence=evidence[:1024],
            object=str(of)[:512],
            first_seen=format_time(self.clock.now()),
        )
        controller = self._running.get(name)
        rung = _RUNG_OF.get(behaviour)
        if controller is not None and controller.place is not None and rung is not None:
            controller.place.removals[path] = rung
        self.wake(Request("", name))

    async def _say(
        self,
        definition: RestDefinition,
        ok: bool,
        reason: str,
        message: str,
        status: RestDefinitionStatus | None = None,
    ) -> None:
        before = status or definition.status or RestDefinitionStatus()
        known = {} if before.quirks is UNSET else {(q.path, q.behaviour): q for q in before.quirks}
        quirks = tuple({**self._quirks.get(definition.name, {}), **known}.values())[:MOST_QUIRKS]
        generation = definition.metadata.generation or UNSET
        await write_status(
            self.client,
            definition,
            before.replace(
                conditions=ready(before.conditions, self.clock, generation, ok, reason, message),
                observed_generation=generation,
                quirks=quirks or UNSET,
            ),
        )


_RUNG_OF = {
    "RemovedByNull": RUNGS.index("null"),
    "RemovedByEmpty": RUNGS.index("empty"),
    "RemovedByDefault": RUNGS.index("default"),
}


def _learned(definition: RestDefinition) -> dict[str, int]:
    quirks = () if not definition.status or definition.status.quirks is UNSET else definition.status.quirks
    return {quirk.path: _RUNG_OF[quirk.behaviour] for quirk in quirks if quirk.behaviour in _RUNG_OF}


def _age(definition: RestDefinition) -> tuple[bool, str, str]:
    """Who is served comes first, then who is older."""
    is_served = bool(definition.status and definition.status.api_version)
    return not is_served, str(definition.metadata.creation_timestamp or ""), definition.name


def _identity(definition: RestDefinition) -> str:
    return f"{uid_of(definition)}/{definition.metadata.generation}"


async def _count(client: Any, kind: Named) -> int:
    try:
        return len((await client.list(kind, Query(metadata_only=True))).items)
    except StatusError as error:
        if error.code != 404:
            raise
        return 0
