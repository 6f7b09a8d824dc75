from __future__ import annotations

from typing import Any

import pytest

from trimtab.model.duration import Duration
from trimtab.model.objectmeta import ObjectMeta
from trimtab.systems.discovery.kinds import (
    AddressEntry,
    DefaultSchema,
    DiscoveryProfile,
    DiscoveryRule,
    DiscoveryRuleIPRange,
    DiscoveryRuleIPRangeSpec,
    DiscoveryRuleSpec,
    Fading,
    PrefixEntry,
    RuleRef,
    SyncEntry,
    TargetConnection,
    TargetConnectionProfile,
    TargetConnectionProfileSpec,
    TargetSyncProfile,
    TargetSyncProfileSpec,
    TargetTemplate,
    Window,
)
from trimtab.systems.discovery.problems import connection_problems, rule_problems, sync_problems
from trimtab.systems.discovery.scope.plan import Shared

REF = RuleRef(group="discovery.trimtab.dev", version="v1alpha1", kind="DiscoveryRuleIPRange", name="range")
PROFILE = DiscoveryProfile(credentials="login", connection_profiles=("gnmi",))
STATIC = DefaultSchema(provider="srl", version="24.10")


def rule(**spec: Any) -> DiscoveryRule:
    connection = TargetConnection(connection_profile="gnmi", credentials="login")
    usual: dict[str, Any] = {
        "rule_ref": REF,
        "discovery_profile": PROFILE,
        "target_connection_profiles": (connection,),
    }
    return DiscoveryRule(metadata=ObjectMeta(name="rule"), spec=DiscoveryRuleSpec(**{**usual, **spec}))


def unprofiled(**spec: Any) -> DiscoveryRule:
    whole = rule(**spec)
    fields = {name: getattr(whole.spec, name) for name in ("rule_ref", "target_connection_profiles")}
    return whole.replace(spec=DiscoveryRuleSpec(**fields))


def source(*prefixes: str, **spec: Any) -> DiscoveryRuleIPRange:
    entries = tuple(PrefixEntry(prefix=prefix) for prefix in prefixes)
    return DiscoveryRuleIPRange(
        metadata=ObjectMeta(name="range"), spec=DiscoveryRuleIPRangeSpec(prefixes=entries, **spec)
    )


def profile(**spec: Any) -> TargetConnectionProfile:
    return TargetConnectionProfile(metadata=ObjectMeta(name="gnmi"), spec=TargetConnectionProfileSpec(**spec))


def test_a_good_rule_has_no_problems_whatever_exists_already() -> None:
    assert rule_problems(rule()) == []
    assert rule_problems(rule(), source("10.1.0.0/24")) == []
    assert rule_problems(rule(), source("10.1.0.0/24"), {"gnmi": profile()}) == []


def test_an_unsupported_reference_is_answered_with_the_supported_ones() -> None:
    (problem,) = rule_problems(rule(rule_ref=REF.replace(kind="DiscoveryRuleTopology")))
    assert str(problem) == (
        'spec.ruleRef: Unsupported value: "DiscoveryRuleTopology of discovery.trimtab.dev/v1alpha1": '
        'supported values: "DiscoveryRuleIPRange of discovery.trimtab.dev/v1alpha1"'
    )


def test_the_group_of_a_white_label_is_that_of_the_rule() -> None:
    theirs = rule(rule_ref=REF.replace(group="discovery.example.com")).replace(
        api_version="discovery.example.com/v1alpha1"
    )
    assert rule_problems(theirs) == []
    assert rule_problems(rule(rule_ref=REF.replace(group="discovery.example.com"))) != []


@pytest.mark.parametrize(
    ("spec", "path"),
    [
        ({"rule_ref": REF.replace(name="A B")}, "spec.ruleRef.name"),
        ({"period": Duration("0s")}, "spec.period"),
        ({"period": Duration("9000h")}, "spec.period"),
        ({"period": Duration("1ns")}, "spec.period"),
        ({"period": Duration("249ms")}, "spec.period"),
        ({"lockout_window": Duration("0s")}, "spec.lockoutWindow"),
        ({"lockout_window": Duration("999ms")}, "spec.lockoutWindow"),
        ({"windows": (Window(start="x", duration=Duration("1h")),)}, "spec.windows[0].start"),
        ({"fading": Fading(lost_after=Duration("2h"), delete_after=Duration("1h"))}, "spec.fading.deleteAfter"),
        ({"fading": Fading(lost_after_misses=9, delete_after_misses=8)}, "spec.fading.deleteAfterMisses"),
        ({"target_template": TargetTemplate(name_template="{{")}, "spec.targetTemplate.nameTemplate"),
        ({"target_template": TargetTemplate(labels={"a": "{{ b }}"})}, "spec.targetTemplate.labels[a]"),
        ({"target_template": TargetTemplate(labels={"a b": "c"})}, "spec.targetTemplate.labels[a b]"),
        ({"target_template": TargetTemplate(annotations={"a": "{{ b }}"})}, "spec.targetTemplate.annotations[a]"),
        (
            {"target_template": TargetTemplate(labels={"discovery.trimtab.dev/rule": "x"})},
            "spec.targetTemplate.labels[discovery.trimtab.dev/rule]",
        ),
        ({"discovery_profile": PROFILE.replace(credentials="A B")}, "spec.discoveryProfile.credentials"),
        ({"discovery_profile": PROFILE.replace(tls_secret="A")}, "spec.discoveryProfile.tlsSecret"),
        (
            {"discovery_profile": PROFILE.replace(connection_profiles=("a", "b", "a"))},
            "spec.discoveryProfile.connectionProfiles[2]",
        ),
        (
            {"discovery_profile": PROFILE.replace(fallback_credentials=("other", "login"))},
            "spec.discoveryProfile.fallbackCredentials[1]",
        ),
        (
            {"target_connection_profiles": (TargetConnection(connection_profile="a", credentials="_"),)},
            "spec.targetConnectionProfiles[0].credentials",
        ),
    ],
)
def test_a_problem_is_named_by_its_path(spec: dict[str, Any], path: str) -> None:
    assert [problem.path for problem in rule_problems(rule(**spec))] == [path]


