"""`trimtab restore --server`: objects of a backup are brought back to a running server, through its API.

First the plan, which only reads; with --yes it is carried out. What is missing is created, then its status is written; where
an object on the server says something else, that is told, and with --overwrite the archive's fields are applied by force.
Nothing is ever deleted. It may be repeated: what an interrupted restore brought back is then unchanged. Objects get new
uids, creation times and revisions; owner references are written anew. Rights, admission and quotas apply as to any client.

Resources of the hub come from its own storage in the archive (`restore_hub_read`), with their published versions and files
(`restore_hub_write`). Syncs with Git are suspended until everything is there, blobs too.
"""

from __future__ import annotations

import asyncio
import contextlib
import tempfile
from collections import Counter
from pathlib import Path

import msgspec
import orjson

from trimtab.cli.access import Access, Session, session
from trimtab.cli.apply import wait_until_served
from trimtab.cli.backup import room, unpacked
from trimtab.cli.backup_archive import HUB, STORE, Manifest, opened
from trimtab.cli.bar import Bar
from trimtab.cli.blobs import Place
from trimtab.cli.codes import FAILED, OK, Problem, complain, plain, run, told
from trimtab.cli.manifests import Manifest as Manifested
from trimtab.cli.restore_blobs import brought
from trimtab.cli.restore_hub_look import Seen, look
from trimtab.cli.restore_hub_read import Part, hub_part
from trimtab.cli.restore_hub_write import MANAGER, Bringing
from trimtab.cli.restore_plan import (
    FIRST,
    Act,
    Document,
    Name,
    Step,
    address_of,
    differs,
    name_of,
    owner_elsewhere,
    plan,
    to_write,
    without_address,
)
from trimtab.client.api import APPLY
from trimtab.client.discovery import ApiResource, Catalogue
from trimtab.client.protocol import Named, Query
from trimtab.client.transport import Call, document_of
from trimtab.model.errors import StatusError
from trimtab.store.contract import Unusable
from trimtab.store.snapshot import check, snapshot

SHOWN = (Act.CREATE, Act.OVERWRITE, Act.CONFLICT, Act.LOST)
AT_ONCE = 8
OWN_STATUS = ("Namespace", "CustomResourceDefinition")
"""Their status is the server's own work."""


class Options(msgspec.Struct, frozen=True, kw_only=True):
    yes: bool = False
    overwrite: bool = False
    blobs: Place = Place()
    operators: tuple[Path, ...] = ()
    """Files with further kinds of the hub, of which the archive has resources."""
    protos: tuple[str, ...] = ()


def online(path: Path, access: Access, options: Options) -> int:
    return run(_online(path, access, options))


async def _online(path: Path, access: Access, options: Options) -> int:
    with tempfile.TemporaryDirectory(prefix="trimtab-restore-") as folder:
        try:
            manifest, archived = await asyncio.to_thread(_archived, path, Path(folder))
            async with hub_part(Path(folder), options.operators, options.protos) as hub, session(access) as server:
                return await _restored(path, manifest, archived, hub, server, access, options)
        except Unusable as error:
            raise Problem(f"{path}: {error}") from None


async def _restored(
    path: Path,
    manifest: Manifest,
    archived: list[Document],
    hub: Part,
    server: Session,
    access: Access,
    options: Options,
) -> int:
    seen = await look(server, hub)
    steps, live = await _planned(server, archived, hub, seen, options)
    _show(steps, manifest, hub, seen)
    if not options.yes:
        print("nothing was changed; --yes does it")
        return OK
    restore = _Restore(server, steps, live, hub, seen)
    with Bar("restore") as bar:
        await restore.run(bar)
    whole = await brought(path, manifest, access, options.blobs, restore.uids)
    await restore.release(whole)
    done = Counter(restore.done)
    print(f"{done[Act.CREATE]} created, {done[Act.OVERWRITE]} overwritten, {len(restore.failed)} failed")
    left = any(step.act in (Act.CONFLICT, Act.LOST) for step in steps) or any(each.damaged for each in hub.untold)
    return OK if whole and not restore.failed and not left else FAILED


