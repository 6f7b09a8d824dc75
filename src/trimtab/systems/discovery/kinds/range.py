"""DiscoveryRuleIPRange: where addresses come from. The first implementation of a rule."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import UNSET, Meta, UnsetType

from trimtab.model.markers import Keyed, Rule
from trimtab.model.resource import Resource, Spec

AddressRange = Annotated[
    str,
    Meta(min_length=2, max_length=128, description="10.1.0.0/24, 10.1.0.5-10.1.0.9, 2001:db8::/112, or one address."),
]


class Requirement(Spec):
    """One condition on one label."""

    key: Annotated[str, Meta(min_length=1, max_length=317)]
    operator: Literal["In", "NotIn", "Exists", "DoesNotExist"]
    values: Annotated[tuple[str, ...], Meta(max_length=64)] = ()


class Selector(Spec):
    """Which labels an object must carry, as Kubernetes writes it."""

    match_labels: Annotated[dict[str, str], Meta(max_length=64)] | UnsetType = UNSET
    match_expressions: Annotated[tuple[Requirement, ...], Meta(max_length=64)] = ()


class PrefixEntry(Spec):
    prefix: AddressRange
    excludes: Annotated[tuple[AddressRange, ...], Meta(max_length=256, description="What to leave out of it.")] = ()


class AddressEntry(Spec):
    address: Annotated[str, Meta(min_length=1, max_length=253, description="An address, or a DNS name.")]
    host_name: (
        Annotated[str, Meta(min_length=1, max_length=253, description="What to call it, where nothing is probed.")]
        | UnsetType
    ) = UNSET


class DefaultSchema(Spec):
    provider: Annotated[str, Meta(min_length=1, max_length=253, description="The vendor profile's name.")]
    version: Annotated[str, Meta(min_length=1, max_length=63, description="The software version.")]


class DiscoveryRuleIPRangeSpec(
    Spec,
    rules=(
        Rule(
            "has(self.prefixes) && size(self.prefixes) > 0 || has(self.addresses) && size(self.addresses) > 0"
            " || has(self.podSelector) || has(self.serviceSelector)",
            "name at least one source: prefixes, addresses, podSelector or serviceSelector",
            reason="FieldValueRequired",
        ),
        Rule(
            "!has(self.defaultSchema) || !has(self.prefixes) || size(self.prefixes) == 0",
            "prefixes cannot be written unprobed: give addresses or a selector with defaultSchema",
            reason="FieldValueForbidden",
            field=".prefixes",
        ),
    ),
):
    prefixes: Annotated[
        tuple[PrefixEntry, ...], Keyed("prefix"), Meta(max_length=256, description="Ranges to sweep.")
    ] = ()
    addresses: Annotated[
        tuple[AddressEntry, ...], Keyed("address"), Meta(max_length=4096, description="Single addresses and DNS names.")
    ] = ()
    pod_selector: Annotated[Selector, Meta(description="Pods of this namespace.")] | UnsetType = UNSET
    service_selector: Annotated[Selector, Meta(description="Services of this namespace.")] | UnsetType = UNSET
    service_domain: Annotated[str, Meta(max_length=253, description="The cluster's DNS domain.")] = "cluster.local"
    default_schema: (
        Annotated[DefaultSchema, Meta(description="Nothing is probed: every entry becomes a Target of this kind.")]
        | UnsetType
    ) = UNSET


class DiscoveryRuleIPRange(
    Resource,
    group="discovery",
    version="v1alpha1",
    plural="discoveryruleipranges",
    short=("drip",),
    categories=("discovery",),
):
    """Where the addresses of a DiscoveryRule come from."""

    spec: DiscoveryRuleIPRangeSpec
