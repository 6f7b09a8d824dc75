"""Joins: further reads of a resource whose answers belong to its status, each in its own time.

A join that fails says so beside its last value, and keeps nothing else from going on, unless the definition requires it.
"""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

import msgspec
from msgspec import UNSET

from trimtab.model.clock import format_time, parse_time
from trimtab.systems.rest.addressing import query_of
from trimtab.systems.rest.calling.contract import CallError, Request
from trimtab.systems.rest.model import Call, Join
from trimtab.systems.rest.reconciling import memory, telling
from trimtab.systems.rest.reconciling.looking import Live
from trimtab.systems.rest.reconciling.session import Session
from trimtab.systems.rest.reconciling.telling import Word
from trimtab.systems.rest.state import Joined


async def joined(session: Session, live: Live) -> tuple[Word, ...]:
    """Bring the joins up to date; the conditions that follow from those that are required and failed."""
    before = {} if session.status.joined is UNSET else session.status.joined
    after: dict[str, Joined] = {}
    missing = []
    for join in session.model.joins:
        known = before.get(join.name)
        after[join.name] = found = (
            await _asked(session, join, known) if is_due(session, join, known) else known or Joined()
        )
        if join.required and found.error:
            missing.append(f"{join.name}: {found.error}")
    after |= await _of_hooks(session, live)
    session.status = msgspec.structs.replace(session.status, joined=after or UNSET)
    why = "; ".join(missing)
    return (Word(telling.READY, False, "JoinFailed", why),) if missing else ()


def is_due(session: Session, join: Join, known: Joined | None) -> bool:
    return left(session, join, known) <= 0


def left(session: Session, join: Join, known: Joined | None) -> float:
    """Seconds until it is asked for again."""
    if known is None or not known.at:
        return 0.0
    return join.interval - (session.place.clock.now() - parse_time(known.at)).total_seconds()


async def _asked(session: Session, join: Join, known: Joined | None) -> Joined:
    identifier = session.identifier
    path = (
        join.path if join.path.startswith("/") else f"{identifier.rstrip('/')}/{quote(join.path.strip('/'), safe='/')}"
    )
    query = join.query or (session.model.calls.read.query if session.model.calls.read is not None else {})
    call = Call(method="GET", path=path, query=query)
    request = Request(
        verb="join",
        method="GET",
        url=path + query_of(call, session.values),
        envelope=session.model.overlay.envelope,
    )
    now = format_time(session.place.clock.now())
    try:
        answer = await session.caller.call(request)
    except CallError as error:
        return Joined(value=None if known is None else known.value, at=now, error=str(error))
    value = memory.without_nulls(_selected(join.select, answer.body))
    return Joined(value=value, at=now)


async def _of_hooks(session: Session, live: Live) -> dict[str, Joined]:
    if not session.place.hooks.has("joins"):
        return {}

    async def own(body: dict[str, Any]) -> dict[str, Any]:
        return {}

    found = await session.place.hooks.run("joins", session.context, own, live.body)
    now = format_time(session.place.clock.now())
    return {name: Joined(value=memory.without_nulls(value), at=now) for name, value in found.items()}


def _selected(expression: str, body: Any) -> Any:
    if not expression:
        return body
    import jmespath

    return jmespath.search(expression, body)
