"""Image, SBOM and VulnerabilityReport: what a tag points to for one platform, what is in it, and what is wrong with it.

All three have the same name, a hash of registry, repository, tag and digest; an Image owns its SBOM, and that its report.
Documents are blobs, so that no object is large.
"""

from __future__ import annotations

from typing import Annotated

from msgspec import UNSET, Meta, UnsetType, field

from trimtab.model.conditions import Conditions
from trimtab.model.kind import Column
from trimtab.model.markers import Artifact
from trimtab.model.resource import Resource, Spec
from trimtab.systems.images.kinds.registry import Count, Name, Time

Digest = Annotated[str, Meta(max_length=160)]
Blob = Annotated[str, Artifact(), Meta(max_length=128)]


class ImageMetadata(Spec):
    """Which image."""

    registry: Annotated[Name, Meta(description="The Registry's name.")]
    registry_uri: Annotated[str, Meta(max_length=255, description="Its host, as logins know it.")] = field(
        name="registryURI"
    )
    repository: Annotated[str, Meta(max_length=255)]
    tag: Annotated[str, Meta(max_length=128)]
    digest: Annotated[Digest, Meta(description="Of the platform's manifest.")]
    index_digest: Annotated[Digest, Meta(description="Of the index that the tag points to.")] | UnsetType = UNSET
    platform: Annotated[str, Meta(max_length=128, description="linux/arm64/v8.")] | UnsetType = UNSET


class ImageLayer(Spec):
    digest: Digest
    diff_id: Annotated[Digest, Meta(description="Of the layer without compression.")] | UnsetType = field(
        default=UNSET, name="diffID"
    )
    size: Count = 0
    media_type: Annotated[str, Meta(max_length=255)] | UnsetType = UNSET
    command: Annotated[str, Meta(max_length=256, description="What made it.")] | UnsetType = UNSET
    foreign: Annotated[bool, Meta(description="Kept elsewhere, and not fetched.")] = False


class ImageSpec(ImageMetadata):
    """Which image, and what it is made of."""

    layers: Annotated[tuple[ImageLayer, ...], Meta(max_length=512)] = ()
    size: Annotated[Count, Meta(description="Of all layers, as the registry keeps them.")] | UnsetType = UNSET
    created: Annotated[str, Meta(max_length=64)] | UnsetType = UNSET


class Attempt(Spec):
    """The last try to make the SBOM."""

    run: Annotated[str, Meta(max_length=63, description="The discovery that asked for it.")]
    reason: Annotated[str, Meta(max_length=63, description="Why it failed.")] | UnsetType = UNSET
    message: Annotated[str, Meta(max_length=512)] | UnsetType = UNSET


class ImageStatus(Spec):
    """Whether its SBOM is there, and whether its tag still is."""

    conditions: Conditions | UnsetType = UNSET
    missing_since: Annotated[Time, Meta(description="Since when the tag is gone, or points elsewhere.")] | UnsetType = (
        UNSET
    )
    attempt: Attempt | UnsetType = UNSET


_COLUMNS = (
    Column("Registry", ".spec.registry"),
    Column("Repository", ".spec.repository"),
    Column("Tag", ".spec.tag"),
    Column("Platform", ".spec.platform"),
)
_SELECTABLE = (".spec.registry", ".spec.repository", ".spec.tag", ".spec.digest")


class Image(
    Resource,
    group="images",
    version="v1alpha1",
    plural="images",
    short=("img",),
    categories=("image-discovery",),
    selectable=_SELECTABLE,
    columns=(
        *_COLUMNS,
        Column("Ready", ".status.conditions[?(@.type=='Ready')].status"),
        Column("Reason", ".status.conditions[?(@.type=='Ready')].reason"),
        Column("Missing", ".status.missingSince", type="date"),
        Column("Digest", ".spec.digest", priority=1),
    ),
):
    """What a tag points to, for one platform. Ready says whether its SBOM is there."""

    spec: ImageSpec
    status: ImageStatus | UnsetType = UNSET


