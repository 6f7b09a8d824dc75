"""`trimtab canary retry`: let the revision that failed run again."""

from __future__ import annotations

import secrets
from datetime import UTC, datetime

from trimtab.cli.access import Access, session
from trimtab.cli.annotations import annotate
from trimtab.cli.canary_find import called, canary_of, run_of, short, status_of
from trimtab.cli.canary_promote import held, where
from trimtab.cli.codes import OK, Problem, run
from trimtab.systems.delivery.kinds import CanaryDeployment
from trimtab.systems.delivery.kinds.fields import RETRY


def retry(access: Access, name: str) -> int:
    return run(_retry(access, name))


async def _retry(access: Access, name: str) -> int:
    async with session(access) as server:
        canary = await canary_of(server, name)
        revision = _failed(canary)
        await annotate(server, canary, RETRY, f"{datetime.now(UTC):%Y%m%dt%H%M%S}-{secrets.token_hex(4)}")
    print(f"{called(canary)}: revision {short(revision)} runs again, from its first step")
    why = "spec.abort is set" if canary.spec.abort else held(canary)
    if why is not None:
        print(f"{called(canary)}: {why}, so nothing begins yet")
    return OK


def _failed(canary: CanaryDeployment) -> str:
    """The revision that may run again."""
    status, going = status_of(canary), run_of(canary)
    if going is not None:
        raise Problem(f"{called(canary)}: a release goes on already: {where(canary, going)}")
    if not status.failed_revision:
        raise Problem(f"{called(canary)}: there is nothing to run again: no revision failed")
    if status.target_revision and status.target_revision != status.failed_revision:
        raise Problem(
            f"{called(canary)}: revision {short(status.failed_revision)} failed, but the spec says "
            f"{short(status.target_revision)} now: apply what is to run"
        )
    return status.failed_revision
