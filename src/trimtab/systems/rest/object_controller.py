"""The controller of one generated kind. There is one for each RestDefinition that is ready; the definitions' controller
starts and ends them.

A turn (`reconciling`) does the work. This decides whether there is any: an object that is as its spec says is left alone
until it changes, what it refers to changes, someone tells of a change at the service, or it is time to look.

Guarantees: a reason for a turn is dropped only when the turn succeeded. Reasons that come while no controller runs are
found by what the status remembers: the spec's generation, what references led to, and the last word of a change. Whatever
a turn raises is in the conditions.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from contextlib import suppress

import msgspec
from msgspec import UNSET

from trimtab.client.protocol import Named, Query
from trimtab.client.transport import FAILURES
from trimtab.model.conditions import Condition
from trimtab.model.errors import StatusError
from trimtab.model.kubernetes import Secret
from trimtab.model.scheme import Untyped
from trimtab.runtime.changes import Change, Request
from trimtab.runtime.controller import Controller, Result, Watch
from trimtab.runtime.index import Index
from trimtab.runtime.status import write_status
from trimtab.systems.rest.addressing import AddressError
from trimtab.systems.rest.calling.contract import CallError
from trimtab.systems.rest.hooks import HookFailed
from trimtab.systems.rest.reconciling import memory, telling
from trimtab.systems.rest.reconciling.board import Wanted
from trimtab.systems.rest.reconciling.converging import converge
from trimtab.systems.rest.reconciling.deleting import delete
from trimtab.systems.rest.reconciling.due import Known, is_idle, join_slot, slot
from trimtab.systems.rest.reconciling.exporting import exported
from trimtab.systems.rest.reconciling.failing import failed
from trimtab.systems.rest.reconciling.joining import joined
from trimtab.systems.rest.reconciling.looking import Live, Unchanged
from trimtab.systems.rest.reconciling.pausing import hold_while_paused, observe_only
from trimtab.systems.rest.reconciling.place import Place
from trimtab.systems.rest.reconciling.referring import MISSING, SECRETS, hidden, led_to, secrets_of
from trimtab.systems.rest.reconciling.rivals import IDENTIFIERS, identifiers_of
from trimtab.systems.rest.reconciling.session import Halt, Session
from trimtab.systems.rest.reconciling.subject import WAKE, Misfit, read, written
from trimtab.systems.rest.rendering import Unresolved
from trimtab.systems.rest.state import Status
from trimtab.systems.rest.syncing import secrets

AGAIN = 600.0
"""Seconds after which what waits for someone is looked at again."""
SPREAD = 3.0
"""Seconds over which siblings come that are due together."""


class ObjectController(Controller[Untyped]):
    echo = False
    concurrency = 16
    indexes = (Index(SECRETS, lambda obj: secrets_of(obj)), Index(IDENTIFIERS, lambda obj: identifiers_of(obj)))

    def __init__(self, api_version: str, kind: str, plural: str, query: Query = Query()) -> None:  # noqa: B008 - frozen
        self.kind = Named(api_version, kind)
        self.name = f"{plural}.{api_version.partition('/')[0]}"
        self.query = query
        secrets_changed = Watch(kind=Secret, to=self._secret_changed, query=Query(namespace=query.namespace))
        self.watches = (secrets_changed,)  # type: ignore[misc] # it maps to objects of this kind alone
        self.place: Place | None = None
        """Set, and set anew when the definition or its service changes."""
        self._woken: dict[Request, int] = {}
        """Who must be looked at whatever its status says, with the number of the reason, for a later one may come."""
        self._reasons = itertools.count(1)
        self._known: dict[Request, Known] = {}

    async def reconcile(self, request: Request) -> Result | None:
        place = self.place
        obj = await self.client.find(self.kind, request.name, request.namespace)
        if obj is None or place is None:
            if place is not None:
                place.board.tell(Wanted(place.model.kind, request.namespace, request.name))
            self._forget(request)
            return None
        try:
            subject = read(place.model, obj)
        except Misfit as error:
            await self._say_misfit(obj, str(error))
            return None
        place.board.leave(self.wake, request)
        known = self._known.setdefault(request, Known())
        session = Session(place, subject, self.wake)
        try:
            return await self._attempt(session, known)
        except Exception as error:
            if not _is_passing(error):
                with suppress(*FAILURES, Misfit):  # what went wrong first is what counts
                    await self._say_internal(session, error)
            raise

    async def _attempt(self, session: Session, known: Known) -> Result | None:
        """A turn, and what the conditions say of one that ended early."""
        place, subject = session.place, session.subject
        reason = self._woken.get(session.key)
        try:
            if subject.deleting:
                place.looks.left(subject.status.resource_id)
                hold_while_paused(session)
                return await delete(session)
            asked = await self._turn(session, known)
            if self._woken.get(session.key) == reason:
                self._woken.pop(session.key, None)
            return asked
        except Halt as halt:
            await session.save(halt.words)
            return Result(requeue_after=halt.after or AGAIN)
        except Unresolved as error:
            words = telling.waiting("ReferencesMissing", str(error))
            await session.save((*words, telling.Word(telling.REFERENCES, False, "ReferencesMissing", str(error))))
            return Result(requeue_after=60.0)
        except AddressError as error:
            where = f"spec.parameters, or for all objects spec.parameters of the RestService {place.service.name}"
            await session.save(telling.stalled("InvalidSpec", f"{error}: give it in {where}"))
            return Result(requeue_after=AGAIN)
        except HookFailed as error:
            self.log.exception("a hook failed", object=str(session.key))
            await session.save(telling.stalled("HookFailed", str(error)), must=True)
            return Result(requeue_after=AGAIN)
        except CallError as error:
            known.attempts += 1
            return await failed(session, error, known.attempts - 1)

    async def _turn(self, session: Session, known: Known) -> Result | None:
        subject = session.subject
        self._count(session)
        references = await led_to(session)
        told = subject.annotations.get(WAKE, "")
        is_news = session.key in self._woken or known.has_changed
        is_news = is_news or (references, told) != (subject.sync.references, subject.sync.woken)
        asked: Result | None = None
        if subject.control.policy.paused:
            await observe_only(session, is_shown=references != MISSING)
        elif is_idle(session) and not is_news:
            asked = await self._refresh(session, known)
        else:
            began = session.place.clock.now()
            session.remember(references=references, woken=told)
            asked = await converge(session)
            await session.save()
            known.listed = ""
            known.slot = slot(session, began)[0]  # of when it was read: later changes are news
            known.joins = {join.name: join_slot(session, join, began)[0] for join in session.model.joins}
        known.attempts, known.has_changed = 0, False
        self._tell(session, known)
        return asked if asked is not None else self._next(session)

    async def _say_internal(self, session: Session, error: Exception) -> None:
        """What the turn had in mind is dropped, as by a crash: what is in the status is safe to go on from."""
        session.status = read(session.model, session.object).status
        await session.save(telling.unknown(session.status, "InternalError", _told(error)), must=True)

    async def _say_misfit(self, obj: Untyped, why: str) -> None:
        """All else of the status stays: it is the memory of what was done."""
        before = obj.raw.get("status") or {}
        conditions = msgspec.convert(before.get("conditions") or (), tuple[Condition, ...])
        status = Status(conditions=conditions)
        told = telling.told(status, self.clock, obj.metadata.generation or 0, telling.stalled("InvalidSpec", why))
        await write_status(self.client, obj, {**before, **written(told)})

    # --- looking -----------------------------------------------------------------------------------------------------

    async def _refresh(self, session: Session, known: Known) -> Result | None:
        """When it is time: look whether anything changed, as cheaply as can be; a turn follows only when it did."""
        now, _ = slot(session)
        if known.slot is None:
            known.slot = now  # after a start nobody is due: else all were at once
        if known.slot != now:
            await session.open()
            known.has_changed = await self._has_changed(session, known, now)
            known.slot = now
            if known.has_changed:
                return await converge(session)
            await self._export_anew(session)
        due = known.due(session)
        if due:
            if not session.values:
                await session.open()
            await session.save(await joined(session, Live(body=session.status.observed or {}), due))
        return None

    async def _export_anew(self, session: Session) -> None:
        """What a call gives (listKeys) may be another although the resource is the same."""
        if not any(export.call is not None for export in session.model.exports):
            return
        needs_body = session.place.hooks.has("export") or any(export.call is None for export in session.model.exports)
        live = await session.look() if needs_body else Live(body={})
        if live is not None:
            await exported(session, live)
            await session.save()

    async def _has_changed(self, session: Session, known: Known, now: int) -> bool:
        looks, identifier = session.place.looks, session.identifier
        collection = looks.collection(identifier, session.values)
        found: Live | Unchanged | None = Unchanged()
        if collection and looks.count(collection) >= session.model.batch:
            found = await looks.among(session.caller, identifier, session.values, now)
            if isinstance(found, Live):
                return self._is_news(session, known, found)
        if isinstance(found, Unchanged):
            found = await looks.one(session.caller, identifier, session.values, session.status.sync.etag)
            session.seen = found if isinstance(found, Live) else None  # the turn that follows need not read it again
        return not isinstance(found, Unchanged)

    def _is_news(self, session: Session, known: Known, found: Live) -> bool:
        """Whether a list says something that it did not say before. What it said first is held against the status."""
        if known.listed == found.digest:
            return False
        first, known.listed = not known.listed, found.digest
        if not first:
            return True
        seen, _ = secrets.observed(session.model, found.body, secrets=hidden(session))
        return bool(memory.without_nulls(seen) != session.status.observed)

    def _count(self, session: Session) -> None:
        """Siblings that are known are read by one list."""
        looks, identifier = session.place.looks, session.status.resource_id
        if identifier and session.status.sync.created:
            looks.joined(looks.collection(identifier, session.place.service.spec.parameters), identifier)

    def _next(self, session: Session) -> Result | None:
        """When to come again without a reason."""
        if session.status.sync.operation is not None and not session.subject.control.policy.paused:
            return session.later()
        waits = [join_slot(session, join)[1] for join in session.model.joins]
        waits.append(slot(session)[1])
        soonest = min(waits)
        if soonest == float("inf"):
            return None
        return Result(requeue_after=max(0.05, soonest) + session.place.chance.uniform(0.0, min(SPREAD, soonest / 10)))

    # --- who else must know ------------------------------------------------------------------------------------------

    def _tell(self, session: Session, known: Known) -> None:
        """Those who wait for our ID may go on, or take the new one."""
        identifier = session.status.resource_id
        if identifier and session.status.sync.created and known.told != identifier:
            known.told = identifier
            session.place.board.tell(Wanted(session.model.kind, session.subject.namespace, session.subject.raw.name))

    def _secret_changed(self, change: Change) -> Iterable[Request]:
        if change.initial:
            return ()
        secret = f"{change.request.namespace}/{change.request.name}"
        found = [request for request, known in self._known.items() if known.attempts and self._logs_in(request, change)]
        for informer in change.informers.of(self.kind):
            if informer.cache.has_index(SECRETS):
                found += list(informer.cache.indexed(SECRETS, secret))
        for request in found:
            self._woken[request] = next(self._reasons)
        return found

    def _logs_in(self, request: Request, change: Change) -> bool:
        """Whether the Secret that changed is the credential by which an object's service is asked."""
        ref = self.place.service.spec.credentials.secret_ref if self.place is not None else UNSET
        if ref is UNSET or ref.name != change.request.name:
            return False
        return (ref.namespace or request.namespace) == change.request.namespace

    def wake_all(self) -> None:
        """The definition or the service changed: every object is looked at anew."""
        for request in self._known:
            self._woken[request] = next(self._reasons)
            self.wake(request)

    def _forget(self, request: Request) -> None:
        self._known.pop(request, None)
        self._woken.pop(request, None)
        if self.place is not None:
            self.place.board.leave(self.wake, request)


def _is_passing(error: Exception) -> bool:
    """Whether the API server is away or another write was first: the next turn knows better."""
    if isinstance(error, StatusError):
        return error.code in (404, 409, 429) or error.code >= 500
    return isinstance(error, FAILURES)


def _told(error: Exception) -> str:
    """In our own words: the text of an unexpected error may quote anything."""
    if isinstance(error, StatusError):
        return f"the API server answered {error.code} {error.reason}: see the log of the controllers"
    return f"{type(error).__name__}: see the log of the controllers"
