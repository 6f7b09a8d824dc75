"""The kinds of discovery on our server and on a real kube-apiserver: what the CRDs alone take, default and refuse."""

from __future__ import annotations

from typing import Any

import pytest

from tests.systems.discovery.documents import SPECS, made
from trimtab.client.api import ApiClient
from trimtab.client.protocol import Named
from trimtab.model.errors import StatusError
from trimtab.model.scheme import Untyped
from trimtab.systems.discovery.kinds import DiscoveryRule, TargetConnectionProfile

VERSION = "discovery.trimtab.dev/v1alpha1"


async def refusal(client: ApiClient, obj: Untyped) -> str:
    with pytest.raises(StatusError) as refused:
        await client.create(obj, dry_run=True)
    assert refused.value.code == 422
    return refused.value.message


async def changed(client: ApiClient, old: Untyped, **spec: Any) -> str:
    """What is said to a change of an object's spec; "" when it is taken. None takes a field away."""
    kind, metadata = Named(VERSION, old.kind), old.raw["metadata"]
    now = await client.get(kind, metadata["name"], metadata["namespace"])
    fields = {key: value for key, value in {**now.raw["spec"], **spec}.items() if value is not None}
    try:
        await client.patch(now, Untyped({**now.raw, "spec": fields}))
    except StatusError as error:
        return f"{error.reason}: {error.message}"
    return ""


def assert_refused(said: str) -> None:
    assert said.startswith("Invalid: ")
    assert "may not be changed" in said or "may be neither set nor removed later" in said


@pytest.mark.parametrize("kind", SPECS)
async def test_every_kind_is_served(defined: ApiClient, namespace: str, kind: str) -> None:
    await defined.create(made(kind, "one", namespace))
    assert (await defined.get(Named(VERSION, kind), "one", namespace)).kind == kind


async def test_the_defaults_are_those_of_the_classes(defined: ApiClient, namespace: str) -> None:
    await defined.create(made("TargetConnectionProfile", "usual", namespace, protocol=None))
    await defined.create(made("DiscoveryRule", "usual", namespace))
    profile = await defined.get(Named(VERSION, "TargetConnectionProfile"), "usual", namespace)
    assert profile.raw["spec"] == {
        "protocol": "gnmi",
        "timeout": "10s",
        "connectRetry": "10s",
        "probeTimeout": "1s",
        "probeRetries": 1,
        "insecure": False,
        "skipVerify": False,
        "preferredNetconfVersion": "1.1",
        "includeNS": False,
        "operationWithNS": False,
        "useOperationRemove": False,
        "commitCandidate": "candidate",
    }
    rule = (await defined.get(Named(VERSION, "DiscoveryRule"), "usual", namespace)).raw["spec"]
    assert {name: rule[name] for name in ("period", "concurrentScans", "priority", "lockoutWindow", "fading")} == {
        "period": "1m",
        "concurrentScans": 64,
        "priority": 0,
        "lockoutWindow": "15m",
        "fading": {
            "lostAfterMisses": 3,
            "lostAfter": "10m",
            "deleteAfterMisses": 10,
            "deleteAfter": "24h",
            "maxLossPercent": 25,
        },
    }
    assert (await defined.get(TargetConnectionProfile, "usual", namespace)).spec.used_port == 57400


REF = SPECS["DiscoveryRule"]["ruleRef"]


@pytest.mark.parametrize(
    ("kind", "spec", "says"),
    [
        ("DiscoveryRule", {"ruleRef": None}, "spec.ruleRef: Required value"),
        ("DiscoveryRule", {"targetConnectionProfiles": []}, "spec.targetConnectionProfiles"),
        ("DiscoveryRule", {"period": "soon"}, "spec.period"),
        ("DiscoveryRule", {"period": "-1m"}, "spec.period"),
        ("DiscoveryRule", {"concurrentScans": 0}, "spec.concurrentScans"),
        ("DiscoveryRule", {"discoveryProfile": {"credentials": "a", "connectionProfiles": []}}, "connectionProfiles"),
        ("DiscoveryRule", {"fading": {"maxLossPercent": 0}}, "spec.fading.maxLossPercent"),
        ("DiscoveryRule", {"targetTemplate": {"nameTemplate": "x" * 1025}}, "spec.targetTemplate.nameTemplate"),
        ("DiscoveryRuleIPRange", {"prefixes": None}, "name at least one source"),
        ("DiscoveryRuleIPRange", {"prefixes": []}, "name at least one source"),
        (
            "DiscoveryRuleIPRange",
            {"defaultSchema": {"provider": "a", "version": "1"}},
            "prefixes cannot be written unprobed",
        ),
        ("DiscoveryRuleIPRange", {"prefixes": [{"prefix": "a.b"}, {"prefix": "a.b"}]}, "Duplicate value"),
        ("DiscoveryRuleIPRange", {"podSelector": {"matchExpressions": [{"key": "a", "operator": "Like"}]}}, "Like"),
        ("TargetConnectionProfile", {"protocol": "telnet"}, 'Unsupported value: "telnet"'),
        ("TargetConnectionProfile", {"port": 65536}, "spec.port"),
        ("TargetConnectionProfile", {"probeRetries": 6}, "spec.probeRetries"),
        ("TargetSyncProfile", {"sync": []}, "spec.sync"),
        ("TargetSyncProfile", {"sync": [{"name": "a", "paths": ["/"], "mode": "never"}]}, "spec.sync[0].mode"),
        ("DiscoveryVendorProfile", {"snmp": {"objectId": "1.3.x"}}, "spec.snmp.objectId"),
    ],
)
async def test_a_schema_refuses(defined: ApiClient, namespace: str, kind: str, spec: dict[str, Any], says: str) -> None:
    assert says in await refusal(defined, made(kind, "bad", namespace, **spec))


