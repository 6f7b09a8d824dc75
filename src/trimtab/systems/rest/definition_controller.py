"""The controller of RestDefinitions: compiles what is known of a kind, defines it where it may, and runs its controller.

Flow: service and document → Model (`compiling`) → ConfigMap → CRD and rights, where the home lets us define kinds → an
ObjectController for the kind (`running`).

Guarantees: a definition goes only when no object of its kind is left: they could not let go of their resources. While it
waits for that, or is wrong, or its document cannot be had, its objects go on by the Model that is kept, also after a
restart; so only a Model whose hooks are installed is kept. Nothing that someone else made is overwritten: a CRD without
our label is used, and not changed.
"""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
from msgspec import UNSET

from trimtab.client.protocol import Named, Query, Ref
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
from trimtab.systems.rest.model import Model
from trimtab.systems.rest.running import Running
from trimtab.systems.rest.validating.definitions import rivals

FINALIZER = "rest.trimtab.dev/kind"
AGAIN = 30.0
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
        self._documents, self._connections = documents, connections
        self._defining = Defining(manage=context.manage, webhooks=context.webhooks)
        self._running = Running(context, connections, query, lambda name: self.wake(Request("", name)))
        self._key = b""

    async def start(self) -> None:
        self._key = await installation_key(self.client)

    async def stop(self) -> None:
        await self._connections.close()

    async def reconcile(self, request: Request) -> Result | None:
        definition = await self.client.find(RestDefinition, request.name)
        if definition is None:
            await self._running.end(request.name)
            return None
        try:
            return await finalizer(self.client, definition, FINALIZER, apply=self._define, cleanup=self._let_go)
        except Problem as problem:
            await self._go_on(definition)
            await self._say(definition, False, problem.reason, str(problem))
            return Result(requeue_after=AGAIN)

    # --- defining ----------------------------------------------------------------------------------------------------

    async def _define(self, definition: RestDefinition) -> Result | None:
        service = await self.client.find(RestService, definition.spec.service_ref)
        if service is None:
            raise Problem("ServiceNotFound", f"there is no RestService {definition.spec.service_ref!r}")
        await self._refuse_rival(definition)
        model, stale = await self._model(definition, service)
        hooks = _hooks(model)
        try:
            await self._defining.define(self.client, model, await self._siblings(model))
        except NotDefined as error:
            raise Problem("NotDefined", str(error)) from None
        await self._running.run(definition, service, model, hooks, self._key)
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
        _hooks(model)
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

    async def _go_on(self, definition: RestDefinition) -> None:
        """By the Model that is kept, if there is one and its kind is served."""
        kind = self._kind(definition)
        there = await self._kept(models.name_of(definition.spec.names.plural, kind.api_version.partition("/")[0]))
        model, service = models.kept(there), await self.client.find(RestService, definition.spec.service_ref)
        is_ours = models.made_of(there).startswith(f"{uid_of(definition)}/")
        if model is None or service is None or not is_ours or await _count(uncached(self.client), kind) is None:
            return
        try:
            hooks = installed(model.overlay.hooks)
        except NoHook as error:
            self.log.warning("objects wait for a hook", definition=definition.name, error=str(error))
            return
        await self._running.run(definition, service, model, hooks, self._key)

    # --- the end -----------------------------------------------------------------------------------------------------

    async def _let_go(self, definition: RestDefinition) -> Result | None:
        kind = self._kind(definition)
        group = kind.api_version.partition("/")[0]
        left = await _count(uncached(self.client), kind)
        if left:
            why = f"{left} objects of the kind are left: delete them first, with spec.policy.deletion: detach to leave the rest"
            raise Problem("InUse", why)
        await self._running.end(definition.name)
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

    def _kind(self, definition: RestDefinition) -> Named:
        """What it makes."""
        group = f"{definition.spec.service_ref}.{self.client.scheme.group('rest')}"
        return Named(f"{group}/{definition.spec.version}", definition.spec.names.kind)

    async def _say(
        self,
        definition: RestDefinition,
        ok: bool,
        reason: str,
        message: str,
        status: RestDefinitionStatus | None = None,
    ) -> None:
        before = status or definition.status or RestDefinitionStatus()
        quirks = self._running.quirks(definition.name, before.quirks or ())
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


def _age(definition: RestDefinition) -> tuple[bool, str, str]:
    """Who is served comes first, then who is older."""
    is_served = bool(definition.status and definition.status.api_version)
    return not is_served, str(definition.metadata.creation_timestamp or ""), definition.name


def _identity(definition: RestDefinition) -> str:
    return f"{uid_of(definition)}/{definition.metadata.generation}"


def _hooks(model: Model) -> Hooks:
    try:
        return installed(model.overlay.hooks)
    except NoHook as error:
        raise Problem("HookNotInstalled", str(error)) from None


async def _count(client: Any, kind: Named) -> int | None:
    """How many objects there are; None when the kind is not served."""
    try:
        return len((await client.list(kind, Query(metadata_only=True))).items)
    except StatusError as error:
        if error.code != 404:
            raise
        return None
