"""`trimtab discovery why`: what came of an address, told by every rule that has it or had it."""

from __future__ import annotations

import contextlib
import ipaddress
import shutil
import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from trimtab.cli.access import Access, Session, session
from trimtab.cli.blobs import Place, opened
from trimtab.cli.codes import FAILED, OK, Problem, complain, run
from trimtab.cli.discovery_ledger import ledger
from trimtab.cli.discovery_source import implementation_of, learn
from trimtab.cli.tables import shown
from trimtab.client.protocol import Query
from trimtab.model.conditions import get_condition
from trimtab.model.errors import StatusError
from trimtab.model.scheme import Untyped
from trimtab.runtime.runs import running
from trimtab.systems.discovery.kinds import DiscoveryRule
from trimtab.systems.discovery.ledger.records import Ledger

if TYPE_CHECKING:
    from trimtab.storage.blobs import Blobs
    from trimtab.systems.discovery.ledger.why import Why

WIDEST = 100


def why(access: Access, address: str, *, everywhere: bool, place: Place, operators: Sequence[str] = ()) -> int:
    return run(_why(access, _canonical(address), everywhere, place, operators))


async def _why(access: Access, address: str, everywhere: bool, place: Place, operators: Sequence[str]) -> int:
    """One rule whose ledger cannot be read does not hide what the others say."""
    learn(operators)
    problems: dict[str, None] = {}
    told = 0
    async with session(access) as server, contextlib.AsyncExitStack() as stack:
        query = Query(namespace="" if everywhere else server.namespace)
        listed = (await server.client.list(DiscoveryRule, query)).items
        rules = [rule for rule in listed if not isinstance(rule, Untyped)]
        blobs: Blobs | None = None
        for rule in sorted(rules, key=lambda rule: (rule.namespace, rule.name)):
            try:
                if blobs is None and rule.status and rule.status.ledger:
                    blobs = await stack.enter_async_context(opened(access, place))
                answers = await _answers(server, blobs, rule, address)
            except Problem as problem:
                problems[str(problem)] = None
                continue
            for answer in answers:
                _show(rule, answer, everywhere)
                told += 1
    for message in problems:
        complain(message)
    if not told and not problems:
        where = "in any namespace" if everywhere else f"in namespace {server.namespace}; -A looks in all"
        complain(f"no rule covers {address} {where}")
    return OK if told else FAILED


async def _answers(server: Session, blobs: Blobs | None, rule: DiscoveryRule, address: str) -> list[Why]:
    """What the rule says of the address, or of each one that a DNS name means. Nothing when it never had it."""
    from trimtab.systems.discovery.ledger.why import explain, is_name
    from trimtab.systems.discovery.scope.addresses import Addresses
    from trimtab.systems.discovery.scope.sources import Scope, TooMany, resolved, system_resolver

    implementation = implementation_of(rule)
    source = await _source(server, rule, implementation.kind)
    scope, static = Scope(Addresses(), ()), False
    if source is not None:
        with contextlib.suppress(ValueError, TooMany):  # what admission would have refused names no address
            entries = implementation.entries(source)
            static = implementation.static(source) is not None
            resolve = None if static else system_resolver  # where nothing is probed, a name stays a name
            scope = await resolved(entries, server.client, rule.namespace, resolve)
    known = _settled(rule, (await ledger(blobs, rule) if blobs is not None else None) or Ledger())
    meant = [each for place in scope.places if is_name(place.entry.source, address) for each in place.addresses]
    entries = tuple(place.entry for place in scope.places)
    unresolved = {place.entry.name: place.problem for place in scope.places if place.problem}
    answers = [
        explain(rule, known, scope.addresses, each, entries=entries, static=static, unresolved=unresolved)
        for each in meant or [address]
    ]
    return [answer for answer in answers if answer.entry or answer.address in known.records]


def _settled(rule: DiscoveryRule, known: Ledger) -> Ledger:
    """A run that failed or was cancelled stays in the ledger until the next one begins: no sweep goes on, and what it
    noted counts."""
    going = running((rule.status.history or ()) if rule.status else ())
    if not known.run or (going is not None and going.id == known.run):
        return known
    return msgspec.structs.replace(known, run="", scope="")


async def _source(server: Session, rule: DiscoveryRule, kind: type[Any]) -> Any:
    """What the rule's `ruleRef` names; None when it is not there."""
    try:
        return await server.client.get(kind, rule.spec.rule_ref.name, rule.namespace)
    except StatusError as error:
        if error.code != 404:
            raise
        return None


def _show(rule: DiscoveryRule, answer: Why, everywhere: bool) -> None:
    name = f"{rule.namespace}/{rule.name}" if everywhere else rule.name
    print(f"discoveryrule/{name}: {answer.outcome.name.lower().replace('_', ' ')}")
    said = [answer.text]
    ready = get_condition(rule.status.conditions, "Ready") if rule.status else None
    if ready is not None and ready.status == "False":
        said.append(f"The rule itself is not ready ({ready.reason}): {ready.message}")
    width = min(WIDEST, shutil.get_terminal_size().columns)
    for paragraph in said:
        print(textwrap.fill(shown(paragraph), width, initial_indent="  ", subsequent_indent="  "))


def _canonical(address: str) -> str:
    """An address in its one usual form; a DNS name as it is."""
    try:
        return str(ipaddress.ip_address(address))
    except ValueError:
        return address
