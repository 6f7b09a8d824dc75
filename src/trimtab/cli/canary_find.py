"""The CanaryDeployment that a command is about, and who it is called in what the command says."""

from __future__ import annotations

from trimtab.cli.access import Session
from trimtab.cli.codes import NOT_FOUND, Problem
from trimtab.client.protocol import Query
from trimtab.model.errors import StatusError
from trimtab.systems.delivery.kinds import CanaryDeployment, CanaryDeploymentStatus, RunStatus
from trimtab.systems.delivery.machine.runs import step_of

MOST_NAMES = 20
NONE = CanaryDeploymentStatus()


async def canary_of(server: Session, name: str) -> CanaryDeployment:
    """By its name. What is wrong is a Problem that says what there is instead."""
    try:
        return await server.client.get(CanaryDeployment, name, server.namespace)
    except StatusError as error:
        if error.code != 404:
            raise
    raise await missing(server, name)


async def missing(server: Session, name: str) -> Problem:
    """Why there is none of this name."""
    try:
        listed = await server.client.list(CanaryDeployment, Query(namespace=server.namespace, metadata_only=True))
    except StatusError as error:
        if error.code != 404:
            raise
        return Problem("the server has no CanaryDeployments: it runs no system delivery", NOT_FOUND)
    names = [item.name for item in listed.items]
    there = ", ".join(names[:MOST_NAMES]) + (", …" if len(names) > MOST_NAMES else "")
    where = f"in namespace {server.namespace}"
    return Problem(f"there is no canarydeployment/{name} {where}; there are: {there or 'none'}", NOT_FOUND)


def status_of(canary: CanaryDeployment) -> CanaryDeploymentStatus:
    return canary.status or NONE


def run_of(canary: CanaryDeployment) -> RunStatus | None:
    """The run that goes on."""
    return status_of(canary).run or None


def called(canary: CanaryDeployment) -> str:
    return f"canarydeployment/{canary.name}"


def short(revision: str) -> str:
    """The first digits: what pods have as their label."""
    return revision.rpartition(":")[2][:12]


def traffic(canary: CanaryDeployment, going: RunStatus) -> str:
    """What the canary of a run should get, after "with"."""
    step = step_of(going)
    if step is not None and step.matched and going.weight:
        return "all requests that match"
    if step is not None and step.mirror and status_of(canary).phase in ("Progressing", "WaitingPromotion"):
        return f"copies of {step.mirror} % of the traffic"
    return f"{going.weight} % of the traffic"


def annotation(canary: CanaryDeployment, name: str) -> str | None:
    return (canary.metadata.annotations or {}).get(name)
