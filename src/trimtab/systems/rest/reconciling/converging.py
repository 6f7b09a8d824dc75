"""One turn: one object, one step nearer to its spec.

Flow: what does it want (its parent, its references, its secrets) → an operation that runs is polled once → what is there
is read → the case is decided (`cases`) → create, adopt, or compare three ways and write the difference → what was written
is read again and remembered.

Guarantees: nothing is written to the service before the object carries our finalizer and its status says what is about to
be sent. `last_applied` moves only when a write has settled. A crash between any two lines is safe: what is in the status
is either what was done, or what was about to be done, and the next turn looks before it acts. A POST is never repeated
while nobody knows what became of the first.

A turn ends by conditions that were saved, or by an exception that the controller turns into them.
"""

from __future__ import annotations

import contextlib
from typing import Any

from trimtab.model.clock import parse_time
from trimtab.runtime.controller import Result
from trimtab.systems.rest import validating
from trimtab.systems.rest.addressing import parsed
from trimtab.systems.rest.calling import states
from trimtab.systems.rest.calling.contract import CallError, ErrorClass
from trimtab.systems.rest.calling.operations import Failed
from trimtab.systems.rest.reconciling import memory, telling
from trimtab.systems.rest.reconciling.awaiting import appearing
from trimtab.systems.rest.reconciling.cases import Case, Situation, case, situation
from trimtab.systems.rest.reconciling.creating import create
from trimtab.systems.rest.reconciling.finding import extracted, find, is_told
from trimtab.systems.rest.reconciling.looking import Live
from trimtab.systems.rest.reconciling.rivals import refuse_rival
from trimtab.systems.rest.reconciling.session import Halt, Session
from trimtab.systems.rest.reconciling.settled import applied, settle, wait_for
from trimtab.systems.rest.reconciling.updating import adopt, compare
from trimtab.systems.rest.rendering import Unresolved, render
from trimtab.systems.rest.state import Operation, Pending
from trimtab.systems.rest.syncing import secrets
from trimtab.systems.rest.syncing.paths import parse, put

Body = dict[str, Any]

LARGEST = 256 << 10
"""Bytes of a body: what is applied is remembered in the status, which has to fit beside the spec."""


async def converge(session: Session) -> Result | None:
    """The object is as the spec says, or on its way. Raises Halt, CallError, Unresolved, StatusError."""
    _refuse_invalid(session)
    _refuse_moved(session)
    await session.open()
    operation = session.status.sync.operation
    if operation is not None and not await _ended(session, operation):
        return session.later()
    wanted = await _wanted(session)
    session.sealed = sealed = secrets.sealed(session.model, wanted, session.place.key)
    if len(memory.text(sealed)) > LARGEST:
        why = f"the spec takes more than {LARGEST >> 10} KiB, and what was applied could not be remembered: make it smaller"
        raise Halt(telling.stalled("SpecTooLarge", why))
    await session.check("pre_check")
    live = await _found(session, wanted)
    now = situation_of(session, wanted, exists=live is not None)
    decided = case(now)
    if decided is Case.CREATE:
        if now.created and not now.recreating and await _found(session, wanted) is not None:
            raise CallError(ErrorClass.CONFLICT, f"{session.identifier} was not there, and is there again")
        if session.identifier:
            await refuse_rival(session)
        return await create(session, wanted, sealed)
    if live is None or decided is Case.FOREIGN:
        raise _refusal(session, decided)
    session.remember(recreating="")  # what is there is compared anew: the change may have been taken back
    if not states.settled(live.body):
        return await wait_for(session, live)
    if decided is Case.CONFIRM:
        sent = memory.in_flight(session.status.sync) or sealed
        asked = await settle(session, live, sent, more=sent != sealed)
        if sent == sealed or asked is not None:
            return asked
    elif decided is not Case.COMPARE:
        await refuse_rival(session)
        await adopt(session, live, sealed, as_is=decided is Case.ADOPT)
    return await compare(session, live, wanted, sealed)


def _refuse_invalid(session: Session) -> None:
    """What admission would say, for those who got past it."""
    spec = session.subject.raw.raw.get("spec") or {}
    problems = validating.problems(
        session.model, spec, name=session.subject.raw.name, parameters=session.place.service.spec.parameters
    )
    if problems:
        said = "; ".join(f"{problem.path}: {problem.detail}" for problem in problems[:5])
        raise Halt(telling.stalled("InvalidSpec", said))


def _refuse_moved(session: Session) -> None:
    """Another name or parameter would be another resource: ours stays what it is, and someone must decide."""
    known, control = session.status.resource_id, session.subject.control
    if not known or control.resource_id or not session.status.sync.created:
        return
    said = dict(control.parameters)
    if session.model.identity.parameter and not session.model.identity.server:
        said[session.model.identity.parameter] = session.subject.name
    found = parsed(session.model, known) or {}
    moved = [name for name, value in said.items() if name in found and found[name].casefold() != value.casefold()]
    if moved:
        why = f"{', '.join(sorted(moved))} of the spec do not fit {known}: take the change back, or make another object"
        raise Halt(telling.stalled("ImmutableChanged", why))


