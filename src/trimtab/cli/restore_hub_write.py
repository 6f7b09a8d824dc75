"""Brings a resource of the hub back through the API: versions in their order, files by their digests, lineage.

What takes several writes is marked until the last of them, so that a restore that was cut off is gone on with. Each write is
of the whole resource, on condition that nobody wrote in between: what was published must be published again to the letter.
A resource that can be suspended is, until everything else is there: a sync must not act on what is half restored.
"""

from __future__ import annotations

from collections.abc import Mapping

import orjson

from trimtab.cli.access import Session
from trimtab.cli.codes import Problem
from trimtab.cli.restore_hub_plan import Spec, draft, stages
from trimtab.cli.restore_plan import RESTORING, Document, Name
from trimtab.client.artifacts import artifact_path, upload
from trimtab.client.discovery import ApiResource
from trimtab.client.protocol import Named
from trimtab.client.transport import Call, document_of
from trimtab.hub.artifacts.digests import digests, files_in
from trimtab.hub.offline import Kept
from trimtab.model.errors import StatusError
from trimtab.storage.blobs import BlobError, Blobs, parse_digest

MANAGER = "trimtab-restore"
ATTEMPTS = 20
"""How often another writer may come between a read and a write of ours."""


class Bringing:
    """One resource. `sent` is its document as it is to be, `published` the versions that the server has of it."""

    def __init__(
        self,
        server: Session,
        resource: ApiResource,
        kept: Kept,
        sent: Document,
        *,
        published: Mapping[str, Spec],
        blobs: Blobs,
        lineage: bool,
    ) -> None:
        self._server = server
        self._resource = resource
        self._kept = kept
        self._sent = sent
        self._blobs = blobs
        self._stages = stages(kept, published)
        self._query = {"fieldManager": MANAGER, "fieldValidation": "Ignore"}
        self._lineage = {"includeLineage": "true"} if lineage else {}
        metadata = sent["metadata"]
        self.name = Name(resource.api_version, resource.kind, metadata.get("namespace", ""), metadata["name"])
        self.held = kept.suspends and not sent["spec"].get("suspend")
        """Whether it waits for `release`."""

    async def run(self) -> Document:
        """The resource as it is then."""
        for spec in self._stages[:-1]:
            await self._stage(spec, marked=True)
        return await self._stage(self._stages[-1], marked=self.held)

    async def release(self) -> None:
        """Let whoever acts on it begin."""
        await self._write(self._stages[-1], marked=False)

    async def _stage(self, spec: Spec, *, marked: bool) -> Document:
        wanted = digests({"spec": spec}, self._kept.files)
        names = {file["name"] for file in files_in({"spec": spec}, self._kept.files)}
        live = await self._live()
        had = {} if live is None else digests(live, self._kept.files)
        if {name: had[name] for name in names if name in had} != wanted:
            drafted = await self._write(self._suspended(draft(spec)), marked=True)
            had = digests(drafted, self._kept.files)
            for name in sorted(names):
                if had.get(name) != wanted.get(name):
                    await self._file(name, wanted.get(name))
        return await self._write(self._suspended(spec), marked=marked)

    def _suspended(self, spec: Spec) -> Spec:
        return {**spec, "suspend": True} if self.held else spec

    async def _file(self, name: str, digest: str | None) -> None:
        """None: as it was published, nobody had given its bytes."""
        kind, client = Named(self.name.api_version, self.name.kind), self._server.client
        if digest is None:
            path = await artifact_path(client, kind, self.name.name, name, namespace=self.name.namespace)
            await self._server.transport.call(Call(method="DELETE", path=path))
            return
        try:
            found = parse_digest(digest)
            size = (await self._blobs.stat(found)).size
            data = self._blobs.open(found)
            await upload(
                client, kind, self.name.name, name, data, namespace=self.name.namespace, size=size, expected=digest
            )
        except (BlobError, OSError) as error:
            raise Problem(f'its file "{name}" cannot be brought back: {error}') from None

    async def _write(self, spec: Spec, *, marked: bool) -> Document:
        """Create it, or replace what is there now."""
        collection = self._resource.place.path(self.name.namespace, "").rstrip("/")
        for _ in range(ATTEMPTS):
            live = await self._live()
            document = self._document(spec, live, marked)
            call = Call(
                method="POST" if live is None else "PUT",
                path=collection if live is None else self._path,
                query={**self._query, **self._lineage},
                body=orjson.dumps(document),
                content_type="application/json",
            )
            try:
                return document_of((await self._server.transport.call(call)).body)
            except StatusError as error:
                if error.reason not in ("Conflict", "AlreadyExists"):
                    raise
        raise Problem("others keep changing it: try again")

    def _document(self, spec: Spec, live: Document | None, marked: bool) -> Document:
        metadata = dict(self._sent["metadata"])
        if marked:
            uid = self._kept.document["metadata"]["uid"]
            metadata["annotations"] = {**(metadata.get("annotations") or {}), RESTORING: uid}
        if live is not None:
            there = live["metadata"]
            metadata |= {"uid": there["uid"], "resourceVersion": there["resourceVersion"]}
            finalizers = dict.fromkeys([*(there.get("finalizers") or ()), *(metadata.get("finalizers") or ())])
            metadata["finalizers"] = list(finalizers)
            if there.get("ownerReferences"):
                metadata.setdefault("ownerReferences", there["ownerReferences"])
        return {**self._sent, "metadata": metadata, "spec": spec}

    async def _live(self) -> Document | None:
        try:
            return await self._server.read(self._path, **self._lineage)
        except StatusError as error:
            if error.code != 404:
                raise
            return None

    @property
    def _path(self) -> str:
        return self._resource.place.path(self.name.namespace, self.name.name)
