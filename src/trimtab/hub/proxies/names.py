"""Names of IDs, and IDs of projects, remembered. One for all kinds of a process.

An ID names the same thing for ever, so its name is never forgotten but to make room. A project's ID can become another one,
when the project is deleted and made anew: `forget` says so, and who finds nothing under a remembered ID asks again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

from trimtab.hub.contract import Down
from trimtab.hub.storage.contract import PROJECTS, Identity, RowPage, RowQuery, StorageUnavailable

ROOM = 200_000
"""How many names are remembered at most."""


class Resolver(Protocol):
    """The part of the storage service that knows who is who."""

    async def ids(self, organization: str, type: str, project: str | None, names: Sequence[str]) -> Mapping[str, str]:  # noqa: A002
        ...

    async def names(self, ids: Sequence[str]) -> Mapping[str, Identity]: ...

    async def list(self, query: RowQuery) -> RowPage: ...


async def project_at(resolver: Resolver, organization: str, name: str, revision: int) -> str | None:
    """The ID that a project of this name had at a revision. store.contract.Gone when that is too long ago."""
    query = RowQuery(organization=organization, type=PROJECTS, name=name, revision=revision)
    try:
        found = await resolver.list(query)
    except StorageUnavailable as error:
        raise Down(str(error)) from None
    return next((row.id for row in found.rows), None)


class Names:
    """What a resolver said. Lookups are in batches: one question for a page of a list."""

    def __init__(self, resolver: Resolver, room: int = ROOM) -> None:
        self._resolver = resolver
        self._room = room
        self.known: dict[str, str] = {}  # ID → name
        self._projects: dict[tuple[str, str], str] = {}
        self._epoch = 0

    def forget(self) -> None:
        """Projects were made or deleted. A lookup that is under way is not remembered either."""
        self._projects.clear()
        self._epoch += 1

    def remembered(self, organization: str, project: str) -> str | None:
        return self._projects.get((organization, project))

    async def project(self, organization: str, name: str) -> str | None:
        """The ID that a project has now."""
        return (await self.ids(organization, PROJECTS, None, (name,))).get(name)

    async def project_at(self, organization: str, name: str, revision: int) -> str | None:
        return await project_at(self._resolver, organization, name, revision)

    async def ids(self, organization: str, type: str, project: str | None, names: Sequence[str]) -> Mapping[str, str]:  # noqa: A002
        """Name → ID, always asked anew: what is written must be true now."""
        epoch = self._epoch
        try:
            found = await self._resolver.ids(organization, type, project, names)
        except StorageUnavailable as error:
            raise Down(str(error)) from None
        if type == PROJECTS and epoch == self._epoch:
            for name in names:
                self._projects.pop((organization, name), None)
            self._make_room(self._projects, len(found))
            self._projects.update({(organization, name): found_id for name, found_id in found.items()})
        return found

    async def names(self, ids: Iterable[str]) -> Mapping[str, str]:
        """ID → name; what nobody knows is left out."""
        known: dict[str, str] = {}
        asked: list[str] = []
        for one in set(ids):
            name = self.known.get(one)
            if name is None:
                asked.append(one)
            else:
                known[one] = name
        if asked:
            try:
                found = await self._resolver.names(asked)
            except StorageUnavailable as error:
                raise Down(str(error)) from None
            new = {one: identity.name for one, identity in found.items()}
            self._make_room(self.known, len(new))
            self.known.update(new)
            known.update(new)
        return known

    def _make_room(self, remembered: dict[str, str] | dict[tuple[str, str], str], more: int) -> None:
        if len(remembered) + more > self._room:
            remembered.clear()
