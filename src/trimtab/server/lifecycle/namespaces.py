"""Namespaces: nothing is created in one that is absent or ending; one that ends is emptied first; each has what clients
expect to find in it (the `default` service account, the CA as `kube-root-ca.crt`)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import aclosing
from functools import partial
from typing import TYPE_CHECKING, Any

import orjson

from trimtab.model.errors import StatusError, forbidden, not_found
from trimtab.model.kind import Kind
from trimtab.model.logs import log
from trimtab.server.options import DeleteOptions
from trimtab.server.registry import Served
from trimtab.store.contract import Entry, Gone, Key, Op, Query, StoreError

if TYPE_CHECKING:
    from trimtab.server.core import Server

SYSTEM = ("default", "kube-system", "kube-public", "kube-node-lease")
UNDELETABLE = ("default", "kube-system", "kube-public")
FURNITURE = (("serviceaccounts", "default"), ("configmaps", "kube-root-ca.crt"))
BACKGROUND = DeleteOptions(propagation="Background")
"""What goes with its namespace leaves nothing behind, whatever its kind does otherwise."""
RETRY = 1.0


class Namespaces:
    """The life cycle of namespaces, and the check that writes in them make."""

    def __init__(self, server: Server, ca: str = "") -> None:
        self._server = server
        self._ca = ca
        self._tasks: dict[str, asyncio.Task[None]] = {}

    @property
    def _served(self) -> Served:
        served = self._server.registry.find("", "v1", "namespaces")
        assert served is not None  # noqa: S101 - a built-in kind
        return served

    async def check_create(self, kind: Kind, namespace: str, name: str) -> None:
        """Refuse to create in a namespace that is not there, or is going."""
        if not kind.namespaced:
            return
        entry = await self._server.store.get(Key("namespaces", "", namespace))
        if entry is None:
            raise not_found("namespaces", "", namespace)
        if b'"deletionTimestamp"' in entry.value and entry.fields.get("status.phase") == "Terminating":
            why = f"unable to create new content in namespace {namespace} because it is being terminated"
            error = forbidden(kind.plural, kind.group, name, why)
            message = f"namespace {namespace} is being terminated"
            causes = [{"reason": "NamespaceTerminating", "message": message, "field": "metadata.namespace"}]
            error.details = {**(error.details or {}), "causes": causes}
            raise error

    async def check_delete(self, kind: Kind, name: str) -> None:
        if kind.kind == "Namespace" and not kind.group and name in UNDELETABLE:
            raise forbidden("namespaces", "", name, "this namespace may not be deleted")

    async def run(self) -> None:
        """Keep namespaces as they should be, until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._again(self._follow))
            for resource, name in FURNITURE:
                tasks.create_task(self._again(partial(self._follow_furniture, resource, name)))

    async def _again(self, follow: Callable[[], Awaitable[None]]) -> None:
        while True:
            try:
                await follow()
            except Gone:
                continue  # changes were missed: look at all of them again
            except StoreError as error:
                log.warning("namespaces cannot be followed now", error=str(error))
                await self._server.clock.sleep(RETRY)

    async def _follow_furniture(self, resource: str, name: str) -> None:
        """What every namespace has is made anew when someone deletes it."""
        store = self._server.store
        async with aclosing(store.watch(Query(resource=resource), store.revision)) as batches:
            async for batch in batches:
                for change in batch.changes:
                    if change.op is Op.DELETE and change.entry.key.name == name:
                        namespace = await store.get(Key("namespaces", "", change.entry.key.namespace))
                        if namespace is not None:
                            self._start(namespace)

    async def _follow(self) -> None:
        page = await self._server.store.list(Query(resource="namespaces"))
        for entry in page.entries:
            self._start(entry)
        async with aclosing(self._server.store.watch(Query(resource="namespaces"), page.revision)) as batches:
            async for batch in batches:
                for change in batch.changes:
                    if change.op is Op.PUT:
                        self._start(change.entry)

    def _start(self, entry: Entry) -> None:
        name = entry.key.name
        running = self._tasks.get(name)
        if running is not None and not running.done():
            if b'"deletionTimestamp"' not in entry.value:
                return
            running.cancel()
        task = self._tasks[name] = self._server.spawn(
            self._server.insist(partial(self._reconcile, name), f"namespace {name}"), f"namespace {name}"
        )
        task.add_done_callback(lambda done: self._ended(name, done))

    def _ended(self, name: str, task: asyncio.Task[None]) -> None:
        if self._tasks.get(name) is task:
            del self._tasks[name]

    async def _reconcile(self, name: str) -> None:
        entry = await self._server.store.get(Key("namespaces", "", name))
        if entry is None:
            return
        namespace = self._served.decode(entry)
        if not namespace["metadata"].get("deletionTimestamp"):
            await self._furnish(name)
        elif (namespace.get("spec") or {}).get("finalizers"):
            await self._empty(name)

    async def _furnish(self, name: str) -> None:
        account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default", "namespace": name}}
        await self._server.acts.ensure(account)
        if self._ca:
            about = "kubernetes.io/description"
            text = "The CA that signs this server's certificate, for clients that run in this namespace."
            bundle = {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": {"name": "kube-root-ca.crt", "namespace": name, "annotations": {about: text}},
                "data": {"ca.crt": self._ca},
            }
            await self._server.acts.ensure(bundle)

    async def _empty(self, name: str) -> None:
        """Delete everything in the namespace, then let it go. Says in conditions what it waits for."""
        while True:
            remaining = await self._delete_content(name)
            elsewhere, unknown = await self._server.aggregator.empty(name)
            remaining |= elsewhere
            if not remaining and not unknown:
                break
            await self._report(name, remaining, unknown)
            await self._server.clock.sleep(RETRY)
        if await self._held_by_others(name):
            await self._report(name, {})
        await self._finish(name)

    async def _held_by_others(self, name: str) -> bool:
        entry = await self._server.store.get(Key("namespaces", "", name))
        spec = self._served.decode(entry).get("spec") or {} if entry is not None else {}
        return any(finalizer != "kubernetes" for finalizer in spec.get("finalizers") or ())

    async def _delete_content(self, name: str) -> dict[str, list[Entry]]:
        remaining: dict[str, list[Entry]] = {}
        for served in self._server.registry.storages().values():
            if not served.kind.namespaced or "delete" not in self._server.verbs(served):
                continue
            query = Query(resource=served.strategy.storage, namespace=name)
            for entry in (await served.source.list(query)).entries:
                try:
                    await self._server.acts.remove(served, name, entry.key.name, BACKGROUND)
                except StatusError as error:
                    if error.code != 404:
                        raise
            left = (await served.source.list(query)).entries
            if left:
                remaining[served.kind.resource] = left
        return remaining

    async def _report(self, name: str, remaining: dict[str, list[Entry]], unknown: Sequence[str] = ()) -> None:
        """What the real server's namespace controller says, in its conditions."""
        wanted = _conditions(remaining, unknown)
        now = self._server.timestamp()

        def change(namespace: dict[str, Any]) -> None:
            status = namespace.setdefault("status", {})
            known = {condition["type"]: condition for condition in status.get("conditions") or ()}
            for condition in wanted:
                old = known.get(condition["type"], {})
                since = old["lastTransitionTime"] if old.get("status") == condition["status"] else now
                known[condition["type"]] = {**condition, "lastTransitionTime": since}
            status["conditions"] = list(known.values())

        await self._server.acts.modify(self._served, "", name, change, "status")

    async def _finish(self, name: str) -> None:
        def change(namespace: dict[str, Any]) -> None:
            finalizers = [f for f in namespace["spec"].get("finalizers") or () if f != "kubernetes"]
            namespace["spec"] = {"finalizers": finalizers} if finalizers else {}

        await self._server.acts.modify(self._served, "", name, change)


