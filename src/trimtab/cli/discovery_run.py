"""`trimtab discovery run` and `release`: ask a rule for something by an annotation, and follow what comes of it.

The rule's status tells all: `handledRun` that the request was taken, `history` which run it became, `progress` how far
that has come. So a lost connection loses nothing, and another terminal may follow the same run.
"""

from __future__ import annotations

import asyncio
import collections
import secrets
from datetime import UTC, datetime

from trimtab.cli.access import Access, Session, session
from trimtab.cli.annotations import annotate
from trimtab.cli.bar import Bar
from trimtab.cli.blobs import Place, opened
from trimtab.cli.codes import FAILED, OK, TIMED_OUT, Problem, complain
from trimtab.cli.codes import run as to_exit_code
from trimtab.cli.discovery_ledger import ledger
from trimtab.cli.tables import Printer, shown
from trimtab.client.follow import follow
from trimtab.client.protocol import EventType, Listing, Query
from trimtab.model.clock import parse_time
from trimtab.model.conditions import Condition, get_condition
from trimtab.runtime.runs import Run
from trimtab.systems.discovery.kinds import DiscoveryRule, Target
from trimtab.systems.discovery.kinds.rule import RELEASE_ANNOTATION, RUN_ANNOTATION
from trimtab.systems.discovery.kinds.target import RULE_LABEL

MASS_LOSS = "MassLoss"
NOTHING_RUNS = ("InvalidProfile", "Suspended")
"""Reasons of a rule that has no loop: whatever is asked of it, nothing begins until somebody changes something."""
OUTDATED = "Outdated"
"""The reason of a run that another one took the place of."""


def run(access: Access, name: str, *, wait: bool, timeout: float) -> int:
    return to_exit_code(_run(access, name, wait, timeout))


def release(access: Access, name: str, place: Place) -> int:
    return to_exit_code(_release(access, name, place))


async def _run(access: Access, name: str, wait: bool, timeout: float) -> int:
    async with session(access) as server:
        rule = await server.client.get(DiscoveryRule, name, server.namespace)
        if rule.spec.suspend:
            raise Problem(f"discoveryrule/{name} is suspended: set spec.suspend to false, or use --dry-run")
        value = f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}-{secrets.token_hex(4)}"
        before = frozenset(run.id for run in _history(rule))
        await annotate(server, rule, RUN_ANNOTATION, value)
        if not wait:
            print(f"discoveryrule/{name}: a sweep was asked for")
            return OK
        try:
            async with asyncio.timeout(timeout):
                ended = await _followed(server, name, value, before)
        except TimeoutError:
            complain(f"discoveryrule/{name}: the sweep did not end within {timeout:g} s; it goes on without us")
            return TIMED_OUT
        return await _told(server, name, ended)


async def _followed(server: Session, name: str, value: str, before: frozenset[str]) -> Run:
    """The run that the annotation became, when it has ended."""
    query = Query(namespace=server.namespace, fields=f"metadata.name={name}")
    following = follow(server.client, DiscoveryRule, query, patience=0)
    told_last = ""
    with Bar(f"discoveryrule/{name}") as bar:
        try:
            async for told in following:
                rule = _rule(told, name)
                found = _run_of(rule, value, before)
                if found is not None and found.outcome != "Running":
                    return found
                progress = rule.status.progress if rule.status else None
                if found is not None and progress and parse_time(progress.started) >= parse_time(found.started):
                    bar.show(progress.done, progress.total or None, progress.note or "")
                elif found is None and (ready := _unready(rule)) is not None:
                    hindrance = f"{ready.reason}: {ready.message}"
                    if ready.reason in NOTHING_RUNS:
                        raise Problem(f"discoveryrule/{name} does not sweep: {hindrance}")
                    if hindrance != told_last:
                        bar.note(f"it has not begun: {hindrance}")
                    told_last = hindrance
        finally:
            await following.aclose()
    raise Problem(f"discoveryrule/{name} cannot be followed any more")


def _rule(told: object, name: str) -> DiscoveryRule:
    found = told.items[0] if isinstance(told, Listing) and told.items else getattr(told, "object", None)
    if found is None or getattr(told, "type", None) is EventType.DELETED:
        raise Problem(f"discoveryrule/{name} was deleted meanwhile")
    if not isinstance(found, DiscoveryRule):
        raise Problem(f"discoveryrule/{name} is of another shape than this program knows: are both of one version?")
    return found


def _run_of(rule: DiscoveryRule, value: str, before: frozenset[str]) -> Run | None:
    """The run that our request became, once the controller has taken it.

    Who asks after us, before ours was taken, asks for both. A run that was asked for while Pods changed has their
    trigger; and where sweeps are short, ours may have left the bounded history: then the newest one tells as much.
    """
    asked = (rule.metadata.annotations or {}).get(RUN_ANNOTATION)
    if not rule.status or not rule.status.handled_run or rule.status.handled_run not in (value, asked):
        return None
    new = [run for run in _history(rule) if run.id not in before and run.reason != OUTDATED]
    return next((run for run in new if run.trigger == "Manual"), new[0] if new else None)


def _unready(rule: DiscoveryRule) -> Condition | None:
    """Why the rule does not work, if it says so of the rule as it is."""
    ready = get_condition(rule.status.conditions, "Ready") if rule.status else None
    if ready is None or ready.status != "False":
        return None
    return ready if (ready.observed_generation or rule.metadata.generation) == rule.metadata.generation else None


async def _told(server: Session, name: str, ended: Run) -> int:
    seconds = (parse_time(ended.finished) - parse_time(ended.started)).total_seconds() if ended.finished else 0.0
    print(f"discoveryrule/{name}: {ended.outcome} in {seconds:g} s" + (f": {ended.message}" if ended.message else ""))
    counts = ended.counts or {}
    if counts:
        Printer(("outcome", "count")).add([[shown(label), str(count)] for label, count in sorted(counts.items())])
    labelled = Query(namespace=server.namespace, labels=f"{RULE_LABEL}={name}")
    phases = collections.Counter(_phase(target) for target in (await server.client.list(Target, labelled)).items)
    print("Targets: " + (", ".join(f"{count} {phase}" for phase, count in sorted(phases.items())) or "none"))
    return OK if ended.outcome == "Succeeded" else FAILED


def _phase(target: Target) -> str:
    return str((target.status and target.status.phase) or "new") if isinstance(target, Target) else "of another shape"


async def _release(access: Access, name: str, place: Place) -> int:
    async with session(access) as server:
        rule = await server.client.get(DiscoveryRule, name, server.namespace)
        mass_loss = get_condition(rule.status.conditions, MASS_LOSS) if rule.status else None
        if mass_loss is None or mass_loss.status != "True":
            raise Problem(f"discoveryrule/{name} holds nothing back: its condition {MASS_LOSS} is not true")
        async with opened(access, place) as blobs:
            known = await ledger(blobs, rule)
        if known is None or not known.held:
            raise Problem(f"discoveryrule/{name} does not say which run was held back: sweep again, then release")
        await annotate(server, rule, RELEASE_ANNOTATION, known.held)
    print(f"discoveryrule/{name}: what run {known.held} lost may go, with the next sweep")
    return OK


def _history(rule: DiscoveryRule) -> tuple[Run, ...]:
    return (rule.status.history or ()) if rule.status else ()
