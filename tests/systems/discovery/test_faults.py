"""Devices that misbehave, all at once: each has its clear outcome, and those beside them are found. On both servers."""

from __future__ import annotations

import contextlib
import random
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import asyncssh
import msgspec
import pytest

from tests.systems.discovery.example_vendors import add_vendors
from tests.systems.discovery.station import GROUP, Station, condition, ended, is_ready
from trimtab.client.api import ApiClient
from trimtab.client.protocol import Query
from trimtab.lab.gnmi import GnmiDevice
from trimtab.lab.gnmi_certificates import Authority
from trimtab.lab.gnmi_devices import srlinux
from trimtab.lab.gnmi_faults import Fault as GnmiFault
from trimtab.lab.snmp import Fault as SnmpFault
from trimtab.lab.snmp import Personality, SnmpDevice
from trimtab.lab.ssh import SshDevice
from trimtab.lab.ssh_personalities import EOS, LINUX
from trimtab.lab.ssh_personalities import Fault as SshFault
from trimtab.model.clock import SystemClock
from trimtab.model.duration import Duration
from trimtab.model.kubernetes import Event
from trimtab.model.objectmeta import ObjectMeta
from trimtab.storage.blobs import BlobError, Digest, read
from trimtab.storage.folder import FolderBlobs
from trimtab.systems.discovery import loop
from trimtab.systems.discovery.findings import Outcome
from trimtab.systems.discovery.kinds import (
    AddressEntry,
    DiscoveryProfile,
    DiscoveryRule,
    DiscoveryRuleIPRange,
    DiscoveryRuleSpec,
    Fading,
    RuleRef,
    TargetConnection,
)
from trimtab.systems.discovery.ledger.records import Ledger, decode
from trimtab.systems.discovery.ledger.why import explain
from trimtab.systems.discovery.scope.implementations import find
from trimtab.systems.discovery.scope.sources import resolved
from trimtab.testing.faults import Chance, Fault, FaultyTransport
from trimtab.testing.ports import free_ports

pytestmark = pytest.mark.slow

CA = Authority()
LOGIN = ("admin", "right-0ne")
PROFILES = ("gnmi", "plain", "netconf", "ssh", "snmp")
PORTS = dict(zip(PROFILES, free_ports(len(PROFILES)), strict=True))
AT_ONCE = Fading(
    lost_after_misses=1,
    lost_after=Duration("0s"),
    delete_after_misses=2,
    delete_after=Duration("0s"),
    max_loss_percent=100,
)
WITHIN = 30.0
"""Seconds that a sweep of all of them may take: each waits for one answer after the other, and all at a time."""

GOOD = {"127.31.0.40", "127.31.0.41", "127.31.0.42", "127.31.0.43"}

BAD: dict[str, tuple[Any, Outcome, str]] = {
    "127.31.0.1": (("gnmi", "expired"), Outcome.TLS_FAILED, "expired"),
    "127.31.0.2": (("plain", GnmiFault.GO_AWAY), Outcome.DISCONNECTED, "during Get"),
    "127.31.0.3": (("plain", GnmiFault.DRIP), Outcome.TIMED_OUT, "timeout"),
    "127.31.0.4": (("plain", GnmiFault.SILENT), Outcome.TIMED_OUT, "timeout"),
    "127.31.0.5": (("gnmi", GnmiFault.SILENT), Outcome.TIMED_OUT, "TLS"),
    "127.31.0.6": (("plain", GnmiFault.GARBAGE), Outcome.PROTOCOL_ERROR, "HTTP/2"),
    "127.31.0.7": (("plain", "password"), Outcome.AUTHENTICATION_FAILED, "Secret"),
    "127.31.0.10": (("ssh", "password"), Outcome.AUTHENTICATION_FAILED, "Secret"),
    "127.31.0.11": (("ssh", SshFault.SILENT), Outcome.TIMED_OUT, "timeout"),
    "127.31.0.12": (("ssh", SshFault.GARBAGE), Outcome.PROTOCOL_ERROR, "port"),
    "127.31.0.13": (("ssh", SshFault.SLOW), Outcome.TIMED_OUT, "timeout"),
    "127.31.0.14": (("ssh", SshFault.DROP_AT_LOGIN), Outcome.AUTHENTICATION_FAILED, "broke off"),
    "127.31.0.15": (("ssh", SshFault.FLOOD), Outcome.PROTOCOL_ERROR, ""),
    "127.31.0.16": (("ssh", SshFault.HANG), Outcome.TIMED_OUT, ""),
    "127.31.0.17": (("ssh", SshFault.CHATTER), Outcome.PROTOCOL_ERROR, ""),
    "127.31.0.20": (("netconf", SshFault.DROP_IN_ANSWER), Outcome.DISCONNECTED, ""),
    "127.31.0.21": (("netconf", SshFault.BAD_XML), Outcome.PROTOCOL_ERROR, "NETCONF"),
    "127.31.0.22": (("netconf", SshFault.BAD_FRAMING), Outcome.PROTOCOL_ERROR, ""),
    "127.31.0.30": (("snmp", "community"), Outcome.REFUSED, "nothing listens"),  # says this machine of its TCP ports
    "127.31.0.31": (("snmp", SnmpFault.GARBAGE), Outcome.PROTOCOL_ERROR, "SNMP"),
    "127.31.0.32": (("snmp", SnmpFault.TRUNCATED), Outcome.PROTOCOL_ERROR, "SNMP"),
    "127.31.0.50": (None, Outcome.REFUSED, "nothing listens"),
}
"""By address: what is wrong there, what becomes of it, and a word that `why` must say."""


