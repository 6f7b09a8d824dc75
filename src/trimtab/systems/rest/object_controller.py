"""The controller of one generated kind. There is one for each RestDefinition that is ready; the definitions' controller
starts and ends them.

A turn (`reconciling`) does the work. This decides whether there is any: an object that is as its spec says is left alone
until it changes, a Secret that it refers to changes, someone tells of a change at the service, or it is time to look.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any

import msgspec
from msgspec import UNSET

from trimtab.client.protocol import Named, Query
from trimtab.model.conditions import Condition, get_condition
from trimtab.model.duration import Period
from trimtab.model.kubernetes import Secret
from trimtab.model.scheme import Untyped
from trimtab.runtime.changes import Change, Request
from trimtab.runtime.controller import Controller, Result, Watch
from trimtab.runtime.index import Index
from trimtab.runtime.status import write_status
from trimtab.systems.rest.addressing import AddressError
from trimtab.systems.rest.calling.contract import CallError
from trimtab.systems.rest.hooks import HookFailed
from trimtab.systems.rest.model import Join
from trimtab.systems.rest.reconciling import memory, telling
from trimtab.systems.rest.reconciling.board import Wanted
from trimtab.systems.rest.reconciling.converging import converge
from trimtab.systems.rest.reconciling.deleting import delete
from trimtab.systems.rest.reconciling.failing import failed
from trimtab.systems.rest.reconciling.joining import joined
from trimtab.systems.rest.reconciling.looking import Live, Unchanged, slot_of
from trimtab.systems.rest.reconciling.place import Place
from trimtab.systems.rest.reconciling.rivals import IDENTIFIERS, identifiers_of
from trimtab.systems.rest.reconciling.session import Halt, Session
from trimtab.systems.rest.reconciling.subject import WAKE, Misfit, read, written
from trimtab.systems.rest.rendering import Unresolved
from trimtab.systems.rest.state import Status
from trimtab.systems.rest.syncing import secrets

SECRETS = "rest-secrets"
AGAIN = 600.0
"""Seconds after which what waits for someone is looked at again."""
SPREAD = 3.0
"""Seconds over which siblings come that are due together."""


class ObjectController(Controller[Untyped]):
    echo = False
    concurrency = 16
    indexes = (Index(SECRETS, lambda obj: _secrets_of(obj)), Index(IDENTIFIERS, lambda obj: identifiers_of(obj)))

    def __init__(self, api_version: str, kind: str, plural: str, query: Query = Query()) -> None:  # noqa: B008 - frozen
        self.kind = Named(api_version, kind)
        self.name = f"{plural}.{api_version.partition('/')[0]}"
        self.query = query
        secrets_changed = Watch(kind=Secret, to=self._secret_changed, query=Query(namespace=query.namespace))
        self.watches = (secrets_changed,)  # type: ignore[misc] # it maps to objects of this kind alone
        self.place: Place | None = None
        """Set, and set anew when the definition or its service changes."""
        self._woken: set[Request] = set()
        self._known: dict[Request, _Known] = {}

    async def reconcile(self, request: Request) -> Result | None:
        place = self.place
        obj = await self.client.find(self.kind, request.name, request.namespace)
        if obj is None or place is None:
            if place is not None:
                place.board.tell(Wanted(place.model.kind, request.namespace, request.name))
            self._forget(request)
            return None
        woken = request in self._woken
        self._woken.discard(request)
        try:
            subject = read(place.model, obj)
        except Misfit as error:
            await self._say_misfit(obj, str(error))
            return None
        known = self._known.setdefault(request, _Known(wake=subject.annotations.get(WAKE, "")))
        session = Session(place, subject, self.wake)
        try:
            if subject.deleting:
                place.looks.left(subject.status.resource_id)
                return await delete(session)
            return await self._turn(session, known, woken)
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
            self.log.exception("a hook failed", object=str(request))
            await session.save(telling.stalled("HookFailed", str(error)), must=True)
            return Result(requeue_after=AGAIN)
        except CallError as error:
            known.attempts += 1
            return await failed(session, error, known.attempts - 1)

    async def _turn(self, session: Session, known: _Known, woken: bool) -> Result | None:
        subject = session.subject
        self._count(session)
        told = subject.annotations.get(WAKE, "")
        woken = woken or told != known.wake
        asked: Result | None = None
        if is_idle(session) and not woken:
            asked = await self._refresh(session, known)
        elif subject.control.policy.paused:
            await self._observe_only(session)
        else:
            began = session.place.clock.now()
            asked = await converge(session)
            known.wake, known.listed = told, ""
            known.slot = self._slot(session, began)[0]  # of when it was read: later changes are news
            known.joins = {join.name: _join_slot(session, join, began)[0] for join in session.model.joins}
        known.attempts = 0
        self._tell(session)
        return asked if asked is not None else self._next(session)

    async def _say_misfit(self, obj: Untyped, why: str) -> None:
        """All else of the status stays: it is the memory of what was done."""
        before = obj.raw.get("status") or {}
        conditions = msgspec.convert(before.get("conditions") or (), tuple[Condition, ...])
        status = Status(conditions=conditions)
        told = telling.told(status, self.clock, obj.metadata.generation or 0, telling.stalled("InvalidSpec", why))
        await write_status(self.client, obj, {**before, **written(told)})

    # --- looking -----------------------------------------------------------------------------------------------------

    async def _refresh(self, session: Session, known: _Known) -> Result | None:
        """When it is time: look whether anything changed, as cheaply as can be; a turn follows only when it did."""
        slot, _ = self._slot(session)
        if known.slot is None:
            known.slot = slot  # after a start nobody is due: else all were at once
        if known.slot != slot:
            await session.open()
            changed = await self._has_changed(session, known, slot)
            known.slot = slot
            if changed:
                return await converge(session)
        due = known.due(session)
        if due:
            if not session.values:
                await session.open()
            await session.save(await joined(session, Live(body=session.status.observed or {}), due))
        return None

    async def _has_changed(self, session: Session, known: _Known, slot: int) -> bool:
        looks, identifier = session.place.looks, session.identifier
        collection = looks.collection(identifier, session.values)
        found: Live | Unchanged | None = Unchanged()
        if collection and looks.count(collection) >= session.model.batch:
            found = await looks.among(session.caller, identifier, session.values, slot)
            if isinstance(found, Live):
                return self._is_news(session, known, found)
        if isinstance(found, Unchanged):
            found = await looks.one(session.caller, identifier, session.values, session.status.sync.etag)
        return not isinstance(found, Unchanged)

    def _is_news(self, session: Session, known: _Known, found: Live) -> bool:
        """Whether a list says something that it did not say before. What it said first is held against the status."""
        if known.listed == found.digest:
            return False
        first, known.listed = not known.listed, found.digest
        if not first:
            return True
        seen, _ = secrets.observed(session.model, found.body)
        return bool(memory.without_nulls(seen) != session.status.observed)

    def _count(self, session: Session) -> None:
        """Siblings that are known are read by one list."""
        looks, identifier = session.place.looks, session.status.resource_id
        if identifier and session.status.sync.created:
            looks.joined(looks.collection(identifier, session.place.service.spec.parameters), identifier)

    def _slot(self, session: Session, at: datetime | None = None) -> tuple[int, float]:
        """In which of its intervals an object is, and the seconds until the next. One that is never looked at is always
        in the same."""
        interval = interval_of(session)
        if interval is None:
            return 0, float("inf")
        identifier = session.status.resource_id
        collection = identifier.rpartition("/")[0] if session.model.calls.list is not None else identifier
        return slot_of(at or session.place.clock.now(), interval, collection)

    def _next(self, session: Session) -> Result | None:
        """When to come again without a reason."""
        if session.status.sync.operation is not None:
            return session.later()
        waits = [_join_slot(session, join)[1] for join in session.model.joins]
        waits.append(self._slot(session)[1])
        soonest = min(waits)
        if soonest == float("inf"):
            return None
        return Result(requeue_after=max(0.05, soonest) + session.place.chance.uniform(0.0, min(SPREAD, soonest / 10)))

    async def _observe_only(self, session: Session) -> None:
        """Paused: the status tells what is there, and nothing is written to the service."""
        await session.open()
        live = await session.look() if session.identifier else None
        if live is not None:
            seen, _ = secrets.observed(session.model, live.body)
            session.status = msgspec.structs.replace(session.status, observed=memory.without_nulls(seen))
        why = "spec.policy.paused is true: nothing is written"
        await session.save((telling.Word(telling.SYNCED, None, "Paused", why),))

    # --- who else must know ------------------------------------------------------------------------------------------

    def _tell(self, session: Session) -> None:
        """Those who wait for our ID may go on."""
        if session.status.resource_id and session.status.sync.created:
            session.place.board.tell(Wanted(session.model.kind, session.subject.namespace, session.subject.raw.name))

    def _secret_changed(self, change: Change) -> Iterable[Request]:
        if change.initial:
            return ()
        secret = f"{change.request.namespace}/{change.request.name}"
        found = [request for request, known in self._known.items() if known.attempts and self._logs_in(request, change)]
        for informer in change.informers.of(self.kind):
            if informer.cache.has_index(SECRETS):
                found += list(informer.cache.indexed(SECRETS, secret))
        self._woken.update(found)
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
            self._woken.add(request)
            self.wake(request)

    def _forget(self, request: Request) -> None:
        self._known.pop(request, None)
        self._woken.discard(request)


class _Known:
    """What is in memory of an object. To lose it costs nothing but a look."""

    __slots__ = ("attempts", "joins", "listed", "slot", "wake")

    def __init__(self, wake: str) -> None:
        self.wake = wake
        self.slot: int | None = None
        self.listed = ""  # digest of what a list last said
        self.joins: dict[str, int] = {}  # the interval in which each was last asked
        self.attempts = 0

    def due(self, session: Session) -> set[str]:
        """The joins whose time has come; after a start none is."""
        now = {join.name: _join_slot(session, join)[0] for join in session.model.joins}
        found = {name for name, slot in now.items() if self.joins.setdefault(name, slot) != slot}
        self.joins = now
        return found


def is_idle(session: Session) -> bool:
    """Whether nothing is known that had to be done."""
    subject, sync = session.subject, session.subject.sync
    ready = get_condition(subject.status.conditions, telling.READY)
    return (
        bool(sync.last_applied)
        and sync.pending is None
        and sync.operation is None
        and not sync.applying
        and not sync.recreating
        and not sync.removals
        and sync.model == session.place.digest
        and subject.status.observed_generation == subject.generation
        and ready is not None
        and ready.status == "True"
        and not subject.control.policy.paused
    )


def interval_of(session: Session) -> float | None:
    """Seconds between two looks: the object's own wish, else the kind's; None is never."""
    own = session.subject.control.policy.refresh
    if own is UNSET:
        return session.model.refresh
    return None if own == "never" else Period(own).seconds


def _join_slot(session: Session, join: Join, at: datetime | None = None) -> tuple[int, float]:
    return slot_of(at or session.place.clock.now(), join.interval, f"{session.status.resource_id} {join.name}")


def _secrets_of(obj: Untyped) -> Iterator[str]:
    namespace = obj.namespace
    for name in _references(obj.raw.get("spec")):
        yield f"{namespace}/{name}"


def _references(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        found = value.get("secretRef")
        if isinstance(found, dict) and isinstance(found.get("name"), str):
            yield found["name"]
        for each in value.values():
            yield from _references(each)
    elif isinstance(value, list):
        for each in value:
            yield from _references(each)
