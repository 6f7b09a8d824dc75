"""From a catalogue to Images: make those that are not there, mark those whose tags are gone, remove what was gone for long.

Flow: create and correct, mark, remove; some writes at a time. Guarantees: whoever is killed at any point and calls again
ends at the same Images. What is as it should be costs no write. Nothing is marked or removed by a listing that was not
whole, and nothing is removed that this very run marked, whatever the grace. Images of a Registry that had the same name
before are another's: they are never touched, and `InTheWay` is raised until they are gone.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, TypeVar

import msgspec
from msgspec import UNSET

from trimtab.client.protocol import Preconditions, Query, Ref
from trimtab.model.errors import StatusError
from trimtab.model.objectmeta import ObjectMeta, OwnerReference
from trimtab.model.resource import Resource
from trimtab.runtime.cached import CachedClient
from trimtab.runtime.index import Index
from trimtab.runtime.objects import is_deleting, uid_of
from trimtab.runtime.owners import NotOurs, create_or_adopt, owned_by, owner_reference
from trimtab.systems.images.kinds.image import Image
from trimtab.systems.images.kinds.job import REGISTRY_LABEL
from trimtab.systems.images.kinds.registry import Registry
from trimtab.systems.images.runs import claim
from trimtab.systems.images.runs.telling import Superseded
from trimtab.systems.images.wanted import Wanted, corrected, is_due, marked, missing_since, wanted

if TYPE_CHECKING:
    from trimtab.systems.images.runs.catalogue import Catalogue

AT_A_TIME = 16
ATTEMPTS = 5
BREATH = 200
"""Images that are judged before others get a turn: judging waits for nothing."""

T = TypeVar("T")


def _registry_uid(obj: Resource) -> list[str]:
    uid = (obj.metadata.labels or {}).get(REGISTRY_LABEL)
    return [uid] if uid else []


BY_REGISTRY = Index("registry", _registry_uid)
"""Images, SBOMs and reports by the uid of their Registry."""


class Applied(msgspec.Struct, frozen=True, kw_only=True):
    """What became of the Images. `missing` are all that are marked now; `held` should have gone, but are too many at once;
    `members` are the Images of the run's tags, each once; `images` are all of this registry."""

    created: int = 0
    unchanged: int = 0
    missing: int = 0
    removed: int = 0
    held: int = 0
    members: tuple[str, ...] = ()
    images: int = 0


class InTheWay(Exception):  # noqa: N818 - it reads as what happened
    """Images of these names are another's, or are being deleted. Try again when they are gone; the others were made."""

    def __init__(self, names: list[str], why: str) -> None:
        super().__init__(f"{len(names)} Images cannot be made yet: {why}")
        self.names = tuple(names)


async def apply(
    client: CachedClient,
    registry: Registry,
    catalogue: Catalogue,
    *,
    run: str,
    complete: bool,
    now: datetime,
    released: bool = False,
) -> Applied:
    """Make the registry's Images those of the catalogue. `complete`: what is not in it is gone. `released`: somebody has
    seen how many are to be removed at once. InTheWay; Superseded when the registry is not this run's any more; or the
    StatusError of a write that nothing mends."""
    from trimtab.systems.images.runs.catalogue import (
        members,
    )  # loads an HTTP client, and controllers import this module

    before = _removable_before(registry, run, now)
    meant = {each.name: each async for each in _breathing(wanted(registry, catalogue))}
    known = await _known(client, registry)
    new = [each for name, each in meant.items() if name not in known]
    created = await _make(client, registry, new)
    stay = [(known[name], each) for name, each in meant.items() if name in known]
    wrong = [(image, each) async for image, each in _breathing(stay) if corrected(image, each) is not image]
    await _each(wrong, lambda pair: _rewrite(client, pair[0], lambda image: corrected(image, pair[1])))
    lost = [image for name, image in known.items() if name not in meant]
    missing = [image for image in lost if missing_since(image) is not None]
    removed = held = 0
    if complete:
        await _each(lost, lambda image: _rewrite(client, image, lambda each: marked(each, now)))
        gone = [image for image in missing if is_due(image, before)]
        missing = lost
        if len(gone) * 100 > registry.spec.removal.max_percent * (len(known) + len(new)) and not released:
            held = len(gone)
        elif gone:
            await _confirm(client, registry, run)
            removed = sum(await _each(gone, lambda image: _remove(client, image, before)))
    return Applied(
        created=created,
        unchanged=len(meant) - created,
        missing=len(missing) - removed,
        removed=removed,
        held=held,
        members=members(catalogue, registry.name),
        images=len(known) + len(new) - removed,
    )


# --- reading and writing ---------------------------------------------------------------------------------------------


def _removable_before(registry: Registry, run: str, now: datetime) -> datetime:
    """What was marked before this may go: the grace is over, and an earlier run marked it."""
    holder = claim.running(registry.metadata.annotations or {})
    if holder is None or holder.id != run:
        raise Superseded(f"Registry {registry.name} is not run {run}'s")
    return min(holder.started_at, now - timedelta(seconds=registry.spec.removal.grace.seconds))


