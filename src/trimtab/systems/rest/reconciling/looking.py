"""Reading what is there: one resource, or all of a parent's at once; and when it is time to look again.

Flow: an object is due once in each interval, at a moment that follows from its parent alone, so that siblings are due
together and nothing has to be remembered over a restart: no storm, no write. When at least `batch` siblings are due, the
first to come lists the collection, and the others take theirs from that list as long as it is of the same interval.

Guarantees: a list decides only that nothing changed, or that something may have; before a write the resource itself is
read. A listing that failed half-way counts for nothing.
"""

from __future__ import annotations

import asyncio
import hashlib
import zlib
from collections.abc import Mapping
from datetime import datetime
from typing import Any

import msgspec

from trimtab.model.clock import Clock
from trimtab.systems.rest.addressing import (
    AddressError,
    canonical,
    fill,
    matched,
    parsed,
    query_of,
    resource_path,
    url_of,
)
from trimtab.systems.rest.calling.contract import Answer, Caller, CallError, ErrorClass, Request
from trimtab.systems.rest.calling.pages import pages
from trimtab.systems.rest.model import Model
from trimtab.systems.rest.syncing.paths import MISSING, get, parse

_ENCODER = msgspec.json.Encoder(order="deterministic")
KEPT = 120.0  # seconds that a listing is of use


def value_at(value: Any, path: str) -> Any:
    """None where there is nothing."""
    found = get(value, parse(path))
    return None if found is MISSING else found


def own_name(value: Any) -> str:
    """What a service calls a resource, as a text: some count them. "" for what names nothing."""
    return str(value) if isinstance(value, str | int) and not isinstance(value, bool) else ""


class Live(msgspec.Struct, frozen=True, kw_only=True):
    """A resource as it is."""

    body: dict[str, Any]
    etag: str = ""
    digest: str = ""
    listed: bool = False
    answer: Answer | None = None


class Unchanged(msgspec.Struct, frozen=True):
    """The service says that nothing changed since the ETag that was sent (304)."""


