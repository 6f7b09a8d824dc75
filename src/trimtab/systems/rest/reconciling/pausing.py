"""`spec.policy.paused`: what is there is shown, and nothing is written or deleted."""

from __future__ import annotations

import msgspec

from trimtab.systems.rest.reconciling import memory
from trimtab.systems.rest.reconciling.referring import hidden
from trimtab.systems.rest.reconciling.session import Halt, Session
from trimtab.systems.rest.reconciling.telling import READY, SYNCED, Word
from trimtab.systems.rest.syncing import secrets


async def observe_only(session: Session, *, is_shown: bool) -> None:
    """The status tells what is there; not so while a secret is missing, for then nobody knows what may not be shown."""
    await session.open()
    live = await session.look() if session.identifier and is_shown else None
    if live is not None:
        seen, _ = secrets.observed(session.model, live.body, secrets=hidden(session))
        session.status = msgspec.structs.replace(session.status, observed=memory.without_nulls(seen))
    await session.save(_paused("nothing is written"))


def hold_while_paused(session: Session) -> None:
    """For an object that is being deleted. Raises Halt; what would not be deleted anyway may go."""
    policy = session.subject.control.policy
    if policy.paused and policy.deletion == "delete" and policy.mode == "manage" and session.is_claimed:
        raise Halt(_paused("the deletion waits; with spec.policy.deletion: detach the object goes without it"))


def _paused(meaning: str) -> tuple[Word, ...]:
    why = f"spec.policy.paused is true: {meaning}"
    return Word(READY, None, "Paused", why), Word(SYNCED, None, "Paused", why)
