"""One run of a rule: from its entries to its Targets, and to the report that its status shows.

Only a sweep that saw everything itself and whose machine kept up may conclude that something is gone. Two rules of one
namespace settle one after the other, so that a device which both find has one owner.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, cast

import msgspec
from msgspec import UNSET

from trimtab.client.protocol import Query
from trimtab.model.scheme import Untyped
from trimtab.runtime.progress import Progress, ProgressStatus
from trimtab.runtime.runs import Run
from trimtab.systems.discovery import probes
from trimtab.systems.discovery.addresses import written
from trimtab.systems.discovery.asking import Asker
from trimtab.systems.discovery.attempts import Attempts
from trimtab.systems.discovery.book import Book
from trimtab.systems.discovery.devices import Finding, group
from trimtab.systems.discovery.dressing import Dresser
from trimtab.systems.discovery.fading import Phase
from trimtab.systems.discovery.findings import Identified, Login, Outcome
from trimtab.systems.discovery.implementations import DnsName, Static
from trimtab.systems.discovery.kinds import (
    DiscoveryInfo,
    DiscoveryRule,
    EntryStatus,
    Evidence,
    Plan,
    Target,
    TargetConnectionProfileSpec,
    TargetCounts,
)
from trimtab.systems.discovery.kinds.rule import RELEASE_ANNOTATION, REPIN_ANNOTATION
from trimtab.systems.discovery.ledger import trimmed
from trimtab.systems.discovery.parting import Parting, counted, known_addresses
from trimtab.systems.discovery.plan import plan
from trimtab.systems.discovery.problems import plan_problems
from trimtab.systems.discovery.settings import Settings
from trimtab.systems.discovery.settle import RuleView, Settlement, settle
from trimtab.systems.discovery.sources import Place, Scope, resolved
from trimtab.systems.discovery.sweeping import Sweeping, Swept, signature
from trimtab.systems.discovery.targets import delete, owned, write
from trimtab.systems.discovery.telling import Teller
from trimtab.systems.discovery.tools import Identifiers, Tools

if TYPE_CHECKING:
    from trimtab.systems.discovery.identify.snmp import SnmpIdentifier

GOOD_NEWS = ("Discovered", "Returned")
MAX_ENTRIES = 512
ROUNDS = 3
"""How often a settling that meets another's write is done anew."""


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """What a run came to. `ok` is None when it says nothing of absence: Targets were written, none was missed."""

    ok: bool
    reason: str
    message: str
    counts: dict[str, int]
    plan: Plan
    entries: tuple[EntryStatus, ...]
    targets: TargetCounts
    overlap: str = ""
    held: str = ""
    poor: bool = False
    """It may not be trusted about what is gone, and is soon done again."""


class Outdated(Exception):  # noqa: N818 - it reads as what is wrong
    """The run cannot go on: addresses or questions are others than when it was cut off."""


class TooLong(Exception):  # noqa: N818 - it reads as what is wrong
    """The rule cannot be swept within its period."""


