"""What would be done, for objects in plan mode: it goes to `status.plan`, and nothing else happens."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from trimtab.runtime.controller import Result
from trimtab.systems.rest.reconciling import telling
from trimtab.systems.rest.reconciling.session import Session
from trimtab.systems.rest.reconciling.telling import Word
from trimtab.systems.rest.state import Change, Plan


async def planned(
    session: Session, action: str, method: str, url: str, changes: Sequence[Change], drifted: Word | None = None
) -> Result | None:
    plan = Plan(action=action, method=method, url=url, changes=tuple(changes), generation=session.subject.generation)
    session.status = msgspec.structs.replace(session.status, plan=plan)
    why = f"{action}: {telling.named(change.path for change in changes if change.path) or url}"
    await session.save((*telling.waiting("Planned", why), *((drifted,) if drifted else ())))
    return None
