"""An addon: manifests that clusters get by their blueprint."""

from __future__ import annotations

from typing import Annotated

from msgspec import UNSET, Meta, UnsetType

from trimtab.model.conditions import Conditions
from trimtab.model.hub import File, HubResource
from trimtab.model.kind import Column
from trimtab.model.markers import Ref, Unordered
from trimtab.model.resource import Spec
from trimtab.systems.platform.kinds.artifact import Artifact
from trimtab.systems.platform.kinds.fields import Generation, NamespaceName, Referred, Shared, Version


class AddonSpec(Spec):
    """What clusters get, and where it comes from."""

    namespace: Annotated[NamespaceName, Meta(description="On the clusters, for objects that name none.")]
    version: Version | UnsetType = UNSET
    artifact: Artifact
    depends_on: Annotated[
        tuple[Annotated[Referred, Ref("Addon")], ...],
        Unordered(),
        Meta(max_length=64, description="Addons that must be well before this one is applied."),
    ] = ()
    sharing: Shared | UnsetType = UNSET


class AddonStatus(Spec):
    """What is known of it."""

    observed_generation: Generation | UnsetType = UNSET
    conditions: Conditions | UnsetType = UNSET


class Addon(
    HubResource,
    group="infra",
    version="v3",
    plural="addons",
    categories=("trimtab",),
    columns=(
        Column("Namespace", ".spec.namespace"),
        Column("Version", ".spec.version"),
        Column("Age", ".metadata.creationTimestamp", "date"),
    ),
):
    """Manifests for clusters, with published versions."""

    spec: AddonSpec
    status: AddonStatus | UnsetType = UNSET

    def version(self) -> str:
        return self.spec.version or ""

    def files(self) -> tuple[File, ...]:
        return self.spec.artifact.files()

    def trigger_internal(self) -> None:
        """Changes start a sync to Git."""
