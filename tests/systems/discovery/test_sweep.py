"""The sweep on loopback: real sockets, every address of 127.0.0.0/8 a device."""

import asyncio
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable

import pytest

from tests.systems.discovery.sweep_peers import tcp_devices, udp_devices, udp_devices_apart
from trimtab.systems.discovery.findings import Outcome
from trimtab.systems.discovery.scope.addresses import Addresses, parse
from trimtab.systems.discovery.sweep import Answer, Job, Limits, Probe, Quality, Sweeper, probe_once
from trimtab.systems.discovery.sweep.budget import DEPTH
from trimtab.systems.discovery.sweep.job import SweepFailed
from trimtab.systems.discovery.sweep.lane import Tally
from trimtab.systems.discovery.sweep.once import Listed
from trimtab.systems.discovery.sweep.sockets import Sockets
from trimtab.systems.discovery.sweep.tcp import Connects


@pytest.fixture
def silent_port():
    """Of all 127.0.0.0/8, by UDP: what comes there is never read."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as deaf:
        deaf.bind(("0.0.0.0", 0))
        yield deaf.getsockname()[1]


@pytest.fixture
async def sweeper():
    async with Sweeper(Limits(packets_per_second=20_000)) as sweeper:
        yield sweeper


def addresses(text: str) -> Addresses:
    return Addresses(parse(text))


async def run(sweeper: Sweeper, job: Job) -> tuple[list[Answer], Quality]:
    answers = []
    async with sweeper.sweep(job) as sweep:
        async for batch in sweep:
            answers += batch.answers
        assert (batch.done, batch.total) == (len(job.addresses), len(job.addresses))
    assert sweep.quality is not None
    return answers, sweep.quality


def udp(port: int, **more) -> Probe:
    return Probe(transport="udp", port=port, payload=b"who is there", **{"timeout": 0.5, **more})


def tcp(port: int, **more) -> Probe:
    return Probe(transport="tcp", port=port, **{"timeout": 0.5, **more})


async def test_a_listening_port_is_open_and_a_closed_one_refused(sweeper):
    everyone = addresses("127.77.1.0/26")
    live = [everyone.at(position) for position in range(0, len(everyone), 3)]
    with tcp_devices(live) as port:
        answers, quality = await run(sweeper, Job(addresses=everyone, probes=[tcp(port)], seed=1))
    assert {everyone.at(a.position) for a in answers if a.outcome is Outcome.OPEN} == set(live)
    assert {a.outcome for a in answers} == {Outcome.OPEN, Outcome.REFUSED}
    assert len(answers) == len(everyone)
    assert quality.sent == len(everyone)
    assert quality.poor == ""


async def test_a_datagram_comes_back_with_the_address_that_sent_it(sweeper):
    everyone = addresses("127.77.0.0/22")
    with udp_devices(lambda asked: f"I am {asked.to}".encode()) as port:
        answers, quality = await run(sweeper, Job(addresses=everyone, probes=[udp(port)], seed=2))
    assert {(a.position, a.data) for a in answers} == {
        (position, f"I am {everyone.at(position)}".encode()) for position in range(len(everyone))
    }
    assert len(answers) == len(everyone)
    assert quality.foreign == 0


async def test_a_lost_datagram_is_sent_again(sweeper):
    with udp_devices(lambda asked: b"here" if asked.count == 2 else None) as port:
        probe = udp(port, timeout=0.2, tries=2)
        answers, quality = await run(sweeper, Job(addresses=addresses("127.77.0.0/25"), probes=[probe], seed=3))
    assert len(answers) == 126
    assert quality.sent == 252


async def test_silence_is_told_by_nothing(sweeper):
    with udp_devices(lambda asked: None) as port:
        probe = udp(port, timeout=0.1, tries=2)
        answers, quality = await run(sweeper, Job(addresses=addresses("127.77.0.0/24"), probes=[probe], seed=4))
    assert answers == []
    assert quality.sent == 508
    assert quality.duration >= 0.2


async def test_an_answer_that_comes_after_its_time_counts_while_the_next_try_waits(sweeper):
    """Ten addresses at two a second: the second try of the first is far away when the answer comes."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
        server.bind(("127.77.3.2", 0))
        come = asyncio.get_running_loop().run_in_executor(None, server.recvfrom, 100)
        probe = udp(server.getsockname()[1], timeout=0.05, tries=2)
        asked = Listed(["127.77.3.2", *(f"127.77.3.{host}" for host in range(10, 19))])
        async with sweeper.sweep(Job(addresses=asked, probes=[probe], seed=0, packets_per_second=2)) as sweep:
            _, sender = await come
            await asyncio.sleep(0.1)  # longer than its time
            server.sendto(b"sorry", sender)
            batch = await anext(sweep)
    assert batch.answers == [Answer(0, 0, Outcome.OPEN, b"sorry")]


