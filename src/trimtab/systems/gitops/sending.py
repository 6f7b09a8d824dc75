"""Documents to the server: one by one, or many in one request where it takes batches. Each write is under the guard."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any

import orjson

from trimtab.client.api import APPLY, MERGE, ApiClient
from trimtab.client.protocol import Named
from trimtab.client.transport import Batching, Call, Reply, Silent, Unreachable
from trimtab.model.clock import Clock
from trimtab.model.errors import StatusError
from trimtab.systems.gitops.acting import MANAGER
from trimtab.systems.gitops.parsing import Identity

BATCH_BYTES = 1 << 20
"""Of documents in one request, give or take what is around them."""
APPEARS = 10.0
"""Seconds that a kind may take to be served after its definition was applied."""

Guard = Callable[[], AbstractAsyncContextManager[Any]]
Document = dict[str, Any]


class Sender:
    """By one client."""

    def __init__(self, client: ApiClient, clock: Clock, guard: Guard) -> None:
        self._client, self._clock, self._guard = client, clock, guard

    @property
    def batches(self) -> bool:
        """Whether the server takes many applies in one request."""
        transport = self._client.transport
        return isinstance(transport, Batching) and transport.batches

    async def apply(self, document: Document, *, until_served: bool = False) -> Document:
        """What the server says. `until_served`: its kind is new, and servers announce a kind a little before they serve it."""
        deadline = self._clock.monotonic() + APPEARS
        while True:
            try:
                return await self._ask(await self._apply_call(document))
            except StatusError as error:
                if error.code != 404 or not until_served or self._clock.monotonic() > deadline:
                    raise
            await self._clock.sleep(0.1)

    async def apply_all(self, documents: Mapping[Identity, Document]) -> dict[Identity, Document]:
        """What the server says of those that it took. Of the others nobody knows more: apply them one by one."""
        calls: list[tuple[Identity, Call]] = []
        for identity, document in documents.items():
            with contextlib.suppress(StatusError):  # a kind that is not served yet
                calls.append((identity, await self._apply_call(document)))
        found: dict[Identity, Document] = {}
        for part in parted(calls, BATCH_BYTES):
            with contextlib.suppress(StatusError, Unreachable, Silent):
                found |= await self._ask_all(part)
        return found

    async def merge(self, change: Document) -> Document:
        """A merge patch, which names its object."""
        return await self._ask(await self._call(change, MERGE, {"fieldManager": MANAGER}))

    async def _apply_call(self, document: Document) -> Call:
        return await self._call(document, APPLY, {"fieldManager": MANAGER, "force": "true"})

    async def _call(self, document: Document, media: str, query: Mapping[str, str]) -> Call:
        place = await self._client.place(Named(str(document["apiVersion"]), str(document["kind"])))
        metadata = document["metadata"]
        return Call(
            method="PATCH",
            path=place.path(metadata.get("namespace", ""), metadata["name"]),
            query=query,
            body=orjson.dumps(document),
            content_type=media,
        )

    async def _ask(self, call: Call) -> Document:
        async with self._guard():
            reply = await self._client.transport.call(call)
        found: Document = orjson.loads(reply.body)
        return found

    async def _ask_all(self, part: Sequence[tuple[Identity, Call]]) -> dict[Identity, Document]:
        transport = self._client.transport
        if not isinstance(transport, Batching):
            return {}
        async with self._guard():
            replies = await transport.batch([call for _, call in part])
        answered = zip(part, replies, strict=True)
        return {identity: orjson.loads(reply.body) for (identity, _), reply in answered if isinstance(reply, Reply)}


def parted(calls: Iterable[tuple[Identity, Call]], size: int) -> Iterator[list[tuple[Identity, Call]]]:
    """In parts of several calls and so many bytes. A call that is alone is in none."""
    part: list[tuple[Identity, Call]] = []
    used = 0
    for identity, call in calls:
        if part and used + len(call.body) > size:
            if len(part) > 1:
                yield part
            part, used = [], 0
        part.append((identity, call))
        used += len(call.body)
    if len(part) > 1:
        yield part
