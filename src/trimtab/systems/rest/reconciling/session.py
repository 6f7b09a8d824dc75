"""One turn's hold on its object: the status as it becomes, the requests that are sent for it, and the saving of both.

Guarantees: `save` writes only what changed, and only onto the revision that the turn saw; with `must` also over a change
of the spec, because what was done at the service was done, and must not be forgotten.
"""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import msgspec
from msgspec import UNSET

from trimtab.client.protocol import Named
from trimtab.model.clock import format_time, parse_time
from trimtab.model.errors import StatusError
from trimtab.runtime.changes import Request as Key
from trimtab.runtime.controller import Result
from trimtab.runtime.objects import uncached, with_metadata
from trimtab.runtime.owners import owner_reference
from trimtab.runtime.status import write_status
from trimtab.systems.rest.addressing import above, matched, parsed, resource_id, url_of
from trimtab.systems.rest.calling import operations
from trimtab.systems.rest.calling.contract import Answer, Caller, Request
from trimtab.systems.rest.hooks import HookContext, Verdict
from trimtab.systems.rest.model import Call
from trimtab.systems.rest.reconciling import memory, telling
from trimtab.systems.rest.reconciling.looking import Live, Unchanged
from trimtab.systems.rest.reconciling.place import Place
from trimtab.systems.rest.reconciling.sources import ObjectSources
from trimtab.systems.rest.reconciling.subject import FINALIZER, Subject, written
from trimtab.systems.rest.reconciling.telling import Word
from trimtab.systems.rest.state import Operation, Pending, Status, Sync
from trimtab.systems.rest.syncing import secrets

Body = dict[str, Any]

MOST_SAVES = 5
SOON = 0.05


class Halt(Exception):  # noqa: N818 - it reads as what happened
    """The turn ends here, with these conditions; and another one follows in so many seconds."""

    def __init__(self, words: Iterable[Word], after: float | None = None) -> None:
        self.words = tuple(words)
        self.after = after
        super().__init__(self.words[0].message if self.words else "")


