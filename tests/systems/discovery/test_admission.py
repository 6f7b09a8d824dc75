"""Discovery's admission in both homes: our server calls the functions itself, a kube-apiserver asks a webhook."""

from __future__ import annotations

import itertools
import time
from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pytest

from tests.runtime.conftest import HOMES
from tests.systems.discovery.documents import SPECS, made
from tests.systems.discovery.judging import judging, said
from trimtab.client.api import ApiClient
from trimtab.client.protocol import Named
from trimtab.model.admission import AdmissionRequest, Allowed, Function, Operation
from trimtab.model.errors import StatusError
from trimtab.model.resource import Resource
from trimtab.model.scheme import Scheme, Untyped
from trimtab.runtime.rights import rules_by_place
from trimtab.runtime.webhooks.reader import ClientReader
from trimtab.systems.discovery import admission
from trimtab.systems.discovery.kinds import DiscoveryRule, TargetConnectionProfile
from trimtab.systems.discovery.system import SYSTEM

VERSION = "discovery.trimtab.dev/v1alpha1"

_numbers = itertools.count(1)


@pytest.fixture(params=HOMES)
async def judged(request: pytest.FixtureRequest, scheme: Scheme) -> AsyncIterator[ApiClient]:
    cluster = None if request.param == "local" else request.getfixturevalue("real_cluster").kubeconfig
    async with judging(SYSTEM, scheme, cluster) as client:
        yield client


@pytest.fixture
async def namespace(judged: ApiClient) -> str:
    name = f"admission-{next(_numbers)}"
    await judged.create(Untyped({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}))
    return name


async def changed(client: ApiClient, obj: Untyped, **spec: Any) -> str:
    now = await client.get(Named(VERSION, obj.kind), obj.name, obj.namespace)
    try:
        await client.patch(now, Untyped({**now.raw, "spec": {**now.raw["spec"], **spec}}))
    except StatusError as error:
        return f"{error.code} {error.message}"
    return ""


REF = SPECS["DiscoveryRule"]["ruleRef"]


@pytest.mark.parametrize(
    ("kind", "spec", "says"),
    [
        (
            "DiscoveryRule",
            {"ruleRef": {**REF, "kind": "DiscoveryRuleTopology"}},
            'supported values: "DiscoveryRuleIPRange of discovery.trimtab.dev/v1alpha1"',
        ),
        ("DiscoveryRule", {"targetTemplate": {"nameTemplate": "{{ hostname }}"}}, "hostname is not known"),
        ("DiscoveryRule", {"windows": [{"start": "at night", "duration": "1h"}]}, "spec.windows[0].start"),
        ("DiscoveryRule", {"period": "0s"}, "spec.period"),
        ("DiscoveryRule", {"fading": {"lostAfter": "48h"}}, "spec.fading.deleteAfter"),
        ("DiscoveryRuleIPRange", {"prefixes": [{"prefix": "10.1.0.5/24"}]}, "write 10.1.0.0/24 for the whole prefix"),
        ("DiscoveryRuleIPRange", {"prefixes": [{"prefix": "10.0.0.0/11"}]}, "has 2097150 hosts, and 1048576 is"),
        ("DiscoveryRuleIPRange", {"addresses": [{"address": "leaf 1"}]}, "spec.addresses[0].address"),
        ("DiscoveryVendorProfile", {"snmp": {"descriptionMatch": "("}}, "spec.snmp.descriptionMatch"),
        (
            "DiscoveryVendorProfile",
            {"ssh": {"commands": [{"key": "version", "command": "show version\nreload"}]}},
            "spec.ssh.commands[0].command",
        ),
        ("DiscoveryRule", {"period": "2ms"}, "must be at least 250ms"),
        ("DiscoveryRule", {"lockoutWindow": "10ms"}, "must be at least 1s"),
        (
            "DiscoveryRuleIPRange",
            {"prefixes": [{"prefix": f"10.{i}.0.0/16", "excludes": ["10.0.0.1"] * 241} for i in range(17)]},
            "all prefixes have 4097 excludes, and 4096 is the most",
        ),
        ("TargetConnectionProfile", {"probeTimeout": "31s"}, "must be at most 30s"),
        (
            "TargetSyncProfile",
            {"sync": [{"name": "a", "paths": ["/"], "protocol": "netconf", "mode": "sample"}]},
            'supported values with netconf: "once", "get"',
        ),
    ],
)
async def test_what_is_wrong_in_itself_is_refused(
    judged: ApiClient, namespace: str, kind: str, spec: dict[str, Any], says: str
) -> None:
    answer = await said(judged, made(kind, "bad", namespace, **spec))
    assert answer.startswith("422 ")
    assert says in answer