async def _ended(session: Session, operation: Operation) -> bool:
    """Whether the operation has come to its end; then the turn goes on, and finds what else there is to do."""
    with contextlib.suppress(Unresolved):
        await _wanted(session)  # to know the secrets that no error may show
    outcome = await session.poll(operation)
    if isinstance(outcome, Operation):
        reason = _REASONS.get(operation.verb, "Updating")
        await session.save(telling.progressing(reason, telling.progress(outcome)))
        return False
    if isinstance(outcome, Failed):
        session.remember(operation=None, pending=_unconfirmed(session, operation) if outcome.error.uncertain else None)
        await session.save(must=True)
        raise outcome.error
    if not session.identifier and outcome.answer is not None:
        session.known_as(await extracted(session, outcome.answer))
    session.remember(operation=None)
    seconds = (session.place.clock.now() - parse_time(operation.started)).total_seconds()
    session.place.measures.operated(session.model.service, session.model.kind, operation.verb, seconds)
    if operation.verb == "delete":
        session.remember(last_applied="", known_differences={}, etag="")
        await session.save(must=True)
        return True
    if operation.verb == "wait":
        return True
    session.remember(pending=_unconfirmed(session, operation))
    live = await session.look() if session.identifier else None
    if live is None:
        return await _is_lost(session, operation)
    applied(session, live, memory.in_flight(session.status.sync) or {})
    return True


async def _is_lost(session: Session, operation: Operation) -> bool:
    """What a creation made is not shown: it has no ID yet, and must be found; or it needs another moment."""
    read = session.model.calls.read
    if not session.identifier or read is None or operation.verb != "create":
        return True
    now, generation = session.place.clock.now(), operation.generation
    await session.follow(appearing(session.model, read, verb="create", now=now, generation=generation))
    return False


def _unconfirmed(session: Session, operation: Operation) -> Pending | None:
    """A creation whose result has no ID yet can only be found, as one whose answer was lost."""
    if session.identifier or operation.verb != "create":
        return None
    return session.pending("create", operation.method, None)


async def _wanted(session: Session) -> Body:
    async def own(body: Body) -> Body:
        return await render(session.model, body, session.sources)

    wanted: Body = await session.place.hooks.run("default", session.context, own, session.subject.body)
    identity, upsert = session.model.identity, session.model.overlay.upsert
    if not identity.field or (identity.server and upsert):  # then it is the ID itself, which the server chooses
        return wanted
    named: Body = put(wanted, parse(identity.field), session.subject.name)
    return named


async def _found(session: Session, wanted: Body) -> Live | None:
    """By the ID; and where that leads nowhere and the server chooses IDs, by what tells ours from others."""
    live = await session.look() if session.identifier else None
    if live is not None or not session.model.identity.server:
        return live
    sync = session.status.sync
    is_lost = sync.pending is not None or (session.subject.claimed and not session.status.resource_id)
    may_take = session.subject.control.policy.adopt != "never" and not sync.created
    found = await find(session, wanted) if is_lost or may_take else ""
    if not found:
        return None
    session.known_as(found)
    return await session.look()


def situation_of(session: Session, wanted: Body, *, exists: bool) -> Situation:
    return situation(
        session.as_now,
        claimed=session.is_claimed,
        server=session.model.identity.server,
        exists=exists,
        findable=is_findable(session, wanted),
        now=session.place.clock.now(),
        grace=2 * session.place.service.spec.limits.timeout.seconds,
    )


def is_findable(session: Session, wanted: Body) -> bool:
    model = session.model
    if not model.identity.server or session.place.hooks.has("find_existing"):
        return True
    return bool(model.identity.find) and model.calls.list is not None and is_told(session, wanted)


def _refusal(session: Session, decided: Case) -> Halt:
    match decided:
        case Case.LOST:
            why = "someone deleted it, and spec.policy.missing says only to report that"
            return Halt(telling.stalled("Missing", why), after=300.0)
        case Case.NOT_THERE:
            why = f"spec.resourceID names {session.identifier}, which is not there"
            return Halt(telling.stalled("NotFound", why), after=300.0)
        case Case.FOREIGN:
            why = f"{session.identifier} exists and was not made by this object: {_ADOPT}"
            return Halt(telling.stalled("AlreadyExists", why), after=300.0)
        case Case.EARLY:
            why = "a write was sent and its answer was lost; it may still arrive, and is looked for"
            return Halt(telling.waiting("Confirming", why), after=10.0)
    return uncertain()


def uncertain() -> Halt:
    return Halt(telling.stalled("CreationUncertain", _UNCERTAIN))


_REASONS = {"create": "Creating", "delete": "Recreating", "wait": "Waiting"}
_ADOPT = "name it in spec.resourceID to take it as it is, or set spec.policy.adopt"
_UNCERTAIN = (
    "a creation was sent and its answer was lost, and this service gives no way to find what it made. Look there: set "
    "spec.resourceID to what you find, or remove status.sync.pending to create it once more"
)
