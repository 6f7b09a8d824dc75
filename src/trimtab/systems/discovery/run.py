"""One run of a rule: from its entries to its Targets, and to the report that its status shows.

Only a sweep that saw everything itself and whose machine kept up may conclude that something is gone. Two rules of one
namespace settle one after the other, so that a device which both find has one owner.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, cast

import msgspec
from msgspec import UNSET

from trimtab.model.clock import parse_time
from trimtab.model.errors import StatusError
from trimtab.runtime.objects import with_metadata
from trimtab.runtime.progress import Progress, ProgressStatus
from trimtab.runtime.runs import Run
from trimtab.systems.discovery.asking import Asker
from trimtab.systems.discovery.findings import Identified, Login, Outcome
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
from trimtab.systems.discovery.ledger.attempts import Attempts
from trimtab.systems.discovery.ledger.book import Book
from trimtab.systems.discovery.ledger.records import trimmed
from trimtab.systems.discovery.problems import plan_problems
from trimtab.systems.discovery.report import Report, entries_of, listed, outcomes_of
from trimtab.systems.discovery.scope import probes
from trimtab.systems.discovery.scope.implementations import DnsName, Static
from trimtab.systems.discovery.scope.plan import plan
from trimtab.systems.discovery.scope.sources import Place, Scope, resolved
from trimtab.systems.discovery.settings import Settings
from trimtab.systems.discovery.sweeping import Sweeping, Swept, signature
from trimtab.systems.discovery.targets.devices import Finding
from trimtab.systems.discovery.targets.fading import Phase
from trimtab.systems.discovery.targets.matching import addresses_of
from trimtab.systems.discovery.targets.parting import Parting, counted
from trimtab.systems.discovery.targets.settler import Settler
from trimtab.systems.discovery.targets.writing import delete
from trimtab.systems.discovery.telling import Teller
from trimtab.systems.discovery.tools import Identifiers, Tools

if TYPE_CHECKING:
    from trimtab.systems.discovery.identify.snmp import SnmpIdentifier


POOR = "PoorSweep"
UNSURE = (Outcome.UNPROBED, Outcome.NOT_SENT, Outcome.NOT_RESOLVED)
"""These say nothing of the device: our own side failed."""


class Outdated(Exception):  # noqa: N818 - it reads as what is wrong
    """The run cannot go on: addresses or questions are others than when it was cut off."""


class TooLong(Exception):  # noqa: N818 - it reads as what is wrong
    """The rule cannot be swept within its period."""


class RuleRun:
    """One run, begun in the status already."""

    def __init__(
        self,
        tools: Tools,
        settings: Settings,
        book: Book,
        teller: Teller,
        identifiers: Identifiers,
        run: Run,
        closing: asyncio.Event,
    ) -> None:
        self._tools, self._settings, self._book, self._teller = tools, settings, book, teller
        self._identifiers, self._run, self._rule, self._closing = identifiers, run, settings.rule, closing
        self._settler = Settler(tools, settings, self._repinned)

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
        if any(not probes.is_community(c) for c in self._settings.connections):
            await self._book.commit()  # whoever finds this run cut off knows that credentials may have been sent
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
                closing=self._closing,
            ).sweep()
        return await self._conclude(scope, swept, costs, questions)

    def _asker(self) -> Asker:
        window = self._rule.spec.lockout_window.seconds
        attempts = Attempts(self._book, self._tools.books, self._tools.clock, window)
        return Asker(
            self._settings, self._identifiers, self._book, attempts, self._tools.clock, repinned=self._repinned
        )

    def _begin(self, signed: str) -> None:
        """The ledger for this run. The one that it holds goes on when it is this run over the same questions. What is not
        reached keeps the outcome of the last run that came to its end."""
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
            earlier=ledger.earlier if ledger.run else ledger.outcomes,
            earlier_scope=ledger.earlier_scope if ledger.run else ledger.scope,
            orderly=False,
        )

    async def _conclude(self, scope: Scope, swept: Swept, costs: Plan, questions: Sequence[probes.Asked]) -> Report:
        """Everything is asked: settle it whole, let go of what is gone, and count."""
        poor = swept.quality.poor
        answers = {scope.addresses.at(p): byte for p, byte in enumerate(swept.outcomes) if byte >= Outcome.OPEN}
        found = frozenset(finding.address for finding in swept.findings)
        earlier = frozenset(a for a, byte in answers.items() if byte == Outcome.IDENTIFIED) - found  # before a restart
        present = frozenset(answers) - found - earlier
        complete = not swept.resumed and not poor
        async with self._tools.turns.of(self._rule.namespace):
            unasked = _unasked(scope, await self._settler.targets())
            settlement = await self._settler.settle(swept.findings, complete=complete, present=present | unasked)
            targets = await self._settler.targets()
            for target in targets:
                if target.name in settlement.duplicates:
                    await self._delete(target, "it is a device that has another Target")
            parting = Parting(
                self._tools,
                self._rule,
                self._book,
                self._run,
                scope=scope,
                present=present,
                found=found,
                seen=settlement.seen | {t.name for t in targets if not earlier.isdisjoint(addresses_of(t))},
                unsure=unasked | {scope.addresses.at(p) for p, byte in enumerate(swept.outcomes) if byte in UNSURE},
                trusted=not poor,
                last_swept=await self._last_swept(),
                released=(self._rule.metadata.annotations or {}).get(RELEASE_ANNOTATION, ""),
                questions=questions,
                packets_per_second=costs.packets_per_second,
            )
            held = await parting.part([target for target in targets if target.name not in settlement.duplicates])
            self._name_records(scope, await self._settler.targets())
        await self._close_ledger(scope, swept.outcomes)
        if not poor:  # a new key is a Target's only when nobody else can have the old one
            await self._use_up(RELEASE_ANNOTATION, *([REPIN_ANNOTATION] if complete else []))
        counts = outcomes_of(swept.outcomes)
        message = f"{swept.outcomes.count(Outcome.IDENTIFIED)} of {len(scope.addresses)} addresses identified"
        if poor:
            message = f"{message}; nothing is taken for gone, for {poor}"
        report = await self._report(
            POOR if poor else "",
            message,
            {**counts, **parting.counts},
            costs,
            entries_of(scope, swept.outcomes),
            held,
        )
        place = (self._rule.namespace, self._rule.name)
        quality = swept.quality
        self._tools.measures.swept(*place, seconds=quality.duration, packets=quality.sent, lag=quality.worst_lag)
        self._tools.measures.counted(*place, counts, msgspec.to_builtins(report.targets))
        return report

    async def _last_swept(self) -> float:
        """When the last run before this one that saw everything had ended; 0 where nobody knows."""
        rule = await self._teller.tell(lambda status: status)
        history = (rule.status.history if rule.status else UNSET) or ()
        ends = (run.finished for run in history if run.outcome == "Succeeded" and run.reason != POOR)
        return next((parse_time(end).timestamp() for end in ends if end), 0.0)

    async def _listed(self, scope: Scope, static: Static) -> Report:
        """A rule that probes nothing: each entry is a Target, and goes with its entry."""
        places = [(place, _written(place)) for place in scope.places]
        findings = [
            Finding(address=address, profile="", secret="", identified=_unprobed(static, place, address))
            for place, addresses in places
            for address in addresses
        ]
        async with self._tools.turns.of(self._rule.namespace):
            settlement = await self._settler.settle(findings, complete=True, present=frozenset())
            gone = [t for t in await self._settler.targets() if t.name not in settlement.seen] if scope.complete else []
            for target in gone:
                await self._delete(target, "it is in no entry of the rule any more")
        await self._close_ledger(scope, bytes([Outcome.STATIC]) * len(scope.addresses))
        costs = plan(len(findings), [], self._tools.shared.packets_per_second, self._tools.shared.sockets)
        message = f"{len(findings)} Targets are written unprobed"
        return await self._report(
            "", message, {"static": len(findings), "deleted": len(gone)}, costs, listed(places), ""
        )

    async def _report(
        self,
        reason: str,
        message: str,
        counts: dict[str, int],
        costs: Plan,
        entries: tuple[EntryStatus, ...],
        held: str,
    ) -> Report:
        phases, refused = counted(await self._settler.targets()), self._settler.refused
        if refused:
            name, why = next(iter(refused.items()))
            message = f"{message}; {len(refused)} Targets could not be written, such as {name}: {why}"
        counts |= {"created": self._settler.created, "changed": self._settler.changed}
        return Report(
            ok=not reason and not refused,
            reason=reason or ("TargetsNotWritten" if refused else "Swept"),
            message=message,
            counts={label: count for label, count in counts.items() if count},
            plan=costs,
            entries=entries,
            targets=TargetCounts(ready=phases[Phase.READY], stale=phases[Phase.STALE], lost=phases[Phase.LOST]),
            overlap=self._settler.overlap,
            poor=bool(reason),
            held=held,
        )

    async def _found_so_far(self, findings: Sequence[Finding]) -> None:
        async with self._tools.turns.of(self._rule.namespace):
            await self._settler.settle(findings, complete=False, present=frozenset())

    async def _delete(self, target: Target, why: str) -> None:
        if await delete(self._tools.client, target):
            self._tools.events.normal(self._rule, "TargetDeleted", f"Target {target.name} was deleted: {why}")

    def _name_records(self, scope: Scope, targets: Sequence[Target]) -> None:
        """Which addresses are one device: a refusal at one of them counts for all. And which come and go by themselves."""
        records = self._book.ledger.records
        names = {target.name for target in targets}
        for address, record in records.items():
            if record.target and record.target not in names:
                records[address] = msgspec.structs.replace(record, target="")
        for target in targets:
            for address in addresses_of(target):
                held = records.get(address)
                if held is not None and address in scope.addresses:
                    followed = scope.follows and scope.followed(address)
                    if (held.target, held.followed) != (target.name, followed):
                        records[address] = msgspec.structs.replace(held, target=target.name, followed=followed)

    def _question(self, login: Login, profile: TargetConnectionProfileSpec) -> tuple[bytes, Callable[[bytes], bool]]:
        return cast("SnmpIdentifier", self._identifiers["snmp"]).probe(login, profile)

    async def _close_ledger(self, scope: Scope, outcomes: bytes) -> None:
        """No sweep goes on. What nobody needs any more is forgotten."""
        window = self._rule.spec.lockout_window.seconds
        ledger = trimmed(self._book.ledger, scope.addresses.__contains__, self._tools.clock.now().timestamp(), window)
        self._book.ledger = msgspec.structs.replace(
            ledger,
            outcomes=outcomes,
            earlier=b"",
            earlier_scope="",
            run="",
            seed=0,
            position=0,
            scope=scope.addresses.digest,
            settings=self._settings.digest,
        )
        await self._book.commit()

    async def _progress(self, progress: ProgressStatus) -> None:
        await self._teller.tell(lambda status: status.replace(progress=progress))

    async def _use_up(self, *annotations: str) -> None:
        """What was asked of this run counts for no other one."""
        held = self._rule.metadata.annotations or {}
        if not any(each in held for each in annotations):
            return
        rule = await self._tools.client.live.get(DiscoveryRule, self._rule.name, self._rule.namespace)
        left = {
            key: value
            for key, value in (rule.metadata.annotations or {}).items()
            if key not in annotations or value != held.get(key)
        }
        with contextlib.suppress(StatusError):  # somebody writes at the same time: the next run tries again
            await self._tools.client.patch(rule, with_metadata(rule, annotations=left))

    def _repinned(self, address: str) -> bool:
        said = (self._rule.metadata.annotations or {}).get(REPIN_ANNOTATION, "")
        named = {part.strip() for part in said.split(",")}
        return "all" in named or address in named


def _unasked(scope: Scope, targets: Sequence[Target]) -> frozenset[str]:
    """Addresses of Targets that this run does not have, where it cannot tell why: a name or a Service was not resolved,
    and they may be its addresses."""
    if scope.complete:
        return frozenset()
    return frozenset(a for target in targets for a in addresses_of(target) if a not in scope.addresses)


def _written(place: Place) -> tuple[str, ...]:
    """The addresses of an entry that is not probed. A DNS name is its own: whoever connects asks for it then."""
    source = place.entry.source
    return (source.name,) if isinstance(source, DnsName) else tuple(place.addresses)


def _unprobed(static: Static, place: Place, address: str) -> Identified:
    host = place.hosts.get(address) or place.entry.host_name or ""
    info = DiscoveryInfo(provider=static.provider, version=static.version, hostname=host or UNSET)
    return Identified(info=info, evidence=Evidence())
