"""DiscoveryRule: what to discover, how to log in, what the Targets look like, and how often."""

from __future__ import annotations

from typing import Annotated

from msgspec import UNSET, Meta, UnsetType

from trimtab.model.conditions import Conditions
from trimtab.model.duration import Duration
from trimtab.model.kind import Column
from trimtab.model.markers import Artifact, Immutable, Keyed, Rule
from trimtab.model.resource import Resource, Spec
from trimtab.runtime.progress import ProgressStatus
from trimtab.runtime.runs import History

Name = Annotated[str, Meta(min_length=1, max_length=253)]
Template = Annotated[str, Meta(max_length=1024)]
Time = Annotated[str, Meta(extra_json_schema={"format": "date-time"})]

RUN_ANNOTATION = "discovery.trimtab.dev/run"
"""A new value asks for a sweep now."""
RELEASE_ANNOTATION = "discovery.trimtab.dev/release-mass-loss"
"""The id of the run that was held back: what it lost may go."""
REPIN_ANNOTATION = "discovery.trimtab.dev/repin"
"""Addresses, or "all", whose changed keys are accepted at the next sweep."""


class RuleRef(Spec):
    group: Annotated[str, Meta(max_length=253, description="discovery.trimtab.dev")]
    version: Annotated[str, Meta(max_length=63, description="v1alpha1")]
    kind: Annotated[str, Meta(max_length=63, description="DiscoveryRuleIPRange")]
    name: Annotated[Name, Meta(description="Which one, in this namespace.")]


class DiscoveryProfile(Spec):
    credentials: Annotated[Name, Meta(description="The Secret to log in with.")]
    fallback_credentials: Annotated[
        tuple[Name, ...], Meta(max_length=8, description="Secrets to try after it, one in each lock-out window.")
    ] = ()
    tls_secret: Annotated[Name, Meta(description="The Secret with ca.crt, tls.crt, tls.key.")] | UnsetType = UNSET
    connection_profiles: Annotated[
        tuple[Name, ...], Meta(min_length=1, max_length=16, description="Tried in this order; the first success wins.")
    ]


class TargetConnection(Spec):
    connection_profile: Annotated[Name, Meta(description="How to speak to the Target.")]
    credentials: Annotated[Name, Meta(description="The Secret to log in with.")]
    tls_secret: Annotated[Name, Meta(description="The Secret with ca.crt, tls.crt, tls.key.")] | UnsetType = UNSET
    sync_profile: Annotated[Name, Meta(description="How to follow its configuration.")] | UnsetType = UNSET
    vendor: Annotated[Name, Meta(description="Only for devices of this vendor profile.")] | UnsetType = UNSET


class TargetTemplate(Spec):
    """Jinja2 over discoveryInfo, address and rule."""

    name_template: (
        Annotated[Template, Immutable(), Meta(description="Unless set: the host name, else the address.")] | UnsetType
    ) = UNSET
    labels: Annotated[dict[str, Template], Meta(max_length=32)] | UnsetType = UNSET
    annotations: Annotated[dict[str, Template], Meta(max_length=32)] | UnsetType = UNSET


class Fading(Spec):
    """When a device that does not answer is lost, and when its Target is deleted: by count *and* by age."""

    lost_after_misses: Annotated[int, Meta(ge=1, le=1000, description="Sweeps in a row without an answer.")] = 3
    lost_after: Annotated[Duration, Meta(description="And no answer for so long.")] = Duration("10m")
    delete_after_misses: Annotated[int, Meta(ge=2, le=10000, description="Sweeps in a row without an answer.")] = 10
    delete_after: Annotated[Duration, Meta(description="And no answer for so long.")] = Duration("24h")
    max_loss_percent: Annotated[
        int, Meta(ge=1, le=100, description="When more than this share would be lost or deleted at once, none is.")
    ] = 25


class Window(Spec):
    """A time in which sweeps may begin."""

    start: Annotated[str, Meta(max_length=256, description="Cron: when it opens.")]
    duration: Annotated[Duration, Meta(description="How long it is open.")]
    zone: Annotated[str, Meta(max_length=64, description="The time zone that cron means.")] = "UTC"


