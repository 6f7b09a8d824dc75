"""Images, SBOMs and reports as workers and controllers would leave them, for commands that only read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
from msgspec import UNSET

from trimtab.client.api import ApiClient
from trimtab.model.conditions import Condition
from trimtab.model.objectmeta import ObjectMeta
from trimtab.storage.folder import FolderBlobs
from trimtab.systems.images.kinds import (
    SBOM,
    Documents,
    Image,
    ImageSpec,
    ImageStatus,
    SBOMSpec,
    SBOMStatus,
    Severities,
    VulnerabilityReport,
    VulnerabilityReportSpec,
)
from trimtab.systems.images.registry.references import image_name
from trimtab.systems.images.vulnerabilities.report import Report

NOON = "2026-01-01T12:00:00Z"
DATABASE = f"sha256:{'d' * 64}"


def digest(number: int) -> str:
    return f"sha256:{number:064x}"


def condition(kind: str, status: str, reason: str, message: str) -> Condition:
    return Condition(type=kind, status=status, reason=reason, message=message, last_transition_time=NOON)  # type: ignore[arg-type]


class Shelf:
    """Puts them into one namespace of a server, and their documents into a folder of blobs."""

    def __init__(self, client: ApiClient, namespace: str, blobs: Path) -> None:
        self._client, self._namespace = client, namespace
        self.blobs = FolderBlobs(blobs)

    async def image(
        self,
        tag: str = "1.0",
        *,
        platform: str = "linux/amd64",
        number: int = 1,
        registry: str = "lab",
        repository: str = "team/app",
        status: ImageStatus | None = None,
    ) -> Image:
        spec = ImageSpec(
            registry=registry,
            registry_uri=f"{registry}.example.com",
            repository=repository,
            tag=tag,
            digest=digest(number),
            platform=platform or UNSET,
        )
        metadata = ObjectMeta(name=image_name(registry, repository, tag, spec.digest), namespace=self._namespace)
        made = await self._client.create(Image(metadata=metadata, spec=spec))
        return await self._client.patch(made, made.replace(status=status), subresource="status") if status else made

    async def sbom(self, image: Image, *, spdx: bytes = b'{"spdxVersion":"SPDX-2.3"}', **status: Any) -> SBOM:
        documents = Documents(
            spdx=await self.blobs.put(spdx),
            cyclonedx=await self.blobs.put(b'{"bomFormat":"CycloneDX"}'),
            inventory=await self.blobs.put(b"inventory"),
        )
        spec = SBOMSpec(**_metadata(image), documents=documents, package_count=3)
        made = await self._client.create(SBOM(metadata=_named(image), spec=spec))
        new = made.replace(status=SBOMStatus(**status))
        return await self._client.patch(made, new, subresource="status") if status else made

    async def report(self, image: Image, report: Report) -> VulnerabilityReport:
        spec = VulnerabilityReportSpec(
            **_metadata(image),
            document=await self.blobs.put(msgspec.json.encode(report)),
            summary=Severities(**msgspec.structs.asdict(report.summary)),
            database=DATABASE,
            scanned_at=NOON,
        )
        return await self._client.create(VulnerabilityReport(metadata=_named(image), spec=spec))


def _named(image: Image) -> ObjectMeta:
    return ObjectMeta(name=image.name, namespace=image.namespace)


def _metadata(image: Image) -> dict[str, Any]:
    names = ("registry", "registry_uri", "repository", "tag", "digest", "platform")
    return {name: getattr(image.spec, name) for name in names}
