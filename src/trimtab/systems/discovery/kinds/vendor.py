"""DiscoveryVendorProfile: how a vendor's devices are known, and where they say what they are. Its name is the provider."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import UNSET, Meta, UnsetType

from trimtab.model.resource import Resource, Spec

UNKNOWN = "unknown"
"""The provider of a device that no vendor profile matches."""

Key = Literal["version", "platform", "hostname", "serialNumber", "macAddress"]
Regex = Annotated[
    str, Meta(min_length=1, max_length=512, description="RE2. The first group is the value; without a match it stays.")
]
Transform = Annotated[
    str, Meta(min_length=1, max_length=1024, description="CEL over `value`, a string, after the regex; gives a string.")
]
Match = Annotated[str, Meta(min_length=1, max_length=512)]


class GnmiPath(Spec):
    key: Annotated[Key, Meta(description="What is found there.")]
    path: Annotated[str, Meta(min_length=1, max_length=1024, description="As platform/chassis/type or a[name=b]/c.")]
    regex: Regex | UnsetType = UNSET
    transform: Transform | UnsetType = UNSET


class GnmiVendor(Spec):
    organization: (
        Annotated[Match, Meta(description="The organization of a model in Capabilities, exactly.")] | UnsetType
    ) = UNSET
    model_match: Annotated[Match, Meta(description="A part of that model's name.")] | UnsetType = UNSET
    encoding: (
        Annotated[Literal["JSON", "JSON_IETF", "PROTO", "ASCII"], Meta(description="How to ask, if so.")] | UnsetType
    ) = UNSET
    preserve_namespace: Annotated[bool, Meta(description="Send module names that paths have.")] = True
    paths: Annotated[tuple[GnmiPath, ...], Meta(max_length=32, description="What to get.")] = ()


class NetconfPath(Spec):
    key: Annotated[Key, Meta(description="What is found there.")]
    path: Annotated[
        str, Meta(min_length=1, max_length=1024, description="Local names from the top, as system/state/hostname.")
    ]
    regex: Regex | UnsetType = UNSET
    transform: Transform | UnsetType = UNSET


class NetconfVendor(Spec):
    capability_match: Annotated[Match, Meta(description="RE2 on a capability of the hello.")] | UnsetType = UNSET
    filter: Annotated[str, Meta(max_length=16384, description="The subtree filter of the get, in XML.")] | UnsetType = (
        UNSET
    )
    paths: Annotated[tuple[NetconfPath, ...], Meta(max_length=32, description="What to read from the answer.")] = ()


class SshCommand(Spec):
    key: Annotated[Key, Meta(description="What its output says.")]
    command: Annotated[str, Meta(min_length=1, max_length=512, description="As typed: show version.")]
    regex: Regex | UnsetType = UNSET
    transform: Transform | UnsetType = UNSET


class SshVendor(Spec):
    banner_match: Annotated[Match, Meta(description="RE2 on the version line or the banner.")] | UnsetType = UNSET
    probe_command: (
        Annotated[str, Meta(min_length=1, max_length=512, description="Where the banner tells nothing: run this.")]
        | UnsetType
    ) = UNSET
    probe_match: Annotated[Match, Meta(description="RE2 on what it printed.")] | UnsetType = UNSET
    commands: Annotated[tuple[SshCommand, ...], Meta(max_length=32, description="What to run.")] = ()


class SnmpOid(Spec):
    key: Annotated[Key, Meta(description="What is found there.")]
    oid: Annotated[
        str,
        Meta(max_length=256, pattern=r"^[012](\.[0-9]{1,10})+$", description="Of one value: 1.3.6.1.2.1.1.5.0."),
    ]
    regex: Regex | UnsetType = UNSET
    transform: Transform | UnsetType = UNSET


class SnmpVendor(Spec):
    object_id: (
        Annotated[
            str,
            Meta(max_length=256, pattern=r"^[012](\.[0-9]{1,10})+$", description="What sysObjectID begins with."),
        ]
        | UnsetType
    ) = UNSET
    description_match: Annotated[Match, Meta(description="RE2 on sysDescr.")] | UnsetType = UNSET
    oids: Annotated[tuple[SnmpOid, ...], Meta(max_length=32, description="What to get.")] = ()


class DiscoveryVendorProfileSpec(Spec):
    extends: (
        Annotated[
            str, Meta(min_length=1, max_length=253, description="A profile whose protocols hold where this has none.")
        ]
        | UnsetType
    ) = UNSET
    gnmi: GnmiVendor | UnsetType = UNSET
    netconf: NetconfVendor | UnsetType = UNSET
    ssh: SshVendor | UnsetType = UNSET
    snmp: SnmpVendor | UnsetType = UNSET


class DiscoveryVendorProfile(
    Resource,
    group="discovery",
    version="v1alpha1",
    plural="discoveryvendorprofiles",
    short=("dvp",),
    categories=("discovery",),
):
    """How a vendor's devices are known, and where they say what they are."""

    spec: DiscoveryVendorProfileSpec
