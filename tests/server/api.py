"""A server in this process on a memory store, spoken to as a client would speak, without a socket."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import orjson

from trimtab.server.auth.identity import MASTERS, User
from trimtab.server.core import Server
from trimtab.server.http import Request, Response, Stream
from trimtab.store.memory import MemoryStore

ADMIN = User("admin", groups=(MASTERS, "system:authenticated"))


class Answer:
    """What came back: the code, the document, and the warnings."""

    def __init__(self, response: Response, warnings: list[str]) -> None:
        self.code = response.code
        self.raw = response.body
        self.media = response.media.decode()
        self.headers = {name.decode(): value.decode() for name, value in response.headers}
        self.warnings = warnings

    @property
    def doc(self) -> Any:
        return orjson.loads(self.raw)


class Api:
    """Requests as methods. `user` is who asks."""

    def __init__(self, server: Server, user: User = ADMIN) -> None:
        self.server = server
        self.user = user

    def as_(self, name: str, *groups: str) -> Api:
        return Api(self.server, User(name, groups=(*groups, "system:authenticated")))

    async def send(
        self, method: str, url: str, body: Any = None, media: str = "application/json", **headers: str
    ) -> Answer:
        request = self._request(method, url, body, media, headers)
        response = await self.server.handle(request)
        assert isinstance(response, Response)
        return Answer(response, request.warnings)

    async def get(self, url: str, **headers: str) -> Answer:
        return await self.send("GET", url, **headers)

    async def post(self, url: str, body: Any, **headers: str) -> Answer:
        return await self.send("POST", url, body, **headers)

    async def put(self, url: str, body: Any) -> Answer:
        return await self.send("PUT", url, body)

    async def merge(self, url: str, body: Any) -> Answer:
        return await self.send("PATCH", url, body, "application/merge-patch+json")

    async def apply(self, url: str, body: Any, manager: str = "tester", force: bool = False) -> Answer:
        query = f"fieldManager={manager}" + ("&force=true" if force else "")
        return await self.send("PATCH", f"{url}?{query}", body, "application/apply-patch+yaml")

    async def delete(self, url: str, body: Any = None) -> Answer:
        return await self.send("DELETE", url, body)

    @contextlib.asynccontextmanager
    async def watch(self, url: str, **headers: str) -> AsyncIterator[Callable[[], Any]]:
        """Yields a function that waits for the next event."""
        answer = await self.server.handle(self._request("GET", url, None, "", headers))
        assert isinstance(answer, Stream), answer
        pending: list[bytes] = []
        frames = answer.flow()

        async def next_event() -> Any:
            while not pending:
                async with asyncio.timeout(10):
                    pending.extend((await anext(frames)).splitlines())
            return orjson.loads(pending.pop(0))

        try:
            yield next_event
        finally:
            await frames.aclose()

    async def until(self, url: str, condition: Callable[[Answer], bool]) -> Answer:
        """Ask again after each write to the store, until the condition holds."""
        async with asyncio.timeout(10):
            while True:
                answer = await self.get(url)
                if condition(answer):
                    return answer
                await asyncio.sleep(0.005)

    async def gone(self, url: str) -> None:
        await self.until(url, lambda answer: answer.code == 404)

    def _request(self, method: str, url: str, body: Any, media: str, headers: dict[str, str]) -> Request:
        parts = urlsplit(url)
        raw = body if isinstance(body, bytes) else orjson.dumps(body) if body is not None else b""
        named = {name.replace("_", "-").encode(): value.encode() for name, value in headers.items()}
        return Request(
            method=method,
            path=parts.path,
            query=dict(parse_qsl(parts.query, keep_blank_values=True)),
            headers={b"content-type": media.encode(), b"user-agent": b"test/1", **named},
            body=raw,
            user=self.user,
            warnings=[],
        )


@contextlib.asynccontextmanager
async def running(*, store: MemoryStore | None = None, keep_store: bool = False, **settings: Any) -> AsyncIterator[Api]:
    """A server until the block is left; with `keep_store` another one may go on with its store."""
    store = store or MemoryStore()
    server = Server(store, **settings)
    await server.start()
    try:
        yield Api(server)
    finally:
        await server.stop()
        if not keep_store:
            await store.close()


def config_map(name: str, owners: tuple[Any, ...] = (), *, block: bool = False, **metadata: Any) -> dict[str, Any]:
    """A ConfigMap, owned by the documents given."""
    references = [
        {
            "apiVersion": owner["apiVersion"],
            "kind": owner["kind"],
            "name": owner["metadata"]["name"],
            "uid": owner["metadata"]["uid"],
            **({"blockOwnerDeletion": True} if block else {}),
        }
        for owner in owners
    ]
    meta = {"name": name, **metadata, **({"ownerReferences": references} if references else {})}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta}