def test_a_source_that_is_probed_needs_a_profile() -> None:
    (problem,) = rule_problems(unprofiled(), source("10.1.0.0/24"))
    assert str(problem) == (
        "spec.discoveryProfile: Required value: range is probed: say how; a DiscoveryRuleIPRange with a defaultSchema is not"
    )


def test_a_static_source_needs_neither_profile_nor_time() -> None:
    static = source(addresses=(AddressEntry(address="10.1.0.5"),), default_schema=STATIC)
    assert rule_problems(unprofiled(), static) == []


def test_a_sweep_that_may_outlast_its_period_is_refused_with_the_numbers() -> None:
    (problem,) = rule_problems(rule(), source("10.0.0.0/13"), {"gnmi": profile()})
    assert problem.path == "spec.period"
    assert problem.detail == (
        "a sweep of 524286 addresses takes up to 2m10s when nothing answers "
        "(1048572 packets, 20000 a second, 8192 sockets): make the period longer, name fewer addresses, "
        "lower probeTimeout or probeRetries of the connection profiles, or allow more by packetsPerSecond, "
        "TRIMTAB_DISCOVERY_PACKETS_PER_SECOND or TRIMTAB_DISCOVERY_SOCKETS"
    )


@pytest.mark.parametrize(
    ("spec", "prefix", "patience"),
    [
        ({"period": Duration("3m")}, "10.0.0.0/13", {}),
        ({}, "10.0.0.0/16", {}),
        ({}, "10.0.0.0/13", {"probe_retries": 0, "probe_timeout": Duration("500ms")}),
    ],
)
def test_what_the_refusal_names_helps(spec: dict[str, Any], prefix: str, patience: dict[str, Any]) -> None:
    assert rule_problems(rule(**spec), source(prefix), {"gnmi": profile(**patience)}) == []


def test_the_lower_of_the_shared_and_the_own_rate_counts() -> None:
    slow = rule(packets_per_second=10)
    assert rule_problems(slow, source("10.1.0.0/22"), {"gnmi": profile()}) != []
    assert rule_problems(rule(packets_per_second=10**6), source("10.1.0.0/22"), {"gnmi": profile()}, Shared(10)) != []


def test_a_period_as_long_as_the_worst_case_is_enough() -> None:
    profiles = {"gnmi": profile(probe_retries=0)}
    single = source(addresses=(AddressEntry(address="10.1.0.5"),))
    assert rule_problems(rule(period=Duration("1.001s")), single, profiles) == []
    assert rule_problems(rule(period=Duration("900ms")), single, profiles) != []


def test_a_source_that_is_wrong_itself_is_not_held_against_the_rule() -> None:
    assert rule_problems(rule(), source("10.0.0.0/3"), {"gnmi": profile()}) == []


@pytest.mark.parametrize(
    ("spec", "path"),
    [
        ({"timeout": Duration("0s")}, "spec.timeout"),
        ({"timeout": Duration("5m1s")}, "spec.timeout"),
        ({"probe_timeout": Duration("0s")}, "spec.probeTimeout"),
        ({"probe_timeout": Duration("31s")}, "spec.probeTimeout"),
        ({"connect_retry": Duration("6m")}, "spec.connectRetry"),
    ],
)
def test_the_patience_of_a_connection_profile_is_bounded(spec: dict[str, Any], path: str) -> None:
    assert [problem.path for problem in connection_problems(profile(**spec))] == [path]


def test_a_connection_profile_may_try_once() -> None:
    assert connection_problems(profile(connect_retry=Duration("0s"))) == []


def test_a_sync_profile_says_what_its_protocol_can() -> None:
    entries = (
        SyncEntry(name="a", paths=("/",), protocol="netconf", mode="onChange"),
        SyncEntry(name="b", paths=("/",), mode="sample", interval=Duration("0s")),
        SyncEntry(name="c", paths=("/",), protocol="netconf", mode="get"),
    )
    synced = TargetSyncProfile(metadata=ObjectMeta(name="s"), spec=TargetSyncProfileSpec(sync=entries))
    assert [problem.path for problem in sync_problems(synced)] == ["spec.sync[0].mode", "spec.sync[1].interval"]
