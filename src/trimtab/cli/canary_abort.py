"""`trimtab canary abort`: roll back the run that goes on. A later run is not aborted with it."""

from __future__ import annotations

from trimtab.cli.access import Access, session
from trimtab.cli.annotations import annotate
from trimtab.cli.canary_find import called, canary_of, run_of, short, status_of
from trimtab.cli.codes import OK, Problem, run
from trimtab.systems.delivery.kinds import CanaryDeployment, RunStatus
from trimtab.systems.delivery.kinds.fields import ABORT


def abort(access: Access, name: str) -> int:
    return run(_abort(access, name))


async def _abort(access: Access, name: str) -> int:
    async with session(access) as server:
        canary = await canary_of(server, name)
        going = run_of(canary)
        if going is None:
            raise Problem(f"{called(canary)}: there is nothing to roll back, no release goes on")
        if (why := _too_late(canary, going)) is not None:
            raise Problem(f"{called(canary)}: {why}")
        await annotate(server, canary, ABORT, going.id)
    print(
        f"{called(canary)}: run {going.id} is rolled back to revision {short(going.before)}; "
        f"`trimtab canary retry {name}` would run {short(going.revision)} again"
    )
    return OK


def _too_late(canary: CanaryDeployment, going: RunStatus) -> str | None:
    phase = status_of(canary).phase
    if phase == "RollingBack" or (phase == "Finalising" and going.result != "Succeeded"):
        return f"run {going.id} is being rolled back already: {going.message or going.reason or 'it ends'}"
    if phase in ("Returning", "Finalising"):
        return (
            f"revision {short(going.revision)} is stable already: apply a spec with what was there before, "
            f"revision {short(going.before)}"
        )
    return None
