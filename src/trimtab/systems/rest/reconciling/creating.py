"""Making a resource: claimed and announced first, so that what is made can be found again whatever happens then."""

from __future__ import annotations

from typing import Any

from trimtab.runtime.controller import Result
from trimtab.systems.rest.addressing import fill, query_of, url_of
from trimtab.systems.rest.calling import operations
from trimtab.systems.rest.calling.contract import CallError, ErrorClass
from trimtab.systems.rest.model import Writer
from trimtab.systems.rest.reconciling import memory, telling
from trimtab.systems.rest.reconciling.awaiting import vanishing
from trimtab.systems.rest.reconciling.finding import extracted
from trimtab.systems.rest.reconciling.planning import planned
from trimtab.systems.rest.reconciling.session import SOON, Session
from trimtab.systems.rest.reconciling.settled import after_write
from trimtab.systems.rest.state import Change
from trimtab.systems.rest.syncing import stripping, writing

Body = dict[str, Any]


async def create(session: Session, wanted: Body, sealed: Body) -> Result | None:
    model, call = session.model, session.model.calls.create
    url = fill(model, call.path, session.values) + query_of(call, session.values)
    if session.subject.control.policy.mode != "manage":
        change = Change(path="", why="set", new=memory.without_nulls(sealed))
        return await planned(session, "create", call.method, url, [change])
    body = writing.create_body(model, wanted)
    earlier = session.status.sync.pending if session.is_claimed else None
    pending = session.pending("create", call.method, body, earlier)
    sent = stripping.taken(model, sealed, Writer.CREATE)  # the rest is for an update that follows
    session.remember(pending=pending, applying=memory.text(sent), last_applied="", known_differences={})
    session.known_as("" if model.identity.server else session.identifier)
    await session.save(telling.progressing("Creating", f"{call.method} {url}"))
    await session.claim()  # last: whoever holds an object by the finalizer has announced what was sent
    headers = {"If-None-Match": "*"} if call.conditional and call.method == "PUT" else {}
    try:
        answer = await session.send("create", call, url, body, headers, pending.key)
    except CallError as error:
        await _refused(session, error, is_first=earlier is None)
        raise
    if model.identity.server:
        session.known_as(await extracted(session, answer))
    session.remember(created=bool(session.identifier), recreating="")
    session.event("Created", f"{call.method} {url}")
    session.measured("create", "created")
    return await after_write(session, "create", call, answer)


async def _refused(session: Session, error: CallError, *, is_first: bool) -> None:
    """Nothing was made, so nothing is ours, whatever comes to be under this name: what exists and met our very first
    attempt, for one. A later attempt may have met what an earlier one made."""
    is_there = error.kind in (ErrorClass.EXISTS, ErrorClass.PRECONDITION)
    if error.uncertain or (is_there and not is_first):
        return
    session.remember(pending=None, applying="", created=False, recreating="")
    session.known_as("")
    await session.release()  # first: what is announced and not claimed counts as never sent
    await session.save(must=True)


async def recreate(session: Session, why: str) -> Result | None:
    """Delete it only to make it anew. That it is under way is remembered until the new one is there."""
    if session.subject.control.policy.mode != "manage":
        return await planned(session, "recreate", "DELETE", session.identifier, [Change(path="", why=why)])
    session.remember(recreating=why)
    await session.save(telling.progressing("Recreating", why))
    return await remove_to_recreate(session)


async def remove_to_recreate(session: Session) -> Result | None:
    call = session.model.calls.delete
    assert call is not None  # noqa: S101 - whoever decides to recreate has asked
    url = url_of(session.model, call, session.identifier, session.values)
    try:
        answer = await session.send("delete", call, url)
    except CallError as error:
        if error.kind is not ErrorClass.GONE:
            raise
    else:
        session.measured("delete", "recreated")
        session.event("Recreating", f"DELETE {url}: {session.status.sync.recreating}")
        operation = operations.begin(
            session.model,
            call,
            answer,
            verb="delete",
            now=session.place.clock.now(),
            generation=session.subject.generation,
        )
        if operation is None and await session.look() is not None:
            now, generation = session.place.clock.now(), session.subject.generation
            operation = vanishing(session.model, call, now=now, generation=generation)
        if operation is not None:
            await session.follow(operation)
            return session.later()
    session.remember(last_applied="", known_differences={}, etag="")  # not before it is gone
    await session.save(telling.progressing("Recreating", session.status.sync.recreating), must=True)
    return Result(requeue_after=SOON)