async def test_a_closed_port_is_refused_by_datagram_too(sweeper):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as closed:
        closed.bind(("127.77.4.1", 0))
        port = closed.getsockname()[1]
        answers, quality = await run(sweeper, Job(addresses=addresses("127.77.4.0/24"), probes=[udp(port)], seed=0))
    assert {a.outcome for a in answers if a.position} == {Outcome.REFUSED}
    assert len(answers) == 253
    assert quality.errors == 0


async def test_what_does_not_answer_the_question_is_dropped_and_counted(sweeper):
    with udp_devices(lambda asked: b"right" if asked.count == 2 else b"wrong") as port:
        probe = udp(port, timeout=0.2, tries=2, accepts=lambda data: data == b"right")
        answers, quality = await run(sweeper, Job(addresses=addresses("127.77.0.1-127.77.0.9"), probes=[probe], seed=5))
    assert [a.data for a in answers] == [b"right"] * 9
    assert quality.foreign == 9


async def test_an_answer_from_elsewhere_counts_for_nobody(sweeper):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server, socket.socket(type=socket.SOCK_DGRAM) as other:
        server.bind(("127.77.3.1", 0))
        other.bind(("127.77.3.1", 0))

        def answer_from_another_port() -> None:
            _, sender = server.recvfrom(100)
            other.sendto(b"me!", sender)

        thread = threading.Thread(target=answer_from_another_port)
        thread.start()
        probe = udp(server.getsockname()[1], timeout=0.2, tries=1)
        answers, quality = await run(sweeper, Job(addresses=Listed(["127.77.3.1"]), probes=[probe], seed=0))
        thread.join()
    assert answers == []
    assert quality.foreign == 1


async def test_ipv6_works_beside_ipv4(sweeper):
    both = Listed(["127.77.0.1", "::1"])
    with (
        tcp_devices(["::1"]) as port,
        socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as server,
    ):
        server.bind(("::1", 0))
        thread = threading.Thread(target=lambda: server.sendto(b"six", server.recvfrom(100)[1]))
        thread.start()
        probes = [tcp(port), udp(server.getsockname()[1], tries=1, timeout=0.3)]
        answers, _ = await run(sweeper, Job(addresses=both, probes=probes, seed=0))
        thread.join()
    assert sorted(answers, key=lambda a: (a.position, a.probe)) == [
        Answer(0, 0, Outcome.REFUSED),
        Answer(0, 1, Outcome.REFUSED),
        Answer(1, 0, Outcome.OPEN),
        Answer(1, 1, Outcome.OPEN, b"six"),
    ]


async def test_a_blocked_event_loop_makes_no_device_look_dead(sweeper):
    everyone = addresses("127.77.0.0/21")
    with udp_devices_apart() as port, tcp_devices(["127.77.0.9"]) as open_port:
        probes = [udp(port, timeout=0.3, tries=1), tcp(open_port, timeout=0.3, tries=1)]
        sweep = sweeper.sweep(Job(addresses=everyone, probes=probes, seed=6, packets_per_second=10_000))
        time.sleep(0.7)  # noqa: ASYNC251 - this is the blocking
        answers = [answer async for batch in sweep for answer in batch.answers]
    assert sum(a.outcome is Outcome.OPEN and a.probe == 0 for a in answers) == len(everyone)
    assert sum(a.outcome is Outcome.OPEN and a.probe == 1 for a in answers) == 1


