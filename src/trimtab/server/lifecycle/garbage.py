"""Garbage collection: what an owner leaves behind goes with it, before it, or stays, as the deletion asked.

Flow: one watch for each stored kind keeps an index of owners → dependents; each event puts keys on a queue; a key is judged
from the world as it is. Judging twice does no harm.

Guarantees: an object with owner references lives as long as one of its owners does. A foreground deletion ends after the
dependents that block it. Owners that never existed count as absent, once a live read has said so. Circles end.

Caveats: owners are looked for in the dependent's namespace, or cluster-wide; a reference to a kind that is not served is
left alone.
"""

from __future__ import annotations

import asyncio
import enum
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

import msgspec
import orjson

from trimtab.model.errors import StatusError
from trimtab.model.logs import log
from trimtab.server.deletes import FOREGROUND, ORPHAN
from trimtab.server.options import DeleteOptions
from trimtab.server.registry import Served
from trimtab.server.strategy import Document
from trimtab.store.contract import Change, Entry, Gone, Key, Op, Page, Query, StoreError

if TYPE_CHECKING:
    from trimtab.server.core import Server


RETRY = 1.0
PAGE = 500


class _Reference(msgspec.Struct, rename="camel", frozen=True):
    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    block_owner_deletion: bool | None = None


class _Meta(msgspec.Struct, rename="camel", frozen=True):
    uid: str = ""
    deletion_timestamp: str | None = None
    finalizers: tuple[str, ...] | None = None
    owner_references: tuple[_Reference, ...] | None = None


class _Seen(msgspec.Struct, frozen=True):
    metadata: _Meta


_decoder = msgspec.json.Decoder(_Seen)


class Owner(enum.Enum):
    """What an owner reference points at."""

    SOLID = "solid"
    ABSENT = "absent"
    WAITING = "waiting"  # being deleted in the foreground, waiting for its dependents


