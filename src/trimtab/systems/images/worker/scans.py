"""Makes the report of an SBOM: what the vulnerability database and the VEX statements of today say of its packages.

Flow: the inventory is matched in a process of its own, the report is put as a blob and pinned for the SBOM, its resource
is created or patched, the report before is unpinned. Then the SBOM says that it is Scanned.

Guarantees: a report that is named is pinned. One that says the same as before only renews its time. Without a database the
SBOM says so, and nothing is tried again: whoever imports one asks anew. What cannot be done ever is written to the SBOM.
"""

from __future__ import annotations

from msgspec import UNSET

from trimtab.model.backoff import Chance
from trimtab.model.clock import format_time
from trimtab.model.errors import StatusError
from trimtab.model.logs import log
from trimtab.model.objectmeta import ObjectMeta
from trimtab.runtime.objects import is_deleting, uid_of
from trimtab.runtime.owners import own, owned_by
from trimtab.runtime.status import condition
from trimtab.storage.blobs import BlobDamaged, BlobMissing, BlobTooLarge, Digest, read
from trimtab.systems.images.databases import Databases, NoDatabase
from trimtab.systems.images.kinds import SBOM, SBOMStatus, VulnerabilityReport, VulnerabilityReportSpec
from trimtab.systems.images.kinds.job import REGISTRY_LABEL
from trimtab.systems.images.messages import ScanSBOM
from trimtab.systems.images.pins import former_report_owner, report_owner
from trimtab.systems.images.vex_sources import VexSources
from trimtab.systems.images.vulnerabilities.database import DatabaseError
from trimtab.systems.images.worker.documents import LARGEST_INVENTORY, metadata_of, subject_of
from trimtab.systems.images.worker.examining import Examined, Unreadable, examine
from trimtab.systems.images.worker.handling import Tools
from trimtab.systems.images.worker.patience import Patience
from trimtab.systems.images.worker.statuses import change_status, find

SCANNED = "Scanned"
MEDIA_TYPE = "application/vnd.trimtab.vulnerability-report+json"
TIMEOUT = 300.0
ATTEMPTS = 8


class Failed(Exception):  # noqa: N818 - it reads as what happened
    """The SBOM cannot be scanned as things are."""

    def __init__(self, reason: str, why: str) -> None:
        super().__init__(why)
        self.reason = reason


