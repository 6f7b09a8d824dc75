"""A workload: manifests that are placed on clusters and kept there."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import UNSET, Meta, UnsetType

from trimtab.model.conditions import Conditions
from trimtab.model.duration import Duration
from trimtab.model.hub import File, HubResource
from trimtab.model.kind import Column
from trimtab.model.markers import Keyed, OneOf, Ref
from trimtab.model.resource import Spec
from trimtab.systems.platform.kinds.artifact import Artifact
from trimtab.systems.platform.kinds.fields import Generation, NamespaceName, Part, Referred, Shared, Version

DriftAction = Literal["Off", "Detect", "Correct"]


class PlacedCluster(Spec):
    """One of them."""

    name: Annotated[Referred, Ref("Cluster"), Meta(description="A Cluster.")]


class ClusterPlacement(Spec, one_of=OneOf("clusters", "labels")):
    """Where it goes: clusters by name, or by a selector of their labels."""

    clusters: (
        Annotated[tuple[PlacedCluster, ...], Keyed("name"), Meta(max_length=1000, description="By their names.")]
        | UnsetType
    ) = UNSET
    labels: (
        Annotated[str, Meta(min_length=1, max_length=1024, description="A selector, as kubectl writes it: `env=prod`.")]
        | UnsetType
    ) = UNSET


class Drift(Spec):
    """What is done about changes that others made on a cluster."""

    action: Annotated[DriftAction, Meta(description="Detect tells; Correct puts it back, too.")] = "Correct"
    interval: Annotated[Duration, Meta(description="How often is looked.")] = Duration("1m")


class WorkloadSpec(Spec):
    """What is placed, and where."""

    namespace: Annotated[NamespaceName, Meta(description="On the clusters, for objects that name none.")]
    placement: ClusterPlacement
    version: Version | UnsetType = UNSET
    artifact: Artifact
    drift: Drift = Drift()
    sharing: Shared | UnsetType = UNSET


class WorkloadStatus(Spec):
    """How it does on its clusters."""

    observed_generation: Generation | UnsetType = UNSET
    phase: Annotated[str, Meta(description="How far it has come, in one word.")] | UnsetType = UNSET
    revision: Annotated[str, Meta(description="The commit of a repository that it came from.")] | UnsetType = UNSET
    digest: Annotated[str, Meta(description="Of the manifests.")] | UnsetType = UNSET
    objects: Annotated[int, Meta(ge=0, description="That its manifests declare.")] | UnsetType = UNSET
    placed: Annotated[int, Meta(ge=0, description="On so many clusters it is meant to be.")] | UnsetType = UNSET
    ready: Annotated[int, Meta(ge=0, description="On so many of them it is well.")] | UnsetType = UNSET
    clusters: (
        Annotated[tuple[Part, ...], Keyed("name"), Meta(max_length=1024, description="How it does on each.")]
        | UnsetType
    ) = UNSET
    conditions: Conditions | UnsetType = UNSET


class Workload(
    HubResource,
    group="apps",
    version="v3",
    plural="workloads",
    short=("wl",),
    categories=("trimtab",),
    columns=(
        Column("Ready", ".status.conditions[?(@.type=='Ready')].status"),
        Column("Reason", ".status.conditions[?(@.type=='Ready')].reason"),
        Column("Placed", ".status.placed", "integer"),
        Column("Well", ".status.ready", "integer"),
        Column("Age", ".metadata.creationTimestamp", "date"),
        Column("Message", ".status.conditions[?(@.type=='Ready')].message", priority=1),
    ),
):
    """Manifests on clusters."""

    spec: WorkloadSpec
    status: WorkloadStatus | UnsetType = UNSET

    def version(self) -> str:
        return self.spec.version or ""

    def files(self) -> tuple[File, ...]:
        return self.spec.artifact.files()

    def trigger_internal(self) -> None:
        """Changes start a sync to Git."""