class RuleRun:
    """One run, begun in the status already."""

    def __init__(
        self, tools: Tools, settings: Settings, book: Book, teller: Teller, identifiers: Identifiers, run: Run
    ) -> None:
        self._tools, self._settings, self._book, self._teller = tools, settings, book, teller
        self._identifiers, self._run, self._rule = identifiers, run, settings.rule
        self._complaints: dict[str, str] = {}
        self._told: set[str] = set()
        self._dresser = Dresser(settings, self._complain)
        self._refused: dict[str, str] = {}
        self._overlaps: dict[str, str] = {}
        self._created = self._changed = 0

    async def run(self) -> Report:
        tools, rule = self._tools, self._rule
        resolve = tools.resolve if self._settings.static is None else None
        scope = await resolved(self._settings.entries, tools.client, rule.namespace, resolve)
        if self._settings.static is not None:
            return await self._listed(scope, self._settings.static)
        questions = probes.asked(self._settings.connections, self._question)
        rate = min(rule.spec.packets_per_second or tools.shared.packets_per_second, tools.shared.packets_per_second)
        costs = plan(len(scope.addresses), [q.probe for q in questions], rate, tools.shared.sockets)
        if wrong := plan_problems(costs, rule.spec.period):
            raise TooLong("; ".join(map(str, wrong)))
        await self._teller.tell(lambda status: status.replace(plan=costs))
        self._begin(signature(scope.addresses, questions))
        async with Progress(self._progress, tools.clock) as progress:
            swept = await Sweeping(
                addresses=scope.addresses,
                questions=questions,
                sweeper=tools.sweeper,
                asker=self._asker(),
                book=self._book,
                clock=tools.clock,
                progress=progress,
                settle=self._found_so_far,
                at_a_time=rule.spec.concurrent_scans,
                packets_per_second=rate,
            ).sweep()
        return await self._conclude(scope, swept, costs, questions)

    def _asker(self) -> Asker:
        window = self._rule.spec.lockout_window.seconds
        attempts = Attempts(self._book, self._tools.books, self._tools.clock, window)
        return Asker(
            self._settings, self._identifiers, self._book, attempts, self._tools.clock, repinned=self._repinned
        )

    def _begin(self, signed: str) -> None:
        """The ledger for this run. The one that it holds goes on when it is this run over the same questions."""
        ledger = self._book.ledger
        if ledger.run == self._run.id:
            if ledger.scope != signed:
                raise Outdated("what it sweeps has changed since it was cut off")
            return
        self._book.ledger = msgspec.structs.replace(
            ledger,
            run=self._run.id,
            scope=signed,
            seed=self._tools.chance.getrandbits(32),
            position=0,
            outcomes=b"",
            started=self._now.timestamp(),
        )

    async def _conclude(self, scope: Scope, swept: Swept, costs: Plan, questions: Sequence[probes.Asked]) -> Report:
        """Everything is asked: settle it whole, let go of what is gone, and count."""
        poor = swept.quality.poor
        answers = {scope.addresses.at(p): byte for p, byte in enumerate(swept.outcomes) if byte >= Outcome.OPEN}
        found = frozenset(finding.address for finding in swept.findings)
        earlier = frozenset(a for a, byte in answers.items() if byte == Outcome.IDENTIFIED) - found  # before a restart
        present = frozenset(answers) - found - earlier
        async with self._tools.turns.of(self._rule.namespace):
            settlement = await self._settle(swept.findings, complete=not swept.resumed and not poor, present=present)
            targets = owned(await self._targets(), self._rule)
            parting = Parting(
                self._tools,
                self._rule,
                self._book,
                self._run,
                scope=scope,
                present=present,
                found=found,
                seen=settlement.seen | {t.name for t in targets if not earlier.isdisjoint(known_addresses(t))},
                trusted=not poor,
                released=(self._rule.metadata.annotations or {}).get(RELEASE_ANNOTATION, ""),
                questions=questions,
            )
            for target in owned(await self._targets(), self._rule):
                if target.name in settlement.duplicates:
                    await delete(self._tools.client, target)
            held = await parting.part(owned(await self._targets(), self._rule))
            self._name_records(owned(await self._targets(), self._rule))
        await self._close_ledger(scope, swept.outcomes)
        counts = {outcome.name.lower(): n for outcome in Outcome if (n := swept.outcomes.count(outcome))}
        message = f"{swept.outcomes.count(Outcome.IDENTIFIED)} of {len(scope.addresses)} addresses identified"
        if poor:
            message = f"{message}; nothing is taken for gone, for {poor}"
        entries = tuple(_entry(scope, place, swept.outcomes) for place in scope.places)
        report = await self._report(
            "PoorSweep" if poor else "", message, {**counts, **parting.counts}, costs, entries, held
        )
        phases = msgspec.to_builtins(report.targets)
        self._tools.measures.swept(
            self._rule.namespace,
            self._rule.name,
            seconds=swept.quality.duration,
            packets=swept.quality.sent,
            lag=swept.quality.worst_lag,
        )
        every = {outcome.name.lower(): swept.outcomes.count(outcome) for outcome in Outcome}
        self._tools.measures.counted(self._rule.namespace, self._rule.name, every, phases)
        return report

    async def _listed(self, scope: Scope, static: Static) -> Report:
        """A rule that probes nothing: each entry is a Target, and goes with its entry."""
        findings = [
            Finding(
                address=address,
                profile="",
                secret="",
                identified=_unprobed(static, place, address),
                entry=place.entry.name,
            )
            for place in scope.places
            for address in _written(place)
        ]
        async with self._tools.turns.of(self._rule.namespace):
            settlement = await self._settle(findings, complete=True, present=frozenset())
            gone = []
            if scope.complete:
                gone = [t for t in owned(await self._targets(), self._rule) if t.name not in settlement.seen]
            for target in gone:
                await delete(self._tools.client, target)
        entries = tuple(
            EntryStatus(
                entry=place.entry.name,
                addresses=len(_written(place)),
                found=len(_written(place)),
                message=place.problem or UNSET,
            )
            for place in scope.places
        )
        await self._close_ledger(scope, bytes([Outcome.STATIC]) * len(scope.addresses))
        costs = plan(len(findings), [], self._tools.shared.packets_per_second, self._tools.shared.sockets)
        message = f"{len(findings)} Targets are written unprobed"
        return await self._report("", message, {"static": len(findings), "deleted": len(gone)}, costs, entries, "")

    async def _report(
        self,
        reason: str,
        message: str,
        counts: dict[str, int],
        costs: Plan,
        entries: tuple[EntryStatus, ...],
        held: str,
    ) -> Report:
        phases = counted(owned(await self._targets(), self._rule))
        if self._refused:
            name, why = next(iter(self._refused.items()))
            message = f"{message}; {len(self._refused)} Targets were refused, such as {name}: {why}"
        counts |= {"created": self._created, "changed": self._changed}
        return Report(
            ok=not reason and not self._refused,
            reason=reason or ("TargetsRefused" if self._refused else "Swept"),
            message=message,
            counts={label: count for label, count in counts.items() if count},
            plan=costs,
            entries=_folded(entries),
            targets=TargetCounts(ready=phases[Phase.READY], stale=phases[Phase.STALE], lost=phases[Phase.LOST]),
            overlap=self._overlap(),
            poor=bool(reason),
            held=held,
        )

    async def _found_so_far(self, findings: Sequence[Finding]) -> None:
        async with self._tools.turns.of(self._rule.namespace):
            await self._settle(findings, complete=False, present=frozenset())

    async def _settle(self, findings: Sequence[Finding], *, complete: bool, present: frozenset[str]) -> Settlement:
        """Decide and write, and again what met somebody else's write."""
        order = [connection.name for connection in self._settings.connections]
        devices = await asyncio.to_thread(group, findings, order)
        for _ in range(ROUNDS):
            targets = await self._targets()
            settlement = await asyncio.to_thread(  # it takes a while for thousands
                settle,
                devices,
                targets,
                _view(self._rule),
                await self._others(),
                complete=complete,
                present=present,
                now=self._now,
                name=self._dresser.name,
                make=self._dresser.make,
            )
            self._pass_on()
            written = await write(self._tools.client, self._rule, settlement.writes)
            self._created += len(written.created)
            self._changed += len(written.changed)
            self._refused |= written.refused
            self._tell(settlement, targets)
            if not written.again:
                break
        self._overlaps |= {overlap.target: overlap.rule for overlap in settlement.overlaps}
        return settlement

    def _tell(self, settlement: Settlement, targets: Sequence[Target]) -> None:
        by_name = {target.name: target for target in targets}
        for note in settlement.events:
            about = by_name.get(note.target, self._rule)
            text = note.message if note.target in by_name else f"{note.target}: {note.message}"
            say = self._tools.events.normal if note.reason in GOOD_NEWS else self._tools.events.warning
            say(about, note.reason, text)

    def _name_records(self, targets: Sequence[Target]) -> None:
        """Which addresses are one device: a refusal at one of them counts for all."""
        records = self._book.ledger.records
        for target in targets:
            for address in known_addresses(target):
                record = records.get(address)
                if record is not None and record.target != target.name:
                    records[address] = msgspec.structs.replace(record, target=target.name)

    def _question(self, login: Login, profile: TargetConnectionProfileSpec) -> tuple[bytes, Callable[[bytes], bool]]:
        return cast("SnmpIdentifier", self._identifiers["snmp"]).probe(login, profile)

    async def _targets(self) -> list[Target]:
        listed = await self._tools.client.list(Target, Query(namespace=self._rule.namespace))
        return [target for target in listed.items if not isinstance(target, Untyped)]

    async def _others(self) -> dict[str, RuleView]:
        listed = await self._tools.client.list(DiscoveryRule, Query(namespace=self._rule.namespace))
        rules = [rule for rule in listed.items if not isinstance(rule, Untyped)]
        return {rule.metadata.uid or "": _view(rule) for rule in rules}

    async def _close_ledger(self, scope: Scope, outcomes: bytes) -> None:
        """No sweep goes on. What nobody needs any more is forgotten."""
        window = self._rule.spec.lockout_window.seconds
        ledger = trimmed(self._book.ledger, scope.addresses.__contains__, self._now.timestamp(), window)
        self._book.ledger = msgspec.structs.replace(
            ledger, outcomes=outcomes, run="", seed=0, position=0, started=0, scope=scope.addresses.digest
        )
        await self._book.commit()

    async def _progress(self, progress: ProgressStatus) -> None:
        await self._teller.tell(lambda status: status.replace(progress=progress))

    def _repinned(self, address: str) -> bool:
        said = (self._rule.metadata.annotations or {}).get(REPIN_ANNOTATION, "")
        named = {part.strip() for part in said.split(",")}
        return "all" in named or address in named

    def _overlap(self) -> str:
        if not self._overlaps:
            return ""
        some = ", ".join(f"{target} (rule {rule})" for target, rule in sorted(self._overlaps.items())[:5])
        more = ", …" if len(self._overlaps) > 5 else ""
        return f"{len(self._overlaps)} devices belong to rules that go before this one: {some}{more}"

    def _complain(self, reason: str, message: str) -> None:
        """One for each reason is enough: a thousand devices with one fault are one fault."""
        self._complaints.setdefault(reason, message)

    def _pass_on(self) -> None:
        for reason in self._complaints.keys() - self._told:
            self._told.add(reason)
            self._tools.events.warning(self._rule, reason, self._complaints[reason])

    @property
    def _now(self) -> datetime:
        return self._tools.clock.now()