class ScanHandler:
    """Fulfils `Handler[ScanSBOM]`."""

    def __init__(self, tools: Tools, *, chance: Chance | None = None) -> None:
        self._tools = tools
        self._databases = Databases(tools.client, tools.blobs, tools.scratch)
        self._vex = VexSources(tools.client, tools.blobs, tools.scratch, tools.workers, clock=tools.clock)
        self._patience = Patience(chance)

    async def handle(self, message: ScanSBOM) -> None:
        sbom = await find(self._tools.client, SBOM, message.sbom, message.namespace, message.sbom_uid)
        if sbom is None:  # a try before this one may have pinned for it when nobody cleaned up after it any more
            await self._tools.blobs.unpin(former_report_owner(message.namespace, message.sbom, message.sbom_uid))
            return
        if is_deleting(sbom):
            return
        try:
            spec = await self._examined(sbom)
            await self._report(sbom, spec)
        except Failed as error:
            await self._tell(sbom, ok=False, reason=error.reason, why=str(error))
            return
        self._patience.forget(uid_of(sbom))
        told = await self._tell(sbom, ok=True, reason=SCANNED)
        if told is None or is_deleting(told):  # whoever cleaned up after it may have been before us
            await self._tools.blobs.unpin(report_owner(sbom))

    async def give_up(self, message: ScanSBOM, why: str) -> None:
        sbom = await find(self._tools.client, SBOM, message.sbom, message.namespace, message.sbom_uid)
        if sbom is not None:
            reason, last = self._patience.last(uid_of(sbom))
            await self._tell(sbom, ok=False, reason=reason or "GivenUp", why=f"{last} ({why})" if last else why)

    async def _examined(self, sbom: SBOM) -> VulnerabilityReportSpec:
        """The report's document is put and pinned."""
        tools, now = self._tools, self._tools.clock.now()
        try:
            async with self._databases.opened() as database, self._vex.statements(sbom.namespace) as statements:
                inventory = await self._inventory(sbom)
                examined: Examined = await tools.workers.run(
                    examine, inventory, database.path, statements.paths, _image(sbom), timeout=TIMEOUT
                )
        except NoDatabase as error:
            raise Failed("NoDatabase", str(error)) from None
        except DatabaseError:
            why = "the vulnerability database cannot be read by this version: import it again"
            raise Failed("DatabaseUnreadable", f"{why} with `trimtab images import-db`") from None
        except Unreadable as error:
            raise Failed("InventoryUnreadable", f"{error}: delete the SBOM, and discover again") from None
        if examined.left_out:
            log.warning("VEX sources say too much of one image to be heard", sbom=sbom.name, sources=examined.left_out)
        try:
            document = await tools.blobs.put(examined.document, media_type=MEDIA_TYPE)
        except BlobTooLarge as error:
            raise Failed("ReportTooLarge", str(error)) from None
        await tools.blobs.pin(document, report_owner(sbom))
        return VulnerabilityReportSpec(
            **metadata_of(sbom.spec),
            document=document,
            summary=examined.summary,
            top=examined.top,
            database=examined.database,
            vex=statements.digest or UNSET,
            scanned_at=format_time(now),
            not_checked=examined.not_checked,
            not_comparable=examined.not_comparable,
        )

    async def _inventory(self, sbom: SBOM) -> bytes:
        try:
            digest = Digest(sbom.spec.documents.inventory)
            return await read(self._tools.blobs, digest, max_bytes=LARGEST_INVENTORY)
        except BlobMissing:
            why = "the documents of the SBOM are gone: delete the SBOM, and discover again"
            raise Failed("InventoryMissing", why) from None
        except (BlobDamaged, BlobTooLarge, ValueError) as error:
            raise Failed("InventoryUnreadable", f"{error}: delete the SBOM, and discover again") from None

    async def _report(self, sbom: SBOM, spec: VulnerabilityReportSpec) -> None:
        """The resource says what the document says. Several may write it at once: the last one stays."""
        for attempt in range(1, ATTEMPTS + 1):
            before = await find(self._tools.client, VulnerabilityReport, sbom.name, sbom.namespace)
            if before is not None and (is_deleting(before) or not owned_by(before, sbom)):
                raise self._patience.later(uid_of(sbom), "ReportGoing", "a report of this name is on its way out")
            try:
                if before is None:
                    await self._tools.client.create(own(_new(sbom, spec), sbom))
                else:
                    await self._tools.client.patch(before, before.replace(spec=spec))
            except StatusError as error:
                if error.code not in (404, 409) or attempt == ATTEMPTS:
                    raise
                continue
            if before is not None and before.spec.document != spec.document:
                await self._unpin(sbom, Digest(before.spec.document))
            return

    async def _unpin(self, sbom: SBOM, document: Digest) -> None:
        """The report before, unless somebody else has just gone back to it."""
        await self._tools.blobs.unpin(report_owner(sbom), document)
        current = await find(self._tools.client, VulnerabilityReport, sbom.name, sbom.namespace)
        if current is not None and owned_by(current, sbom) and current.spec.document == document:
            await self._tools.blobs.pin(document, report_owner(sbom))

    async def _tell(self, sbom: SBOM, *, ok: bool, reason: str, why: str = "") -> SBOM | None:
        def status(sbom: SBOM) -> SBOMStatus:
            before = sbom.status or SBOMStatus()
            generation = sbom.metadata.generation
            conditions = condition(before.conditions, self._tools.clock, generation, SCANNED, ok, reason, why)
            return before.replace(conditions=conditions)

        return await change_status(self._tools.client, sbom, status)


def _new(sbom: SBOM, spec: VulnerabilityReportSpec) -> VulnerabilityReport:
    registry = (sbom.metadata.labels or {}).get(REGISTRY_LABEL, "")
    metadata = ObjectMeta(name=sbom.name, namespace=sbom.namespace, labels={REGISTRY_LABEL: registry})
    return VulnerabilityReport(metadata=metadata, spec=spec)


def _image(sbom: SBOM) -> tuple[str, ...]:
    """Package URLs that statements may mean it by: of its manifest, and of the index that the tag points to."""
    spec = sbom.spec
    digests = [spec.digest, *([spec.index_digest] if spec.index_digest else [])]
    return tuple(subject_of(spec.replace(digest=digest)).purl for digest in digests)
