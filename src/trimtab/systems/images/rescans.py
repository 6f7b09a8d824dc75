"""When an SBOM is to be scanned. `due` decides, pure; `Changes` says whether a new database says new things of an SBOM.

A report is good until its SBOM is another, or the VEX statements of its namespace changed, or, where the Registry wishes so,
its database is not the current one or its time is over. A new database makes only those reports old of whose packages it
says new things. Whenever that cannot be told, as when the old database is gone, the SBOM is scanned.
"""

from __future__ import annotations

import asyncio
import hashlib
from datetime import datetime, timedelta
from pathlib import Path
from typing import NamedTuple, Self

import msgspec

from trimtab.model.clock import parse_time
from trimtab.model.logs import log
from trimtab.runtime.workers import Workers
from trimtab.runtime.workers.pool import WorkerError
from trimtab.storage.blobs import BlobDamaged, BlobError, Blobs, Digest, read
from trimtab.storage.threads import in_thread
from trimtab.systems.images.databases import DatabaseRef, Databases, NoDatabase
from trimtab.systems.images.kinds import VulnerabilityReport
from trimtab.systems.images.vulnerabilities.database import DatabaseError, changed_packages, open_database
from trimtab.systems.images.vulnerabilities.ecosystems import places
from trimtab.systems.images.worker.documents import LARGEST_INVENTORY, decode

NO_DATABASE = "NoDatabase"
"""Why an SBOM has no report until somebody imports a database."""
MOST_CHANGED = 50_000
"""Packages of which a new database says new things. When there are more, every SBOM is scanned."""
LARGE = 64 << 10
"""Bytes of an inventory that is looked at in a thread; it has about 800 packages."""
LONGEST_SPREAD = 3600.0
SETTLE = 10.0
"""Seconds for which the VEX statements of a namespace must be quiet."""
COMPARE_TIMEOUT = 240.0


class Scan(msgspec.Struct, frozen=True, kw_only=True):
    """The last one, as its report tells. Without findings, no statement can change it. `at` is by our own clock where
    somebody saw the report come."""

    at: datetime
    database: str
    vex: str = ""
    has_findings: bool = True

    @classmethod
    def of(cls, report: VulnerabilityReport, seen: datetime | None = None) -> Self:
        spec = report.spec
        return cls(
            at=seen or parse_time(spec.scanned_at),
            database=spec.database,
            vex=spec.vex or "",
            has_findings=any(msgspec.structs.astuple(spec.summary)),
        )


class World(msgspec.Struct, frozen=True, kw_only=True):
    """What a scan would use now: digests of the database's contents, empty for none, and of the VEX statements, with the
    time when those changed."""

    database: str = ""
    vex: str = ""
    vex_since: datetime | None = None


class Wishes(msgspec.Struct, frozen=True, kw_only=True):
    """Of the Registry: after how many seconds to scan again, and whether a new database is a reason."""

    period: float | None = None
    on_new_database: bool = False


class Due(msgspec.Struct, frozen=True, kw_only=True):
    """A scan that is due at a time. The same `key` is the same scan. `if_changed`: only if the packages changed in the
    database; until that is known to be so, nothing is due."""

    key: str
    at: datetime
    if_changed: bool = False


def due(scan: Scan | None, refused: str, wishes: Wishes, world: World, now: datetime, share: float = 0.0) -> Due | None:
    """The next scan; None when there will be none before something changes. `refused` is why there is no report yet, and
    `share`, from 0 to 1, spreads those of many SBOMs that would be due at once."""
    if scan is None:
        if refused == NO_DATABASE and not world.database:
            return None
        return Due(key=f"new/{world.database}", at=now)
    if scan.vex != world.vex and scan.has_findings:
        quiet = world.vex_since + timedelta(seconds=SETTLE) if world.vex_since else now
        return Due(key=f"vex/{world.vex}/{world.database}", at=max(now, quiet))
    periodic = None
    if wishes.period is not None:
        spread = share * min(wishes.period / 10, LONGEST_SPREAD)
        at = scan.at + timedelta(seconds=wishes.period + spread)
        periodic = Due(key=f"period/{scan.at:%Y%m%dt%H%M%S}", at=at)
    if periodic is not None and periodic.at <= now:
        return periodic
    if wishes.on_new_database and world.database and scan.database != world.database:
        return Due(key=f"database/{world.database}", at=now, if_changed=True)
    return periodic


def share_of(uid: str) -> float:
    """From 0 to 1, the same for an SBOM each time and another for each SBOM."""
    return int.from_bytes(hashlib.sha256(uid.encode()).digest()[:4]) / (1 << 32)


class Comparison(msgspec.Struct, frozen=True):
    """The packages of which two databases say different things; None when it cannot be told, or when there are too many.
    `before` is the digest of the older one's contents."""

    before: str
    changed: frozenset[tuple[str, str]] | None


class Changes:
    """Compares the current database with the one before it, once, and asks of each SBOM whether that matters."""

    def __init__(self, databases: Databases, blobs: Blobs, workers: Workers) -> None:
        self._databases, self._blobs, self._workers = databases, blobs, workers
        self._lock = asyncio.Lock()
        self._compared = _Compared("", "", Comparison("", None), {})

    async def concern(self, inventory: str, scanned_with: str, current: DatabaseRef) -> bool:
        """Whether a scan of this inventory may give another report now than the one with that database. `scanned_with` is
        the digest of its contents."""
        compared = await self._compare(current.previous, current.blob)
        comparison, touched = compared.comparison, compared.touched
        if comparison.changed is None or comparison.before != scanned_with:
            return True
        if inventory not in touched:  # many tags often point to one image
            touched[inventory] = await self._touches(inventory, comparison.changed)
        return touched[inventory]

    async def _touches(self, inventory: str, changed: frozenset[tuple[str, str]]) -> bool:
        if not changed:
            return False
        try:
            content = await read(self._blobs, Digest(inventory), max_bytes=LARGEST_INVENTORY)
            return await in_thread(touches, content, changed) if len(content) > LARGE else touches(content, changed)
        except (BlobError, msgspec.DecodeError):
            return True  # whoever scans it says what is wrong

    async def _compare(self, previous: str, current: str) -> _Compared:
        async with self._lock:
            known = self._compared
            if (known.previous, known.current) != (previous, current):
                known = self._compared = _Compared(previous, current, await self._comparison(previous, current), {})
            return known

    async def _comparison(self, previous: str, current: str) -> Comparison:
        if not previous:
            return Comparison("", None)
        try:
            async with self._databases.at(Digest(previous)) as old, self._databases.at(Digest(current)) as new:
                return await self._workers.run(compare, old, new, timeout=COMPARE_TIMEOUT)
        except (NoDatabase, BlobDamaged, WorkerError) as error:
            log.warning("two databases cannot be compared, so every SBOM is scanned", error=str(error))
            return Comparison("", None)


class _Compared(NamedTuple):
    """Two blobs of databases, and of which inventories the newer one says new things."""

    previous: str
    current: str
    comparison: Comparison
    touched: dict[str, bool]


def compare(old: Path, new: Path) -> Comparison:
    """For a process of its own. What cannot be read can be compared with nothing."""
    try:
        with open_database(old) as before:
            digest = before.digest
        changed = changed_packages(old, new)
    except DatabaseError:
        return Comparison("", None)
    return Comparison(digest, frozenset(changed) if len(changed) <= MOST_CHANGED else None)


def touches(inventory: bytes, changed: frozenset[tuple[str, str]]) -> bool:
    """Whether a scan of these packages asks for one that changed."""
    found = decode(inventory)
    return not changed.isdisjoint(places(found.packages, found.distro))