async def test_an_event_loop_that_never_rests_makes_no_device_look_dead(sweeper):
    everyone = addresses("127.77.0.0/21")
    with udp_devices_apart() as port:
        sweep = sweeper.sweep(Job(addresses=everyone, probes=[udp(port, timeout=0.3, tries=2)], seed=6))
        answers = 0
        async for batch in sweep:
            answers += len(batch.answers)
            until = time.monotonic() + 0.05
            while time.monotonic() < until:  # holds the interpreter's lock
                pass
    assert answers == len(everyone)


def test_a_connection_that_opened_unnoticed_is_found_when_its_time_is_over():
    settled = []

    class Device:
        def address(self, place):
            return "127.77.0.9"

        def settled(self, place, probe, outcome, data=b""):
            settled.append((place, probe, outcome))

    with tcp_devices(["127.77.0.9"]) as port:
        sockets, tally = Sockets(10), Tally()
        lane = Connects(0, tcp(port, timeout=1.0), Device(), tally, sockets)
        lane.line_up(0, 1)
        assert lane.send(1, 100.0) == 1
        lane.expire(100.9)
        assert settled == []
        lane.expire(101.0)  # nobody has asked epoll
        assert settled == [(0, 0, Outcome.OPEN)]
        assert tally.late == 1
        assert sockets.streams.free == 10
        sockets.epoll.close()


async def test_who_leaves_stops_the_job_and_closes_its_sockets(sweeper, silent_port):
    before = len(os.listdir("/proc/self/fd"))
    job = Job(addresses=addresses("127.77.0.0/16"), probes=[udp(silent_port, timeout=30)], seed=7)
    async with sweeper.sweep(job) as sweep:
        await until(lambda: len(os.listdir("/proc/self/fd")) > before)
    assert len(os.listdir("/proc/self/fd")) == before
    assert [batch async for batch in sweep] == []
    assert sweep.quality is None


async def test_who_is_cancelled_stops_the_job_and_closes_its_sockets(sweeper, silent_port):
    before = len(os.listdir("/proc/self/fd"))
    job = Job(addresses=addresses("127.77.0.0/16"), probes=[udp(silent_port, timeout=30)], seed=7)

    async def consume() -> None:
        async for _ in sweeper.sweep(job):
            pass

    consumer = asyncio.create_task(consume())
    await until(lambda: len(os.listdir("/proc/self/fd")) > before)
    consumer.cancel()
    with pytest.raises(asyncio.CancelledError):
        await consumer
    await until(lambda: len(os.listdir("/proc/self/fd")) == before)


async def test_a_sweep_that_is_forgotten_stops(sweeper, silent_port):
    before = len(os.listdir("/proc/self/fd"))
    job = Job(addresses=addresses("127.77.0.0/16"), probes=[udp(silent_port, timeout=30)], seed=7)
    sweep = sweeper.sweep(job)
    await until(lambda: len(os.listdir("/proc/self/fd")) > before)
    del sweep
    await until(lambda: len(os.listdir("/proc/self/fd")) == before)


async def test_a_sweep_goes_on_where_another_ended(sweeper):
    everyone = addresses("127.77.0.0/23")
    first: set[int] = set()
    with udp_devices(lambda asked: b"here") as port:
        probes = [udp(port)]
        job = Job(addresses=everyone, probes=probes, seed=8, packets_per_second=1000)
        async with sweeper.sweep(job) as sweep:
            async for batch in sweep:
                first |= {a.position for a in batch.answers}
                if batch.done > 100:
                    break
        rest = Job(addresses=everyone, probes=probes, seed=8, start=batch.done)
        answers, quality = await run(sweeper, rest)
    assert quality.sent == len(everyone) - batch.done
    assert first | {a.position for a in answers} == set(range(len(everyone)))


