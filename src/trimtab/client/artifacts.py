"""Files of objects, between the server and the disk, in pieces: `…/<name>/artifacts/<path>`.

Guarantees, both ways: the file is there whole or not at all; at most one piece of it is in memory, where the transport can
carry it in pieces; what is not what the digest names is not kept.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import os
import secrets
from collections.abc import AsyncGenerator, AsyncIterable
from pathlib import Path
from typing import IO, Protocol, runtime_checkable
from urllib.parse import quote

import msgspec

from trimtab.client.api import ApiClient
from trimtab.client.bodies import Body, BodyFailed
from trimtab.client.protocol import AnyKind
from trimtab.client.transport import Call, Reply, Transport, document_of
from trimtab.model.errors import StatusError, too_large

MAX_BYTES = 256 * 1024 * 1024


@runtime_checkable
class InPieces(Protocol):
    """A transport that hands an answer over as it comes."""

    def chunks(self, call: Call, inactivity: float) -> AsyncGenerator[bytes, None]: ...


@runtime_checkable
class Uploading(Protocol):
    """A transport that sends a body as it is read."""

    async def upload(self, call: Call, body: Body) -> Reply: ...


class Artifact(msgspec.Struct, frozen=True, kw_only=True):
    """A file as the server shows it: without a digest its bytes were not given yet."""

    path: str
    sensitive: bool = False
    digest: str = ""
    size: int | None = None


async def artifacts(
    client: ApiClient, kind: AnyKind, name: str, *, namespace: str = "", version: str = ""
) -> tuple[Artifact, ...]:
    """The files of an object. `version`: of that published version."""
    place = await client.place(kind)
    where = place.path(namespace or client.namespace, name, "artifacts")
    reply = await client.transport.call(Call(method="GET", path=where, query={"version": version} if version else {}))
    try:
        return msgspec.convert(document_of(reply.body).get("items", []), tuple[Artifact, ...])
    except msgspec.ValidationError as error:
        raise StatusError(500, "InternalError", f"the server's list of files cannot be read: {error}", {}) from None


async def artifact_path(client: ApiClient, kind: AnyKind, name: str, path: str, *, namespace: str = "") -> str:
    """Where a file of an object is. `path` is relative to the object, as its spec has it."""
    place = await client.place(kind)
    return f"{place.path(namespace or client.namespace, name, 'artifacts')}/{quote(path, safe='/')}"


async def download(
    client: ApiClient,
    kind: AnyKind,
    name: str,
    path: str,
    to: Path,
    *,
    namespace: str = "",
    version: str = "",
    expected: str = "",
    max_bytes: int = MAX_BYTES,
) -> str:
    """Write a file of an object to the disk; returns its digest. `version`: as that published version has it.

    StatusError: what the server says; 413 over `max_bytes`; 500 when it is not `expected` (`sha256:…`)."""
    where = await artifact_path(client, kind, name, path, namespace=namespace)
    call = Call(method="GET", path=where, query={"version": version} if version else {}, accept="*/*")
    part = to.with_name(f".{to.name}.{secrets.token_hex(4)}")
    found, size = hashlib.sha256(), 0
    try:
        with _opened(part) as file:
            async with contextlib.aclosing(_pieces(client.transport, call, client.inactivity)) as pieces:
                async for piece in pieces:
                    size += len(piece)
                    if size > max_bytes:
                        raise too_large(f"{path} has more than {max_bytes} bytes")
                    found.update(piece)
                    await asyncio.to_thread(file.write, piece)
        digest = f"sha256:{found.hexdigest()}"
        if expected and digest != expected:
            raise StatusError(500, "InternalError", f"{path}: the server sent other bytes than {expected}", {})
        part.replace(to)
        return digest
    finally:
        part.unlink(missing_ok=True)


async def upload(
    client: ApiClient,
    kind: AnyKind,
    name: str,
    path: str,
    source: Path | AsyncIterable[bytes],
    *,
    namespace: str = "",
    size: int | None = None,
    expected: str = "",
    max_bytes: int = MAX_BYTES,
) -> str:
    """Give the bytes of a file of an object, from the disk or from an iterator (of `size` bytes, if that is known); returns
    their digest.

    StatusError: what the server says; 413 over `max_bytes`, before anything is sent where the size is known; 400 when they
    are not `expected`. OSError: the source cannot be read; then the object is as it was."""
    try:
        body = Body(source, size, limit=max_bytes)
        where = await artifact_path(client, kind, name, path, namespace=namespace)
        call = Call(
            method="PUT",
            path=where,
            query={"digest": expected} if expected else {},
            content_type="application/octet-stream",
        )
        reply = await _uploaded(client.transport, call, body)
    except BodyFailed as error:
        raise OSError(str(error)) from error
    answer = document_of(reply.body)
    if answer.get("digest") != body.digest:
        raise StatusError(500, "InternalError", f"{path}: the server kept other bytes than were sent", {})
    return body.digest


async def _uploaded(transport: Transport, call: Call, body: Body) -> Reply:
    if isinstance(transport, Uploading):
        return await transport.upload(call, body)
    data = bytearray()
    async with contextlib.aclosing(body.pieces()) as pieces:
        async for piece in pieces:
            data += piece
    return await transport.call(msgspec.structs.replace(call, body=bytes(data)))


def _opened(path: Path) -> IO[bytes]:
    """New, and only ours to read: what is in it may be a secret."""
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "wb")


async def _pieces(transport: Transport, call: Call, inactivity: float) -> AsyncGenerator[bytes, None]:
    if not isinstance(transport, InPieces):
        yield (await transport.call(call)).body
        return
    async with contextlib.aclosing(transport.chunks(call, inactivity)) as chunks:
        async for chunk in chunks:
            yield chunk
