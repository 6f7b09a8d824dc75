"""Which resource is ours where the server chooses IDs: by the answer to a creation, or by looking through a list."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

from trimtab.systems.rest.addressing import AddressError, resource_id
from trimtab.systems.rest.calling.contract import Answer, CallError, ErrorClass
from trimtab.systems.rest.calling.pages import pages
from trimtab.systems.rest.reconciling.looking import value_at
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
        given = answer.headers.get(where.removeprefix(HEADER).lower(), "")
        return below(urlsplit(given).path, session.caller.endpoint) if given else ""
    for path in (where, identity.field, identity.parameter, "id"):
        found = value_at(answer.body, path) if path else None
        if isinstance(found, str | int) and not isinstance(found, bool) and str(found):
            try:
                return resource_id(session.model, {**session.values, identity.parameter: str(found)})
            except AddressError:
                continue
    return ""


def below(path: str, endpoint: str) -> str:
    """A path of the server as a path below the endpoint."""
    base = urlsplit(endpoint).path.rstrip("/") if "://" in endpoint and not endpoint.startswith("unix") else ""
    return path[len(base) :] if base and path.startswith(base + "/") else path


async def find(session: Session, wanted: dict[str, Any]) -> str:
    """The ID of what is there and has all that tells ours from others; "" when there is none. Two of them are an error:
    a guess could take someone else's."""

    async def own() -> str:
        call, fields = session.model.calls.list, session.model.identity.find
        if call is None or not fields:
            return ""
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
        return session.place.looks.identifier_of(hits[0], session.values) if hits else ""

    found: str = await session.place.hooks.run("find_existing", session.context, own)
    return found
