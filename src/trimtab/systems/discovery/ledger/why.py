"""Why an address is a Target, or is not: the last outcome in plain sentences, with what to do. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

import msgspec

from trimtab.model.clock import format_time
from trimtab.systems.discovery.findings import Outcome
from trimtab.systems.discovery.kinds import DiscoveryRule
from trimtab.systems.discovery.ledger.records import AddressRecord, Ledger
from trimtab.systems.discovery.scope.addresses import Addresses, parse, span
from trimtab.systems.discovery.scope.implementations import DnsName, Entry


class Why(msgspec.Struct, frozen=True, kw_only=True):
    """What one rule knows of one address."""

    address: str
    rule: str
    entry: str = ""
    """The entry of the rule that names it; empty when none does."""
    outcome: Outcome = Outcome.UNPROBED
    since: float = 0
    """Since when the outcome is so; 0 where nobody noted it."""
    protocol: str = ""
    detail: str = ""
    target: str = ""
    advice: str = ""
    text: str = ""


def explain(
    rule: DiscoveryRule,
    ledger: Ledger,
    addresses: Addresses,
    address: str,
    *,
    entries: Sequence[Entry] = (),
    static: bool = False,
    unresolved: Mapping[str, str] = {},
) -> Why:
    """`addresses` are all that the rule sweeps, `entries` what its users wrote; `static` for a rule that probes
    nothing; `unresolved` says by entry why its addresses are not known right now."""
    record = ledger.records.get(address, AddressRecord())
    position = addresses.position(address)
    entry = _entry(entries, addresses, address)
    if position is None and not (static and entry):
        return _unresolved(rule, address, entry, unresolved) or _outside(rule, record, address, entries, unresolved)
    outcome = Outcome.STATIC if static else _outcome(ledger, addresses, position, record)
    noted = outcome == record.outcome
    why = Why(
        address=address,
        rule=rule.name,
        entry=entry,
        outcome=outcome,
        since=record.at if noted else 0,
        protocol=_protocol(record) if noted else "",
        detail=record.detail if noted else "",
        target=record.target,
        advice=_ADVICE.get(outcome, ""),
    )
    return msgspec.structs.replace(why, text=" ".join(_sentences(why, rule, ledger, addresses)))


def is_name(source: object, text: str) -> bool:
    """Whether an entry is this DNS name, however it is spelled."""
    return isinstance(source, DnsName) and source.name.lower().rstrip(".") == text.lower().rstrip(".")


def _unresolved(rule: DiscoveryRule, address: str, entry: str, unresolved: Mapping[str, str]) -> Why | None:
    """Of a name that is an entry and has no address."""
    if entry not in unresolved:
        return None
    outcome, problem = Outcome.NOT_RESOLVED, unresolved[entry]
    said = f"{address} is in the entry {entry} of the rule {rule.name}."
    return Why(
        address=address,
        rule=rule.name,
        entry=entry,
        outcome=outcome,
        detail=problem,
        advice=_ADVICE[outcome],
        text=f"{said} {_SAYS[outcome]}, as asked from here: {_sentence(problem)} {_ADVICE[outcome]}",
    )


def _outside(
    rule: DiscoveryRule, record: AddressRecord, address: str, entries: Sequence[Entry], unresolved: Mapping[str, str]
) -> Why:
    entry, said = _left_out(entries, address)
    if not entry and unresolved:
        said = f"Right now the rule {rule.name} does not name {address}."
        advice = f"It may be that of an entry which is not resolved: {_sentence('; '.join(unresolved.values()))}"
    elif not entry:
        said = f"The rule {rule.name} does not name {address}."
        advice = "Add it to an entry of the rule, if the rule should find it."
    else:
        advice = "Change that entry, if the rule should find it."
    before = f"While it was in scope the last outcome was: {record.detail}." if record.detail else ""
    return Why(
        address=address,
        rule=rule.name,
        entry=entry,
        advice=advice,
        target=record.target,
        text=" ".join(part for part in (said, before, advice) if part),
    )


def _left_out(entries: Sequence[Entry], address: str) -> tuple[str, str]:
    """The entry that covers the address and leaves it out, and why."""
    for entry in entries:
        if not isinstance(entry.source, Addresses):
            continue
        try:
            covered = Addresses((span(entry.name),))
            hosts = Addresses(parse(entry.name))
        except ValueError:  # an entry that is not named by its addresses
            continue
        if address not in covered:
            continue
        if address not in hosts:
            return entry.name, f"{address} is the network or broadcast address of {entry.name}: it is not probed."
        return entry.name, f"{address} is excluded from {entry.name}."
    return "", ""


def _entry(entries: Sequence[Entry], addresses: Addresses, address: str) -> str:
    for entry in entries:
        source = entry.source
        if isinstance(source, Addresses) and address in source:
            return entry.name
        if is_name(source, address):
            return entry.name
    others = [entry.name for entry in entries if not isinstance(entry.source, Addresses)]
    return ", ".join(others) if address in addresses else ""  # one of those whose addresses are asked for


def _outcome(ledger: Ledger, addresses: Addresses, position: int | None, record: AddressRecord) -> Outcome:
    """Of the last sweep that reached the address: this one, else the one before it, else whatever was noted."""
    tellers = []
    if ledger.run or ledger.scope in ("", addresses.digest):
        tellers.append(ledger.outcomes)
    if ledger.earlier_scope == addresses.digest:
        tellers.append(ledger.earlier)
    told = (each[position] for each in tellers if position is not None and len(each) == len(addresses))
    byte = next((byte for byte in told if byte), record.outcome)
    try:
        return Outcome(byte)
    except ValueError:  # of a newer version
        return Outcome.OPEN if byte >= Outcome.OPEN else Outcome.UNPROBED


def _protocol(record: AddressRecord) -> str:
    """The details of one that was asked begin with it."""
    first = record.detail.partition(":")[0].removeprefix("by ").partition(" ")[0]
    return first if first in ("gnmi", "netconf", "ssh", "snmp") else ""


def _sentences(why: Why, rule: DiscoveryRule, ledger: Ledger, addresses: Addresses) -> list[str]:
    place = f"the entry {why.entry} of the rule {rule.name}" if why.entry else f"the rule {rule.name}"
    said = [f"{why.address} is in {place}."]
    if ledger.run and why.outcome is Outcome.UNPROBED:
        share = f"{ledger.position} of {len(addresses)} addresses are probed"
        return [*said, f"A sweep goes on and has not reached it: {share}.", "Ask again when it has ended."]
    said.append(f"{_SAYS[why.outcome]}{f', since {_time(why.since)}' if why.since else ''}.")
    if why.detail:
        said.append(f"{_sentence(why.detail)}")
    if why.target:
        said.append(f"Its Target is {why.target}.")
    if why.advice:
        said.append(why.advice)
    if ledger.run:
        said.append(f"A sweep goes on ({ledger.position} of {len(addresses)} addresses): this may still change.")
    return said


def _sentence(text: str) -> str:
    text = text.strip()
    return text if text.endswith((".", "!", "?")) else f"{text}."


def _time(at: float) -> str:
    return format_time(datetime.fromtimestamp(at, UTC))


_SAYS = {
    Outcome.UNPROBED: "It has not been probed yet",
    Outcome.SILENT: "Nothing answered there",
    Outcome.REFUSED: "A machine is there, and nothing listens at the port",
    Outcome.UNREACHABLE: "A router or our own machine says that nobody is there",
    Outcome.NOT_SENT: "Our own machine could not send to it",
    Outcome.NOT_RESOLVED: "Its DNS name has no address",
    Outcome.OPEN: "It answered the probe and has not been asked more yet",
    Outcome.IDENTIFIED: "It was identified",
    Outcome.AUTHENTICATION_FAILED: "It is there and refused the credential",
    Outcome.WAITING: "It is there, and no credential may be tried before the lock-out window has passed",
    Outcome.TLS_FAILED: "It is there, and TLS failed",
    Outcome.KEY_CHANGED: "It is there and shows another key than before, so no credential was sent",
    Outcome.PROTOCOL_ERROR: "It is there and sent what the protocol does not allow",
    Outcome.TIMED_OUT: "It answered the probe and then took too long",
    Outcome.DISCONNECTED: "It answered and broke off in the middle",
    Outcome.STATIC: "It is written unprobed, as what the rule names for addresses wants it",
}

_ADVICE = {
    Outcome.SILENT: "Check that the device is up, that a firewall lets us through, and the port of the profile;"
    " for SNMP v1 and v2c a wrong community is silent too.",
    Outcome.REFUSED: "Check the port of the connection profile, and that the device has the service switched on.",
    Outcome.UNREACHABLE: "Check the route to it.",
    Outcome.NOT_SENT: "Check the network of the machine where the controllers run.",
    Outcome.NOT_RESOLVED: "Check the name in DNS.",
    Outcome.AUTHENTICATION_FAILED: "Check the Secret, and whether the account may log in by this protocol.",
    Outcome.WAITING: "Wait, or correct the Secret: it is tried when the window has passed.",
    Outcome.TLS_FAILED: "Check the device's certificate and the CA in the TLS Secret.",
    Outcome.KEY_CHANGED: "If the device was reinstalled or replaced, accept its new key:"
    " annotate the rule with discovery.trimtab.dev/repin and this address.",
    Outcome.PROTOCOL_ERROR: "Check that the port speaks the protocol of the profile.",
    Outcome.TIMED_OUT: "Give the connection profile a longer timeout, if the device is slow.",
    Outcome.DISCONNECTED: "Look at the device's own log: it may limit sessions or where they come from.",
}
