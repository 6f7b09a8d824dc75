"""A service in memory, and a few kinds, for tests of what is between it and the server."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Annotated, Any

import msgspec
from msgspec import UNSET, UnsetType

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
    Stale,
    StatusOptions,
    WatchOptions,
)
from trimtab.hub.storage.contract import PROJECTS, Identity, Snapshot
from trimtab.model.hub import File, HubResource, Sharing
from trimtab.model.markers import AlwaysEmit, Keyed, Ref
from trimtab.model.resource import Spec
from trimtab.model.schema.shape import copied
from trimtab.store.contract import Op

KEY = "hub.trimtab.dev/lineage"


class Part(Spec):
    name: Annotated[str, Ref("Addon")]
    enabled: bool = True


class PlanSpec(Spec):
    version: str = ""
    parts: Annotated[tuple[Part, ...], Keyed("name")] = ()
    by_zone: dict[str, Annotated[str, Ref("Cluster")]] = msgspec.field(default_factory=dict)
    places: Annotated[tuple[str, ...], Ref("Cluster")] = ()
    secret: Annotated[str, Ref("Secret")] | UnsetType = UNSET
    replicas: Annotated[int, AlwaysEmit()] = 1
    files: tuple[File, ...] = ()
    sharing: Sharing | UnsetType = UNSET


class Plan(HubResource, group="infra", version="v3"):
    """A test's kind with everything that a hub kind may have."""

    spec: PlanSpec = PlanSpec()
    status: dict[str, Any] | UnsetType = UNSET

    def version(self) -> str:
        return self.spec.version

    def files(self) -> tuple[File, ...]:
        return self.spec.files


TYPES = {"Project": PROJECTS, "Addon": "addons.infra", "Cluster": "clusters.infra"}


class Service:
    """A `Watched` accessor that keeps whole documents."""

    def __init__(self) -> None:
        self.rows: dict[tuple[str, str], Hub] = {}
        self.log: list[tuple[int, HubChange]] = []
        self.revision = 0
        self.snapshots: dict[tuple[str, str], list[Snapshot]] = {}
        self.calls: list[tuple[str, Any]] = []
        self._moved = asyncio.Event()

    async def get(self, name: str, options: GetOptions) -> Hub:
        self.calls.append(("get", options))
        found = self.rows.get((options.project, name))
        if found is None:
            raise Missing(f"{name} not found")
        return copied(found)

    async def list(self, options: ListOptions) -> HubList:
        self.calls.append(("list", options))
        items = [
            row for (project, _), row in sorted(self.rows.items()) if options.all_projects or project == options.project
        ]
        return HubList(items=copied(items), revision=self.revision)

    async def apply(self, hub: Hub, options: ApplyOptions) -> Hub:
        self.calls.append(("apply", options))
        key = (options.project, hub["metadata"]["name"])
        before = self.rows.get(key)
        at = int(before["metadata"]["resourceVersion"]) if before else 0
        if options.expect is not None and options.expect != at:
            raise Stale("not at the expected revision", copied(before))
        self.revision += 1
        after = copied(hub)
        after["metadata"]["resourceVersion"] = str(self.revision)
        if not options.dry_run:
            self.rows[key] = after
            self._told(HubChange(op=Op.PUT, hub=after, before=before))
        return copied(after)

    async def delete(self, name: str, options: DeleteOptions) -> None:
        self.calls.append(("delete", options))
        found = self.rows.pop((options.project, name), None)
        if found is None:
            raise Missing(f"{name} not found")
        self.revision += 1
        self._told(HubChange(op=Op.DELETE, hub=found, before=found))

    async def status(self, name: str, options: StatusOptions) -> HubStatus:
        found = await self.get(name, GetOptions(project=options.project))
        return found.get("status") or {}

    async def watch(self, options: WatchOptions, since: int) -> AsyncIterator[HubBatch]:
        while True:
            self._moved.clear()
            found = tuple(copied_change(change) for revision, change in self.log if revision > since)
            since = self.revision
            yield HubBatch(revision=self.revision, changes=found)
            await self._moved.wait()

    async def horizon(self) -> tuple[int, int]:
        return self.revision, 0

    async def published(self, name: str, options: GetOptions) -> Sequence[Snapshot]:
        return self.snapshots.get((options.project, name), [])

    def _told(self, change: HubChange) -> None:
        self.log.append((self.revision, change))
        self._moved.set()


def copied_change(change: HubChange) -> HubChange:
    return HubChange(op=change.op, hub=copied(change.hub), before=copied(change.before))


class Register:
    """Who is who: the part of the storage service that hydration asks."""

    def __init__(self) -> None:
        self.known: dict[tuple[str, str | None, str], str] = {}
        self.given: dict[str, Identity] = {}
        self.questions: list[tuple[str, Any]] = []

    def add(self, kind: str, name: str, project: str | None = None) -> str:
        made = f"{len(self.given) + 1:032x}"
        self.known[TYPES[kind], project, name] = made
        self.given[made] = Identity(id=made, type=TYPES[kind], project=project or "", name=name)
        return made

    def drop(self, kind: str, name: str, project: str | None = None) -> None:
        del self.known[TYPES[kind], project, name]

    async def ids(self, organization: str, type: str, project: str | None, names: Sequence[str]) -> Mapping[str, str]:  # noqa: A002
        self.questions.append(("ids", (type, project, tuple(names))))
        return {name: self.known[type, project, name] for name in names if (type, project, name) in self.known}

    async def names(self, ids: Sequence[str]) -> Mapping[str, Identity]:
        self.questions.append(("names", tuple(ids)))
        return {each: self.given[each] for each in ids if each in self.given}


def plan(name: str = "a", project: str = "red", /, **more: Any) -> Hub:
    annotations = more.pop("annotations", None)
    managed = more.pop("managed", None)
    metadata: Hub = {"name": name, "project": project, "namespace": project}
    if annotations is not None:
        metadata["annotations"] = annotations
    if managed is not None:
        metadata["managedFields"] = managed
    return {
        "apiVersion": "infra.trimtab.dev/v3",
        "kind": "Plan",
        "metadata": metadata,
        "spec": more.pop("spec", {}),
        **more,
    }


def options(cls: type, **more: Any) -> Any:
    return msgspec.convert({}, cls) if not more else cls(**{"project": "red", **more})
