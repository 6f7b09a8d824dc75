"""The keeper of loops: one a rule, made of what the rule names, and replaced on change.

A rule's own fields, its profiles, Secrets and vendor profiles make its settings; when their digest changes, the loop is
stopped, waited for, and a new one is started. Pods and Services only wake it.
"""

from __future__ import annotations

import asyncio
import importlib
import random
from collections.abc import Iterable

from msgspec import UNSET

from trimtab.client.protocol import Query
from trimtab.model.clock import Clock
from trimtab.model.conditions import get_condition
from trimtab.runtime import Context, Request, Result
from trimtab.runtime.cached import CachedClient
from trimtab.runtime.events import Recorder
from trimtab.runtime.runs import Runs
from trimtab.runtime.status import ready
from trimtab.systems.discovery.findings import Identifier
from trimtab.systems.discovery.kinds import DiscoveryRule, DiscoveryRuleStatus, Target
from trimtab.systems.discovery.kinds.rule import RUN_ANNOTATION
from trimtab.systems.discovery.ledger.book import owner_of
from trimtab.systems.discovery.ledger.books import Books
from trimtab.systems.discovery.loop import Loop
from trimtab.systems.discovery.measures import Measures
from trimtab.systems.discovery.report import awaited
from trimtab.systems.discovery.scope.implementations import Pods, Services
from trimtab.systems.discovery.scope.plan import limits
from trimtab.systems.discovery.scope.sources import resolved, system_resolver
from trimtab.systems.discovery.settings import Gathered, Settings, gather
from trimtab.systems.discovery.sweep import Limits, Sweeper
from trimtab.systems.discovery.telling import Gone, Teller
from trimtab.systems.discovery.tools import Identifiers, Tools, Turns
from trimtab.systems.discovery.vendors.choice import Vendors

LET_END = 5.0
"""Seconds that the devices which a loop is asking have to come to their end when its rule changes or goes."""


