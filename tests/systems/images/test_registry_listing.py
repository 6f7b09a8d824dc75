"""The listing of a registry: everything once, what fails fails alone, and silence is only trusted when it may be."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from structlog.testing import capture_logs

from trimtab.lab import registry_images as made
from trimtab.lab.registry import Registry
from trimtab.lab.registry_faults import Answered, Corrupted, Crowded, FaultProxy
from trimtab.model.logs import log
from trimtab.runtime.outbound import Budget
from trimtab.systems.images.registry.client import RegistryClient
from trimtab.systems.images.registry.connections import Connections
from trimtab.systems.images.registry.errors import DigestMismatch, Forbidden, NoCatalog, NotFound, Unavailable
from trimtab.systems.images.registry.listing import Listing
from trimtab.systems.images.registry.manifests import Platform, Why
from trimtab.systems.images.registry.outcomes import (
    Coverage,
    Failed,
    FilterFailed,
    Found,
    KnownTag,
    Outcome,
    Skipped,
    SkipReason,
)
from trimtab.systems.images.registry.references import endpoint
from trimtab.systems.images.registry.turns import Turns
from trimtab.systems.images.registry.width import Width
from trimtab.testing.ports import free_ports

BASE = made.layer({"etc/os-release": b"ID=debian\n"})
AMD = made.image([BASE, made.layer({"app": b"amd"}, "zstd")])
ARM = made.image([BASE, made.layer({"app": b"arm"})], "linux/arm/v7")
BARE = made.image([BASE], "linux/s390x", history=False)
MULTI = made.index([made.entry(AMD, "linux/amd64"), made.entry(ARM, "linux/arm/v7"), made.attestation(AMD)])
TWICE = made.index([made.entry(ARM, "linux/arm"), made.entry(ARM, "linux/arm/v7")])
NGINX = Answered(404, {"Content-Type": "text/html"}, b"<html><h1>404 Not Found</h1>nginx</html>")
QUICK = Budget(concurrent=48, rate=4000, burst=4000, attempts=2, first_pause=0.001)


class Peer:
    """A registry, and a client of it through a proxy."""

    def __init__(self, pusher: made.Pusher, proxy: FaultProxy, client: RegistryClient) -> None:
        self.pusher, self.proxy, self.client = pusher, proxy, client

    async def listed(self, **options: Any) -> tuple[dict[str, Outcome], Coverage]:
        """The outcomes by `repository:tag`, each once."""
        found: dict[str, Outcome] = {}
        async with Listing(self.client, **options) as listing:
            async for outcome in listing:
                name = f"{outcome.repository}:{outcome.tag}"
                assert name not in found
                found[name] = outcome
        return found, listing.coverage


@pytest.fixture
async def peer(tmp_path: Path) -> AsyncIterator[Peer]:
    port, proxy_port = free_ports(2)
    with Registry(tmp_path, port) as registry:
        async with (
            made.Pusher(registry.url) as pusher,
            FaultProxy(proxy_port, registry.url) as proxy,
            Connections(QUICK) as connections,
        ):
            yield Peer(pusher, proxy, connections.client(endpoint(proxy.host, plain_http=True)))


def known_of(outcomes: dict[str, Outcome]) -> dict[tuple[str, str], KnownTag]:
    return {(each.repository, each.tag): each.known for each in outcomes.values() if isinstance(each, Found)}


async def test_every_kind_of_tag_has_its_outcome(peer: Peer) -> None:
    everything = {
        "single": AMD, "multi": MULTI, "noplatform": made.index([ARM]), "nested": made.index([MULTI]),
        "twice": TWICE, "nohistory": BARE, "chart": made.helm_chart(),
        "docker": made.image([made.layer({"x": b"docker"}, family="docker")], family="docker"),
    }  # fmt: skip
    for tag, thing in everything.items():
        await peer.pusher.push("team/app", tag, thing)
    outcomes, coverage = await peer.listed()
    images = {
        each.tag: [(image.digest, str(image.platform)) for image in each.images or ()]
        for each in outcomes.values()
        if isinstance(each, Found)
    }
    both = [(AMD.digest, "linux/amd64"), (ARM.digest, "linux/arm/v7")]
    assert images == {
        "single": both[:1], "multi": both, "noplatform": both[1:], "nested": both,
        "twice": [(ARM.digest, "linux/arm")], "nohistory": [(BARE.digest, "linux/s390x")],
        "docker": [(everything["docker"].digest, "linux/amd64")],
    }  # fmt: skip
    chart = outcomes["team/app:chart"]
    assert isinstance(chart, Skipped)
    assert (chart.reason, chart.digest) == (SkipReason.NOT_AN_IMAGE, everything["chart"].digest)
    assert "helm" in chart.detail
    assert coverage == Coverage(
        catalogue=True, named=True, ended=True, whole={"team/app"}, repositories=1, tags=8, found=7, skipped=1,
        skipped_by={SkipReason.NOT_AN_IMAGE: 1},
    )  # fmt: skip
    assert coverage.complete


async def test_an_image_is_told_with_its_layers_and_its_index(peer: Peer) -> None:
    await peer.pusher.push("team/app", "multi", MULTI)
    outcomes, _ = await peer.listed()
    found = outcomes["team/app:multi"]
    assert isinstance(found, Found)
    assert found.digest == MULTI.digest
    assert found.images is not None
    first = found.images[0]
    assert first.index_digest == MULTI.digest
    assert first.layers is not None
    assert [each.digest for each in first.layers] == [each.digest for each in AMD.blobs[1:]]
    assert [each.command for each in first.layers] == ["COPY 0", "COPY 1"]
    assert first.size == sum(len(each.content) for each in AMD.blobs[1:])
    assert [each.why for each in found.left] == [Why.ATTESTATION]


async def test_platforms_select_by_index_and_by_config(peer: Peer) -> None:
    await peer.pusher.push("team/app", "multi", MULTI)
    await peer.pusher.push("team/app", "single", BARE)
    outcomes, _ = await peer.listed(platforms=[Platform("linux", "arm")])
    multi, single = outcomes["team/app:multi"], outcomes["team/app:single"]
    assert isinstance(multi, Found)
    assert [image.digest for image in multi.images or ()] == [ARM.digest]
    assert isinstance(single, Skipped)
    assert (single.reason, single.detail) == (SkipReason.NO_PLATFORM, "PlatformNotSelected linux/s390x")
    assert peer.proxy.count("GET", AMD.digest) == 0


async def test_an_unchanged_registry_costs_one_head_for_each_tag(peer: Peer) -> None:
    for tag in ("1", "2"):
        await peer.pusher.push("team/app", tag, MULTI)
    first, _ = await peer.listed()
    peer.proxy.requests.clear()
    second, coverage = await peer.listed(known=known_of(first))
    assert known_of(second) == known_of(first)
    assert all(isinstance(each, Found) and each.images is None for each in second.values())
    assert coverage.complete
    assert Counter(each.method for each in peer.proxy.requests) == {"GET": 2, "HEAD": 2}


async def test_a_digest_that_is_known_without_an_etag_is_enough(peer: Peer) -> None:
    await peer.pusher.push("team/app", "1", AMD)
    outcomes, _ = await peer.listed(known={("team/app", "1"): KnownTag(AMD.digest)})
    found = outcomes["team/app:1"]
    assert isinstance(found, Found)
    assert (found.images, found.etag) == (None, f'"{AMD.digest}"')


async def test_manifests_of_known_digests_are_not_read(peer: Peer) -> None:
    await peer.pusher.push("team/app", "known", AMD)
    await peer.pusher.push("team/app", "multi", MULTI)
    outcomes, _ = await peer.listed(known_digests={AMD.digest})
    known, multi = outcomes["team/app:known"], outcomes["team/app:multi"]
    assert isinstance(known, Found)
    assert known.images is None
    assert isinstance(multi, Found)
    assert [image.layers is None for image in multi.images or ()] == [True, False]
    assert peer.proxy.count("GET", AMD.digest) == 0


async def test_a_digest_with_many_tags_is_read_once(peer: Peer) -> None:
    for number in range(20):
        await peer.pusher.push("team/app", f"t{number}", AMD)
    outcomes, _ = await peer.listed()
    assert len(outcomes) == 20
    assert peer.proxy.count("GET", "manifests") == 1
    assert peer.proxy.count("GET", "blobs") == 1


async def test_a_failure_of_one_reader_is_not_that_of_the_others(peer: Peer) -> None:
    for number in range(4):
        await peer.pusher.push("team/app", f"t{number}", AMD)
    peer.proxy.fault("GET", "manifests", Answered(403), times=1)
    outcomes, _ = await peer.listed()
    assert Counter(type(each) for each in outcomes.values()) == {Found: 3, Failed: 1}


async def test_a_tag_that_moved_during_the_run_is_what_its_head_said(peer: Peer) -> None:
    await peer.pusher.push("team/app", "latest", AMD)
    head = {"Docker-Content-Digest": BARE.digest, "Content-Type": made.OCI_MANIFEST}
    await peer.pusher.push("team/app", BARE.digest, BARE)
    peer.proxy.fault("HEAD", "latest", Answered(200, head), times=1)
    outcomes, _ = await peer.listed()
    found = outcomes["team/app:latest"]
    assert isinstance(found, Found)
    assert [image.digest for image in found.images or ()] == [BARE.digest]
    assert peer.proxy.count("GET", "manifests/latest") == 0


async def test_a_tag_whose_manifest_was_deleted_meanwhile_is_asked_for_again(peer: Peer) -> None:
    await peer.pusher.push("team/app", "latest", AMD)
    stale = {"Docker-Content-Digest": "sha256:" + "0" * 64, "Content-Type": made.OCI_MANIFEST}
    peer.proxy.fault("HEAD", "latest", Answered(200, stale), times=1)
    outcomes, _ = await peer.listed()
    found = outcomes["team/app:latest"]
    assert isinstance(found, Found)
    assert found.digest == AMD.digest


async def test_a_tag_that_is_gone_is_skipped(peer: Peer) -> None:
    await peer.pusher.push("team/app", "1", AMD)
    peer.proxy.fault("GET", "tags/list", Answered(200, {}, b'{"tags": ["1", "deleted"]}'))
    outcomes, coverage = await peer.listed()
    gone = outcomes["team/app:deleted"]
    assert isinstance(gone, Skipped)
    assert gone.reason is SkipReason.GONE
    assert coverage.whole == {"team/app"}


@pytest.mark.parametrize("methods", [["HEAD"], ["HEAD", "GET"]])
async def test_a_tag_is_not_gone_by_a_404_that_the_registry_did_not_say(peer: Peer, methods: list[str]) -> None:
    await peer.pusher.push("team/app", "1", AMD)
    for method in methods:
        peer.proxy.fault(method, "manifests", NGINX)
    outcomes, _ = await peer.listed()
    failed = outcomes["team/app:1"]
    assert isinstance(failed, Failed)
    assert isinstance(failed.error, NotFound)


async def test_a_tag_whose_content_is_missing_is_not_gone(peer: Peer) -> None:
    await peer.pusher.push("team/app", "1", AMD)
    peer.proxy.fault("GET", "blobs", Answered(404, {}, b'{"errors": [{"code": "BLOB_UNKNOWN"}]}'))
    outcomes, _ = await peer.listed()
    failed = outcomes["team/app:1"]
    assert isinstance(failed, Failed)
    assert isinstance(failed.error, NotFound)


async def test_skipped_tags_are_counted_by_reason_and_logged_unless_a_filter_left_them_out(peer: Peer) -> None:
    await peer.pusher.push("team/app", "chart", made.helm_chart())
    await peer.pusher.push("team/app", "arm", ARM)
    await peer.pusher.push("team/app", "rc", AMD)
    log.bind()  # sets logging up, which would undo the capture
    with capture_logs() as logged:
        _, coverage = await peer.listed(filter=lambda _, tag: tag != "rc", platforms=[Platform("linux", "amd64")])
    assert coverage.skipped_by == {
        SkipReason.FILTERED: 1, SkipReason.NOT_AN_IMAGE: 1, SkipReason.NO_PLATFORM: 1
    }  # fmt: skip
    said = {each["tag"]: (each["repository"], each["reason"], each["detail"]) for each in logged}
    assert said == {
        "chart": ("team/app", "NotAnImage", "it is an artifact of type application/vnd.cncf.helm.config.v1+json"),
        "arm": ("team/app", "NoSelectedPlatform", "PlatformNotSelected linux/arm/v7"),
    }


async def test_only_so_many_skipped_tags_are_named_in_the_log(peer: Peer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trimtab.systems.images.registry.listing.LOGGED", 2)
    for tag in ("1", "2", "3"):
        await peer.pusher.push("team/app", tag, made.helm_chart())
    log.bind()  # sets logging up, which would undo the capture
    with capture_logs() as logged:
        _, coverage = await peer.listed()
    assert (coverage.skipped, sum("tag" in each for each in logged), len(logged)) == (3, 2, 3)


async def test_a_costly_filter_does_not_hold_the_loop(peer: Peer) -> None:
    """However many tags it leaves out, others have their turn after one or two of them."""
    await peer.pusher.push("team/app", "1.0", AMD)
    in_a_row, most = 0, 0

    def costly(repository: str, tag: str) -> bool:
        nonlocal in_a_row, most
        in_a_row += 1
        most = max(most, in_a_row)
        end = time.perf_counter() + 0.006
        while time.perf_counter() < end:
            pass
        return False

    async def others() -> None:
        nonlocal in_a_row
        while True:
            in_a_row = 0
            await asyncio.sleep(0)

    task = asyncio.create_task(others())
    outcomes, coverage = await peer.listed(only={"team/app": [f"t{number}" for number in range(80)]}, filter=costly)
    task.cancel()
    assert (len(outcomes), coverage.skipped) == (80, 80)
    assert most <= 2


async def test_the_filter_is_asked_before_the_registry(peer: Peer) -> None:
    for tag in ("1.0", "2.0", "odd"):
        await peer.pusher.push("team/app", tag, AMD)

    def selects(repository: str, tag: str) -> bool:
        if tag == "odd":
            raise FilterFailed("semver('odd') is no version")
        return (repository, tag) == ("team/app", "1.0")

    outcomes, coverage = await peer.listed(filter=selects)
    reasons = {each.tag: (each.reason, each.detail) for each in outcomes.values() if isinstance(each, Skipped)}
    assert reasons == {
        "2.0": (SkipReason.FILTERED, ""),
        "odd": (SkipReason.FILTER_FAILED, "semver('odd') is no version"),
    }
    assert isinstance(outcomes["team/app:1.0"], Found)
    assert peer.proxy.count("HEAD") == 1
    assert coverage.complete


async def test_one_unreadable_tag_fails_alone(peer: Peer) -> None:
    await peer.pusher.push("team/app", "good", AMD)
    await peer.pusher.push("team/app", "bad", BARE)
    peer.proxy.fault("GET", BARE.digest, Corrupted())
    outcomes, coverage = await peer.listed()
    bad = outcomes["team/app:bad"]
    assert isinstance(bad, Failed)
    assert isinstance(bad.error, DigestMismatch)
    assert isinstance(outcomes["team/app:good"], Found)
    assert coverage.whole == {"team/app"}


async def test_one_unreadable_repository_fails_alone_and_is_not_whole(peer: Peer) -> None:
    for repository in ("team/a", "team/b", "team/c"):
        await peer.pusher.push(repository, "1", AMD)
    peer.proxy.fault("GET", "team/b/tags", Answered(403))
    outcomes, coverage = await peer.listed()
    failed = outcomes["team/b:"]
    assert isinstance(failed, Failed)
    assert isinstance(failed.error, Forbidden)
    assert (coverage.whole, coverage.partly, coverage.complete) == ({"team/a", "team/c"}, {"team/b"}, False)


async def test_tags_before_a_broken_page_are_read_and_the_repository_is_not_whole(peer: Peer) -> None:
    await peer.pusher.push("team/app", "1", AMD)
    link = {"Link": '</v2/team/app/tags/list?last=1>; rel="next"'}
    peer.proxy.fault("GET", "tags/list.n=1000", Answered(200, link, b'{"tags": ["1"]}'))
    peer.proxy.fault("GET", "tags/list.last=1", Answered(500))
    outcomes, coverage = await peer.listed()
    assert isinstance(outcomes["team/app:1"], Found)
    assert isinstance(outcomes["team/app:"], Failed)
    assert (coverage.whole, coverage.partly) == (set(), {"team/app"})


async def test_a_repository_that_vanishes_between_pages_is_not_absent(peer: Peer) -> None:
    await peer.pusher.push("team/app", "1", AMD)
    link = {"Link": '</v2/team/app/tags/list?last=1>; rel="next"'}
    peer.proxy.fault("GET", "tags/list.n=1000", Answered(200, link, b'{"tags": ["1"]}'))
    peer.proxy.fault("GET", "tags/list.last=1", Answered(404))
    _, coverage = await peer.listed()
    assert (coverage.whole, coverage.partly, coverage.absent) == (set(), {"team/app"}, set())


@pytest.mark.parametrize("named", [None, ["team/app"]])
async def test_a_404_that_is_not_the_registrys_word_makes_no_repository_absent(
    peer: Peer, named: list[str] | None
) -> None:
    await peer.pusher.push("team/app", "1", AMD)
    for answer in (NGINX, Answered(404), Answered(404, {}, b'{"errors": [{"code": "NOT_FOUND"}]}')):
        peer.proxy.clear()
        peer.proxy.fault("GET", "tags/list", answer)
        outcomes, coverage = await peer.listed(repositories=named)
        assert isinstance(outcomes["team/app:"], Failed)
        assert (coverage.partly, coverage.absent, coverage.complete) == ({"team/app"}, set(), False)


async def test_a_repository_that_the_registry_calls_unknown_is_absent(peer: Peer) -> None:
    await peer.pusher.push("team/app", "1", AMD)
    peer.proxy.fault("GET", "tags/list", Answered(404, {}, b'{"errors": [{"code": "NAME_UNKNOWN"}]}'))
    outcomes, coverage = await peer.listed()
    assert (outcomes, coverage.absent, coverage.complete) == ({}, {"team/app"}, True)


async def test_a_catalogue_that_breaks_off_is_told_and_what_it_named_is_read(peer: Peer) -> None:
    await peer.pusher.push("team/app", "1", AMD)
    link = {"Link": '</v2/_catalog?last=x>; rel="next"'}
    peer.proxy.fault("GET", "_catalog.n=1000", Answered(200, link, b'{"repositories": ["team/app"]}'))
    peer.proxy.fault("GET", "_catalog.last=x", Answered(500))
    outcomes, coverage = await peer.listed()
    assert isinstance(outcomes["team/app:1"], Found)
    assert isinstance(outcomes[":"], Failed)
    assert (coverage.whole, coverage.catalogue, coverage.complete) == ({"team/app"}, False, False)


async def test_a_catalogue_that_there_is_not_is_raised(peer: Peer) -> None:
    peer.proxy.fault("GET", "_catalog", Answered(404))
    with pytest.raises(NoCatalog):
        await peer.listed()


async def test_named_repositories_are_listed_without_a_catalogue(peer: Peer) -> None:
    await peer.pusher.push("team/a", "1", AMD)
    await peer.pusher.push("team/b", "1", AMD)
    outcomes, coverage = await peer.listed(repositories=["team/a", "team/none", "team/a"])
    none = outcomes["team/none:"]
    assert isinstance(outcomes["team/a:1"], Found)
    assert isinstance(none, Failed)
    assert isinstance(none.error, NotFound)
    assert (coverage.whole, coverage.absent, coverage.catalogue) == ({"team/a"}, {"team/none"}, False)
    assert peer.proxy.count("GET", "_catalog") == 0


async def test_an_emptied_repository_is_whole_and_empty(peer: Peer) -> None:
    await peer.pusher.push("team/app", "1", AMD)
    await peer.pusher.delete("team/app", AMD.digest)
    outcomes, coverage = await peer.listed()
    assert (outcomes, coverage.whole, coverage.complete) == ({}, {"team/app"}, True)


async def test_only_what_was_pushed_is_listed_and_nothing_is_whole_then(peer: Peer) -> None:
    for tag in ("1", "2"):
        await peer.pusher.push("team/app", tag, AMD)
    outcomes, coverage = await peer.listed(only={"team/app": ["2", AMD.digest]})
    assert set(outcomes) == {"team/app:2", f"team/app:{AMD.digest}"}
    assert (coverage.whole, coverage.partly, coverage.complete) == (set(), {"team/app"}, False)
    assert peer.proxy.count("GET", "tags/list|_catalog") == 0


async def test_names_that_no_registry_may_have_fail_alone(peer: Peer) -> None:
    await peer.pusher.push("team/app", "1", AMD)
    peer.proxy.fault("GET", "_catalog", Answered(200, {}, b'{"repositories": ["../etc", "team/app"]}'))
    peer.proxy.fault("GET", "tags/list", Answered(200, {}, b'{"tags": ["../../x", "1"]}'))
    outcomes, _ = await peer.listed()
    kinds = {name: type(each) for name, each in outcomes.items()}
    assert kinds == {"../etc:": Failed, "team/app:../../x": Failed, "team/app:1": Found}


async def test_a_registry_that_fails_at_every_turn_is_given_up(peer: Peer) -> None:
    for number in range(60):
        await peer.pusher.push("team/app", f"t{number}", AMD)
    peer.proxy.fault("HEAD", "", Answered(500))
    outcomes, coverage = await peer.listed(patience=10, concurrency=2)
    rest = outcomes[":"]
    assert isinstance(rest, Failed)
    assert isinstance(rest.error, Unavailable)
    assert len(outcomes) < 20
    assert (coverage.whole, coverage.partly, coverage.ended) == (set(), {"team/app"}, False)


async def test_a_registry_that_bears_few_requests_at_once_is_listed_whole(peer: Peer) -> None:
    for number in range(60):
        await peer.pusher.push(f"team/app{number % 15}", f"t{number}", AMD)
    for method in ("HEAD", "GET"):
        peer.proxy.fault(method, "tags|manifests", Crowded(most=3))
    outcomes, coverage = await peer.listed()
    assert Counter(type(each) for each in outcomes.values()) == {Found: 60}
    assert coverage.complete


async def test_a_registry_that_wants_to_be_left_alone_for_an_hour_is(peer: Peer) -> None:
    for number in range(20):
        await peer.pusher.push("team/app", f"t{number}", AMD)
    peer.proxy.fault("HEAD", "", Answered(429, {"Retry-After": "3600"}))
    outcomes, coverage = await peer.listed(concurrency=1)
    assert set(outcomes) == {next(iter(outcomes)), ":"}
    assert all(isinstance(each, Failed) for each in outcomes.values())
    assert peer.proxy.count("HEAD") == 1
    assert coverage.partly == {"team/app"}


async def test_width_halves_when_refused_and_grows_with_good_answers() -> None:
    width = Width(32)
    for _ in range(3):
        width.narrow()
    assert width.allowed == 4
    for _ in range(5):
        width.widen()
    assert width.allowed == 5
    for _ in range(10):
        width.narrow()
    assert width.allowed == 1
    async with width:
        waiting = asyncio.create_task(width.__aenter__())
        await asyncio.sleep(0)
        assert not waiting.done()
    await waiting


async def test_a_listing_that_is_left_early_ends_its_requests_and_is_not_whole(peer: Peer) -> None:
    for number in range(40):
        await peer.pusher.push("team/app", f"t{number}", AMD)
    before = asyncio.all_tasks()
    async with Listing(peer.client, concurrency=2) as listing:
        async for _ in listing:
            break
    assert (listing.coverage.whole, listing.coverage.ended) == (set(), False)
    assert {task for task in asyncio.all_tasks() - before if "listing" in task.get_name()} == set()


async def test_an_error_of_the_filter_itself_ends_the_listing_with_that_error(peer: Peer) -> None:
    await peer.pusher.push("team/app", "1", AMD)

    def broken(repository: str, tag: str) -> bool:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await peer.listed(filter=broken)


async def test_a_cache_of_another_registry_is_listed_by_name(tmp_path: Path) -> None:
    one, two = free_ports(2)
    with Registry(tmp_path / "a", one) as origin, Registry(tmp_path / "b", two, remote=origin.url) as cache:
        async with made.Pusher(origin.url) as pusher, Connections(QUICK) as connections:
            await pusher.push("team/app", "1", MULTI)
            client = connections.client(endpoint(cache.host, plain_http=True))
            async with Listing(client) as listing:  # the catalogue of a cache names what it has cached
                assert [outcome async for outcome in listing] == []
            async with Listing(client, repositories=["team/app"]) as listing:
                (found,) = [outcome async for outcome in listing]
            assert isinstance(found, Found)
            assert [image.digest for image in found.images or ()] == [AMD.digest, ARM.digest]


async def test_a_registry_that_is_killed_leaves_an_outcome_for_each_tag(tmp_path: Path) -> None:
    (port,) = free_ports(1)
    with Registry(tmp_path, port) as registry:
        async with made.Pusher(registry.url) as pusher, Connections(QUICK) as connections:
            tags = {f"t{number}" for number in range(40)}
            for tag in sorted(tags):
                await pusher.push("team/app", tag, AMD)
            outcomes: list[Outcome] = []
            async with Listing(connections.client(endpoint(registry.host, plain_http=True)), concurrency=2) as listing:
                async for outcome in listing:
                    if not outcomes:
                        registry.kill()
                    outcomes.append(outcome)
    assert sorted(each.tag for each in outcomes) == sorted(tags)
    failed = [each for each in outcomes if isinstance(each, Failed)]
    assert failed
    assert all(isinstance(each.error, Unavailable) for each in failed)


@given(
    st.dictionaries(
        st.text("abc", min_size=1, max_size=2), st.lists(st.integers(0, 9).map(str), max_size=6), max_size=6
    )
)
@settings(max_examples=50)
def test_every_tag_has_one_turn_and_nobody_waits_for_longer_than_a_round(tags: dict[str, list[str]]) -> None:
    async def taken() -> list[tuple[str, str]]:
        turns = Turns(most_open=len(tags) + 1)
        for repository, each in tags.items():
            await turns.enter()
            await turns.add(repository, each)
        await turns.close()
        given_out = []
        while (turn := await turns.next()) is not None:
            given_out.append(turn)
        return given_out

    order = asyncio.run(taken())
    assert Counter(order) == Counter((name, tag) for name, each in tags.items() for tag in each)
    for name, each in tags.items():
        assert [tag for other, tag in order if other == name] == each
        places = [place for place, (other, _) in enumerate(order) if other == name]
        assert all(after - before <= len(tags) for before, after in pairwise(places))


async def test_a_small_repository_does_not_wait_for_a_large_one() -> None:
    turns = Turns(most_open=2)
    await turns.enter()
    await turns.add("large", map(str, range(100)))
    await turns.enter()
    await turns.add("small", ["a", "b"])
    order = [await turns.next() for _ in range(4)]
    assert order == [("large", "0"), ("small", "a"), ("large", "1"), ("small", "b")]


async def test_only_so_many_repositories_are_open() -> None:
    turns = Turns(most_open=1)
    await turns.enter()
    waiting = asyncio.create_task(turns.enter())
    await turns.add("one", ["1"])
    assert not waiting.done()
    assert await turns.next() == ("one", "1")
    await waiting
    await turns.close()
