"""A worker lists a registry: what it says of that in the job, and that nobody writes who has no right to any more."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec import UNSET

from tests.runtime.widgets import Tap, logged, tapped, until, until_found
from tests.systems.images.listing_kit import AMD, ARM, MULTI, Bench, GatedBlobs, lab_registry, renamed, tools
from trimtab.client.api import ApiClient
from trimtab.client.protocol import Ref
from trimtab.client.transport import Call, Reply
from trimtab.lab import registry_images as made
from trimtab.lab.registry import Registry as LabRegistry
from trimtab.lab.registry_faults import Answered, FaultProxy, Stalled
from trimtab.model.clock import SystemClock, format_time, parse_time
from trimtab.model.conditions import get_condition
from trimtab.runtime.queue import LocalQueue, Queue
from trimtab.runtime.queue.nats import NatsQueue
from trimtab.systems.images.kinds import DiscoveryJob, Filter, MatchCondition, PlatformFilter, Registry
from trimtab.systems.images.messages import CATALOG, encode
from trimtab.systems.images.pins import run_owner
from trimtab.systems.images.runs.states import End, ended
from trimtab.systems.images.worker.catalog import CatalogHandler
from trimtab.systems.images.worker.handling import Later, Tools
from trimtab.systems.images.worker.worker import Worker
from trimtab.testing.clock import FakeClock
from trimtab.testing.nats import NatsServer
from trimtab.testing.pki import Authority
from trimtab.testing.ports import free_ports

PASSWORD = "hunter2-wrong-horse"


@pytest.fixture
async def bench(defined: ApiClient, namespace: str, tmp_path: Path) -> Bench:
    return Bench(defined, namespace, tmp_path)


@pytest.fixture
async def peer(tmp_path: Path) -> AsyncIterator[tuple[made.Pusher, FaultProxy]]:
    async with lab_registry(tmp_path) as running:
        yield running


@pytest.fixture
async def mine(bench: Bench) -> AsyncIterator[Tools]:
    async with tools(bench.client, bench.folder) as made_once:
        yield made_once


Peer = tuple[made.Pusher, FaultProxy]


def reason_of(status: Any) -> tuple[Any, Any]:
    return (status.listed.reason, status.listed.catalog) if status.listed else (None, None)


async def test_a_registry_is_listed_into_a_catalogue(bench: Bench, peer: Peer, mine: Tools) -> None:
    pusher, proxy = peer
    await pusher.push("team/app", "1", AMD)
    await pusher.push("team/app", "multi", MULTI)
    await pusher.push("team/chart", "c", made.helm_chart())
    message = await bench.begin(await bench.registry(proxy.host))
    await CatalogHandler(mine).handle(message)

    status = await bench.status()
    assert status.listed
    assert status.listing
    assert status.progress
    assert (status.listed.complete, status.listed.registry_generation, status.error_count or 0) == (True, 1, 0)
    assert status.listed.registry_uri == proxy.host
    counts = status.listing
    assert (counts.repositories, counts.tags, counts.found, counts.skipped, counts.failed) == (2, 3, 2, 1, 0)
    assert (status.progress.done, status.progress.total) == (3, 3)
    assert (status.worker, status.fence) == ("one", 1)
    progressing = get_condition(status.conditions, "Progressing")
    assert progressing
    assert (progressing.status, progressing.reason, progressing.message) == (
        "True",
        "Listing",
        "3 of 3 tags",
    )
    found = await bench.catalogue()
    assert found.members == {"team/app": ["1", "multi"]}
    assert found.tags["team/app"]["multi"].images == (AMD.digest, ARM.digest)
    assert found.images[ARM.digest].platform == "linux/arm64"
    await bench.blobs.collect(grace=0)
    assert await bench.catalogue() == found  # it is pinned


async def test_what_was_listed_before_is_not_fetched_again(bench: Bench, peer: Peer, mine: Tools) -> None:
    pusher, proxy = peer
    for tag, thing in {"1": AMD, "multi": MULTI, "gone": ARM, "chart": made.helm_chart()}.items():
        await pusher.push("team/app", tag, thing)
    registry = await bench.registry(proxy.host)
    await CatalogHandler(mine).handle(await bench.begin(registry))
    await bench.remember()
    await pusher.push("team/app", "gone", AMD)
    proxy.clear()
    await CatalogHandler(mine).handle(await bench.begin(registry, "run-2"))
    assert proxy.count("GET", "/manifests/|/blobs/") == 0
    before, after = await bench.catalogue(), await bench.catalogue("run-2")
    assert after.tags["team/app"]["multi"] == before.tags["team/app"]["multi"]
    assert after.tags["team/app"]["gone"].images == (AMD.digest,)
    assert after.images == before.images
    status = await bench.status("run-2")
    assert status.listing
    assert (status.listing.found, status.listing.skipped) == (3, 1)


async def test_other_platforms_make_it_look_again(bench: Bench, peer: Peer, mine: Tools) -> None:
    pusher, proxy = peer
    await pusher.push("app", "multi", MULTI)
    registry = await bench.registry(proxy.host, platforms=(PlatformFilter(architecture="amd64"),))
    await CatalogHandler(mine).handle(await bench.begin(registry))
    await bench.remember()
    assert (await bench.catalogue()).tags["app"]["multi"].images == (AMD.digest,)
    held = await bench.client.get(Registry, "main", bench.namespace)
    await bench.client.patch(held, held.replace(spec=held.spec.replace(platforms=())))
    await CatalogHandler(mine).handle(await bench.begin(registry, "run-2"))
    assert (await bench.catalogue("run-2")).tags["app"]["multi"].images == (AMD.digest, ARM.digest)


async def test_a_catalogue_that_is_lost_is_made_anew_and_failures_then_leave_it_incomplete(
    bench: Bench, peer: Peer, mine: Tools
) -> None:
    pusher, proxy = peer
    await pusher.push("app", "1", AMD)
    await pusher.push("app", "2", ARM)
    registry = await bench.registry(proxy.host)
    await CatalogHandler(mine).handle(await bench.begin(registry))
    await bench.remember()
    status = await bench.status()
    assert status.listed
    assert status.listed.catalog
    await bench.blobs.unpin(run_owner(bench.namespace, "main", registry.metadata.uid or "", "run-1"))
    await bench.blobs.collect(grace=0)
    proxy.fault("HEAD", "/manifests/2", Answered(500), times=100)
    await CatalogHandler(mine).handle(await bench.begin(registry, "run-2"))
    status = await bench.status("run-2")
    assert status.listed
    assert status.listed.catalog
    assert not status.listed.complete
    assert set((await bench.catalogue("run-2")).tags["app"]) == {"1"}


async def test_a_tag_that_fails_is_named_and_stays_as_it_was(bench: Bench, peer: Peer, mine: Tools) -> None:
    pusher, proxy = peer
    await pusher.push("app", "1", AMD)
    await pusher.push("app", "2", ARM)
    registry = await bench.registry(proxy.host)
    await CatalogHandler(mine).handle(await bench.begin(registry))
    await bench.remember()
    proxy.fault("HEAD", "/manifests/2", Answered(500), times=100)
    await CatalogHandler(mine).handle(await bench.begin(registry, "run-2"))
    status = await bench.status("run-2")
    assert status.listed
    assert status.listed.complete
    assert status.errors
    assert status.error_count == 1
    assert (status.errors[0].repository, status.errors[0].tag, status.errors[0].reason) == (
        "app", "2", "RegistryUnavailable",
    )  # fmt: skip
    found = await bench.catalogue("run-2")
    assert (set(found.tags["app"]), found.members, found.gone) == ({"1", "2"}, {"app": ["1"]}, {})


async def test_a_filter_that_fails_on_one_tag_names_that_tag(bench: Bench, peer: Peer, mine: Tools) -> None:
    pusher, proxy = peer
    for tag in ("1", "2", "latest"):
        await pusher.push("app", tag, AMD)
    numbers = Filter(match_conditions=(MatchCondition(name="numbers", expression="int(tag) > 1"),))
    await CatalogHandler(mine).handle(await bench.begin(await bench.registry(proxy.host, filters=(numbers,))))
    status = await bench.status()
    assert status.errors
    assert status.error_count == 1
    error = status.errors[0]
    assert (error.repository, error.tag, error.reason) == ("app", "latest", "InvalidFilter")
    assert "numbers" in error.message
    assert (await bench.catalogue()).members == {"app": ["2"]}


async def test_a_push_lists_only_what_was_pushed(bench: Bench, peer: Peer, mine: Tools) -> None:
    pusher, proxy = peer
    for repository in ("app", "lib", "other"):
        for tag in ("1", "2"):
            await pusher.push(repository, tag, AMD)
    registry = await bench.registry(proxy.host, repositories=("app", "lib"))
    await CatalogHandler(mine).handle(await bench.begin(registry))
    await bench.remember()
    await pusher.push("app", "1", ARM)
    await pusher.delete("lib", AMD.digest)
    only = {"app": ["1", AMD.digest], "other": ["1"], "lib": [], "absent/from/selection": []}
    await CatalogHandler(mine).handle(await bench.begin(registry, "run-2", only=only))
    status = await bench.status("run-2")
    assert status.listed
    assert not status.listed.complete
    found = await bench.catalogue("run-2")
    assert (found.members, found.gone) == ({"app": ["1"]}, {})
    assert {name: set(tags) for name, tags in found.tags.items()} == {"app": {"1", "2"}, "lib": {"1", "2"}}


@pytest.mark.parametrize(
    ("spec", "reason"),
    [
        ({"catalog_type": "NoCatalog"}, "CatalogUnavailable"),
        ({"auth_secret": "missing"}, "SecretNotFound"),
        ({"ca_bundle": "no certificate"}, "CertificateInvalid"),
        ({"repositories": ("UPPER",)}, "InvalidRegistry"),
        (
            {"filters": (Filter(match_conditions=(MatchCondition(name="x", expression="tag +"),)),)},
            "InvalidFilter",
        ),
    ],
)
async def test_what_is_wrong_with_the_registry_is_told_and_not_tried_again(
    bench: Bench, peer: Peer, mine: Tools, spec: dict[str, Any], reason: str
) -> None:
    message = await bench.begin(await bench.registry(peer[1].host, **spec))
    await CatalogHandler(mine).handle(message)
    assert reason_of(await bench.status())[0] == reason
    assert not peer[1].requests


async def test_a_registry_that_is_down_is_told_and_not_tried_again(bench: Bench, mine: Tools) -> None:
    (port,) = free_ports(1)
    message = await bench.begin(await bench.registry(f"127.0.0.1:{port}"))
    await CatalogHandler(mine).handle(message)
    assert reason_of(await bench.status())[0] == "RegistryUnavailable"


async def test_a_login_opens_a_registry_with_a_certificate_of_its_own_and_shows_nowhere(
    bench: Bench, mine: Tools
) -> None:
    authority = Authority(bench.folder)
    (port,) = free_ports(1)
    ca = authority.certificate.read_text()
    with (
        LabRegistry(bench.folder / "r", port, tls=authority.server("r"), logins={"alice": PASSWORD}) as lab,
        logged() as lines,
    ):
        registry = await bench.registry(lab.url, plain_http=False)
        await CatalogHandler(mine).handle(await bench.begin(registry))
        assert reason_of(await bench.status())[0] == "CertificateInvalid"

        async def retried(run: str, **changes: Any) -> tuple[Any, Any]:
            held = await bench.client.get(Registry, "main", bench.namespace)
            await bench.client.patch(held, held.replace(spec=held.spec.replace(**changes)))
            await CatalogHandler(mine).handle(await bench.begin(registry, run))
            return reason_of(await bench.status(run))

        assert (await retried("run-2", ca_bundle=ca))[0] == "AuthenticationFailed"
        await bench.secret("wrong", {"username": "alice", "password": f"not-{PASSWORD}"})
        assert (await retried("run-3", auth_secret="wrong"))[0] == "AuthenticationFailed"
        await bench.secret("right", {"username": "alice", "password": PASSWORD})
        assert (await retried("run-4", auth_secret="right"))[1]
        auths = {"auths": {lab.host: {"username": "alice", "password": PASSWORD}}}
        await bench.secret("docker", {".dockerconfigjson": json.dumps(auths)})
        assert (await retried("run-5", auth_secret="docker"))[1]
        await bench.secret("junk", {".dockerconfigjson": "{"})
        assert (await retried("run-6", auth_secret="junk"))[0] == "SecretInvalid"
    jobs = [(await bench.job(f"run-{n}")).raw for n in range(1, 7)]
    blobs = b"".join(file.read_bytes() for file in (bench.folder / "blobs").rglob("*") if file.is_file())
    assert PASSWORD not in f"{jobs} {lines}"
    assert PASSWORD.encode() not in blobs


# --- whose run it is -------------------------------------------------------------------------------------------------


async def _unchanged_by(bench: Bench, work: Any) -> None:
    before = (await bench.job()).metadata.resource_version
    await work
    assert (await bench.job()).metadata.resource_version == before


async def test_a_run_that_is_not_wanted_any_more_is_left_alone(bench: Bench, peer: Peer, mine: Tools) -> None:
    registry = await bench.registry(peer[1].host)
    message = await bench.begin(registry)
    handler = CatalogHandler(mine)
    for changes in (
        {"registry_uid": "other"},
        {"job_uid": "other"},
        {"run": "other"},
        {"registry": "no"},
        {"job": "no"},
    ):
        await _unchanged_by(bench, handler.handle(msgspec.structs.replace(message, **changes)))
        await _unchanged_by(bench, handler.give_up(msgspec.structs.replace(message, **changes), "x"))
    assert not peer[1].requests
    job = await bench.job()
    assert job.status
    over = ended(job.status, End("False", "DeadlineExceeded"), SystemClock().now())
    await bench.client.patch(job, job.replace(status=over), subresource="status")
    await _unchanged_by(bench, handler.handle(message))
    assert not peer[1].requests


async def test_a_message_that_comes_twice_does_nothing_the_second_time(bench: Bench, peer: Peer, mine: Tools) -> None:
    message = await bench.begin(await bench.registry(peer[1].host))
    await CatalogHandler(mine).handle(message)
    await _unchanged_by(bench, CatalogHandler(mine).handle(message))
    await _unchanged_by(bench, CatalogHandler(renamed(mine, name="two")).handle(message))


@pytest.mark.parametrize("skew", [-3600, 0, 3600])
async def test_a_silent_workers_run_is_taken_after_a_minute_of_our_own_clock_whatever_the_others_says(
    bench: Bench, peer: Peer, mine: Tools, skew: int
) -> None:
    message = await bench.begin(await bench.registry(peer[1].host))
    clock = FakeClock(SystemClock().now())
    await bench.change(worker="dead", fence=3, heartbeat=format_time(clock.now() + timedelta(seconds=skew)))
    handling = asyncio.create_task(CatalogHandler(renamed(mine, clock=clock)).handle(message))
    await _looks(clock, 5)
    assert (await bench.status()).worker == "dead"
    await _looks(clock, 1)
    await handling
    status = await bench.status()
    assert (status.worker, status.fence) == ("one", 4)
    assert reason_of(status)[1]


async def _looks(clock: FakeClock, times: int) -> None:
    """Ten seconds pass between any two, and at the end of each something is asked of the server."""
    for _ in range(times):
        await until(lambda: clock.pending)
        await clock.advance(10)


async def test_a_worker_that_reports_is_left_alone_for_as_long_as_it_does(
    bench: Bench, peer: Peer, mine: Tools
) -> None:
    message = await bench.begin(await bench.registry(peer[1].host))
    clock = FakeClock(SystemClock().now())
    await bench.change(worker="other", fence=1, heartbeat="2020-01-01T00:00:00Z")
    for change in ({"heartbeat": "2020-01-01T00:00:01Z"}, {"fence": 2}):  # it reports, or a third one took it meanwhile
        handling = asyncio.create_task(CatalogHandler(renamed(mine, clock=clock)).handle(message))
        await _looks(clock, 5)
        await until(lambda: clock.pending)
        await bench.change(**change)
        await _looks(clock, 1)
        with pytest.raises(Later, match="the worker other is at it"):
            await handling
    assert not peer[1].requests


async def test_a_dead_workers_run_is_given_up_only_when_it_is_known_to_be_dead(
    bench: Bench, peer: Peer, mine: Tools
) -> None:
    message = await bench.begin(await bench.registry(peer[1].host))
    clock = FakeClock(SystemClock().now())
    await bench.change(worker="dead", fence=3, heartbeat=format_time(clock.now()))
    giving_up = asyncio.create_task(CatalogHandler(renamed(mine, clock=clock)).give_up(message, "too often"))
    await _looks(clock, 5)
    assert (await bench.status()).worker == "dead"
    await _looks(clock, 1)
    await giving_up
    assert reason_of(await bench.status()) == ("WorkerCrashed", UNSET)
    assert not peer[1].requests


async def test_a_run_that_workers_take_again_and_again_ends(bench: Bench, peer: Peer, mine: Tools) -> None:
    message = await bench.begin(await bench.registry(peer[1].host))
    await bench.change(fence=8)
    await CatalogHandler(mine).handle(message)
    assert reason_of(await bench.status()) == ("WorkerCrashed", UNSET)
    assert not peer[1].requests


async def test_a_run_that_the_registry_is_not_claimed_for_is_not_listed(bench: Bench, peer: Peer, mine: Tools) -> None:
    registry = await bench.registry(peer[1].host)
    message = await bench.begin(registry)
    await bench.begin(registry, "run-2")  # the claim is another's; the job of the first does not know yet
    await _unchanged_by(bench, CatalogHandler(mine).handle(message))
    assert not peer[1].requests


async def test_a_worker_whose_claim_went_to_another_run_writes_nothing(
    bench: Bench, peer: Peer, gated: tuple[Tools, GatedBlobs]
) -> None:
    slow, gate = gated
    await peer[0].push("app", "1", AMD)
    registry = await bench.registry(peer[1].host)
    late = asyncio.create_task(CatalogHandler(slow).handle(await bench.begin(registry)))
    await gate.reached.wait()
    await bench.begin(registry, "run-2")
    gate.opened.set()
    await _unchanged_by(bench, late)
    assert (await bench.blobs.collect(grace=0)).count == 1


@pytest.fixture
async def gated(bench: Bench) -> AsyncIterator[tuple[Tools, GatedBlobs]]:
    """A worker that waits before it puts its catalogue away."""
    blobs = GatedBlobs(bench.folder / "blobs")
    async with tools(bench.client, bench.folder, name="slow", blobs=blobs) as slow:
        yield slow, blobs


async def test_a_worker_that_was_overtaken_writes_nothing(
    bench: Bench, peer: Peer, mine: Tools, gated: tuple[Tools, GatedBlobs]
) -> None:
    slow, gate = gated
    await peer[0].push("app", "1", AMD)
    message = await bench.begin(await bench.registry(peer[1].host))
    late = asyncio.create_task(CatalogHandler(slow).handle(message))
    await gate.reached.wait()
    await bench.change(worker=UNSET)  # as it would be for one that was taken for dead
    await CatalogHandler(mine).handle(message)
    assert (await bench.status()).worker == "one"
    gate.opened.set()
    await _unchanged_by(bench, late)
    assert await bench.catalogue()


async def test_a_worker_that_was_overtaken_writes_nothing_while_the_other_still_lists(
    bench: Bench, peer: Peer, gated: tuple[Tools, GatedBlobs]
) -> None:
    """Only the fence tells them apart."""
    slow, gate = gated
    await peer[0].push("app", "1", AMD)
    message = await bench.begin(await bench.registry(peer[1].host))
    late = asyncio.create_task(CatalogHandler(slow).handle(message))
    await gate.reached.wait()
    await bench.change(worker=UNSET)
    second = GatedBlobs(bench.folder / "blobs")
    async with tools(bench.client, bench.folder, name="second", blobs=second) as other:
        ahead = asyncio.create_task(CatalogHandler(other).handle(message))
        await second.reached.wait()
        gate.opened.set()
        await _unchanged_by(bench, late)
        assert (await bench.status()).worker == "second"
        second.opened.set()
        await ahead
    status = await bench.status()
    assert (status.worker, status.fence) == ("second", 2)
    assert reason_of(status)[1]
    await bench.blobs.collect(grace=0)
    assert await bench.catalogue()  # whoever was overtaken let go of nothing


async def test_a_worker_reports_also_while_it_puts_its_catalogue_away(
    bench: Bench, peer: Peer, gated: tuple[Tools, GatedBlobs]
) -> None:
    slow, gate = gated
    await peer[0].push("app", "1", AMD)
    message = await bench.begin(await bench.registry(peer[1].host))
    clock = FakeClock(SystemClock().now())
    working = asyncio.create_task(CatalogHandler(renamed(slow, clock=clock)).handle(message))
    await gate.reached.wait()
    async with asyncio.timeout(20):
        for _ in range(3):
            before = (await bench.status()).heartbeat
            while (await bench.status()).heartbeat == before:
                await until(lambda: clock.pending)
                await clock.advance(21)
    gate.opened.set()
    await working
    assert reason_of(await bench.status())[1]


async def test_a_run_that_ends_while_its_catalogue_is_put_stops_its_worker(
    bench: Bench, peer: Peer, gated: tuple[Tools, GatedBlobs]
) -> None:
    slow, gate = gated
    message = await bench.begin(await bench.registry(peer[1].host))
    clock = FakeClock(SystemClock().now())
    working = asyncio.create_task(CatalogHandler(renamed(slow, clock=clock)).handle(message))
    await gate.reached.wait()
    await bench.change(run_id="run-2")
    await clock.advance(20)
    async with asyncio.timeout(20):
        await working  # though the gate is shut


async def test_a_registry_that_is_made_anew_in_mid_run_gets_nothing_of_it_and_no_blob_stays(
    bench: Bench, peer: Peer, gated: tuple[Tools, GatedBlobs]
) -> None:
    slow, gate = gated
    await peer[0].push("app", "1", AMD)
    registry = await bench.registry(peer[1].host)
    message = await bench.begin(registry)
    late = asyncio.create_task(CatalogHandler(slow).handle(message))
    await gate.reached.wait()
    await bench.client.delete(Ref(Registry, "main", bench.namespace))
    again = await bench.registry(peer[1].host)
    assert again.metadata.uid != registry.metadata.uid
    gate.opened.set()
    await late
    assert not (await bench.status()).listed
    assert (await bench.blobs.collect(grace=0)).count == 1


async def test_a_run_whose_claim_was_taken_away_ends_and_keeps_no_blob(
    bench: Bench, peer: Peer, gated: tuple[Tools, GatedBlobs]
) -> None:
    slow, gate = gated
    await peer[0].push("app", "1", AMD)
    registry = await bench.registry(peer[1].host)
    late = asyncio.create_task(CatalogHandler(slow).handle(await bench.begin(registry)))
    await gate.reached.wait()
    await bench.change(run_id="run-2")
    gate.opened.set()
    await _unchanged_by(bench, late)
    assert (await bench.blobs.collect(grace=0)).count == 1


async def test_a_job_that_is_deleted_in_mid_run_ends_its_worker_and_keeps_no_blob(
    bench: Bench, peer: Peer, gated: tuple[Tools, GatedBlobs]
) -> None:
    slow, gate = gated
    await peer[0].push("app", "1", AMD)
    message = await bench.begin(await bench.registry(peer[1].host))
    late = asyncio.create_task(CatalogHandler(slow).handle(message))
    await gate.reached.wait()
    await bench.client.delete(Ref(DiscoveryJob, message.job, bench.namespace))
    gate.opened.set()
    await late
    assert (await bench.blobs.collect(grace=0)).count == 1


async def test_a_worker_that_is_stopped_lets_another_go_on_at_once(
    bench: Bench, peer: Peer, mine: Tools, gated: tuple[Tools, GatedBlobs]
) -> None:
    slow, gate = gated
    message = await bench.begin(await bench.registry(peer[1].host))
    stopped = asyncio.create_task(CatalogHandler(slow).handle(message))
    await gate.reached.wait()
    stopped.cancel()
    with pytest.raises(asyncio.CancelledError):
        await stopped
    assert not (await bench.status()).worker
    await CatalogHandler(mine).handle(message)
    status = await bench.status()
    assert (status.worker, status.fence) == ("one", 2)
    assert reason_of(status)[1]


async def test_the_same_run_twice_in_one_process_is_for_later(
    bench: Bench, peer: Peer, gated: tuple[Tools, GatedBlobs]
) -> None:
    slow, gate = gated
    message = await bench.begin(await bench.registry(peer[1].host))
    handler = CatalogHandler(slow)
    first = asyncio.create_task(handler.handle(message))
    await gate.reached.wait()
    with pytest.raises(Later):
        await handler.handle(message)
    await handler.give_up(message, "too often")
    gate.opened.set()
    await first
    status = await bench.status()
    assert status.fence == 1
    assert reason_of(status)[1]


async def test_what_is_given_up_is_told_in_the_job(bench: Bench, peer: Peer, mine: Tools) -> None:
    message = await bench.begin(await bench.registry(peer[1].host))
    await CatalogHandler(mine).give_up(message, "4 deliveries did not end well")
    status = await bench.status()
    assert reason_of(status)[0] == "WorkerCrashed"
    assert status.listed
    assert "4 deliveries" in (status.listed.message or "")


@pytest.fixture
async def stuck(bench: Bench, peer: Peer) -> AsyncIterator[tuple[asyncio.Task[None], FakeClock]]:
    """A worker at a registry that does not answer, and its clock."""
    peer[1].fault("GET", "_catalog", Stalled(0), times=100)
    message = await bench.begin(await bench.registry(peer[1].host))
    clock = FakeClock(SystemClock().now())
    async with tools(bench.client, bench.folder, clock=clock) as mine:
        working = asyncio.create_task(CatalogHandler(mine).handle(message))
        await until(lambda: clock.pending and peer[1].count("GET", "_catalog"))
        yield working, clock
        await _cancelled(working, clock)


async def test_a_worker_reports_also_while_nothing_comes(
    bench: Bench, stuck: tuple[asyncio.Task[None], FakeClock]
) -> None:
    _, clock = stuck
    first = parse_time((await bench.status()).heartbeat or "")
    await clock.advance(20)
    job = await until_found(
        bench.client, DiscoveryJob, "job-run-1", bench.namespace,
        lambda job: parse_time(job.status.heartbeat) - first >= timedelta(seconds=20),
    )  # fmt: skip
    progressing = get_condition(job.status.conditions, "Progressing")
    assert progressing
    assert (progressing.status, progressing.reason) == ("True", "Listing")


async def test_a_run_that_ends_in_mid_listing_stops_its_worker(
    bench: Bench, stuck: tuple[asyncio.Task[None], FakeClock]
) -> None:
    working, clock = stuck
    job = await bench.job()
    assert job.status
    over = ended(job.status, End("False", "DeadlineExceeded"), SystemClock().now())
    await bench.client.patch(job, job.replace(status=over), subresource="status")
    await clock.advance(20)
    await asyncio.wait_for(working, 25)
    assert not (await bench.status()).listed


async def test_progress_is_told_once_a_second_and_only_when_there_is_any(bench: Bench, peer: Peer) -> None:
    for tag, thing in {"1": AMD, "2": AMD, "stuck": ARM}.items():
        await peer[0].push("app", tag, thing)
    peer[1].fault("GET", f"/manifests/{ARM.digest}", Stalled(0))
    message = await bench.begin(await bench.registry(peer[1].host))
    client, tap = tapped(bench.client)
    clock = FakeClock(SystemClock().now())
    async with tools(client, bench.folder, clock=clock) as mine:
        working = asyncio.create_task(CatalogHandler(mine).handle(message))
        await until(lambda: clock.pending)
        taken, seconds = len(tap.writes), 0
        while not (progress := (await bench.status()).progress) or (progress.done, progress.total) != (2, 3):
            await clock.advance(1)
            seconds += 1
        assert 1 <= len(tap.writes) - taken <= seconds
        await until(lambda: clock.pending)
        told = len(tap.writes)
        await clock.advance(15)
        assert len(tap.writes) == told
        await _cancelled(working, clock)


async def _cancelled(working: asyncio.Task[None], clock: FakeClock) -> None:
    """It lets go of its run with a time limit by its clock."""
    working.cancel()
    await until(lambda: working.done() or clock.pending)
    await clock.advance(60)
    await asyncio.wait((working,))


# --- by the queue ----------------------------------------------------------------------------------------------------


@pytest.fixture(params=["local", "nats"])
async def queues(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Callable[[], Queue]]:
    """Makes the queue of one worker; all share what is in it."""
    if request.param == "local":
        shared = LocalQueue(SystemClock())
        yield lambda: shared
        return
    made_here: list[Queue] = []
    (tmp_path / "nats").mkdir()
    with NatsServer(tmp_path / "nats") as server:

        def connected() -> Queue:
            made_here.append(NatsQueue(server.url))
            return made_here[-1]

        yield connected
        for queue in made_here:
            await queue.close()


@contextlib.asynccontextmanager
async def working(mine: Tools, queue: Queue) -> AsyncIterator[None]:
    stop = asyncio.Event()
    running = asyncio.create_task(
        Worker(mine, queue, {CATALOG: CatalogHandler(mine, silent=0.2)}, deadline=1.0).run(stop)
    )
    try:
        yield
    finally:
        stop.set()
        await running


async def test_another_worker_goes_on_where_one_froze_and_that_one_cannot_write_when_it_thaws(
    bench: Bench, peer: Peer, gated: tuple[Tools, GatedBlobs], queues: Callable[[], Queue]
) -> None:
    await peer[0].push("app", "1", AMD)
    message = await bench.begin(await bench.registry(peer[1].host))
    slow, gate = gated
    frozen = renamed(slow, clock=FakeClock(SystemClock().now()))  # it reports nothing
    queue = queues()
    await queue.publish(CATALOG, encode(message))
    deliveries = queue.consume(CATALOG, deadline=1.0)
    await anext(deliveries)  # and never settles what it got
    late = asyncio.create_task(CatalogHandler(frozen).handle(message))
    await gate.reached.wait()
    async with (
        tools(bench.client, bench.folder, name="next") as other,
        working(other, queues()),
    ):
        job = await until_found(bench.client, DiscoveryJob, message.job, bench.namespace, lambda job: job.status.listed)
        await until_empty(queue)
    gate.opened.set()
    await late
    await deliveries.aclose()  # type: ignore[attr-defined]
    assert (job.status.worker, job.status.fence) == ("next", 2)
    assert (await bench.job()).metadata.resource_version == job.metadata.resource_version
    assert (await bench.catalogue()).members == {"app": ["1"]}


async def until_empty(queue: Queue) -> None:
    async with asyncio.timeout(20):
        while await queue.depth(CATALOG):  # noqa: ASYNC110 - a queue tells nobody that it is empty
            await asyncio.sleep(0.01)


class Cut(Tap):
    """An API server that takes no writes for a while."""

    away = False

    async def call(self, call: Call) -> Reply:
        if self.away and not call.safe:
            raise ConnectionResetError("the API server is away")
        return await super().call(call)


async def test_an_api_server_that_is_away_at_the_end_costs_only_another_try(
    bench: Bench, peer: Peer, gated: tuple[Tools, GatedBlobs]
) -> None:
    await peer[0].push("app", "1", AMD)
    message = await bench.begin(await bench.registry(peer[1].host))
    slow, gate = gated
    cut = Cut(bench.client.transport)
    handler = CatalogHandler(renamed(slow, client=ApiClient(cut, bench.client.scheme)))
    first = asyncio.create_task(handler.handle(message))
    await gate.reached.wait()
    cut.away = True
    gate.opened.set()
    with pytest.raises(OSError, match="away"):
        await first
    cut.away = False
    await handler.handle(message)
    status = await bench.status()
    assert (status.fence, reason_of(status)[1] is not None) == (2, True)
