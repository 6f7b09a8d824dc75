"""Why an address is a Target, or is not."""

import pytest

from trimtab.model.objectmeta import ObjectMeta
from trimtab.systems.discovery.findings import Outcome
from trimtab.systems.discovery.kinds import (
    DiscoveryRule,
    DiscoveryRuleSpec,
    PrefixEntry,
    RuleRef,
    TargetConnection,
)
from trimtab.systems.discovery.ledger.records import AddressRecord, Ledger
from trimtab.systems.discovery.ledger.why import Why, explain
from trimtab.systems.discovery.scope.addresses import Addresses
from trimtab.systems.discovery.scope.implementations import DnsName, Entry

RULE = DiscoveryRule(
    metadata=ObjectMeta(name="core"),
    spec=DiscoveryRuleSpec(
        rule_ref=RuleRef(group="discovery.trimtab.dev", version="v1alpha1", kind="DiscoveryRuleIPRange", name="core"),
        target_connection_profiles=(TargetConnection(connection_profile="gnmi", credentials="admin"),),
    ),
)
PREFIX = PrefixEntry(prefix="10.1.0.0/24", excludes=("10.1.0.128/25",))
SCOPE = Addresses.of((PREFIX,))
ENTRIES = (Entry(name="10.1.0.0/24", source=SCOPE),)


def ledger(outcome: Outcome, detail: str = "", *, address: str = "10.1.0.5", run: str = "", target: str = "") -> Ledger:
    outcomes = bytearray([Outcome.SILENT]) * len(SCOPE)
    outcomes[SCOPE.position(address) or 0] = outcome
    record = AddressRecord(outcome=outcome, detail=detail, at=1_800_000_000, target=target)
    records = {address: record} if outcome.seen else {}
    return Ledger(records=records, outcomes=bytes(outcomes), scope=SCOPE.digest, run=run, position=7 if run else 0)


def asked(book: Ledger, address: str = "10.1.0.5") -> Why:
    return explain(RULE, book, SCOPE, address, entries=ENTRIES)


@pytest.mark.parametrize("outcome", list(Outcome))
def test_every_outcome_is_told_in_plain_sentences(outcome: Outcome) -> None:
    why = asked(ledger(outcome))
    assert why.outcome is outcome
    assert why.text.startswith("10.1.0.5 is in the entry 10.1.0.0/24 of the rule core. ")
    assert why.text.endswith(".")
    assert ".." not in why.text


@pytest.mark.parametrize(
    "outcome", [o for o in Outcome if o not in (0, Outcome.OPEN, Outcome.IDENTIFIED, Outcome.STATIC)]
)
def test_every_failure_says_what_to_do(outcome: Outcome) -> None:
    assert asked(ledger(outcome)).advice


def test_a_refusal_is_told_with_time_protocol_and_detail() -> None:
    why = asked(ledger(Outcome.AUTHENTICATION_FAILED, "ssh: the device refused the Secret admin"))
    assert why.protocol == "ssh"
    assert "since 2027-01-15T08:00:00Z" in why.text
    assert "the device refused the Secret admin." in why.text


def test_a_device_that_was_identified_names_its_target() -> None:
    why = asked(ledger(Outcome.IDENTIFIED, "snmp: it said what it is, by profile public", target="leaf1"))
    assert why.protocol == "snmp"
    assert "Its Target is leaf1." in why.text


def test_an_address_that_was_silent_has_no_time_of_another_outcome() -> None:
    book = ledger(Outcome.SILENT)
    book.records["10.1.0.5"] = AddressRecord(outcome=Outcome.IDENTIFIED, detail="by ssh", at=5)
    why = asked(book)
    assert (why.outcome, why.since, why.detail) == (Outcome.SILENT, 0, "")


def test_an_excluded_address_is_told_so() -> None:
    why = asked(ledger(Outcome.SILENT), "10.1.0.200")
    assert "10.1.0.200 is excluded from 10.1.0.0/24." in why.text


def test_a_network_address_is_told_so() -> None:
    assert "not probed" in asked(ledger(Outcome.SILENT), "10.1.0.0").text


