"""Two objects for one resource would undo each other's work, and the end of one would be the end of the other's resource:
the one that has it keeps it."""

from __future__ import annotations

from collections.abc import Iterator

from trimtab.client.protocol import Named
from trimtab.model.scheme import Untyped
from trimtab.runtime.objects import uid_of
from trimtab.systems.rest.addressing import canonical
from trimtab.systems.rest.reconciling import telling
from trimtab.systems.rest.reconciling.session import Halt, Session

IDENTIFIERS = "rest-identifiers"
"""The index of a kind's objects by the ID of what they stand for."""


def identifiers_of(obj: Untyped) -> Iterator[str]:
    status = obj.raw.get("status") or {}
    if status.get("resourceID") and (status.get("sync") or {}).get("created"):
        yield canonical(str(status["resourceID"]))


async def refuse_rival(session: Session) -> None:
    """Raises Halt when another object stands for the resource already."""
    kind = Named(session.object.api_version, session.object.kind)
    for other in await session.place.client.indexed(kind, IDENTIFIERS, canonical(session.identifier)):
        if uid_of(other) != uid_of(session.object):
            whose = other.name if other.namespace == session.subject.namespace else "one in another namespace"
            why = f"{session.identifier} is managed by another object already: {whose}"
            raise Halt(telling.stalled("AlreadyManaged", why), after=300.0)