@pytest.mark.parametrize("kind", SPECS)
async def test_what_is_right_is_taken_though_nothing_else_exists(judged: ApiClient, namespace: str, kind: str) -> None:
    assert await said(judged, made(kind, "good", namespace)) == ""


@pytest.mark.parametrize("last", ["DiscoveryRule", "DiscoveryRuleIPRange", "TargetConnectionProfile"])
async def test_whichever_comes_last_is_refused_when_a_sweep_may_outlast_its_period(
    judged: ApiClient, namespace: str, last: str
) -> None:
    parts = {
        "DiscoveryRule": made("DiscoveryRule", "rule", namespace),
        "DiscoveryRuleIPRange": made("DiscoveryRuleIPRange", "range", namespace, prefixes=[{"prefix": "10.0.0.0/13"}]),
        "TargetConnectionProfile": made("TargetConnectionProfile", "gnmi", namespace),
    }
    final = parts.pop(last)
    for part in parts.values():
        await judged.create(part)
    answer = await said(judged, final)
    assert answer.startswith("422 ")
    assert "a sweep of 524286 addresses takes up to 2m10s when nothing answers" in answer
    if last != "DiscoveryRule":
        assert 'DiscoveryRule "rule" would be wrong: spec.period' in answer


async def test_a_range_that_grows_too_large_for_its_rule_is_refused(judged: ApiClient, namespace: str) -> None:
    small = made("DiscoveryRuleIPRange", "range", namespace)
    for part in (small, made("DiscoveryRule", "rule", namespace), made("TargetConnectionProfile", "gnmi", namespace)):
        await judged.create(part)
    assert await changed(judged, small, prefixes=[{"prefix": "10.1.0.0/20"}]) == ""
    assert "would be wrong" in await changed(judged, small, prefixes=[{"prefix": "10.0.0.0/13"}])


async def test_a_range_of_another_namespace_is_another_one(judged: ApiClient, namespace: str) -> None:
    for part in (made("DiscoveryRule", "rule", namespace), made("TargetConnectionProfile", "gnmi", namespace)):
        await judged.create(part)
    assert (
        await said(judged, made("DiscoveryRuleIPRange", "range", "default", prefixes=[{"prefix": "10.0.0.0/13"}])) == ""
    )


async def test_vendor_profiles_do_not_extend_each_other_in_a_circle(judged: ApiClient, namespace: str) -> None:
    await judged.create(made("DiscoveryVendorProfile", "child", namespace, extends="parent"))
    await judged.create(made("DiscoveryVendorProfile", "parent", namespace, extends="elder"))
    answer = await said(judged, made("DiscoveryVendorProfile", "elder", namespace, extends="child"))
    assert answer.startswith("422 ")
    assert "in a circle: elder → child → parent → elder" in answer
    assert await said(judged, made("DiscoveryVendorProfile", "elder", namespace)) == ""


async def test_no_vendor_profile_is_called_as_what_nobody_knows(judged: ApiClient, namespace: str) -> None:
    assert "no profile knows the device" in await said(judged, made("DiscoveryVendorProfile", "unknown", namespace))


class Namespace:
    """A reader of a namespace in which many rules name one range."""

    def __init__(self, scheme: Scheme, source: Resource, rules: int) -> None:
        self._source, self._profile = source, scheme.decode(made("TargetConnectionProfile", "gnmi", "default").raw)
        self._rules = [scheme.decode(made("DiscoveryRule", f"r{i}", "default", period="24h").raw) for i in range(rules)]

    async def find(self, kind: Any, name: str, namespace: str = "") -> Any:
        return self._source if isinstance(self._source, kind) else self._profile

    async def list(self, kind: Any, namespace: str = "", labels: str = "") -> Any:
        return self._rules


