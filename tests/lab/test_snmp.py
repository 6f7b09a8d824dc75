"""The simulated agent, asked by net-snmp's own client."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from trimtab.lab.snmp import Personality, SnmpDevice, numbered
from trimtab.testing.ports import free_ports
from trimtab.testing.processes import Process

NAME = "1.3.6.1.2.1.1.5.0"


async def snmpget(place: str, *oids: str, version: str = "v2c", community: str = "public") -> str:
    command = ["snmpget", f"-{version}", f"-c{community}", "-Onq", "-m", "", "-r0", "-t1", place, *oids]
    process = await asyncio.create_subprocess_exec(
        *command, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
    )
    output, _ = await process.communicate()
    return output.decode()


@pytest.fixture
async def port() -> AsyncIterator[int]:
    (port,) = free_ports(1)
    faces = {
        "127.45.0.1": Personality(name="first", more={"1.3.6.1.2.1.2.1.0": 4}),
        "127.45.0.2": Personality(name="second", community=b"other"),
    }
    async with SnmpDevice(faces, port):
        yield port


async def test_each_address_has_its_own_name(port: int) -> None:
    assert "first" in await snmpget(f"127.45.0.1:{port}", NAME)
    assert "second" in await snmpget(f"127.45.0.2:{port}", NAME, community="other")


async def test_a_wrong_community_is_met_with_silence(port: int) -> None:
    assert "Timeout" in await snmpget(f"127.45.0.2:{port}", NAME)


async def test_other_objects_keep_their_type(port: int) -> None:
    assert await snmpget(f"127.45.0.1:{port}", "1.3.6.1.2.1.2.1.0") == ".1.3.6.1.2.1.2.1.0 4\n"


async def test_an_unknown_object_fails_all_of_v1_and_one_of_v2c(port: int) -> None:
    assert "noSuchName" in await snmpget(f"127.45.0.1:{port}", NAME, "1.3.6.1.9.9", version="v1")
    both = await snmpget(f"127.45.0.1:{port}", NAME, "1.3.6.1.9.9")
    assert "first" in both
    assert "No Such Object" in both


async def test_one_socket_is_a_device_at_each_address_of_a_prefix_and_answers_from_there() -> None:
    (port,) = free_ports(1)
    async with SnmpDevice(numbered("127.45.16.0/24", Personality(name="sw")), port, listen="0.0.0.0") as device:
        assert "sw-127-45-16-7" in await snmpget(f"127.45.16.7:{port}", NAME)
        assert "sw-127-45-16-8" in await snmpget(f"127.45.16.8:{port}", NAME)
        assert "Timeout" in await snmpget(f"127.45.17.1:{port}", NAME)
    assert set(device.asked) == {"127.45.16.7", "127.45.16.8"}


async def test_it_runs_by_itself(tmp_path: Path) -> None:
    (port,) = free_ports(1)
    command = [sys.executable, "-m", "trimtab.lab.snmp", "--prefix", "127.45.32.0/30", "--port", str(port)]
    log = tmp_path / "log"
    with Process(command, log=log) as process:
        process.wait_until(lambda: "listening" in log.read_text(), within=20)
        assert "lab-127-45-32-2" in await snmpget(f"127.45.32.2:{port}", NAME)
