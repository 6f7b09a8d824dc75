"""The VEX statements of a namespace: all that its enabled VEXSources say, read within bounds.

`looked_up` finds what they are without reading much: contents of objects, and names of blobs. Its digest is the same as
long as the contents are, so a report that names it need not be made again. `read_source` reads one of them and says what
is in it, or what is wrong with it. `VexSources` has all of them compiled into a file of scratch that scans search.

A source that is broken counts as if it were not there, and its own status says so: one vendor's mistake must not keep
images from being scanned. But blobs that cannot be reached, or are damaged, are an error, for then nobody knows.

A repository may have hundreds of megabytes: give `workers`, and it is read in a process of its own.
"""

from __future__ import annotations

import base64
import binascii
import contextlib
import hashlib
import tempfile
from collections.abc import AsyncIterator, Callable, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

import msgspec
from msgspec import UnsetType

from trimtab.client.protocol import Client, Query
from trimtab.model.errors import StatusError
from trimtab.model.kubernetes import ConfigMap
from trimtab.runtime.workers import Workers
from trimtab.storage.blobs import BlobDamaged, BlobMissing, Blobs, BlobTooLarge, Digest, parse_digest
from trimtab.storage.scratch import Scratch
from trimtab.storage.threads import in_thread
from trimtab.systems.images import vex_store
from trimtab.systems.images.kinds import VEXSource
from trimtab.systems.images.vulnerabilities.openvex import LARGEST, VexDocument, VexError, parse
from trimtab.systems.images.vulnerabilities.sources import Limits, SourceError
from trimtab.systems.images.vulnerabilities.vex_repository import read_repository

LARGEST_BLOB = 256 << 20
LIMITS = Limits(file_bytes=LARGEST, files=100_000, total_bytes=384 << 20, directory_bytes=32 << 20)
MOST_SKIPPED, LONGEST = 20, 512
SCRATCH, SCRATCH_BYTES = "vex", 2 << 30
MEMORY, TIMEOUT = 1 << 30, 600.0
"""Of the process that reads."""


class SourceRead(msgspec.Struct, frozen=True, kw_only=True):
    """What a source has: the names of its documents, how many statements count, what was left out. `problem` says why
    nothing could be read at all; `digest` names the contents."""

    documents: tuple[str, ...] = ()
    statements: int = 0
    skipped: tuple[str, ...] = ()
    problem: str = ""
    digest: str = ""


class Found(msgspec.Struct, frozen=True, kw_only=True):
    """What a source has, before it is read: named texts, or a blob, or the problem that there is neither."""

    texts: dict[str, bytes] = {}
    blob: str = ""
    problem: str = ""

    @property
    def digest(self) -> str:
        """Of the contents, wherever they are from; empty when there are none."""
        parts = sorted(hashlib.sha256(text).hexdigest() for text in self.texts.values())
        return " ".join([*parts, self.blob]).strip()


class Statements(NamedTuple):
    """Those of a namespace. `path` is a file of `vex_store`, None when nobody says anything; `digest` names the contents."""

    path: Path | None
    digest: str


async def read_source(client: Client, blobs: Blobs, source: VEXSource, *, workers: Workers | None = None) -> SourceRead:
    """One source, enabled or not. BlobsUnavailable, StatusError and OSError when it cannot be asked."""
    found = await _found(client, blobs, source)
    try:
        async with _fetched(blobs, [found]) as parts:
            if workers is None:
                return await in_thread(describe, parts[0])
            return await workers.run(describe, parts[0], memory=MEMORY, timeout=TIMEOUT)
    except (BlobDamaged, BlobMissing) as error:
        return SourceRead(problem=_short(str(error)))


async def looked_up(client: Client, blobs: Blobs, namespace: str) -> tuple[str, Sequence[Found]]:
    """The digest of all that the enabled sources of a namespace have, empty for nothing; and what they have."""
    listed = await client.list(VEXSource, Query(namespace=namespace))
    found = [await _found(client, blobs, source) for source in listed.items if source.spec.enabled]
    digests = sorted({each.digest for each in found if each.digest})
    if not digests:
        return "", ()
    return f"sha256:{hashlib.sha256(','.join(digests).encode()).hexdigest()}", found


class VexSources:
    """Made once in a process."""

    def __init__(self, client: Client, blobs: Blobs, scratch: Scratch, workers: Workers) -> None:
        self._client, self._blobs, self._workers = client, blobs, workers
        self._files = scratch.dir(SCRATCH, SCRATCH_BYTES)

    @contextlib.asynccontextmanager
    async def statements(self, namespace: str) -> AsyncIterator[Statements]:
        """Those that count now; the file stays while the block runs."""
        digest, found = await looked_up(self._client, self._blobs, namespace)
        if not digest:
            yield Statements(None, "")
            return
        async with self._files.fill(f"{vex_store.FORM}-{digest}", partial(self._compile, found)) as path:
            yield Statements(path, digest)

    async def _compile(self, found: Sequence[Found], path: Path) -> None:
        async with _fetched(self._blobs, found) as parts:
            await self._workers.run(compile_all, parts, path, memory=MEMORY, timeout=TIMEOUT)


