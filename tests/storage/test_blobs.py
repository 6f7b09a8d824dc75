"""The contract of Blobs, on every home."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.storage.conftest import LIMIT, Home
from trimtab.storage.blobs import (
    CHUNK,
    BlobDamaged,
    BlobInfo,
    BlobMissing,
    BlobTooLarge,
    Collected,
    Digest,
    digest_of,
    read,
)

OWNER = "images/SBOM/team-a/nginx/6f0c"
NOWHERE = digest_of(b"never put")


async def stream(*pieces: bytes) -> AsyncIterator[bytes]:
    for piece in pieces:
        yield piece


async def test_bytes_come_back_under_the_digest_of_their_content(home: Home) -> None:
    digest = await home.blobs.put(b"hello")
    assert digest == "sha256:2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824"
    assert await read(home.blobs, digest, max_bytes=10) == b"hello"


async def test_an_empty_blob_is_a_blob(home: Home) -> None:
    digest = await home.blobs.put(b"")
    assert await read(home.blobs, digest, max_bytes=0) == b""
    assert (await home.blobs.stat(digest)).size == 0


async def test_a_stream_of_pieces_is_one_blob_and_comes_in_bounded_chunks(home: Home) -> None:
    pieces = [b"a" * 700_000, b"", b"b" * (CHUNK + 1), b"c"]
    digest = await home.blobs.put(stream(*pieces))
    chunks = [chunk async for chunk in home.blobs.open(digest)]
    assert b"".join(chunks) == b"".join(pieces)
    assert max(map(len, chunks)) <= CHUNK


@settings(max_examples=8, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    pieces=st.lists(st.binary(max_size=64), max_size=6),
    edge=st.sampled_from([0, 1, CHUNK - 1, CHUNK, CHUNK + 1, 2 * CHUNK]),
)
async def test_any_content_comes_back_whole(home: Home, pieces: list[bytes], edge: int) -> None:
    content = b"".join(pieces) + bytes(edge)
    digest = await home.blobs.put(stream(*pieces, bytes(edge)))
    assert digest == digest_of(content)
    assert await read(home.blobs, digest, max_bytes=LIMIT) == content


async def test_stat_tells_size_and_media_type(home: Home) -> None:
    digest = await home.blobs.put(b"{}", media_type="application/spdx+json; version=2.3")
    assert await home.blobs.stat(digest) == BlobInfo(digest, 2, "application/spdx+json; version=2.3")


async def test_a_put_without_a_media_type_keeps_the_one_that_is_known(home: Home) -> None:
    digest = await home.blobs.put(b"{}", media_type="application/json")
    await home.blobs.put(b"{}")
    assert (await home.blobs.stat(digest)).media_type == "application/json"


async def test_what_is_not_there_is_missing(home: Home) -> None:
    with pytest.raises(BlobMissing):
        await home.blobs.stat(NOWHERE)
    with pytest.raises(BlobMissing):
        await read(home.blobs, NOWHERE, max_bytes=1)
    with pytest.raises(BlobMissing):
        await home.blobs.pin(NOWHERE, OWNER)


@pytest.mark.parametrize("digest", ["", "sha256:", "sha256:../../etc/passwd", "md5:" + "a" * 32, "sha256:" + "A" * 64])
async def test_what_is_no_digest_is_refused(home: Home, digest: str) -> None:
    with pytest.raises(ValueError, match="no digest"):
        await home.blobs.stat(Digest(digest))
    with pytest.raises(ValueError, match="no digest"):
        await read(home.blobs, Digest(digest), max_bytes=1)


@pytest.mark.parametrize("owner", ["", "a b", "é", "a\n", "x" * 513])
async def test_what_is_no_owner_is_refused(home: Home, owner: str) -> None:
    with pytest.raises(ValueError, match="no owner"):
        await home.blobs.pin(NOWHERE, owner)


async def test_a_media_type_that_breaks_a_header_is_refused(home: Home) -> None:
    with pytest.raises(ValueError, match="no media type"):
        await home.blobs.put(b"", media_type="a/b\r\nX: y")


async def test_bytes_that_are_not_what_was_expected_are_refused_and_not_there(home: Home) -> None:
    with pytest.raises(BlobDamaged):
        await home.blobs.put(b"something else", expected=NOWHERE)
    with pytest.raises(BlobMissing):
        await home.blobs.stat(digest_of(b"something else"))


async def test_more_bytes_than_allowed_are_refused_and_not_there(home: Home) -> None:
    with pytest.raises(BlobTooLarge):
        await home.blobs.put(stream(b"123", b"456"), max_bytes=5)
    with pytest.raises(BlobTooLarge):
        await home.blobs.put(stream(*[bytes(CHUNK)] * 5))
    assert await home.blobs.collect(grace=0) == Collected(0, 0)


async def test_a_reader_of_a_damaged_blob_is_told(home: Home) -> None:
    digest = await home.blobs.put(b"precious")
    await home.damage(digest)
    with pytest.raises(BlobDamaged):
        await read(home.blobs, digest, max_bytes=100)


async def test_the_same_bytes_put_again_mend_a_damaged_blob(home: Home) -> None:
    digest = await home.blobs.put(b"precious")
    await home.damage(digest)
    await home.blobs.put(b"precious")
    assert await read(home.blobs, digest, max_bytes=100) == b"precious"


async def test_a_source_that_fails_leaves_nothing(home: Home) -> None:
    async def broken() -> AsyncIterator[bytes]:
        yield bytes(CHUNK)
        raise RuntimeError("the source broke")

    with pytest.raises(RuntimeError, match="the source broke"):
        await home.blobs.put(broken())
    assert await home.blobs.collect(grace=0) == Collected(0, 0)


async def test_a_put_that_is_cancelled_leaves_nothing(home: Home) -> None:
    begun = asyncio.Event()

    async def endless() -> AsyncIterator[bytes]:
        yield bytes(CHUNK)
        begun.set()
        await asyncio.Event().wait()

    task = asyncio.create_task(home.blobs.put(endless()))
    await begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await home.blobs.collect(grace=0) == Collected(0, 0)


async def test_a_collection_takes_what_nobody_pins(home: Home) -> None:
    kept = await home.blobs.put(b"kept")
    loose = await home.blobs.put(b"loose")
    await home.blobs.pin(kept, OWNER)
    await home.age(1)
    assert await home.blobs.collect(grace=0) == Collected(1, 5)
    assert await read(home.blobs, kept, max_bytes=10) == b"kept"
    with pytest.raises(BlobMissing):
        await home.blobs.stat(loose)


async def test_a_collection_spares_what_is_younger_than_the_grace_time(home: Home) -> None:
    digest = await home.blobs.put(b"fresh")
    await home.age(3599)
    assert await home.blobs.collect(grace=3600) == Collected(0, 0)
    await home.age(2)
    assert await home.blobs.collect(grace=3600) == Collected(1, 5)
    with pytest.raises(BlobMissing):
        await home.blobs.stat(digest)


async def test_a_put_renews_the_age_of_what_is_there(home: Home) -> None:
    digest = await home.blobs.put(b"again")
    await home.age(3600)
    await home.blobs.put(b"again")
    assert await home.blobs.collect(grace=1800) == Collected(0, 0)
    await home.blobs.pin(digest, OWNER)


async def test_a_blob_stays_until_the_last_of_its_owners_lets_go(home: Home) -> None:
    digest = await home.blobs.put(b"shared")
    for owner in ("one", "two"):
        await home.blobs.pin(digest, owner)
        await home.blobs.pin(digest, owner)
    await home.age(1)
    await home.blobs.unpin("one", digest)
    assert (await home.blobs.collect(grace=0)).count == 0
    await home.blobs.unpin("two")
    assert (await home.blobs.collect(grace=0)).count == 1


async def test_an_owner_lets_go_of_all_that_it_pinned_and_of_nothing_else(home: Home) -> None:
    digests = [await home.blobs.put(content) for content in (b"a", b"b", b"c")]
    for digest in digests:
        await home.blobs.pin(digest, OWNER)
    await home.blobs.pin(digests[2], f"{OWNER}/other")
    await home.blobs.unpin(OWNER)
    await home.age(1)
    assert (await home.blobs.collect(grace=0)).count == 2
    assert await read(home.blobs, digests[2], max_bytes=1) == b"c"


async def test_letting_go_of_what_was_never_pinned_changes_nothing(home: Home) -> None:
    digest = await home.blobs.put(b"x")
    await home.blobs.pin(digest, OWNER)
    await home.blobs.unpin("nobody")
    await home.blobs.unpin("nobody", digest)
    await home.blobs.unpin("nobody", NOWHERE)
    await home.age(1)
    assert (await home.blobs.collect(grace=0)).count == 0


async def test_two_writers_of_the_same_bytes_make_one_blob(home: Home) -> None:
    other = await home.another()
    content = bytes(CHUNK + 1)
    first, second = await asyncio.gather(home.blobs.put(stream(content)), other.put(stream(content)))
    assert first == second
    await home.age(1)
    assert await other.collect(grace=0) == Collected(1, CHUNK + 1)


async def test_what_one_pinned_another_sees_pinned(home: Home) -> None:
    other = await home.another()
    digest = await home.blobs.put(b"seen by all")
    await home.blobs.pin(digest, OWNER)
    await home.age(1)
    assert (await other.collect(grace=0)).count == 0
    await other.unpin(OWNER)
    assert (await home.blobs.collect(grace=0)).count == 1


@settings(max_examples=5, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(order=st.permutations(["put", "put", "pin", "pin", "collect", "collect", "collect"]))
async def test_no_collection_takes_what_was_put_within_the_grace_time(home: Home, order: list[str]) -> None:
    """An old unpinned blob is put again while collections run: whoever put it can pin it."""
    content = b"raced"
    digest = await home.blobs.put(content)
    await home.blobs.unpin(OWNER)
    await home.age(7200)
    other = await home.another()

    async def put_and_pin() -> None:
        await home.blobs.put(content)
        await home.blobs.pin(digest, OWNER)

    async def collect() -> None:
        await other.collect(grace=3600)

    await asyncio.gather(*(collect() if step == "collect" else put_and_pin() for step in order))
    assert await read(home.blobs, digest, max_bytes=10) == content


async def test_a_pin_that_meets_a_collection_holds_or_says_that_the_blob_is_gone(home: Home) -> None:
    other = await home.another()
    digests = [await home.blobs.put(f"old {number}".encode()) for number in range(12)]
    await home.age(7200)

    async def pinned(digest: Digest) -> bool:
        try:
            await home.blobs.pin(digest, OWNER)
        except BlobMissing:
            return False
        return True

    results = await asyncio.gather(other.collect(grace=3600), *map(pinned, digests), other.collect(grace=3600))
    for digest, held in zip(digests, results[1:-1], strict=True):
        if held:
            await home.blobs.stat(digest)
        else:
            with pytest.raises(BlobMissing):
                await home.blobs.stat(digest)


async def test_a_reader_that_stops_in_the_midst_holds_nothing(home: Home) -> None:
    digest = await home.blobs.put(bytes(3 * CHUNK))
    for _ in range(8):  # more than there are connections in any pool
        chunks = home.blobs.open(digest)
        await anext(chunks)
        await chunks.aclose()  # type: ignore[attr-defined]
    assert len(await read(home.blobs, digest, max_bytes=LIMIT)) == 3 * CHUNK
