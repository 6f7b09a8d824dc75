"""DiscoveryJob: one discovery of a registry, asked for by hand; or the reserved one, which tells of scheduled ones."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import UNSET, Meta, UnsetType, field

from trimtab.model.conditions import Conditions
from trimtab.model.kind import Column
from trimtab.model.markers import Artifact, Immutable
from trimtab.model.resource import Resource, Spec
from trimtab.runtime.progress import ProgressStatus
from trimtab.systems.images.kinds.registry import Count, Name, Time

RESERVED_LABEL = "images.trimtab.dev/reserved"
REGISTRY_LABEL = "images.trimtab.dev/registry-uid"
"""On jobs, Images, SBOMs and reports: the uid of their Registry."""

Until = Literal["Images", "SBOMs", "Reports"]
Short = Annotated[str, Meta(max_length=512)]
MOST_ERRORS = 20
MOST_CHANGES = 100


class DiscoveryJobSpec(Spec):
    """Of which registry, and how far to go."""

    registry: Annotated[Name, Immutable(), Meta(description="The Registry, in this namespace.")]
    manual_guid: (
        Annotated[str, Meta(max_length=128, description="Another value asks for another discovery.")] | UnsetType
    ) = field(default=UNSET, name="manualGUID")
    until: Annotated[Until, Meta(description="What must be there of every image when the job is completed.")] = "SBOMs"


class ImageError(Spec):
    """What could not be had: a tag, a repository without a tag, or the registry."""

    repository: Annotated[str, Meta(max_length=255)] | UnsetType = UNSET
    tag: Annotated[str, Meta(max_length=128)] | UnsetType = UNSET
    image: Annotated[str, Meta(max_length=63, description="The Image.")] | UnsetType = UNSET
    reason: Annotated[str, Meta(max_length=63)]
    message: Short


class ListingCounts(Spec):
    """How far the listing is, or was."""

    repositories: Count = 0
    tags: Count = 0
    found: Count = 0
    skipped: Annotated[Count, Meta(description="By filters, or because they are no images.")] = 0
    failed: Count = 0


class ImageCounts(Spec):
    """What became of Images. `discovered` are the members of the run: it completes when each of them is settled."""

    discovered: Count = 0
    created: Count = 0
    unchanged: Count = 0
    missing: Annotated[Count, Meta(description="Marked as missing.")] = 0
    removed: Count = 0
    held: Annotated[Count, Meta(description="Not removed, because they would be too many at once.")] = 0
    sboms: Annotated[Count, Meta(description="Members that have their SBOM.")] = 0
    reports: Annotated[Count, Meta(description="Members that have their report.")] = 0
    failed: Annotated[Count, Meta(description="Members that could not be done.")] = 0
    gone: Annotated[Count, Meta(description="Members whose Image was deleted meanwhile.")] = 0


class TagChange(Spec):
    change: Literal["added", "moved", "removed"]
    repository: Annotated[str, Meta(max_length=255)]
    tag: Annotated[str, Meta(max_length=128)]
    digest: Annotated[str, Meta(max_length=160, description="Of what the tag points to now.")] | UnsetType = UNSET
    before: Annotated[str, Meta(max_length=160, description="Of what it pointed to.")] | UnsetType = UNSET


class Diff(Spec):
    """What changed since the listing before."""

    added: Count = 0
    moved: Count = 0
    removed: Count = 0
    changes: Annotated[tuple[TagChange, ...], Meta(max_length=MOST_CHANGES, description="The first ones.")] = ()


class Listed(Spec):
    """What a worker has to say when its listing has ended: a catalogue, or why there is none."""

    catalog: Annotated[str, Artifact(), Meta(max_length=128, description="Digest of the catalogue.")] | UnsetType = (
        UNSET
    )
    complete: Annotated[bool, Meta(description="Everything was read, so what is not there is gone.")] = False
    reason: Annotated[str, Meta(max_length=63, description="Why there is no catalogue.")] | UnsetType = UNSET
    message: Short | UnsetType = UNSET
    registry_generation: Annotated[int, Meta(ge=0, description="Of the Registry that was used.")] | UnsetType = UNSET
    registry_uri: Annotated[str, Meta(max_length=255, description="The host that was listed.")] | UnsetType = field(
        default=UNSET, name="registryURI"
    )


class DiscoveryJobStatus(Spec):
    """`run_id` and `fence` guard it: a worker writes only while both are its own."""

    conditions: Conditions | UnsetType = UNSET
    observed_generation: Annotated[int, Meta(ge=0)] | UnsetType = UNSET
    observed_manual_guid: Annotated[str, Meta(max_length=128)] | UnsetType = field(
        default=UNSET, name="observedManualGUID"
    )
    run_id: Annotated[str, Meta(max_length=63)] | UnsetType = field(default=UNSET, name="runID")
    fence: Annotated[int, Meta(ge=0, description="Grows with each worker that takes the run.")] | UnsetType = UNSET
    type: Annotated[Literal["manual", "scheduled"], Meta(description="What asked for it.")] | UnsetType = UNSET
    worker: Annotated[str, Meta(max_length=253, description="Who lists.")] | UnsetType = UNSET
    heartbeat: Annotated[Time, Meta(description="When that worker last reported.")] | UnsetType = UNSET
    start_time: Time | UnsetType = UNSET
    deadline: Annotated[Time, Meta(description="When the run fails if it has not ended.")] | UnsetType = UNSET
    completion_time: Time | UnsetType = UNSET
    blocked_by: Annotated[str, Meta(max_length=253, description="The job that was running.")] | UnsetType = UNSET
    progress: ProgressStatus | UnsetType = UNSET
    listing: ListingCounts | UnsetType = UNSET
    listed: Listed | UnsetType = UNSET
    images: ImageCounts | UnsetType = UNSET
    diff: Diff | UnsetType = UNSET
    errors: (
        Annotated[tuple[ImageError, ...], Meta(max_length=MOST_ERRORS, description="The first ones.")] | UnsetType
    ) = UNSET
    error_count: Count | UnsetType = UNSET


class DiscoveryJob(
    Resource,
    group="images",
    version="v1alpha1",
    plural="discoveryjobs",
    short=("dj",),
    categories=("image-discovery",),
    selectable=(".spec.registry",),
    columns=(
        Column("Registry", ".spec.registry"),
        Column("Type", ".status.type"),
        Column("Progressing", ".status.conditions[?(@.type=='Progressing')].reason"),
        Column("Completed", ".status.conditions[?(@.type=='Completed')].status"),
        Column("Reason", ".status.conditions[?(@.type=='Completed')].reason"),
        Column("Images", ".status.images.discovered", type="integer"),
        Column("SBOMs", ".status.images.sboms", type="integer"),
        Column("Failed", ".status.images.failed", type="integer"),
        Column("Message", ".status.conditions[?(@.type=='Completed')].message", priority=1),
    ),
):
    """One discovery of a registry and how far it is."""

    spec: DiscoveryJobSpec
    status: DiscoveryJobStatus | UnsetType = UNSET
