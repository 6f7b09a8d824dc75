"""A blueprint: which addons, in which versions, a cluster has."""

from __future__ import annotations

from typing import Annotated

from msgspec import UNSET, Meta, UnsetType

from trimtab.model.conditions import Conditions
from trimtab.model.hub import HubResource
from trimtab.model.kind import Column
from trimtab.model.markers import Keyed, Ref, Unordered
from trimtab.model.resource import Spec
from trimtab.systems.platform.kinds.fields import LATEST, Generation, Referred, Shared, Version, Wanted


class BaseBlueprint(Spec):
    """Another blueprint whose addons come first."""

    name: Annotated[Referred, Ref("Blueprint"), Meta(description="A Blueprint.")]
    version: Wanted = LATEST


class BlueprintAddon(Spec):
    """One addon, in a version, after the others that it depends on."""

    name: Annotated[Referred, Ref("Addon"), Meta(description="An Addon.")]
    version: Wanted = LATEST
    depends_on: Annotated[
        tuple[Annotated[Referred, Ref("Addon")], ...],
        Unordered(),
        Meta(max_length=64, description="Addons of this blueprint or of its base that must be well before."),
    ] = ()


class BlueprintSpec(Spec):
    """Which addons, in which versions."""

    version: Version | UnsetType = UNSET
    base: BaseBlueprint | UnsetType = UNSET
    addons: Annotated[
        tuple[BlueprintAddon, ...], Keyed("name"), Meta(max_length=256, description="What a cluster gets.")
    ] = ()
    sharing: Shared | UnsetType = UNSET


class BlueprintStatus(Spec):
    """What is known of it."""

    observed_generation: Generation | UnsetType = UNSET
    conditions: Conditions | UnsetType = UNSET


class Blueprint(
    HubResource,
    group="infra",
    version="v3",
    plural="blueprints",
    short=("bp",),
    categories=("trimtab",),
    columns=(
        Column("Version", ".spec.version"),
        Column("Base", ".spec.base.name"),
        Column("Age", ".metadata.creationTimestamp", "date"),
    ),
):
    """A set of addons, with published versions."""

    spec: BlueprintSpec = BlueprintSpec()
    status: BlueprintStatus | UnsetType = UNSET

    def version(self) -> str:
        return self.spec.version or ""

    def trigger_internal(self) -> None:
        """Changes start a sync to Git."""