def _archived(path: Path, folder: Path) -> tuple[Manifest, list[Document]]:
    with Bar("read") as bar, opened(path) as archive:
        manifest = archive.manifest
        room(folder, sum(member.size for member in manifest.members if member.name in (STORE, HUB)))
        for member in unpacked(archive, folder, bar, only=(STORE, HUB)):
            check(folder / member.name)
    with snapshot(folder / STORE) as store:
        documents = [orjson.loads(kept.value) for kept in store.objects()]
    return manifest, documents


async def _planned(
    server: Session, archived: list[Document], hub: Part, seen: Seen, options: Options
) -> tuple[list[Step], dict[Name, Document]]:
    catalogue = await server.catalogue()
    known = {(resource.api_version, resource.kind) for resource in catalogue} | set(_defined(archived))
    live: dict[Name, Document] = dict(seen.live)
    slots = asyncio.Semaphore(AT_ONCE)

    async def read(resource: ApiResource) -> None:
        async with slots:
            with contextlib.suppress(StatusError):  # not allowed or no longer there: a create says it again
                listing = await server.client.list(Named(resource.api_version, resource.kind), Query())
                for item in listing.items:
                    document = {**item.raw, "apiVersion": resource.api_version, "kind": resource.kind}
                    live[name_of(document)] = document

    wanted = {(each["apiVersion"], each["kind"]) for each in archived}
    kinds = [r for r in catalogue if "list" in r.verbs and (r.api_version, r.kind) in wanted]
    await asyncio.gather(*map(read, kinds))
    everything = [*archived, *(kept.document for kept in hub.kept.values())]
    return plan(everything, live, known=known, overwrite=options.overwrite, hub=seen.verdicts), live


def _defined(archived: list[Document]) -> list[tuple[str, str]]:
    """Kinds that definitions of the archive bring along."""
    return [
        (f"{each['spec']['group']}/{version['name']}", each["spec"]["names"]["kind"])
        for each in archived
        if each["kind"] == "CustomResourceDefinition" and not each["metadata"].get("deletionTimestamp")
        for version in each["spec"]["versions"]
        if version.get("served")
    ]


def _show(steps: list[Step], manifest: Manifest, hub: Part, seen: Seen) -> None:
    for step in steps:
        if step.act in SHOWN:
            print(plain(f"{step.act.value:<10} {step.name}" + (f": {step.why}" if step.why else "")))
    reasons = Counter(f"{step.name.kind}: {step.why}" for step in steps if step.act is Act.LEAVE)
    for reason, count in sorted(reasons.items()):
        print(plain(f"{Act.LEAVE.value:<10} {count} {reason}"))
    for untold in hub.untold:
        act = Act.LOST if untold.damaged else Act.LEAVE
        print(plain(f"{act.value:<10} {untold.count} {untold.what}: {untold.why}"))
    if not seen.lineage:
        print(f"{Act.LEAVE.value:<10} lineage: you may not see and write it (the verb lineage)")
    counts = Counter(step.act for step in steps)
    text = ", ".join(f"{counts[act]} {act.value}" for act in Act)
    print(f"backup of {plain(manifest.created)} at revision {manifest.revision}: {text}", flush=True)