async def test_two_jobs_share_one_budget_fairly():
    async with Sweeper(Limits(packets_per_second=500)) as sweeper:
        with udp_devices(lambda asked: b"here") as port:
            jobs = [Job(addresses=addresses("127.77.0.0/24"), probes=[udp(port)], seed=seed) for seed in (1, 2)]
            (_, one), (_, other) = await asyncio.gather(*(run(sweeper, job) for job in jobs))
    for quality in (one, other):
        assert quality.sent == 254
        assert quality.duration >= 0.8 * 2 * 254 / 500  # each gets half of the rate; alone it would take 0.5 s


async def test_a_job_has_a_cap_of_its_own(sweeper):
    with udp_devices(lambda asked: b"here") as port:
        job = Job(addresses=addresses("127.77.0.0/25"), probes=[udp(port)], seed=1, packets_per_second=200)
        _, quality = await run(sweeper, job)
    assert quality.duration >= 126 / 200 - DEPTH


async def test_a_consumer_that_takes_nothing_loses_nothing(sweeper):
    everyone = addresses("127.77.0.0/20")
    with udp_devices(lambda asked: b"here") as port:
        sweep = sweeper.sweep(Job(addresses=everyone, probes=[udp(port)], seed=9))
        _, quality = await run(sweeper, Job(addresses=addresses("127.78.0.0/20"), probes=[udp(port)], seed=9))
        taken = sum([len(batch.answers) async for batch in sweep])
    assert quality.sent >= len(everyone)
    assert taken == len(everyone)


async def test_a_job_that_breaks_takes_no_other_with_it(sweeper):
    def broken(data: bytes) -> bool:
        raise ZeroDivisionError("a mistake")

    everyone = addresses("127.77.0.0/24")
    with udp_devices(lambda asked: b"here") as port:
        good = asyncio.create_task(run(sweeper, Job(addresses=everyone, probes=[udp(port)], seed=1)))
        with pytest.raises(SweepFailed, match="a mistake"):
            await run(sweeper, Job(addresses=everyone, probes=[udp(port, accepts=broken)], seed=1))
        with pytest.raises(SweepFailed, match="not an address"):
            await run(sweeper, Job(addresses=Listed(["device.example"]), probes=[udp(port)], seed=1))
        answers, _ = await good
    assert len(answers) == len(everyone)


async def test_closing_the_sweeper_ends_its_sweeps(silent_port):
    sweeper = Sweeper()
    sweeper.start()
    sweep = sweeper.sweep(Job(addresses=addresses("127.77.0.0/16"), probes=[udp(silent_port, timeout=30)], seed=1))
    await sweeper.close()
    with pytest.raises(SweepFailed, match="closed"):
        await anext(sweep)
    with pytest.raises(SweepFailed, match="closed"):
        await anext(sweeper.sweep(Job(addresses=Listed(["127.0.0.1"]), probes=[udp(9)], seed=1)))
    await sweep.aclose()


async def test_nothing_to_ask_is_done_at_once(sweeper):
    answers, quality = await run_empty(sweeper, Job(addresses=Listed([]), probes=[tcp(1)], seed=0))
    assert answers == []
    assert quality.sent == 0


async def run_empty(sweeper: Sweeper, job: Job) -> tuple[list[Answer], Quality]:
    sweep = sweeper.sweep(job)
    answers = [answer async for batch in sweep for answer in batch.answers]
    assert sweep.quality is not None
    return answers, sweep.quality


async def test_a_sweep_without_a_probe_is_done_at_once(sweeper):
    answers, quality = await run(sweeper, Job(addresses=addresses("127.77.0.0/16"), probes=[], seed=0))
    assert answers == []
    assert quality.sent == 0


@pytest.mark.parametrize("wrong", [{"packets_per_second": 0}, {"start": 3}, {"probes": [tcp(1)] * 256}])
def test_a_job_that_cannot_be_is_refused(wrong):
    with pytest.raises(ValueError, match="sweep"):
        Job(**{"addresses": Listed(["127.0.0.1"]), "probes": [tcp(1)], "seed": 0, **wrong})


