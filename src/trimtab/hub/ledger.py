"""Envelopes and revisions for services that know nothing of them.

The service holds the truth. The ledger keeps, in rows of the storage service, what Kubernetes needs beside it (uid, generation,
managed fields, finalizers; labels, annotations, description and status where the service has none) and the document as it was
last seen. What is read is compared with that: a difference is a change that someone made elsewhere, and becomes a revision
and a watch event.

Guarantees: a write holds the resource (`intents.<type>`, with a lease) from its check of the expected revision until the
ledger has what the service answered: of two writers that expect the same revision one gets `Stale` before it reaches the
service. While a write is under way readers get the state before it. A write that was begun is finished, also when its
caller has left; a writer that dies leaves a change like one made elsewhere: it is seen at the next look, after its lease.

A write that the service does not answer in half the lease is given up, so that nobody else has begun another.

Assumptions: changes elsewhere are seen when the service notifies, when someone reads, or at the next poll.

Caveats: of a change made elsewhere nobody knows who made it: managed fields stay as they were.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import uuid
from collections.abc import AsyncIterator, Awaitable, Coroutine, Mapping, Sequence
from typing import Any, TypeVar

import msgspec
import orjson

from trimtab.hub.contract import (
    ENVELOPE,
    ApplyOptions,
    DeleteOptions,
    Down,
    GetOptions,
    Hub,
    HubBatch,
    HubChange,
    HubList,
    HubStatus,
    ListOptions,
    Missing,
    Options,
    Refused,
    Stale,
    StatusOptions,
    WatchOptions,
)
from trimtab.hub.holding import LEASE, Holds
from trimtab.hub.listing import selected
from trimtab.hub.proxies.names import project_at
from trimtab.hub.proxies.passing import closing
from trimtab.hub.storage.contract import PROJECTS, Row, RowConflict, RowKey, RowQuery, RowWrite, Storage, Unknown
from trimtab.hub.storage.decide import is_going, late
from trimtab.model.clock import Clock, format_time
from trimtab.model.kind import Kind
from trimtab.model.logs import log
from trimtab.runtime.deadline import within
from trimtab.store.contract import Op

POLL = 60.0
RETRY = 5.0
WRITE = LEASE / 2
"""Seconds that a service has for a write."""
KEPT = ("labels", "annotations", "description")  # by the ledger, where the service has none

T = TypeVar("T")


class Ledger:
    """Makes any accessor a `Watched` one. Projects are names here."""

    def __init__(self, inner: Any, storage: Storage, kind: Kind, type_: str, clock: Clock) -> None:
        self._inner = inner
        self._storage = storage
        self._kind = kind
        self._type = type_
        self._clock = clock
        self._holds = Holds(storage, clock)
        self._writes: set[asyncio.Task[Any]] = set()

    async def get(self, name: str, options: GetOptions) -> Hub:
        key = await self._read_key(name, options)
        row = await self._storage.get(key)
        settled = await self._settled(key, row, await self._asked(name, options), options.project)
        if settled is None:
            raise Missing(f'{self._kind.kind} "{name}" not found in project "{options.project}"')
        return self._shown(settled, options.project)

    async def list(self, options: ListOptions) -> HubList:
        """A list of the newest state asks the service; one that goes on, or of an older revision, is read in the ledger."""
        project = None
        equal, matches = selected(options, self._kind)
        if not options.all_projects and self._kind.namespaced:
            project = await self._project(options)
            if project is None:  # as a list of a namespace that is not there
                newest, _ = await self.horizon()
                return HubList(items=[], revision=options.revision or newest)
        if options.after is None and not options.revision:
            await self._look(options, project)
        query = RowQuery(
            organization=options.organization,
            type=self._type,
            project=project,
            name=options.name,
            labels=equal,
            limit=options.limit or 500,
            after=options.after,
            revision=options.revision,
        )
        page = await self._storage.list(query)
        names = await self._names(page.rows)
        shown = (self._shown(row, names.get(row.key.project, "")) for row in page.rows)
        return HubList(items=[hub for hub in shown if matches(hub)], revision=page.revision, after=page.after)

    async def look(self, organization: str, project: str = "") -> None:
        """Bring the ledger up to what the service has now, in one project or in all."""
        options = ListOptions(organization=organization, project=project, all_projects=not project)
        where = (await self._ids(organization, {project})).get(project) if project else None
        if where is not None or not project:
            await self._look(options, where)

    async def _look(self, options: ListOptions, where: str | None) -> None:
        """`where` is the ID of the project, None for all. The ledger is read first: what it has can only be older than what
        the service says, and what differs is looked at again, alone."""
        known = await self._rows(options, where)
        found: dict[tuple[str, str], Hub] = {}
        after = None
        while True:
            page = await self._inner.list(msgspec.structs.replace(options, after=after, limit=0, labels="", fields=""))
            for hub in page.items:
                name = hub["metadata"]["name"]
                if options.name in ("", name):  # a service need not know how to list one alone
                    found[hub["metadata"].get("project") or options.project, name] = hub
            after = page.after
            if after is None:
                break
        ids = await self._ids(options.organization, {project for project, _ in found})
        for (project, name), hub in found.items():
            if self._kind.namespaced and project not in ids:
                continue  # the service has it for a project that we do not
            key = RowKey(options.organization, self._type, ids.get(project, ""), name)
            await self._settled(key, known.pop((key.project, name), None), hub, project)
        names = await self._names([*known.values()])
        for row in known.values():
            await self._settled(row.key, row, None, names.get(row.key.project, ""))

    async def _rows(self, options: ListOptions, project: str | None) -> dict[tuple[str, str], Row]:
        rows: dict[tuple[str, str], Row] = {}
        after = None
        while True:
            query = RowQuery(
                organization=options.organization, type=self._type, project=project, name=options.name, after=after
            )
            page = await self._storage.list(query)
            rows |= {(row.key.project, row.key.name): row for row in page.rows}
            after = page.after
            if after is None:
                return rows

    async def apply(self, hub: Hub, options: ApplyOptions) -> Hub:
        name = hub["metadata"]["name"]
        key = await self._key(options.organization, options.project, name)
        if options.dry_run:
            if await self._expected(key, options.expect, options.project) is None:
                await self._refuse_late(key, options.project)
            return hub
        return await self._finished(self._applied(key, hub, options))

    async def _applied(self, key: RowKey, hub: Hub, options: ApplyOptions) -> Hub:
        intent = await self._hold(key, options.project)
        try:
            row = await self._expected(key, options.expect, options.project)
            if row is None:
                await self._refuse_late(key, options.project)
            answer = await self._answered(self._inner.apply(_bare(hub), options))
            body = {"document": _seen(answer), "kept": _kept(hub)}
            return self._shown(await self._record(key, row, body, _envelope(hub)), options.project)
        finally:
            await self._holds.release(intent)

    async def delete(self, name: str, options: DeleteOptions) -> None:
        key = await self._read_key(name, options)
        if options.dry_run:
            if await self._expected(key, options.expect, options.project) is None:
                raise Missing(f"there is no {self._kind.kind} {name}")
            return
        await self._finished(self._deleted(key, options))

    async def _deleted(self, key: RowKey, options: DeleteOptions) -> None:
        try:
            intent = await self._hold(key, options.project)
        except Refused:
            raise Missing(f"there is no {self._kind.kind} {key.name}") from None
        try:
            row = await self._expected(key, options.expect, options.project)
            if row is None:
                raise Missing(f"there is no {self._kind.kind} {key.name}")
            with contextlib.suppress(Missing):  # someone was faster: what was asked for is so
                await self._answered(self._inner.delete(key.name, options))
            await self._forget(row)
        finally:
            await self._holds.release(intent)

    async def _hold(self, key: RowKey, project: str) -> Row:
        """Nobody else writes it until it is released. Refused when its project went after it was looked up."""
        try:
            return await self._holds.take(key)
        except Unknown:
            raise _no_project(project) from None

    async def _answered(self, call: Awaitable[T]) -> T:
        """What the service says, while our hold lasts."""
        try:
            return await within(self._clock, WRITE, _awaited(call))
        except TimeoutError:
            why = f"the service of {self._kind.plural} did not answer within {WRITE:g} s: it may have been done all the same"
            raise Down(why) from None

    async def drain(self) -> None:
        """Returns when the writes have ended whose callers gave up: before the process ends."""
        await asyncio.gather(*self._writes, return_exceptions=True)

    async def _finished(self, write: Coroutine[Any, Any, T]) -> T:
        """The write goes on when its caller gives up: half of it would be a change that nobody made, or a hold without a
        holder."""
        task = asyncio.create_task(write)
        self._writes.add(task)
        task.add_done_callback(self._writes.discard)
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            task.add_done_callback(_ended_unseen)
            raise

    async def status(self, name: str, options: StatusOptions) -> HubStatus:
        status: HubStatus = await self._inner.status(name, options)
        return status

    async def horizon(self) -> tuple[int, int]:
        return await self._storage.horizon()

    async def watch(self, options: WatchOptions, since: int) -> AsyncIterator[HubBatch]:
        async with closing(self._storage.changes(options.organization, (self._type,), since)) as batches:
            async for batch in batches:
                names = await self._names([change.row for change in batch.changes])
                changes = []
                for change in batch.changes:
                    project = names.get(change.row.key.project, "")
                    if not options.all_projects and project != options.project:
                        continue
                    if options.name and change.row.key.name != options.name:
                        continue
                    before = None if change.before is None else self._shown(change.before, project)
                    changes.append(HubChange(op=change.op, hub=self._shown(change.row, project), before=before))
                yield HubBatch(revision=batch.revision, changes=tuple(changes))

    async def follow(self, organization: str) -> None:
        """See what changes elsewhere, until cancelled: at once where the service notifies, else at each poll."""
        notifications = getattr(self._inner, "notifications", None)
        while True:
            try:
                await self.look(organization)
                if notifications is None:
                    await self._clock.sleep(POLL)
                    continue
                async for project, name in notifications():
                    await self._notified(organization, project, name)
                raise Down("its notifications have ended")
            except Exception as error:  # whatever a service does, we look again
                log.warning("a service cannot be followed", kind=self._kind.kind, error=str(error) or repr(error))
                await self._clock.sleep(RETRY)

    async def _notified(self, organization: str, project: str, name: str) -> None:
        if not name:
            await self.look(organization, project)
            return
        with contextlib.suppress(Missing):
            await self.get(name, GetOptions(organization=organization, project=project))

    async def _asked(self, name: str, options: GetOptions) -> Hub | None:
        """What the service has."""
        try:
            found: Hub = await self._inner.get(name, options)
        except Missing:
            return None
        return found

    async def _settled(self, key: RowKey, row: Row | None, found: Hub | None, project: str) -> Row | None:
        """The ledger's row for what the service has; made, brought up to date or taken away when they differ. While somebody
        writes, it is as before."""
        if _agree(row, found) or await self._holds.taken(key):
            return row
        return await self._finished(self._caught_up(key, project))

    async def _caught_up(self, key: RowKey, project: str) -> Row | None:
        """The row of what others did in the service. That is asked again while nobody writes here: what was read of it may be
        older than what was written since, and would come back."""
        try:
            intent = await self._hold(key, project)
        except Refused:
            return None
        try:
            row = await self._storage.get(key)
            options = GetOptions(organization=key.organization, project=project)
            found = await self._answered(self._asked(key.name, options))
            if _agree(row, found):
                return row
            if found is None:
                if row is not None:
                    await self._forget(row)
                return None
            return await self._record(key, row, *self._changed(row, _seen(found)))
        except Refused:  # its project is being deleted
            return None
        finally:
            await self._holds.release(intent)

    def _changed(self, row: Row | None, seen: Hub) -> tuple[dict[str, Any], dict[str, Any]]:
        """Body and envelope of what was changed, or made, elsewhere."""
        if row is None:
            created = format_time(self._clock.now())
            envelope = {"uid": str(uuid.uuid4()), "generation": 1, "creationTimestamp": created}
            return {"document": seen, "kept": {}}, envelope
        moved = seen.get("spec") != row.body["document"].get("spec")
        envelope = {**row.envelope, "generation": row.envelope.get("generation", 1) + moved}
        return {"document": seen, "kept": row.body["kept"]}, envelope

    async def _refuse_late(self, key: RowKey, project: str) -> None:
        """Before the service is asked to make something in a project that is being deleted."""
        there = await self._storage.get(RowKey(key.organization, PROJECTS, "", project)) if key.project else None
        if there is not None and is_going(there):
            raise Refused([("metadata.project", late(project))])

    async def _record(self, key: RowKey, row: Row | None, body: dict[str, Any], envelope: dict[str, Any]) -> Row:
        body = {**body, "digest": _digest(body["document"])}
        labels = _metadata(body).get("labels") or {}
        write = RowWrite(
            row=Row(key=key, labels=labels, body=body, envelope=envelope), expect=0 if row is None else row.revision
        )
        try:
            return await self._storage.commit(write)
        except RowConflict as error:
            raise Stale(str(error)) from None
        except Unknown as error:
            raise Refused([("metadata.project", str(error))]) from None

    async def _forget(self, row: Row) -> None:
        """It is gone in the service."""
        try:
            await self._storage.commit(RowWrite(row=row, op=Op.DELETE, expect=row.revision))
        except RowConflict:
            return  # another has seen to it

    async def _expected(self, key: RowKey, expect: int | None, project: str) -> Row | None:
        row = await self._storage.get(key)
        if expect is not None and expect != (row.revision if row else 0):
            current = None if row is None else self._shown(row, project)
            raise Stale(f"{self._kind.kind} {key.name} is not at the expected revision", current)
        return row

    async def _key(self, organization: str, project: str, name: str) -> RowKey:
        """Where it is to be. The project is asked for each time: one that was made anew has another ID."""
        where = (await self._ids(organization, {project})).get(project) if self._kind.namespaced else ""
        if where is None:
            raise _no_project(project)
        return RowKey(organization, self._type, where, name)

    async def _read_key(self, name: str, options: Options) -> RowKey:
        try:
            return await self._key(options.organization, options.project, name)
        except Refused:
            raise Missing(f'{self._kind.kind} "{name}" not found in project "{options.project}"') from None

    async def _project(self, options: ListOptions) -> str | None:
        """The ID that a project has, or had at the revision that is asked for."""
        if options.revision:
            return await project_at(self._storage, options.organization, options.project, options.revision)
        return (await self._ids(options.organization, {options.project})).get(options.project)

    async def _ids(self, organization: str, projects: set[str]) -> Mapping[str, str]:
        """Of the projects that are there."""
        if not self._kind.namespaced or not projects:
            return {}
        return await self._storage.ids(organization, PROJECTS, None, sorted(projects))

    async def _names(self, rows: Sequence[Row]) -> Mapping[str, str]:
        ids = sorted({row.key.project for row in rows if row.key.project})
        if not ids:
            return {}
        return {id_: identity.name for id_, identity in (await self._storage.names(ids)).items()}

    def _shown(self, row: Row, project: str) -> Hub:
        document = row.body["document"]
        metadata: dict[str, Any] = {"name": row.key.name, **_metadata(row.body), **row.envelope}
        if self._kind.namespaced:
            metadata |= {"namespace": project, "project": project}
        metadata["resourceVersion"] = str(row.revision)
        hub: Hub = {
            "apiVersion": self._kind.api_version,
            "kind": self._kind.kind,
            "metadata": {name: value for name, value in metadata.items() if value not in ({}, [], None, "")},
            **{name: value for name, value in document.items() if name not in ("apiVersion", "kind", "metadata")},
        }
        if "status" not in hub and row.body["kept"].get("status"):
            hub["status"] = row.body["kept"]["status"]
        return hub


def _agree(row: Row | None, found: Hub | None) -> bool:
    """Whether the ledger has what the service has."""
    if row is None or found is None:
        return row is None and found is None
    return bool(row.body.get("digest") == _digest(_seen(found)))


def _no_project(name: str) -> Refused:
    return Refused([("metadata.project", f'there is no project "{name}": create a Project of this name')])


async def _awaited(call: Awaitable[T]) -> T:
    return await call


def _ended_unseen(task: asyncio.Task[Any]) -> None:
    if not task.cancelled() and (error := task.exception()) is not None:
        log.info("a write failed whose caller had given up", error=str(error))


def _metadata(body: Mapping[str, Any]) -> dict[str, Any]:
    theirs = body["document"].get("metadata") or {}
    return {name: theirs[name] if name in theirs else body["kept"].get(name) for name in KEPT}


def _seen(hub: Hub) -> Hub:
    """What the service says of a resource, without what it cannot know."""
    metadata = {name: value for name, value in (hub.get("metadata") or {}).items() if name in KEPT}
    rest = {name: value for name, value in hub.items() if name not in ("apiVersion", "kind", "metadata")}
    return {**({"metadata": metadata} if metadata else {}), **rest}


def _kept(hub: Hub) -> dict[str, Any]:
    kept = {name: hub["metadata"][name] for name in KEPT if hub["metadata"].get(name)}
    return {**kept, **({"status": hub["status"]} if hub.get("status") else {})}


def _bare(hub: Hub) -> Hub:
    """What the service gets: no envelope."""
    metadata = {name: value for name, value in hub["metadata"].items() if name not in ENVELOPE and name != "namespace"}
    return {**hub, "metadata": metadata}


def _envelope(hub: Hub) -> dict[str, Any]:
    metadata = hub["metadata"]
    return {name: metadata[name] for name in ENVELOPE if name in metadata and name != "resourceVersion"}


def _digest(document: Hub) -> str:
    return hashlib.blake2b(orjson.dumps(document, option=orjson.OPT_SORT_KEYS), digest_size=16).hexdigest()
