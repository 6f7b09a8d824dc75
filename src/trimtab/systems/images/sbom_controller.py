"""The controller of SBOMs: it has them scanned, at first and again, and lets their blobs go with them.

It asks workers by messages and looks at what is there: a report of this very SBOM. What was asked for and did not come is
asked for again, later each time, so that nothing is lost with a queue and nothing is asked in a loop; what was asked is
forgotten with this process, which then asks anew. The rules are in `rescans`.

A server that only defines the kinds and judges writes imports this too, so nothing heavy is loaded before `start`.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import TYPE_CHECKING

import msgspec

from trimtab.client.protocol import Query
from trimtab.model.conditions import get_condition
from trimtab.model.kubernetes import ConfigMap
from trimtab.runtime import Context, Controller, Request, Result, Watch, generation_changed
from trimtab.runtime.changes import Change
from trimtab.runtime.finalizers import finalizer
from trimtab.runtime.objects import uid_of
from trimtab.runtime.owners import owned_by
from trimtab.runtime.queue import QueueFull
from trimtab.runtime.system import NAMESPACE
from trimtab.systems.images.applying import BY_REGISTRY
from trimtab.systems.images.kinds import SBOM, Registry, ScanSchedule, VEXSource, VulnerabilityReport
from trimtab.systems.images.kinds.job import REGISTRY_LABEL
from trimtab.systems.images.messages import SCANS, ScanSBOM, encode
from trimtab.systems.images.pins import FINALIZER, documents_owner, report_owner

if TYPE_CHECKING:
    from trimtab.storage.blobs import Blobs
    from trimtab.systems.images.databases import DatabaseRef
    from trimtab.systems.images.rescans import Changes, Due

ASK_AGAIN, LONGEST_PAUSE = 600.0, 6 * 3600.0
"""Seconds until a scan that nothing came of is asked for again; twice as long each time."""
LOOK_EVERY = 3600.0
"""Seconds between looks at what is due by the clock, at most: it may be set."""
FULL = 30.0
DATABASE_QUERY = Query(namespace=NAMESPACE, fields="metadata.name=images-database")


def _of_registry(change: Change) -> list[Request]:
    head = change.heads[1] or change.heads[0]
    return change.informers.indexed(SBOM, BY_REGISTRY.name, head.uid) if head is not None else []


def _in_namespace(change: Change) -> list[Request]:
    return _all(change, change.request.namespace)


def _everywhere(change: Change) -> list[Request]:
    return _all(change, "")


def _all(change: Change, namespace: str) -> list[Request]:
    found: Iterable[Request] = (
        Request(entry.namespace, entry.name)
        for informer in change.informers.of(SBOM)
        for entry in informer.cache.entries(namespace)
    )
    return list(dict.fromkeys(found))


class _Asked(msgspec.Struct, frozen=True):
    """Which scan was asked for, when by the monotonic clock, and how often."""

    key: str
    at: float
    times: int

    @property
    def again_after(self) -> float:
        return min(ASK_AGAIN * 2.0 ** (self.times - 1), LONGEST_PAUSE)


class _Seen(msgspec.Struct, frozen=True):
    """When an SBOM's report says that it was scanned, empty without a report, and when that was by our own clock; None when
    we were not there."""

    told: str
    at: datetime | None = None


class _Said(msgspec.Struct, frozen=True):
    """Of the VEX sources of a namespace as they are: the digest of what they say, and since when it is that."""

    revisions: tuple[str, ...]
    digest: str
    since: datetime


class SbomController(Controller[SBOM]):
    owns = (VulnerabilityReport,)
    indexes = (BY_REGISTRY,)
    watches = (
        Watch(kind=Registry, to=_of_registry, when=generation_changed),
        Watch(kind=ConfigMap, to=_everywhere, query=DATABASE_QUERY),
        Watch(kind=VEXSource, to=_in_namespace),
    )

    changes: Changes

    def __init__(self, context: Context) -> None:
        self._context = context
        self._asked: dict[Request, _Asked] = {}
        self._seen: dict[Request, _Seen] = {}
        self._said: dict[str, _Said] = {}
        self._read: tuple[str, DatabaseRef | None] = ("", None)

    async def start(self) -> None:
        from trimtab.systems.images.databases import Databases
        from trimtab.systems.images.rescans import Changes

        if self._context.blobs is None:
            raise ValueError("image discovery needs a place for blobs")
        self._blobs: Blobs = self._context.blobs
        databases = Databases(self.client, self._blobs, self._context.scratch)
        self.changes = Changes(databases, self._blobs, self._context.workers)

    async def reconcile(self, request: Request) -> Result | None:
        sbom = await self.client.find(SBOM, request.name, request.namespace)
        if sbom is None:
            self._asked.pop(request, None)
            self._seen.pop(request, None)
            return None
        return await finalizer(self.client, sbom, FINALIZER, apply=self._keep_up, cleanup=self._let_go)

    async def _let_go(self, sbom: SBOM) -> None:
        await self._blobs.unpin(documents_owner(sbom))
        await self._blobs.unpin(report_owner(sbom))

    async def _keep_up(self, sbom: SBOM) -> Result | None:
        """See that it is scanned when it is due."""
        request = Request(sbom.namespace, sbom.name)
        registry = await self.client.find(Registry, sbom.spec.registry, sbom.namespace)
        if registry is None or uid_of(registry) != (sbom.metadata.labels or {}).get(REGISTRY_LABEL):
            self._asked.pop(request, None)
            return None  # it goes with its registry
        report = await self.client.find(VulnerabilityReport, sbom.name, sbom.namespace)
        if report is not None and not owned_by(report, sbom):
            report = None
        database = await self._database()
        due = self._due(sbom, registry, report, database, await self._vex_of(sbom.namespace))
        wait = (due.at - self.clock.now()).total_seconds() if due is not None else 0.0
        if due is None or wait > 0:
            self._asked.pop(request, None)
            return Result(requeue_after=min(wait, LOOK_EVERY)) if due is not None else None
        asked = self._asked.get(request)
        if asked is not None and asked.key == due.key:
            wait = asked.at + asked.again_after - self.clock.monotonic()
            if wait > 0:
                return Result(requeue_after=wait)
        if (
            due.if_changed
            and report is not None
            and database is not None
            and await self._is_same(sbom, report, database)
        ):
            return None  # the report says so now, which brings the next reconcile
        return await self._ask(sbom, registry, due)

    async def _is_same(self, sbom: SBOM, report: VulnerabilityReport, database: DatabaseRef) -> bool:
        """Whether the new database says nothing new of the SBOM's packages. Then it is written down that the report is
        what this database says, so that nobody need compare again, and the next one is compared with it."""
        if await self.changes.concern(sbom.spec.documents.inventory, report.spec.database, database):
            return False
        await self.client.patch(report, report.replace(spec=report.spec.replace(database=database.digest)))
        return True

    def _due(
        self,
        sbom: SBOM,
        registry: Registry,
        report: VulnerabilityReport | None,
        database: DatabaseRef | None,
        said: _Said,
    ) -> Due | None:
        from trimtab.systems.images.rescans import Scan, Wishes, World, due, share_of

        period = (registry.spec.scan_schedule or ScanSchedule()).scan_period
        scanned = get_condition(sbom.status.conditions, "Scanned") if sbom.status else None
        seen = self._scanned(Request(sbom.namespace, sbom.name), report)
        return due(
            None if report is None else Scan.of(report, seen),
            scanned.reason if scanned is not None and scanned.status == "False" else "",
            Wishes(period=period.seconds if period else None, on_new_database=registry.spec.db_changed_rescan),
            World(database=database.digest if database else "", vex=said.digest, vex_since=said.since),
            self.clock.now(),
            share_of(uid_of(sbom)),
        )

    def _scanned(self, request: Request, report: VulnerabilityReport | None) -> datetime | None:
        """When it was scanned by our own clock, if we saw the report change. The time in the report is of a worker's clock:
        of one that is behind, every report would be old at once."""
        told = report.spec.scanned_at if report is not None else ""
        seen = self._seen.get(request)
        if seen is None or seen.told != told:
            seen = self._seen[request] = _Seen(told, None if seen is None else self.clock.now())
        return seen.at

    async def _ask(self, sbom: SBOM, registry: Registry, due: Due) -> Result:
        request = Request(sbom.namespace, sbom.name)
        before = self._asked.get(request)
        times = before.times + 1 if before is not None and before.key == due.key else 1
        message = ScanSBOM(
            namespace=sbom.namespace,
            registry=registry.name,
            registry_uid=uid_of(registry),
            sbom=sbom.name,
            sbom_uid=uid_of(sbom),
        )
        try:
            await self._context.queue.publish(SCANS, encode(message), id=f"scan/{uid_of(sbom)}/{due.key}/{times}")
        except QueueFull:
            return Result(requeue_after=FULL)
        asked = self._asked[request] = _Asked(due.key, self.clock.monotonic(), times)
        return Result(requeue_after=asked.again_after)

    async def _database(self) -> DatabaseRef | None:
        """The current one, read once for each change of its ConfigMap."""
        from trimtab.systems.images.databases import current

        found = (await self.client.list(ConfigMap, DATABASE_QUERY)).items
        revision = found[0].metadata.resource_version or "" if found else ""
        if revision != self._read[0]:
            self._read = (revision, await current(self.client))
        return self._read[1]

    async def _vex_of(self, namespace: str) -> _Said:
        """What the namespace's VEX sources say, looked up once for each change of one of them. Their own controller tells
        of changes in what they name."""
        from trimtab.systems.images.vex_sources import looked_up

        sources = (await self.client.list(VEXSource, Query(namespace=namespace))).items
        revisions = tuple(sorted(f"{uid_of(source)}/{source.metadata.resource_version}" for source in sources))
        known = self._said.get(namespace)
        if known is None or known.revisions != revisions:
            digest, _ = await looked_up(self.client, self._blobs, namespace)
            since = known.since if known is not None and known.digest == digest else self.clock.now()
            known = self._said[namespace] = _Said(revisions, digest, since)
        return known