class Garbage:
    def __init__(self, server: Server) -> None:
        self._server = server
        self._owners: dict[Key, frozenset[str]] = {}  # of each object that has owners: their uids
        self._dependents: dict[str, set[Key]] = {}  # of each owner's uid
        self._ending: dict[str, Key] = {}  # uid → an owner that waits for its dependents
        self._absent: set[str] = set()  # uids of owners that we saw go, while someone names them
        self._queue: asyncio.Queue[Key] = asyncio.Queue()
        self._queued: set[Key] = set()
        self._watches: dict[str, asyncio.Task[None]] = {}
        self._unlisted: set[str] = set()  # kinds whose changes we do not follow yet

    async def run(self) -> None:
        worker = self._server.spawn(self._work(), "garbage worker")
        try:
            seen = -1
            while True:
                seen = await self._server.registry.news(seen)
                self._follow()
        finally:
            worker.cancel()

    def _follow(self) -> None:
        """Watch each stored kind; let go of those that are no longer served."""
        served = self._server.registry.storages()
        for resource in self._watches.keys() - served.keys():
            self._watches.pop(resource).cancel()
            self._unlisted.discard(resource)
        for resource in served.keys() - self._watches.keys():
            self._unlisted.add(resource)
            self._watches[resource] = self._server.spawn(self._watch(served[resource]), f"garbage of {resource}")

    async def _watch(self, served: Served) -> None:
        query = Query(resource=served.strategy.storage)
        while True:
            try:
                page = await self._list(served, query)
                self._listed(query.resource)
                async with aclosing(served.source.watch(query, page.revision)) as batches:
                    async for batch in batches:
                        for change in batch.changes:
                            self._changed(change)
            except Gone:
                self._unlisted.add(query.resource)
            except (StatusError, StoreError) as error:  # a service that holds the kind is down, or the disk fails
                self._unlisted.add(query.resource)
                log.warning("garbage collection waits for a kind", kind=query.resource, error=str(error))
                await self._server.clock.sleep(RETRY)

    async def _list(self, served: Served, query: Query) -> Page:
        """In pages: what a service holds may be much more than what fits here."""
        after, revision = None, None
        while True:
            page = await served.source.list(
                msgspec.structs.replace(query, limit=PAGE, after=after, revision=revision, counted=False)
            )
            for entry in page.entries:
                self._observe(entry)
            if page.after is None:
                return page
            after, revision = page.after, page.revision

    def _listed(self, resource: str) -> None:
        """An owner may have gone after its dependents were judged and before its kind was listed, and a list tells no
        deletions: when all are listed, everyone is judged again."""
        self._unlisted.discard(resource)
        if not self._unlisted:
            for key in list(self._owners):
                self._put(key)

    def _changed(self, change: Change) -> None:
        if change.op is Op.PUT:
            self._observe(change.entry)
            return
        key, uid = change.entry.key, _decoder.decode(change.entry.value).metadata.uid
        self._forget(key)
        self._ending.pop(uid, None)
        if uid in self._dependents:
            self._absent.add(uid)  # its kind may go, too, before the dependents are judged
        for dependent in self._dependents.get(uid, ()):
            self._put(dependent)

    def _observe(self, entry: Entry) -> None:
        """Note who owns an object, and queue it when there may be something to do."""
        interesting = b'"ownerReferences"' in entry.value or b'"deletionTimestamp"' in entry.value
        if not interesting and entry.key not in self._owners:
            return
        metadata = _decoder.decode(entry.value).metadata
        owners = frozenset(reference.uid for reference in metadata.owner_references or ())
        if owners != self._owners.get(entry.key, frozenset()):
            self._forget(entry.key)
            if owners:
                self._owners[entry.key] = owners
                for uid in owners:
                    self._dependents.setdefault(uid, set()).add(entry.key)
            self._put(entry.key)
        if metadata.deletion_timestamp and metadata.finalizers and {FOREGROUND, ORPHAN} & set(metadata.finalizers):
            self._ending[metadata.uid] = entry.key
            self._put(entry.key)
            for dependent in self._dependents.get(metadata.uid, ()):
                self._put(dependent)

    def _forget(self, key: Key) -> None:
        for uid in self._owners.pop(key, ()):
            dependents = self._dependents.get(uid)
            if dependents is not None:
                dependents.discard(key)
                if not dependents:
                    del self._dependents[uid]
                    self._absent.discard(uid)
            if uid in self._ending:
                self._put(self._ending[uid])

    def _put(self, key: Key) -> None:
        if key not in self._queued:
            self._queued.add(key)
            self._queue.put_nowait(key)

    async def _work(self) -> None:
        while True:
            key = await self._queue.get()
            self._queued.discard(key)
            try:
                await self._judge(key)
            except StatusError as error:
                if error.code != 404:
                    log.warning("garbage collection will try again", key=key, error=error.message)
                    self._server.spawn(self._later(key), "garbage retry")
            except Exception:  # one bad object must not end the collection of all others
                log.exception("garbage collection will try again", key=key)
                self._server.spawn(self._later(key), "garbage retry")

    async def _later(self, key: Key) -> None:
        await self._server.clock.sleep(RETRY)
        self._put(key)

    async def _judge(self, key: Key) -> None:
        served = self._server.registry.storages().get(key.resource)
        if served is None:
            return
        entry = await served.source.get(key)
        if entry is None:
            return
        document: Document = orjson.loads(entry.value)  # its metadata: the same in all versions
        metadata = document["metadata"]
        finalizers = metadata.get("finalizers") or ()
        if metadata.get("deletionTimestamp"):
            if ORPHAN in finalizers:
                await self._orphan(served, key, metadata["uid"])
                return
            if FOREGROUND in finalizers:
                await self._end_foreground(served, key, metadata["uid"])
            else:
                return
        if metadata.get("ownerReferences"):
            await self._judge_dependent(served, key, document)

    async def _judge_dependent(self, served: Served, key: Key, document: Document) -> None:
        metadata = document["metadata"]
        states = {ref["uid"]: await self._state(ref, key.namespace) for ref in metadata["ownerReferences"]}
        gone = {uid for uid, state in states.items() if state is not Owner.SOLID}
        if Owner.SOLID in states.values():
            if gone:
                await self._drop_references(served, key, gone)
            return
        if Owner.WAITING in states.values() and self._dependents.get(metadata["uid"]):
            if any(self._uids_of(dependent) in self._ending for dependent in self._dependents[metadata["uid"]]):
                await self._unblock(served, key)  # a circle: let the owners go first
            await self._delete(served, key, "Foreground", metadata["uid"])
            return
        if metadata.get("deletionTimestamp"):
            return
        held = metadata.get("finalizers") or ()
        policy = "Orphan" if ORPHAN in held else "Foreground" if FOREGROUND in held else "Background"
        await self._delete(served, key, policy, metadata["uid"])

    def _uids_of(self, key: Key) -> str:
        return next((uid for uid, owner in self._ending.items() if owner == key), "")

    async def _state(self, reference: dict[str, Any], namespace: str) -> Owner:
        if reference["uid"] in self._absent:
            return Owner.ABSENT
        group = reference["apiVersion"].rpartition("/")[0]
        owner = self._server.registry.of_group_kind(group, reference["kind"])
        if owner is None:
            return Owner.SOLID  # nobody can say; leave it alone
        if owner.kind.namespaced and not namespace:
            return Owner.SOLID  # a cluster-scoped object cannot be owned by a namespaced one
        found = await owner.source.get(owner.key(namespace if owner.kind.namespaced else "", reference["name"]))
        if found is None:
            return Owner.ABSENT
        metadata = _decoder.decode(found.value).metadata
        if metadata.uid != reference["uid"]:
            return Owner.ABSENT
        if metadata.deletion_timestamp and FOREGROUND in (metadata.finalizers or ()):
            return Owner.WAITING
        return Owner.SOLID

    async def _end_foreground(self, served: Served, key: Key, uid: str) -> None:
        """An owner waits: its dependents are deleted, and it goes when none blocks it."""
        blocked = False
        for dependent in list(self._dependents.get(uid, ())):
            kind = self._server.registry.storages().get(dependent.resource)
            entry = await kind.source.get(dependent) if kind else None
            if entry is None:
                continue
            references = _decoder.decode(entry.value).metadata.owner_references or ()
            blocked |= any(ref.uid == uid and ref.block_owner_deletion for ref in references)
            self._put(dependent)
        if not blocked:
            await self._server.acts.modify(served, key.namespace, key.name, lambda d: _drop_finalizer(d, FOREGROUND))

    async def _orphan(self, served: Served, key: Key, uid: str) -> None:
        for dependent in list(self._dependents.get(uid, ())):
            kind = self._server.registry.storages().get(dependent.resource)
            if kind is not None:
                await self._drop_references(kind, dependent, {uid})
        await self._server.acts.modify(served, key.namespace, key.name, lambda d: _drop_finalizer(d, ORPHAN))

    async def _drop_references(self, served: Served, key: Key, uids: set[str]) -> None:
        def change(document: Document) -> None:
            references = document["metadata"].pop("ownerReferences", None) or []
            kept = [reference for reference in references if reference["uid"] not in uids]
            if kept:
                document["metadata"]["ownerReferences"] = kept

        await self._server.acts.modify(served, key.namespace, key.name, change)

    async def _unblock(self, served: Served, key: Key) -> None:
        def change(document: Document) -> None:
            for reference in document["metadata"].get("ownerReferences") or ():
                if reference.get("blockOwnerDeletion"):
                    reference["blockOwnerDeletion"] = False

        await self._server.acts.modify(served, key.namespace, key.name, change)

    async def _delete(self, served: Served, key: Key, policy: str, uid: str) -> None:
        await self._server.acts.remove(served, key.namespace, key.name, DeleteOptions(propagation=policy, uid=uid))


def _drop_finalizer(document: Document, name: str) -> None:
    kept = [finalizer for finalizer in document["metadata"].get("finalizers") or () if finalizer != name]
    document["metadata"].pop("finalizers", None)
    if kept:
        document["metadata"]["finalizers"] = kept
