"""What a GitSync's status says of a run. Pure, but for `Teller`, which writes it when it changed."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec
from msgspec import UNSET, UnsetType

from trimtab.client.protocol import Client
from trimtab.model.clock import Clock
from trimtab.model.conditions import Condition, without_condition
from trimtab.runtime.status import condition, write_status
from trimtab.systems.gitops.kinds import DocumentProblem, GitSync, GitSyncStatus, Held, WebhookPath
from trimtab.systems.gitops.parsing import Problem
from trimtab.systems.gitops.planning import Conflict, Plan, Refusal

MOST = 100
MOST_DELETES = 50


class Verdict(msgspec.Struct, frozen=True):
    """How a run ended. `stalled`: it will not go better before somebody changes something; `patient`: not soon, so that
    the next interval is time enough; `held`: deletions wait for a person."""

    ok: bool
    reason: str
    message: str
    stalled: bool = False
    patient: bool = False
    held: bool = False
    documents: tuple[DocumentProblem, ...] = ()


class Teller:
    """Writes the status of one GitSync, one write at a time. It holds the object as it was last written."""

    def __init__(self, client: Client, clock: Clock, sync: GitSync) -> None:
        self._client, self._clock = client, clock
        self._lock = asyncio.Lock()
        self.sync = sync

    @property
    def status(self) -> GitSyncStatus:
        return self.sync.status or GitSyncStatus()

    async def write(self, **changes: Any) -> None:
        """These fields. Nothing is sent when they are so already."""
        async with self._lock:
            self.sync = await write_status(self._client, self.sync, self.status.replace(**changes))

    def conditions(self, verdict: Verdict, *, conflicts: int, in_sync: bool) -> tuple[Condition, ...]:
        """Ready, Synced, Conflicted and Stalled."""
        generation = self.sync.metadata.generation
        found = self.status.conditions or ()

        def add(kind: str, truth: bool | None, reason: str, message: str) -> None:
            nonlocal found
            found = condition(found, self._clock, generation, kind, truth, reason, message)

        add("Ready", verdict.ok, verdict.reason, verdict.message)
        add("Synced", in_sync, "Synced" if in_sync else verdict.reason, "" if in_sync else verdict.message)
        if conflicts:
            add("Conflicted", True, "Conflicts", f"{conflicts} objects wait for a decision: see the SyncConflicts")
        else:
            found = without_condition(found, "Conflicted")
        if verdict.stalled:
            add("Stalled", True, verdict.reason, verdict.message)
        else:
            found = without_condition(found, "Stalled")
        return found


def problems_of(problems: Iterable[Problem], reason: str = "Invalid") -> tuple[DocumentProblem, ...]:
    return tuple(
        DocumentProblem(path=cut(p.path), line=p.line or UNSET, reason=reason, message=cut(p.message)) for p in problems
    )


def refusals_of(refused: Iterable[Refusal]) -> tuple[DocumentProblem, ...]:
    return tuple(
        DocumentProblem(path=cut(r.path), object=cut(str(r.identity), 600), reason="Refused", message=cut(r.reason))
        for r in refused
    )


def conflicts_of(conflicts: Iterable[Conflict]) -> tuple[DocumentProblem, ...]:
    return tuple(
        DocumentProblem(
            path=cut(c.path),
            object=cut(str(c.identity), 600),
            reason="Conflict",
            message=cut(", ".join(field.path or "the whole document" for field in c.fields)),
        )
        for c in conflicts
    )


def held_of(plan: Plan, revision: str) -> Held | UnsetType:
    """What waits for a person."""
    if not plan.guards:
        return UNSET
    held = [identity for guard in plan.guards for identity in guard.held]
    return Held(
        plan=",".join(guard.confirmation for guard in plan.guards if guard.confirmation),
        revision=revision,
        reason=plan.guards[0].reason,
        deletes=tuple(cut(str(identity), 600) for identity in sorted(held)[:MOST_DELETES]),
        count=len(held),
    )


def same_hold(one: Held | UnsetType, other: Held | UnsetType) -> bool:
    """Whether the same deletions wait for the same reason, whatever commit they are seen in."""
    if not one or not other:
        return not one and not other
    return (one.plan, one.reason, one.deletes, one.count) == (other.plan, other.reason, other.deletes, other.count)


def webhooks_of(sync: GitSync) -> tuple[WebhookPath, ...] | UnsetType:
    """Where providers send to. The secrets are in Secrets, and nowhere else."""
    hooks = tuple(
        WebhookPath(name=hook.name, path=f"/{sync.namespace}/{sync.name}/{hook.name}")
        for hook in sync.spec.triggers.webhooks
    )
    return hooks or UNSET


def shown(documents: Sequence[DocumentProblem]) -> tuple[DocumentProblem, ...] | UnsetType:
    return tuple(documents[:MOST]) or UNSET


def counted(documents: Sequence[DocumentProblem]) -> int | UnsetType:
    return len(documents) or UNSET


def first(documents: Sequence[DocumentProblem]) -> str:
    """The first few in one line."""
    lines = [f"{d.path}{f':{d.line}' if d.line else ''}: {d.message}" for d in documents[:3]]
    return "; ".join(lines) + (f"; and {len(documents) - 3} more" if len(documents) > 3 else "")


def cut(text: str, most: int = 1024) -> str:
    """As much as a field of the status holds."""
    return text if len(text) <= most else text[: most - 1] + "…"
