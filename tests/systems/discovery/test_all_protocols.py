"""One rule over devices of all four protocols: each becomes a Target that says how to reach it. On both servers."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from msgspec import UNSET

from tests.systems.discovery.example_vendors import add_vendors
from tests.systems.discovery.station import Station, condition, is_ready
from trimtab.lab.gnmi import GnmiDevice, ServerTls
from trimtab.lab.gnmi_certificates import Authority, self_signed
from trimtab.lab.gnmi_devices import eos, srlinux
from trimtab.lab.snmp import Personality, SnmpDevice
from trimtab.lab.snmpd import Snmpd, SnmpUser
from trimtab.lab.ssh import SshDevice
from trimtab.lab.ssh_personalities import EOS, IOS
from trimtab.model.duration import Duration
from trimtab.model.objectmeta import ObjectMeta
from trimtab.systems.discovery.kinds import (
    DiscoveryProfile,
    DiscoveryRule,
    DiscoveryRuleSpec,
    RuleRef,
    SyncEntry,
    Target,
    TargetConnection,
    TargetSyncProfile,
    TargetSyncProfileSpec,
)
from trimtab.testing.ports import free_ports

LOGIN = ("admin", "right-0ne")
USER = SnmpUser(name="ops", auth_password="authentic-1", priv_password="private-1")
CA = Authority()
PROTOCOLS = ("gnmi", "gnmi-plain", "netconf", "ssh", "snmp", "snmp-v3")
PORTS = dict(zip(PROTOCOLS, free_ports(len(PROTOCOLS)), strict=True))
JUNOS = Personality(
    description="Juniper Networks, Inc. mx204 internet router, kernel JUNOS 23.4R1.10, Build date: 2023-12-14",
    object_id="1.3.6.1.4.1.2636.1.1.1.2.116",
    name="edge-1",
    engine_id=bytes.fromhex("80001f880500000000000a01"),
)


@pytest.fixture
async def town(tmp_path: Path) -> AsyncIterator[dict[str, GnmiDevice | SshDevice]]:
    """A device of each protocol, and one that speaks two."""
    verified = CA.sign(addresses=["127.30.0.1"])
    devices: dict[str, GnmiDevice | SshDevice] = {
        "gnmi": GnmiDevice(srlinux(), addresses=["127.30.0.1"], port=PORTS["gnmi"], login=LOGIN, tls=verified),
        "gnmi-plain": GnmiDevice(eos(), addresses=["127.30.0.2"], port=PORTS["gnmi-plain"], login=LOGIN),
        "netconf": SshDevice(EOS, address="127.30.0.3", port=PORTS["netconf"], password=LOGIN[1]),
        "ssh": SshDevice(IOS, address="127.30.0.4", port=PORTS["ssh"], password=LOGIN[1]),
        "both, gnmi": GnmiDevice(
            srlinux("leaf7", "SIM00S24A007"), addresses=["127.30.0.7"], port=PORTS["gnmi-plain"], login=LOGIN
        ),
        "both, ssh": SshDevice(IOS, address="127.30.0.7", port=PORTS["ssh"], password=LOGIN[1]),
    }
    async with contextlib.AsyncExitStack() as stack:
        for device in devices.values():
            await stack.enter_async_context(device)
        await stack.enter_async_context(SnmpDevice({"127.30.0.5": JUNOS}, PORTS["snmp"]))
        stack.enter_context(
            Snmpd(tmp_path / "snmpd", PORTS["snmp-v3"], address="127.30.0.6", name="web-1", users=[USER])
        )
        yield devices


async def begin(
    station: Station,
    connections: tuple[TargetConnection, ...] = (),
    *,
    profiles: tuple[str, ...] = PROTOCOLS,
    tls: str = "tls",
) -> DiscoveryRule:
    """The rule, when it has swept once. Its vendor profiles are those of the example."""
    await add_vendors(station)
    await station.secret(
        "login", username=LOGIN[0], password=LOGIN[1], community="public", snmp_user=USER.name,
        auth_protocol="SHA", auth_password=USER.auth_password, priv_protocol="AES", priv_password=USER.priv_password,
    )  # fmt: skip
    await station.client.create(
        TargetSyncProfile(
            metadata=ObjectMeta(name="hourly", namespace=station.namespace),
            spec=TargetSyncProfileSpec(sync=(SyncEntry(name="all", paths=("/",), interval=Duration("1h")),)),
        )
    )
    await station.profile("gnmi", "gnmi", PORTS["gnmi"])
    await station.profile("gnmi-trusting", "gnmi", PORTS["gnmi"], skip_verify=True)
    await station.profile("gnmi-plain", "gnmi", PORTS["gnmi-plain"], insecure=True)
    await station.profile("netconf", "netconf", PORTS["netconf"])
    await station.profile("ssh", "ssh", PORTS["ssh"])
    await station.profile("snmp", "snmp", PORTS["snmp"], snmp_version="v2c")
    await station.profile("snmp-v3", "snmp", PORTS["snmp-v3"], snmp_version="v3")
    await station.ranges("lab", "127.30.0.0/28")
    spec = DiscoveryRuleSpec(
        rule_ref=RuleRef(group="discovery.trimtab.dev", version="v1alpha1", kind="DiscoveryRuleIPRange", name="lab"),
        discovery_profile=DiscoveryProfile(credentials="login", connection_profiles=profiles, tls_secret=tls or UNSET),
        target_connection_profiles=connections or tuple(to(profile) for profile in profiles),
        period=Duration("2s"),
    )
    metadata = ObjectMeta(name="lab", namespace=station.namespace)
    await station.client.create(DiscoveryRule(metadata=metadata, spec=spec))
    return await station.until(DiscoveryRule, "lab", is_ready)


def to(profile: str, **more: str) -> TargetConnection:
    return TargetConnection(connection_profile=profile, credentials="login", **more)


async def trust(station: Station, ca: bytes, client: ServerTls | None = None) -> None:
    own = {"tls.crt": client.certificate.decode(), "tls.key": client.key.decode()} if client else {}
    await station.secret("tls", **{"ca.crt": ca.decode(), **own})


async def test_a_device_of_each_protocol_becomes_a_target_that_says_what_it_is(
    station: Station, town: dict[str, GnmiDevice | SshDevice]
) -> None:
    await trust(station, CA.pem)
    async with station.working():
        rule = await begin(station)
        targets = await station.targets()
    said = {
        name: (t.spec.address, info.protocol, info.provider, info.version)
        for name, t in targets.items()
        if (info := t.status.discovery_info)
    }
    version = said.pop("web-1")
    assert said == {
        "leaf1": ("127.30.0.1", "gnmi", "srlinux.nokia", "24.10.1"),
        "spine1": ("127.30.0.2", "gnmi", "eos.arista", "4.32.1F"),
        "leaf-11": ("127.30.0.3", "netconf", "eos.arista", "4.30.2F"),
        "access-sw7": ("127.30.0.4", "ssh", "ios.cisco", "15.2(7)E6"),
        "edge-1": ("127.30.0.5", "snmp", "junos.juniper", "23.4R1.10"),
        "leaf7": ("127.30.0.7", "gnmi", "srlinux.nokia", "24.10.1"),
    }
    assert version == ("127.30.0.6", "snmp", "linux", "6.1.0")
    assert all(target.spec.provider == target.status.discovery_info.provider for target in targets.values())
    assert all(is_ready(target) for target in targets.values())
    (entry,) = rule.status.entries
    assert (entry.found, entry.not_found) == (7, 7)


async def test_of_two_protocols_the_first_profile_identifies_and_the_other_is_not_tried(
    station: Station, town: dict[str, GnmiDevice | SshDevice]
) -> None:
    await trust(station, CA.pem)
    async with station.working():
        await begin(station)
        await station.until_swept("lab")
    assert (await station.targets())["leaf7"].status.discovery_info.protocol == "gnmi"
    assert town["both, ssh"].credentials == []


async def test_with_the_profiles_the_other_way_round_the_other_protocol_identifies(
    station: Station, town: dict[str, GnmiDevice | SshDevice]
) -> None:
    await trust(station, CA.pem)
    async with station.working():
        await begin(station, profiles=("ssh", "gnmi-plain"))
    at_seven = [t for t in (await station.targets()).values() if "127.30.0.7" in t.status.addresses]
    assert [t.status.discovery_info.protocol for t in at_seven] == ["ssh"]
    assert town["both, gnmi"].calls["Capabilities"] == 0


async def test_a_target_has_the_first_connection_that_fits_its_protocol_and_vendor(
    station: Station, town: dict[str, GnmiDevice | SshDevice]
) -> None:
    await trust(station, CA.pem)
    async with station.working():
        await begin(
            station,
            (
                to("gnmi", vendor="srlinux.nokia", sync_profile="hourly", tls_secret="tls"),
                to("gnmi-plain"),
                to("ssh", vendor="junos.juniper"),
                to("snmp-v3"),
                to("ssh", vendor="ios.cisco"),
                to("snmp"),
            ),
        )
        targets = await station.targets()
    chosen = {name: target.spec.connection_profile for name, target in targets.items()}
    assert chosen == {
        "leaf1": "gnmi",
        "leaf7": "gnmi",
        "spine1": "gnmi-plain",
        "access-sw7": "ssh",
        "edge-1": "snmp-v3",
        "web-1": "snmp-v3",
        "leaf-11": UNSET,
    }
    assert (targets["leaf1"].spec.sync_profile, targets["leaf1"].spec.tls_secret) == ("hourly", "tls")
    assert targets["spine1"].spec.sync_profile is UNSET
    used = targets["leaf1"].status.used_references
    sync = await station.client.get(TargetSyncProfile, "hourly", station.namespace)
    assert used.sync_profile_resource_version == sync.metadata.resource_version
    assert used.tls_secret_resource_version
    assert targets["spine1"].status.used_references.sync_profile_resource_version is UNSET


async def test_a_certificate_taken_on_first_use_may_not_change(station: Station) -> None:
    first, second = self_signed("leaf1"), self_signed("leaf1")

    def served(tls: ServerTls) -> GnmiDevice:
        return GnmiDevice(srlinux(), addresses=["127.30.0.1"], port=PORTS["gnmi"], login=LOGIN, tls=tls)

    async with station.working():
        async with served(first):
            await begin(station, profiles=("gnmi-trusting",), tls="")
            before = (await station.targets())["leaf1"]
        async with served(second) as impostor:
            changed = await station.until(
                Target, "leaf1", lambda t: not is_ready(t) and "key" in condition(t, "Ready").message
            )
            await station.until_swept("lab")
            assert impostor.calls["Capabilities"] == 0
        assert changed.status.identity == before.status.identity
        assert "repin" in condition(changed, "Ready").message


async def test_a_device_that_wants_our_certificate_gets_it(station: Station) -> None:
    theirs, ours = CA.sign(addresses=["127.30.0.1"]), CA.sign("discovery")
    strict = ServerTls(theirs.certificate, theirs.key, client_ca=CA.pem)
    await trust(station, CA.pem, ours)
    device = GnmiDevice(srlinux(), addresses=["127.30.0.1"], port=PORTS["gnmi"], login=None, tls=strict)
    async with device, station.working():
        await begin(station, profiles=("gnmi",))
        assert list(await station.targets()) == ["leaf1"]
