"""From what came to the IDs of resources that changed. Pure.

Taken are CloudEvents 1.0, one alone or a batch in JSON, or one in headers; and Event Grid's own schema. Where an event says
which resource it is about: `subject`, else `data.resourceUri`, else `resourceUri`; whichever is a path first. Of Microsoft's
events only those about resources count; whatever else is no path is taken and forgotten, for it would be told again.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import unquote

import msgspec

MAX_EVENTS = 1000
LONGEST = 2048
"""Characters of an ID."""
VALIDATION = "Microsoft.EventGrid.SubscriptionValidationEvent"
STRUCTURED, BATCH, PLAIN = "application/cloudevents+json", "application/cloudevents-batch+json", "application/json"

Event = Mapping[str, Any]


class Told(msgspec.Struct, frozen=True, kw_only=True):
    """Which resources changed; and the code to give back, when someone asks whether we want to know."""

    subjects: tuple[str, ...] = ()
    validation: str = ""


class Refused(Exception):  # noqa: N818 - it reads as what happened
    """What came is nothing that we take."""

    def __init__(self, status: int, why: str) -> None:
        super().__init__(why)
        self.status = status


def told(media_type: str, headers: Mapping[str, str], body: bytes) -> Told:
    """`headers` have names in small letters. Raises Refused."""
    events = [_binary(media_type, headers, body)] if "ce-specversion" in headers else _structured(media_type, body)
    subjects: dict[str, None] = {}
    for event in events:
        kind = event.get("type") if "specversion" in event else event.get("eventType")
        if kind == VALIDATION:
            return Told(validation=_code(event))
        if isinstance(kind, str) and kind and _counts(kind):
            subjects.update(dict.fromkeys(itertools.islice(_paths(event), 1)))
    return Told(subjects=tuple(subjects))


def _structured(media_type: str, body: bytes) -> list[Event]:
    if media_type not in (STRUCTURED, BATCH, PLAIN):
        raise Refused(415, f"events come as {STRUCTURED}, {BATCH} or {PLAIN}")
    found = _decoded(body)
    events = found if isinstance(found, list) and media_type != STRUCTURED else [found]
    if media_type == BATCH and not isinstance(found, list):
        raise Refused(400, "a batch is a list of events")
    if len(events) > MAX_EVENTS:
        raise Refused(413, f"at most {MAX_EVENTS} events come at once")
    if not all(isinstance(event, dict) for event in events):
        raise Refused(400, "an event is an object")
    return events


def _binary(media_type: str, headers: Mapping[str, str], body: bytes) -> Event:
    is_json = media_type == PLAIN or media_type.endswith("+json")
    return {
        "specversion": headers["ce-specversion"],
        "type": headers.get("ce-type", ""),
        "subject": unquote(headers.get("ce-subject", "")),
        "data": _decoded(body) if body and is_json else None,
    }


def _decoded(body: bytes) -> Any:
    try:
        return msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise Refused(400, "the body is no JSON") from None


def _code(event: Event) -> str:
    data = event.get("data")
    code = data.get("validationCode") if isinstance(data, dict) else None
    if not isinstance(code, str) or not 0 < len(code) <= LONGEST:
        raise Refused(400, "a validation event has data.validationCode")
    return code


def _counts(kind: str) -> bool:
    return not kind.startswith("Microsoft.") or kind.startswith("Microsoft.Resources.Resource")


def _paths(event: Event) -> Iterator[str]:
    data = event.get("data")
    inner = data.get("resourceUri") if isinstance(data, dict) else None
    for found in (event.get("subject"), inner, event.get("resourceUri")):
        if isinstance(found, str) and len(found) <= LONGEST and found.startswith(("/", "http://", "https://")):
            yield found
