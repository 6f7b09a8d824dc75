"""Letting go: what becomes of a rule's Targets that a sweep did not see. `fading` decides, this carries it out.

Nothing is taken for gone by a sweep that cannot be trusted, nor without a probe of all known addresses right before,
nor when too many would go at once: then the rule has the condition MassLoss until somebody releases it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, cast

import msgspec
from msgspec import UNSET

from trimtab.model.clock import format_time
from trimtab.model.errors import StatusError
from trimtab.runtime.runs import Run
from trimtab.runtime.status import ready, write_status
from trimtab.systems.discovery.findings import Outcome
from trimtab.systems.discovery.kinds import DiscoveryRule, Target, TargetStatus
from trimtab.systems.discovery.kinds.rule import RELEASE_ANNOTATION
from trimtab.systems.discovery.ledger.book import Book
from trimtab.systems.discovery.ledger.records import Misses
from trimtab.systems.discovery.scope.probes import Asked
from trimtab.systems.discovery.scope.sources import Scope
from trimtab.systems.discovery.sweep import probe_once
from trimtab.systems.discovery.targets import fading
from trimtab.systems.discovery.targets.fading import Missed, Phase, Seen
from trimtab.systems.discovery.targets.matching import addresses_of
from trimtab.systems.discovery.targets.writing import delete
from trimtab.systems.discovery.tools import Tools


class Step(msgspec.Struct, frozen=True):
    """A Target that would go one phase on."""

    target: Target
    before: Phase
    after: Phase
    why: str


class Parting:
    """After one sweep. `found` are the addresses of devices that said what they are, `present` those where something
    answered and did not, `unsure` those of which our own side cannot tell, be it for a name that was not resolved; `seen`
    are the Targets that were found.
    `last_swept` is when the last sweep before that can be trusted had ended, 0 where nobody knows."""

    def __init__(
        self,
        tools: Tools,
        rule: DiscoveryRule,
        book: Book,
        run: Run,
        *,
        scope: Scope,
        present: frozenset[str],
        found: frozenset[str],
        seen: frozenset[str],
        unsure: frozenset[str],
        trusted: bool,
        last_swept: float,
        questions: Sequence[Asked],
        packets_per_second: float,
        released: str,
    ) -> None:
        self._tools, self._rule, self._book, self._run = tools, rule, book, run
        self._scope, self._present, self._seen, self._trusted = scope, present, seen, trusted
        self._found, self._unsure, self._questions, self._released = found, unsure, questions, released
        self._cap, self._last_swept = packets_per_second, last_swept
        self._now = tools.clock.now().timestamp()
        self.counts = {"stale": 0, "lost": 0, "deleted": 0}

    async def part(self, targets: Sequence[Target]) -> str:
        """Carry out what the sweep means for them. Returns why a loss is held back, if one is."""
        misses = dict(self._book.ledger.misses)
        names = {target.name for target in targets}
        self._book.ledger = msgspec.structs.replace(
            self._book.ledger, misses={name: missed for name, missed in misses.items() if name in names}
        )
        steps = [step for target in targets if (step := self._step(target)) is not None]
        steps = await self._confirmed(steps)
        going = [step for step in steps if step.after in (Phase.LOST, Phase.DELETED)]
        held = ""
        if fading.held(len(targets), len(going), self._rule.spec.fading.max_loss_percent):
            held = self._held(going, len(targets))
        elif self._trusted:  # a release of what has come back meanwhile is void
            self._book.ledger = msgspec.structs.replace(self._book.ledger, held="")
        kept = {step.target.name for step in going} if held else set()
        for step in steps:
            if step.target.name not in kept:
                await self._try(step)
        return held

    def _step(self, target: Target) -> Step | None:
        """What this sweep alone means for a Target; None when nothing changes."""
        addresses = addresses_of(target)
        phase = phase_of(target)
        if target.name in self._seen or any(address in self._present for address in addresses):
            self._book.ledger.misses.pop(target.name, None)
            return self._refused(target, addresses) if target.name not in self._seen else None
        if not self._trusted or not self._unsure.isdisjoint(addresses):
            return None
        if not self._in_scope(target) and not self._came_by_itself(addresses):
            return Step(target, phase, Phase.DELETED, "its addresses are in no entry of the rule any more")
        before = self._book.ledger.misses.get(target.name, Misses(0, self._now, self._last_swept))
        missed = self._book.ledger.misses[target.name] = msgspec.structs.replace(before, count=before.count + 1)
        event = Missed(missed.count, self._now - missed.since)
        confirmed = fading.needs_confirmation(phase, event, self._rule.spec.fading)
        after = fading.next(phase, msgspec.structs.replace(event, confirmed=confirmed), self._rule.spec.fading)
        return None if after is phase else Step(target, phase, after, _missed(missed.count))

    def _refused(self, target: Target, addresses: Sequence[str]) -> Step | None:
        """It is there, and did not say what it is: a Step to the phase where it is, with the reason."""
        records = [record for a in addresses if (record := self._book.ledger.records.get(a)) is not None]
        told = next((record for record in records if record.outcome >= Outcome.OPEN), None)
        why = told.detail if told is not None and told.detail else "it answers, and does not say what it is"
        return Step(target, phase_of(target), fading.next(phase_of(target), Seen(), self._rule.spec.fading), why)

    async def _confirmed(self, steps: Sequence[Step]) -> list[Step]:
        """Without those that a last probe finds."""
        doubtful = [s for s in steps if s.after in (Phase.LOST, Phase.DELETED) and self._in_scope(s.target)]
        known = {address for step in doubtful for address in addresses_of(step.target)}
        asked = sorted(known - self._found)  # there another device answers
        names = {step.target.name for step in doubtful}
        if not asked:
            return list(steps)
        probes = [question.probe for question in self._questions]
        outcomes: Mapping[str, Outcome] = await probe_once(
            self._tools.sweeper, asked, probes, packets_per_second=self._cap
        )
        sure = []
        for step in steps:
            answers = [outcomes.get(address, Outcome.SILENT) for address in addresses_of(step.target)]
            if step.target.name in names and any(answer.seen or answer is Outcome.NOT_SENT for answer in answers):
                self._book.ledger.misses.pop(step.target.name, None)
                continue
            sure.append(step)
        return sure

    def _held(self, going: Sequence[Step], total: int) -> str:
        if self._released and self._released == self._book.ledger.held:
            self._book.ledger = msgspec.structs.replace(self._book.ledger, held="")
            return ""
        run = self._book.ledger.held or self._run.id
        self._book.ledger = msgspec.structs.replace(self._book.ledger, held=run)
        names = ", ".join(step.target.name for step in going[:5])
        message = (
            f"{len(going)} of {total} Targets would be lost or deleted at once ({names}"
            f"{', …' if len(going) > 5 else ''}), more than {self._rule.spec.fading.max_loss_percent} %; none is. "
            f"If they are really gone: trimtab discovery release {self._rule.name} -n {self._rule.namespace}, "
            f"or annotate the rule with {RELEASE_ANNOTATION}={run}"
        )
        self._tools.events.warning(self._rule, "MassLoss", message)
        return message

    async def _try(self, step: Step) -> None:
        """A Target that somebody wrote or deleted meanwhile is judged again after the next sweep."""
        try:
            await self._take(step)
        except StatusError as error:
            if error.code not in (404, 409):
                raise

    async def _take(self, step: Step) -> None:
        target, events = step.target, self._tools.events
        if step.after is Phase.DELETED:
            if await delete(self._tools.client, target):
                self._book.ledger.misses.pop(target.name, None)
                self.counts["deleted"] += 1
                events.normal(self._rule, "TargetDeleted", f"Target {target.name} was deleted: {step.why}")
            return
        status = target.status or TargetStatus()
        clock, generation = self._tools.clock, target.metadata.generation
        seen = self._book.ledger.misses.get(target.name)
        if seen is None:
            conditions = ready(status.conditions, clock, generation, False, "NotIdentified", step.why)
            changed = status.replace(conditions=conditions, phase="Ready", last_seen=UNSET)
        else:
            name = cast("Literal['Stale', 'Lost']", step.after.value)
            conditions = ready(status.conditions, clock, generation, False, name, step.why)
            last = format_time(clock.now().fromtimestamp(seen.seen or seen.since, tz=clock.now().tzinfo))
            changed = status.replace(conditions=conditions, phase=name, last_seen=last)
            self.counts[name.lower()] += 1
            events.warning(target, f"Target{name}", f"{name}: {step.why}")
        await write_status(self._tools.client, target, changed)

    def _came_by_itself(self, addresses: Sequence[str]) -> bool:
        """Whether it was found by a source that comes and goes, as Pods do: then it fades as if it did not answer."""
        records = self._book.ledger.records
        return self._scope.follows and any(a in records and records[a].followed for a in addresses)

    def _in_scope(self, target: Target) -> bool:
        return any(address in self._scope.addresses for address in addresses_of(target))


def _missed(sweeps: int) -> str:
    return f"no answer in {sweeps} sweeps" if sweeps > 1 else "no answer in the last sweep"


def phase_of(target: Target) -> Phase:
    return Phase(target.status.phase) if target.status and target.status.phase else Phase.READY


def counted(targets: Iterable[Target]) -> dict[Phase, int]:
    """How many are in each phase."""
    found = dict.fromkeys((Phase.READY, Phase.STALE, Phase.LOST), 0)
    for target in targets:
        found[phase_of(target)] += 1
    return found