class DiscoveryRuleSpec(
    Spec,
    rules=Rule(
        "(has(self.targetTemplate) && has(self.targetTemplate.nameTemplate))"
        " == (has(oldSelf.targetTemplate) && has(oldSelf.targetTemplate.nameTemplate))",
        "nameTemplate may be neither set nor removed later",
        field=".targetTemplate",
    ),
):
    rule_ref: Annotated[RuleRef, Immutable(), Meta(description="Which implementation finds the addresses.")]
    discovery_profile: (
        Annotated[DiscoveryProfile, Meta(description="How to ask. Not needed where nothing is probed.")] | UnsetType
    ) = UNSET
    target_connection_profiles: Annotated[
        tuple[TargetConnection, ...],
        Meta(min_length=1, max_length=16, description="The first whose protocol and vendor match is the Target's."),
    ]
    target_template: Annotated[TargetTemplate, Meta(description="What Targets look like.")] | UnsetType = UNSET
    period: Annotated[
        Duration, Meta(description="From the start of one sweep to the start of the next; 250ms at least.")
    ] = Duration("1m")
    windows: Annotated[tuple[Window, ...], Meta(max_length=16, description="Sweeps begin only within these.")] = ()
    suspend: Annotated[bool, Meta(description="Sweep no more until this is taken away.")] = False
    concurrent_scans: Annotated[int, Meta(ge=1, le=1024, description="Devices asked at a time, after the probe.")] = 64
    packets_per_second: (
        Annotated[int, Meta(ge=1, le=1_000_000, description="For this rule, within what all rules share.")] | UnsetType
    ) = UNSET
    priority: Annotated[
        int, Meta(ge=-1000, le=1000, description="The higher rule has a device that two rules find.")
    ] = 0
    lockout_window: Annotated[
        Duration, Meta(description="After a failed login none is tried for so long: 1s at least, and short is unsafe.")
    ] = Duration("15m")
    fading: Annotated[Fading, Meta(description="How Targets disappear.")] = Fading()


class Plan(Spec):
    """What a sweep costs at most, reckoned before it begins."""

    addresses: Annotated[int, Meta(ge=0)]
    probes: Annotated[int, Meta(ge=0, description="Packets, with every repetition.")]
    packets_per_second: Annotated[int, Meta(ge=0)]
    sockets: Annotated[int, Meta(ge=0, description="Open at a time.")]
    worst_case: Annotated[Duration, Meta(description="How long probing takes when nothing answers.")]


class EntryStatus(Spec):
    """One prefix, address or selector of the rule."""

    entry: Annotated[str, Meta(max_length=256)]
    addresses: Annotated[int, Meta(ge=0)] = 0
    found: Annotated[int, Meta(ge=0)] = 0
    not_found: Annotated[int, Meta(ge=0)] = 0
    message: (
        Annotated[str, Meta(max_length=512, description="What is wrong with it, or how many answer unidentified.")]
        | UnsetType
    ) = UNSET


class ProfileStatus(Spec):
    """One profile or Secret that the rule names."""

    kind: Annotated[str, Meta(max_length=63)]
    name: Annotated[str, Meta(max_length=253)]
    valid: bool
    message: Annotated[str, Meta(max_length=512, description="Why it is not valid.")] | UnsetType = UNSET


class TargetCounts(Spec):
    ready: Annotated[int, Meta(ge=0)] = 0
    stale: Annotated[int, Meta(ge=0)] = 0
    lost: Annotated[int, Meta(ge=0)] = 0


class DiscoveryRuleStatus(Spec):
    conditions: Conditions | UnsetType = UNSET
    start_time: Annotated[Time, Meta(description="When its loop was started.")] | UnsetType = UNSET
    plan: Plan | UnsetType = UNSET
    entries: Annotated[tuple[EntryStatus, ...], Keyed("entry"), Meta(max_length=512)] | UnsetType = UNSET
    profiles: Annotated[tuple[ProfileStatus, ...], Keyed("kind", "name"), Meta(max_length=128)] | UnsetType = UNSET
    targets: TargetCounts | UnsetType = UNSET
    history: History | UnsetType = UNSET
    progress: ProgressStatus | UnsetType = UNSET
    ledger: (
        Annotated[str, Artifact(), Meta(max_length=128, description="Digest of what is known of each address.")]
        | UnsetType
    ) = UNSET
    handled_run: Annotated[str, Meta(max_length=256, description="The run that was last asked for.")] | UnsetType = (
        UNSET
    )


class DiscoveryRule(
    Resource,
    group="discovery",
    version="v1alpha1",
    plural="discoveryrules",
    short=("dr",),
    categories=("discovery",),
    columns=(
        Column("Ready", ".status.conditions[?(@.type=='Ready')].status"),
        Column("Reason", ".status.conditions[?(@.type=='Ready')].reason"),
        Column("Targets", ".status.targets.ready", type="integer"),
        Column("Stale", ".status.targets.stale", type="integer"),
        Column("Lost", ".status.targets.lost", type="integer"),
        Column("Addresses", ".status.plan.addresses", type="integer"),
        Column("Message", ".status.conditions[?(@.type=='Ready')].message", priority=1),
    ),
    rules=Rule("self.metadata.name.size() <= 63", "a rule's name is a label of its Targets: 63 characters at most"),
):
    """What to discover, how to log in, what the Targets look like, and how often."""

    spec: DiscoveryRuleSpec
    status: DiscoveryRuleStatus | UnsetType = UNSET
