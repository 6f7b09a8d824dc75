"""Many applies in one request: what is sent, and what is made of the answer. `server/batch.py` takes them."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from trimtab.client.transport import Call, Reply, refusal
from trimtab.model.errors import StatusError

PATH = "/batch"


class _Item(msgspec.Struct, gc=False):
    url: str
    body: msgspec.Raw


class _Told(msgspec.Struct, gc=False):
    code: int
    body: msgspec.Raw


def body_of(calls: Sequence[Call]) -> bytes:
    """The applies are JSON."""
    return _encode([_Item(call.url, msgspec.Raw(call.body)) for call in calls])


def replies_of(body: bytes, count: int) -> list[Reply | StatusError]:
    """The answers to so many calls. Raises StatusError when they are not these."""
    try:
        told = _decode(body)
    except msgspec.MsgspecError as error:
        raise StatusError(500, "InternalError", f"the answer to a batch cannot be read: {error}") from None
    if len(told) != count:
        raise StatusError(500, "InternalError", f"a batch of {count} got {len(told)} answers")
    return [
        Reply(code=each.code, body=bytes(each.body)) if each.code < 300 else refusal(each.code, bytes(each.body))
        for each in told
    ]


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(list[_Told]).decode