def _view(rule: DiscoveryRule) -> RuleView:
    return RuleView(
        name=rule.name,
        uid=rule.metadata.uid or "",
        priority=rule.spec.priority,
        created=rule.metadata.creation_timestamp or datetime.max.replace(tzinfo=UTC),
    )


def _entry(scope: Scope, place: Place, outcomes: bytes) -> EntryStatus:
    """Counted by runs of positions: an interval of an entry is one of the scope, or a part of it."""
    total = found = 0
    for interval in place.addresses.intervals:
        first = scope.addresses.position(written(interval.first, interval.version))
        if first is not None:
            total += interval.size
            found += outcomes.count(Outcome.IDENTIFIED, first, first + interval.size)
    return EntryStatus(
        entry=place.entry.name,
        addresses=total,
        found=found,
        not_found=total - found,
        message=place.problem or UNSET,
    )


def _folded(entries: tuple[EntryStatus, ...]) -> tuple[EntryStatus, ...]:
    """As many as a status holds: the rest in one line, but what failed goes first."""
    if len(entries) <= MAX_ENTRIES:
        return entries
    ordered = sorted(entries, key=lambda entry: not entry.message)
    kept, rest = ordered[: MAX_ENTRIES - 1], ordered[MAX_ENTRIES - 1 :]
    return (
        *kept,
        EntryStatus(
            entry=f"{len(rest)} more entries",
            addresses=sum(entry.addresses for entry in rest),
            found=sum(entry.found for entry in rest),
            not_found=sum(entry.not_found for entry in rest),
        ),
    )


def _written(place: Place) -> tuple[str, ...]:
    """The addresses of an entry that is not probed. A DNS name is its own: whoever connects asks for it then."""
    source = place.entry.source
    return (source.name,) if isinstance(source, DnsName) else tuple(place.addresses)


def _unprobed(static: Static, place: Place, address: str) -> Identified:
    host = place.hosts.get(address) or place.entry.host_name or ""
    info = DiscoveryInfo(provider=static.provider, version=static.version, hostname=host or UNSET)
    return Identified(info=info, evidence=Evidence())
