"""`trimtab discovery run` and `release`: ask a rule for something by an annotation, and follow what comes of it.

The rule's status tells all: `handledRun` that the request was taken, `history` which run it became, `progress` how far
that has come. So a lost connection loses nothing, and another terminal may follow the same run.
"""

from __future__ import annotations

import asyncio
import secrets
from datetime import UTC, datetime

import orjson

from trimtab.cli.access import Access, Session, session
from trimtab.cli.codes import FAILED, OK, TIMED_OUT, Problem, complain
from trimtab.cli.codes import run as to_exit_code
from trimtab.cli.discovery_bar import Bar
from trimtab.cli.tables import Printer, shown
from trimtab.client.api import MERGE
from trimtab.client.follow import follow
from trimtab.client.protocol import EventType, Listing, Query
from trimtab.client.transport import Call
from trimtab.model.clock import parse_time
from trimtab.model.conditions import Condition
from trimtab.runtime.runs import Run
from trimtab.systems.discovery.kinds import DiscoveryRule
from trimtab.systems.discovery.kinds.rule import RELEASE_ANNOTATION, RUN_ANNOTATION

MASS_LOSS = "MassLoss"


def run(access: Access, name: str, *, wait: bool, timeout: float) -> int:
    return to_exit_code(_run(access, name, wait, timeout))


def release(access: Access, name: str) -> int:
    return to_exit_code(_release(access, name))


async def _run(access: Access, name: str, wait: bool, timeout: float) -> int:
    async with session(access) as server:
        rule = await server.client.get(DiscoveryRule, name, server.namespace)
        if rule.spec.suspend:
            raise Problem(f"discoveryrule/{name} is suspended: set spec.suspend to false, or use --dry-run")
        value = f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}-{secrets.token_hex(4)}"
        before = frozenset(run.id for run in _history(rule))
        await _annotate(server, rule, RUN_ANNOTATION, value)
        if not wait:
            print(f"discoveryrule/{name}: a sweep was asked for")
            return OK
        try:
            async with asyncio.timeout(timeout):
                rule, ended = await _followed(server, name, value, before)
        except TimeoutError:
            complain(f"discoveryrule/{name}: the sweep did not end within {timeout:g} s; it goes on without us")
            return TIMED_OUT
    return _told(rule, ended)


async def _followed(server: Session, name: str, value: str, before: frozenset[str]) -> tuple[DiscoveryRule, Run]:
    """The rule and the run that the annotation became, when it has ended."""
    query = Query(namespace=server.namespace, fields=f"metadata.name={name}")
    following = follow(server.client, DiscoveryRule, query, patience=0)
    hindrance = ""
    with Bar(f"discoveryrule/{name}") as bar:
        try:
            async for told in following:
                rule = _rule(told, name)
                found = _run_of(rule, value, before)
                if found is not None and found.outcome != "Running":
                    return rule, found
                progress = rule.status.progress if rule.status else None
                if found is not None and progress and parse_time(progress.started) >= parse_time(found.started):
                    bar.show(progress.done, progress.total or None, progress.note or "")
                elif found is None and hindrance != (hindrance := _hindrance(rule)) and hindrance:
                    bar.note(f"it has not begun: {hindrance}")
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
    """The run that our request became, once the controller has taken it."""
    if not rule.status or rule.status.handled_run != value:
        return None
    return next((run for run in _history(rule) if run.trigger == "Manual" and run.id not in before), None)


def _hindrance(rule: DiscoveryRule) -> str:
    """Why the rule does not work, if it says so."""
    ready = _condition(rule, "Ready")
    return f"{ready.reason}: {ready.message}" if ready and ready.status == "False" else ""


def _told(rule: DiscoveryRule, ended: Run) -> int:
    seconds = (parse_time(ended.finished) - parse_time(ended.started)).total_seconds() if ended.finished else 0.0
    print(
        f"discoveryrule/{rule.name}: {ended.outcome} in {seconds:g} s" + (f": {ended.message}" if ended.message else "")
    )
    counts = ended.counts or {}
    if counts:
        Printer(("outcome", "addresses")).add([[shown(name), str(count)] for name, count in sorted(counts.items())])
    targets = rule.status.targets if rule.status else None
    if targets:
        print(f"Targets: {targets.ready} ready, {targets.stale} stale, {targets.lost} lost")
    return OK if ended.outcome == "Succeeded" else FAILED


async def _release(access: Access, name: str) -> int:
    async with session(access) as server:
        rule = await server.client.get(DiscoveryRule, name, server.namespace)
        held = _condition(rule, MASS_LOSS)
        if held is None or held.status != "True":
            raise Problem(f"discoveryrule/{name} holds nothing back: its condition {MASS_LOSS} is not true")
        run_id = next((run.id for run in _history(rule) if run.reason == MASS_LOSS), "")
        if not run_id:
            raise Problem(f"discoveryrule/{name} does not say which run was held back: sweep again, then release")
        await _annotate(server, rule, RELEASE_ANNOTATION, run_id)
    print(f"discoveryrule/{name}: what run {run_id} lost may go")
    return OK


async def _annotate(server: Session, rule: DiscoveryRule, annotation: str, value: str) -> None:
    """Set one annotation, whatever else changes meanwhile; of this rule, not of a later one of the same name."""
    place = await server.client.place(DiscoveryRule)
    change = {"metadata": {"uid": rule.metadata.uid, "annotations": {annotation: value}}}
    path = place.path(rule.namespace, rule.name)
    await server.transport.call(Call(method="PATCH", path=path, body=orjson.dumps(change), content_type=MERGE))


def _history(rule: DiscoveryRule) -> tuple[Run, ...]:
    return (rule.status.history or ()) if rule.status else ()


def _condition(rule: DiscoveryRule, kind: str) -> Condition | None:
    conditions = (rule.status.conditions or ()) if rule.status else ()
    return next((each for each in conditions if each.type == kind), None)