async def _known(client: CachedClient, registry: Registry) -> dict[str, Image]:
    """The Images that this very Registry has and that stay."""
    query = Query(namespace=registry.namespace, labels=f"{REGISTRY_LABEL}={uid_of(registry)}")
    listed = await client.list(Image, query)
    return {
        image.name: image
        for image in listed.items
        if isinstance(image, Image) and owned_by(image, registry) and not is_deleting(image)
    }


async def _make(client: CachedClient, registry: Registry, images: list[Wanted]) -> int:
    """How many were made. Those that another holds are left to the end, so that they stop nothing else."""
    owner = owner_reference(registry, client.scheme)
    blocked: dict[str, str] = {}

    async def make(meant: Wanted) -> bool:
        try:
            await client.create(_image(registry, meant, owner))
        except StatusError as error:
            if error.reason != "AlreadyExists":
                raise
            try:
                await _take(client, registry, meant)
            except NotOurs as other:
                blocked[meant.name] = str(other)
            return False
        return True

    created = sum(await _each(images, make))
    if blocked:
        raise InTheWay(list(blocked), next(iter(blocked.values())))
    return created


async def _take(client: CachedClient, registry: Registry, meant: Wanted) -> None:
    """One of that name is there and the cache did not know it as ours: it is, or it is nobody's and becomes ours."""
    bare = _image(registry, meant)
    image = await create_or_adopt(client, bare, registry, adopt=True, scheme=client.scheme)
    if is_deleting(image) or not isinstance(image, Image):
        raise NotOurs(image, None, "is being deleted" if is_deleting(image) else "is of another version: delete it")

    def labelled(each: Image) -> Image:
        labels = {**(each.metadata.labels or {}), REGISTRY_LABEL: uid_of(registry)}
        metadata = msgspec.structs.replace(each.metadata, labels=labels)
        return corrected(each.replace(metadata=metadata), meant)

    await _rewrite(client, image, labelled)


def _image(registry: Registry, meant: Wanted, owner: OwnerReference | None = None) -> Image:
    metadata = ObjectMeta(
        name=meant.name,
        namespace=registry.namespace,
        labels={REGISTRY_LABEL: uid_of(registry)},
        owner_references=(owner,) if owner else UNSET,
    )
    return Image(metadata=metadata, spec=meant.spec)


async def _rewrite(client: CachedClient, image: Image, change: Callable[[Image], Image]) -> None:
    """Change an Image, whoever else writes it meanwhile. One that is gone is left so."""
    uid = uid_of(image)
    for attempt in range(1, ATTEMPTS + 1):
        changed = change(image)
        try:
            held = await client.patch(image, changed.replace(status=image.status))
            await client.patch(held, held.replace(status=changed.status), subresource="status")
            return
        except StatusError as error:
            if error.code == 404:
                return
            if error.code != 409 or attempt == ATTEMPTS:
                raise
        fresh = await _live(client, image)
        if fresh is None or uid_of(fresh) != uid:
            return
        image = fresh


async def _remove(client: CachedClient, image: Image, before: datetime) -> bool:
    """Whether it is gone by us: not when it has changed and is due no more."""
    for _ in range(ATTEMPTS):
        mark = Preconditions(uid=uid_of(image), resource_version=image.metadata.resource_version or None)
        try:
            await client.delete(Ref(Image, image.name, image.namespace), preconditions=mark, propagation="Background")
            return True
        except StatusError as error:
            if error.code not in (404, 409):
                raise
        fresh = await _live(client, image)
        if fresh is None or uid_of(fresh) != uid_of(image) or not is_due(fresh, before):
            return False
        image = fresh
    return False


async def _confirm(client: CachedClient, registry: Registry, run: str) -> None:
    """What removes asks the server first: a cache may be behind."""
    try:
        fresh = await client.live.get(Registry, registry.name, registry.namespace)
    except StatusError as error:
        if error.code != 404:
            raise
        raise Superseded(f"Registry {registry.name} is gone") from None
    holder = claim.running(fresh.metadata.annotations or {})
    if uid_of(fresh) != uid_of(registry) or is_deleting(fresh):
        raise Superseded(f"Registry {registry.name} is another by now, or is being deleted")
    if holder is None or holder.id != run:
        raise Superseded(f"Registry {registry.name} is not run {run}'s any more")


async def _live(client: CachedClient, image: Image) -> Image | None:
    try:
        return await client.live.get(Image, image.name, image.namespace)
    except StatusError as error:
        if error.code != 404:
            raise
        return None


# --- many at a time --------------------------------------------------------------------------------------------------


async def _breathing(items: Iterable[T]) -> AsyncIterator[T]:
    """The same, with turns for others in between."""
    for number, item in enumerate(items, 1):
        yield item
        if number % BREATH == 0:
            await asyncio.sleep(0)


async def _each(items: Iterable[T], act: Callable[[T], Awaitable[bool | None]]) -> list[bool]:
    """Act on all of them, some at a time, and say what came of it. The first failure stops the rest."""
    waiting = iter(items)
    came: list[bool] = []

    async def take() -> None:
        for item in waiting:
            came.append(bool(await act(item)))  # noqa: PERF401 - all share the list

    try:
        async with asyncio.TaskGroup() as group:
            for _ in range(AT_A_TIME):
                group.create_task(take())
    except BaseExceptionGroup as failed:
        raise failed.exceptions[0] from None
    return came
