"""The VEX statements of a namespace: all that its enabled VEXSources say, read within bounds.

`looked_up` finds what they are without reading much: contents of objects, and names of blobs. Its digest is the same as
long as the contents are, so a report that names it need not be made again. `read_source` reads one of them and says what
is in it, or what is wrong with it. `VexSources` has each of them compiled into a file of scratch that scans search.

A source that is broken, or over a bound, counts as if it were not there, and its own status says so: one vendor's mistake
must not keep images from being scanned. But blobs that cannot be reached, or are damaged, are an error, for then nobody
knows.

A repository may have a hundred megabytes: it is read in a process of its own, one document at a time. What one document
takes at worst, some forty times its bytes, and the names of a zip file, are what MEMORY must hold.
"""

from __future__ import annotations

import base64
import binascii
import contextlib
import hashlib
import tempfile
from collections.abc import AsyncIterator, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

import msgspec
from msgspec import UnsetType

from trimtab.client.protocol import Client, Query
from trimtab.model.clock import Clock, SystemClock
from trimtab.model.errors import StatusError
from trimtab.model.kubernetes import ConfigMap
from trimtab.model.logs import log
from trimtab.runtime.workers import Workers
from trimtab.runtime.workers.pool import WorkerError, WorkerMemory
from trimtab.storage.blobs import BlobDamaged, BlobMissing, Blobs, BlobTooLarge, Digest, parse_digest
from trimtab.storage.scratch import Scratch
from trimtab.storage.threads import in_thread
from trimtab.systems.images import vex_store
from trimtab.systems.images.kinds import VEXSource
from trimtab.systems.images.vulnerabilities.openvex import VexDocument, VexError, parse
from trimtab.systems.images.vulnerabilities.sources import Limits, SourceError
from trimtab.systems.images.vulnerabilities.vex_repository import each_document

LARGEST_BLOB = 64 << 20
LIMITS = Limits(file_bytes=8 << 20, files=50_000, total_bytes=128 << 20, directory_bytes=8 << 20)
MOST_STATEMENTS = 500_000
MOST_SKIPPED, LONGEST = 20, 512
SCRATCH, SCRATCH_BYTES = "vex", 2 << 30
MEMORY, READ_TIMEOUT, COMPILE_TIMEOUT = 1 << 30, 120.0, 600.0
"""Of the process that reads. What was read in its time can be compiled in its own."""
TRY_AGAIN = 600.0
"""Seconds for which a source that could not be compiled is left alone."""


class SourceRead(msgspec.Struct, frozen=True, kw_only=True):
    """What a source has: how many documents, how many statements count, what was left out. `problem` says why nothing of
    it counts; `digest` names the contents, and is empty when another look may find other things."""

    documents: int = 0
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
    """Those of a namespace. `paths` are files of `vex_store`; `digest` names the contents, empty when nobody says anything."""

    paths: tuple[Path, ...]
    digest: str


async def read_source(client: Client, blobs: Blobs, source: VEXSource, *, workers: Workers | None = None) -> SourceRead:
    """One source, enabled or not. BlobsUnavailable, StatusError and OSError when it cannot be asked."""
    found = await _found(client, blobs, source)
    try:
        async with _fetched(blobs, found) as part:
            if workers is None:
                return await in_thread(describe, part)
            return await workers.run(describe, part, memory=MEMORY, timeout=READ_TIMEOUT)
    except (BlobDamaged, BlobMissing) as error:
        return SourceRead(problem=_short(str(error)))
    except WorkerError as error:
        why = f"it cannot be read within what a source may take, and does not count: {error}"
        is_its_own = isinstance(error, WorkerMemory)  # anything else may be better at the next look
        return SourceRead(problem=_short(why), digest=found.digest if is_its_own else "")


async def looked_up(client: Client, blobs: Blobs, namespace: str) -> tuple[str, Sequence[Found]]:
    """The digest of all that the enabled sources of a namespace have, empty for nothing; and what they have."""
    listed = await client.list(VEXSource, Query(namespace=namespace))
    found = [await _found(client, blobs, source) for source in listed.items if source.spec.enabled]
    return _digest_of(found), found


class VexSources:
    """Made once in a process."""

    def __init__(
        self,
        client: Client,
        blobs: Blobs,
        scratch: Scratch,
        workers: Workers,
        *,
        clock: Clock | None = None,
    ) -> None:
        self._client, self._blobs, self._workers = client, blobs, workers
        self._clock = clock or SystemClock()
        self._files = scratch.dir(SCRATCH, SCRATCH_BYTES)
        self._failed: dict[str, float] = {}  # by digest, until when

    @contextlib.asynccontextmanager
    async def statements(self, namespace: str) -> AsyncIterator[Statements]:
        """Those that count now; the files stay while the block runs. The digest is that of all sources, but for those whose
        process ended badly: so whoever compares it scans again later."""
        digest, found = await looked_up(self._client, self._blobs, namespace)
        async with contextlib.AsyncExitStack() as stack:
            paths, missed = [], set()
            for each in {each.digest: each for each in found if each.digest}.values():
                make = partial(self._compile, each)
                try:
                    paths.append(await stack.enter_async_context(self._files.fill(_key(each), make)))
                except _LeftOut as left_out:
                    missed.add(each.digest)
                    log.warning("a VEX source is left out", namespace=namespace, error=str(left_out))
            if missed:
                digest = _digest_of([each for each in found if each.digest not in missed])
            yield Statements(tuple(paths), digest)

    async def _compile(self, found: Found, path: Path) -> None:
        if self._clock.monotonic() < self._failed.get(found.digest, 0.0):
            raise _LeftOut(f"{found.digest}: it failed a while ago, and is tried again later")
        async with _fetched(self._blobs, found) as part:
            try:
                await self._workers.run(compile_one, part, path, memory=MEMORY, timeout=COMPILE_TIMEOUT)
            except WorkerMemory:  # as its status says; it will be the same next time
                await in_thread(_empty, path)
            except WorkerError as error:
                self._failed[found.digest] = self._clock.monotonic() + TRY_AGAIN
                raise _LeftOut(f"{found.digest}: {error}") from None
        self._failed.pop(found.digest, None)


