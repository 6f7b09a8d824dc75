"""`…/<name>/artifacts`: the files of one resource, listed, streamed out, streamed in, removed.

Flow of a PUT: path → the spec names it → bytes to blobs → pin for the object's uid → digest into the spec by an ordinary
update, tried again when somebody else was faster → let go of the bytes that were there before.

Guarantees: bytes are never whole in memory. What is cut off, too large, or not recorded leaves nothing behind. A digest in a
spec, or in a published version of it, is always pinned, whoever writes at the same time: who records pins again afterwards,
and who lets go looks again afterwards.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import TYPE_CHECKING, Any

import orjson

from trimtab.hub.artifacts.digests import FilePaths, digests, files_in, set_digest
from trimtab.hub.artifacts.paths import checked_path
from trimtab.hub.contract import HubError
from trimtab.hub.storage.contract import StorageUnavailable
from trimtab.model.errors import (
    StatusError,
    bad_request,
    conflict,
    internal,
    method_not_supported,
    not_found,
    too_large,
)
from trimtab.model.logs import log
from trimtab.server import writes
from trimtab.server.backend import VersionedBackend
from trimtab.server.http import Answer, Request, Response, Stream, json_response
from trimtab.server.registry import Served
from trimtab.server.streaming import Cut
from trimtab.server.target import Target
from trimtab.storage.blobs import (
    BlobDamaged,
    BlobError,
    BlobMissing,
    Blobs,
    BlobsUnavailable,
    BlobTooLarge,
    Digest,
    parse_digest,
)

if TYPE_CHECKING:
    from trimtab.server.core import Server

Document = dict[str, Any]

MAX_ARTIFACT = 256 * 1024 * 1024
ATTEMPTS = 20
LISTED = 64  # sizes that are asked for at once
MEDIA = b"application/octet-stream"
SAFE = ((b"x-content-type-options", b"nosniff"), (b"content-disposition", b"attachment"))
"""What people upload is no page of ours."""


class Artifacts:
    """The files of one kind. `published` tells the digests that published versions of an object name, if it has such."""

    def __init__(
        self,
        server: Server,
        blobs: Blobs,
        files: FilePaths,
        *,
        published: Callable[[Target], Awaitable[set[str]]] | None = None,
        limit: int = MAX_ARTIFACT,
    ) -> None:
        self._server = server
        self._blobs = blobs
        self._files = files
        self._published = published
        self._limit = limit

    async def __call__(self, request: Request, served: Served, target: Target, verb: str) -> Answer:
        if not target.inner:
            if verb != "get":
                raise method_not_supported(served.kind.plural, served.kind.group, verb)
            return await self._list(request, served, target)
        path = checked_path(target.inner)
        if "dryRun" in request.query:
            raise bad_request("dryRun: artifacts cannot be written to see what would be")
        if verb != "get" and request.query.get("version"):
            raise bad_request("version: what is published never changes; write without it")
        if verb == "get":
            return await self._get(request, served, target, path)
        if verb == "update":
            return await self._put(request, served, target, path)
        if verb == "delete":
            return await self._delete(request, served, target, path)
        raise method_not_supported(served.kind.plural, served.kind.group, verb)

    async def _list(self, request: Request, served: Served, target: Target) -> Response:
        document = await self._read(request, served, target)
        unique = {file["name"]: file for file in files_in(document, self._files)}
        turns = asyncio.Semaphore(LISTED)

        async def shown(file: Document) -> Document:
            async with turns:
                return await self._shown(file)

        items = await asyncio.gather(*(shown(unique[name]) for name in sorted(unique)))
        metadata = {"resourceVersion": document["metadata"].get("resourceVersion", "")}
        head = {"kind": "ArtifactList", "apiVersion": served.kind.api_version, "metadata": metadata}
        return json_response({**head, "items": items})

    async def _shown(self, file: Document) -> Document:
        shown: Document = {"path": file["name"], "sensitive": bool(file.get("sensitive"))}
        if digest := file.get("digest"):
            shown["digest"] = digest
            try:
                shown["size"] = (await self._blobs.stat(parse_digest(digest))).size
            except (BlobMissing, ValueError):
                pass  # it has none to show; who asks for the bytes is told why
            except BlobError as error:
                raise _unavailable(error) from None
        return shown

    async def _get(self, request: Request, served: Served, target: Target, path: str) -> Answer:
        document = await self._read(request, served, target)
        digest = self._file(served, target, document, path).get("digest")
        if not digest:
            why = f'the bytes of "{path}" were not given yet: PUT them to this address'
            raise StatusError(404, "NotFound", why, {"name": target.name, "kind": served.kind.plural})
        tag = f'"{digest}"'.encode()
        if request.headers.get(b"if-none-match") == tag:
            return Response(code=304, headers=((b"etag", tag),))
        try:
            known = parse_digest(digest)
            size = (await self._blobs.stat(known)).size
        except (BlobMissing, ValueError):
            log.error("the bytes of an artifact are gone", kind=served.kind.kind, name=target.name, path=path)
            raise internal(f'the bytes of "{path}" are gone: PUT them again') from None
        except BlobError as error:
            raise _unavailable(error) from None
        return Stream(frames=self._bytes(known), media=MEDIA, length=size, headers=((b"etag", tag), *SAFE))

    async def _bytes(self, digest: Digest) -> AsyncIterator[bytes]:
        """The last piece waits until all are known to be right: what is damaged must not look whole."""
        last = b""
        try:
            async for piece in self._blobs.open(digest):
                if last and piece:
                    yield last
                last = piece or last
            if last:
                yield last
        except BlobError as error:
            log.error("an artifact could not be sent to its end", digest=digest, error=str(error))
            raise ConnectionError("the bytes ended too early") from error  # the reader must not take it for whole

    async def _put(self, request: Request, served: Served, target: Target, path: str) -> Response:
        _, document = await served.load(target.namespace, target.name)
        self._file(served, target, document, path)
        uid = document["metadata"]["uid"]
        digest = await self._stored(request)
        await self._pin(digest, uid)
        try:
            changed, before = await self._record(request, served, target, path, digest, uid)
        except BaseException:
            await self._let_go_of(served, target, uid, {digest})
            raise
        await self._pin(digest, uid)
        await self._let_go_of(served, target, uid, {digest, *before})
        shown = await self._shown(self._file(served, target, changed, path))
        generation = changed["metadata"].get("generation")
        revision = changed["metadata"].get("resourceVersion", "")
        head = {"kind": "Artifact", "apiVersion": served.kind.api_version}
        return json_response({**head, "metadata": {"resourceVersion": revision, "generation": generation}, **shown})

    async def _stored(self, request: Request) -> Digest:
        """The bytes of a request, as a blob."""
        length = request.stream.length if request.stream is not None else len(request.body)
        if length is not None and length > self._limit:
            raise _over(self._limit)
        try:
            expected = parse_digest(request.query["digest"]) if request.query.get("digest") else None
            data = aiter(request.stream) if request.stream is not None else request.body
            return await self._blobs.put(data, expected=expected, max_bytes=self._limit)
        except ValueError as error:
            raise bad_request(f"digest: {error}") from None
        except Cut as error:
            raise bad_request(f"{error}; nothing was kept") from None
        except BlobTooLarge:
            raise _over(self._limit) from None
        except BlobDamaged:
            raise bad_request("digest: the bytes that came are others; nothing was kept") from None
        except BlobError as error:
            raise _unavailable(error) from None

    async def _pin(self, digest: Digest, uid: str) -> None:
        try:
            await self._blobs.pin(digest, owner(uid))
        except BlobError as error:
            raise _unavailable(error) from None

    async def _delete(self, request: Request, served: Served, target: Target, path: str) -> Response:
        _, document = await served.load(target.namespace, target.name)
        self._file(served, target, document, path)
        uid = document["metadata"]["uid"]
        _, before = await self._record(request, served, target, path, None, uid)
        await self._let_go_of(served, target, uid, before)
        details = {"name": target.name, "group": served.kind.group, "kind": served.kind.plural, "uid": uid}
        status = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details}
        return json_response(status)

    async def _record(
        self, request: Request, served: Served, target: Target, path: str, digest: Digest | None, uid: str
    ) -> tuple[Document, set[str]]:
        """Write a digest into the spec. Returns the object, and the digests that it had under this name before."""
        for _ in range(ATTEMPTS):
            _, live = await served.load(target.namespace, target.name)
            if live["metadata"]["uid"] != uid:
                why = "the object was deleted and made anew meanwhile; nothing was kept"
                raise conflict(served.kind.plural, served.kind.group, target.name, why)
            known = self._file(served, target, live, path).get("digest")
            before = {known} if known else set()
            changed: Document = orjson.loads(orjson.dumps(live))
            set_digest(changed, self._files, path, digest)
            if changed == live:
                return live, before
            try:
                response = await writes.update(self._server, _update(request, changed), served, target)
            except StatusError as error:
                if error.reason != "Conflict":
                    raise
                continue
            return orjson.loads(response.body), before
        why = "the object keeps changing; try again"
        raise conflict(served.kind.plural, served.kind.group, target.name, why)

    async def _let_go_of(self, served: Served, target: Target, uid: str, known: set[str]) -> None:
        """Unpin what nobody names; and pin it again when somebody does, after all."""
        try:
            unnamed = known - await self._named(served, target, uid) if known else set()
            for digest in unnamed:
                await self._blobs.unpin(owner(uid), parse_digest(digest))
            for digest in unnamed & await self._named(served, target, uid) if unnamed else ():
                await self._blobs.pin(parse_digest(digest), owner(uid))
        except (StatusError, BlobError, HubError, StorageUnavailable) as error:
            log.warning("bytes that nobody names may stay pinned", uid=uid, error=str(error))

    async def _named(self, served: Served, target: Target, uid: str) -> set[str]:
        """Every digest that the object and its published versions name now; none when it is gone, or another by now."""
        try:
            _, live = await served.load(target.namespace, target.name)
        except StatusError as error:
            if error.code != 404:
                raise
            return set()
        if live["metadata"]["uid"] != uid:
            return set()
        named = set(digests(live, self._files).values())
        return named | await self._published(target) if self._published is not None else named

    async def _read(self, request: Request, served: Served, target: Target) -> Document:
        """The object, or one of its published versions."""
        version = request.query.get("version", "")
        if version and isinstance(served.backend, VersionedBackend):
            entry = await served.backend.published(served.key(target.namespace, target.name), version)
            if entry is None:
                raise not_found(served.kind.plural, served.kind.group, target.name)
            return served.decode(entry)
        return (await served.load(target.namespace, target.name))[1]

    def _file(self, served: Served, target: Target, document: Document, path: str) -> Document:
        found = files_in(document, self._files)
        for file in found:
            if file["name"] == path:
                return file
        named = ", ".join(sorted({file["name"] for file in found})[:50]) or "none"
        why = f'the spec of {served.kind.plural} "{target.name}" names no file "{path}"; it names: {named}'
        details = {"name": target.name, "group": served.kind.group, "kind": served.kind.plural}
        raise StatusError(404, "NotFound", why, details)


def owner(uid: str) -> str:
    """For whom an object's bytes are pinned."""
    return f"hub/artifacts/{uid}"


def _update(request: Request, document: Document) -> Request:
    """The write of the object that a write of a file means."""
    kept = {name: request.query[name] for name in ("fieldManager",) if name in request.query}
    headers = {b"content-type": b"application/json", b"user-agent": request.headers.get(b"user-agent", b"")}
    return Request(
        method="PUT",
        path=request.path,
        query=kept,
        headers=headers,
        body=orjson.dumps(document),
        user=request.user,
        warnings=request.warnings,
    )


def _over(limit: int) -> StatusError:
    return too_large(f"an artifact may have at most {limit} bytes")


def _unavailable(error: BlobError) -> StatusError:
    if isinstance(error, BlobsUnavailable):
        why = f"the place for artifacts cannot be used now: {error}"
        return StatusError(503, "ServiceUnavailable", why, {"retryAfterSeconds": 5})
    return internal(str(error))