class Part(msgspec.Struct, frozen=True):
    """What a source has, where a process can read it."""

    found: Found
    file: Path | None = None


def describe(part: Part) -> SourceRead:
    """What is in it. For a thread, or for a process of its own."""
    read = _read(part)
    return SourceRead(
        documents=tuple(document.id for document in read.documents),
        statements=sum(len(document.statements) for document in read.documents),
        skipped=tuple(_short(text) for text in read.skipped[:MOST_SKIPPED]),
        problem=_short(read.problem),
        digest=part.found.digest,
    )


def compile_all(parts: Sequence[Part], path: Path) -> None:
    """All that can be read of them, for scans. For a process of its own; one part after the other is held."""
    with vex_store.writing(path) as writer:
        for part in parts:
            writer.add(_read(part).documents)


async def _found(client: Client, blobs: Blobs, source: VEXSource) -> Found:
    spec = source.spec
    if not isinstance(spec.inline, UnsetType):
        return Found(texts={"inline": spec.inline.encode()})
    if not isinstance(spec.blob, UnsetType):
        try:
            return Found(blob=(await blobs.stat(parse_digest(spec.blob))).digest)
        except BlobMissing:
            return Found(problem=f"there is no blob {spec.blob}: import it again with `trimtab images import-vex`")
        except ValueError as error:
            return Found(problem=f"spec.blob: {error}")
    if isinstance(spec.config_map, UnsetType):
        return Found(problem="it names no source: give inline, configMap or blob")
    name = spec.config_map.name
    try:
        config_map = await client.get(ConfigMap, name, source.namespace)
    except StatusError as error:
        if error.code != 404:
            raise
        return Found(problem=f"there is no ConfigMap {name} in this namespace")
    texts = {key: text.encode() for key, text in (config_map.data or {}).items()}
    for key, text in (config_map.binary_data or {}).items():
        with contextlib.suppress(binascii.Error):  # the API has checked it
            texts[key] = base64.b64decode(text)
    return Found(texts=texts) if texts else Found(problem=f"the ConfigMap {name} is empty")


@contextlib.asynccontextmanager
async def _fetched(blobs: Blobs, found: Sequence[Found]) -> AsyncIterator[list[Part]]:
    """Blobs are files while the block runs."""
    with tempfile.TemporaryDirectory(prefix="trimtab-vex-") as folder:
        parts = []
        for number, each in enumerate(found):
            file = Path(folder, str(number))
            try:
                parts.append(Part(each, await _fetch(blobs, Digest(each.blob), file)) if each.blob else Part(each))
            except BlobTooLarge as error:
                parts.append(Part(msgspec.structs.replace(each, problem=str(error))))
        yield parts


async def _fetch(blobs: Blobs, digest: Digest, path: Path) -> Path:
    if (await blobs.stat(digest)).size > LARGEST_BLOB:
        raise BlobTooLarge(LARGEST_BLOB)
    first = b""
    with path.open("wb") as file:
        async for chunk in blobs.open(digest):
            first = first or chunk[:2]
            await in_thread(file.write, chunk)
    return await in_thread(path.rename, path.with_name(f"source-{path.name}{'.zip' if first == b'PK' else '.json'}"))


class _Read(NamedTuple):
    documents: Sequence[VexDocument] = ()
    skipped: Sequence[str] = ()
    problem: str = ""


def _read(part: Part) -> _Read:
    if part.found.problem:
        return _Read(problem=part.found.problem)
    return _of_texts(part.found.texts) if part.file is None else _of_file(part.file)


def _of_file(file: Path) -> _Read:
    """A zip file of a repository, or one document."""
    try:
        repository = read_repository(file, limits=LIMITS)
    except VexError as error:
        return _Read(problem=str(error))
    except SourceError as error:
        return _Read(problem=str(error).replace(str(file), "the blob"))
    skipped = [*repository.skipped, *_left_out(repository.documents, lambda number: f"document {number}")]
    return _Read(repository.documents, skipped, "" if repository.documents else "it has no OpenVEX documents")


def _of_texts(texts: dict[str, bytes]) -> _Read:
    names: list[str] = []
    documents: list[VexDocument] = []
    skipped: list[str] = []
    for name, text in sorted(texts.items()):
        try:
            documents.append(parse(text))
            names.append(name)
        except VexError as error:
            skipped.append(f"{name}: {error}")
    problem = "" if documents else "; ".join(skipped)
    return _Read(documents, [*skipped, *_left_out(documents, names.__getitem__)], problem)


def _left_out(documents: Sequence[VexDocument], name: Callable[[int], str]) -> list[str]:
    """Statements that do not count."""
    return [
        f"{document.id or name(number)}: {problem}"
        for number, document in enumerate(documents)
        for problem in document.problems
    ]


def _short(text: str) -> str:
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"
