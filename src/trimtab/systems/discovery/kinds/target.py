"""Target: one device, with all its addresses. Discovery writes it; others build on it."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import UNSET, Meta, UnsetType

from trimtab.model.conditions import Conditions
from trimtab.model.kind import Column
from trimtab.model.resource import Resource, Spec
from trimtab.systems.discovery.kinds.connection import Protocol

Time = Annotated[str, Meta(extra_json_schema={"format": "date-time"})]
Text = Annotated[str, Meta(max_length=512)]

RULE_LABEL = "discovery.trimtab.dev/rule"
IDENTITY_LABEL = "discovery.trimtab.dev/identity"
TEMPLATED = "discovery.trimtab.dev/templated"
"""Names the labels and annotations that come from the rule's templates: labels, a bar, annotations."""


class TargetSpec(Spec):
    provider: Annotated[str, Meta(max_length=253, description="The vendor profile's name, or unknown.")]
    address: Annotated[str, Meta(max_length=253, description="Where to reach it, without a port.")]
    credentials: Annotated[str, Meta(max_length=253, description="The Secret to log in with.")] | UnsetType = UNSET
    tls_secret: (
        Annotated[str, Meta(max_length=253, description="The Secret with CA and client certificate.")] | UnsetType
    ) = UNSET
    connection_profile: Annotated[str, Meta(max_length=253, description="How to speak to it.")] | UnsetType = UNSET
    sync_profile: Annotated[str, Meta(max_length=253, description="How to follow its configuration.")] | UnsetType = (
        UNSET
    )


class DiscoveryInfo(Spec):
    """What the device said of itself."""

    protocol: Annotated[Protocol, Meta(description="By what it was asked.")] | UnsetType = UNSET
    provider: Annotated[Text, Meta(description="The vendor profile that matched.")] | UnsetType = UNSET
    platform: Text | UnsetType = UNSET
    version: Text | UnsetType = UNSET
    hostname: Text | UnsetType = UNSET
    serial_number: Text | UnsetType = UNSET
    mac_address: Text | UnsetType = UNSET
    supported_encodings: Annotated[tuple[Text, ...], Meta(max_length=16)] | UnsetType = UNSET


class Evidence(Spec):
    """By what the device is told apart, strongest first."""

    serial_number: Text | UnsetType = UNSET
    engine_id: Annotated[Text, Meta(description="SNMPv3, in hexadecimal digits.")] | UnsetType = UNSET
    ssh_host_key: Annotated[Text, Meta(description="SHA256 fingerprint.")] | UnsetType = UNSET
    tls_key: Annotated[Text, Meta(description="SHA256 fingerprint of the public key.")] | UnsetType = UNSET
    mac_address: Text | UnsetType = UNSET
    hostname: Text | UnsetType = UNSET


class UsedReferences(Spec):
    """The resource versions of what the spec names."""

    secret_resource_version: Text | UnsetType = UNSET
    tls_secret_resource_version: Text | UnsetType = UNSET
    connection_profile_resource_version: Text | UnsetType = UNSET
    sync_profile_resource_version: Text | UnsetType = UNSET


class TargetStatus(Spec):
    conditions: Conditions | UnsetType = UNSET
    phase: Annotated[Literal["Ready", "Stale", "Lost"], Meta(description="Where it is in its life.")] | UnsetType = (
        UNSET
    )
    last_seen: (
        Annotated[Time, Meta(description="When the last sweep that it answered had ended. Written when it is missed.")]
        | UnsetType
    ) = UNSET
    discovery_info: DiscoveryInfo | UnsetType = UNSET
    addresses: Annotated[tuple[Text, ...], Meta(max_length=256, description="All that it answers at.")] | UnsetType = (
        UNSET
    )
    identity: Evidence | UnsetType = UNSET
    used_references: UsedReferences | UnsetType = UNSET


class Target(
    Resource,
    group="discovery",
    version="v1alpha1",
    plural="targets",
    short=("tg",),
    categories=("discovery",),
    columns=(
        Column("Phase", ".status.phase"),
        Column("Ready", ".status.conditions[?(@.type=='Ready')].status"),
        Column("Provider", ".spec.provider"),
        Column("Protocol", ".status.discoveryInfo.protocol"),
        Column("Address", ".spec.address"),
        Column("Platform", ".status.discoveryInfo.platform"),
        Column("Version", ".status.discoveryInfo.version"),
        Column("Serial", ".status.discoveryInfo.serialNumber", priority=1),
        Column("Hostname", ".status.discoveryInfo.hostname", priority=1),
    ),
):
    """One device: what it is, and how to reach it."""

    spec: TargetSpec
    status: TargetStatus | UnsetType = UNSET
