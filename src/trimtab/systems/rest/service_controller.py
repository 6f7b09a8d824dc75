"""The controller of RestServices: it says of each whether its document can be read, and holds it while kinds depend on it."""

from __future__ import annotations

import math

from msgspec import UNSET

from trimtab.client.protocol import Query
from trimtab.model.clock import format_time
from trimtab.runtime import Context, Controller, Request, Result, generation_changed
from trimtab.runtime.changes import Change
from trimtab.runtime.controller import Watch
from trimtab.runtime.finalizers import finalizer
from trimtab.runtime.status import ready, write_status
from trimtab.systems.rest.documents import Documents, NoDocument, look_every
from trimtab.systems.rest.kinds import RestDefinition, RestService, RestServiceStatus

FINALIZER = "rest.trimtab.dev/service"
AGAIN = 60.0


def _service_of(change: Change) -> list[Request]:
    return [
        Request("", definition.spec.service_ref) for definition in (change.old, change.new) if definition is not None
    ]


class InUse(Exception):  # noqa: N818 - it reads as what is wrong
    """Kinds depend on the service."""


class ServiceController(Controller[RestService]):
    when = generation_changed
    echo = False
    watches = (Watch(kind=RestDefinition, to=_service_of, when=generation_changed),)

    def __init__(self, context: Context, documents: Documents) -> None:
        self._context, self._documents = context, documents

    async def reconcile(self, request: Request) -> Result | None:
        service = await self.client.find(RestService, request.name)
        if service is None:
            self._documents.forget(request.name)
            return None
        try:
            return await finalizer(self.client, service, FINALIZER, apply=self._read, cleanup=self._let_go)
        except InUse as error:
            await self._say(service, False, "InUse", str(error))
            return Result(requeue_after=AGAIN)

    async def _read(self, service: RestService) -> Result | None:
        try:
            document = await self._documents.of(service, self.client)
        except NoDocument as error:
            await self._say(service, False, "DocumentUnreadable", str(error))
            return Result(requeue_after=AGAIN)
        before = service.status or RestServiceStatus()
        is_new = before.digest != document.digest
        status = before.replace(
            title=document.title[:1024] or UNSET,
            version=document.version[:1024] or UNSET,
            digest=document.digest,
            operations=len(document.operations),
            fetched_at=format_time(self.clock.now()) if is_new or not before.fetched_at else before.fetched_at,
            observed_generation=service.metadata.generation or UNSET,
            conditions=ready(before.conditions, self.clock, service.metadata.generation or UNSET, True, "Read"),
        )
        await write_status(self.client, service, status)
        every = look_every(service)
        return None if every == math.inf else Result(requeue_after=every)

    async def _let_go(self, service: RestService) -> Result | None:
        definitions = (await self.client.list(RestDefinition, Query())).items
        using = sorted(d.name for d in definitions if d.spec.service_ref == service.name)
        if using:
            raise InUse(f"delete its RestDefinitions first: {', '.join(using[:5])}")
        return None

    async def _say(self, service: RestService, ok: bool, reason: str, message: str) -> None:
        before = service.status or RestServiceStatus()
        generation = service.metadata.generation or UNSET
        conditions = ready(before.conditions, self.clock, generation, ok, reason, message)
        await write_status(self.client, service, before.replace(conditions=conditions, observed_generation=generation))
