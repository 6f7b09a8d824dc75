"""Whose an object is: owner references, and children that are created or adopted but never stolen.

An owner is known by its uid. One that was deleted and made again under its old name is another owner, and the children
of the first are not its own. Nothing here deletes: an object that is in the way is reported (`NotOurs`), and the
controller turns that into a condition.
"""

from __future__ import annotations

from typing import Any, TypeVar, overload

from trimtab.client.protocol import Client, Object
from trimtab.model.errors import StatusError
from trimtab.model.objectmeta import OwnerReference
from trimtab.model.resource import Resource
from trimtab.model.scheme import Scheme
from trimtab.runtime.objects import is_deleting, kind_of, uid_of, uncached, with_metadata

ATTEMPTS = 5
O = TypeVar("O", bound=Object)  # noqa: E741 - an object
R = TypeVar("R", bound=Resource)


class CrossNamespace(ValueError):  # noqa: N818 - it reads as what is wrong
    """The owner lives in a namespace and the child elsewhere: the garbage collector would delete the child."""


class NotOurs(Exception):  # noqa: N818
    """An object of that name exists and is not the owner's. `holder` controls it; None when nobody does."""

    def __init__(self, existing: Object, holder: OwnerReference | None, why: str) -> None:
        super().__init__(f"{existing.kind} {_place(existing)} {why}")
        self.existing = existing
        self.holder = holder


def owner_reference(
    owner: Object, scheme: Scheme | None = None, *, controller: bool = True, block: bool = True
) -> OwnerReference:
    """A reference to an object that came from the API. The scheme is asked only when the owner does not name its kind."""
    api_version, kind = owner.api_version, owner.kind
    if not api_version and scheme is not None and isinstance(owner, Resource):
        known = scheme.kind_of(type(owner))
        api_version, kind = known.api_version, known.kind
    if not (api_version and kind and owner.name and uid_of(owner)):
        raise ValueError("an owner must come from the API: it needs apiVersion, kind, name and uid")
    return OwnerReference(
        api_version=api_version,
        kind=kind,
        name=owner.name,
        uid=uid_of(owner),
        controller=controller,
        block_owner_deletion=block,
    )


def controller_of(obj: Object) -> OwnerReference | None:
    """The one owner that manages the object."""
    return next((reference for reference in _references(obj) if reference.controller is True), None)


def owned_by(obj: Object, owner: Object) -> bool:
    """Whether this very incarnation of `owner` is among the owners."""
    return bool(uid_of(owner)) and any(reference.uid == uid_of(owner) for reference in _references(obj))


def own(child: O, owner: Object, scheme: Scheme | None = None, *, controller: bool = True, block: bool = True) -> O:
    """`child` with the reference. CrossNamespace, or NotOurs when another controls the child already."""
    if owner.namespace and child.namespace != owner.namespace:
        where = f"in namespace {child.namespace}" if child.namespace else "without a namespace"
        raise CrossNamespace(f"{owner.kind} {_place(owner)} cannot own {child.name} {where}: use its own namespace")
    reference = owner_reference(owner, scheme, controller=controller, block=block)
    holder = controller_of(child)
    if controller and holder is not None and holder.uid != reference.uid:
        raise NotOurs(child, holder, f"is controlled by {holder.kind} {holder.name}")
    kept = _references(child)
    if owned_by(child, owner):
        return with_metadata(child, owner_references=tuple(reference if r.uid == reference.uid else r for r in kept))
    return with_metadata(child, owner_references=(*kept, reference))


@overload
async def create_or_adopt(
    client: Client, child: R, owner: Object, *, adopt: bool = ..., scheme: Scheme | None = ...
) -> R: ...
@overload
async def create_or_adopt(
    client: Client, child: Object, owner: Object, *, adopt: bool = ..., scheme: Scheme | None = ...
) -> Any: ...


async def create_or_adopt(
    client: Client, child: Object, owner: Object, *, adopt: bool = False, scheme: Scheme | None = None
) -> Any:
    """The child as it is in the API, with `owner` as its controller: made now, made before, or adopted.

    Flow: look in the cache, where the client has one; create; when it exists, read it and decide. What exists is returned
    as it is; bring it up to date by `apply`.

    Guarantees: an object that another controls is never touched; one that nobody controls only with `adopt`, by a patch
    that fails when the object changed since it was read, and only while the owner itself still exists and stays.

    Raises NotOurs, or the last StatusError when the world changed at every attempt: try again later.
    """
    owned = own(child, owner, scheme)
    known = await _cached(client, child)
    if known is not None and owned_by(known, owner):
        return known
    for _ in range(ATTEMPTS):
        try:
            return await client.create(owned)
        except StatusError as error:
            if error.reason != "AlreadyExists" or not child.name:
                raise
            refused = error
        try:
            existing = await uncached(client).get(kind_of(child), child.name, child.namespace)
        except StatusError as error:
            if error.code != 404:
                raise
            continue  # it went in between
        holder = controller_of(existing)
        if holder is not None and holder.uid == uid_of(owner):
            return existing
        await _may_adopt(client, existing, holder, owner, adopt)
        try:
            return await client.patch(existing, own(existing, owner, scheme))
        except StatusError as error:
            if error.code not in (404, 409):
                raise
            refused = error
    raise refused


async def _cached(client: Client, child: Object) -> Any:
    """The child, when a cache has it."""
    if uncached(client) is client or not child.name:
        return None
    try:
        return await client.get(kind_of(child), child.name, child.namespace)
    except StatusError as error:
        if error.code != 404:
            raise
        return None


async def _may_adopt(
    client: Client, existing: Object, holder: OwnerReference | None, owner: Object, adopt: bool
) -> None:
    if holder is not None:
        raise NotOurs(existing, holder, f"is controlled by {holder.kind} {holder.name} (uid {holder.uid})")
    if not adopt:
        raise NotOurs(existing, None, "exists and belongs to nobody: delete it, or allow its adoption")
    if is_deleting(existing):
        raise NotOurs(existing, None, "is being deleted")
    # An owner that is gone or going must not take anything with it.
    now = await uncached(client).get(kind_of(owner), owner.name, owner.namespace)
    if uid_of(now) != uid_of(owner) or is_deleting(now):
        raise NotOurs(existing, None, f"is not adopted: {owner.kind} {owner.name} itself is gone or being deleted")


def _references(obj: Object) -> tuple[OwnerReference, ...]:
    return obj.metadata.owner_references or ()


def _place(obj: Object) -> str:
    return f"{obj.namespace}/{obj.name}" if obj.namespace else obj.name
