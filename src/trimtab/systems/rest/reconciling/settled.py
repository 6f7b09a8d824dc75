"""After a write: follow its operation, or read what came of it and remember that as applied."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import UNSET

from trimtab.model.conditions import get_condition
from trimtab.runtime.controller import Result
from trimtab.systems.rest.calling import operations, states
from trimtab.systems.rest.calling.contract import Answer, CallError, ErrorClass
from trimtab.systems.rest.model import Call
from trimtab.systems.rest.reconciling import memory, telling
from trimtab.systems.rest.reconciling.awaiting import appearing
from trimtab.systems.rest.reconciling.exporting import exported
from trimtab.systems.rest.reconciling.joining import joined
from trimtab.systems.rest.reconciling.ladder import Climbed, climbed
from trimtab.systems.rest.reconciling.looking import Live
from trimtab.systems.rest.reconciling.session import SOON, Session
from trimtab.systems.rest.reconciling.telling import Word
from trimtab.systems.rest.state import Status
from trimtab.systems.rest.syncing import difference, secrets, settling

Body = dict[str, Any]


async def after_write(session: Session, verb: str, call: Call, answer: Answer) -> Result | None:
    now, generation = session.place.clock.now(), session.subject.generation
    operation = operations.begin(
        session.model, call, answer, verb=verb, now=now, generation=generation, secrets=session.sources.revealed
    )
    if operation is not None:
        await session.follow(operation)
        return session.later()
    if verb == "create" and session.model.identity.server:
        if not session.identifier:  # it is pending still, and looked for
            session.remember(created=False)
            why = f"{call.method} of {session.model.kind} succeeded, and its answer names no ID"
            raise CallError(ErrorClass.TRANSIENT, why, uncertain=True)
        await session.save(must=True)  # before anything else can fail: by its ID it is found again
    live = await session.look()
    if live is None and session.model.calls.read is None:
        raise CallError(ErrorClass.TRANSIENT, f"{session.model.kind} was written, and no list shows it yet")
    if live is None or not states.settled(live.body):  # some services need a moment until they show what they made
        waiting = appearing(session.model, call, verb=verb, now=now, generation=generation)
        await session.follow(waiting)
        return session.later()
    sent = memory.in_flight(session.status.sync) or {}
    asked = await settle(session, live, sent, more=sent != session.sealed)
    return asked or (Result(requeue_after=SOON) if sent != session.sealed else None)


async def wait_for(session: Session, live: Live) -> Result | None:
    """Someone else's operation goes on: what it shows now is no base to compare with or to build on."""
    call = session.model.calls.read or session.model.calls.create
    now, generation = session.place.clock.now(), session.subject.generation
    session.remember(operation=appearing(session.model, call, verb="wait", now=now, generation=generation))
    why = f"the service says that it is {states.provisioning_state(live.body)}"
    seen, _ = secrets.observed(session.model, live.body, secrets=session.hidden)
    session.status = msgspec.structs.replace(session.status, observed=memory.without_nulls(seen))
    await session.save(telling.progressing("Waiting", why))
    return session.later()


async def settle(session: Session, live: Live, sent: Body, *, more: bool = False) -> Result | None:
    """A write has come to its end. With `more` the spec wants something else by now, or a creation did not take all of
    it: it is not called ready."""
    rungs = applied(session, live, sent)
    if rungs.unfinished:
        why = f"not gone yet: {telling.named(rungs.unfinished)}"
        await session.save(telling.progressing("Removing", why), must=True)
        return Result(requeue_after=SOON)
    if more or _has_drifted(session, live):
        await session.save(telling.progressing("Updating", "there is more to write"), must=True)
        return None if more else Result(requeue_after=SOON)
    await session.check("post_check", live.body)
    await observe(session, live, Word(telling.DRIFTED, False, "AsApplied"), must=True)
    return None


def _has_drifted(session: Session, live: Live) -> bool:
    """Whether another hand changed something while we wrote: the next turn says what is to be done about it."""
    sync = session.status.sync
    body = memory.applied(sync) or {}
    found = difference.difference(session.model, desired=body, applied=body, live=live.body, known=memory.known(sync))
    return bool(found.drift)


def applied(session: Session, live: Live, sent: Body) -> Climbed:
    """Remember what was applied, and what the service made of it. Nothing is saved yet."""
    sync, place = session.status.sync, session.place
    previous = memory.applied(sync) or {}
    found = settling.settle(session.model, sent, live.body, previous=previous, earlier=memory.known(sync))
    verb = sync.pending.verb if sync.pending is not None else "update"
    rungs = climbed(session.model, sent, previous, found, {**place.removals, **sync.removals}, verb=verb)
    for lesson in rungs.lessons:
        place.learn(lesson.path, lesson.behaviour, lesson.evidence, session.key)
    sync = msgspec.structs.replace(
        memory.remembered(sync, rungs.applied, found.known, session.hidden),
        created=True,
        recreating="",
        pending=None,
        applying="",
        operation=None,
        removals=rungs.removals,
        etag=live.etag,
        model=place.digest,
    )
    session.status = msgspec.structs.replace(session.status, sync=sync, plan=UNSET)
    session.known_as(session.identifier)
    return rungs


async def observe(session: Session, live: Live, drifted: Word, *, must: bool = False) -> None:
    """All is well: say so, with what is there."""
    seen, is_cut = secrets.observed(session.model, live.body, secrets=session.hidden)
    session.status = msgspec.structs.replace(session.status, observed=memory.without_nulls(seen))
    message = "status.observed does not show all: the resource is too large" if is_cut else ""
    words = telling.settled(drifted, message)
    state = states.provisioning_state(live.body)
    if states.ended_badly(state):
        words += (Word(telling.READY, False, "ProvisioningFailed", _why(session.status, state)),)
    words += await joined(session, live)
    await exported(session, live)
    await session.save(words, must=must)


def _why(status: Status, state: str) -> str:
    """With what its operation said when that failed: the resource itself does not say it again."""
    now = f"the service says that it is {state}"
    before = get_condition(status.conditions, telling.READY)
    if before is None or before.status != "False":
        return now
    if before.reason == "ProvisioningFailed" and (before.message or "").startswith(now):
        return before.message or now
    return f"{now}: {before.message}" if before.reason == "Refused" and before.message else now