class Documents(Spec):
    """Digests of blobs."""

    spdx: Annotated[Blob, Meta(description="SPDX 2.3 in JSON.")]
    cyclonedx: Annotated[Blob, Meta(description="CycloneDX 1.6 in JSON.")]
    inventory: Annotated[Blob, Meta(description="What scans read.")]


class SBOMSpec(ImageMetadata):
    """Of which image, and where its documents are."""

    documents: Documents
    distro: Annotated[str, Meta(max_length=128, description="debian 12.")] | UnsetType = UNSET
    packages: Annotated[dict[str, int], Meta(max_length=32, description="How many, by type.")] | UnsetType = UNSET
    package_count: Count = 0
    warnings: Annotated[
        tuple[Annotated[str, Meta(max_length=512)], ...], Meta(max_length=20, description="What could not be read.")
    ] = ()


class SBOMStatus(Spec):
    """Whether it was scanned."""

    conditions: Conditions | UnsetType = UNSET


class SBOM(
    Resource,
    group="images",
    version="v1alpha1",
    plural="sboms",
    categories=("image-discovery",),
    selectable=_SELECTABLE,
    columns=(
        *_COLUMNS,
        Column("Distro", ".spec.distro"),
        Column("Packages", ".spec.packageCount", type="integer"),
        Column("Scanned", ".status.conditions[?(@.type=='Scanned')].status"),
        Column("Reason", ".status.conditions[?(@.type=='Scanned')].reason", priority=1),
    ),
):
    """What is in an image. `trimtab images sbom NAME` prints the document."""

    spec: SBOMSpec
    status: SBOMStatus | UnsetType = UNSET


class Severities(Spec):
    critical: Count = 0
    high: Count = 0
    medium: Count = 0
    low: Count = 0
    unknown: Count = 0
    suppressed: Annotated[Count, Meta(description="By VEX statements; not in the others.")] = 0


class TopFinding(Spec):
    id: Annotated[str, Meta(max_length=128)]
    severity: Annotated[str, Meta(max_length=16)]
    package: Annotated[str, Meta(max_length=255)]
    installed_version: Annotated[str, Meta(max_length=255)]
    fixed_version: Annotated[str, Meta(max_length=255)] | UnsetType = UNSET


class VulnerabilityReportSpec(ImageMetadata):
    """Of which image, how much is wrong with it, and where the whole report is."""

    document: Annotated[Blob, Meta(description="The whole report, in JSON.")]
    summary: Severities
    top: Annotated[tuple[TopFinding, ...], Meta(max_length=20, description="The worst that are not suppressed.")] = ()
    database: Annotated[str, Meta(max_length=128, description="Digest of the vulnerability database's contents.")]
    vex: Annotated[str, Meta(max_length=128, description="Digest of the VEX statements that counted.")] | UnsetType = (
        UNSET
    )
    scanned_at: Time
    not_checked: Annotated[Count, Meta(description="Packages of which the database knows nothing.")] = 0
    not_comparable: Annotated[Count, Meta(description="Versions that nobody can compare.")] = 0


class VulnerabilityReport(
    Resource,
    group="images",
    version="v1alpha1",
    plural="vulnerabilityreports",
    short=("vuln",),
    categories=("image-discovery",),
    selectable=_SELECTABLE,
    columns=(
        *_COLUMNS,
        Column("Critical", ".spec.summary.critical", type="integer"),
        Column("High", ".spec.summary.high", type="integer"),
        Column("Medium", ".spec.summary.medium", type="integer"),
        Column("Low", ".spec.summary.low", type="integer"),
        Column("Unknown", ".spec.summary.unknown", type="integer", priority=1),
        Column("Suppressed", ".spec.summary.suppressed", type="integer"),
        Column("Scanned", ".spec.scannedAt", type="date"),
    ),
):
    """What is wrong with an image, as a database knows it. `trimtab images report NAME` prints all of it."""

    spec: VulnerabilityReportSpec