class Keeper:
    """Of all rules of a process. `keep_up` and `let_go` are called for one rule at a time, as reconciles are."""

    def __init__(self, context: Context, client: CachedClient, clock: Clock, events: Recorder) -> None:
        if context.blobs is None:
            raise ValueError("network discovery needs a place for blobs")
        self._client, self._clock, self._events, self._blobs = client, clock, events, context.blobs
        self._measures = Measures(context.metrics.registry)
        self.loops: dict[Request, Loop] = {}
        self._followed: dict[Request, frozenset[str]] = {}
        shared = limits()
        self._tools = Tools(
            client=client,
            clock=clock,
            blobs=context.blobs,
            events=events,
            sweeper=Sweeper(Limits(packets_per_second=shared.packets_per_second, sockets=shared.sockets)),
            shared=shared,
            identifiers=_identifiers,
            resolve=system_resolver,
            turns=Turns(),
            books=Books(),
            measures=self._measures,
            chance=random.Random(),  # noqa: S311 - the order of a sweep guards nothing
        )

    def start(self) -> None:
        self._tools.sweeper.start()

    async def pause(self) -> None:
        """Another process leads: not a packet more. Runs that went on go on there."""
        loops, self.loops = list(self.loops.values()), {}
        await asyncio.gather(*(loop.stop() for loop in loops), return_exceptions=True)
        self._tools.books.doubt()

    async def stop(self) -> None:
        await self.pause()
        await self._tools.sweeper.close()

    async def keep_up(self, rule: DiscoveryRule) -> Result | None:
        request = Request(rule.namespace, rule.name)
        gathered = await gather(self._client, rule, self._tools.shared)
        loop = self.loops.get(request)
        if rule.spec.suspend or gathered.settings is None:
            await self.end(request, "Suspended" if rule.spec.suspend else "InvalidProfile")
            await self._say(rule, gathered)
            return None
        if loop is None or loop.ended or loop.settings.digest != gathered.settings.digest:
            await self.end(request, "Replaced")
            await self._say(rule, gathered)
            loop = await self._begin(request, gathered.settings, replaced=loop is not None)
        else:
            loop.renew(rule)
        self._wake(request, rule, loop, await self._follow(gathered.settings))
        return None

    async def _begin(self, request: Request, settings: Settings, *, replaced: bool) -> Loop:
        rule = settings.rule
        at_once = replaced or not _is_current(rule)
        loop = self.loops[request] = Loop(self._tools, settings, Teller(self._client, rule), at_once=at_once)
        loop.start()
        return loop

    async def end(self, request: Request, reason: str) -> None:
        """Nothing of the rule's loop runs when this returns."""
        loop = self.loops.get(request)
        if loop is not None:
            await loop.stop(reason=reason, patience=LET_END)
            self.loops.pop(request, None)  # not before: whoever is cancelled here leaves a loop that the next one stops

    def _wake(self, request: Request, rule: DiscoveryRule, loop: Loop, followed: frozenset[str]) -> None:
        """What somebody asks for is due now, and so is a change of what a selector finds."""
        asked = (rule.metadata.annotations or {}).get(RUN_ANNOTATION, "")
        if asked and asked != (rule.status.handled_run if rule.status else ""):
            loop.ask(asked[:256])
        before = self._followed.get(request)
        self._followed[request] = followed
        if before is not None and before != followed:
            loop.wake("Sources")

    async def _follow(self, settings: Settings) -> frozenset[str]:
        """What Pods and Services give right now; for a rule that probes nothing, its Targets too."""
        entries = [entry for entry in settings.entries if isinstance(entry.source, Pods | Services)]
        found: set[str] = set()
        if entries:
            scope = await resolved(entries, self._client, settings.rule.namespace, None)
            found.update(f"{address}={name}" for place in scope.places for address, name in place.hosts.items())
        if settings.static is not None:
            listed = await self._client.list(Target, Query(namespace=settings.rule.namespace))
            found.update(target.name for target in listed.items)
        return frozenset(found)

    async def _say(self, rule: DiscoveryRule, gathered: Gathered) -> None:
        """The profiles, and why nothing runs, if so. A rule that was ready stays so until its next sweep tells."""

        def said(status: DiscoveryRuleStatus) -> DiscoveryRuleStatus:
            generation, conditions = rule.metadata.generation, status.conditions
            if rule.spec.suspend:
                message = "spec.suspend is set: nothing is swept, and no Target is taken away"
                conditions = ready(conditions, self._clock, generation, False, "Suspended", message)
            elif gathered.problems:
                message = "; ".join(gathered.problems)
                conditions = ready(conditions, self._clock, generation, False, "InvalidProfile", message)
            elif not _is_current(rule):
                reason, message = awaited(rule, self._clock.now())
                conditions = ready(conditions, self._clock, generation, None, reason, message)
            return status.replace(conditions=conditions, profiles=gathered.profiles)

        if gathered.problems and not rule.spec.suspend:
            self._events.warning(rule, "InvalidProfile", "; ".join(gathered.problems))
        try:
            await Teller(self._client, rule).tell(said)
        except Gone:
            return

    async def let_go(self, rule: DiscoveryRule) -> None:
        """Its Targets go by their owner reference; its blobs are let go here. What it has tried is remembered: whoever
        makes it anew may have no more tries."""
        request = Request(rule.namespace, rule.name)
        await self._tools.books.recall(self._client, self._blobs, self._clock.now().timestamp())
        await self.end(request, "")
        self._followed.pop(request, None)
        self._measures.forget(rule.namespace, rule.name)
        await Runs(self._clock, blobs=self._blobs, owner=owner_of(rule)).forget(
            rule.status.history if rule.status else UNSET
        )
        await self._blobs.unpin(owner_of(rule))


def _is_current(rule: DiscoveryRule) -> bool:
    """Whether the last sweep succeeded, and was of the rule as it is."""
    said = get_condition(rule.status.conditions if rule.status else UNSET, "Ready")
    return said is not None and said.status == "True" and said.observed_generation == rule.metadata.generation


async def _identifiers(protocols: Iterable[str], vendors: Vendors) -> Identifiers:
    """Their libraries are large: each is loaded when a rule needs it, in a thread, for it takes a while."""
    return {protocol: await asyncio.to_thread(_identifier, protocol, vendors) for protocol in set(protocols)}


def _identifier(protocol: str, vendors: Vendors) -> Identifier:
    name = protocol.capitalize()
    module = importlib.import_module(f"trimtab.systems.discovery.identify.{protocol}")
    made: Identifier = getattr(module, f"{name}Identifier")(vendors)
    return made
