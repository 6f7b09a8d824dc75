"""`trimtab canary pause` and `resume`: hold a release where it is, and let it go on. Saying either twice does no harm."""

from __future__ import annotations

from trimtab.cli.access import Access, session
from trimtab.cli.annotations import annotate
from trimtab.cli.canary_find import annotation, called, canary_of, run_of, traffic
from trimtab.cli.canary_promote import fought, where
from trimtab.cli.codes import OK, USAGE, Problem, run
from trimtab.systems.delivery.kinds import CanaryDeployment
from trimtab.systems.delivery.kinds.fields import APPROVE, PAUSE

BY_HAND = "paused by hand"
MAX_REASON = 1024


def pause(access: Access, name: str, reason: str) -> int:
    return run(_pause(access, name, reason))


def resume(access: Access, name: str) -> int:
    return run(_resume(access, name))


async def _pause(access: Access, name: str, reason: str) -> int:
    if len(reason) > MAX_REASON:
        raise Problem(f"--reason is longer than {MAX_REASON} characters", USAGE)
    async with session(access) as server:
        canary = await canary_of(server, name)
        before = annotation(canary, PAUSE)
        if before is not None and not reason:
            print(f"{called(canary)} is paused already: {before or BY_HAND}")
            return OK
        await annotate(server, canary, PAUSE, reason or BY_HAND)
    print(f"{called(canary)}: {_stands(canary)}; `trimtab canary resume {name}` lets it go on")
    return OK


async def _resume(access: Access, name: str) -> int:
    async with session(access) as server:
        canary = await canary_of(server, name)
        if annotation(canary, PAUSE) is None:
            print(f"{called(canary)} is not paused{_but(canary)}")
            return OK
        await annotate(server, canary, PAUSE, None)
    print(f"{called(canary)} goes on{_but(canary)}")
    return OK


def _stands(canary: CanaryDeployment) -> str:
    going = run_of(canary)
    if going is None:
        return "no release begins while it is paused"
    return f"it stands still with {traffic(canary, going)}: {where(canary, going)}"


def _but(canary: CanaryDeployment) -> str:
    """What else may hold it."""
    going = run_of(canary)
    if canary.spec.suspend:
        return "; but spec.suspend holds it: set that to false"
    if going is not None and going.waiting_for and annotation(canary, APPROVE) == going.waiting_for:
        return ""  # it was approved meanwhile
    if (why := fought(canary)) is not None:
        return f"; but {why}"
    if going is not None and going.frozen:
        return (
            f"; but it is frozen, because its checks failed: `trimtab canary promote {canary.name}` forgives them, "
            f"`trimtab canary abort {canary.name}` rolls it back"
        )
    if going is not None and going.waiting_for:
        return f"; it waits at the gate {going.waiting_for}"
    return ""
