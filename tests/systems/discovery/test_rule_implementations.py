"""A second implementation at work: that of examples/discovery/lists.py. One kind and one class are all that it has."""

from __future__ import annotations

import sys
import uuid
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.runtime.conftest import HOMES
from tests.systems.discovery.documents import made
from tests.systems.discovery.judging import judging, said
from tests.systems.discovery.station import GROUP, Station, condition, is_ready
from trimtab.cli.systems import load
from trimtab.client.api import ApiClient
from trimtab.client.protocol import Named
from trimtab.lab.snmp import Personality, SnmpDevice
from trimtab.model.scheme import Scheme, Untyped
from trimtab.runtime.prepare import prepare
from trimtab.runtime.rights import rules_by_place
from trimtab.runtime.system import System
from trimtab.systems.discovery.kinds import DiscoveryRule, Target
from trimtab.systems.discovery.scope import implementations
from trimtab.systems.discovery.system import SYSTEM
from trimtab.testing.ports import free_ports

FILE = Path(__file__).parents[3] / "examples" / "discovery" / "lists.py"
LIST = Named(f"{GROUP}/v1alpha1", "AddressList")
DEVICES = {f"127.22.0.{n}": Personality(name=f"switch-{n}") for n in (1, 2, 9)}


@pytest.fixture
def extended(monkeypatch: pytest.MonkeyPatch) -> System:
    """Discovery as the file has it. What it registers is forgotten with the test."""
    monkeypatch.setattr(implementations, "_KNOWN", dict(implementations._KNOWN))
    monkeypatch.setattr(sys, "path", list(sys.path))
    (system,) = load("discovery", [FILE])
    return system


@pytest.fixture
async def listing(
    extended: System, client: ApiClient, scheme: Scheme, namespace: str, tmp_path: Path
) -> AsyncIterator[Station]:
    """At work, with a login and a profile for devices that answer SNMP."""
    for kind in extended.kinds:
        scheme.register(kind)
    await prepare(client, (extended,), rights=False)
    station = Station(client, namespace, tmp_path, extended)
    (port,) = free_ports(1)
    async with SnmpDevice(DEVICES, port), station.working():
        await station.secret("login", community="public")
        await station.profile("snmp", "snmp", port)
        yield station


async def listed(station: Station, name: str, *lines: str) -> None:
    obj = made("AddressList", name, station.namespace, text="\n".join(lines))
    await station.client.create(obj)


async def rule(station: Station, name: str, **more: Any) -> None:
    await station.rule(name, ("snmp",), "login", kind="AddressList", **more)


async def test_a_rule_sweeps_what_the_object_names(listing: Station) -> None:
    await listed(listing, "lab", "127.22.0.1  # the first one", "", "127.22.0.8-127.22.0.10")
    await rule(listing, "lab")
    swept = await listing.until(DiscoveryRule, "lab", is_ready)
    assert sorted(await listing.targets()) == ["switch-1", "switch-9"]
    assert [(e.entry, e.found, e.not_found) for e in swept.status.entries] == [
        ("127.22.0.1", 1, 0),
        ("127.22.0.8-127.22.0.10", 1, 2),
    ]
    assert ("AddressList", "lab", True) in [(p.kind, p.name, p.valid) for p in swept.status.profiles]


async def test_a_change_of_the_object_is_swept_at_once(listing: Station) -> None:
    await listed(listing, "lab", "127.22.0.1")
    await rule(listing, "lab", period="1h")
    await listing.until(DiscoveryRule, "lab", is_ready)
    held = await listing.client.get(LIST, "lab", listing.namespace)
    await listing.client.patch(held, Untyped({**held.raw, "spec": {"text": "127.22.0.2"}}))
    await listing.until(Target, "switch-2", is_ready)