@pytest.mark.parametrize("function", [admission.source, admission.connection])
async def test_a_large_range_is_judged_once_for_all_rules_that_name_it(scheme: Scheme, function: Function) -> None:
    for kind in SYSTEM.kinds:
        scheme.register(kind)
    excludes = [[f"10.{i}.{j}.8-10.{i}.{j}.15" for j in range(256)] for i in range(16)]
    prefixes = [{"prefix": f"10.{i}.0.0/16", "excludes": excluded} for i, excluded in enumerate(excludes)]
    source = scheme.decode(made("DiscoveryRuleIPRange", "range", "default", prefixes=prefixes).raw)
    assert isinstance(source, Resource)

    async def seconds(rules: int) -> float:
        reader = Namespace(scheme, source, rules)
        obj = source if function is admission.source else await reader.find(TargetConnectionProfile, "gnmi")
        request = AdmissionRequest(
            operation=Operation.CREATE, kind=scheme.kind_of(type(obj)), namespace="default", name=obj.name, object=obj
        )
        began = time.process_time()
        assert isinstance(await function(request, reader), Allowed)
        return time.process_time() - began

    one = max([await seconds(1) for _ in range(3)])
    assert await seconds(60) < 10 * one


async def test_a_rule_needs_a_profile_unless_its_range_is_static(judged: ApiClient, namespace: str) -> None:
    static = {"addresses": [{"address": "10.1.0.5"}], "defaultSchema": {"provider": "srl", "version": "24.10"}}
    await judged.create(made("DiscoveryRuleIPRange", "range", namespace))
    await judged.create(made("DiscoveryRuleIPRange", "static", namespace, prefixes=None, **static))
    bare = made("DiscoveryRule", "rule", namespace, discoveryProfile=None)
    assert "spec.discoveryProfile: Required value: range is probed" in await said(judged, bare)
    named = made("DiscoveryRule", "rule", namespace, discoveryProfile=None, ruleRef={**REF, "name": "static"})
    assert await said(judged, named) == ""


async def test_a_rule_that_would_be_refused_today_can_still_be_annotated(
    judged: ApiClient, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    rule = made("DiscoveryRule", "rule", namespace)
    for part in (
        rule,
        made("DiscoveryRuleIPRange", "range", namespace),
        made("TargetConnectionProfile", "gnmi", namespace),
    ):
        await judged.create(part)
    monkeypatch.setenv("TRIMTAB_DISCOVERY_PACKETS_PER_SECOND", "1")
    assert "spec.period" in await changed(judged, rule, priority=1)
    now = await judged.get(DiscoveryRule, "rule", namespace)
    await judged.patch(now, now.replace(metadata=msgspec.structs.replace(now.metadata, annotations={"a": "b"})))
    assert (await judged.get(DiscoveryRule, "rule", namespace)).metadata.annotations == {"a": "b"}


@pytest.mark.parametrize("judged", ["local"], indirect=True)
@pytest.mark.parametrize(
    ("function", "kind", "spec", "warning"),
    [
        (admission.rule, "DiscoveryRule", {"targetTemplate": {"nameTemplate": "leaf"}}, "all Targets have one name"),
        (admission.connection, "TargetConnectionProfile", {"insecure": True}, "passwords are sent without TLS"),
        (admission.source, "DiscoveryRuleIPRange", {"podSelector": {}}, "every Pod of the namespace is meant"),
        (
            admission.source,
            "DiscoveryRuleIPRange",
            {"prefixes": [{"prefix": "10.1.0.0/24", "excludes": ["10.1.0.0/25", "10.1.0.128/25"]}]},
            "all of 10.1.0.0/24 is excluded",
        ),
        (
            admission.vendor,
            "DiscoveryVendorProfile",
            {"extends": "nowhere"},
            "odd extends nowhere, which does not exist here",
        ),
    ],
)
async def test_what_is_hardly_meant_is_taken_with_a_warning(
    judged: ApiClient, scheme: Scheme, function: Function, kind: str, spec: dict[str, Any], warning: str
) -> None:
    obj = scheme.decode(made(kind, "odd", "default", **spec).raw)
    assert isinstance(obj, Resource)
    request = AdmissionRequest(
        operation=Operation.CREATE, kind=scheme.kind_of(type(obj)), namespace="default", name="odd", object=obj
    )
    answer = await function(request, ClientReader(judged))
    assert isinstance(answer, Allowed)
    assert warning in answer.warnings[0]


def test_the_system_may_read_what_its_functions_ask_for(scheme: Scheme) -> None:
    granted = {
        (resource, verb)
        for rule in rules_by_place(SYSTEM, scheme)[""]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }
    assert granted >= {
        ("discoveryrules", "list"),
        ("discoveryvendorprofiles", "list"),
        ("discoveryruleipranges", "get"),
        ("targetconnectionprofiles", "get"),
    }