class Looks:
    """The reads of one kind."""

    def __init__(self, model: Model, clock: Clock) -> None:
        self._model = model
        self._clock = clock
        self._listings: dict[str, _Listing] = {}
        self._locks: dict[str, asyncio.Lock] = {}
        self._siblings: dict[str, int] = {}
        self._collections: dict[str, str] = {}

    async def one(
        self, caller: Caller, identifier: str, values: Mapping[str, str], etag: str = ""
    ) -> Live | Unchanged | None:
        """The resource itself; None when it is not there, by a 404 or by the overlay's word."""
        call = self._model.calls.read
        if call is None:
            return await self._by_list(caller, identifier, values)
        headers = {"If-None-Match": etag} if etag else {}
        request = Request(
            verb="read",
            method=call.method,
            url=url_of(self._model, call, identifier, values),
            headers=headers,
            envelope=self._model.overlay.envelope,
            rules=self._model.overlay.errors,
        )
        try:
            answer = await caller.call(request)
        except CallError as error:
            if error.kind is ErrorClass.GONE:
                return None
            raise
        if answer.status == 304:
            return Unchanged()
        return live(self._model, answer)

    async def among(
        self, caller: Caller, identifier: str, values: Mapping[str, str], slot: int
    ) -> Live | Unchanged | None:
        """From the listing of this interval, which is made when there is none. `Unchanged` when lists cannot tell."""
        place = self.collection(identifier, values)
        call = self._model.calls.list
        if call is None or not place or not call.name_in_list:
            return Unchanged()
        key = f"{caller.connection}|{place}"
        async with self._locks.setdefault(key, asyncio.Lock()):
            listing = self._listings.get(key)
            if listing is None or listing.slot != slot:
                items: dict[str, Any] = {}
                async for page in pages(caller, self._model, call, place):
                    items |= {canonical(self.identifier_of(item, values)): item for item in page}
                listing = _Listing(slot, self._clock.monotonic(), items)
                self._drop_old()
                self._listings[key] = listing
        item = listing.items.get(canonical(identifier))
        return None if item is None else _live(self._model, item, "")

    def _drop_old(self) -> None:
        now = self._clock.monotonic()
        for key in [k for k, listing in self._listings.items() if now - listing.at > KEPT]:
            del self._listings[key]
            self._locks.pop(key, None)

    async def _by_list(self, caller: Caller, identifier: str, values: Mapping[str, str]) -> Live | None:
        """Of an API that reads none alone."""
        call = self._model.calls.list
        place = self.collection(identifier, values)
        if call is None or not place:
            return None
        async for page in pages(caller, self._model, call, place):
            for item in page:
                if canonical(self.identifier_of(item, values)) == canonical(identifier):
                    return _live(self._model, item, "")
        return None

    def collection(self, identifier: str, values: Mapping[str, str]) -> str:
        """The URL of the list that has this resource; "" when there is none."""
        call = self._model.calls.list
        if call is None:
            return ""
        known = {**values, **(parsed(self._model, identifier) or {})}
        try:
            return fill(self._model, call.path, known) + query_of(call, known)
        except AddressError:
            return ""

    def identifier_of(self, item: Any, values: Mapping[str, str]) -> str:
        """The resource ID of an item of a list; "" when it does not say."""
        if not isinstance(item, Mapping):
            return self._filled(own_name(item), values)
        template = resource_path(self._model)
        for name in ("id", "Id"):
            if isinstance(item.get(name), str) and matched(template, item[name]) is not None:
                return str(item[name])
        identity = self._model.identity
        where = identity.answer if identity.answer and not identity.answer.startswith("header:") else ""
        for path in (identity.field, where, identity.parameter, "name", "Name", "id", "Id"):
            found = own_name(value_at(item, path)) if path else ""
            if found:
                return self._filled(found, values)
        return ""

    def _filled(self, own: str, values: Mapping[str, str]) -> str:
        if own.startswith("/") and matched(resource_path(self._model), own) is not None:
            return own  # LXD lists paths
        try:
            return fill(self._model, resource_path(self._model), {**values, self._model.identity.parameter: own})
        except AddressError:
            return ""

    def is_there(self, item: Any) -> bool:
        """Whether an item of a list is one that is not gone by the overlay's word."""
        return isinstance(item, dict) and _live(self._model, item, "") is not None

    # --- siblings and times ------------------------------------------------------------------------------------------

    def joined(self, collection: str, identifier: str) -> None:
        """An object stands for this member of a collection."""
        if collection and self._collections.get(identifier) != collection:
            self.left(identifier)
            self._collections[identifier] = collection
            self._siblings[collection] = self._siblings.get(collection, 0) + 1

    def left(self, identifier: str) -> None:
        collection = self._collections.pop(identifier, "")
        if collection:
            self._siblings[collection] -= 1

    def count(self, collection: str) -> int:
        """How many members of a collection have objects here."""
        return self._siblings.get(collection, 0)


class _Listing(msgspec.Struct, frozen=True):
    slot: int
    at: float
    items: dict[str, Any]


def live(model: Model, answer: Answer) -> Live | None:
    """What an answer says is there. A body that is no object is an error; one that the overlay calls gone is nothing."""
    if not isinstance(answer.body, dict):
        raise CallError(
            ErrorClass.UNKNOWN,
            f"a read of {model.kind} answered {type(answer.body).__name__}, not an object",
            status=answer.status,
        )
    return _live(model, answer.body, answer.headers.get("etag", ""), answer)


def _live(model: Model, body: dict[str, Any], etag: str, answer: Answer | None = None) -> Live | None:
    gone = model.overlay.gone
    if gone and all(value_at(body, path) == value for path, value in gone.items()):
        return None
    if not etag and model.etag:
        etag = str(value_at(body, model.etag) or "")
    digest = hashlib.sha256(_ENCODER.encode(body)).hexdigest()
    return Live(body=body, etag=etag, digest=digest, listed=answer is None, answer=answer)


def slot_of(now: datetime, interval: float, place: str) -> tuple[int, float]:
    """In which interval we are, counted for this place, and the seconds until its next one begins."""
    phase = (zlib.crc32(place.encode()) / 2**32) * interval
    number, into = divmod(now.timestamp() + phase, interval)
    return int(number), interval - into
