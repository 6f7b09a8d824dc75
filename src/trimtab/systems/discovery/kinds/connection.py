"""TargetConnectionProfile: how to speak to a device. It never changes once it exists; a change is a new profile."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

from msgspec import UNSET, Meta, UnsetType, field

from trimtab.model.duration import Duration
from trimtab.model.kind import Column
from trimtab.model.markers import Immutable
from trimtab.model.resource import Resource, Spec

Protocol = Literal["gnmi", "netconf", "ssh", "snmp"]
SnmpVersion = Literal["v1", "v2c", "v3"]
Encoding = Literal["JSON", "JSON_IETF", "PROTO", "ASCII"]

PORTS: dict[Protocol, int] = {"gnmi": 57400, "netconf": 830, "ssh": 22, "snmp": 161}
"""Where each protocol listens unless a profile says otherwise."""


class TargetConnectionProfileSpec(Spec):
    protocol: Annotated[Protocol, Meta(description="What the device speaks.")] = "gnmi"
    port: (
        Annotated[int, Meta(ge=1, le=65535, description="Unless set: gnmi 57400, netconf 830, ssh 22, snmp 161.")]
        | UnsetType
    ) = UNSET
    timeout: Annotated[Duration, Meta(description="How long the device may take for one answer.")] = Duration("10s")
    connect_retry: Annotated[
        Duration,
        Meta(description="How long a sweep waits before it tries again a device that broke off. 0 tries once."),
    ] = Duration("10s")
    probe_timeout: Annotated[Duration, Meta(description="How long the first probe waits for an answer.")] = Duration(
        "1s"
    )
    probe_retries: Annotated[
        int, Meta(ge=0, le=5, description="How often the first probe is sent again when nothing answers.")
    ] = 1
    encoding: (
        Annotated[Encoding, Meta(description="gNMI: how values are asked for; a vendor profile goes before it.")]
        | UnsetType
    ) = UNSET
    insecure: Annotated[bool, Meta(description="gNMI: without TLS.")] = False
    skip_verify: Annotated[
        bool,
        Meta(description="gNMI: take the device's certificate as it is on first use, and refuse another one later."),
    ] = False
    server_name: (
        Annotated[str, Meta(max_length=253, description="gNMI: the name in the certificate, if it is not the address.")]
        | UnsetType
    ) = UNSET
    target_name: (
        Annotated[str, Meta(max_length=253, description="gNMI: the target of the path prefix.")] | UnsetType
    ) = UNSET
    snmp_version: (
        Annotated[
            SnmpVersion,
            Meta(description="Unless set: v3 for a Secret with snmp-user, else v2c."),
        ]
        | UnsetType
    ) = UNSET
    preferred_netconf_version: Annotated[
        Literal["1.0", "1.1"], Meta(description="NETCONF: the newest base version to offer.")
    ] = "1.1"
    include_ns: Annotated[bool, Meta(description="For whoever configures the Target: name namespaces.")] = field(
        default=False, name="includeNS"
    )
    operation_with_ns: Annotated[
        bool, Meta(description="For whoever configures the Target: operations with namespace.")
    ] = field(default=False, name="operationWithNS")
    use_operation_remove: Annotated[
        bool, Meta(description="For whoever configures the Target: remove, not delete.")
    ] = False
    commit_candidate: Annotated[
        Literal["candidate", "running"], Meta(description="For whoever configures the Target: which datastore.")
    ] = "candidate"

    def spoken_snmp(self, secret: Mapping[str, object]) -> SnmpVersion:
        """The version of SNMP with a Secret of these values. An empty user is none."""
        if isinstance(self.snmp_version, UnsetType):
            return "v3" if secret.get("snmp-user") else "v2c"
        return self.snmp_version

    @property
    def used_port(self) -> int:
        """The port, given or usual."""
        return self.port or PORTS[self.protocol]


class TargetConnectionProfile(
    Resource,
    group="discovery",
    version="v1alpha1",
    plural="targetconnectionprofiles",
    short=("tcp",),
    categories=("discovery",),
    columns=(
        Column("Protocol", ".spec.protocol"),
        Column("Port", ".spec.port", type="integer"),
    ),
):
    """How to speak to a device: protocol, port, time-outs, TLS."""

    spec: Annotated[TargetConnectionProfileSpec, Immutable()]
