"""How a new revision is proven: which traffic it gets, what is measured, who is asked, and how much may go wrong."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, UnsetType

from trimtab.model.duration import Duration
from trimtab.model.markers import Keyed
from trimtab.model.resource import Spec
from trimtab.systems.delivery.kinds.fields import Count, Name, Percent, Text

Judge = Literal["Threshold", "Ratio", "Bayes", "MannWhitney"]
NoData = Literal["Hold", "Fail", "Pass"]
Gate = Literal["Rollout", "Step", "Promotion"]
Hook = Literal[
    "ConfirmRollout",
    "PreRollout",
    "Rollout",
    "ConfirmTrafficIncrease",
    "ConfirmPromotion",
    "PostRollout",
    "Rollback",
]
SUCCESS_RATE, DURATION = "request-success-rate", "request-duration"


class SecretReference(Spec):
    name: Name


class Prometheus(Spec):
    """A server with Prometheus' HTTP API."""

    address: Annotated[str, Meta(max_length=2048, description="http://prometheus.monitoring:9090")] | UnsetType = UNSET
    secret_ref: (
        Annotated[SecretReference, Meta(description="token; or username and password; ca.crt is trusted too.")]
        | UnsetType
    ) = UNSET


class Range(Spec):
    """What is good, both ends included."""

    min: float | UnsetType = UNSET
    max: float | UnsetType = UNSET


class Comparison(Spec):
    """How the canary's numbers are judged against those of stable, from the same window."""

    judge: Annotated[
        Judge,
        Meta(
            description="Threshold: by thresholdRange alone. Ratio: canary / stable within thresholdRange. Bayes: the "
            "chance that the canary fails more often. MannWhitney: whether its samples are higher."
        ),
    ] = "Threshold"
    margin: (
        Annotated[
            float,
            Meta(
                ge=0,
                description="What is no harm: for Bayes a difference of error shares, 0.005 if not set; for MannWhitney a "
                "share of stable's median, 0.1 if not set.",
            ),
        ]
        | UnsetType
    ) = UNSET
    confidence: Annotated[float, Meta(gt=0.5, lt=1, description="How sure a verdict must be.")] = 0.95


class Metric(Spec):
    """One thing to measure: a built-in one by its name, a template, or a query of one's own."""

    name: Annotated[str, Meta(min_length=1, max_length=63, description=f"{SUCCESS_RATE}, {DURATION}, or your own.")]
    template_ref: Annotated[Name, Meta(description="A MetricTemplate of this namespace.")] | UnsetType = UNSET
    query: Annotated[str, Meta(min_length=1, max_length=4096, description="PromQL with variables.")] | UnsetType = UNSET
    variables: Annotated[dict[str, Text], Meta(max_length=32, description="For {{ variables.name }}.")] | UnsetType = (
        UNSET
    )
    interval: Annotated[Duration, Meta(description="{{ interval }} in a query; built-in metrics use the window.")] = (
        Duration("1m")
    )
    threshold_range: Annotated[Range, Meta(description="What is good.")] | UnsetType = UNSET
    compare: Annotated[Comparison, Meta(description="Against stable.")] = Comparison()
    quantile: Annotated[float, Meta(gt=0, lt=1, description=f"Of {DURATION}.")] = 0.99
    min_samples: Annotated[Count, Meta(description="With fewer requests in the window, nothing is said.")] = 1
    critical: Annotated[bool, Meta(description="One failure rolls back.")] = False
    on_no_data: Annotated[NoData, Meta(description="Instead of analysis.onNoData.")] | UnsetType = UNSET


class Webhook(Spec):
    """Who is asked, or told, at a point of a run. Any answer 2xx is yes."""

    name: Annotated[str, Meta(min_length=1, max_length=63)]
    type: Annotated[Hook, Meta(description="At which point.")]
    url: Annotated[str, Meta(min_length=1, max_length=2048)]
    timeout: Duration = Duration("10s")
    retries: Annotated[int, Meta(ge=0, le=10)] = 0
    metadata: Annotated[dict[str, Text], Meta(max_length=32, description="Sent with it.")] | UnsetType = UNSET
    secret_ref: Annotated[SecretReference, Meta(description="token: sent as bearer; ca.crt.")] | UnsetType = UNSET


