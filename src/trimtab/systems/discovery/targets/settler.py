"""Settling, with its effects: what was found becomes Targets in the API, once for each round of writes.

`settle` decides, purely; `writing` writes; this brings both together, and again what met somebody else's write. Whoever
calls it has the turn of the namespace.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from datetime import UTC, datetime

from trimtab.client.protocol import Query
from trimtab.model.scheme import Untyped
from trimtab.systems.discovery.kinds import DiscoveryRule, Target
from trimtab.systems.discovery.settings import Settings
from trimtab.systems.discovery.targets.devices import Finding, group
from trimtab.systems.discovery.targets.dressing import Dresser
from trimtab.systems.discovery.targets.settle import RuleView, Settlement, settle
from trimtab.systems.discovery.targets.writing import owned, write
from trimtab.systems.discovery.tools import Tools

GOOD_NEWS = ("Discovered", "Returned")
ROUNDS = 3
"""How often a settling that meets another's write is done anew."""


class Settler:
    """For one run. `repinned` tells the addresses where another key is accepted. `created` and `changed` count Targets;
    `refused` says which could not be written, and why."""

    def __init__(self, tools: Tools, settings: Settings, repinned: Callable[[str], bool]) -> None:
        self._tools, self._settings, self._rule, self._repinned = tools, settings, settings.rule, repinned
        self._dresser = Dresser(settings, self._complain)
        self._complaints: dict[str, str] = {}
        self._told: set[str] = set()
        self._overlaps: dict[str, str] = {}
        self.refused: dict[str, str] = {}
        self.created = self.changed = 0

    async def settle(self, findings: Sequence[Finding], *, complete: bool, present: frozenset[str]) -> Settlement:
        """Decide and write, and again what met somebody else's write."""
        order = [connection.name for connection in self._settings.connections]
        devices = await asyncio.to_thread(group, findings, order)
        for _ in range(ROUNDS):
            targets = await self._in_namespace()
            settlement = await asyncio.to_thread(  # it takes a while for thousands
                settle,
                devices,
                targets,
                _view(self._rule),
                await self._others(),
                complete=complete,
                present=present,
                repinned=self._repinned,
                now=self._tools.clock.now(),
                name=self._dresser.name,
                make=self._dresser.make,
            )
            for vendor, why in self._settings.vendors.failures.items():
                self._complain("TransformFailed", f"DiscoveryVendorProfile {vendor}: {why}")
            self._settings.vendors.failures.clear()
            self._pass_on()
            written = await write(self._tools.client, self._rule, settlement.writes)
            self.created += len(written.created)
            self.changed += len(written.changed)
            done = {*written.created, *written.changed}
            self.refused = {name: why for name, why in self.refused.items() if name not in done} | written.refused
            self._tell(settlement, targets)
            if not written.again:
                break
        else:
            self.refused |= written.again
        self._overlaps |= {overlap.target: overlap.rule for overlap in settlement.overlaps}
        return settlement

    async def targets(self) -> list[Target]:
        """Those of the rule."""
        return owned(await self._in_namespace(), self._rule)

    @property
    def overlap(self) -> str:
        """Which devices other rules have; empty when none."""
        if not self._overlaps:
            return ""
        some = ", ".join(f"{target} (rule {rule})" for target, rule in sorted(self._overlaps.items())[:5])
        more = ", …" if len(self._overlaps) > 5 else ""
        return f"{len(self._overlaps)} devices belong to rules that go before this one: {some}{more}"

    async def _in_namespace(self) -> list[Target]:
        listed = await self._tools.client.list(Target, Query(namespace=self._rule.namespace))
        return [target for target in listed.items if not isinstance(target, Untyped)]

    async def _others(self) -> dict[str, RuleView]:
        listed = await self._tools.client.list(DiscoveryRule, Query(namespace=self._rule.namespace))
        rules = [rule for rule in listed.items if not isinstance(rule, Untyped)]
        return {rule.metadata.uid or "": _view(rule) for rule in rules}

    def _tell(self, settlement: Settlement, targets: Sequence[Target]) -> None:
        by_name = {target.name: target for target in targets}
        for note in settlement.events:
            about = by_name.get(note.target, self._rule)
            text = note.message if note.target in by_name else f"{note.target}: {note.message}"
            say = self._tools.events.normal if note.reason in GOOD_NEWS else self._tools.events.warning
            say(about, note.reason, text)

    def _complain(self, reason: str, message: str) -> None:
        """One for each reason is enough: a thousand devices with one fault are one fault."""
        self._complaints.setdefault(reason, message)

    def _pass_on(self) -> None:
        for reason in self._complaints.keys() - self._told:
            self._told.add(reason)
            self._tools.events.warning(self._rule, reason, self._complaints[reason])


def _view(rule: DiscoveryRule) -> RuleView:
    return RuleView(
        name=rule.name,
        uid=rule.metadata.uid or "",
        priority=rule.spec.priority,
        created=rule.metadata.creation_timestamp or datetime.max.replace(tzinfo=UTC),
    )
