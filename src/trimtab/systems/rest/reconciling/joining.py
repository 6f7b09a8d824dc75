"""Joins: further reads of a resource whose answers belong to its status, each in its own time.

Only an answer that differs from the last one is written; `at` says since when it is so. A join that fails says so beside
its last value, and keeps nothing else from going on, unless the definition requires it.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any
from urllib.parse import quote

import msgspec
from msgspec import UNSET

from trimtab.model.clock import format_time
from trimtab.systems.rest.addressing import query_of
from trimtab.systems.rest.calling.contract import CallError, Request
from trimtab.systems.rest.model import Call, Join
from trimtab.systems.rest.reconciling import memory, telling
from trimtab.systems.rest.reconciling.looking import Live
from trimtab.systems.rest.reconciling.session import Session
from trimtab.systems.rest.reconciling.telling import Word
from trimtab.systems.rest.state import Joined


async def joined(session: Session, live: Live, only: Collection[str] | None = None) -> tuple[Word, ...]:
    """Bring all joins up to date, or only some; the conditions that follow from those that are required and failed."""
    before = {} if session.status.joined is UNSET else session.status.joined
    after: dict[str, Joined] = {}
    missing = []
    for join in session.model.joins:
        found = known = before.get(join.name, Joined())
        if only is None or join.name in only or not known.at:
            found = await _asked(session, join, known)
        after[join.name] = found
        if join.required and found.error:
            missing.append(f"{join.name}: {found.error}")
    after |= await _of_hooks(session, live)
    session.status = msgspec.structs.replace(session.status, joined=after or UNSET)
    why = "; ".join(missing)
    return (Word(telling.READY, False, "JoinFailed", why),) if missing else ()


async def _asked(session: Session, join: Join, known: Joined) -> Joined:
    """What it says now; the very one that is known when it says the same."""
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
        rules=session.model.overlay.errors,
    )
    now = format_time(session.place.clock.now())
    try:
        answer = await session.caller.call(request)
    except CallError as error:
        return known if known.error == str(error) else Joined(value=known.value, at=now, error=str(error))
    value = memory.without_nulls(_selected(join.select, answer.body))
    return known if known.at and not known.error and known.value == value else Joined(value=value, at=now)


async def _of_hooks(session: Session, live: Live) -> dict[str, Joined]:
    if not session.place.hooks.has("joins"):
        return {}

    async def own(body: dict[str, Any]) -> dict[str, Any]:
        return {}

    found = await session.place.hooks.run("joins", session.context, own, live.body)
    before = {} if session.status.joined is UNSET else session.status.joined
    now = format_time(session.place.clock.now())
    made = {name: Joined(value=memory.without_nulls(value), at=now) for name, value in found.items()}
    return {n: before[n] if n in before and before[n].value == each.value else each for n, each in made.items()}


def _selected(expression: str, body: Any) -> Any:
    if not expression:
        return body
    import jmespath

    return jmespath.search(expression, body)
