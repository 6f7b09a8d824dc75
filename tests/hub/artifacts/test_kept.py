"""Artifacts in the storage service: they go with their object, whoever deletes it and whoever was away then."""

import asyncio
import contextlib
import random
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.hub.aggregated.letters import Letter
from tests.server.api import Api
from trimtab.hub.artifacts import pins
from trimtab.hub.artifacts.pins import release_deleted
from trimtab.hub.compose import mounted
from trimtab.hub.contract import ORGANIZATION
from trimtab.hub.storage.connect import storage
from trimtab.hub.storage.contract import PROJECTS, Row, RowChange, RowKey, RowWrite, Storage
from trimtab.model.hub import HubKind
from trimtab.server.core import Server
from trimtab.server.http import Stream
from trimtab.storage.blobs import BlobMissing, digest_of
from trimtab.store.contract import Op
from trimtab.store.memory import MemoryStore

URL = "/apis/letters.trimtab.dev/v1/namespaces/default/letters"
TYPE = "letters.letters"


class Post:
    """A server with letters on a storage."""

    def __init__(self, server: Server, kept: Storage) -> None:
        self.api = Api(server)
        self.kept = kept

    async def make(self, name: str, **spec: Any) -> Any:
        made = {"apiVersion": "letters.trimtab.dev/v1", "kind": "Letter", "metadata": {"name": name}, "spec": spec}
        answer = await self.api.post(URL, made)
        assert answer.code == 201, answer.raw
        return answer.doc

    async def put(self, name: str, path: str, data: bytes) -> Any:
        return await self.api.send("PUT", f"{URL}/{name}/artifacts/{path}", data, "application/octet-stream")

    async def read(self, url: str) -> bytes:
        answer = await self.api.server.handle(self.api._request("GET", url, None, "", {}))
        assert isinstance(answer, Stream), answer
        return b"".join([frame async for frame in answer.flow()])

    async def gone(self, data: bytes) -> None:
        async with asyncio.timeout(10):
            while True:
                if not await self.is_there(data):
                    return
                await asyncio.sleep(0.01)

    async def is_there(self, data: bytes) -> bool:
        await self.kept.blobs.collect(grace=0)
        try:
            await self.kept.blobs.stat(digest_of(data))
        except BlobMissing:
            return False
        return True


@contextlib.asynccontextmanager
async def post(folder: Path) -> AsyncIterator[Post]:
    server = Server(MemoryStore())
    kept = storage(str(folder / "hub.db"))
    await server.start()
    try:
        async with mounted(server, (HubKind(cls=Letter),), kept):
            yield Post(server, kept)
    finally:
        await server.stop()
        await server.store.close()


@pytest.mark.row(27)
async def test_the_bytes_go_with_the_object(tmp_path: Path) -> None:
    async with post(tmp_path) as letters:
        await letters.make("a", files=[{"name": "x"}])
        await letters.make("b", files=[{"name": "x"}])
        assert (await letters.put("a", "x", b"shared")).code == 200
        assert (await letters.put("b", "x", b"shared")).code == 200
        assert (await letters.api.delete(f"{URL}/a")).code == 200
        assert await letters.read(f"{URL}/b/artifacts/x") == b"shared"
        assert (await letters.api.delete(f"{URL}/b")).code == 200
        await letters.gone(b"shared")


@pytest.mark.row(27)
async def test_what_was_deleted_while_nobody_looked_is_let_go_of_later(tmp_path: Path) -> None:
    async with post(tmp_path) as letters:
        made = await letters.make("a", files=[{"name": "x"}])
        await letters.put("a", "x", b"bytes")
        uid = made["metadata"]["uid"]
    away = storage(str(tmp_path / "hub.db"))
    await away.ready()
    project = (await away.ids(ORGANIZATION, PROJECTS, None, ["default"]))["default"]
    row = await away.get(RowKey(ORGANIZATION, TYPE, project, "a"))
    assert row is not None
    await away.commit(RowWrite(row=row, op=Op.DELETE))
    await away.blobs.collect(grace=0)
    assert (await away.blobs.stat(digest_of(b"bytes"))).size == 5
    released: asyncio.Queue[str] = asyncio.Queue()
    task = asyncio.create_task(
        release_deleted(away, organization=ORGANIZATION, types=[TYPE], released=released.put_nowait)
    )
    async with asyncio.timeout(10):
        assert await released.get() == uid
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    await away.blobs.collect(grace=0)
    with pytest.raises(BlobMissing):
        await away.blobs.stat(digest_of(b"bytes"))
    await away.close()