def device(address: str, way: str, wrong: Any = None) -> Any:
    """A device that speaks by the profile, with that fault or wrong thing."""
    number = int(address.rpartition(".")[2])
    password = "another" if wrong == "password" else LOGIN[1]
    if way in ("gnmi", "plain"):
        return GnmiDevice(
            srlinux(f"leaf{number}", f"SIM00S24A{number:03}"),
            addresses=[address],
            port=PORTS[way],
            login=(LOGIN[0], password),
            tls=CA.sign(addresses=[address], expired=wrong == "expired") if way == "gnmi" else None,
            fault=wrong if isinstance(wrong, GnmiFault) else None,
        )
    if way == "snmp":
        face = Personality(
            name=f"switch{number}",
            engine_id=bytes.fromhex(f"80001f8805{number:012x}bb"),
            community=b"another" if wrong == "community" else b"public",
            fault=wrong if isinstance(wrong, SnmpFault) else None,
        )
        return SnmpDevice({address: face}, PORTS["snmp"])
    return SshDevice(
        EOS if way == "netconf" else LINUX,
        address=address,
        port=PORTS[way],
        password=password,
        host_key=KEYS.setdefault(address, asyncssh.generate_private_key("ssh-ed25519")),
        fault=wrong if isinstance(wrong, SshFault) else SshFault.NONE,
    )


KEYS: dict[str, asyncssh.SSHKey] = {}


@contextlib.asynccontextmanager
async def running(devices: dict[str, Any]) -> AsyncIterator[dict[str, Any]]:
    async with contextlib.AsyncExitStack() as stack:
        for each in devices.values():
            await stack.enter_async_context(each)
        yield devices


def good() -> dict[str, Any]:
    ways = ("gnmi", "ssh", "netconf", "snmp")
    return {address: device(address, way) for address, way in zip(sorted(GOOD), ways, strict=True)}


def bad() -> dict[str, Any]:
    return {address: device(address, *how) for address, (how, _, _) in BAD.items() if how}


async def begin(station: Station, profiles: tuple[str, ...] = PROFILES, period: str = "2s") -> None:
    """A rule over all of them, whose entries name many addresses twice and more."""
    await add_vendors(station)
    await station.secret("login", username=LOGIN[0], password=LOGIN[1], community="public")
    await station.secret("tls", **{"ca.crt": CA.pem.decode()})
    for name in PROFILES:
        protocol = {"plain": "gnmi"}.get(name, name)
        await station.profile(name, protocol, PORTS[name], timeout=Duration("3s"), insecure=name == "plain")
    again = tuple(AddressEntry(address=address) for address in sorted(GOOD))
    await station.ranges("lab", "127.31.0.0/26", "127.31.0.16/28", "127.31.0.30-127.31.0.50", addresses=again)
    spec = DiscoveryRuleSpec(
        rule_ref=RuleRef(group=GROUP, version="v1alpha1", kind="DiscoveryRuleIPRange", name="lab"),
        discovery_profile=DiscoveryProfile(credentials="login", connection_profiles=profiles, tls_secret="tls"),
        target_connection_profiles=tuple(
            TargetConnection(connection_profile=name, credentials="login") for name in profiles
        ),
        period=Duration(period),
        fading=AT_ONCE,
    )
    await station.client.create(DiscoveryRule(metadata=ObjectMeta(name="lab", namespace=station.namespace), spec=spec))


