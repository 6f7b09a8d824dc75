"""Many applies in one request, for those on the socket of the machine: what HTTP costs is paid once.

    POST /batch   [{"url": "/api/v1/namespaces/…?fieldManager=…", "body": {…}}, …]
    200           [{"code": 201, "body": {…}}, …]

Each item is a PATCH that might have come by itself, and passes the same door: with its own place among the requests under
way, its own rights, admission and line in the audit log. What is refused is refused alone; nothing is atomic across items.
"""

from __future__ import annotations

import asyncio
from urllib.parse import unquote

import msgspec
import orjson

from trimtab.model.errors import bad_request
from trimtab.server.auth.identity import User
from trimtab.server.http import JSON, Response, Stream
from trimtab.server.wire import Handler, Incoming

PATH = "/batch"
MOST = 256
AT_ONCE = 64
_APPLY = b"application/apply-patch+yaml"


class Item(msgspec.Struct, gc=False):
    """One apply."""

    url: str
    body: msgspec.Raw


async def answer(incoming: Incoming, door: Handler, user: User | None = None) -> Response:
    """The answers in the order of the items. `user`: who all of them are from; None: each finds it out."""
    items = _items(incoming.body)
    incoming.headers = {**incoming.headers, b"content-type": _APPLY}
    incoming.headers.pop(b"audit-id", None)  # of the batch; each has its own
    if user is not None:
        incoming.user, incoming.impersonation = user, ()
    answers = [b""] * len(items)
    left = iter(enumerate(items))

    async def work() -> None:
        for number, item in left:
            answers[number] = await _told(await door(_single(incoming, item)))

    async with asyncio.TaskGroup() as group:
        for _ in range(min(AT_ONCE, len(items))):
            group.create_task(work())
    return Response(body=b"[%b]\n" % b",".join(answers))


def _items(body: bytes) -> list[Item]:
    try:
        items = _decoder.decode(body)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise bad_request(f"a batch is a list of objects with url and body: {error}") from None
    if len(items) > MOST:
        raise bad_request(f"a batch has at most {MOST} items, and this one has {len(items)}")
    return items


def _single(incoming: Incoming, item: Item) -> Incoming:
    path, _, query = item.url.partition("?")
    return msgspec.structs.replace(
        incoming,
        method="PATCH",
        path=unquote(path) if "%" in path else path,
        query=query.encode(),
        headers=dict(incoming.headers),
        body=bytes(item.body),
        stream=None,
        gathers=False,
    )


async def _told(answered: Response | Stream) -> bytes:
    """What another server answered, behind an APIService, may come in pieces."""
    body = answered.body if isinstance(answered, Response) else b"".join([piece async for piece in answered.flow()])
    if not answered.media.startswith(JSON):
        body = orjson.dumps(body.decode("utf-8", "replace"))
    return b'{"code":%d,"body":%b}' % (answered.code, body)


_decoder = msgspec.json.Decoder(list[Item])
