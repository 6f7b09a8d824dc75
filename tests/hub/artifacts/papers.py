"""A kind with files in all the places where a spec can have them, and a server that has it, on a socket."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, NamedTuple

import orjson
from msgspec import UNSET, UnsetType

from trimtab.hub.artifacts.digests import file_paths
from trimtab.hub.artifacts.endpoint import Artifacts
from trimtab.hub.compose import as_hub_kind
from trimtab.hub.strategy import HubStrategy
from trimtab.model.hub import File, HubResource
from trimtab.model.resource import Spec
from trimtab.model.scheme import Scheme
from trimtab.server.auth.identity import User
from trimtab.server.core import Server
from trimtab.server.door import Door
from trimtab.server.registry import Served
from trimtab.server.wire import Listener
from trimtab.storage.folder import FolderBlobs
from trimtab.store.memory import MemoryStore

URL = "/apis/papers.trimtab.dev/v1/namespaces/default/papers"
LIMIT = 8 * 1024 * 1024


class Chapter(Spec):
    title: str = ""
    text_file: File | UnsetType = UNSET


class PaperSpec(Spec):
    cover: File | UnsetType = UNSET
    files: tuple[File, ...] = ()
    by_language: dict[str, File] = {}  # noqa: RUF012 - msgspec copies it
    chapters: tuple[Chapter, ...] = ()
    note: str = ""


class Paper(HubResource, group="papers", version="v1", plural="papers"):
    """Something with files."""

    spec: PaperSpec

    def files(self) -> tuple[File, ...]:
        return self.spec.files


class Reply(NamedTuple):
    code: int
    headers: dict[str, str]
    body: bytes

    @property
    def doc(self) -> Any:
        return orjson.loads(self.body)


class Desk:
    """A server with papers. `user` is who comes without credentials."""

    def __init__(self, server: Server, served: Served, blobs: FolderBlobs, root: Path, socket: Path) -> None:
        self.server = server
        self.served = served
        self.blobs = blobs
        self.root = root
        self.socket = str(socket)

    async def send(self, method: str, path: str, body: bytes = b"", **headers: str) -> Reply:
        reader, writer = await asyncio.open_unix_connection(self.socket, limit=1 << 26)
        head = [f"{method} {path} HTTP/1.1", "host: x", "connection: close", f"content-length: {len(body)}"]
        head += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
        writer.write("\r\n".join(head).encode("latin-1") + b"\r\n\r\n" + body)
        async with asyncio.timeout(30):
            raw = await reader.read()
        writer.close()
        return parsed(raw)

    async def make(self, name: str, **spec: Any) -> Any:
        made = {"apiVersion": "papers.trimtab.dev/v1", "kind": "Paper", "metadata": {"name": name}, "spec": spec}
        reply = await self.send("POST", URL, orjson.dumps(made), content_type="application/json")
        assert reply.code == 201, reply.body
        return reply.doc

    async def put(self, name: str, path: str, data: bytes) -> Reply:
        return await self.send("PUT", f"{URL}/{name}/artifacts/{path}", data)

    async def get(self, name: str, path: str, **headers: str) -> Reply:
        return await self.send("GET", f"{URL}/{name}/artifacts/{path}", b"", **headers)

    async def kept(self) -> int:
        """How many blobs there are when nobody is given any time."""
        await self.blobs.collect(grace=0)
        return sum(1 for path in (self.root / "sha256").rglob("*") if path.is_file() and len(path.name) == 64)

    def partial(self) -> list[Path]:
        """What is being put."""
        return list((self.root / "tmp").iterdir())


def parsed(raw: bytes) -> Reply:
    head, _, body = raw.partition(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").split("\r\n")
    pairs = (line.partition(": ") for line in lines)
    return Reply(int(first.split()[1]), {name.lower(): value for name, _, value in pairs}, body)


@contextlib.asynccontextmanager
async def desk(folder: Path, user: User, *, blobs: FolderBlobs | None = None, **options: Any) -> AsyncIterator[Desk]:
    server = Server(MemoryStore())
    await server.start()
    kind = as_hub_kind(Scheme().kind_of(Paper))
    files = file_paths(Paper)
    served = Served(HubStrategy(kind, changed_by="hub.trimtab.dev/changed-by", files=files), server.store)
    blobs = blobs or FolderBlobs(folder / "blobs")
    await blobs.ready()
    server.registry.add(served)
    served.strategy.subresources = ()
    server.subresources.mount(served, "artifacts", Artifacts(server, blobs, files, limit=LIMIT, **options))
    listener = Listener(Door(server, None, local=user))
    await listener.listen_unix(str(folder / "s"))
    try:
        yield Desk(server, served, blobs, folder / "blobs", folder / "s")
    finally:
        await listener.close()
        await server.stop()
        await server.store.close()


def names(document: Any) -> list[str]:
    return [file["path"] for file in document["items"]]