async def whys(station: Station) -> dict[str, Any]:
    """What `why` says of each address."""
    rule = await station.client.get(DiscoveryRule, "lab", station.namespace)
    ledger: Ledger = decode(await read(station.blobs, Digest(rule.status.ledger), max_bytes=1 << 20))
    source = await station.client.get(DiscoveryRuleIPRange, "lab", station.namespace)
    implementation = find(rule.spec.rule_ref)
    assert implementation is not None
    entries = implementation.entries(source)
    scope = await resolved(entries, station.client, station.namespace, None)  # type: ignore[arg-type]
    return {address: explain(rule, ledger, scope.addresses, address, entries=entries) for address in scope.addresses}


async def test_each_has_its_clear_outcome_and_the_good_ones_are_found(station: Station) -> None:
    async with running(good() | bad()), station.working():
        began = time.monotonic()
        await begin(station, period="1h")  # a second sweep sends no password where the first was refused
        rule = await station.until(DiscoveryRule, "lab", is_ready)
        took = time.monotonic() - began
        said = await whys(station)
        targets = await station.targets()
    assert took < WITHIN
    assert {address: said[address].outcome.name for address in BAD} == {a: bad[1].name for a, bad in BAD.items()}
    assert not [said[address].text for address, (_, _, word) in BAD.items() if word not in said[address].text]
    assert LOGIN[1] not in str(said)
    assert {said[address].outcome for address in GOOD} == {Outcome.IDENTIFIED}
    assert {target.spec.address for target in targets.values()} == GOOD
    by_name = {entry.entry: (entry.addresses, entry.found) for entry in rule.status.entries}
    assert by_name["127.31.0.0/26"] == (62, 4)
    assert by_name["127.31.0.30-127.31.0.50"] == (21, 4)
    assert by_name["127.31.0.43"] == (1, 1)
    assert rule.status.plan.addresses == 62


async def test_an_address_that_many_entries_name_is_asked_once_in_a_sweep(station: Station) -> None:
    async with running(good()) as devices, station.working():
        await begin(station)
        await station.until(DiscoveryRule, "lab", is_ready)
        asked = devices["127.31.0.43"].asked["127.31.0.43"]
        rule = await station.client.get(DiscoveryRule, "lab", station.namespace)
    assert asked <= 2 * len(rule.status.history)


async def test_a_wrong_community_is_silence_and_why_says_that_it_may_be_one(station: Station) -> None:
    async with running({"127.31.0.30": device("127.31.0.30", "snmp", "community")}), station.working():
        await begin(station, ("snmp",))
        await station.until(DiscoveryRule, "lab", is_ready)
        said = (await whys(station))["127.31.0.30"]
    assert said.outcome is Outcome.SILENT
    assert "wrong community" in said.text


async def test_no_target_goes_because_its_device_misbehaves(station: Station) -> None:
    """Each was fine once, and then does wrong. Only one that is silent counts as missed."""
    there = {address: how for address, (how, outcome, _) in BAD.items() if how and outcome.seen}
    async with station.working():
        async with running({address: device(address, how[0]) for address, how in there.items()}):
            await begin(station)
            await station.until(DiscoveryRule, "lab", is_ready)
            before = await station.targets()
        assert {target.spec.address for target in before.values()} == there.keys()
        async with running({address: device(address, *how) for address, how in there.items()}):
            await station.until_swept("lab", 4)
            after = await station.targets()
    assert {name: t.metadata.uid for name, t in after.items()} == {n: t.metadata.uid for n, t in before.items()}
    assert {target.status.phase for target in after.values()} == {"Ready"}


class Full(FolderBlobs):
    """A place for blobs that takes none while `full`."""

    full = True

    async def put(self, data: Any, *, media_type: str = "") -> Digest:
        if self.full:
            raise BlobError("no space is left")
        return await super().put(data, media_type=media_type)


async def test_blobs_that_cannot_be_kept_fail_the_sweep_at_once_and_it_is_tried_again(
    station: Station, tmp_path: Path
) -> None:
    station.blobs = blobs = Full(tmp_path / "blobs")
    async with running({"127.31.0.43": device("127.31.0.43", "snmp")}), station.working():
        await station.secret("login", community="public")
        await station.profile("snmp", "snmp", PORTS["snmp"])
        await station.ranges("lab", "127.31.0.0/21")
        await station.rule("lab", ("snmp",), "login", period="1h", packets_per_second=50)  # 41 seconds long
        rule = await station.until(DiscoveryRule, "lab", lambda rule: rule.status and ended(rule))
        assert (ended(rule)[0].outcome, ended(rule)[0].message) == ("Failed", "no space is left")
        rule = await station.until(DiscoveryRule, "lab", lambda rule: condition(rule, "Ready").status == "False")
        assert "no space is left" in condition(rule, "Ready").message
        await station.until_any(Event, Query(namespace=station.namespace), lambda event: event.reason == "SweepFailed")
        blobs.full = False
        await station.until(DiscoveryRule, "lab", lambda rule: rule.status.ledger)


