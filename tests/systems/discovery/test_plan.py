from __future__ import annotations

import contextlib
import socket
from collections.abc import Iterator
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trimtab.model.duration import Duration
from trimtab.systems.discovery.kinds import TargetConnectionProfileSpec
from trimtab.systems.discovery.scope.addresses import Addresses, parse
from trimtab.systems.discovery.scope.plan import Cost, Shared, costs, limits, plan
from trimtab.systems.discovery.sweep.sweeper import Job, Limits, Probe, Sweeper


def test_tcp_waits_for_sockets_when_nothing_answers() -> None:
    made = plan(65_534, [Cost("tcp", 1.0, 2)], packets_per_second=20_000, sockets=2_000)
    assert made.worst_case == "1m7.534s"
    assert (made.addresses, made.probes, made.packets_per_second, made.sockets) == (65_534, 131_068, 20_000, 2_000)


def test_udp_waits_for_the_rate_and_needs_one_socket() -> None:
    made = plan(60_000, [Cost("udp", 1.0, 2)], packets_per_second=20_000, sockets=2_000)
    assert (made.worst_case, made.sockets) == ("8s", 1)


def test_a_few_addresses_take_as_long_as_one_of_them() -> None:
    made = plan(2, [Cost("tcp", 1.5, 2), Cost("udp", 1.0, 2)], packets_per_second=20_000, sockets=2_000)
    assert made.worst_case.seconds == pytest.approx(3.0, abs=0.01)
    assert made.sockets == 3


def test_nothing_to_probe_costs_nothing() -> None:
    for made in (plan(0, [Cost("tcp", 1.0)], 10, 10), plan(7, [], 10, 10)):
        assert (made.probes, made.sockets, made.worst_case) == (0, 0, "0s")


@given(
    st.integers(1, 10**6),
    st.lists(st.builds(Cost, st.sampled_from(["tcp", "udp"]), st.floats(0.01, 30), st.integers(1, 6)), min_size=1),
    st.integers(1, 10**6),
    st.integers(1, 10**6),
)
def test_more_addresses_take_longer_and_a_higher_limit_never_does(
    addresses: int, probes: list[Cost], rate: int, sockets: int
) -> None:
    def seconds(n: int, r: int, c: int) -> float:
        return plan(n, probes, r, c).worst_case.seconds

    now = seconds(addresses, rate, sockets)
    assert seconds(2 * addresses, rate, sockets) >= now
    assert seconds(addresses, 2 * rate, sockets) <= now
    assert seconds(addresses, rate, 2 * sockets) <= now


def test_profiles_that_use_one_port_are_probed_once_by_the_most_patient() -> None:
    gnmi = TargetConnectionProfileSpec(probe_timeout=Duration("2s"), probe_retries=0)
    same = TargetConnectionProfileSpec(insecure=True, probe_timeout=Duration("500ms"), probe_retries=3)
    ssh = TargetConnectionProfileSpec(protocol="ssh")
    snmp = TargetConnectionProfileSpec(protocol="snmp")
    assert costs((gnmi, same, ssh, snmp)) == (Cost("tcp", 2.0, 4), Cost("tcp", 1.0, 2), Cost("udp", 1.0, 2))


def test_snmp_versions_are_probed_one_by_one() -> None:
    versions = [TargetConnectionProfileSpec(protocol="snmp", snmp_version=version) for version in ("v2c", "v3")]
    assert len(costs(versions)) == 2


def test_each_login_has_a_question_of_its_own_with_snmp_only() -> None:
    profiles = [TargetConnectionProfileSpec(protocol=protocol) for protocol in ("snmp", "ssh")]
    assert [cost.transport for cost in costs(profiles, logins=3)] == ["udp", "udp", "udp", "tcp"]


def test_the_environment_sets_what_all_rules_share() -> None:
    assert limits({}) == Shared(packets_per_second=20_000, sockets=8_192)
    given = {"TRIMTAB_DISCOVERY_PACKETS_PER_SECOND": "500", "TRIMTAB_DISCOVERY_SOCKETS": "64"}
    assert limits(given) == Shared(packets_per_second=500, sockets=64)


@pytest.mark.parametrize("text", ["0", "-1", "1000001", "many", "2e4", "٣", " 5", "9" * 5000])
def test_a_malformed_limit_is_named(text: str) -> None:
    with pytest.raises(
        ValueError, match=r"TRIMTAB_DISCOVERY_SOCKETS is .*: it must be a whole number from 1 to 1000000"
    ):
        limits({"TRIMTAB_DISCOVERY_SOCKETS": text})


def bind(server: socket.socket) -> None:
    """To all addresses of loopback, and to no other."""
    server.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, b"lo")
    server.bind(("0.0.0.0", 0))


@pytest.fixture
def silent_tcp() -> Iterator[int]:
    """A port of all 127.x addresses at which connections are neither taken nor refused: the queue is full."""
    with contextlib.ExitStack() as stack:
        server = stack.enter_context(socket.socket())
        bind(server)
        server.listen(0)
        port: int = server.getsockname()[1]
        for _ in range(4):
            waiting = stack.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex(("127.0.0.1", port))
        yield port


@pytest.fixture
def silent_udp() -> Iterator[int]:
    with socket.socket(type=socket.SOCK_DGRAM) as server:
        bind(server)
        yield server.getsockname()[1]


@pytest.mark.parametrize(
    ("transports", "rate", "sockets"), [(["tcp"], 20_000, 40), (["udp"], 400, 1), (["tcp", "udp"], 800, 1000)]
)
async def test_a_sweep_of_silent_addresses_takes_as_long_as_was_reckoned(
    silent_tcp: int, silent_udp: int, transports: list[Literal["tcp", "udp"]], rate: int, sockets: int
) -> None:
    ports = {"tcp": silent_tcp, "udp": silent_udp}
    probes = [
        Probe(transport=transport, port=ports[transport], payload=b"?", timeout=0.1, tries=2)
        for transport in transports
    ]
    addresses = Addresses(parse("127.9.0.0/24"))
    reckoned = plan(len(addresses), probes, rate, sockets).worst_case.seconds
    async with (
        Sweeper(Limits(packets_per_second=rate, sockets=sockets)) as sweeper,
        sweeper.sweep(Job(addresses=addresses, probes=probes, seed=1)) as sweep,
    ):
        answers = [answer async for batch in sweep for answer in batch.answers]
    assert answers == []
    assert sweep.quality is not None
    assert 0.7 * reckoned < sweep.quality.duration < reckoned + 1  # a busy machine wakes late
