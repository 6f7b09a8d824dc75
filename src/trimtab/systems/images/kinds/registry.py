"""Registry: which registry, how to reach it, which of its images, and when to look."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import UNSET, Meta, UnsetType, field

from trimtab.model.conditions import Conditions
from trimtab.model.duration import Period
from trimtab.model.kind import Column
from trimtab.model.markers import Artifact, Keyed, Rule, Unordered
from trimtab.model.resource import Resource, Spec
from trimtab.runtime.runs import History

Name = Annotated[str, Meta(min_length=1, max_length=253)]
Time = Annotated[str, Meta(extra_json_schema={"format": "date-time"})]
Count = Annotated[int, Meta(ge=0)]
Repository = Annotated[str, Meta(min_length=1, max_length=255)]
CatalogType = Literal["Auto", "OCIDistribution", "NoCatalog"]


class DiscoverySchedule(Spec):
    """Without cron and period, images are discovered on demand only."""

    cron_schedule: Annotated[
        tuple[Annotated[str, Meta(max_length=256)], ...],
        Meta(max_length=16, description="Five fields each, or @daily. Whichever is due first counts."),
    ] = ()
    discovery_period: (
        Annotated[Period, Meta(description="From one discovery's start to the next: 1h, 1d; 1m at least.")] | UnsetType
    ) = UNSET
    time_zone: Annotated[str, Meta(max_length=64, description="The time zone that cron means.")] = "UTC"
    suspend: Annotated[bool, Meta(description="No scheduled discovery until this is taken away.")] = False


class ScanSchedule(Spec):
    scan_period: (
        Annotated[Period, Meta(description="Scan every SBOM again after so long: 1d; 1m at least.")] | UnsetType
    ) = UNSET


class MatchCondition(Spec):
    name: Annotated[str, Meta(min_length=1, max_length=63, description="To name it in errors.")]
    expression: Annotated[
        str, Meta(min_length=1, max_length=2048, description="CEL over tag and repository; true takes the tag.")
    ]


class Filter(Spec):
    """Which tags of which repositories. A tag is taken when every filter for its repository takes it."""

    repository: Annotated[
        str, Meta(min_length=1, max_length=255, description="A name; * is every one, team/* those below team/.")
    ] = "*"
    match_conditions: Annotated[tuple[MatchCondition, ...], Keyed("name"), Meta(min_length=1, max_length=32)]
    match_operator: Annotated[
        Literal["And", "Or"], Meta(description="Whether all conditions must hold, or one of them.")
    ] = "And"


class PlatformFilter(Spec):
    """What is left out may be anything."""

    os: Annotated[str, Meta(max_length=32)] | UnsetType = UNSET
    architecture: Annotated[str, Meta(max_length=32)] | UnsetType = UNSET
    variant: Annotated[str, Meta(max_length=32)] | UnsetType = UNSET


class Removal(Spec):
    """When Images of tags that are gone from the registry go too. Never after a listing that was not whole."""

    grace: Annotated[
        Period, Meta(description="How long an image is only marked as missing; it goes with a later listing.")
    ] = Period("1d")
    max_percent: Annotated[
        int, Meta(ge=1, le=100, description="When more than this share would be removed at once, none is.")
    ] = 50


class Notifications(Spec):
    """What the registry itself tells of pushes, by `trimtab images listen`."""

    token_secret: Annotated[Name, Meta(description="The Secret with the key token that the registry sends.")]


class RegistrySpec(Spec, rules=Rule(
    "!(has(self.skipTLSVerify) && self.skipTLSVerify && has(self.plainHTTP) && self.plainHTTP)",
    "plainHTTP has no certificate to verify: leave skipTLSVerify out",
    field=".skipTLSVerify",
)):  # fmt: skip
    """Which registry and which of its tags, how to reach it, and when to look."""

    uri: Annotated[str, Meta(min_length=1, max_length=255, description="https://registry.example.com, without a path.")]
    catalog_type: Annotated[
        CatalogType,
        Meta(description="Auto asks for the catalogue unless repositories are named; NoCatalog never does."),
    ] = "Auto"
    repositories: Annotated[
        tuple[Repository, ...], Unordered(), Meta(max_length=1000, description="None are all of the catalogue.")
    ] = ()
    filters: Annotated[tuple[Filter, ...], Meta(max_length=64)] = ()
    platforms: Annotated[tuple[PlatformFilter, ...], Meta(max_length=32, description="None are all.")] = ()
    auth_secret: (
        Annotated[Name, Meta(description="A Secret of type kubernetes.io/dockerconfigjson or basic-auth.")] | UnsetType
    ) = UNSET
    ca_bundle: (
        Annotated[str, Meta(max_length=65536, description="Certificates in PEM, trusted besides the system's.")]
        | UnsetType
    ) = UNSET
    skip_tls_verify: Annotated[bool, Meta(description="Trust whoever answers. Only for trials.")] = field(
        default=False, name="skipTLSVerify"
    )
    plain_http: Annotated[bool, Meta(description="Without encryption. Only for trials.")] = field(
        default=False, name="plainHTTP"
    )
    discovery_schedule: Annotated[DiscoverySchedule, Meta(description="When to look for images.")] | UnsetType = UNSET
    discovery_timeout: Annotated[Period, Meta(description="A discovery that takes longer has failed.")] = Period("1h")
    scan_schedule: Annotated[ScanSchedule, Meta(description="When to scan again.")] | UnsetType = UNSET
    db_changed_rescan: Annotated[
        bool, Meta(description="Scan again whatever a new vulnerability database says new things of.")
    ] = False
    removal: Annotated[Removal, Meta(description="How Images disappear.")] = Removal()
    jobs_history_limit: Annotated[
        int, Meta(ge=0, le=100, description="Finished manual jobs that stay when another one is made.")
    ] = 0
    notifications: Annotated[Notifications, Meta(description="Who may tell of pushes.")] | UnsetType = UNSET


class ActiveRun(Spec):
    """The discovery that goes on. The annotations running-* are the claim; this is for people."""

    id: Annotated[str, Meta(max_length=63)]
    type: Annotated[str, Meta(max_length=16, description="manual or scheduled.")]
    job: Annotated[str, Meta(max_length=253, description="The DiscoveryJob that tells how far it is.")]
    started_at: Time


class RegistryStatus(Spec):
    """What is known of the registry, and what is going on."""

    conditions: Conditions | UnsetType = UNSET
    observed_generation: Annotated[int, Meta(ge=0)] | UnsetType = UNSET
    active_run: ActiveRun | UnsetType = UNSET
    history: History | UnsetType = UNSET
    next_discovery_time: Annotated[Time, Meta(description="When the next scheduled discovery is due.")] | UnsetType = (
        UNSET
    )
    observed_schedule: (
        Annotated[str, Meta(max_length=64, description="Digest of the cron lines that are followed.")] | UnsetType
    ) = UNSET
    schedule_since: (
        Annotated[Time, Meta(description="Since when: times before that are not made up for.")] | UnsetType
    ) = UNSET
    images: Count | UnsetType = UNSET
    missing: Annotated[Count, Meta(description="Images whose tags are gone.")] | UnsetType = UNSET
    held_run: (
        Annotated[str, Meta(max_length=63, description="The discovery whose removals were held back.")] | UnsetType
    ) = UNSET
    catalog: (
        Annotated[str, Artifact(), Meta(max_length=128, description="Digest of what the last listings found.")]
        | UnsetType
    ) = UNSET
    previous_catalog: (
        Annotated[str, Artifact(), Meta(max_length=128, description="Digest of the catalogue before.")] | UnsetType
    ) = UNSET


class Registry(
    Resource,
    group="images",
    version="v1alpha1",
    plural="registries",
    categories=("image-discovery",),
    columns=(
        Column("URI", ".spec.uri"),
        Column("Ready", ".status.conditions[?(@.type=='Ready')].status"),
        Column("Reason", ".status.conditions[?(@.type=='Ready')].reason"),
        Column("Images", ".status.images", type="integer"),
        Column("Running", ".status.activeRun.job"),
        Column("Last", r".metadata.annotations.images\.trimtab\.dev/last-discovered-at", type="date"),
        Column("Message", ".status.conditions[?(@.type=='Ready')].message", priority=1),
    ),
    rules=Rule("self.metadata.name.size() <= 239", "a registry's name is part of its job's: 239 characters at most"),
):
    """A registry whose images are kept as Images, and when to look for them."""

    spec: RegistrySpec
    status: RegistryStatus | UnsetType = UNSET
