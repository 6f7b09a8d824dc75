"""TargetSyncProfile: how a Target's configuration is to be followed. Discovery checks it and carries its name."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import UNSET, Meta, UnsetType

from trimtab.model.duration import Duration
from trimtab.model.markers import Immutable, Keyed
from trimtab.model.resource import Resource, Spec

Path = Annotated[str, Meta(min_length=1, max_length=1024)]


class SyncEntry(Spec):
    name: Annotated[str, Meta(min_length=1, max_length=63, description="Tells entries apart.")]
    protocol: Annotated[Literal["gnmi", "netconf"], Meta(description="What to ask by.")] = "gnmi"
    port: Annotated[int, Meta(ge=1, le=65535, description="Unless set: gnmi 57400, netconf 830.")] | UnsetType = UNSET
    paths: Annotated[tuple[Path, ...], Meta(min_length=1, max_length=10, description="What to follow.")]
    mode: Annotated[Literal["onChange", "sample", "once", "get"], Meta(description="How to follow it.")] = "get"
    encoding: (
        Annotated[
            Literal["JSON", "JSON_IETF", "PROTO", "ASCII", "CONFIG"], Meta(description="How values are asked for.")
        ]
        | UnsetType
    ) = UNSET
    interval: Annotated[Duration, Meta(description="How often, with mode sample or get.")] = Duration("1m")


class TargetSyncProfileSpec(Spec):
    validate: Annotated[bool, Meta(description="Check what comes against the schema.")] = True
    buffer: Annotated[int, Meta(ge=0, le=1_000_000, description="How many updates may wait.")] = 0
    workers: Annotated[int, Meta(ge=1, le=1000, description="How many updates are handled at a time.")] = 10
    sync: Annotated[
        tuple[SyncEntry, ...], Keyed("name"), Meta(min_length=1, max_length=10, description="What to follow.")
    ]


class TargetSyncProfile(
    Resource,
    group="discovery",
    version="v1alpha1",
    plural="targetsyncprofiles",
    short=("tsp",),
    categories=("discovery",),
):
    """How a Target's configuration is to be followed."""

    spec: Annotated[TargetSyncProfileSpec, Immutable()]
