"""The client of a registry, on Debian's docker-registry and on a proxy that does everything wrong."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing

import pytest

from trimtab.lab import registry_images as made
from trimtab.lab.registry import Registry
from trimtab.lab.registry_faults import Answered, Corrupted, Dropped, FaultProxy, Stalled, Truncated
from trimtab.runtime.outbound import Budget, Limits, Tls
from trimtab.systems.images.registry.client import Head, NotModified, RegistryClient
from trimtab.systems.images.registry.connections import Connections
from trimtab.systems.images.registry.errors import (
    BadAnswer,
    DigestMismatch,
    Forbidden,
    NoCatalog,
    NotFound,
    RateLimited,
    RegistryError,
    TooLarge,
    Unavailable,
)
from trimtab.systems.images.registry.references import endpoint
from trimtab.testing.ports import free_ports

APP = made.image(
    [made.layer({"etc/os-release": b"ID=debian\n"}), made.layer({"big": bytes(range(256)) * 4096}, "none")]
)
BIG = APP.blobs[2]
QUICK = Budget(concurrent=8, rate=1000, burst=1000, attempts=2, first_pause=0.001)


@pytest.fixture(scope="module")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Registry]:
    (port,) = free_ports(1)
    with Registry(tmp_path_factory.mktemp("registry"), port) as running:
        yield running


@pytest.fixture
async def pusher(registry: Registry) -> AsyncIterator[made.Pusher]:
    async with made.Pusher(registry.url) as pushing:
        yield pushing


@pytest.fixture
async def proxy(registry: Registry) -> AsyncIterator[FaultProxy]:
    (port,) = free_ports(1)
    async with FaultProxy(port, registry.url) as serving:
        yield serving


@pytest.fixture
async def connections() -> AsyncIterator[Connections]:
    async with Connections(QUICK, limits=Limits(total=20, read=0.5)) as made_once:
        yield made_once


@pytest.fixture
def client(connections: Connections, registry: Registry) -> RegistryClient:
    return connections.client(endpoint(registry.host, plain_http=True))


@pytest.fixture
def faulty(connections: Connections, proxy: FaultProxy) -> RegistryClient:
    return connections.client(endpoint(proxy.host, plain_http=True))


async def read(client: RegistryClient, blob: made.Blob, size: int | None = None) -> bytes:
    size = len(blob.content) if size is None else size
    return b"".join([piece async for piece in client.blob("team/app", blob.digest, size)])


async def test_ping_is_silent_for_a_registry_and_says_what_is_none(
    client: RegistryClient, connections: Connections
) -> None:
    await client.ping()
    (port,) = free_ports(1)
    async with FaultProxy(port) as no_registry:
        with pytest.raises(BadAnswer, match="no registry"):
            await connections.client(endpoint(no_registry.host, plain_http=True)).ping()


async def test_a_registry_that_is_not_there_is_unavailable(connections: Connections) -> None:
    (port,) = free_ports(1)
    with pytest.raises(Unavailable, match="does not answer"):
        await connections.client(endpoint(f"127.0.0.1:{port}", plain_http=True)).ping()


async def test_what_was_pushed_is_listed_and_read(client: RegistryClient, pusher: made.Pusher) -> None:
    await pusher.push("team/app", "1.0", APP)
    assert "team/app" in [name async for name in client.repositories()]
    assert [tag async for tag in client.tags("team/app")] == ["1.0"]
    head = await client.head("team/app", "1.0")
    assert isinstance(head, Head)
    assert (head.digest, head.media_type, head.size) == (APP.digest, made.OCI_MANIFEST, len(APP.manifest.content))
    manifest = await client.manifest("team/app", head.digest)
    assert (manifest.content, manifest.media_type) == (APP.manifest.content, made.OCI_MANIFEST)
    assert (await client.manifest("team/app", "1.0")).digest == APP.digest
    assert await client.config("team/app", APP.blobs[0].digest) == APP.blobs[0].content
    assert await read(client, BIG) == BIG.content


async def test_an_etag_spares_the_answer(client: RegistryClient, pusher: made.Pusher) -> None:
    await pusher.push("team/app", "1.0", APP)
    head = await client.head("team/app", "1.0")
    assert isinstance(head, Head)
    assert await client.head("team/app", "1.0", head.etag) == NotModified(head.etag)
    await pusher.push("team/app", "1.0", made.image([made.layer({"new": b"1"})]))
    assert isinstance(await client.head("team/app", "1.0", head.etag), Head)
    await pusher.push("team/app", "1.0", APP)


async def test_a_repository_without_tags_is_empty_and_an_unknown_one_is_not_found(
    client: RegistryClient, pusher: made.Pusher
) -> None:
    await pusher.push("team/emptied", "1", made.image([made.layer({"x": b"emptied"})]))
    await pusher.delete("team/emptied", made.image([made.layer({"x": b"emptied"})]).digest)
    assert [tag async for tag in client.tags("team/emptied")] == []
    with pytest.raises(NotFound, match="NAME_UNKNOWN"):
        await anext(client.tags("team/none"))


async def test_a_tag_that_is_not_there_is_not_found(client: RegistryClient, pusher: made.Pusher) -> None:
    await pusher.push("team/app", "1.0", APP)
    with pytest.raises(NotFound):
        await client.head("team/app", "9.9")


async def test_indexes_of_both_families_are_accepted(client: RegistryClient, pusher: made.Pusher) -> None:
    entries = [made.entry(APP, "linux/amd64")]
    await pusher.push("team/multi", "oci", made.index(entries))
    await pusher.push("team/multi", "docker", made.index(entries, "docker"))
    types = [(await client.manifest("team/multi", tag)).media_type for tag in ("oci", "docker")]
    assert types == [made.OCI_INDEX, made.DOCKER_LIST]


@pytest.mark.parametrize("absolute", [False, True])
async def test_pages_are_followed_by_links_to_the_end(
    faulty: RegistryClient, proxy: FaultProxy, absolute: bool
) -> None:
    where = "http://elsewhere.invalid:1/v2/_catalog" if absolute else "/v2/_catalog"
    link = {"Link": f'<{where}?last=b&n=2>; rel="next"'}
    proxy.fault("GET", r"_catalog\?n=1000$", Answered(200, link, b'{"repositories": ["a", "b"]}'))
    proxy.fault("GET", r"_catalog\?last=b&n=2$", Answered(200, {}, b'{"repositories": ["b", "c"]}'))
    assert [name async for name in faulty.repositories()] == ["a", "b", "c"]


async def test_a_page_size_that_is_refused_is_made_smaller(faulty: RegistryClient, proxy: FaultProxy) -> None:
    proxy.fault("GET", "n=1000", Answered(400, {}, b'{"errors": [{"code": "PAGINATION_NUMBER_INVALID"}]}'))
    proxy.fault("GET", "n=100$", Answered(400, {}, b'{"errors": [{"code": "PAGINATION_NUMBER_INVALID"}]}'))
    proxy.fault("GET", "_catalog$", Answered(200, {}, b'{"repositories": ["a"]}'))
    assert [name async for name in faulty.repositories()] == ["a"]


async def test_a_full_page_without_a_link_is_not_taken_for_the_end(faulty: RegistryClient, proxy: FaultProxy) -> None:
    names = [f"r{number:04}" for number in range(1001)]
    first = str(names[:1000]).replace("'", '"').encode()
    proxy.fault("GET", "n=1000$", Answered(200, {}, b'{"repositories": ' + first + b"}"))
    proxy.fault("GET", "last=r0999", Answered(200, {}, b'{"repositories": ["r1000"]}'))
    assert [name async for name in faulty.repositories()] == names


async def test_tags_of_a_registry_that_does_not_page_come_once(client: RegistryClient, pusher: made.Pusher) -> None:
    small = made.image([made.layer({"x": b"many"})])
    for blob in small.blobs:
        await pusher.blob("team/many", blob)
    for number in range(20):
        await pusher.put("team/many", f"t{number}", small.manifest)
    assert sorted([tag async for tag in client.tags("team/many")]) == sorted(f"t{number}" for number in range(20))


async def test_an_answer_without_a_list_is_no_empty_list(faulty: RegistryClient, proxy: FaultProxy) -> None:
    proxy.fault("GET", "team/app/tags", Answered(200, {}, b'{"status": "ok"}'))
    with pytest.raises(BadAnswer, match="no list of tags"):
        [tag async for tag in faulty.tags("team/app")]


async def test_pages_that_go_in_a_circle_end_as_an_error(faulty: RegistryClient, proxy: FaultProxy) -> None:
    link = {"Link": '</v2/_catalog?last=a>; rel="next"'}
    proxy.fault("GET", "_catalog", Answered(200, link, b'{"repositories": ["a"]}'))
    with pytest.raises(BadAnswer, match="circle"):
        [name async for name in faulty.repositories()]


@pytest.mark.parametrize("status", [403, 404, 405, 501])
async def test_a_catalogue_that_is_not_for_us_has_an_error_of_its_own(
    faulty: RegistryClient, proxy: FaultProxy, status: int
) -> None:
    proxy.fault("GET", "_catalog", Answered(status))
    with pytest.raises(NoCatalog, match=r"spec\.repositories"):
        await anext(faulty.repositories())


@pytest.mark.parametrize("body", [b"", b"<html>", b"[]", b'{"repositories": [1]}', b'{"repositories": "a"}'])
async def test_a_list_that_is_none_is_a_bad_answer(faulty: RegistryClient, proxy: FaultProxy, body: bytes) -> None:
    proxy.fault("GET", "_catalog", Answered(200, {}, body))
    with pytest.raises(BadAnswer, match="no list"):
        await anext(faulty.repositories())


@pytest.mark.parametrize(
    ("status", "error"), [(403, Forbidden), (404, NotFound), (500, Unavailable), (503, Unavailable), (418, BadAnswer)]
)
async def test_each_refusal_has_its_type(
    faulty: RegistryClient, proxy: FaultProxy, status: int, error: type[RegistryError]
) -> None:
    proxy.fault("GET", "manifests", Answered(status, {}, b'{"errors": [{"code": "SOME_CODE", "message": "no"}]}'))
    with pytest.raises(error, match=f"{status} .SOME_CODE"):
        await faulty.manifest("team/app", "1.0")


async def test_what_a_registry_says_in_words_is_not_repeated(faulty: RegistryClient, proxy: FaultProxy) -> None:
    proxy.fault(
        "GET", "manifests", Answered(403, {}, b'{"errors": [{"code": "hunter2 is wrong", "message": "hunter2"}]}')
    )
    with pytest.raises(Forbidden) as refused:
        await faulty.manifest("team/app", "1.0")
    assert "hunter2" not in str(refused.value)


async def test_retry_after_is_kept_and_then_it_goes_on(
    faulty: RegistryClient, proxy: FaultProxy, pusher: made.Pusher
) -> None:
    await pusher.push("team/app", "1.0", APP)
    proxy.fault("HEAD", "manifests", Answered(429, {"Retry-After": "0"}), times=1)
    assert isinstance(await faulty.head("team/app", "1.0"), Head)
    assert proxy.count("HEAD") == 2


async def test_a_registry_that_stays_busy_is_rate_limited_with_its_wish(
    faulty: RegistryClient, proxy: FaultProxy
) -> None:
    proxy.fault("HEAD", "manifests", Answered(429, {"Retry-After": "3600"}))
    with pytest.raises(RateLimited) as limited:
        await faulty.head("team/app", "1.0")
    assert limited.value.retry_after == 3600
    assert proxy.count("HEAD") == 1


async def test_all_clients_of_a_host_keep_the_pause_that_it_asked_of_one(
    connections: Connections, faulty: RegistryClient, proxy: FaultProxy
) -> None:
    proxy.fault("HEAD", "manifests", Answered(503, {"Retry-After": "3600"}))
    with pytest.raises(Unavailable):
        await faulty.head("team/app", "1.0")
    other = connections.client(endpoint(proxy.host, plain_http=True), tls=Tls(insecure=True))
    with pytest.raises(RateLimited, match="pause"):
        await other.ping()
    assert proxy.count("GET") == 0


async def test_a_manifest_of_another_digest_is_refused(
    faulty: RegistryClient, proxy: FaultProxy, pusher: made.Pusher
) -> None:
    await pusher.push("team/app", "1.0", APP)
    proxy.fault("GET", "manifests", Corrupted())
    with pytest.raises(DigestMismatch):
        await faulty.manifest("team/app", APP.digest)
    with pytest.raises(DigestMismatch):
        await faulty.manifest("team/app", "1.0")


async def test_a_config_of_another_digest_is_refused(
    faulty: RegistryClient, proxy: FaultProxy, pusher: made.Pusher
) -> None:
    await pusher.push("team/app", "1.0", APP)
    proxy.fault("GET", "blobs", Corrupted())
    with pytest.raises(DigestMismatch):
        await faulty.config("team/app", APP.blobs[0].digest)


async def test_a_manifest_or_config_beyond_the_bound_is_not_read(faulty: RegistryClient, proxy: FaultProxy) -> None:
    proxy.fault("GET", "manifests", Answered(200, {}, b" " * (4 * 1024 * 1024 + 1)))
    with pytest.raises(TooLarge):
        await faulty.manifest("team/app", "1.0")
    with pytest.raises(TooLarge):
        await faulty.config("team/app", APP.blobs[0].digest, 9 * 1024 * 1024)
    assert proxy.count("GET", "blobs") == 0


async def test_a_registry_that_does_not_tell_the_digest_is_asked_for_the_manifest(
    faulty: RegistryClient, proxy: FaultProxy, pusher: made.Pusher
) -> None:
    await pusher.push("team/app", "1.0", APP)
    proxy.fault("HEAD", "manifests", Answered(200), times=1)
    proxy.fault("HEAD", "manifests", Answered(405), times=1)
    for _ in range(2):
        head = await faulty.head("team/app", "1.0")
        assert isinstance(head, Head)
        assert head.digest == APP.digest


async def test_a_blob_that_breaks_off_goes_on_from_there(
    faulty: RegistryClient, proxy: FaultProxy, pusher: made.Pusher
) -> None:
    await pusher.push("team/app", "1.0", APP)
    proxy.fault("GET", "blobs", Truncated(after=100_000), times=1)
    proxy.fault("GET", "blobs", Stalled(after=200_000), times=1)
    assert await read(faulty, BIG) == BIG.content
    ranges = [each.headers.get("range", "") for each in proxy.requests]
    assert [bool(each) for each in ranges] == [False, True, True]


async def test_a_server_that_does_not_know_ranges_begins_again_and_we_skip(
    faulty: RegistryClient, proxy: FaultProxy, pusher: made.Pusher
) -> None:
    await pusher.push("team/app", "1.0", APP)
    proxy.fault("GET", "blobs", Truncated(after=100_000), times=1)
    proxy.fault("GET", "blobs", Answered(200, {}, BIG.content), times=1)
    assert await read(faulty, BIG) == BIG.content


async def test_a_blob_that_breaks_off_before_its_first_byte_is_asked_for_again(
    faulty: RegistryClient, proxy: FaultProxy, pusher: made.Pusher
) -> None:
    await pusher.push("team/app", "1.0", APP)
    proxy.fault("GET", "blobs", Truncated(after=0), times=1)
    assert await read(faulty, BIG) == BIG.content


async def test_a_blob_that_goes_on_elsewhere_is_refused(
    faulty: RegistryClient, proxy: FaultProxy, pusher: made.Pusher
) -> None:
    await pusher.push("team/app", "1.0", APP)
    proxy.fault("GET", "blobs", Truncated(after=1000), times=1)
    proxy.fault("GET", "blobs", Answered(206, {"Content-Range": "bytes 5-10/*"}, b"xxxxxx"), times=1)
    with pytest.raises(BadAnswer, match="another"):
        await read(faulty, BIG)


async def test_a_blob_that_is_left_early_frees_its_place(
    connections: Connections, faulty: RegistryClient, pusher: made.Pusher
) -> None:
    await pusher.push("team/app", "1.0", APP)
    for _ in range(QUICK.concurrent + 1):
        async with aclosing(faulty.blob("team/app", BIG.digest, len(BIG.content))) as pieces:
            async for _ in pieces:
                break


async def test_a_manifest_that_stops_coming_is_unavailable(
    faulty: RegistryClient, proxy: FaultProxy, pusher: made.Pusher
) -> None:
    await pusher.push("team/app", "1.0", APP)
    proxy.fault("GET", "manifests", Stalled(after=10))
    with pytest.raises(Unavailable, match="silent"):
        await faulty.manifest("team/app", "1.0")


async def test_a_manifest_that_breaks_off_is_asked_for_again(
    faulty: RegistryClient, proxy: FaultProxy, pusher: made.Pusher
) -> None:
    await pusher.push("team/app", "1.0", APP)
    proxy.fault("GET", "manifests", Truncated(after=10), times=1)
    assert (await faulty.manifest("team/app", "1.0")).content == APP.manifest.content


async def test_a_blob_that_keeps_breaking_off_is_unavailable(
    faulty: RegistryClient, proxy: FaultProxy, pusher: made.Pusher
) -> None:
    await pusher.push("team/app", "1.0", APP)
    proxy.fault("GET", "blobs", Truncated(after=1000))
    with pytest.raises(Unavailable):
        await read(faulty, BIG)
    assert proxy.count("GET") == 4


async def test_a_blob_of_another_digest_fails_at_its_end(
    faulty: RegistryClient, proxy: FaultProxy, pusher: made.Pusher
) -> None:
    await pusher.push("team/app", "1.0", APP)
    proxy.fault("GET", "blobs", Corrupted())
    with pytest.raises(DigestMismatch):
        await read(faulty, BIG)


async def test_a_blob_has_the_size_that_was_said(
    faulty: RegistryClient, proxy: FaultProxy, pusher: made.Pusher
) -> None:
    await pusher.push("team/app", "1.0", APP)
    with pytest.raises(TooLarge, match="were said"):
        await read(faulty, BIG, len(BIG.content) - 1)
    with pytest.raises(BadAnswer, match="were said"):
        await read(faulty, BIG, len(BIG.content) + 1)


async def test_a_claimed_size_beyond_the_bound_is_not_even_asked_for(faulty: RegistryClient, proxy: FaultProxy) -> None:
    with pytest.raises(TooLarge):
        await anext(faulty.blob("team/app", BIG.digest, 10 << 30, largest=1 << 30))
    assert not proxy.requests


async def test_a_connection_that_is_dropped_is_tried_again(
    faulty: RegistryClient, proxy: FaultProxy, pusher: made.Pusher
) -> None:
    await pusher.push("team/app", "1.0", APP)
    proxy.fault("HEAD", "manifests", Dropped(), times=1)
    assert isinstance(await faulty.head("team/app", "1.0"), Head)


@pytest.mark.parametrize("name", ["../v2", "A", "a b", "a?b", "a#b", ""])
async def test_a_name_that_would_lead_elsewhere_is_never_asked_for(
    faulty: RegistryClient, proxy: FaultProxy, name: str
) -> None:
    with pytest.raises(BadAnswer):
        await anext(faulty.tags(name))
    with pytest.raises(BadAnswer):
        await faulty.head("team/app", f"{name}/x")
    assert not proxy.requests


async def test_a_blob_is_what_its_digest_says_also_when_a_store_calls_it_encoded(
    faulty: RegistryClient, proxy: FaultProxy
) -> None:
    packed = APP.blobs[1]
    proxy.fault("GET", "blobs", Answered(200, {"Content-Encoding": "gzip"}, packed.content))
    assert hashlib.sha256(await read(faulty, packed)).hexdigest() == packed.digest.partition(":")[2]