def _conditions(remaining: dict[str, list[Entry]], unknown: Sequence[str]) -> list[dict[str, str]]:
    stale = ", ".join(f"{group}: stale GroupVersion discovery: {group}" for group in unknown)
    undiscovered = f"Discovery failed for some groups, {len(unknown)} failing: unable to retrieve the complete list of "
    undiscovered += f"server APIs: {stale}"
    kinds = ", ".join(f"{kind} has {len(entries)} resource instances" for kind, entries in sorted(remaining.items()))
    finalizers: dict[str, int] = {}
    for entries in remaining.values():
        for entry in entries:
            for finalizer in orjson.loads(entry.value)["metadata"].get("finalizers") or ():
                finalizers[finalizer] = finalizers.get(finalizer, 0) + 1
    held = ", ".join(f"{name} in {count} resource instances" for name, count in sorted(finalizers.items()))
    return [
        _condition(
            "NamespaceDeletionDiscoveryFailure",
            undiscovered if unknown else "",
            "DiscoveryFailed" if unknown else "ResourcesDiscovered",
            "All resources successfully discovered",
        ),
        _condition(
            "NamespaceDeletionGroupVersionParsingFailure",
            "",
            "ParsedGroupVersions",
            "All legacy kube types successfully parsed",
        ),
        _condition(
            "NamespaceDeletionContentFailure",
            "",
            "ContentDeleted",
            "All content successfully deleted, may be waiting on finalization",
        ),
        _condition(
            "NamespaceContentRemaining",
            kinds and f"Some resources are remaining: {kinds}",
            "SomeResourcesRemain" if kinds else "ContentRemoved",
            "All content successfully removed",
        ),
        _condition(
            "NamespaceFinalizersRemaining",
            held and f"Some content in the namespace has finalizers remaining: {held}",
            "SomeFinalizersRemain" if held else "ContentHasNoFinalizers",
            "All content-preserving finalizers finished",
        ),
    ]


def _condition(kind: str, problem: str, reason: str, well: str) -> dict[str, str]:
    """True when there is a problem."""
    return {"type": kind, "status": "True" if problem else "False", "reason": reason, "message": problem or well}