CALLS = (Fault.UNREACHABLE, Fault.LOST_ANSWER, Fault.CONFLICT, Fault.INTERNAL, Fault.SLOW)
WATCHES = (Fault.ENDED, Fault.BROKEN, Fault.GONE)


def failing(station: Station, folder: Path, seed: int) -> tuple[Station, FaultyTransport]:
    """A controller's station whose server fails now and then, and what makes it fail."""
    rates = dict.fromkeys(CALLS, 0.02) | dict.fromkeys(WATCHES, 0.1)
    chance = Chance(random.Random(seed), rates, longest_seconds=0.2)
    faulty = FaultyTransport(station.client.transport, chance, SystemClock())
    client = ApiClient(faulty, station.client.scheme, namespace=station.namespace)
    return Station(client, station.namespace, folder), faulty


async def begin_switches(station: Station) -> None:
    await station.secret("login", community="public")
    await station.profile("snmp", "snmp", PORTS["snmp"], probe_timeout=Duration("500ms"))
    await station.ranges("lab", "127.31.1.0/26")
    await station.rule("lab", ("snmp",), "login", period="1s", fading=AT_ONCE)


@pytest.mark.parametrize("seed", [1, 2, 3])
async def test_a_server_that_fails_now_and_then_leaves_one_target_for_each_device(
    station: Station, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    monkeypatch.setattr(loop, "AGAIN_AFTER", 0.2)
    shaken, faulty = failing(station, tmp_path, seed)
    devices = {f"127.31.1.{n}": device(f"127.31.1.{n}", "snmp") for n in range(1, 31)}
    async with running(devices), shaken.working():
        await begin_switches(station)
        await station.until(DiscoveryRule, "lab", lambda rule: is_ready(rule) and len(ended(rule)) >= 3)
        faulty.calm()
        await station.until_swept("lab", 2)
        await station.until(DiscoveryRule, "lab", is_ready)
        targets = await station.targets()
    assert len(faulty.struck) > 5
    assert sorted(target.spec.address for target in targets.values()) == sorted(devices)
    assert all(is_ready(target) and target.status.phase == "Ready" for target in targets.values())


@pytest.mark.parametrize("seed", [4, 5])
async def test_devices_that_go_move_and_are_renamed_meanwhile_keep_their_targets(
    station: Station, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    monkeypatch.setattr(loop, "AGAIN_AFTER", 0.2)
    shaken, faulty = failing(station, tmp_path, seed)
    faces = {f"127.31.1.{n}": switch(n) for n in range(1, 31)}
    chance = random.Random(seed)
    async with SnmpDevice(lambda address: faces.get(address), PORTS["snmp"], listen="0.0.0.0"), shaken.working():
        await begin_switches(station)
        await station.until(DiscoveryRule, "lab", lambda rule: is_ready(rule) and rule.status.targets.ready == 30)
        before = {t.status.identity.engine_id: t.metadata.uid for t in (await station.targets()).values()}
        for _ in range(3):
            for _ in range(4):
                change(faces, chance)
            await station.until_swept("lab")
        faulty.calm()
        await station.until_swept("lab", 4)
        after = (await station.targets()).values()
    said = {t.status.identity.engine_id: (t.status.addresses, t.status.discovery_info.hostname) for t in after}
    assert said == {face.engine_id.hex(): ((address,), face.name) for address, face in faces.items()}
    assert {t.metadata.uid for t in after} == {before[engine] for engine in said}
    assert {(t.status.phase, is_ready(t)) for t in after} == {("Ready", True)}


def switch(number: int) -> Personality:
    return Personality(name=f"switch{number}", engine_id=bytes.fromhex(f"80001f8805{number:012x}ee"))


def change(faces: dict[str, Personality], chance: random.Random) -> None:
    """One device is gone, has another name, or has moved, perhaps to where another one was."""
    here, there = chance.choice(sorted(faces)), f"127.31.1.{chance.randrange(1, 62)}"
    match chance.choice(("gone", "renamed", "moved")):
        case "gone":
            del faces[here]
        case "renamed":
            faces[here] = msgspec.structs.replace(faces[here], name=f"{faces[here].name}x")
        case _ if there in faces:
            faces[here], faces[there] = faces[there], faces[here]
        case _:
            faces[there] = faces.pop(here)