class Session:
    """Of one object, for one turn."""

    caller: Caller

    def __init__(self, place: Place, subject: Subject, wake: Callable[[Key], None]) -> None:
        self.place, self.model, self.subject = place, place.model, subject
        self.status: Status = subject.status
        self.key = Key(subject.namespace, subject.raw.name)
        self.values: dict[str, str] = {}
        self.looked_at = 0.0
        self.sealed: Body = {}
        """What the spec wants, with digests for secrets; once it is rendered."""
        self.seen: Live | None = None
        """What was read of the resource in this turn already: the first look is answered with it."""
        self.wake = wake
        self.sources = ObjectSources(place, subject, self.key, wake)
        self._obj: Any = subject.raw

    async def open(self) -> None:
        """Whom to ask, and with which parameters. Raises Halt while the parent is not there, CallError."""
        self.values = await self._parameters()
        caller = await self.place.connections.caller(self.place.service, self.subject.namespace)
        self.caller = Hooked(caller, self) if self.place.hooks.has("modify_request") else caller

    @property
    def as_now(self) -> Subject:
        """The object with the status as it has become."""
        return msgspec.structs.replace(self.subject, status=self.status)

    # --- who it is ---------------------------------------------------------------------------------------------------

    @property
    def identifier(self) -> str:
        """The ID that is known, or follows from the spec; "" while the server is yet to choose it."""
        known = self._known_id
        if known or self.model.identity.server:
            return known
        return resource_id(self.model, self.values)

    @property
    def _known_id(self) -> str:
        """What was made is known by the status; until then someone may have said which one it is."""
        given = self.subject.control.resource_id
        return self.status.resource_id or given if self.status.sync.created else given or self.status.resource_id

    async def _parameters(self) -> dict[str, str]:
        values = {**self.place.service.spec.parameters, **self.subject.control.parameters}
        own = self.model.identity.parameter
        if own and not self.model.identity.server:
            values[own] = self.subject.name
        known = self._known_id
        if known:
            return values | (parsed(self.model, known) or {})
        above = await self._parent_id()
        return values | _inherited(self.model.calls.create.path, above) if above else values

    async def _parent_id(self) -> str:
        parent = self.subject.control.parent
        if parent is UNSET:
            return ""
        if parent.resource_id:
            return str(parent.resource_id)
        name = parent.name or ""
        found = await self.sources.resource_id(self.model.parent, name, "")
        if found is None:
            why = f"the {self.model.parent} {name!r} is not there, or does not exist at the service yet"
            words = (*telling.waiting("ParentNotReady", why), Word(telling.REFERENCES, False, "ParentNotReady", why))
            raise Halt(words, after=60.0)
        return found

    @property
    def context(self) -> HookContext:
        return HookContext(
            model=self.model,
            object=self.subject.raw,
            caller=getattr(self, "caller", None),
            resource_id=self.status.resource_id,
        )

    async def check(self, point: str, *arguments: Any) -> None:
        """Ask the hooks of a check. Raises Halt."""

        async def own(*_: Any) -> Verdict:
            return Verdict()

        verdict: Verdict = await self.place.hooks.run(point, self.context, own, *arguments)
        if not verdict.proceed:
            raise Halt(telling.waiting(verdict.reason or "Blocked", verdict.message), after=verdict.retry_after or 60.0)

    # --- the service -------------------------------------------------------------------------------------------------

    async def look(self) -> Live | None:
        """What is there now, at the ID that is known."""
        seen, self.seen = self.seen, None
        found = seen or await self.place.looks.one(self.caller, self.identifier, self.values)
        self.looked_at = self.place.clock.monotonic()
        return None if found is None or isinstance(found, Unchanged) else await self.normalized(found)

    async def normalized(self, live: Live) -> Live:
        if not self.place.hooks.has("normalize_live"):
            return live

        async def own(body: Body) -> Body:
            return body

        body = await self.place.hooks.run("normalize_live", self.context, own, live.body)
        return msgspec.structs.replace(live, body=body)

    async def send(
        self, verb: str, call: Call, url: str, body: Any = None, headers: Mapping[str, str] | None = None, key: str = ""
    ) -> Answer:
        request = Request(
            verb=verb,
            method=call.method,
            url=url,
            body=body,
            content_type=call.content_type,
            headers=headers or {},
            envelope=self.model.overlay.envelope,
            wrap=self.model.overlay.wrap,
            rules=self.model.overlay.errors,
            idempotency_key=key,
            secrets=self.sources.revealed,
        )
        return await self.caller.call(request)

    async def poll(self, operation: Operation) -> Operation | operations.Done | operations.Failed:
        """One look at an operation. What it says is kept: where to look next may have changed."""

        async def own(followed: Operation) -> Any:
            await self.sources.reveal()
            return await operations.poll(
                self.caller,
                self.model,
                followed,
                resource=self._own_url(),
                secrets=self.sources.revealed,
                now=self.place.clock.now(),
                chance=self.place.chance,
            )

        outcome: Operation | operations.Done | operations.Failed
        outcome = await self.place.hooks.run("poll", self.context, own, operation)
        if isinstance(outcome, Operation):
            self.remember(operation=outcome)
        return outcome

    def _own_url(self) -> str:
        read = self.model.calls.read
        return url_of(self.model, read, self.identifier, self.values) if read is not None and self.identifier else ""

    # --- the object --------------------------------------------------------------------------------------------------

    @property
    def hidden(self) -> tuple[str, ...]:
        """The secrets that were read for this object: nothing that repeats them may be shown."""
        return tuple(value.reveal() for value in self.sources.revealed)

    def remember(self, **changes: Any) -> Sync:
        """Change the memory; it is written with the next save."""
        sync = msgspec.structs.replace(self.status.sync, **changes)
        self.status = msgspec.structs.replace(self.status, sync=sync)
        return sync

    def known_as(self, identifier: str) -> None:
        self.status = msgspec.structs.replace(self.status, resource_id=identifier)

    def pending(self, verb: str, method: str, body: Any, earlier: Pending | None = None) -> Pending:
        sealed = secrets.sealed(self.model, body, self.place.key) if isinstance(body, dict) else body
        return Pending(
            verb=verb,
            method=method,
            digest=hashlib.sha256(memory.text(sealed).encode()).hexdigest(),
            started=format_time(self.place.clock.now()),
            key=earlier.key if earlier is not None and earlier.key else str(uuid.uuid4()),
        )

    @property
    def is_claimed(self) -> bool:
        return FINALIZER in (self._obj.metadata.finalizers or ())

    async def claim(self) -> None:
        """Our finalizer, and the parent as an owner, are on the object before anything is written to the service."""
        metadata = self._obj.metadata
        held = tuple(metadata.owner_references or ())
        owners = held
        parent = self.subject.control.parent
        if parent is not UNSET and parent.name and self.model.parent:
            kind = Named(f"{self.model.group}/{self.model.version}", self.model.parent)
            owner = await self.place.client.find(kind, parent.name, self.subject.namespace)
            if owner is not None and not any(known.uid == owner.metadata.uid for known in held):
                owners = (*held, owner_reference(owner, controller=False))
        if self.is_claimed and owners == held:
            return
        finalizers = tuple(dict.fromkeys((*(metadata.finalizers or ()), FINALIZER)))
        changed = with_metadata(self._obj, finalizers=finalizers, owner_references=owners)
        self._obj = await self.place.client.patch(self._obj, changed)

    async def release(self) -> None:
        """We hold nothing for the object any more; one that is being deleted may go."""
        for attempt in range(MOST_SAVES):
            if not self.is_claimed:
                return
            kept = tuple(name for name in self._obj.metadata.finalizers or () if name != FINALIZER)
            try:
                self._obj = await self.place.client.patch(self._obj, with_metadata(self._obj, finalizers=kept))
                return
            except StatusError as error:
                if error.code == 404:
                    return
                if error.code != 409 or attempt == MOST_SAVES - 1:
                    raise
            await self._read_again()

    async def save(self, words: Iterable[Word] = (), *, must: bool = False) -> None:
        """Write the status."""
        self.status = telling.told(self.status, self.place.clock, self.subject.generation, words)
        for attempt in range(MOST_SAVES):
            try:
                self._obj = await write_status(self.place.client, self._obj, written(self.status))
                return
            except StatusError as error:
                if error.code == 404 and self.subject.deleting:
                    return
                if error.code != 409 or not must or attempt == MOST_SAVES - 1:
                    raise
            await self._read_again()

    async def _read_again(self) -> None:
        """The object changed since we saw it. What we are about to write holds all the same."""
        kind = Named(self._obj.api_version, self._obj.kind)
        self._obj = await uncached(self.place.client).get(kind, self._obj.name, self._obj.namespace)

    async def follow(self, operation: Operation) -> None:
        """An operation has begun: nothing else is done until it ends."""
        self.remember(operation=operation, pending=None)
        reason = {"create": "Creating", "delete": "Deleting"}.get(operation.verb, "Updating")
        await self.save(telling.progressing(reason, telling.progress(operation)), must=True)

    @property
    def object(self) -> Any:
        """At the revision that was last seen."""
        return self._obj

    def event(self, reason: str, message: str) -> None:
        self.place.events.normal(self._obj, reason, message)

    def measured(self, verb: str, *reasons: str) -> None:
        """A write was sent."""
        self.place.measures.wrote(self.model.service, self.model.kind, verb, reasons)

    def later(self) -> Result | None:
        """When an operation says to look again. Else the controller knows."""
        operation = self.status.sync.operation
        if operation is None or not operation.next_poll:
            return None
        wait = (parse_time(operation.next_poll) - self.place.clock.now()).total_seconds()
        return Result(requeue_after=max(SOON, wait))


class Hooked:
    """A caller whose every request goes through the hooks first."""

    def __init__(self, caller: Caller, session: Session) -> None:
        self.endpoint, self.connection = caller.endpoint, caller.connection
        self._caller, self._session = caller, session

    async def call(self, request: Request) -> Answer:
        async def own(made: Request) -> Request:
            return made

        hooks = self._session.place.hooks
        return await self._caller.call(await hooks.run("modify_request", self._session.context, own, request))


def _inherited(path: str, parent: str) -> dict[str, str]:
    """The parameters that the parent's ID gives."""
    return matched(above(path, parent), parent) or {}
