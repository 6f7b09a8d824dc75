"""The VEX statements of a namespace: all that its enabled VEXSources say, read within bounds.

`looked_up` finds what they are without reading much: contents of objects, and names of blobs. Its digest is the same as
long as the contents are, so a report that names it need not be made again. `read_source` reads one of them, and says what
is wrong with it. `VexSources` keeps what was read in scratch, as documents that a scan loads.

A source that is broken counts as if it were not there, and its own status says so: one vendor's mistake must not keep
images from being scanned. But blobs that cannot be reached, or are damaged, are an error, for then nobody knows.
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
from trimtab.storage.blobs import BlobDamaged, BlobMissing, Blobs, BlobTooLarge, Digest, parse_digest
from trimtab.storage.scratch import Scratch
from trimtab.storage.threads import in_thread
from trimtab.systems.images.kinds import VEXSource
from trimtab.systems.images.vulnerabilities.openvex import LARGEST, VexDocument, VexError, parse
from trimtab.systems.images.vulnerabilities.sources import Limits, SourceError
from trimtab.systems.images.vulnerabilities.vex_repository import VexRepository, read_repository

LARGEST_BLOB = 64 << 20
LIMITS = Limits(file_bytes=LARGEST, files=100_000, total_bytes=128 << 20, directory_bytes=32 << 20)
MOST_SKIPPED, LONGEST = 20, 512
SCRATCH, SCRATCH_BYTES = "vex", 512 << 20


class SourceRead(msgspec.Struct, frozen=True, kw_only=True):
    """What a source says. `skipped` names what could not be read in it, `problem` why nothing was read at all."""

    documents: tuple[VexDocument, ...] = ()
    skipped: tuple[str, ...] = ()
    problem: str = ""

    @property
    def statements(self) -> int:
        return sum(len(document.statements) for document in self.documents)


class Found(msgspec.Struct, frozen=True, kw_only=True):
    """What a source has, before it is read: named texts, or a blob, or the problem that there is neither."""

    texts: dict[str, bytes] = {}
    blob: str = ""
    problem: str = ""

    @property
    def digest(self) -> str:
        """Of the contents, wherever they are from."""
        texts = sorted(hashlib.sha256(text).hexdigest() for text in self.texts.values())
        return "\n".join([*texts, self.blob]) if texts or self.blob else ""


class Statements(NamedTuple):
    """Those of a namespace. `path` is a file for `load`, None when nobody says anything; `digest` names the contents."""

    path: Path | None
    digest: str


async def read_source(client: Client, blobs: Blobs, source: VEXSource) -> SourceRead:
    """One source, enabled or not. BlobsUnavailable, StatusError and OSError when it cannot be asked."""
    try:
        return await _read(blobs, await _found(client, blobs, source))
    except (BlobDamaged, BlobMissing) as error:
        return SourceRead(problem=_short(str(error)))


async def looked_up(client: Client, blobs: Blobs, namespace: str) -> tuple[str, Sequence[Found]]:
    """The digest of all that the enabled sources of a namespace have, empty for nothing; and what they have."""
    listed = await client.list(VEXSource, Query(namespace=namespace))
    found = [await _found(client, blobs, source) for source in listed.items if source.spec.enabled]
    digests = sorted({each.digest for each in found if each.digest})
    if not digests:
        return "", ()
    return f"sha256:{hashlib.sha256(' '.join(digests).encode()).hexdigest()}", found


class VexSources:
    """Made once in a process."""

    def __init__(self, client: Client, blobs: Blobs, scratch: Scratch) -> None:
        self._client, self._blobs = client, blobs
        self._files = scratch.dir(SCRATCH, SCRATCH_BYTES)

    @contextlib.asynccontextmanager
    async def statements(self, namespace: str) -> AsyncIterator[Statements]:
        """Those that count now; the file stays while the block runs."""
        digest, found = await looked_up(self._client, self._blobs, namespace)
        if not digest:
            yield Statements(None, "")
            return
        async with self._files.fill(f"{FORM}-{digest}", partial(self._write, found)) as path:
            yield Statements(path, digest)

    async def _write(self, found: Sequence[Found], path: Path) -> None:
        documents: list[VexDocument] = []
        for each in found:
            documents += (await _read(self._blobs, each)).documents
        await in_thread(lambda: path.write_bytes(msgspec.msgpack.encode(documents)))


FORM = 1
"""To be raised whenever more is read of a document, or it has another form."""


def load(path: Path) -> tuple[VexDocument, ...]:
    """What `statements` wrote. For a worker process."""
    return _DECODER.decode(path.read_bytes())


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


async def _read(blobs: Blobs, found: Found) -> SourceRead:
    if found.problem:
        return SourceRead(problem=_short(found.problem))
    if found.blob:
        return await _read_blob(blobs, Digest(found.blob))
    return await in_thread(_parsed, found.texts)


async def _read_blob(blobs: Blobs, digest: Digest) -> SourceRead:
    """A zip file of a repository, or one document: whichever its first bytes say."""
    with tempfile.TemporaryDirectory(prefix="trimtab-vex-") as folder:
        fetched = Path(folder, "source")
        try:
            await _fetch(blobs, digest, fetched)
            repository = await in_thread(_repository, fetched)
        except (BlobTooLarge, VexError) as error:
            return SourceRead(problem=_short(str(error)))
        except SourceError as error:
            return SourceRead(problem=_short(str(error).replace(f"{folder}/", "")))
    skipped = (*repository.skipped, *_problems(repository.documents, lambda number: f"document {number}"))
    if not repository.documents:
        return SourceRead(problem="it has no OpenVEX documents", skipped=_shown(skipped))
    return SourceRead(documents=repository.documents, skipped=_shown(skipped))


async def _fetch(blobs: Blobs, digest: Digest, path: Path) -> None:
    size = 0
    with path.open("wb") as file:
        async for chunk in blobs.open(digest):
            size += len(chunk)
            if size > LARGEST_BLOB:
                raise BlobTooLarge(LARGEST_BLOB)
            await in_thread(file.write, chunk)


def _repository(fetched: Path) -> VexRepository:
    with fetched.open("rb") as file:
        suffix = ".zip" if file.read(2) == b"PK" else ".json"
    return read_repository(fetched.rename(fetched.with_suffix(suffix)), limits=LIMITS)


def _parsed(texts: dict[str, bytes]) -> SourceRead:
    names, documents, skipped = [], [], []
    for name, text in sorted(texts.items()):
        try:
            documents.append(parse(text))
            names.append(name)
        except VexError as error:
            skipped.append(f"{name}: {error}")
    if not documents:
        return SourceRead(problem=_short("; ".join(skipped)), skipped=_shown(skipped))
    skipped += _problems(documents, names.__getitem__)
    return SourceRead(documents=tuple(documents), skipped=_shown(skipped))


def _problems(documents: Sequence[VexDocument], name: Callable[[int], str]) -> list[str]:
    """Statements that were left out."""
    return [
        f"{document.id or name(number)}: {problem}"
        for number, document in enumerate(documents)
        for problem in document.problems
    ]


def _shown(skipped: Sequence[str]) -> tuple[str, ...]:
    return tuple(_short(text) for text in skipped[:MOST_SKIPPED])


def _short(text: str) -> str:
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"


_DECODER = msgspec.msgpack.Decoder(tuple[VexDocument, ...])
