"""The fleet: devices of four protocols that are the same at each start, and that the example's profiles know."""

from __future__ import annotations

import asyncio
import itertools
import socket
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import msgspec
import pytest

from trimtab.lab import fleet
from trimtab.lab.fleet import COMMUNITY, PASSWORD, USERNAME, Fleet, Member, members
from trimtab.model.redacted import Redacted
from trimtab.model.yaml import load_all
from trimtab.systems.discovery.findings import Access, Identified, Identifier, Login, NotIdentified, Outcome
from trimtab.systems.discovery.identify.gnmi import GnmiIdentifier
from trimtab.systems.discovery.identify.netconf import NetconfIdentifier
from trimtab.systems.discovery.identify.snmp import SnmpIdentifier
from trimtab.systems.discovery.identify.ssh import SshIdentifier
from trimtab.systems.discovery.kinds import DiscoveryVendorProfile, Protocol, TargetConnectionProfileSpec
from trimtab.systems.discovery.targets.identity import Verdict, cleaned, compare, strongest
from trimtab.systems.discovery.vendors.choice import Vendors
from trimtab.testing.ports import free_ports
from trimtab.testing.processes import Process

EXAMPLE = Path(__file__).parents[2] / "examples" / "discovery"
NETWORK = "127.11.0.0"
LOGIN = Login(
    "lab",
    {"username": Redacted(USERNAME), "password": Redacted(PASSWORD), "community": Redacted(COMMUNITY)},
)
IDENTIFIERS = {"gnmi": GnmiIdentifier, "netconf": NetconfIdentifier, "ssh": SshIdentifier, "snmp": SnmpIdentifier}


def vendors() -> Vendors:
    """Those of the example."""
    files = sorted((EXAMPLE / "vendors").glob("*.yaml"))
    documents = [document for file in files for document in load_all(file.read_text())]
    return Vendors([msgspec.convert(document, DiscoveryVendorProfile) for document in documents])


@pytest.fixture
def ports() -> dict[Protocol, int]:
    gnmi, netconf, ssh, snmp = free_ports(4)
    return {"gnmi": gnmi, "netconf": netconf, "ssh": ssh, "snmp": snmp}


@pytest.fixture
async def running(ports: dict[Protocol, int]) -> AsyncIterator[Fleet]:
    async with Fleet(8, network=NETWORK, ports=ports) as started:
        yield started


async def asked(member: Member, address: str = "") -> Identified:
    """What a device says of itself."""
    identifier: Identifier = IDENTIFIERS[member.protocol](vendors())
    profile = TargetConnectionProfileSpec(
        protocol=member.protocol, port=member.port, skip_verify=True, connect_retry="0"
    )
    try:
        return await identifier.identify(Access(address=address or member.addresses[0], profile=profile, login=LOGIN))
    finally:
        await identifier.close()


async def test_every_device_says_by_its_protocol_what_it_is(running: Fleet) -> None:
    for member in running.members:
        if member.guarded:
            continue
        found = await asked(member)
        assert (found.info.protocol, found.info.hostname) == (member.protocol, member.name)
        assert found.info.provider not in ("", "unknown"), member.name
        assert found.tied == ()


async def test_all_four_protocols_are_there_with_four_devices() -> None:
    assert {member.protocol for member in members(4, NETWORK, fleet.HIGH_PORTS)} == {"gnmi", "netconf", "ssh", "snmp"}


async def test_no_two_devices_are_taken_for_one(running: Fleet) -> None:
    evidence = [cleaned((await asked(member)).evidence) for member in running.members if not member.guarded]
    assert all(strongest(each) in ("serial_number", "engine_id") for each in evidence)
    assert {compare(one, other) for one, other in itertools.combinations(evidence, 2)} <= {
        Verdict.DIFFERENT,
        Verdict.UNKNOWN,
    }


async def test_a_device_with_two_addresses_is_the_same_at_both(running: Fleet) -> None:
    leaf = running.members[0]
    first, second = [await asked(leaf, address) for address in leaf.addresses]
    assert leaf.addresses == ("127.11.0.1", "127.11.0.101")
    assert first.evidence == second.evidence


async def test_a_guarded_device_refuses_the_password(running: Fleet) -> None:
    with pytest.raises(NotIdentified) as refused:
        await asked(running.members[-1])
    assert refused.value.outcome is Outcome.AUTHENTICATION_FAILED


async def test_a_fleet_that_starts_again_shows_the_same_keys(ports: dict[Protocol, int]) -> None:
    pins = []
    for _ in range(2):
        async with Fleet(3, network=NETWORK, ports=ports) as started:
            pins.append([(await asked(member)).pin for member in started.members])
    assert pins[0] == pins[1]
    assert all(pins[0])


async def test_a_device_can_be_switched_off_and_on(running: Fleet) -> None:
    leaf = running.members[0]
    await running.stop(leaf.name)
    with socket.socket() as probe:
        assert probe.connect_ex((leaf.addresses[0], leaf.port)) != 0
    await running.start(leaf.name)
    assert (await asked(leaf)).info.hostname == leaf.name


@pytest.mark.parametrize("devices", [0, 101])
def test_a_fleet_has_its_bounds(devices: int) -> None:
    with pytest.raises(ValueError, match="1 to 100 devices"):
        members(devices, NETWORK, fleet.HIGH_PORTS)


async def test_a_port_that_is_taken_is_told_and_nothing_keeps_listening(ports: dict[Protocol, int]) -> None:
    with socket.create_server(("127.11.0.3", ports["ssh"])):
        with pytest.raises(OSError, match="in use"):
            async with Fleet(3, network=NETWORK, ports=ports):
                pass
        with socket.socket() as probe:
            assert probe.connect_ex(("127.11.0.2", ports["netconf"])) != 0


async def test_the_program_says_what_to_do_next(tmp_path: Path) -> None:
    with Process([sys.executable, "-m", "trimtab.lab.fleet", "--help"], log=tmp_path / "log") as process:
        await asyncio.to_thread(process.wait_until, lambda: "--devices" in process.tail(), within=20)
