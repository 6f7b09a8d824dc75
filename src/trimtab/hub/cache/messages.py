"""What replicas say to each other on the bus. Names and IDs only; documents go from replica to replica."""

from __future__ import annotations

import msgspec

from trimtab.hub.cache.generations import Change

MAX_CHANGES = 500
"""In one message: with the longest names it still is below what a bus takes."""


class Beat(msgspec.Struct, frozen=True, tag="beat", array_like=True):
    """I am here, and can be asked at `address` ("": I cannot). `sent` is by the sender's own clock, for the sender only."""

    replica: str
    session: str
    number: int
    sent: float
    address: str = ""


class Leave(msgspec.Struct, frozen=True, tag="leave", array_like=True):
    """I do not answer from memory any more."""

    replica: str


class Told(msgspec.Struct, frozen=True, tag="told", array_like=True):
    """This changed. Who hears it says `Heard` once it believes nothing older."""

    id: str
    replica: str
    changes: tuple[Change, ...]


class Heard(msgspec.Struct, frozen=True, tag="heard", array_like=True):
    id: str
    replica: str


Message = Beat | Leave | Told | Heard

encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Message).decode


def decode(data: bytes) -> Message | None:
    """None: not one of ours, or of a newer release."""
    try:
        message: Message = _decode(data)
    except msgspec.DecodeError:
        return None
    return message
