"""A project that is being deleted tells how many resources are in it, of all kinds that the hub serves: whoever deletes its
namespace knows the kinds that ship, and not those of others.

It is told when one project is read, and is never stored. What dead writers left in a project does not hold it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from trimtab.hub.contract import ApplyOptions, DeleteOptions, Down, GetOptions, Hub
from trimtab.hub.holding import Holds
from trimtab.hub.proxies.passing import Passing
from trimtab.hub.storage.contract import PROJECTS, RowQuery, Storage, StorageUnavailable
from trimtab.hub.storage_accessor import StillUsed
from trimtab.model.clock import Clock

COUNTED = 100
"""Of one kind, at most."""


class Inhabited(Passing):
    """`types`: those of the rows that can be in a project."""

    def __init__(self, inner: Any, storage: Storage, types: Sequence[str], clock: Clock) -> None:
        super().__init__(inner)
        self._storage = storage
        self._types = types
        self._holds = Holds(storage, clock)

    async def get(self, name: str, options: GetOptions) -> Hub:
        return await self._told(_stored(await super().get(name, options)), options.organization)

    async def apply(self, hub: Hub, options: ApplyOptions) -> Hub:
        return await self._told(await super().apply(_stored(hub), options), options.organization)

    async def delete(self, name: str, options: DeleteOptions) -> None:
        try:
            if not options.dry_run:
                await self._swept(options.organization, name)
            elif await self._count(options.organization, name):
                raise StillUsed(f"the project {name} has resources: delete them first")
        except StorageUnavailable as error:
            raise Down(str(error)) from None
        await super().delete(name, options)

    async def _swept(self, organization: str, name: str) -> None:
        project = await self._project(organization, name)
        for type_ in self._types if project else ():
            await self._holds.sweep(organization, project, type_)

    async def _told(self, hub: Hub, organization: str) -> Hub:
        if not hub["metadata"].get("deletionTimestamp"):
            return hub
        try:
            count = await self._count(organization, hub["metadata"]["name"])
        except StorageUnavailable as error:
            raise Down(str(error)) from None
        return {**hub, "status": {**(hub.get("status") or {}), "resources": count}} if count else hub

    async def _count(self, organization: str, name: str) -> int:
        project = await self._project(organization, name)
        if not project:
            return 0
        pages = [
            await self._storage.list(RowQuery(organization=organization, type=type_, project=project, limit=COUNTED))
            for type_ in self._types
        ]
        writing = [await self._holds.count(organization, project, type_) for type_ in self._types]
        return sum(len(page.rows) for page in pages) + sum(writing)

    async def _project(self, organization: str, name: str) -> str:
        """Its ID."""
        return (await self._storage.ids(organization, PROJECTS, None, [name])).get(name, "")


def _stored(hub: Hub) -> Hub:
    """Without what is told."""
    status = hub.get("status") or {}
    if "resources" not in status:
        return hub
    return {**hub, "status": {word: value for word, value in status.items() if word != "resources"}}