@pytest.mark.parametrize("wrong", [{"port": 0}, {"timeout": 0}, {"tries": 0}])
def test_a_probe_that_cannot_be_is_refused(wrong):
    with pytest.raises(ValueError, match=r"port|probe"):
        Probe(**{"transport": "tcp", "port": 1, **wrong})


async def test_addresses_that_break_break_their_own_sweep_only(sweeper):
    class Broken(Listed):
        def at(self, position):
            raise LookupError("the list is gone")

    with pytest.raises(SweepFailed, match="the list is gone"):
        await run(sweeper, Job(addresses=Broken(["127.0.0.1"]), probes=[tcp(1)], seed=0))
    assert await probe_once(sweeper, ["127.0.0.1"], [udp(1)]) == {"127.0.0.1": Outcome.REFUSED}


async def test_probing_once_gives_the_most_telling_outcome(sweeper, silent_port):
    with tcp_devices(["127.77.0.1"]) as port:
        probes = [tcp(port), udp(silent_port, timeout=0.1, tries=1)]
        outcomes = await probe_once(sweeper, ["127.77.0.1", "127.77.0.2", "127.77.0.1"], probes)
    assert outcomes == {"127.77.0.1": Outcome.OPEN, "127.77.0.2": Outcome.REFUSED}


async def test_too_few_files_only_make_it_slower():
    script = """
import asyncio, resource, socket
resource.setrlimit(resource.RLIMIT_NOFILE, (80, 80))
from tests.systems.discovery.sweep_peers import tcp_devices
from trimtab.systems.discovery.scope.addresses import Addresses, parse
from trimtab.systems.discovery.sweep import Job, Limits, Probe, Sweeper

async def main():
    everyone = Addresses(parse("127.77.0.0/23"))
    held = [socket.socket() for _ in range(40)]
    with tcp_devices(["127.77.0.5", "127.77.0.6"]) as port:
        async with Sweeper(Limits(sockets=16_000)) as sweeper:
            sweep = sweeper.sweep(Job(addresses=everyone, probes=[Probe(transport="tcp", port=port)], seed=1))
            found = [answer.outcome.name async for batch in sweep for answer in batch.answers]
    print(found.count("OPEN"), found.count("REFUSED"), sweep.quality.errors)
    for each in held:
        each.close()

asyncio.run(main())
"""
    ran = await asyncio.to_thread(
        subprocess.run, [sys.executable, "-c", script], capture_output=True, text=True, check=False, timeout=60
    )
    assert ran.stdout.split() == ["2", "508", "0"], ran.stderr


async def test_a_sweep_of_a_million_addresses_keeps_nothing_of_the_silent(sweeper, silent_port):
    """A byte an address, and what is in flight."""
    import tracemalloc

    tracemalloc.start()
    job = Job(addresses=addresses("127.64.0.0/12"), probes=[udp(silent_port, timeout=0.01, tries=1)], seed=1)
    async with sweeper.sweep(job) as sweep:
        async for batch in sweep:
            if batch.done > 10_000:
                break
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 6 << 20


def test_a_probe_does_not_show_its_payload():
    assert "secret" not in repr(Probe(transport="udp", port=161, payload=b"secret"))


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({}, ""),
        ({"errors": 20}, "20 of 1020 probes could not be sent"),
        ({"worst_lag": 1.6}, "the machine was too busy to listen for 1.6 s, and a probe waits 1 s"),
    ],
)
def test_a_poor_sweep_says_why(change, reason):
    usual = {"sent": 1000, "errors": 0, "worst_lag": 0.0, "late": 0, "foreign": 0, "duration": 1.0}
    assert Quality(**{**usual, **change}, shortest_timeout=1.0).poor == reason


async def until(true: Callable[[], bool]) -> None:
    """The kernel tells no one when a socket is opened or closed."""
    while not true():  # noqa: ASYNC110
        await asyncio.sleep(0)