@pytest.mark.row(27)
async def test_a_version_is_published_when_its_last_file_is_there(tmp_path: Path) -> None:
    async with post(tmp_path) as letters:
        await letters.make("a", files=[{"name": "x"}, {"name": "y"}], version="v1")
        assert (await letters.api.get(f"{URL}/a/versions")).doc["items"] == []
        assert (await letters.put("a", "x", b"wrong")).code == 200
        assert (await letters.put("a", "x", b"first")).code == 200, "it can change until then"
        assert (await letters.api.get(f"{URL}/a?version=v1")).code == 404
        assert (await letters.put("a", "y", b"second")).code == 200
        for name, data in (("x", b"first"), ("y", b"second")):
            assert await letters.read(f"{URL}/a/artifacts/{name}?version=v1") == data
            assert (await letters.put("a", name, b"other")).code == 422
        files = {"files": [{"name": "x"}, {"name": "y"}, {"name": "z"}]}
        assert (await letters.api.merge(f"{URL}/a", {"spec": files})).code == 422, "a file to come is a change, too"
        assert (await letters.api.merge(f"{URL}/a", {"spec": {**files, "version": "v2"}})).code == 200
        assert (await letters.api.get(f"{URL}/a/versions")).doc["latest"] == "v1"
        assert (await letters.put("a", "z", b"third")).code == 200
        assert (await letters.api.get(f"{URL}/a/versions")).doc["latest"] == "v2"


@pytest.mark.row(27)
async def test_a_published_version_keeps_its_bytes(tmp_path: Path) -> None:
    async with post(tmp_path) as letters:
        await letters.make("a", files=[{"name": "x"}])
        assert (await letters.put("a", "x", b"first")).code == 200
        assert (await letters.api.merge(f"{URL}/a", {"spec": {"version": "v1"}})).code == 200
        refused = await letters.put("a", "x", b"second")
        assert refused.code == 422
        assert (await letters.api.merge(f"{URL}/a", {"spec": {"version": ""}})).code == 200
        assert (await letters.put("a", "x", b"second")).code == 200
        assert (await letters.api.merge(f"{URL}/a", {"spec": {"version": "v2"}})).code == 200
        for version, data in (("v1", b"first"), ("v2", b"second"), ("latest", b"second"), ("", b"second")):
            assert await letters.read(f"{URL}/a/artifacts/x?version={version}") == data
        assert await letters.is_there(b"first")
        versions = (await letters.api.get(f"{URL}/a/versions")).doc
        assert [each["version"] for each in versions["items"]] == ["v2", "v1"]
        assert set(versions["items"][0]) == {"version", "created"}  # no IDs, no bodies


@pytest.mark.row(27)
async def test_what_a_write_takes_out_of_the_spec_is_let_go_of_unless_a_version_names_it(tmp_path: Path) -> None:
    async with post(tmp_path) as letters:
        await letters.make("a", files=[{"name": "x"}, {"name": "y"}, {"name": "z"}])
        for name in "xyz":
            assert (await letters.put("a", name, name.encode())).code == 200
        assert (await letters.api.merge(f"{URL}/a", {"spec": {"version": "", "files": [{"name": "y"}]}})).code == 200
        await letters.gone(b"x")
        await letters.gone(b"z")
        assert await letters.is_there(b"y")
        assert (await letters.api.merge(f"{URL}/a", {"spec": {"version": "v1"}})).code == 200
        assert (await letters.api.merge(f"{URL}/a", {"spec": {"version": "", "files": [{"name": "q"}]}})).code == 200
        assert (await letters.put("a", "q", b"draft 1")).code == 200
        assert (await letters.put("a", "q", b"draft 2")).code == 200
        await letters.gone(b"draft 1")
        assert await letters.is_there(b"y")  # of v1
        assert await letters.read(f"{URL}/a/artifacts/y?version=v1") == b"y"


