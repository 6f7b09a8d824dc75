"""From the system to Git: what changed there is committed and pushed, and the revision that it makes is read."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Container, Iterable
from typing import TYPE_CHECKING

import msgspec
from msgspec import UnsetType

from trimtab.model.errors import StatusError
from trimtab.model.kubernetes import Namespace
from trimtab.runtime.git.errors import Moved, NoSuchRef
from trimtab.systems.gitops import artifacts, elsewhere, exporting
from trimtab.systems.gitops.inventory import Inventory
from trimtab.systems.gitops.keeping import Kept
from trimtab.systems.gitops.kinds import GitSync
from trimtab.systems.gitops.knowing import Knowledge
from trimtab.systems.gitops.parsing import Identity
from trimtab.systems.gitops.planning import FileEdit, Plan, Refusal
from trimtab.systems.gitops.reading import Contents, Snapshot, normal_root
from trimtab.systems.gitops.run.asking import destination_of, destination_repository
from trimtab.systems.gitops.run.drafting import Draft
from trimtab.systems.gitops.run.journal import Journal
from trimtab.systems.gitops.run.source import check_branch
from trimtab.systems.gitops.run.tools import Memory, Tools
from trimtab.systems.gitops.run.verdicts import Stop, several
from trimtab.systems.gitops.telling import Verdict
from trimtab.systems.gitops.verifying import signer_of

if TYPE_CHECKING:
    from trimtab.runtime.git.mirror import Mirror


async def write_back(
    mirror: Mirror, snapshot: Snapshot, draft: Draft, kept: Kept, *, tools: Tools, memory: Memory, journal: Journal
) -> tuple[Snapshot, Draft]:
    """The revision as it is then, and the draft as it came out. Moved when somebody was faster: nothing was pushed; Stop
    when it cannot be written to; RemoteError."""
    sync = journal.sync
    if any(edit.action == "delete" for edit in draft.plan.write_back):
        await _check_namespace(sync, tools)
    signer = await signer_of(sync, tools.credentials)
    by = exporting.By(
        committer=sync.spec.committer, sign=signer, sync=f"{sync.namespace}/{sync.name}", clock=tools.clock
    )
    async with _destination(mirror, sync, tools) as target:
        made = await exporting.commit(
            target,
            snapshot,
            draft.plan.write_back,
            by,
            knowledge=tools.knowledge,
            client=tools.actors.of(sync),
            raw=draft.raw,
            exports=kept.exports if kept.destination else None,
        )
        after = await _after(mirror, snapshot, made, sync, tools) if made.commit and not kept.destination else snapshot
        inventory = kept.inventory.copy()
        if after is not snapshot:
            _record(inventory, made.written, draft.plan, after)
            artifacts.remember(inventory, made.written, made.files, after, tools.knowledge)
            if sync.spec.git_to_system:
                _mark_new(inventory, made.written, tools.knowledge)
            await journal.pushing(made.commit, kept, inventory)
        if made.commit:
            await _push(target, made, "spec.destination.revision" if kept.destination else "spec.revision")
    if after is not snapshot:
        kept.pushed(inventory)
    if made.skipped:
        told = "; ".join(f"{refusal.path}: {refusal.reason}" for refusal in made.skipped[:5])
        tools.events.warning(sync, "NotWritten", told[:900])
    draft = _came_out(draft, made)
    if made.commit:
        note = f"{several(len(made.written))} written to {target.branch} as {made.commit[:12]}"
        tools.events.normal(sync, "Pushed", note)
        await journal.pushed(made.commit, moved=not kept.destination)
    if kept.destination:
        elsewhere.remember(kept.exports, made.written, draft.raw, tools.knowledge)
        changed = [edit for edit in made.written if edit.action != "delete"]
        _record(kept.inventory, changed, draft.plan, snapshot)  # that they differ from the source is known from now on
    elif made.commit:
        memory.snapshot = after
        memory.judged = frozenset({*memory.judged, *(d.digest for d in after.parsed.documents)})
    return after, draft


async def look_for_push(mirror: Mirror, kept: Kept, *, journal: Journal) -> None:
    """A run was cut off while it pushed. When the branch has its commit, then what that wrote is known, and nobody takes it
    for a change of others. BlobError; InventoryError."""
    if kept.pushing is None:
        return
    commit, head = kept.pushing.commit, journal.revision
    try:
        is_there = bool(head) and await mirror.is_ancestor(commit, head)
    except NoSuchRef:  # only the one that was cut off had it
        is_there = False
    if is_there:
        await kept.arrived()
        await journal.pushed(commit, moved=False)
    else:
        kept.lost()


async def previewed(
    contents: Contents, snapshot: Snapshot, draft: Draft, kept: Kept, sync: GitSync, tools: Tools
) -> Plan:
    """The plan as it would come out, if this was the revision. Nothing is written. Stop; RemoteError."""
    if not draft.plan.write_back:
        return draft.plan
    if any(edit.action == "delete" for edit in draft.plan.write_back):
        await _check_namespace(sync, tools)
    async with _destination(contents, sync, tools) as target:
        prepared = await exporting.prepare(
            target,
            snapshot,
            draft.plan.write_back,
            knowledge=tools.knowledge,
            raw=draft.raw,
            exports=kept.exports if kept.destination else None,
        )
    written = {edit.identity for edit in prepared.edits if edit.path in prepared.changes or edit.files}
    return _left_out(draft.plan, written, prepared.skipped)


async def _check_namespace(sync: GitSync, tools: Tools) -> None:
    """Stop when all of the namespace goes, and the sync with it: nobody meant that for Git."""
    try:
        namespace = await tools.actors.own.get(Namespace, sync.namespace)
    except StatusError as error:
        if error.code != 403:  # who may not look goes on
            raise
        return
    if namespace.metadata.deletion_timestamp:
        message = f"namespace {sync.namespace} is being deleted: nothing is taken out of Git for that"
        raise Stop(Verdict(False, "NamespaceDeleting", message, patient=True))


async def _after(
    mirror: Mirror, snapshot: Snapshot, made: exporting.Committed, sync: GitSync, tools: Tools
) -> Snapshot:
    """The revision that our commit makes."""
    before = snapshot if snapshot.commit else None
    return await tools.reader.read(mirror, made.commit, snapshot.root, sync.namespace, before)


async def _push(target: exporting.Target, made: exporting.Committed, field: str) -> None:
    try:
        await exporting.push(target.mirror, made.commit, target.branch, made.parent or None)
    except Moved:
        await check_branch(target.mirror, target.branch, field)
        raise


def _mark_new(inventory: Inventory, edits: Iterable[FileEdit], knowledge: Knowledge) -> None:
    """What is new in Git and keeps a lineage has that only later: by this run, or whichever comes that far."""
    for edit in edits:
        entry = inventory.get(edit.identity) if edit.action == "create" else None
        if entry is not None and knowledge.lineage_key(entry.version, edit.identity.kind):
            inventory.put(msgspec.structs.replace(entry, unowned=True))


def _record(inventory: Inventory, edits: Iterable[FileEdit], plan: Plan, snapshot: Snapshot) -> None:
    """What is applied, too, is the same on both sides when it is: before that, what Git changed would count as known."""
    applied = {step.identity for step in plan.applies}
    exporting.record(inventory, [edit for edit in edits if edit.identity not in applied], snapshot.parsed)


def _came_out(draft: Draft, made: exporting.Committed) -> Draft:
    written = {edit.identity for edit in made.written if made.commit}
    return msgspec.structs.replace(draft, plan=_left_out(draft.plan, written, made.skipped))


def _left_out(plan: Plan, written: Container[Identity], skipped: tuple[Refusal, ...]) -> Plan:
    """What Git did not get is refused. It is not applied either: that would undo the change that Git does not have."""
    left = {refusal.identity for refusal in skipped}
    return msgspec.structs.replace(
        plan,
        update=tuple(step for step in plan.update if step.identity not in left),
        adopt=tuple(step for step in plan.adopt if step.identity not in left),
        files=tuple(step for step in plan.files if step.identity not in left),
        write_back=tuple(edit for edit in plan.write_back if edit.identity in written),
        refused=(*plan.refused, *skipped),
    )


@contextlib.asynccontextmanager
async def _destination(source: Contents, sync: GitSync, tools: Tools) -> AsyncIterator[exporting.Target]:
    """Where changes of the system go: back to where the documents come from, unless the GitSync names another place."""
    from trimtab.runtime.git.mirror import Mirror

    spec, to = sync.spec, sync.spec.destination
    if isinstance(to, UnsetType) or not destination_of(sync):
        yield exporting.Target(source, spec.revision, normal_root(spec.path))
        return
    if to.repository == spec.repository and isinstance(source, Mirror):
        yield exporting.Target(source, to.revision, normal_root(to.path))
        return
    repository = await destination_repository(tools.client, sync, to)
    async with tools.mirrors.open(repository) as other:
        yield exporting.Target(other, to.revision, normal_root(to.path))
