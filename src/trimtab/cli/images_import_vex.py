"""`trimtab images import-vex`: a VEX repository of this machine becomes a blob, and a VEXSource names it.

The blob is a zip file of the repository's JSON files, the same bytes for the same files. It is pinned before it is named,
and what was named before is let go after.
"""

from __future__ import annotations

import contextlib
import tempfile
import zipfile
from collections.abc import AsyncIterator
from pathlib import Path
from typing import NamedTuple

from trimtab.cli.access import Access, Session, session
from trimtab.cli.blobs import Place, opened
from trimtab.cli.codes import OK, Problem, run
from trimtab.cli.tables import shown
from trimtab.model.errors import StatusError
from trimtab.model.objectmeta import ObjectMeta
from trimtab.storage.blobs import CHUNK, Blobs, Digest, parse_digest
from trimtab.storage.threads import in_thread
from trimtab.systems.images.kinds import VEXSource, VEXSourceSpec
from trimtab.systems.images.vex_sources import LARGEST_BLOB, LIMITS, MOST_STATEMENTS
from trimtab.systems.images.vulnerabilities.openvex import VexDocument, VexError
from trimtab.systems.images.vulnerabilities.sources import SourceError, documents
from trimtab.systems.images.vulnerabilities.vex_repository import each_document, name_of

MANAGER = "trimtab-images"
MEDIA_TYPE = "application/zip"
SKIPPED = 10
"""Files and statements that are named."""
_LONG_AGO = (1980, 1, 1, 0, 0, 0)


def import_vex(access: Access, source: Path, name: str, place: Place) -> int:
    return run(_import(access, source, name, place))


async def _import(access: Access, source: Path, name: str, place: Place) -> int:
    try:
        found = await in_thread(_counted, source)
    except (SourceError, VexError) as error:
        raise Problem(str(error)) from None
    if not found.documents:
        why = f": {found.skipped[0]}" if found.skipped else ""
        raise Problem(f"{source} has no OpenVEX document that can be read{why}")
    if found.statements > MOST_STATEMENTS:
        raise Problem(
            f"{source} has more than {MOST_STATEMENTS:,} statements: import parts of it, each as its own source"
        )
    with tempfile.TemporaryDirectory(prefix="trimtab-") as folder:
        packed = Path(folder, "repository.zip")
        await in_thread(_pack, source, packed)
        async with session(access) as server, opened(access, place) as blobs:
            await blobs.ready()
            digest = await blobs.put(_pieces(packed), media_type=MEDIA_TYPE, max_bytes=LARGEST_BLOB)
            await _named(server, blobs, name, digest)
    _tell(name, found)
    return OK


async def _named(server: Session, blobs: Blobs, name: str, digest: Digest) -> None:
    """The VEXSource names the new blob, which is pinned by then; the old one goes."""
    owner = f"images/VEXSource/{server.namespace}/{name}"
    before = await _before(server, name)
    await blobs.pin(digest, owner)
    metadata = ObjectMeta(name=name, namespace=server.namespace)
    try:
        await server.client.apply(VEXSource(metadata=metadata, spec=VEXSourceSpec(blob=digest)), manager=MANAGER)
    except StatusError:
        if before != digest:
            await blobs.unpin(owner, digest)
        raise
    if before and before != digest:
        await blobs.unpin(owner, before)


async def _before(server: Session, name: str) -> Digest | None:
    try:
        found = await server.client.get(VEXSource, name, server.namespace)
    except StatusError as error:
        if error.code != 404:
            raise
        return None
    if found.metadata.deletion_timestamp:
        raise Problem(f"vexsource/{name} is being deleted: try again when it is gone")
    with contextlib.suppress(ValueError):  # whatever it was, we did not pin it
        return parse_digest(found.spec.blob or "")
    return None


def _pack(source: Path, to: Path) -> None:
    top = f"{source}/" if source.is_dir() else ""
    seen: set[str] = set()
    with zipfile.ZipFile(to, "w", zipfile.ZIP_DEFLATED) as archive:
        if source.suffix == ".json" and source.is_file():
            archive.writestr(zipfile.ZipInfo(source.name, _LONG_AGO), source.read_bytes())
            return
        for name, content, _ in documents(source, LIMITS):
            inside = name.removeprefix(top)
            if content is not None and inside not in seen:
                seen.add(inside)
                entry = zipfile.ZipInfo(inside, _LONG_AGO)
                entry.compress_type = zipfile.ZIP_DEFLATED
                archive.writestr(entry, content)


async def _pieces(path: Path) -> AsyncIterator[bytes]:
    with path.open("rb") as file:
        while piece := await in_thread(file.read, CHUNK):
            yield piece


class _Counted(NamedTuple):
    name: str
    documents: int
    statements: int
    skipped: list[str]
    more: int


def _counted(source: Path) -> _Counted:
    documents = statements = more = 0
    skipped: list[str] = []
    for each in each_document(source, limits=LIMITS):
        if isinstance(each, VexDocument):
            documents += 1
            statements += len(each.statements)
            skipped += [f"{each.id}: {problem}" for problem in each.problems]
        else:
            skipped.append(f"{each.name}: {each.why}")
        more += len(skipped[SKIPPED:])
        del skipped[SKIPPED:]
    return _Counted(name_of(source, limits=LIMITS), documents, statements, skipped, more)


def _tell(name: str, found: _Counted) -> None:
    print(f"vexsource/{name}: {found.documents} documents with {found.statements} statements of {shown(found.name)}")
    for text in found.skipped:
        print(f"skipped: {shown(text)}")
    if found.more:
        print(f"and {found.more} more were skipped")
