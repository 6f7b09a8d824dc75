"""Joins: further reads of a resource whose answers belong to its status, each in its own time.

Only an answer that differs from the last one is written; `at` says since when it is so. A join that fails says so beside
its last value, and keeps nothing else from going on, unless the definition requires it. Nobody knows the schema of such an
answer, so that `showing` decides what of it is shown.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any
from urllib.parse import quote

import msgspec
from msgspec import UNSET

from trimtab.model.clock import format_time
from trimtab.systems.rest.addressing import AddressError, fill, normalized, parsed, query_of
from trimtab.systems.rest.calling.contract import CallError, Request
from trimtab.systems.rest.model import Call, Join
from trimtab.systems.rest.reconciling import telling
from trimtab.systems.rest.reconciling.looking import Live
from trimtab.systems.rest.reconciling.session import Session
from trimtab.systems.rest.reconciling.showing import NotShown, selected, shown
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
    now = format_time(session.place.clock.now())
    try:
        answer = await session.caller.call(_request(session, join))
        value = shown(selected(join.select, answer.body), await _hidden(session))
    except (CallError, AddressError, NotShown) as error:
        return known if known.error == str(error) else Joined(value=known.value, at=now, error=str(error))
    return known if known.at and not known.error and known.value == value else Joined(value=value, at=now)


def _request(session: Session, join: Join) -> Request:
    """Raises AddressError."""
    model, identifier = session.model, session.identifier
    known = {**session.values, **(parsed(model, identifier) or {})}
    path = fill(model, quote(join.path.strip("/"), safe=_IN_PATHS), known)
    above = "" if join.path.startswith("/") else (normalized(model, identifier) or identifier).rstrip("/")
    query = join.query or (model.calls.read.query if model.calls.read is not None else {})
    return Request(
        verb="join",
        method="GET",
        url=f"{above}/{path}" + query_of(Call(method="GET", path=path, query=query), known),
        envelope=model.overlay.envelope,
        rules=model.overlay.errors,
        secrets=session.sources.revealed,
    )


_IN_PATHS = "/{}~!$&'()*+,;=:@%"


async def _hidden(session: Session) -> list[str]:
    """The secrets of the spec. A service may repeat them anywhere."""
    await session.sources.reveal()
    return [value.reveal() for value in session.sources.revealed]


async def _of_hooks(session: Session, live: Live) -> dict[str, Joined]:
    if not session.place.hooks.has("joins"):
        return {}

    async def own(body: dict[str, Any]) -> dict[str, Any]:
        return {}

    found = await session.place.hooks.run("joins", session.context, own, live.body)
    before = {} if session.status.joined is UNSET else session.status.joined
    hidden, now = await _hidden(session), format_time(session.place.clock.now())
    made = {name: _made(value, hidden, now) for name, value in found.items()}
    return {n: before[n] if n in before and _says(before[n], each) else each for n, each in made.items()}


def _made(value: Any, hidden: list[str], now: str) -> Joined:
    try:
        return Joined(value=shown(value, hidden), at=now)
    except NotShown as error:
        return Joined(at=now, error=str(error))


def _says(before: Joined, now: Joined) -> bool:
    return (before.value, before.error) == (now.value, now.error)
