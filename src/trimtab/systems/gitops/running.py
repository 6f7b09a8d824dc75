"""One run of a sync: fetch, read, judge, look, plan, write to Git, apply, prune, tell. The parts are in `run`.

Guarantees
  - The whole revision is read and judged before the first write. With one problem in it nothing is written at all.
  - What is going to be made is in the inventory, and that in the status, before it is made: whoever goes on after a cut
    knows it. Acts may be repeated: an apply is what the document says, a deletion has a uid, a push has an expectation.
    What a push makes of the inventory is written down before it, and counts once the branch has that commit.
  - What the run applied or committed is the base of the next one, so that neither side takes it for a change of the other.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import aclosing

import msgspec

from trimtab.client.transport import Silent, Unreachable
from trimtab.model.errors import StatusError
from trimtab.model.logs import log
from trimtab.runtime.credentials import CredentialError
from trimtab.runtime.driver import said
from trimtab.runtime.election import NotLeading
from trimtab.runtime.git.errors import Moved, RemoteError
from trimtab.storage.blobs import BlobError
from trimtab.systems.gitops.inventory import InventoryError
from trimtab.systems.gitops.keeping import Kept
from trimtab.systems.gitops.kinds import GitSync
from trimtab.systems.gitops.looking import NotServed
from trimtab.systems.gitops.parsing import Identity
from trimtab.systems.gitops.planning import Plan
from trimtab.systems.gitops.reading import Contents, Snapshot
from trimtab.systems.gitops.run.asking import destination_of, git_repository, options_of
from trimtab.systems.gitops.run.checking import check
from trimtab.systems.gitops.run.doing import apply_plan, publish, send_files
from trimtab.systems.gitops.run.drafting import Drafter
from trimtab.systems.gitops.run.journal import Journal
from trimtab.systems.gitops.run.source import head_of, meanwhile, snapshot_of
from trimtab.systems.gitops.run.tools import Memory, Tools
from trimtab.systems.gitops.run.verdicts import Stop, path_missing
from trimtab.systems.gitops.run.writing import look_for_push, previewed, write_back
from trimtab.systems.gitops.telling import Verdict
from trimtab.systems.gitops.verifying import check_signer

PUSHES = 5
"""Times that a push is tried anew when others pushed in between."""


class Ran(msgspec.Struct, frozen=True):
    """What came of a run. `again`: it may go better by itself, with a back-off."""

    verdict: Verdict
    plan: Plan | None = None
    again: bool = False


class Running:
    """One run of one GitSync."""

    def __init__(self, tools: Tools, sync: GitSync, memory: Memory, trigger: str, *, stamp: bool = False) -> None:
        """`stamp` writes down when it ran, also when there was nothing to do."""
        self._tools, self._memory = tools, memory
        self._journal = Journal(tools, sync, trigger, stamp=stamp)
        self._plan: Plan | None = None
        self._at_work: Kept | None = None

    @property
    def sync(self) -> GitSync:
        return self._journal.sync

    async def run(self, *, everything: bool = True, changed: Iterable[Identity] = (), stale: bool = False) -> Ran:
        """Look at `everything`, or only at what Git or `changed` tells. `stale`: ask anew which kinds there are."""
        try:
            verdict = await self._run(everything, frozenset(changed), stale)
        except Stop as stop:
            verdict = await self._journal.failed(stop.verdict)
            return Ran(verdict, self._plan, again=not (verdict.stalled or verdict.patient))
        except CredentialError as error:
            return await self._failed("CredentialsMissing", str(error))
        except RemoteError as error:
            stalled = not error.again and not isinstance(error, Moved)
            return await self._failed(f"Git{type(error).__name__}", str(error), stalled=stalled)
        except (BlobError, InventoryError) as error:
            message = f"what this sync applied cannot be read, so nothing is deleted and nothing applied: {error}"
            return await self._failed("InventoryLost", message)
        except NotServed as error:
            return await self._failed("KindGone", str(error))
        except StatusError as error:
            if error.code == 409:
                raise  # the GitSync itself moved on: judged anew
            return await self._failed("ServerRefused", error.message)
        except (Unreachable, Silent) as error:
            self._memory.kept = None  # nobody knows how far it came: it is read again
            return await self._failed("ServerUnreachable", str(error))
        except NotLeading:
            raise
        except Exception as error:  # a mistake of ours: told where users look, and logged for who mends it
            log.exception("a run of a GitSync failed", object=f"{self.sync.namespace}/{self.sync.name}")
            self._memory.kept = self._memory.snapshot = None
            return await self._failed("Failed", f"unexpected {type(error).__name__}: {said(error)}")
        finally:
            self._tools.claims.release(self.sync)
        return Ran(verdict, self._plan, again=not (verdict.ok or verdict.stalled or verdict.patient))

    async def timed_out(self) -> Ran:
        """`run` was cut off, for it took too long. What it did stays and is known, so that the next one goes on from there."""
        message = f"not done within spec.timeout, {self.sync.spec.timeout}; it goes on"
        verdict = await self._journal.failed(Verdict(False, "Timeout", message), self._at_work)
        return Ran(verdict, self._plan, again=True)

    async def preview(self, snapshot: Snapshot, contents: Contents) -> Plan:
        """What a run would do with this revision. Nothing is written. Stop when it would do nothing, and why."""
        drafter = Drafter(self._tools, self.sync, options_of(self.sync), self._memory)
        check(snapshot, self.sync, self._tools, self._memory)
        kept = await self._kept()
        draft = await drafter.draft(snapshot, kept, contents, everything=True)
        found = await previewed(contents, snapshot, draft, kept, sync=self.sync, tools=self._tools)
        if found.write_back:
            await check_signer(self.sync, self._tools.credentials)
        applied = bool(self.sync.status and self.sync.status.last_applied_revision)
        if found.is_noop and snapshot.lacks_folder and not (applied or self.sync.spec.system_to_git):
            raise Stop(path_missing(snapshot.root, snapshot.commit, was_there=False))
        return found

    async def _run(self, everything: bool, changed: frozenset[Identity], stale: bool) -> Verdict:
        tools, memory, journal = self._tools, self._memory, self._journal
        options = options_of(self.sync)
        repository = await git_repository(tools.client, self.sync, self.sync.spec.repository)
        drafter = Drafter(tools, self.sync, options, memory)
        async with tools.mirrors.open(repository) as mirror, aclosing(drafter):
            if everything and memory.snapshot is not None:
                drafter.ahead(memory.snapshot, await self._kept())
            for number in range(PUSHES):
                async with meanwhile(tools.served.refresh if stale and not number else None):
                    journal.revision = await head_of(mirror, self.sync)
                kept = await self._kept()
                await look_for_push(mirror, kept, journal=journal)
                snapshot = await snapshot_of(mirror, journal.revision, self.sync, tools, memory)
                check(snapshot, self.sync, tools, memory)
                draft = await drafter.draft(
                    snapshot, kept, mirror, everything=everything, changed=changed | memory.refused
                )
                self._plan = draft.plan
                if not draft.plan.write_back:
                    break
                try:
                    await journal.begin(draft.plan, kept)
                    snapshot, draft = await write_back(
                        mirror, snapshot, draft, kept, tools=tools, memory=memory, journal=journal
                    )
                except Moved:
                    continue  # somebody was faster: fetch, and merge with what they did
                break
            else:
                raise Stop(Verdict(False, "PushRace", f"others pushed {PUSHES} times in a row; it is tried again"))
            acts = await apply_plan(draft.plan, snapshot, kept, tools=tools, journal=journal)
            if not acts.failures:
                failed = await send_files(mirror, draft.plan, kept, tools=tools, sync=self.sync)
                failed = failed or await publish(draft.plan, snapshot, kept, tools=tools, journal=journal)
                acts = msgspec.structs.replace(acts, failures=tuple(failed))
            self._plan = draft.plan
            memory.refused = frozenset(refusal.identity for refusal in draft.plan.refused)
            if everything:
                memory.looked_at = tools.clock.monotonic()
            return await journal.finish(draft.plan, snapshot, kept, acts, draft.conflicts)

    async def _kept(self) -> Kept:
        """The inventory that the status names; of another process's last run, perhaps."""
        summary = self.sync.status.inventory if self.sync.status else None
        known = summary.digest if summary else ""
        if self._memory.kept is None or self._memory.kept.digest != known:
            self._memory.kept = await Kept.load(self._tools.blobs, self.sync)
        self._memory.kept.export_to(destination_of(self.sync))
        self._at_work = self._memory.kept
        return self._memory.kept

    async def _failed(self, reason: str, message: str, *, stalled: bool = False) -> Ran:
        verdict = await self._journal.failed(Verdict(False, reason, message, stalled=stalled))
        return Ran(verdict, self._plan, again=True)


__all__ = ["Memory", "Ran", "Running", "Stop", "Tools"]