class SessionAffinity(Spec):
    """Who once got the canary gets it again, by a cookie."""

    cookie_name: Annotated[str, Meta(min_length=1, max_length=128)]
    stable_cookie_name: (
        Annotated[str, Meta(min_length=1, max_length=128, description="Keeps those at stable who got stable.")]
        | UnsetType
    ) = UNSET
    max_age: Annotated[int, Meta(ge=1, le=31_536_000, description="Seconds.")] = 86400
    path: Annotated[str, Meta(max_length=256)] = "/"
    domain: Annotated[str, Meta(max_length=253)] | UnsetType = UNSET
    secure: bool = False
    http_only: bool = True
    same_site: Literal["Strict", "Lax", "None"] | UnsetType = UNSET


class Analysis(Spec):
    """How a change is proven: by weights (stepWeight or stepWeights), or by a number of checks (iterations)."""

    interval: Annotated[Duration, Meta(description="From one check to the next; 1s at least.")] = Duration("1m")
    step_weight: Annotated[Percent, Meta(description="Each step gives so much more, up to maxWeight.")] | UnsetType = (
        UNSET
    )
    max_weight: Annotated[Percent, Meta(description="The last step.")] = 50
    step_weights: (
        Annotated[tuple[Percent, ...], Meta(min_length=1, max_length=100, description="The steps themselves, growing.")]
        | UnsetType
    ) = UNSET
    iterations: (
        Annotated[
            int, Meta(ge=1, le=10000, description="Checks to pass, for A/B (with match) and blue/green (without).")
        ]
        | UnsetType
    ) = UNSET
    match: Annotated[
        tuple[dict[str, Any], ...], Meta(max_length=32, description="A/B: Istio's HTTPMatchRequest of who gets it.")
    ] = ()
    mirror: Annotated[bool, Meta(description="First send it copies of requests, and drop its answers.")] = False
    mirror_weight: Annotated[Percent, Meta(description="The share of requests that are copied.")] = 100
    step_weight_promotion: (
        Annotated[
            Percent, Meta(description="After promotion stable gets traffic back by such steps; at once if not set.")
        ]
        | UnsetType
    ) = UNSET
    session_affinity: SessionAffinity | UnsetType = UNSET
    passes: Annotated[int, Meta(ge=1, le=1000, description="Checks to pass at each step.")] = 1
    canary_replicas: (
        Annotated[int, Meta(ge=1, le=10000, description="If not set: what its largest share of traffic needs.")]
        | UnsetType
    ) = UNSET
    canary_ready_threshold: Annotated[Percent, Meta(description="Share of its pods that must be ready.")] = 100
    stable_ready_threshold: Annotated[Percent, Meta(description="Share of its pods that must be ready.")] = 100
    scale_down_delay: Annotated[Duration, Meta(description="How long the canary stays when traffic has left it.")] = (
        Duration("30s")
    )

    metrics: Annotated[tuple[Metric, ...], Keyed("name"), Meta(max_length=16)] = ()
    webhooks: Annotated[tuple[Webhook, ...], Keyed("name"), Meta(max_length=16)] = ()
    manual: Annotated[
        tuple[Gate, ...], Meta(max_length=3, description="Where `trimtab canary promote` must be said.")
    ] = ()
    prometheus: Prometheus | UnsetType = UNSET

    threshold: Annotated[int, Meta(ge=1, le=1000, description="So many failed checks roll back.")] = 3
    failure_mode: Annotated[
        Literal["Cumulative", "Consecutive"], Meta(description="Whether a passed check forgives failed ones.")
    ] = "Cumulative"
    on_fail: Annotated[Literal["Rollback", "Freeze"], Meta(description="Freeze: stay, and wait for a decision.")] = (
        "Rollback"
    )
    on_no_data: Annotated[NoData, Meta(description="What a metric without data means. Hold: wait.")] = "Hold"
    no_data_limit: Annotated[Count, Meta(description="So many checks held in a row roll back; 0 is no limit.")] = 0
    error_limit: Annotated[Count, Meta(description="So many errors in a row roll back; 0 is no limit.")] = 0
    verification: Annotated[
        Literal["Auto", "Status", "Settle"],
        Meta(
            description="When weights count. Status: when status.observedGeneration of the VirtualService says so. "
            "Settle: after `settle`. Auto: by the status where something writes it."
        ),
    ] = "Auto"
    settle: Annotated[Duration, Meta(description="How long new weights are given before a window begins.")] = Duration(
        "5s"
    )
