"""What the status of a rule says of its entries, and of a sweep that is to come."""

from __future__ import annotations

from datetime import UTC, datetime

from msgspec import UNSET

from trimtab.model.duration import Duration
from trimtab.model.objectmeta import ObjectMeta
from trimtab.systems.discovery.findings import Outcome
from trimtab.systems.discovery.kinds import DiscoveryRule, DiscoveryRuleSpec, RuleRef, TargetConnection, Window
from trimtab.systems.discovery.report import awaited, entries_of
from trimtab.systems.discovery.scope.addresses import Addresses, parse
from trimtab.systems.discovery.scope.implementations import Entry
from trimtab.systems.discovery.scope.sources import Place, Scope

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
NIGHT = Window(start="0 2 * * *", duration=Duration("4h"))


def scope(*prefixes: str) -> Scope:
    places = tuple(Place(Entry(name=p, source=Addresses(parse(p))), Addresses(parse(p))) for p in prefixes)
    return Scope(Addresses(interval for place in places for interval in place.addresses.intervals), places)


def rule(*windows: Window) -> DiscoveryRule:
    ref = RuleRef(group="discovery.trimtab.dev", version="v1alpha1", kind="DiscoveryRuleIPRange", name="core")
    connection = TargetConnection(connection_profile="gnmi", credentials="admin")
    spec = DiscoveryRuleSpec(rule_ref=ref, target_connection_profiles=(connection,), windows=windows)
    return DiscoveryRule(metadata=ObjectMeta(name="core"), spec=spec)


def test_a_device_that_refuses_the_login_is_neither_found_nor_not_found() -> None:
    outcomes = bytes(
        (Outcome.IDENTIFIED, Outcome.AUTHENTICATION_FAILED, Outcome.SILENT, Outcome.WAITING, Outcome.REFUSED, 1)
    )
    (entry,) = entries_of(scope("10.1.0.0/29"), outcomes)
    assert (entry.addresses, entry.found, entry.not_found) == (6, 1, 3)
    assert entry.message == "2 answer and are not identified: trimtab discovery why ADDRESS says why"


def test_an_entry_where_every_device_is_identified_has_nothing_to_say() -> None:
    outcomes = bytes((Outcome.IDENTIFIED, Outcome.SILENT, Outcome.WAITING))
    first, second = entries_of(scope("10.1.0.1-10.1.0.2", "10.1.0.3"), outcomes)
    assert (first.found, first.not_found, first.message) == (1, 1, UNSET)
    assert (second.found, second.not_found) == (0, 0)
    assert second.message == "1 answers and is not identified: trimtab discovery why ADDRESS says why"


def test_what_could_not_be_resolved_is_told_first() -> None:
    places = (*scope("10.1.0.1").places,)
    broken = Scope(places[0].addresses, (Place(places[0].entry, places[0].addresses, problem="no address"),))
    (entry,) = entries_of(broken, bytes([Outcome.WAITING]))
    assert str(entry.message).startswith("no address; 1 answers and is not identified")


def test_a_rule_that_waits_for_its_window_says_when_it_opens() -> None:
    assert awaited(rule(NIGHT), NOW) == (
        "OutsideWindow",
        "the first sweep of this rule, or of its change, begins when a window opens: at 2026-03-02T02:00:00Z",
    )


def test_a_rule_whose_window_is_open_is_being_swept() -> None:
    assert awaited(rule(NIGHT), NOW.replace(hour=3))[0] == "Sweeping"
    assert awaited(rule(), NOW) == ("Sweeping", "the first sweep of this rule, or of its change, has not ended")
