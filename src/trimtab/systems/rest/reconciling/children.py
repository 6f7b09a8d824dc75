"""A resource goes after those that are parts of it: services refuse to delete what is not empty, or delete it with all that is
in it, and then nobody has asked the parts for their policy."""

from __future__ import annotations

from typing import Any

from trimtab.client.protocol import Preconditions, Query, Ref
from trimtab.model.errors import StatusError
from trimtab.runtime.objects import is_deleting, kind_of, uid_of
from trimtab.systems.rest.reconciling import telling
from trimtab.systems.rest.reconciling.board import Wanted
from trimtab.systems.rest.reconciling.session import Halt, Session

LOOK_AGAIN = 5.0


async def wait_for_children(session: Session) -> None:
    """Raises Halt while there are objects that are parts of this one. They are deleted with it, as the garbage collector
    would do it afterwards; a part that is to be left as it is keeps the whole."""
    children = await _children(session)
    if not children:
        return
    names = telling.named(f"{child.kind} {child.name}" for child in children)
    kept = [child for child in children if _must_stay(_policy(child))]
    if kept and session.model.calls.delete is not None and not all(is_deleting(child) for child in kept):
        why = f"{telling.named(f'{child.kind} {child.name}' for child in kept)} must stay, and is a part of it: detach this too"
        raise Halt(telling.stalled("ChildrenDetached", why), after=60.0)
    for child in children:
        session.place.board.wait(Wanted(child.kind, child.namespace, child.name), session.wake, session.key)
        if not is_deleting(child) and _is_owned(child, session):
            await _delete(session, child)
    raise Halt(telling.waiting("ChildrenLeft", f"goes when its parts are gone: {names}"), after=LOOK_AGAIN)


async def _children(session: Session) -> list[Any]:
    found: list[Any] = []
    for kind in session.place.children():
        listing = await session.place.client.list(kind, Query(namespace=session.subject.namespace))
        found += [child for child in listing.items if _parent(child).get("name") == session.subject.raw.name]
    return found


def _parent(child: Any) -> dict[str, Any]:
    return (child.raw.get("spec") or {}).get("parent") or {}


def _policy(child: Any) -> dict[str, Any]:
    return (child.raw.get("spec") or {}).get("policy") or {}


def _must_stay(policy: dict[str, Any]) -> bool:
    """Whether what a part stands for is not to be touched."""
    return bool(policy.get("deletion") == "detach" or policy.get("mode") == "plan" or policy.get("paused"))


def _is_owned(child: Any, session: Session) -> bool:
    return any(owner.uid == uid_of(session.object) for owner in child.metadata.owner_references or ())


async def _delete(session: Session, child: Any) -> None:
    ref = Ref(kind_of(child), child.name, child.namespace)
    try:
        await session.place.client.delete(ref, preconditions=Preconditions(uid=uid_of(child)))
    except StatusError as error:
        if error.code not in (404, 409):
            raise
