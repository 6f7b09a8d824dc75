"""The vulnerability database of a cluster: published, found, fetched, replaced and let go."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.systems.images.advisory_kit import BASH, LEFT_PAD, OTHER, database, home
from trimtab.client.api import ApiClient
from trimtab.model.errors import StatusError
from trimtab.model.kubernetes import ConfigMap
from trimtab.model.objectmeta import ObjectMeta
from trimtab.runtime.system import NAMESPACE
from trimtab.storage.blobs import BlobMissing, Digest
from trimtab.storage.folder import FolderBlobs
from trimtab.storage.scratch import Scratch
from trimtab.systems.images.databases import NAME, Databases, NoDatabase, Overtaken, current, publish
from trimtab.systems.images.vulnerabilities.database import DatabaseError, open_database
from trimtab.testing.clock import FakeClock


@pytest.fixture
async def api(client: ApiClient) -> ApiClient:
    await home(client)
    return client


@pytest.fixture
async def blobs(tmp_path: Path) -> FolderBlobs:
    made = FolderBlobs(tmp_path / "blobs")
    await made.ready()
    return made


@pytest.fixture
def scratch(tmp_path: Path) -> Scratch:
    return Scratch(tmp_path / "scratch", 1 << 30)


async def left(blobs: FolderBlobs, *digests: str) -> list[str]:
    """Those that outlive a collection."""
    await blobs.collect(grace=-1)
    there = []
    for digest in digests:
        try:
            there.append((await blobs.stat(Digest(digest))).digest)
        except BlobMissing:
            continue
    return [str(digest) for digest in there]


async def test_without_a_database_there_is_none_and_who_opens_it_is_told_what_to_do(
    api: ApiClient, blobs: FolderBlobs, scratch: Scratch
) -> None:
    assert await current(api) is None
    with pytest.raises(NoDatabase, match="trimtab images import-db"):
        async with Databases(api, blobs, scratch).opened():
            pass


async def test_what_was_published_is_current_and_opens_as_a_file(
    api: ApiClient, blobs: FolderBlobs, scratch: Scratch, tmp_path: Path
) -> None:
    path = database(tmp_path, BASH, OTHER)
    ref = await publish(api, blobs, path, clock=FakeClock())
    assert await current(api) == ref
    assert (ref.advisories, ref.previous, ref.imported_at) == (2, "", "2026-01-01T00:00:00Z")
    async with Databases(api, blobs, scratch).opened() as opened:
        assert opened.digest == ref.digest
        assert opened.path.read_bytes() == path.read_bytes()
        with open_database(opened.path) as read:
            assert read.digest == ref.digest
    assert await left(blobs, ref.blob) == [ref.blob]


async def test_the_blob_is_fetched_once_for_all_who_open_it(
    api: ApiClient, blobs: FolderBlobs, scratch: Scratch, tmp_path: Path
) -> None:
    await publish(api, blobs, database(tmp_path, BASH))
    databases = Databases(api, blobs, scratch)

    async def used() -> Path:
        async with databases.opened() as opened:
            return opened.path

    assert len(set(await asyncio.gather(*(used() for _ in range(5))))) == 1
    shutil.rmtree(tmp_path / "blobs")
    async with databases.opened() as opened:  # from scratch alone
        assert opened.path.is_file()


async def test_the_one_before_stays_and_older_ones_are_let_go(
    api: ApiClient, blobs: FolderBlobs, tmp_path: Path
) -> None:
    first = await publish(api, blobs, database(tmp_path, BASH))
    second = await publish(api, blobs, database(tmp_path, BASH, OTHER))
    assert second.previous == first.blob
    assert await left(blobs, first.blob, second.blob) == [first.blob, second.blob]
    third = await publish(api, blobs, database(tmp_path, LEFT_PAD))
    assert third.previous == second.blob
    assert await left(blobs, first.blob, second.blob, third.blob) == [second.blob, third.blob]


async def test_a_reader_keeps_its_database_while_another_is_published(
    api: ApiClient, blobs: FolderBlobs, scratch: Scratch, tmp_path: Path
) -> None:
    first = await publish(api, blobs, database(tmp_path, BASH))
    databases = Databases(api, blobs, scratch)
    async with databases.opened() as held:
        await publish(api, blobs, database(tmp_path, OTHER))
        async with databases.opened() as newer:
            assert newer.digest != held.digest
        with open_database(held.path) as read:
            assert read.digest == first.digest


async def test_the_same_contents_change_nothing(api: ApiClient, blobs: FolderBlobs, tmp_path: Path) -> None:
    await publish(api, blobs, database(tmp_path, BASH))
    second = await publish(api, blobs, database(tmp_path, OTHER))
    held = await api.get(ConfigMap, NAME, NAMESPACE)
    assert await publish(api, blobs, database(tmp_path, OTHER)) == second
    assert (await api.get(ConfigMap, NAME, NAMESPACE)).metadata.resource_version == held.metadata.resource_version


async def test_publishing_the_same_again_mends_a_blob_that_was_lost(
    api: ApiClient, blobs: FolderBlobs, scratch: Scratch, tmp_path: Path
) -> None:
    path = database(tmp_path, BASH)
    await publish(api, blobs, path)
    shutil.rmtree(tmp_path / "blobs")
    with pytest.raises(NoDatabase, match="is gone"):
        async with Databases(api, blobs, scratch).opened():
            pass
    ref = await publish(api, blobs, path)
    async with Databases(api, blobs, scratch).opened() as opened:
        assert opened.digest == ref.digest


async def test_going_back_to_the_one_before_swaps_the_two(api: ApiClient, blobs: FolderBlobs, tmp_path: Path) -> None:
    old, new = database(tmp_path, BASH), database(tmp_path, OTHER)
    first = await publish(api, blobs, old)
    second = await publish(api, blobs, new)
    back = await publish(api, blobs, old)
    assert (back.blob, back.previous) == (first.blob, second.blob)
    assert await left(blobs, first.blob, second.blob) == [first.blob, second.blob]


async def test_what_a_killed_publication_did_not_let_go_of_the_next_one_does(
    api: ApiClient, blobs: FolderBlobs, tmp_path: Path
) -> None:
    class Killed(FolderBlobs):
        async def unpin(self, owner: str, digest: Digest | None = None) -> None:
            raise KeyboardInterrupt

    first = await publish(api, blobs, database(tmp_path, BASH))
    await publish(api, blobs, database(tmp_path, OTHER))
    with pytest.raises(KeyboardInterrupt):
        await publish(api, Killed(tmp_path / "blobs"), database(tmp_path, LEFT_PAD))
    assert await left(blobs, first.blob) == [first.blob]
    await publish(api, blobs, database(tmp_path, BASH, OTHER))
    assert await left(blobs, first.blob) == []


async def test_two_who_publish_at_once_both_succeed(api: ApiClient, blobs: FolderBlobs, tmp_path: Path) -> None:
    some, other = database(tmp_path, BASH), database(tmp_path, OTHER)
    refs = await asyncio.gather(publish(api, blobs, some), publish(api, blobs, other))
    now = await current(api)
    assert now is not None
    assert {now.blob, now.previous} == {ref.blob for ref in refs}
    assert len(await left(blobs, now.blob, now.previous)) == 2


@pytest.mark.parametrize("is_first", [True, False])
async def test_of_two_who_add_to_the_same_database_at_once_the_second_is_refused(
    api: ApiClient, blobs: FolderBlobs, tmp_path: Path, is_first: bool
) -> None:
    base = None if is_first else (await publish(api, blobs, database(tmp_path, BASH))).blob
    gate = Gated(tmp_path / "blobs")
    late = asyncio.create_task(publish(api, gate, database(tmp_path, BASH, LEFT_PAD), base=base))
    await gate.reached.wait()
    faster = await publish(api, blobs, database(tmp_path, BASH, OTHER), base=base)
    gate.opened.set()
    with pytest.raises(Overtaken):
        await late
    assert await current(api) == faster
    held = [digest for digest in (faster.blob, faster.previous) if digest]
    assert await left(blobs, *gate.put_here, *held) == held
    again = await publish(api, blobs, database(tmp_path, BASH, OTHER, LEFT_PAD), base=faster.blob)
    assert (again.advisories, again.previous) == (3, faster.blob)


class Gated(FolderBlobs):
    """Whoever puts goes on when the gate is opened."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.reached, self.opened = asyncio.Event(), asyncio.Event()
        self.put_here: list[Digest] = []

    async def put(self, *args: Any, **kwargs: Any) -> Digest:
        self.put_here.append(await super().put(*args, **kwargs))
        self.reached.set()
        await self.opened.wait()
        return self.put_here[-1]


async def test_what_is_no_database_is_not_published(api: ApiClient, blobs: FolderBlobs, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"no database")
    with pytest.raises(DatabaseError):
        await publish(api, blobs, tmp_path / "file")
    assert await current(api) is None


async def test_a_config_map_that_names_nothing_counts_as_none_and_is_written_over(
    api: ApiClient, blobs: FolderBlobs, tmp_path: Path
) -> None:
    metadata = ObjectMeta(name=NAME, namespace=NAMESPACE)
    await api.create(ConfigMap(metadata=metadata, data={"blob": "sha256:none", "retired": "nothing"}))
    assert await current(api) is None
    ref = await publish(api, blobs, database(tmp_path, BASH))
    assert await current(api) == ref


@pytest.mark.parametrize("client", ["local"], indirect=True)  # a cluster keeps its namespaces from test to test
async def test_without_the_systems_namespace_publishing_says_so(
    client: ApiClient, blobs: FolderBlobs, tmp_path: Path
) -> None:
    with pytest.raises(StatusError, match="namespace"):
        await publish(client, blobs, database(tmp_path, BASH))