@pytest.mark.row(27)
async def test_whatever_was_done_what_is_named_is_there_and_nothing_else(tmp_path: Path) -> None:
    """Many writers at random; then everybody who is named can be read, and only they are kept."""
    chance = random.Random(7)
    async with post(tmp_path) as letters:
        names = ["x", "y", "z"]
        await letters.make("a", files=[{"name": name} for name in names])
        bodies = [b"%d" % number for number in range(6)]

        async def act() -> None:
            for _ in range(12):
                name, data = chance.choice(names), chance.choice(bodies)
                match chance.randrange(4):
                    case 0 | 1:
                        await letters.put("a", name, data)
                    case 2:
                        await letters.api.delete(f"{URL}/a/artifacts/{name}")
                    case _:
                        kept = chance.sample(names, 2)
                        change = {"spec": {"files": [{"name": each} for each in kept]}}
                        await letters.api.merge(f"{URL}/a", change)
                        await letters.api.merge(f"{URL}/a", {"spec": {"files": [{"name": each} for each in names]}})

        await asyncio.gather(*(act() for _ in range(4)))
        files = (await letters.api.get(f"{URL}/a")).doc["spec"]["files"]
        wanted = {file["digest"] for file in files if "digest" in file}
        for data in bodies:
            if digest_of(data) not in wanted:
                await letters.gone(data)
        for file in files:
            if "digest" in file:
                assert digest_of(await letters.read(f"{URL}/a/artifacts/{file['name']}")) == file["digest"]


@pytest.mark.row(30)
async def test_a_project_in_the_path_is_the_namespace(tmp_path: Path) -> None:
    async with post(tmp_path) as letters:
        await letters.make("a", files=[{"name": "x/y"}])
        by_project = URL.replace("/namespaces/", "/projects/")
        put = await letters.api.send("PUT", f"{by_project}/a/artifacts/x/y", b"bytes", "application/octet-stream")
        assert put.code == 200, put.raw
        assert await letters.read(f"{by_project}/a/artifacts/x/y") == b"bytes"
        assert (await letters.api.get(f"{by_project}/a/artifacts")).doc["items"][0]["size"] == 5
        written = await letters.api.send("PUT", f"{URL}/a/artifacts/x/y?version=v1", b"z", "application/octet-stream")
        assert written.code == 400


async def test_versions_are_only_read(tmp_path: Path) -> None:
    async with post(tmp_path) as letters:
        await letters.make("a")
        assert (await letters.api.get(f"{URL}/a/versions")).doc["items"] == []
        assert (await letters.api.get(f"{URL}/none/versions")).code == 404
        assert (await letters.api.put(f"{URL}/a/versions", {})).code == 405
        assert (await letters.api.delete(f"{URL}/a/versions")).code == 405


@pytest.mark.row(27)
async def test_what_nobody_names_any_more_goes_by_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pins, "COLLECT_EVERY", 0.01)
    monkeypatch.setattr(pins, "UNNAMED_FOR", 0.5)
    async with post(tmp_path) as office:
        await office.make("a", files=[{"name": "f"}])
        await office.put("a", "f", b"first")
        await office.put("a", "f", b"second")
        async with asyncio.timeout(10):
            with contextlib.suppress(BlobMissing):
                while await office.kept.blobs.stat(digest_of(b"first")):  # noqa: ASYNC110
                    await asyncio.sleep(0.01)
        assert await office.read(f"{URL}/a/artifacts/f") == b"second"


class Late:
    """A storage of which one read was a moment too early."""

    def __init__(self, storage: Storage, early: Row) -> None:
        self._storage = storage
        self._early = [early]

    def __getattr__(self, name: str) -> Any:
        return getattr(self._storage, name)

    async def get(self, key: RowKey) -> Row | None:
        return self._early.pop() if self._early else await self._storage.get(key)


@pytest.mark.row(27)
async def test_what_is_named_again_while_it_is_let_go_of_is_held(tmp_path: Path) -> None:
    async with post(tmp_path) as office:
        made = await office.make("a", files=[{"name": "f"}])
        await office.put("a", "f", b"bytes")
        projects = await office.kept.ids(ORGANIZATION, PROJECTS, None, ["default"])
        named = await office.kept.get(RowKey(ORGANIZATION, TYPE, projects["default"], "a"))
        assert named is not None
        unnamed = msgspec.structs.replace(named, body={})
        change = RowChange(op=Op.PUT, row=unnamed, before=named)
        await pins._let_go(Late(office.kept, unnamed), change, made["metadata"]["uid"])
        assert await office.is_there(b"bytes")
