"""`trimtab events`: what happened to objects lately, oldest first, and then as it happens."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

import msgspec

from trimtab.cli.access import Access, Session, session
from trimtab.cli.codes import OK, USAGE, Problem, run
from trimtab.cli.tables import Printer, shown
from trimtab.client.follow import follow
from trimtab.client.protocol import EventType, Listing, Named, Query
from trimtab.model.clock import parse_time

EVENT = Named("v1", "Event")
HEADERS = ("last seen", "type", "reason", "object", "message")

Document = dict[str, Any]


class Options(msgspec.Struct, frozen=True, kw_only=True):
    about: str = ""  # kind/name
    everywhere: bool = False
    watch: bool = False
    types: str = ""


def events(access: Access, options: Options) -> int:
    return run(_events(access, options))


async def _events(access: Access, options: Options) -> int:
    async with session(access) as server:
        query = Query(namespace="" if options.everywhere else server.namespace, fields=await _selected(server, options))
        headers = (*(("namespace",) if options.everywhere else ()), *HEADERS)
        printer = Printer(headers)
        following = follow(server.client, EVENT, query, patience=0)
        try:
            async for told in following:
                if isinstance(told, Listing):
                    found = sorted((item.raw for item in told.items), key=last_seen)
                    found = [event for event in found if _of_type(event, options)]
                    if not found and not options.watch:
                        print("no events")
                        return OK
                    printer.add([_row(event, options) for event in found])
                    if not options.watch:
                        return OK
                elif told.type is not EventType.DELETED and _of_type(told.object.raw, options):  # type: ignore[union-attr]
                    printer.add([_row(told.object.raw, options)])  # type: ignore[union-attr]
        finally:
            await following.aclose()
    return OK


async def _selected(server: Session, options: Options) -> str:
    if not options.about:
        return ""
    kind, slash, name = options.about.partition("/")
    if not slash:
        raise Problem('--for wants KIND/NAME, as "deployment/web"', USAGE)
    resource = await server.resource(kind)
    return f"involvedObject.kind={resource.kind},involvedObject.name={name}"


async def about(server: Session, document: Document) -> list[Document]:
    """The events of one object, oldest first. Those of things of the whole cluster are in the default namespace."""
    metadata = document["metadata"]
    fields = f"involvedObject.name={metadata['name']},involvedObject.kind={document['kind']}"
    if metadata.get("uid"):
        fields += f",involvedObject.uid={metadata['uid']}"
    listing = await server.client.list(EVENT, Query(namespace=metadata.get("namespace", ""), fields=fields))
    return sorted((item.raw for item in listing.items), key=last_seen)


def rows(found: Iterable[Document]) -> list[list[str]]:
    """Without the object: who asks knows it."""
    return [[*cells[:3], cells[4]] for cells in (_cells(event) for event in found)]


def _row(event: Document, options: Options) -> list[str]:
    cells = _cells(event)
    return [shown(event["metadata"].get("namespace", "")), *cells] if options.everywhere else cells


def _cells(event: Document) -> list[str]:
    involved = event.get("involvedObject") or {}
    object_ = f"{str(involved.get('kind', '')).lower()}/{involved.get('name', '')}"
    count = (event.get("series") or {}).get("count") or event.get("count") or 1
    seen = age(last_seen(event)) + (f" (x{count})" if count > 1 else "")
    message = str(event.get("message") or "").strip()
    return [seen, *map(shown, (event.get("type") or "", event.get("reason") or "", object_, message))]


def last_seen(event: Document) -> str:
    series = event.get("series") or {}
    seen = (
        series.get("lastObservedTime")
        or event.get("lastTimestamp")
        or event.get("eventTime")
        or event["metadata"].get("creationTimestamp")
    )
    return str(seen or "")


def age(timestamp: str) -> str:
    """How long ago, roughly: 45s, 12m, 7h, 3d."""
    try:
        seconds = int((datetime.now(UTC) - parse_time(timestamp)).total_seconds())
    except ValueError:
        return "<unknown>"
    for size, unit, upto in ((1, "s", 120), (60, "m", 180), (3600, "h", 48)):
        if seconds < size * upto:
            return f"{max(seconds, 0) // size}{unit}"
    return f"{seconds // 86400}d"


def _of_type(event: Document, options: Options) -> bool:
    return not options.types or str(event.get("type", "")).lower() in options.types.lower().split(",")