class _Restore:
    """Carries out a plan. `uids` maps those of the archive to those on the server."""

    def __init__(self, server: Session, steps: list[Step], live: dict[Name, Document], hub: Part, seen: Seen) -> None:
        self._server = server
        self._steps = steps
        self._live = live
        self._addresses = {address for each in live.values() if (address := address_of(each))}
        self._hub = hub
        self._seen = seen
        self._held: list[Bringing] = []
        self.uids: dict[str, str] = {}
        self.done: list[Act] = []
        self.failed: list[Name] = []

    async def run(self, bar: Bar) -> None:
        definitions: list[Document] = []
        waited = False
        work = [step for step in self._steps if step.act not in (Act.LEAVE, Act.LOST)]
        for number, step in enumerate(work):
            if not waited and definitions and step.name.kind not in FIRST:
                await wait_until_served(self._server, [Manifested(each, "backup") for each in definitions])
                waited = True
            try:
                await self._one(step)
            except (StatusError, Problem) as error:
                self.failed.append(step.name)
                complain(f"{step.name}: {told(error)[1]}")
            else:
                if step.name.kind == "CustomResourceDefinition" and step.act is Act.CREATE:
                    definitions.append(step.document)
            bar.show(number + 1, len(work), "objects")

    async def _one(self, step: Step) -> None:
        present = self._live.get(step.name)
        document = step.document
        if step.act in (Act.CREATE, Act.OVERWRITE):
            resource = _resource(await self._server.catalogue(), step.name)
            sent = to_write(document, self._owners(document))
            if step.act is Act.OVERWRITE or address_of(sent) in self._addresses:
                sent = without_address(sent)
            if step.name in self._hub.kept:
                present = await self._bring(resource, step, sent)
            elif step.act is Act.CREATE:
                present = await self._create(resource, step, sent)
            else:
                present = await self._apply(resource, step, sent, "")
            if document.get("status") and step.name.kind not in OWN_STATUS:
                await self._status(resource, step)
            self.done.append(step.act)
        if present is not None and document["metadata"].get("uid"):
            self.uids[document["metadata"]["uid"]] = present["metadata"]["uid"]

    async def _bring(self, resource: ApiResource, step: Step, sent: Document) -> Document:
        assert self._hub.blobs is not None  # noqa: S101 - a part with resources has them
        bringing = Bringing(
            self._server,
            resource,
            self._hub.kept[step.name],
            sent,
            published=self._seen.published.get(step.name, {}),
            blobs=self._hub.blobs,
            lineage=self._seen.lineage,
        )
        brought = await bringing.run()
        if bringing.held:
            self._held.append(bringing)
        return brought

    async def release(self, whole: bool) -> None:
        """Those who were told to wait may begin, when all is there that they need."""
        for each in self._held:
            try:
                if not whole:
                    raise Problem("it stays suspended until blobs are there: restore again with --blobs")
                await each.release()
            except (StatusError, Problem) as error:
                self.failed.append(each.name)
                complain(f"{each.name}: {told(error)[1]}")

    def _owners(self, document: Document) -> dict[str, str]:
        namespace = document["metadata"].get("namespace", "")
        found = dict(self.uids)
        for one in document["metadata"].get("ownerReferences") or ():
            if one["uid"] not in found and (uid := owner_elsewhere(one, namespace, self._live)):
                found[one["uid"]] = uid
        return found

    async def _create(self, resource: ApiResource, step: Step, sent: Document) -> Document:
        path = resource.place.path(step.name.namespace, "")
        call = Call(
            method="POST", path=path.rstrip("/"), query={"fieldManager": MANAGER, "fieldValidation": "Ignore"},
            body=orjson.dumps(sent), content_type="application/json",
        )  # fmt: skip
        try:
            return await self._answer(call)
        except StatusError as error:
            if error.reason != "AlreadyExists":
                raise
            if step.name.kind == "Namespace":
                return await self._apply(resource, step, sent, "")  # its project has made it just now
            made = await self._server.read(resource.place.path(step.name.namespace, step.name.name))
            if differs(step.document, made):
                raise
            return made  # somebody else has made the same meanwhile

    async def _apply(self, resource: ApiResource, step: Step, sent: Document, sub: str) -> Document:
        path = resource.place.path(step.name.namespace, step.name.name)
        query = {"fieldManager": MANAGER, "force": "true", "fieldValidation": "Ignore"}
        call = Call(
            method="PATCH",
            path=f"{path}/{sub}" if sub else path,
            query=query,
            body=orjson.dumps(sent),
            content_type=APPLY,
        )
        return await self._answer(call)

    async def _status(self, resource: ApiResource, step: Step) -> None:
        """Kinds without a door for status take it with the rest, or have none."""
        document = step.document
        body = {"metadata": {}, "status": document["status"]}
        path = resource.place.path(step.name.namespace, step.name.name)
        call = Call(
            method="PATCH", path=f"{path}/status", query={"fieldManager": MANAGER}, body=orjson.dumps(body),
            content_type="application/merge-patch+json",
        )  # fmt: skip
        try:
            await self._answer(call)
        except StatusError as error:
            if error.code not in (404, 405):
                raise

    async def _answer(self, call: Call) -> Document:
        return document_of((await self._server.transport.call(call)).body)


def _resource(catalogue: Catalogue, name: Name) -> ApiResource:
    found = catalogue.kind(name.api_version, name.kind)
    if found is None:
        raise Problem("the server does not serve this kind")
    return found
