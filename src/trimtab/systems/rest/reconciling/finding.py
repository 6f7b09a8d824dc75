"""Which resource is ours where the server chooses IDs: by the answer to a creation, or by looking through a list."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

from trimtab.systems.rest.addressing import AddressError, normalized, resource_id
from trimtab.systems.rest.calling.contract import Answer, CallError, ErrorClass
from trimtab.systems.rest.calling.endpoint import EndpointError, resolved
from trimtab.systems.rest.calling.endpoint import parsed as parsed_endpoint
from trimtab.systems.rest.calling.pages import pages
from trimtab.systems.rest.reconciling.looking import own_name, value_at
from trimtab.systems.rest.reconciling.session import Session
from trimtab.systems.rest.syncing.comparing import equal

HEADER = "header:"


async def extracted(session: Session, answer: Answer) -> str:
    """The ID that an answer names; "" when it names none."""

    async def own(given: Answer) -> str:
        return _named(session, given)

    found: str = await session.place.hooks.run("extract_id", session.context, own, answer)
    return found


def _named(session: Session, answer: Answer) -> str:
    identity, where = session.model.identity, session.model.identity.answer
    if where.startswith(HEADER):
        found = located(session, answer, answer.headers.get(where.removeprefix(HEADER).lower(), ""))
        if found or answer.status == 202:  # what a 202 has in its body is the operation
            return found
        where = ""
    for path in (where, identity.field, identity.parameter, "id"):
        found = own_name(value_at(answer.body, path)) if path else ""
        if not found:
            continue
        try:
            return normalized(session.model, found) or resource_id(
                session.model, {**session.values, identity.parameter: found}
            )
        except AddressError:
            continue
    return ""


def located(session: Session, answer: Answer, url: str) -> str:
    """The ID of what a URL in an answer leads to; "" when that is none of this kind, or is elsewhere: a monitor, say."""
    endpoint = parsed_endpoint(session.caller.endpoint)
    whole = resolved(answer.url or endpoint.base + "/", url)
    try:
        is_own = bool(url) and endpoint.owns(whole)
    except EndpointError:
        return ""
    base, path = urlsplit(endpoint.base).path, urlsplit(whole).path
    return normalized(session.model, path.removeprefix(base)) if is_own and path.startswith(base + "/") else ""


async def find(session: Session, wanted: dict[str, Any]) -> str:
    """The ID of what is there and has all that tells ours from others; "" when there is none. Two of them are an error:
    a guess could take someone else's. So is one without an ID, and a search for what the spec does not say."""

    async def own() -> str:
        call, fields = session.model.calls.list, session.model.identity.find
        if call is None or not fields:
            return ""
        if not is_told(session, wanted):
            return _not_told(session, wanted)
        collection = session.place.looks.collection("", session.values)
        hits = [
            item
            async for page in pages(session.caller, session.model, call, collection)
            for item in page
            if session.place.looks.is_there(item)
            and all(equal(value_at(wanted, path), value_at(item, path)) for path in fields)
        ]
        if len(hits) > 1:
            why = f"{len(hits)} resources have the same {', '.join(fields)}: name ours in spec.resourceID"
            raise CallError(ErrorClass.TERMINAL, why)
        found = session.place.looks.identifier_of(hits[0], session.values) if hits else ""
        if hits and not found:
            why = f"the list has one with the same {', '.join(fields)}, and does not say its ID: name it in spec.resourceID"
            raise CallError(ErrorClass.TERMINAL, why)
        return found

    found: str = await session.place.hooks.run("find_existing", session.context, own)
    return found


def is_told(session: Session, wanted: dict[str, Any]) -> bool:
    """Whether what is wanted has all the fields that tell ours from others. What has none of them is like any other."""
    return all(value_at(wanted, path) is not None for path in session.model.identity.find)


def _not_told(session: Session, wanted: dict[str, Any]) -> str:
    """Nothing there is known to be ours. Where one may be, that is no answer."""
    fields = session.model.identity.find
    told = any(value_at(wanted, path) is not None for path in fields)
    may_take = session.subject.control.policy.adopt != "never"
    if session.status.sync.pending is None and (told or not may_take):
        return ""
    missing = ", ".join(path for path in fields if value_at(wanted, path) is None)
    why = f"what is there cannot be told from others without {missing}: give it in the spec, or name ours in spec.resourceID"
    raise CallError(ErrorClass.TERMINAL, why)