async def test_the_name_of_a_rule_fits_a_label(defined: ApiClient, namespace: str) -> None:
    assert "63 characters at most" in await refusal(defined, made("DiscoveryRule", "x" * 64, namespace))


@pytest.mark.parametrize(
    ("kind", "spec"),
    [
        ("TargetConnectionProfile", {"port": 9339}),
        ("TargetConnectionProfile", {"protocol": "ssh"}),
        ("TargetConnectionProfile", {"timeout": "20s"}),
        ("TargetConnectionProfile", {"insecure": True}),
        ("TargetConnectionProfile", {"encoding": "PROTO"}),
        ("TargetConnectionProfile", {"targetName": "OC-YANG"}),
        ("TargetConnectionProfile", {"serverName": "leaf1"}),
        ("TargetConnectionProfile", {"snmpVersion": "v3"}),
        ("TargetSyncProfile", {"workers": 2}),
        ("TargetSyncProfile", {"buffer": 10}),
        ("TargetSyncProfile", {"validate": False}),
        ("TargetSyncProfile", {"sync": [{"name": "config", "paths": ["/", "/system"]}]}),
        ("TargetSyncProfile", {"sync": [*SPECS["TargetSyncProfile"]["sync"], {"name": "more", "paths": ["/"]}]}),
        ("TargetSyncProfile", {"sync": [{"name": "config", "paths": ["/"], "port": 830}]}),
        ("DiscoveryRule", {"ruleRef": {**REF, "name": "other"}}),
        ("DiscoveryRule", {"ruleRef": {**REF, "kind": "Other"}}),
        ("DiscoveryRule", {"ruleRef": {**REF, "version": "v1"}}),
        ("DiscoveryRule", {"targetTemplate": {"nameTemplate": "{{ address }}"}}),
    ],
)
async def test_what_is_immutable_is_refused_also_when_it_was_unset(
    defined: ApiClient, namespace: str, kind: str, spec: dict[str, Any]
) -> None:
    old = made(kind, "one", namespace)
    await defined.create(old)
    assert_refused(await changed(defined, old, **spec))


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({"nameTemplate": "{{ address }}"}, {"nameTemplate": "a-{{ address }}"}),
        ({"nameTemplate": "{{ address }}"}, {"labels": {"a": "b"}}),
        (None, {"labels": {"a": "b"}, "nameTemplate": "{{ address }}"}),
        ({"nameTemplate": "{{ address }}"}, None),
        ({"labels": {"a": "b"}}, {"labels": {"a": "b"}, "nameTemplate": "{{ address }}"}),
        (None, {"nameTemplate": "{{ address }}"}),
    ],
)
async def test_the_name_template_neither_comes_nor_goes_nor_changes(
    defined: ApiClient, namespace: str, before: Any, after: Any
) -> None:
    old = made("DiscoveryRule", "one", namespace, targetTemplate=before)
    await defined.create(old)
    assert_refused(await changed(defined, old, targetTemplate=after))


@pytest.mark.parametrize(
    ("kind", "field"), [("TargetConnectionProfile", "port"), ("TargetConnectionProfile", "encoding")]
)
async def test_a_field_that_was_set_cannot_be_taken_away(
    defined: ApiClient, namespace: str, kind: str, field: str
) -> None:
    old = made(kind, "one", namespace, port=9339, encoding="JSON")
    await defined.create(old)
    assert_refused(await changed(defined, old, **{field: None}))


async def test_an_update_that_changes_nothing_immutable_is_taken(defined: ApiClient, namespace: str) -> None:
    rule = made("DiscoveryRule", "one", namespace, targetTemplate={"nameTemplate": "{{ address }}"})
    await defined.create(rule)
    template = {"nameTemplate": "{{ address }}", "labels": {"site": "north"}}
    assert await changed(defined, rule, period="5m", suspend=True, priority=7, targetTemplate=template) == ""
    found = await defined.get(DiscoveryRule, "one", namespace)
    assert (found.spec.period, found.spec.suspend) == ("5m", True)


async def test_labels_of_targets_may_come_change_and_go(defined: ApiClient, namespace: str) -> None:
    rule = made("DiscoveryRule", "one", namespace)
    await defined.create(rule)
    for template in ({"labels": {"site": "north"}}, {"annotations": {"site": "south"}}, None):
        assert await changed(defined, rule, targetTemplate=template) == ""
