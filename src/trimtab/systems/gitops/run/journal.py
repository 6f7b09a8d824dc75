"""What is written of a run in its GitSync: that it began, what it is about to make, how far it is, how it ended."""

from __future__ import annotations

from typing import Any

from msgspec import UNSET, UnsetType

from trimtab.model.clock import format_time
from trimtab.runtime.progress import ProgressStatus
from trimtab.runtime.runs import Run, Runs, failed_so
from trimtab.systems.gitops.applying import Acts
from trimtab.systems.gitops.conflicts import Conflicts
from trimtab.systems.gitops.inventory import Entry, Inventory
from trimtab.systems.gitops.keeping import Kept, owner_of
from trimtab.systems.gitops.kinds import GitSync
from trimtab.systems.gitops.kinds.fields import SYNC_NOW
from trimtab.systems.gitops.planning import Plan, Step
from trimtab.systems.gitops.reading import Snapshot
from trimtab.systems.gitops.run.tools import Tools
from trimtab.systems.gitops.run.verdicts import counts_of, failures_of, held_words, path_missing, verdict_of
from trimtab.systems.gitops.telling import (
    Teller,
    Verdict,
    conflicts_of,
    counted,
    held_of,
    refusals_of,
    same_hold,
    shown,
    webhooks_of,
)

SHOWN = 50
"""Runs of more steps than this tell their progress."""


