"""Comparing what is there with what is wanted, and writing the difference and nothing else."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from typing import Any

import msgspec
from msgspec import UNSET

from trimtab.model.clock import format_time, parse_time
from trimtab.runtime.controller import Result
from trimtab.systems.rest.addressing import parsed, url_of
from trimtab.systems.rest.calling import states
from trimtab.systems.rest.calling.contract import CallError, ErrorClass
from trimtab.systems.rest.model import Call
from trimtab.systems.rest.reconciling import memory, telling
from trimtab.systems.rest.reconciling.creating import recreate
from trimtab.systems.rest.reconciling.finding import extracted
from trimtab.systems.rest.reconciling.looking import Live
from trimtab.systems.rest.reconciling.planning import planned
from trimtab.systems.rest.reconciling.session import Halt, Session
from trimtab.systems.rest.reconciling.settled import after_write, observe
from trimtab.systems.rest.reconciling.telling import Word
from trimtab.systems.rest.state import Change
from trimtab.systems.rest.syncing import adopting, comparing, difference, writing
from trimtab.systems.rest.syncing.leaves import walk
from trimtab.systems.rest.syncing.paths import MISSING, get, parse, put
from trimtab.systems.rest.syncing.stripping import holds_hidden

Body = dict[str, Any]

CONTESTED = 3
CONTESTED_WITHIN = timedelta(hours=1)
REPAIRED_AFTER = timedelta(minutes=30)
STALE = 1.0
"""Seconds after which what was read is read again before it is written back, where no ETag guards it."""


async def adopt(session: Session, live: Live, sealed: Body, *, as_is: bool) -> None:
    """It counts as ours from now on."""
    if session.subject.control.policy.mode == "manage":
        await session.claim()
    applied, known = adopting.adopt(session.model, sealed, live.body, as_is=as_is)
    session.known_as(session.identifier)
    sync = session.remember(created=True, pending=None, etag=live.etag)
    session.status = msgspec.structs.replace(
        session.status, sync=memory.remembered(sync, applied, known, session.hidden)
    )
    kept = f"; left as they are: {telling.named(known)}" if known else ""
    session.event("Adopted", f"{session.identifier} is managed from now on{kept}")


async def compare(session: Session, live: Live, wanted: Body, sealed: Body) -> Result | None:
    policy, sync = session.subject.control.policy, session.status.sync
    applied = _owned(session, sealed)
    same = _same(session, sealed, applied)
    found = difference.difference(
        session.model, desired=sealed, applied=applied, live=live.body, known=memory.known(sync), same=same
    )
    if found.create_only:
        why = f"{telling.named(found.create_only)} can only be given at creation"
        return await _anew(session, "ImmutableChanged", why)
    contested = _contested(session, found.drift) if policy.drift == "correct" else ()
    corrected = {path: drift for path, drift in found.drift.items() if path not in contested}
    try:
        write = writing.write_for(
            session.model,
            msgspec.structs.replace(found, drift=corrected),
            live=live.body,
            desired=wanted,
            applied=applied,
            correct=policy.drift == "correct",
            removals={**session.place.removals, **sync.removals},
            same=same,
        )
    except writing.Unwritable as error:
        return await _anew(session, "NotUpdatable", str(error))
    session.place.measures.spared(session.model.service, session.model.kind, len(sync.known_differences))
    drifted = _drift_word(session, found, contested)
    if write is None and _is_to_be_repaired(session, live):
        write = writing.written_again(session.model, live=live.body, desired=wanted)
    if write is None:
        return await _in_sync(session, live, sealed, drifted)
    call = (
        session.model.calls.patch if write.verb == "patch" else session.model.calls.update or session.model.calls.create
    )
    assert call is not None  # noqa: S101 - write_for chose among those that are there
    url = url_of(session.model, call, session.identifier, session.values)
    if policy.mode != "manage":
        leaves = [leaf for body in (sealed, applied, live.body) for leaf in walk(session.model, body).values()]
        hidden = {leaf.path for leaf in leaves if leaf.hidden or holds_hidden(session.model, leaf)}
        changes = [
            _change(path, why, {} if path in hidden else live.body, sealed, session.hidden)
            for path, why in write.reasons
        ]
        return await planned(session, write.verb, call.method, url, changes, drifted)
    return await _send(session, write, call, url, live, sealed)


def _is_to_be_repaired(session: Session, live: Live) -> bool:
    """A resource that the service calls failed gets the same again, after a while and as long as it is so."""
    sync, now = session.status.sync, session.place.clock.now()
    if not states.ended_badly(states.provisioning_state(live.body)):
        session.remember(failed="")
        return False
    if not sync.failed:
        session.remember(failed=format_time(now))
        return False
    if now - parse_time(sync.failed) < REPAIRED_AFTER or session.subject.control.policy.mode != "manage":
        return False
    session.remember(failed=format_time(now))
    return True


def _change(path: str, why: str, live: Body, sealed: Body, hidden: tuple[str, ...]) -> Change:
    old, new = get(live, parse(path)), get(sealed, parse(path))
    if old is not MISSING and memory.repeats(memory.text(old), hidden):
        old = MISSING
    return Change(path=path, why=why, old=None if old is MISSING else old, new=None if new is MISSING else new)


async def _anew(session: Session, reason: str, why: str) -> Result | None:
    """It cannot be changed: it stays, or is made anew, as the policy says."""
    if session.subject.control.policy.create_only != "recreate":
        raise Halt(telling.stalled(reason, f"{why}: take the change back, or set spec.policy.createOnly: recreate"))
    if session.model.calls.delete is None:
        raise Halt(telling.stalled(reason, f"{why}, and this service deletes nothing, so that it cannot be made anew"))
    return await recreate(session, why)


def _owned(session: Session, sealed: Body) -> Body:
    """What was applied; and what an unsettled write set and the spec does not want any more: it may have arrived."""
    applied = memory.applied(session.status.sync) or {}
    flying = memory.in_flight(session.status.sync) or {}
    for leaf in walk(session.model, flying).values():
        if get(applied, leaf.steps) is MISSING and get(sealed, leaf.steps) is MISSING:
            applied = put(applied, leaf.steps, leaf.value)
    return applied


def _same(session: Session, sealed: Body, applied: Body) -> comparing.Same:
    own = comparing.compared(session.model, sealed, applied)
    return session.place.hooks.same(session.context, own) if session.place.hooks.has("compare") else own


def _contested(session: Session, drift: Iterable[str]) -> tuple[str, ...]:
    """Paths that someone changes as often as we correct them."""
    since = session.place.clock.now() - CONTESTED_WITHIN
    corrected = session.status.sync.corrected
    return tuple(p for p in drift if sum(parse_time(at) > since for at in corrected.get(p, ())) >= CONTESTED)


def _drift_word(session: Session, found: difference.Difference, contested: tuple[str, ...]) -> Word:
    if not found.drift:
        return Word(telling.DRIFTED, False, "AsApplied")
    paths = telling.named(found.drift)
    if session.subject.control.policy.drift == "ignore":
        return Word(telling.DRIFTED, False, "Ignored", f"changed elsewhere, and left so: {paths}")
    if contested:
        why = f"someone keeps changing {telling.named(contested)}: it is no longer corrected"
        return Word(telling.DRIFTED, True, "DriftContested", why)
    return Word(telling.DRIFTED, True, "Drifted", f"changed elsewhere: {paths}")


async def _in_sync(session: Session, live: Live, sealed: Body, drifted: Word) -> Result | None:
    """Nothing to write. What the spec says now counts as applied: a field may have got the value that it has anyway."""
    sync = session.status.sync
    if sync.applying or memory.applied(sync) != sealed:
        sync = memory.remembered(sync, sealed, memory.known(sync), session.hidden)
    sync = msgspec.structs.replace(sync, pending=None, applying="", etag=live.etag, model=session.place.digest)
    session.status = msgspec.structs.replace(session.status, sync=sync, plan=UNSET)
    if session.subject.control.policy.mode == "manage":
        await session.claim()  # it may have been adopted while it was only planned
    await observe(session, live, drifted)
    return None


async def _send(
    session: Session, write: writing.Write, call: Call, url: str, live: Live, sealed: Body
) -> Result | None:
    await session.claim()
    session.remember(
        pending=session.pending(write.verb, call.method, write.body),
        applying=memory.text(sealed),
        corrected=_corrections(session, write),
    )
    paths = telling.named(dict.fromkeys(path for path, _ in write.reasons))
    await session.save(telling.progressing("Updating", f"{call.method} {url}: {paths}"))
    headers = {"If-Match": live.etag} if live.etag and call.conditional else {}
    if not headers and session.place.clock.monotonic() - session.looked_at > STALE:
        again = await session.look()
        if again is None or again.digest != live.digest:
            raise CallError(ErrorClass.CONFLICT, "it changed between the read and the write: looking again")
    try:
        answer = await session.send(write.verb, call, url, _with_identity(session, write.body), headers)
    except CallError as error:
        if not error.uncertain:  # nothing of it arrived, so nothing of it is ours
            session.remember(pending=None, applying="")
            await session.save(must=True)
        raise
    session.measured(write.verb, *(reason for _, reason in write.reasons))
    why = ", ".join(sorted({reason for _, reason in write.reasons}))
    session.event("Updated", f"{call.method} {url}: {paths} ({why})")
    moved = await extracted(session, answer) if session.model.identity.server else ""
    if moved and moved != session.identifier:
        session.known_as(moved)
        await session.save(must=True)  # before anything else can fail: the old ID leads nowhere
    return await after_write(session, write.verb, call, answer)


def _with_identity(session: Session, body: Body) -> Body:
    """Where an update is a POST to the collection, the body says which one it is of."""
    identity = session.model.identity
    if not session.model.overlay.upsert or not identity.field or not identity.server:
        return body
    own = (parsed(session.model, session.identifier) or {}).get(identity.parameter, "")
    return {**body, identity.field: own} if own else body


def _corrections(session: Session, write: writing.Write) -> dict[str, tuple[str, ...]]:
    """When each path was corrected lately, this time included."""
    now = session.place.clock.now()
    kept = {
        path: tuple(at for at in times if parse_time(at) > now - CONTESTED_WITHIN)
        for path, times in session.status.sync.corrected.items()
    }
    for path, why in write.reasons:
        if why == "drifted":
            kept[path] = (*kept.get(path, ())[-CONTESTED:], format_time(now))
    return {path: times for path, times in kept.items() if times}