def test_an_address_of_no_entry_is_told_so() -> None:
    why = asked(ledger(Outcome.SILENT), "10.9.9.9")
    assert why.entry == ""
    assert "The rule core does not name 10.9.9.9." in why.text


def test_an_address_that_left_the_scope_tells_what_it_was() -> None:
    book = ledger(Outcome.SILENT)
    book.records["10.9.9.9"] = AddressRecord(outcome=Outcome.IDENTIFIED, detail="ssh: it said what it is, by profile p")
    assert "ssh: it said what it is, by profile p" in asked(book, "10.9.9.9").text


def test_what_is_no_address_is_of_no_entry() -> None:
    assert "does not name" in asked(ledger(Outcome.SILENT), "what's this").text


def test_a_sweep_that_has_not_reached_the_address_is_told() -> None:
    why = asked(ledger(Outcome.UNPROBED, run="r1"))
    assert "has not reached it: 7 of 127 addresses" in why.text


def test_before_a_sweep_reaches_an_address_the_last_outcome_is_told() -> None:
    book = ledger(Outcome.UNPROBED, run="r1")
    book.records["10.1.0.5"] = AddressRecord(
        outcome=Outcome.IDENTIFIED, detail="ssh: it said what it is, by profile p", at=5
    )
    assert asked(book).outcome is Outcome.IDENTIFIED


def test_a_sweep_that_goes_on_may_change_the_outcome() -> None:
    assert "may still change" in asked(ledger(Outcome.SILENT, run="r1")).text


def test_an_address_that_is_new_in_the_rule_has_not_been_probed() -> None:
    old = Ledger(outcomes=bytes([Outcome.SILENT]) * 9, scope="another")
    assert asked(old).outcome is Outcome.UNPROBED


def test_a_static_address_is_told_so() -> None:
    entries = (Entry(name="leaf1.example.com", source=DnsName("leaf1.example.com")),)
    why = explain(RULE, Ledger(), Addresses(), "leaf1.example.com", entries=entries, static=True)
    assert why.outcome is Outcome.STATIC
    assert "written unprobed" in why.text


def test_a_name_that_is_an_entry_and_has_no_address_is_told_so() -> None:
    entries = (*ENTRIES, Entry(name="leaf1.example.com", source=DnsName("leaf1.example.com")))
    unresolved = {"leaf1.example.com": "the DNS name leaf1.example.com has no address: it is not known"}
    why = explain(RULE, Ledger(), SCOPE, "Leaf1.example.com.", entries=entries, unresolved=unresolved)
    assert (why.entry, why.outcome) == ("leaf1.example.com", Outcome.NOT_RESOLVED)
    assert "has no address: it is not known." in why.text
    assert "Check the name in DNS" in why.text


def test_an_address_that_may_be_that_of_a_name_which_is_not_resolved_is_told_so() -> None:
    book = ledger(Outcome.SILENT)
    book.records["10.9.9.9"] = AddressRecord(outcome=Outcome.IDENTIFIED, detail="ssh: it said what it is", target="x")
    entries = (*ENTRIES, Entry(name="leaf1.example.com", source=DnsName("leaf1.example.com")))
    unresolved = {"leaf1.example.com": "the DNS name leaf1.example.com has no address"}
    why = explain(RULE, book, SCOPE, "10.9.9.9", entries=entries, unresolved=unresolved)
    assert (
        "It may be that of an entry which is not resolved: the DNS name leaf1.example.com has no address." in why.text
    )
    assert "Add it to an entry" not in why.text


def test_what_is_written_unprobed_is_told_for_any_implementation() -> None:
    why = explain(RULE, Ledger(), SCOPE, "10.1.0.5", entries=ENTRIES, static=True)
    assert "written unprobed" in why.text
    assert "defaultSchema" not in why.text


def test_an_outcome_of_a_newer_version_is_not_lost() -> None:
    book = ledger(Outcome.SILENT)
    newer = bytearray(book.outcomes)
    newer[SCOPE.position("10.1.0.5") or 0] = 77
    assert asked(Ledger(outcomes=bytes(newer), scope=SCOPE.digest)).outcome is Outcome.OPEN
