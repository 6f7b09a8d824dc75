"""Letting a resource go with its object: by the ID that is remembered. One is worked out from the spec only where we hold
the object and nothing is remembered.

Whatever goes wrong is tried again and shown: an object that does not go says why in its conditions.
"""

from __future__ import annotations

from trimtab.runtime.controller import Result
from trimtab.systems.rest.addressing import url_of
from trimtab.systems.rest.calling import operations
from trimtab.systems.rest.calling.contract import CallError, ErrorClass
from trimtab.systems.rest.reconciling import telling
from trimtab.systems.rest.reconciling.awaiting import vanishing
from trimtab.systems.rest.reconciling.children import wait_for_children
from trimtab.systems.rest.reconciling.converging import situation_of, uncertain
from trimtab.systems.rest.reconciling.finding import extracted, find
from trimtab.systems.rest.reconciling.session import Halt, Session
from trimtab.systems.rest.rendering import named
from trimtab.systems.rest.state import Operation


async def delete(session: Session) -> Result | None:
    """One step towards its end. Raises Halt, CallError."""
    if not session.is_claimed:
        return None  # others hold it
    policy = session.subject.control.policy
    if policy.deletion == "detach" or policy.mode != "manage":
        session.event("Detached", f"{session.status.resource_id or 'nothing'} is left as it is")
        await session.release()
        return None
    operation = session.status.sync.operation
    if operation is None:
        await wait_for_children(session)
    try:
        await session.open()
    except Halt:
        if _is_nothing(session):  # it has no parent any more, and was never made
            await session.release()
            return None
        raise
    if operation is not None and not await _ended(session, operation):
        return session.later()
    if not await _is_there(session):
        await session.release()
        return None
    return await _remove(session)


def _is_nothing(session: Session) -> bool:
    sync = session.status.sync
    return not (session.status.resource_id or sync.created or sync.pending or sync.operation)


async def _ended(session: Session, operation: Operation) -> bool:
    """Whether what goes on has come to its end. A creation too: what it makes must not be left behind."""
    outcome = await session.poll(operation)
    if isinstance(outcome, Operation):
        await session.save(telling.progressing("Deleting", telling.progress(outcome)))
        return False
    if isinstance(outcome, operations.Done) and outcome.answer is not None and not session.identifier:
        session.known_as(await extracted(session, outcome.answer))
    lost = operation.verb == "create" and not session.identifier
    session.remember(operation=None, pending=session.pending("create", operation.method, None) if lost else None)
    await session.save(must=True)
    if isinstance(outcome, operations.Failed) and operation.verb == "delete":
        raise outcome.error
    return True


async def _is_there(session: Session) -> bool:
    if not session.identifier:
        await _find_lost(session)
    if not session.identifier:
        return False
    session.known_as(session.identifier)  # worked out only where nothing is remembered of what we hold
    try:
        return await session.look() is not None
    except CallError as error:
        if error.kind is ErrorClass.TERMINAL and not session.status.sync.created:
            return False  # a name that the service refuses: nothing was ever made under it
        raise


async def _find_lost(session: Session) -> None:
    """A creation whose answer was lost, or an ID that was. Raises Halt while nobody can tell."""
    wanted = named(session.model, session.subject.body)
    now = situation_of(session, wanted, exists=False)
    if not now.creating and not now.forgotten:
        return
    if not now.findable:
        raise uncertain()
    session.known_as(await find(session, wanted))
    if not session.identifier and now.recent:
        raise Halt(telling.waiting("Confirming", "a creation was sent a moment ago, and may still arrive"), after=10.0)


async def _remove(session: Session) -> Result | None:
    call = session.model.calls.delete
    if call is None and not session.place.hooks.has("delete"):
        why = "this service deletes nothing of this kind: set spec.policy.deletion: detach to let the object go"
        raise Halt(telling.stalled("DeletionNotSupported", why))
    await session.save(telling.progressing("Deleting", f"DELETE {session.status.resource_id}"))

    async def own() -> Operation | None:
        assert call is not None  # noqa: S101 - asked above
        url = url_of(session.model, call, session.status.resource_id, session.values)
        try:
            answer = await session.send("delete", call, url)
        except CallError as error:
            if error.kind is ErrorClass.GONE:
                return None
            raise
        now, generation = session.place.clock.now(), session.subject.generation
        return operations.begin(session.model, call, answer, verb="delete", now=now, generation=generation)

    operation = await session.place.hooks.run("delete", session.context, own)
    session.event("Deleting", f"DELETE {session.status.resource_id}")
    session.measured("delete", "deleted")
    if operation is not None:
        await session.follow(operation)
        return session.later()
    if not await _is_there(session):
        await session.release()
        return None
    now, generation = session.place.clock.now(), session.subject.generation
    by = call or session.model.calls.create  # a hook's own way has no call of the document
    await session.follow(vanishing(session.model, by, now=now, generation=generation))
    return session.later()
