"""Above, a reference is a name; below, it is the ID that the storage service gave, at the same place in the document.

`metadata.project` and the request's project must exist. Another reference may be to what is not there (yet): it is
`name:<name>` below. A shared resource is found by its name in the projects that it is shared with.

Caveat: the order of lists is that of names, so `ListOptions.after` is names on both sides.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from trimtab.hub.contract import (
    ApplyOptions,
    DeleteOptions,
    GetOptions,
    Hub,
    HubBatch,
    HubChange,
    HubList,
    HubStatus,
    ListOptions,
    Missing,
    Options,
    Republished,
    Stale,
    StatusOptions,
    WatchOptions,
)
from trimtab.hub.proxies.hydrating import Hydration
from trimtab.hub.proxies.names import Names
from trimtab.hub.proxies.passing import Passing, closing
from trimtab.hub.references import Reference

if TYPE_CHECKING:
    from trimtab.hub.storage.contract import Snapshot

O = TypeVar("O", bound=Options)  # noqa: E741
T = TypeVar("T")


class Hydrate(Passing):
    """`references` are those of the kind (see `references_of`); a kind that is not `namespaced` has no project."""

    def __init__(
        self, inner: Any, references: Sequence[Reference], names: Names, *, kind: str = "", namespaced: bool = True
    ) -> None:
        super().__init__(inner)
        self._names = names
        self._kind = kind or "resource"
        self._namespaced = namespaced
        self._hydration = Hydration(tuple(references), names, namespaced=namespaced)

    async def get(self, name: str, options: GetOptions) -> Hub:
        async def found(below: GetOptions) -> Hub:
            return await super(Hydrate, self).get(name, below)

        [hub] = await self._hydration.up([await self._in_project(options, name, found)])
        return hub

    async def list(self, options: ListOptions) -> HubList:
        async def found(below: ListOptions) -> HubList:
            return await super(Hydrate, self).list(below)

        try:
            page = await self._in_project(options, options.name, found, lambda page: not page.items)
        except Missing:  # as a list of a namespace that is not there
            newest, _ = await self.horizon()
            page = HubList(items=[], revision=options.revision or newest)
        if not page.items and options.revision and options.project and self._namespaced:
            then = await self._names.project_at(options.organization, options.project, options.revision)
            page = await found(msgspec.structs.replace(options, project=then)) if then else page
        return msgspec.structs.replace(page, items=await self._hydration.up(page.items))

    async def apply(self, hub: Hub, options: ApplyOptions) -> Hub:
        below = await self._hydration.down(hub, options)
        options = msgspec.structs.replace(options, project=below["metadata"].get("project", ""))
        try:
            applied = await self._applied(hub, below, options)
        except Stale as stale:
            if stale.current is None:
                raise
            raise Stale(str(stale), *await self._hydration.up([stale.current])) from None
        [hub] = await self._hydration.up([applied])
        return hub

    async def delete(self, name: str, options: DeleteOptions) -> None:
        async def gone(below: DeleteOptions) -> None:
            await super(Hydrate, self).delete(name, below)

        try:
            await self._in_project(options, name, gone)
        except Stale as stale:
            if stale.current is None:
                raise
            raise Stale(str(stale), *await self._hydration.up([stale.current])) from None

    async def status(self, name: str, options: StatusOptions) -> HubStatus:
        async def found(below: StatusOptions) -> HubStatus:
            return await super(Hydrate, self).status(name, below)

        status = await self._in_project(options, name, found)
        [hub] = await self._hydration.up([{"status": status}], envelope=False)
        shown: HubStatus = hub["status"]
        return shown

    async def watch(self, options: WatchOptions, since: int) -> AsyncIterator[HubBatch]:
        """A project can be deleted and made anew while it is watched, so all are, and its name tells which are meant."""
        every = options.all_projects or not self._namespaced
        wide = msgspec.structs.replace(options, project="", all_projects=True)
        async with closing(super().watch(wide, since)) as batches:
            async for batch in batches:
                changes = batch.changes
                if changes and not every:
                    changes = await self._of_project(changes, options.project)
                yield HubBatch(revision=batch.revision, changes=await self._hydration.changes(changes))

    async def published(self, name: str, options: GetOptions) -> Sequence[Snapshot]:
        async def found(below: GetOptions) -> Sequence[Snapshot]:
            return await super(Hydrate, self).published(name, below)

        snapshots = await self._in_project(options, name, found, lambda snapshots: not snapshots)
        return await self._hydration.snapshots(snapshots)

    async def _of_project(self, changes: Sequence[HubChange], project: str) -> tuple[HubChange, ...]:
        projects = [change.hub["metadata"].get("project", "") for change in changes]
        names = await self._names.names(projects)
        return tuple(change for change, own in zip(changes, projects, strict=True) if names.get(own) == project)

    async def _in_project(
        self,
        options: O,
        name: str,
        ask: Callable[[O], Awaitable[T]],
        nothing: Callable[[T], bool] = lambda found: False,
    ) -> T:
        """Ask below with the project's ID. What is there proves that a remembered ID is right: a project with anything
        in it cannot be deleted. When there is nothing, the ID is asked for anew."""
        if not self._namespaced or not options.project:
            return await ask(options)
        remembered = self._names.remembered(options.organization, options.project)
        answer: T | None = None
        missing = Missing(f'{self._kind} "{name}" not found in project "{options.project}"')
        if remembered is not None:
            try:
                answer = await ask(msgspec.structs.replace(options, project=remembered))
                if not nothing(answer):
                    return answer
            except Missing as error:
                missing = error
        project = await self._names.project(options.organization, options.project)
        if project is None:
            raise missing
        if project != remembered:
            return await ask(msgspec.structs.replace(options, project=project))
        if answer is None:
            raise missing
        return answer

    async def _applied(self, hub: Hub, below: Hub, options: ApplyOptions) -> Hub:
        try:
            return await super().apply(below, options)
        except Republished as error:
            published = await self._as_published(hub, below, options, error)
        return await super().apply(published, options)

    async def _as_published(self, hub: Hub, below: Hub, options: ApplyOptions, error: Republished) -> Hub:
        """A version may be applied again when it says the same by name: what it names can have another ID by now (it was
        made later, or anew), and the published one counts."""
        asked = GetOptions(organization=options.organization, project=options.project)
        kept = await super().published(hub["metadata"]["name"], asked)
        then = next((snapshot for snapshot in kept if snapshot.version == error.version), None)
        if then is None:
            raise error
        [shown] = await self._hydration.snapshots([then])
        spec = {name: value for name, value in (hub.get("spec") or {}).items() if name != "sharing"}
        if shown.body != spec:
            raise error
        sharing = {"sharing": below["spec"]["sharing"]} if "sharing" in (below.get("spec") or {}) else {}
        return {**below, "spec": {**sharing, **then.body}}
