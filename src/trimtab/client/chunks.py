"""A list in chunks of one revision. The next one is asked for before the items of this one are read: both sides work."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from typing import Any, NamedTuple

import msgspec
import orjson

from trimtab.client.transport import Call, Reply, Transport, document_of
from trimtab.model.errors import StatusError


class Chunk(NamedTuple):
    items: list[dict[str, Any]]
    revision: str


class _Unread(msgspec.Struct):
    metadata: dict[str, Any]
    items: msgspec.Raw = msgspec.Raw(b"[]")


async def chunks(transport: Transport, call: Call) -> AsyncGenerator[Chunk, None]:
    """All that the call lists. Raises what the transport does, and StatusError when an answer is no list."""
    reply = await transport.call(call)
    asked: asyncio.Task[Reply] | None = None
    try:
        while True:
            unread = _unread(reply.body)
            token = unread.metadata.get("continue")
            if token:
                following = msgspec.structs.replace(call, query={**call.query, "continue": str(token)})
                asked = asyncio.ensure_future(transport.call(following))
                await asyncio.sleep(0)  # it is on its way
            yield Chunk(orjson.loads(memoryview(unread.items)) or [], unread.metadata.get("resourceVersion", ""))
            if asked is None or not token:
                return
            reply = await asked
    finally:
        if asked is not None:
            asked.cancel()
            await asyncio.gather(asked, return_exceptions=True)


def _unread(body: bytes) -> _Unread:
    try:
        return _decoder.decode(body)
    except msgspec.MsgspecError:
        document_of(body)  # tells of what is nothing of the API at all
        raise StatusError(500, "InternalError", "the server's answer is no list") from None


_decoder = msgspec.json.Decoder(_Unread)