class Journal:
    """Of one run. `revision` is the commit that it is about, once that is known."""

    def __init__(self, tools: Tools, sync: GitSync, trigger: str, *, stamp: bool) -> None:
        """`stamp` writes down when it ran, also when there was nothing to do."""
        self.revision = ""
        self._tools, self._trigger, self._stamp = tools, trigger, stamp
        self._request = (sync.metadata.annotations or {}).get(SYNC_NOW, "")[:253]
        self._teller = Teller(tools.client, tools.clock, sync)
        self._runs = Runs(tools.clock, blobs=tools.blobs, owner=owner_of(sync))
        self._history: tuple[Run, ...] | UnsetType = UNSET
        self._run_id = ""
        status = self._teller.status
        self._before = (status.observed_generation, status.last_attempted_revision)
        self._intents: list[Entry] = []

    @property
    def sync(self) -> GitSync:
        """As it was last written."""
        return self._teller.sync

    @property
    def _repeated(self) -> bool:
        """Whether the run before was about the same: it is the same history then, when it fails in the same way."""
        return self._before == (self.sync.metadata.generation, self.revision or UNSET)

    async def begin(self, plan: Plan, kept: Kept) -> None:
        """Write down what is going to be made, before it is. When another run was about to make the same, this write tells
        who goes on: the one that was late has a conflict."""
        new = [step for step in plan.applies if step.identity not in kept.inventory]
        if self._run_id and not new:
            return
        changes: dict[str, Any] = {}
        if not self._run_id:
            history = await self._runs.interrupted(self._teller.status.history)
            changes["history"], run = self._runs.start(history, self._trigger)
            self._run_id = run.id
        if new:
            self._intents = [_intent(step) for step in new]
            changes["inventory"] = await kept.intend(self._intents)
        intended = any((entry := kept.inventory.get(step.identity)) and not entry.uid for step in plan.applies)
        if new or intended or len(plan.applies) + len(plan.prune) > SHOWN:
            await self._teller.write(**changes, last_attempted_revision=self.revision or UNSET)
            await kept.settle()
        else:
            self._history = changes["history"]

    async def progress(self, status: ProgressStatus) -> None:
        await self._teller.write(progress=status)

    async def pushing(self, commit: str, kept: Kept, after: Inventory) -> None:
        """Write down what is going to be pushed, before it is: whoever finds it in Git knows that it is ours."""
        changes = {} if isinstance(self._history, UnsetType) else {"history": self._history}
        await self._teller.write(**changes, inventory=await kept.expect(commit, after))
        await kept.settle()

    async def pushed(self, commit: str, *, moved: bool) -> None:
        """`moved`: it is on the branch that is synced, so that the run is about it now."""
        await self._teller.write(last_pushed_revision=commit)
        if moved:
            self.revision = commit

    async def finish(self, plan: Plan, snapshot: Snapshot, kept: Kept, acts: Acts, conflicts: Conflicts) -> Verdict:
        """The run came to its end."""
        tools, sync = self._tools, self.sync
        waiting = await conflicts.keep(plan, snapshot.commit)
        failed = (*failures_of(acts.failures), *failures_of(acts.untried))
        documents = (*failed, *refusals_of(plan.refused), *conflicts_of(plan.conflicts))
        done = not acts.failures
        verdict = verdict_of(plan, acts, documents, revision=self.revision, name=sync.name)
        if verdict.ok and snapshot.lacks_folder and not sync.spec.system_to_git:
            was_there = bool(self._teller.status.last_applied_revision)
            verdict = path_missing(snapshot.root, self.revision, was_there=was_there)
        if acts.failures:
            self._intend(kept)
        changed = kept.is_changed or kept.revision != self.revision
        status, held = self._teller.status, held_of(plan, self.revision)
        changes: dict[str, Any] = {
            "conditions": self._teller.conditions(verdict, conflicts=waiting, in_sync=verdict.ok),
            "observed_generation": sync.metadata.generation,
            "last_attempted_revision": self.revision or UNSET,
            "webhooks": webhooks_of(sync),
            "held": held,
            "documents": shown(documents),
            "problems": counted(documents),
            "conflicts": waiting or UNSET,
            "progress": UNSET,
            "handled_request": self._request or UNSET,
        }
        if changed and (len(kept.inventory) or len(kept.exports) or status.inventory):
            changes["inventory"] = await kept.save(self.revision if done else "")
        if verdict.ok and self.revision:
            changes["last_applied_revision"] = self.revision
        if done and not self._run_id and status.history and status.history[0].outcome == "Failed":
            self._history, run = self._runs.start(
                status.history, self._trigger
            )  # the end of a failure is worth telling
            self._run_id = run.id
        if self._run_id:
            changes["history"] = await self._runs.finish(
                self._history or status.history,
                self._run_id,
                "Succeeded" if done else "Failed",
                reason=verdict.reason,
                message=verdict.message,
                counts=counts_of(plan, acts),
                fold=self._repeated and not (acts.applied or acts.deleted or plan.write_back),
            )
        if self._run_id or self._stamp:
            changes["last_run_time"] = format_time(tools.clock.now())
        await self._teller.write(**changes)
        await kept.settle()
        if self._run_id and not verdict.held:
            (tools.events.normal if verdict.ok else tools.events.warning)(
                self.sync, verdict.reason, verdict.message[:900]
            )
        if held and not same_hold(held, status.held):  # once, however often it runs meanwhile
            tools.events.warning(self.sync, held.reason, held_words(plan, sync.name)[:900])
        return verdict

    def _intend(self, kept: Kept) -> None:
        """Nobody knows what became of what was to be made and is not known to be."""
        for entry in self._intents:
            if entry.identity not in kept.inventory:
                kept.inventory.put(entry)

    async def failed(self, verdict: Verdict, kept: Kept | None = None) -> Verdict:
        """The run did not come to its end. Nothing that is known of the last good one is lost. `kept`: what it did is known, and
        goes with it."""
        status = self._teller.status
        history = self._history or status.history
        before = history[0] if history else None
        if self._run_id:
            history = await self._runs.finish(
                history,
                self._run_id,
                "Failed",
                reason=verdict.reason,
                message=verdict.message,
                fold=self._repeated,
            )
        elif before is None or not failed_so(before, verdict.reason, verdict.message):
            started, run = self._runs.start(history, self._trigger)
            history = await self._runs.finish(started, run.id, "Failed", reason=verdict.reason, message=verdict.message)
            self._tools.events.warning(self.sync, verdict.reason, verdict.message[:900])
        inventory = status.inventory
        if kept is not None:
            self._intend(kept)
            inventory = await kept.save("") if kept.is_changed else inventory
        await self._teller.write(
            inventory=inventory,
            conditions=self._teller.conditions(verdict, conflicts=status.conflicts or 0, in_sync=False),
            observed_generation=self.sync.metadata.generation,
            last_attempted_revision=self.revision or status.last_attempted_revision,
            webhooks=webhooks_of(self.sync),
            documents=shown(verdict.documents),
            problems=counted(verdict.documents),
            progress=UNSET,
            history=history,
            handled_request=self._request or UNSET,
            last_run_time=format_time(self._tools.clock.now()) if self._stamp else status.last_run_time,
        )
        if kept is not None:
            await kept.settle()
        return verdict


def _intent(step: Step) -> Entry:
    version = str((step.document or {}).get("apiVersion", ""))
    return Entry(step.identity, version=version, path=step.path, index=step.index, item=step.item)
