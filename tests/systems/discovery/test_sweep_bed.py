"""The sweep on a network of its own: addresses where nobody is, and no way to some."""

import asyncio
import multiprocessing
import os
import sys
import time

import pytest

from trimtab.lab.network import Bed, available
from trimtab.systems.discovery.findings import Outcome
from trimtab.systems.discovery.scope.addresses import Addresses, parse
from trimtab.systems.discovery.sweep import Job, Limits, Probe, Sweeper, probe_once

PORT = 57400
LISTEN = f"""
import socket
server = socket.create_server(("::", {PORT}), family=socket.AF_INET6, backlog=4096, dualstack_ipv6=True)
print("ready", flush=True)
while True:
    server.accept()[0].close()
"""

pytestmark = pytest.mark.skipif(bool(available()), reason=available() or "-")


@pytest.fixture(scope="module")
def bed():
    with Bed() as bed:
        server = bed.b.popen([sys.executable, "-c", LISTEN], stdout=-1)
        assert server.stdout.readline() == b"ready\n"
        yield bed
        server.kill()
        server.communicate()


@pytest.fixture
async def sweeper(bed):
    async with Sweeper(Limits(packets_per_second=20_000), enter=bed.a.enter) as sweeper:
        yield sweeper


def probe(**more) -> Probe:
    return Probe(transport="tcp", port=PORT, **{"timeout": 0.4, **more})


async def sweep_of(sweeper, text, probe):
    sweep = sweeper.sweep(Job(addresses=Addresses(parse(text)), probes=[probe], seed=11))
    answers = [answer async for batch in sweep for answer in batch.answers]
    return answers, sweep.quality


async def test_live_devices_are_found_among_silent_addresses(sweeper):
    answers, quality = await sweep_of(sweeper, "10.77.15.0-10.77.16.255", probe())
    assert {a.position for a in answers if a.outcome is Outcome.OPEN} == set(range(256))
    assert len(answers) == 256
    assert quality.sent == 256 + 2 * 256
    assert quality.duration >= 0.8


async def test_an_ipv6_network_is_swept_as_well(sweeper):
    answers, quality = await sweep_of(sweeper, "fd77::f00-fd77::10ff", probe())
    assert {a.position for a in answers if a.outcome is Outcome.OPEN} == set(range(256))
    assert quality.sent == 256 + 2 * 256


async def test_no_way_to_an_address_says_nothing_of_the_device(sweeper):
    answers, quality = await sweep_of(sweeper, "198.51.100.0/28", probe())
    assert [a.outcome for a in answers] == [Outcome.NOT_SENT] * 14
    assert "14 of 14 probes could not be sent" in quality.poor
    assert await probe_once(sweeper, ["198.51.100.1"], [Probe(transport="udp", port=161)]) == {
        "198.51.100.1": Outcome.NOT_SENT
    }


async def test_a_router_that_says_nobody_is_there_is_heard(bed, sweeper):
    bed.b.run("ip", "route", "add", "unreachable", "10.77.200.0/29")
    bed.b.set("net/ipv4/ip_forward", 1)
    bed.b.set("net/ipv4/icmp_ratelimit", 0)
    try:
        answers, _ = await sweep_of(sweeper, "10.77.200.1-10.77.200.5", probe())
    finally:
        bed.b.set("net/ipv4/ip_forward", 0)
        bed.b.run("ip", "route", "delete", "unreachable", "10.77.200.0/29")
    assert [a.outcome for a in answers] == [Outcome.UNREACHABLE] * 5  # a router says so five times, then is silent


@pytest.mark.parametrize("transport", ["tcp", "udp"])
async def test_a_closed_port_of_a_live_device_is_refused(sweeper, transport):
    closed = Probe(transport=transport, port=9, timeout=0.4, tries=1)
    answers, quality = await sweep_of(sweeper, "10.77.15.254-10.77.16.1", closed)
    assert {(a.position, a.outcome) for a in answers} == {(0, Outcome.REFUSED), (1, Outcome.REFUSED)}
    assert quality.errors == 0


async def test_few_sockets_only_make_it_slower(bed):
    async with Sweeper(Limits(packets_per_second=20_000, sockets=50), enter=bed.a.enter) as sweeper:
        answers, quality = await sweep_of(sweeper, "10.77.15.156-10.77.16.99", probe(timeout=0.2, tries=1))
    assert len(answers) == 100
    assert quality.duration >= 0.2 * 100 / 50


async def test_busy_processors_make_no_device_look_dead(sweeper):
    burners = [
        multiprocessing.get_context("spawn").Process(target=burn, daemon=True) for _ in range(os.cpu_count() or 2)
    ]
    for burner in burners:
        burner.start()
    try:
        answers, _ = await sweep_of(sweeper, "10.77.8.0-10.77.23.255", probe(timeout=0.5))
    finally:
        for burner in burners:
            burner.kill()
            await asyncio.to_thread(burner.join)
    assert len(answers) == 2048


def burn() -> None:
    until = time.monotonic() + 30
    while time.monotonic() < until:
        pass
