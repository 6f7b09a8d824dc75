"""`trimtab canary promote`: pass the gate that a run stands at; with --full, send its revision straight out.

What is approved is named: this gate of this run, or this revision. Whatever comes later is not approved with it.
"""

from __future__ import annotations

from trimtab.cli.access import Access, Session, session
from trimtab.cli.annotations import annotate
from trimtab.cli.canary_find import annotation, called, canary_of, run_of, short, status_of
from trimtab.cli.codes import OK, Problem, run
from trimtab.cli.tables import shown
from trimtab.model.conditions import get_condition
from trimtab.systems.delivery.kinds import CanaryDeployment, RunStatus
from trimtab.systems.delivery.kinds.fields import APPROVE, PAUSE, PROMOTE_NOW

STUCK = ("InvalidSpec", "Conflict", "SnapshotMissing")
"""Reasons of Ready with which nothing moves until someone mends something."""
TOO_LATE = ("Promoting", "Returning", "RollingBack", "Finalising")


def promote(access: Access, name: str, *, full: bool) -> int:
    return run(_promote(access, name, full))


async def _promote(access: Access, name: str, full: bool) -> int:
    async with session(access) as server:
        canary = await canary_of(server, name)
        if (why := stuck(canary)) is not None:
            raise Problem(f"{called(canary)}: nothing can move: {why}")
        said = await (_straight_out(server, canary) if full else _past_the_gate(server, canary))
    print(f"{called(canary)}: {said}")
    if (why := held(canary)) is not None:
        print(f"{called(canary)}: {why}, so nothing moves yet")
    return OK


async def _past_the_gate(server: Session, canary: CanaryDeployment) -> str:
    going = run_of(canary)
    if going is None:
        raise Problem(f"{called(canary)}: nothing waits, no release goes on{_hint(canary)}")
    gate = going.waiting_for or ""
    if not gate:
        why = held(canary)
        and_held = f", and {why}" if why is not None else ""
        raise Problem(f"{called(canary)}: nothing waits for you: {where(canary, going)}{and_held}{_full(canary)}")
    what = gate.rpartition("/")[2]
    if what.endswith("-webhook"):
        raise Problem(f"{called(canary)} waits for a webhook to agree, not for you{_full(canary)}")
    if what.endswith("-group"):
        raise Problem(f"{called(canary)} waits for the other members of its ReleaseGroup, not for you{_full(canary)}")
    if what.endswith("-check"):
        raise Problem(f"{called(canary)} waits for a check that passes, not for you{_full(canary)}")
    await annotate(server, canary, APPROVE, gate)
    return f"run {going.id} of revision {short(going.revision)} may {meaning(what)}"


async def _straight_out(server: Session, canary: CanaryDeployment) -> str:
    status, going = status_of(canary), run_of(canary)
    if status.observed_generation and status.observed_generation < (canary.metadata.generation or 0):
        raise Problem(f"{called(canary)}: its last change has not been looked at yet; try again in a moment")
    if going is not None and status.phase in TOO_LATE:
        raise Problem(f"{called(canary)}: {where(canary, going)}: there is nothing left to skip")
    revision = going.revision if going is not None else status.target_revision
    if not revision or revision == status.stable_revision:
        raise Problem(f"{called(canary)}: there is nothing to release: what the spec says is stable already")
    await annotate(server, canary, PROMOTE_NOW, revision)
    return f"revision {short(revision)} goes straight out, without further analysis"


def held(canary: CanaryDeployment) -> str | None:
    """Why nothing moves, whatever is approved, and what ends that."""
    if canary.spec.suspend:
        return "it is suspended by spec.suspend"
    if annotation(canary, PAUSE) is not None:
        return f"it is paused until `trimtab canary resume {canary.name}`"
    return fought(canary)


def fought(canary: CanaryDeployment) -> str | None:
    """Who is fought over which field, and when that is tried again."""
    fight = get_condition(status_of(canary).conditions, "DriftConflict")
    return None if fight is None else f"others change its objects again and again ({shown(fight.message)})"


def stuck(canary: CanaryDeployment) -> str | None:
    """What is to be mended before anything moves, whatever is approved."""
    ready = get_condition(status_of(canary).conditions, "Ready")
    return None if ready is None or ready.reason not in STUCK else f"{ready.reason}: {shown(ready.message)}"


def meaning(gate: str) -> str:
    """What passing a gate lets a run do."""
    if gate == "rollout":
        return "begin"
    if gate == "promotion":
        return "become stable"
    if gate.startswith("step-"):
        return f"go on to step {gate.removeprefix('step-')}"
    if gate.startswith("frozen"):
        return "go on: its failures are forgiven"
    return f"pass {gate}"


def where(canary: CanaryDeployment, going: RunStatus) -> str:
    """How far a run is, in a few words."""
    step = f", step {going.step + 1} of {going.steps}" if going.steps else ""
    return f"run {going.id} is {status_of(canary).phase or 'unknown'}{step}"


def _hint(canary: CanaryDeployment) -> str:
    """What to do about a revision that is not stable though nothing runs."""
    status = status_of(canary)
    if status.target_revision and status.target_revision == status.failed_revision:
        return f"; revision {short(status.failed_revision)} failed: `trimtab canary retry {canary.name}` runs it again"
    return ""


def _full(canary: CanaryDeployment) -> str:
    return (
        "" if status_of(canary).phase in TOO_LATE else f"; `trimtab canary promote {canary.name} --full` skips the rest"
    )
