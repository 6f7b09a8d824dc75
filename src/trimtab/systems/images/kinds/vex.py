"""VEXSource: statements of vendors that say which findings do not matter."""

from __future__ import annotations

from typing import Annotated

from msgspec import UNSET, Meta, UnsetType

from trimtab.model.conditions import Conditions
from trimtab.model.kind import Column
from trimtab.model.markers import Artifact, OneOf
from trimtab.model.resource import Resource, Spec
from trimtab.systems.images.kinds.registry import Count, Name, Time


class ConfigMapRef(Spec):
    name: Annotated[Name, Meta(description="A ConfigMap of this namespace; each of its keys is an OpenVEX document.")]


class VEXSourceSpec(Spec, one_of=OneOf("inline", "configMap", "blob")):
    """For all images of its namespace."""

    inline: Annotated[str, Meta(max_length=131072, description="An OpenVEX document in JSON.")] | UnsetType = UNSET
    config_map: ConfigMapRef | UnsetType = UNSET
    blob: (
        Annotated[str, Artifact(), Meta(max_length=128, description="Of `trimtab images import-vex`.")] | UnsetType
    ) = UNSET
    enabled: bool = True


class VEXSourceStatus(Spec):
    """What was read."""

    conditions: Conditions | UnsetType = UNSET
    documents: Count | UnsetType = UNSET
    statements: Count | UnsetType = UNSET
    skipped: Annotated[tuple[Annotated[str, Meta(max_length=512)], ...], Meta(max_length=20)] | UnsetType = UNSET
    read_at: Time | UnsetType = UNSET


class VEXSource(
    Resource,
    group="images",
    version="v1alpha1",
    plural="vexsources",
    short=("vex",),
    categories=("image-discovery",),
    columns=(
        Column("Ready", ".status.conditions[?(@.type=='Ready')].status"),
        Column("Documents", ".status.documents", type="integer"),
        Column("Statements", ".status.statements", type="integer"),
        Column("Message", ".status.conditions[?(@.type=='Ready')].message", priority=1),
    ),
):
    """OpenVEX documents that suppress findings in the reports of their namespace."""

    spec: VEXSourceSpec
    status: VEXSourceStatus | UnsetType = UNSET
