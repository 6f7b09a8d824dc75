"""Fences: the right to write to one object, carried by the object itself, and how it passes from holder to holder.

The record in the annotation is what all see. `step` is its whole life, pure; `runtime.claim` reads and writes it. A
fence holds by the API server's own optimistic concurrency: whoever takes the claim changes the object's revision, so
what was computed from an older one is refused.
"""

from __future__ import annotations

import enum
from typing import TypeVar

import msgspec

from trimtab.client.protocol import Client, Object, Ref
from trimtab.model.errors import StatusError
from trimtab.runtime.objects import with_metadata

ANNOTATION = "runtime.trimtab.dev/claim"
MAX_TTL = 24 * 3600.0

O = TypeVar("O", bound=Object)  # noqa: E741 - an object


class Fenced(Exception):  # noqa: N818
    """The claim is lost: nothing was written. Stop working on the object; `acquire` anew to go on."""


class Record(msgspec.Struct, frozen=True, omit_defaults=True):
    """A claim as the object carries it. Each renewal has another beat, so that others see it."""

    holder: str = ""
    fence: int = 0
    ttl: float = 0.0
    beat: int = 0


class State(enum.Enum):
    """A claim, as one worker sees it."""

    FREE = "free"
    OURS = "ours"
    HELD = "held"
    LAPSED = "lapsed"


class Event(enum.Enum):
    """What happens to a claim."""

    TAKE = "take"
    RENEW = "renew"
    RELEASE = "release"


def state(record: Record, holder: str, unchanged: float) -> State:
    """What `record` is to `holder`, who has seen it like this for `unchanged` seconds."""
    if not record.holder:
        return State.FREE
    if record.holder == holder:
        return State.OURS
    return State.LAPSED if unchanged >= record.ttl else State.HELD


def step(record: Record, event: Event, holder: str, ttl: float) -> Record:
    """The next record. A taker gets a fence of its own; a release keeps the number, so that the next is greater."""
    match event:
        case Event.TAKE:
            return Record(holder, record.fence + 1, ttl)
        case Event.RENEW:
            return Record(holder, record.fence, ttl, record.beat + 1)
        case Event.RELEASE:
            return Record("", record.fence)


class Fence(msgspec.Struct, frozen=True):
    """The right to write to one object, until another takes it. Later fences of the object have greater numbers."""

    ref: Ref
    uid: str
    holder: str
    number: int
    ttl: float

    @property
    def key(self) -> tuple[str, int]:
        return self.uid, self.number

    def holds(self, obj: Object) -> bool:
        """Whether `obj` carries this fence."""
        record = record_of(obj)
        return obj.metadata.uid == self.uid and (record.fence, record.holder) == (self.number, self.holder)

    async def patch(self, client: Client, old: O, new: O, *, subresource: str = "") -> O:
        """`client.patch`, or Fenced when the claim is lost. A 409 means that others changed the object, not the claim:
        read it and try again."""
        if not self.holds(old):
            raise self.lost()
        if record_of(new) != record_of(old):
            raise ValueError(f"a write through a fence must leave the annotation {ANNOTATION} as it is")
        if not old.metadata.resource_version:
            raise ValueError("a write through a fence must start from an object that came from the API")
        try:
            written: O = await client.patch(old, new, subresource=subresource)
        except StatusError as error:
            if error.code not in (404, 409) or await self._stands(client):
                raise
            raise self.lost() from error
        return written

    def lost(self) -> Fenced:
        return Fenced(f"{self.holder} lost its claim {self.number} of {self.ref.namespace}/{self.ref.name}")

    async def _stands(self, client: Client) -> bool:
        try:
            return self.holds(await client.get(self.ref.kind, self.ref.name, self.ref.namespace))
        except StatusError as error:
            if error.code == 404:
                return False
            raise


def record_of(obj: Object) -> Record:
    """The claim that an object carries. One that cannot be read counts as none."""
    text = (obj.metadata.annotations or {}).get(ANNOTATION, "")
    try:
        record = msgspec.json.decode(text, type=Record) if text else Record()
    except msgspec.DecodeError:
        return Record()
    return msgspec.structs.replace(record, ttl=min(max(record.ttl, 0.0), MAX_TTL))


def with_record(obj: O, record: Record) -> O:
    """The object with this claim on it."""
    annotations = {**(obj.metadata.annotations or {}), ANNOTATION: msgspec.json.encode(record).decode()}
    return with_metadata(obj, annotations=annotations)
