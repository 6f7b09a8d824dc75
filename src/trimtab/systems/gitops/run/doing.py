"""From Git to the system: what changed there is applied, what went from it is deleted, files beside documents are sent."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Callable, Container
from typing import TYPE_CHECKING, Any

import msgspec

from trimtab.runtime.progress import Progress
from trimtab.systems.gitops import artifacts
from trimtab.systems.gitops.applying import Acts, Applier, Failure
from trimtab.systems.gitops.keeping import Kept
from trimtab.systems.gitops.kinds import GitSync
from trimtab.systems.gitops.knowing import Knowledge
from trimtab.systems.gitops.merging import Base, normal
from trimtab.systems.gitops.ordering import cycles
from trimtab.systems.gitops.parsing import Identity, SourceDocument, digest_of
from trimtab.systems.gitops.planning import Action, Plan, Step
from trimtab.systems.gitops.reading import Snapshot
from trimtab.systems.gitops.run.journal import SHOWN, Journal
from trimtab.systems.gitops.run.owners import lineage_of
from trimtab.systems.gitops.run.tools import Tools

if TYPE_CHECKING:
    from trimtab.runtime.git.mirror import Mirror

MOST_CYCLES = 10
"""Of which a run tells."""


async def apply_plan(plan: Plan, snapshot: Snapshot, kept: Kept, *, tools: Tools, journal: Journal) -> Acts:
    """What was done, and what the server did not take. The inventory knows all that was done, however this ends. Then
    `send_files`, then `publish`."""
    steps = _steps(plan, snapshot, journal.sync, tools)
    waiting = _unpublished(steps, plan, tools.knowledge)
    steps = [_as_draft(step) if step.identity in waiting else step for step in steps]
    for step in (*plan.unchanged, *plan.keep):
        _refresh(kept, step)
    _tell_left(plan, kept, journal.sync, tools)
    for step in plan.forget:
        kept.inventory.remove(step.identity)
    if not steps and not plan.prune:
        return Acts()
    _tell_cycles(steps, snapshot, journal.sync, tools)
    await journal.begin(plan, kept)
    async with _progress(len(steps) + len(plan.prune), tools, journal) as progress:
        applier = _applier(kept, tools, journal.sync, progress)
        if await applier.apply(steps, tools.knowledge.references):
            await applier.prune(plan.prune)
    return applier.acts


async def publish(plan: Plan, snapshot: Snapshot, kept: Kept, *, tools: Tools, journal: Journal) -> list[Failure]:
    """Give what was applied as a draft its version, now that its files are there."""
    steps = _steps(plan, snapshot, journal.sync, tools)
    waiting = _unpublished(steps, plan, tools.knowledge)
    applier = _applier(kept, tools, journal.sync)
    await applier.apply([step for step in steps if step.identity in waiting], tools.knowledge.references)
    return applier.failures


def _applier(kept: Kept, tools: Tools, sync: GitSync, progress: Callable[[int], None] | None = None) -> Applier:
    return Applier(
        tools.actors.of(sync),
        tools.clock,
        kept.inventory,
        guard=tools.guard,
        lineage_key=tools.knowledge.lineage_key,
        lineage=lineage_of(sync),
        clean=tools.knowledge.clean,
        progress=progress,
    )


def _steps(plan: Plan, snapshot: Snapshot, sync: GitSync, tools: Tools) -> list[Step]:
    """What is applied, as Git has it now."""
    steps = [*plan.applies]
    if sync.spec.system_to_git:
        current = {document.identity: document for document in snapshot.parsed.documents}
        steps += _adopted(plan, current, sync, tools)
        steps = [_as_in(step, current.get(step.identity)) for step in steps]
    return steps


def _unpublished(steps: list[Step], plan: Plan, knowledge: Knowledge) -> frozenset[Identity]:
    """What gets a new version together with other bytes for files that it has: at once it would be published with the old
    ones, and never change again."""
    changed = {file.identity for file in plan.files if file.send and file.digest}
    found = (step for step in steps if step.identity in changed and knowledge.is_versioned(step.document or {}))
    return frozenset(step.identity for step in found if _version(step.document) not in ("", _version(step.live)))


def _as_draft(step: Step) -> Step:
    """Without its version. Git says another thing than this, so that whoever goes on after a cut applies the whole."""
    document = dict(step.document or {})
    document["spec"] = {word: value for word, value in document["spec"].items() if word != "version"}
    return msgspec.structs.replace(step, document=document, digest=digest_of(document))


def _version(document: dict[str, Any] | None) -> str:
    spec = (document or {}).get("spec")
    return str(spec.get("version") or "") if isinstance(spec, dict) else ""


async def send_files(mirror: Mirror, plan: Plan, kept: Kept, *, tools: Tools, sync: GitSync) -> list[Failure]:
    """Files beside documents, whose bytes the system does not have yet."""
    unsent = await artifacts.upload(tools.actors.of(sync), mirror, plan.files, kept.inventory, guard=tools.guard)
    return [Failure(each.identity, each.path, each.reason, each.message) for each in unsent]


def _tell_left(plan: Plan, kept: Kept, sync: GitSync, tools: Tools) -> None:
    """What a run that was cut off may have made, and Git has no more, stays: nobody can tell whose it is. A person can."""
    left = [step for step in plan.forget if step.live and (e := kept.inventory.get(step.identity)) and not e.uid]
    if left:
        names = ", ".join(str(step.identity) for step in left[:10])
        more = f" and {len(left) - 10} more" if len(left) > 10 else ""
        note = f"a run was cut off while it made {names}{more}, and Git has them no more: delete what is not needed"
        tools.events.warning(sync, "LeftAlone", note[:900])


def _tell_cycles(steps: list[Step], snapshot: Snapshot, sync: GitSync, tools: Tools) -> None:
    """Documents that wait for each other have no order, and are applied at once. Whoever wrote them may have meant another
    thing, and is told when one of them changed."""
    current = {document.identity: document for document in snapshot.parsed.documents}
    documents = {identity: document.document for identity, document in current.items()}
    found = cycles((step.identity for step in steps), documents, tools.knowledge.references)
    for cycle in found[:MOST_CYCLES]:
        names = ", ".join(f"{identity} ({current[identity].path})" for identity in cycle[:10])
        more = f" and {len(cycle) - 10} more" if len(cycle) > 10 else ""
        note = f"these refer to each other in a circle, so they are applied in no order: {names}{more}"
        tools.events.warning(sync, "Cycle", note[:900])


def _adopted(plan: Plan, current: Container[Identity], sync: GitSync, tools: Tools) -> list[Step]:
    """What came from the system to where documents are read is ours from now on: kinds that keep a lineage get it. What the
    revision does not have stays theirs: it would be deleted as gone from Git."""
    return [
        Step(edit.identity, Action.OWN, edit.path, document=normal(edit.document), live=edit.live)
        for edit in plan.write_back
        if edit.action == "create"
        and edit.identity in current
        and edit.document is not None
        and sync.spec.git_to_system
        and tools.knowledge.lineage_key(str(edit.document["apiVersion"]), str(edit.document["kind"])) != ""
    ]


@contextlib.asynccontextmanager
async def _progress(total: int, tools: Tools, journal: Journal) -> AsyncIterator[Callable[[int], None] | None]:
    if total <= SHOWN:
        yield None
        return
    async with Progress(journal.progress, tools.clock) as progress:
        yield lambda done: progress.report(done, total, "applying")


def _as_in(step: Step, document: SourceDocument | None) -> Step:
    """A step whose document is as the revision has it now, after a commit of ours."""
    if document is None:
        return step
    return Step(
        step.identity,
        step.action,
        document.path,
        document.index,
        document.item,
        document.digest,
        normal(document.document),
        step.live,
        step.reason,
        step.resolved,
    )


def _refresh(kept: Kept, step: Step) -> None:
    """What is the same on both sides: where it is in Git may have changed, and what the server added."""
    entry = kept.inventory.get(step.identity)
    if entry is None or step.action is not Action.UNCHANGED:
        return
    place = (step.path, step.index, step.item)
    if entry.uid and entry.digest == step.digest and (entry.path, entry.index, entry.item) == place:
        return  # nothing to learn: by far the most
    base, uid = entry.base, (step.live or {}).get("metadata", {}).get("uid")
    if uid:
        base = Base.of(step.document, step.live)
    kept.inventory.put(
        msgspec.structs.replace(
            entry,
            uid=uid or entry.uid,
            path=step.path,
            index=step.index,
            item=step.item,
            digest=step.digest or entry.digest,
            base=base,
        )
    )
