"""`trimtab images import-db`: OSV documents of this machine become the vulnerability database of the cluster.

What is there is added to, unless it is to be replaced: it is fetched, the import is made beside it, and the new one is
published. Who publishes at the same time would take the other's documents away, so the import is then made again.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import tempfile
import threading
from collections.abc import Mapping
from pathlib import Path

from msgspec import UNSET, UnsetType

from trimtab.cli.access import Access, Session, session
from trimtab.cli.bar import Bar
from trimtab.cli.blobs import Place, opened
from trimtab.cli.codes import NOT_FOUND, OK, Problem, run
from trimtab.cli.tables import Printer, shown
from trimtab.model.errors import StatusError
from trimtab.storage.blobs import BlobMissing, Blobs, Digest
from trimtab.storage.threads import in_thread
from trimtab.systems.images import databases
from trimtab.systems.images.databases import DatabaseRef, Overtaken
from trimtab.systems.images.vulnerabilities.database import DatabaseError, open_database
from trimtab.systems.images.vulnerabilities.importing import ImportReport, import_osv
from trimtab.systems.images.vulnerabilities.sources import SourceError

ATTEMPTS = 3
EXAMPLES = 5
"""Files that could not be read, and are named."""


class Stopped(Exception):  # noqa: N818 - it reads as what happened
    """Nobody waits for the import any more."""


def import_db(access: Access, source: Path, *, replace: bool, place: Place) -> int:
    return run(_import(access, source, replace, place))


def show(access: Access, place: Place) -> int:
    return run(_show(access, place))


async def _import(access: Access, source: Path, replace: bool, place: Place) -> int:
    async with session(access) as server, opened(access, place) as blobs:
        await blobs.ready()
        for _ in range(ATTEMPTS):
            base = await databases.current(server.client)
            with tempfile.TemporaryDirectory(prefix="trimtab-") as folder:
                target = Path(folder, "vulnerabilities")
                if base is not None and not replace:
                    await _fetch(blobs, base, target)
                report = await _imported(source, target, replace)
                built_on = UNSET if replace else base.blob if base is not None else None
                with contextlib.suppress(Overtaken):
                    ref = await _published(server, blobs, target, built_on)
                    _tell(report, ref, base)
                    return OK
    raise Problem("others import into the same database all the time: try again when they have ended")


async def _fetch(blobs: Blobs, ref: DatabaseRef, to: Path) -> None:
    try:
        with to.open("wb") as file:
            async for piece in blobs.open(ref.blob):
                await in_thread(file.write, piece)
    except BlobMissing:
        raise Problem(
            "the database that is there cannot be added to, for its blob is missing: are these the blobs of this server?"
            " --blobs names others, and --replace begins anew"
        ) from None


async def _imported(source: Path, target: Path, replace: bool) -> ImportReport:
    """In a thread, which stops soon when we are interrupted."""
    stopped = threading.Event()
    with Bar(f"import {source.name or source}") as bar:

        def progress(done: int, name: str) -> None:
            if stopped.is_set():
                raise Stopped
            bar.show(done, None, "documents")

        making = functools.partial(import_osv, source, target, replace=replace, progress=progress)
        reading = asyncio.ensure_future(in_thread(making))
        try:
            return await asyncio.shield(reading)
        except asyncio.CancelledError:
            stopped.set()
            await asyncio.wait((reading,))  # before its files go
            raise
        except (SourceError, DatabaseError) as error:
            raise Problem(str(error)) from None


async def _published(server: Session, blobs: Blobs, target: Path, base: Digest | UnsetType | None) -> DatabaseRef:
    try:
        return await databases.publish(server.client, blobs, target, base=base)
    except StatusError as error:
        if error.code == 404:
            raise Problem(f"{error.message}: `trimtab install` prints what a cluster needs", NOT_FOUND) from None
        raise


def _tell(report: ImportReport, ref: DatabaseRef, base: DatabaseRef | None) -> None:
    _counts(report.ecosystems)
    print(f"{report.count} advisories: {report.read} new or changed, {report.unchanged} as they were")
    for why, count in report.skipped.items():
        print(f"skipped {count}: {shown(why)}")
    for example in report.examples[:EXAMPLES]:
        print(f"  {shown(example)}")
    if base is not None and ref.digest == base.digest:
        print(f"nothing is said that was not said before: the database stays {ref.digest}")
    else:
        print(
            f"the database is {ref.digest} now; what it says new things of is scanned again where a Registry wants so"
        )


async def _show(access: Access, place: Place) -> int:
    async with session(access) as server:
        ref = await databases.current(server.client)
    if ref is None:
        raise Problem("there is no vulnerability database: `trimtab images import-db DIR` imports one", NOT_FOUND)
    async with opened(access, place) as blobs:
        with tempfile.TemporaryDirectory(prefix="trimtab-") as folder:
            target = Path(folder, "vulnerabilities")
            await _fetch(blobs, ref, target)
            try:
                with contextlib.closing(open_database(target)) as database:
                    _counts(database.counts())
            except DatabaseError as error:
                raise Problem(str(error)) from None
    print(f"{ref.advisories} advisories, imported at {ref.imported_at or 'an unknown time'}")
    print(f"contents {ref.digest}, blob {ref.blob}")
    return OK


def _counts(ecosystems: Mapping[str, int]) -> None:
    Printer(("ecosystem", "advisories")).add([[shown(name), str(count)] for name, count in sorted(ecosystems.items())])
