"""Reading: one resource, if it changed, and lists to their end.

A list is whole or it raises: whoever takes what is missing from it for deleted must be able to rely on that.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from typing import Any

from trimtab.systems.rest.calling.bodies import at
from trimtab.systems.rest.calling.contract import Answer, Caller, CallError, ErrorClass, Request
from trimtab.systems.rest.calling.endpoint import resolved
from trimtab.systems.rest.calling.errors import described
from trimtab.systems.rest.model import Call, Model

MOST_PAGES = 10_000


async def pages(caller: Caller, model: Model, call: Call, url: str) -> AsyncIterator[list[Any]]:
    """The items of each page, which may be none. CallError, also for a list that is none or does not end."""
    seen: set[str] = set()
    request = Request(
        verb="list", method=call.method, url=url, envelope=model.overlay.envelope, rules=model.overlay.errors
    )
    while True:
        answer = await caller.call(request)
        following = _following(call, answer)
        yield _items(request, call, answer, last=not following)
        if not following:
            return
        seen.add(answer.url)
        if following in seen or len(seen) >= MOST_PAGES:
            why = "the list leads back to a page that was read" if following in seen else "the list does not end"
            raise CallError(ErrorClass.TRANSIENT, described(request, why), code="EndlessList", request=request)
        request = Request(verb="list", method="GET", url=following, envelope=request.envelope, rules=request.rules)


async def read(caller: Caller, model: Model, url: str, *, etag: str = "", verb: str = "read") -> Answer:
    """The resource. With the ETag of what is known already, the answer may be a 304 without a body."""
    return await caller.call(
        Request(
            verb=verb,
            method=model.calls.read.method if model.calls.read is not None and verb == "read" else "GET",
            url=url,
            headers={"If-None-Match": etag} if etag else {},
            envelope=model.overlay.envelope,
            rules=model.overlay.errors,
        )
    )


def _items(request: Request, call: Call, answer: Answer, *, last: bool) -> list[Any]:
    items = at(answer.body, call.items)
    if isinstance(items, list):
        return items
    if items is None and (not last or answer.status == 204 or _is_null(answer.body, call.items)):
        return []
    raise CallError(
        ErrorClass.UNKNOWN,
        described(request, f"the answer has no list at {call.items or 'its top'}"),
        status=answer.status,
        code="NoList",
        request=request,
    )


def _is_null(body: Any, path: str) -> bool:
    """Whether it is there and says null, as lists of Go programs do. One that is missing may mean anything."""
    outer, _, name = path.rpartition(".")
    around = at(body, outer)
    return bool(path) and isinstance(around, dict) and name in around and around[name] is None


def _following(call: Call, answer: Answer) -> str:
    """The URL of the next page, by the body or by a Link header (RFC 8288)."""
    link = at(answer.body, call.next_link) if call.next_link else None
    if not isinstance(link, str) or not link.strip():
        found = _NEXT.search(answer.headers.get("link", "")[:8192])
        link = found.group(1) if found else ""
    return resolved(answer.url, link) if link else ""


_NEXT = re.compile(r'<([^<>]+)>\s*;[^,]*\brel="?next"?', re.IGNORECASE)