class _LeftOut(Exception):  # noqa: N818 - it reads as what happened
    """It cannot be compiled now."""


class Part(msgspec.Struct, frozen=True):
    """What a source has, where a process can read it."""

    found: Found
    file: Path | None = None


def describe(part: Part) -> SourceRead:
    """What is in it. For a thread, or for a process of its own."""
    documents = statements = 0
    skipped: list[str] = []
    try:
        for name, each in _each(part):
            if isinstance(each, VexDocument):
                documents += 1
                statements += len(each.statements)
                skipped += [f"{each.id or name}: {problem}" for problem in each.problems]
            else:
                skipped.append(f"{name}: {each}")
            del skipped[MOST_SKIPPED:]
    except _Unreadable as error:
        return SourceRead(problem=_short(str(error)), digest=part.found.digest)
    problem = "" if documents else "; ".join(skipped) or "it has no OpenVEX documents"
    return SourceRead(
        documents=documents,
        statements=statements,
        skipped=tuple(map(_short, skipped)),
        problem=_short(problem),
        digest=part.found.digest,
    )


def compile_one(part: Part, path: Path) -> None:
    """All that can be read of it, for scans; nothing of what is broken as a whole. For a process of its own."""
    try:
        with vex_store.writing(path) as writer:
            for _, each in _each(part):
                if isinstance(each, VexDocument):
                    writer.add(each)
    except _Unreadable:
        _empty(path)


def _empty(path: Path) -> None:
    """A file of nobody who says anything, whatever was there."""
    path.unlink(missing_ok=True)
    with vex_store.writing(path):
        pass


def _digest_of(found: Sequence[Found]) -> str:
    digests = sorted({each.digest for each in found if each.digest})
    return f"sha256:{hashlib.sha256(','.join(digests).encode()).hexdigest()}" if digests else ""


def _key(found: Found) -> str:
    return f"{vex_store.FORM}-{_digest_of([found])}"


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
async def _fetched(blobs: Blobs, found: Found) -> AsyncIterator[Part]:
    """A blob is a file while the block runs."""
    with tempfile.TemporaryDirectory(prefix="trimtab-vex-") as folder:
        try:
            part = Part(found, await _fetch(blobs, Digest(found.blob), Path(folder, "blob")) if found.blob else None)
        except BlobTooLarge as error:
            part = Part(msgspec.structs.replace(found, problem=str(error)))
        yield part


async def _fetch(blobs: Blobs, digest: Digest, path: Path) -> Path:
    if (await blobs.stat(digest)).size > LARGEST_BLOB:
        raise BlobTooLarge(LARGEST_BLOB)
    first = b""
    with path.open("wb") as file:
        async for chunk in blobs.open(digest):
            first = first or chunk[:2]
            await in_thread(file.write, chunk)
    return await in_thread(path.rename, path.with_name(f"source-{path.name}{'.zip' if first == b'PK' else '.json'}"))


class _Unreadable(Exception):  # noqa: N818 - it reads as what happened
    """Nothing of the source counts."""


def _each(part: Part) -> Iterator[tuple[str, VexDocument | str]]:
    """Each document with its name, or why it is none. _Unreadable, perhaps in the midst."""
    if part.found.problem:
        raise _Unreadable(part.found.problem)
    statements = 0
    for name, each in _of_texts(part.found.texts) if part.file is None else _of_file(part.file):
        statements += len(each.statements) if isinstance(each, VexDocument) else 0
        if statements > MOST_STATEMENTS:
            raise _Unreadable(f"it has more than {MOST_STATEMENTS:,} statements: import parts of it")
        yield name, each


def _of_file(file: Path) -> Iterator[tuple[str, VexDocument | str]]:
    """A zip file of a repository, or one document."""
    try:
        for number, each in enumerate(each_document(file, limits=LIMITS)):
            if isinstance(each, VexDocument):
                yield f"document {number}", each
            else:
                yield each
    except VexError as error:
        raise _Unreadable(str(error)) from None
    except SourceError as error:
        raise _Unreadable(str(error).replace(str(file), "the blob")) from None


def _of_texts(texts: dict[str, bytes]) -> Iterator[tuple[str, VexDocument | str]]:
    for name, text in sorted(texts.items()):
        try:
            yield name, parse(text)
        except VexError as error:
            yield name, str(error)


def _short(text: str) -> str:
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"
