"""CanaryDeployment: a Deployment, its Service and its routes, of which each change is proven on a little traffic first."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, UnsetType

from trimtab.model.conditions import Conditions
from trimtab.model.duration import Duration
from trimtab.model.kind import Column
from trimtab.model.markers import Keyed, OneOf, Rule
from trimtab.model.resource import Resource, Spec
from trimtab.runtime.runs import History
from trimtab.systems.delivery.kinds.analysis import Analysis
from trimtab.systems.delivery.kinds.fields import Count, Name, Revision, Text, Time, Weight

Phase = Literal[
    "Initializing",
    "Stable",
    "WaitingRollout",
    "Starting",
    "Progressing",
    "WaitingPromotion",
    "Promoting",
    "Returning",
    "RollingBack",
    "Finalising",
    "Terminating",
]
Verdict = Literal["Pass", "Fail", "Inconclusive", "Error"]
Result = Literal["Succeeded", "Failed", "Cancelled"]


class VirtualServiceChoice(Spec, one_of=OneOf("name", "spec", required=False)):
    """One to drive, by its name, or one to own, by its spec; without either, one that routes all to the service."""

    name: Annotated[Name, Meta(description="Of a VirtualService that exists: only weights of its routes are set.")] | (
        UnsetType
    ) = UNSET
    routes: Annotated[
        tuple[Name, ...], Meta(max_length=32, description="Names of the http routes to drive; all with our host.")
    ] = ()
    spec: Annotated[dict[str, Any], Meta(description="Istio's VirtualService spec.")] | UnsetType = UNSET
    traffic_policy: (
        Annotated[dict[str, Any], Meta(description="For the DestinationRules of stable and canary.")] | UnsetType
    ) = UNSET


class AutoscalerReference(Spec):
    name: Annotated[Name, Meta(description="The HorizontalPodAutoscaler that sets the replicas of stable.")]


class CanaryDeploymentSpec(Spec):
    deployment: Annotated[dict[str, Any], Meta(description="A Deployment's spec (apps/v1).")]
    service: Annotated[dict[str, Any], Meta(description="A Service's spec (v1).")]
    virtual_service: VirtualServiceChoice = VirtualServiceChoice()
    analysis: Annotated[Analysis, Meta(description="If not set, changes go straight out.")] | UnsetType = UNSET
    skip_analysis: Annotated[
        bool, Meta(description="Send the next change straight out, once: it is set back to false when it was used.")
    ] = False
    suspend: Annotated[bool, Meta(description="Hold still: nothing is changed while this is set.")] = False
    abort: Annotated[bool, Meta(description="Roll back what runs, and start nothing while this is set.")] = False
    retry_token: Annotated[
        str, Meta(max_length=63, description="Another value lets the revision that failed run again.")
    ] = ""
    progress_deadline: Annotated[Duration, Meta(description="How long pods may take to become ready.")] = Duration(
        "10m"
    )
    adopt: Annotated[bool, Meta(description="Take objects of these names that exist and that nobody controls.")] = False
    deletion_policy: Annotated[Literal["Delete", "Orphan"], Meta(description="Whether what was made goes, too.")] = (
        "Delete"
    )
    revision_history_limit: Annotated[int, Meta(ge=1, le=100, description="Revisions to keep.")] = 10
    rollback_window: Annotated[
        Count, Meta(description="A return to one of so many revisions before goes straight out.")
    ] = 0
    autoscaler_ref: AutoscalerReference | UnsetType = UNSET


class MetricCheck(Spec):
    """What one metric said. Numbers only, never headers or credentials."""

    name: Annotated[str, Meta(max_length=63)]
    verdict: Verdict
    value: Annotated[float, Meta(description="Of the canary.")] | UnsetType = UNSET
    stable: Annotated[float, Meta(description="Of stable, where it was compared.")] | UnsetType = UNSET
    samples: Annotated[Count, Meta(description="Requests of the canary in the window.")] | UnsetType = UNSET
    message: Text | UnsetType = UNSET


class Check(Spec):
    """One check: what was measured in a window, and what it means."""

    time: Time
    step: Count
    weight: Weight
    window_start: Time | UnsetType = UNSET
    verdict: Verdict
    metrics: Annotated[tuple[MetricCheck, ...], Meta(max_length=16)] = ()
    message: Text | UnsetType = UNSET


class Counters(Spec):
    """Of this run, but for passes, which are of this step."""

    passes: Count = 0
    failed: Count = 0
    held: Annotated[Count, Meta(description="Inconclusive checks in a row.")] = 0
    errors: Annotated[Count, Meta(description="Checks in a row that could not be made.")] = 0


class Evidence(Spec):
    """What a metric has shown in all windows of this run, for judges that learn as they go."""

    name: Annotated[str, Meta(max_length=63)]
    canary_total: Annotated[float, Meta(ge=0)] = 0
    canary_failed: Annotated[float, Meta(ge=0)] = 0
    stable_total: Annotated[float, Meta(ge=0)] = 0
    stable_failed: Annotated[float, Meta(ge=0)] = 0
    canary_values: Annotated[tuple[float, ...], Meta(max_length=120, description="One for each part of a window.")] = ()
    stable_values: Annotated[tuple[float, ...], Meta(max_length=120)] = ()


class Promotion(Spec):
    """How a run leaves the usual way: straight out."""

    reason: Annotated[
        Literal["SkipAnalysis", "PromoteNow", "NoAnalysis", "RollbackWindow", "Group"],
        Meta(description="Why there is no analysis."),
    ]
    generation: Annotated[int, Meta(ge=0, description="Of the spec that said skipAnalysis.")] | UnsetType = UNSET


class RunStatus(Spec):
    """The run that goes on. Everything that a restart needs is here before it is acted on."""

    id: Annotated[str, Meta(max_length=63)]
    revision: Annotated[Revision, Meta(description="What is being released.")]
    before: Annotated[Revision, Meta(description="What was stable when it began.")]
    analysis: (
        Annotated[
            dict[str, Any],
            Meta(description="spec.analysis as it was when the run began: later changes are for the next."),
        ]
        | UnsetType
    ) = UNSET
    started: Time
    since: Annotated[Time, Meta(description="When this phase, or this step, began.")]
    step: Count = 0
    steps: Count = 0
    weight: Annotated[Weight, Meta(description="What the canary should get.")] = 0
    verified_weight: Annotated[Weight, Meta(description="What the data plane was seen to give it.")] = 0
    verified: Annotated[Time, Meta(description="Since when.")] | UnsetType = UNSET
    routes: Annotated[int, Meta(ge=0, description="The generation of the VirtualService then.")] | UnsetType = UNSET
    window_start: Annotated[Time, Meta(description="The next check looks at what came after this.")] | UnsetType = UNSET
    next_check_time: Time | UnsetType = UNSET
    counters: Counters = Counters()
    waiting_for: (
        Annotated[str, Meta(max_length=128, description="The gate that it stands at: <run>/<gate>.")] | UnsetType
    ) = UNSET
    approved: Annotated[tuple[str, ...], Meta(max_length=128, description="Gates that were passed.")] = ()
    hooks_done: Annotated[tuple[str, ...], Meta(max_length=32, description="Webhooks that said yes.")] = ()
    promotion: Promotion | UnsetType = UNSET
    frozen: Annotated[bool, Meta(description="It failed, and waits for a decision.")] = False
    result: Annotated[Result, Meta(description="How it will have ended, once it is known.")] | UnsetType = UNSET
    reason: Annotated[str, Meta(max_length=63, description="Why, in one CamelCase word.")] | UnsetType = UNSET
    message: Text | UnsetType = UNSET
    evidence: Annotated[tuple[Evidence, ...], Keyed("name"), Meta(max_length=16)] = ()
    recreated: Annotated[Count, Meta(description="How often the canary was deleted by others.")] = 0
    crashes: Annotated[Count, Meta(description="Of its containers, as of the last check.")] = 0
    short_since: Annotated[Time, Meta(description="Since when too few of its pods are ready.")] | UnsetType = UNSET
    checks: Annotated[tuple[Check, ...], Meta(max_length=10, description="The last ones, newest first.")] = ()
    record: Annotated[str, Meta(max_length=128, description="Digest of the blob with all checks.")] | UnsetType = UNSET


class TrackedConfig(Spec):
    kind: Literal["ConfigMap", "Secret"]
    name: Name
    checksum: Annotated[str, Meta(max_length=80, description="Of its data; never the data.")]


class Override(Spec):
    """That skipAnalysis was used: written before the flag is reset, so that it is never used twice."""

    revision: Revision
    generation: Annotated[int, Meta(ge=0)]
    consumed: Time
    reset: Annotated[bool, Meta(description="Whether the flag is false again.")] = False


class Drift(Spec):
    """Corrections of what others changed."""

    count: Annotated[Count, Meta(description="Within the last ten minutes.")] = 0
    since: Time | UnsetType = UNSET
    last: Annotated[Text, Meta(description="Which object, which field, by whom.")] | UnsetType = UNSET


class Shown(Spec):
    """What columns of `kubectl get` cannot work out."""

    traffic: Annotated[str, Meta(max_length=63, description="What the canary should get, in words.")] | UnsetType = (
        UNSET
    )
    step: Annotated[str, Meta(max_length=15, description="Of how many, counted from 1.")] | UnsetType = UNSET
    last: Annotated[str, Meta(max_length=63, description="How the last run ended.")] | UnsetType = UNSET


class CanaryDeploymentStatus(Spec):
    conditions: Conditions | UnsetType = UNSET
    observed_generation: Annotated[int, Meta(ge=0)] | UnsetType = UNSET
    phase: Phase | UnsetType = UNSET
    target_revision: Annotated[Revision, Meta(description="Of the spec, as it is.")] | UnsetType = UNSET
    target_generation: (
        Annotated[int, Meta(ge=0, description="metadata.generation when the target revision was made.")] | UnsetType
    ) = UNSET
    stable_revision: Annotated[Revision, Meta(description="What stable runs.")] | UnsetType = UNSET
    earlier_revisions: Annotated[
        tuple[Revision, ...], Meta(max_length=10, description="What stable ran before, newest first.")
    ] = ()
    failed_revision: Annotated[Revision, Meta(description="What failed last: it does not run again.")] | UnsetType = (
        UNSET
    )
    failed_token: Annotated[str, Meta(max_length=128, description="The retry token when it failed.")] = ""
    canary_weight: Annotated[Weight, Meta(description="Of the run; with A/B, of the requests that match.")] = 0
    run: RunStatus | UnsetType = UNSET
    tracked_configs: Annotated[tuple[TrackedConfig, ...], Keyed("kind", "name"), Meta(max_length=64)] = ()
    override: Override | UnsetType = UNSET
    drift: Drift | UnsetType = UNSET
    history: History | UnsetType = UNSET
    shown: Shown | UnsetType = UNSET


class CanaryDeployment(
    Resource,
    group="delivery",
    version="v1alpha1",
    plural="canarydeployments",
    short=("cd", "canary"),
    categories=("delivery",),
    columns=(
        Column("Ready", ".status.conditions[?(@.type=='Ready')].status"),
        Column("Phase", ".status.phase"),
        Column("Weight", ".status.shown.traffic"),
        Column("Step", ".status.shown.step"),
        Column("Last", ".status.shown.last"),
        Column("Reason", ".status.conditions[?(@.type=='Ready')].reason"),
        Column("Message", ".status.conditions[?(@.type=='Ready')].message", priority=1),
    ),
    rules=Rule("self.metadata.name.size() <= 56", "the canary's name is this one with -canary: 56 characters at most"),
):
    """A Deployment, its Service and its routes, of which each change is proven on a little traffic first."""

    spec: CanaryDeploymentSpec
    status: CanaryDeploymentStatus | UnsetType = UNSET