async def test_objects_of_two_kinds_with_one_name_are_two(listing: Station) -> None:
    await listed(listing, "lab", "127.22.0.1")
    await listing.ranges("lab", "127.22.0.8/29")
    await rule(listing, "lab", period="1h")
    await listing.rule("ranges", ("snmp",), "login", source="lab", period="1h")
    for name in ("lab", "ranges"):
        await listing.until(DiscoveryRule, name, is_ready)
    held = await listing.client.get(LIST, "lab", listing.namespace)
    await listing.client.patch(held, Untyped({**held.raw, "spec": {"text": "127.22.0.2"}}))
    await listing.until(Target, "switch-2", is_ready)
    owners = {name: target.metadata.owner_references[0].name for name, target in (await listing.targets()).items()}
    assert (owners["switch-2"], owners["switch-9"]) == ("lab", "ranges")
    untouched = await listing.client.get(DiscoveryRule, "ranges", listing.namespace)
    assert len(untouched.status.history) == 1


async def test_the_rule_says_that_its_object_is_missing_until_it_comes(listing: Station) -> None:
    await rule(listing, "lab")
    waiting = await listing.until(DiscoveryRule, "lab", lambda rule: condition(rule, "Ready"))
    assert "AddressList lab: not found" in condition(waiting, "Ready").message
    await listed(listing, "lab", "127.22.0.1")
    await listing.until(DiscoveryRule, "lab", is_ready)


async def test_an_implementation_that_fails_stops_its_rule_and_is_told(
    listing: Station, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(self: Any, obj: Any) -> Any:
        raise KeyError("no such site")

    monkeypatch.setattr(type(implementations.known()[-1]), "entries", fail)
    await listed(listing, "lab", "127.22.0.1")
    await rule(listing, "lab")
    stopped = await listing.until(DiscoveryRule, "lab", lambda rule: condition(rule, "Ready"))
    assert condition(stopped, "Ready").reason == "InvalidProfile"
    assert "AddressList lab: its implementation failed: KeyError: 'no such site'" in condition(stopped, "Ready").message


@pytest.fixture(params=HOMES)
async def judged(request: pytest.FixtureRequest, extended: System, scheme: Scheme) -> AsyncIterator[ApiClient]:
    cluster = None if request.param == "local" else request.getfixturevalue("real_cluster").kubeconfig
    async with judging(extended, scheme, cluster) as client:
        yield client


async def test_an_object_that_is_wrong_is_refused(judged: ApiClient) -> None:
    wrong = made("AddressList", "lab", "default", text="127.22.0.1\n127.22.0.300 # a typing error")
    assert "line 2: 127.22.0.300 is not an address" in await said(judged, wrong)
    assert await said(judged, made("AddressList", "lab", "default", text="127.22.0.1")) == ""


async def test_a_rule_may_name_it_and_nothing_else_that_is_new(judged: ApiClient) -> None:
    ref = {"group": GROUP, "version": "v1alpha1", "kind": "AddressList", "name": "lab"}
    assert await said(judged, made("DiscoveryRule", "lab", "default", ruleRef=ref)) == ""
    unknown = await said(judged, made("DiscoveryRule", "lab", "default", ruleRef={**ref, "kind": "Other"}))
    assert f'"AddressList of {GROUP}/v1alpha1"' in unknown


async def test_an_object_that_makes_sweeps_too_long_is_refused(judged: ApiClient) -> None:
    place = f"lists-{uuid.uuid4().hex[:12]}"
    await judged.create(Untyped({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": place}}))
    ref = {"group": GROUP, "version": "v1alpha1", "kind": "AddressList", "name": "large"}
    await judged.create(made("DiscoveryRule", "large", place, ruleRef=ref, period="1s"))
    await judged.create(made("TargetConnectionProfile", "gnmi", place))
    answer = await said(judged, made("AddressList", "large", place, text="10.0.0.0/16"))
    assert 'DiscoveryRule "large" would be wrong' in answer


def test_the_file_takes_the_place_of_the_installed_system(extended: System) -> None:
    assert extended.name == "discovery"
    assert extended.source == str(FILE)
    assert {kind.__name__ for kind in extended.kinds} - {kind.__name__ for kind in SYSTEM.kinds} == {"AddressList"}


def test_the_controllers_may_read_its_objects_and_no_more(extended: System, scheme: Scheme) -> None:
    for kind in extended.kinds:
        scheme.register(kind)
    verbs = {
        verb
        for rule in rules_by_place(extended, scheme)[""]
        if "addresslists" in rule["resources"]
        for verb in rule["verbs"]
    }
    assert verbs == {"get", "list", "watch"}
