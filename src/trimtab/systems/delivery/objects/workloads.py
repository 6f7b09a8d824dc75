"""The two Deployments: stable, which has all pods that users rely on, and the canary, which lives as long as a run.

Their selectors are disjoint by the role label, which is in the pods' labels too. The revision is a label of pods alone: a
Deployment's selector never changes. The template is given: it comes from a revision's snapshot, never from the spec.

Stable always rolls without a gap: RollingUpdate with maxUnavailable 0, whatever the strategy of the spec says; of that
only maxSurge is kept, and it is at least 1. Replicas that the spec leaves out, or that an autoscaler sets, are left out.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from msgspec import UnsetType

from trimtab.systems.delivery.kinds.analysis import Analysis
from trimtab.systems.delivery.kinds.canary import CanaryDeployment
from trimtab.systems.delivery.kinds.fields import CANARY, REVISION, ROLE, STABLE
from trimtab.systems.delivery.objects.names import document

DIGITS = 12
"""Of a revision, in labels and cookies."""
SURGE = "25%"


def short(revision: str) -> str:
    """The first digits of a revision, without its prefix."""
    return revision.rpartition(":")[2][:DIGITS]


def stable_deployment(canary: CanaryDeployment, template: Mapping[str, Any], revision: str) -> dict[str, Any]:
    spec = _spec(canary, template, revision, STABLE)
    if not isinstance(canary.spec.autoscaler_ref, UnsetType):
        spec.pop("replicas", None)
    return document(canary, "apps/v1", "Deployment", STABLE, spec)


def canary_deployment(
    canary: CanaryDeployment, template: Mapping[str, Any], revision: str, replicas: int
) -> dict[str, Any]:
    spec = _spec(canary, template, revision, CANARY)
    spec["replicas"] = replicas
    return document(canary, "apps/v1", "Deployment", CANARY, spec)


def canary_replicas(canary: CanaryDeployment, analysis: Analysis | UnsetType, stable_replicas: int) -> int:
    """As many as its largest share of traffic needs, one at least, unless the analysis says how many."""
    if isinstance(analysis, UnsetType):
        return max(1, stable_replicas)
    if not isinstance(analysis.canary_replicas, UnsetType):
        return analysis.canary_replicas
    return max(1, math.ceil(stable_replicas * largest_share(analysis) / 100))


def largest_share(analysis: Analysis) -> int:
    """The largest share of requests, or of copies of them, that the canary gets in a run. Whom a match brings is not
    known, and blue/green takes all at once."""
    if not isinstance(analysis.iterations, UnsetType):
        return 100
    if not isinstance(analysis.step_weights, UnsetType):
        largest = max(analysis.step_weights)
    else:
        largest = analysis.max_weight
    return max(largest, analysis.mirror_weight) if analysis.mirror else largest


def _spec(canary: CanaryDeployment, template: Mapping[str, Any], revision: str, role: str) -> dict[str, Any]:
    given = {name: value for name, value in canary.spec.deployment.items() if name != "template" and value is not None}
    selector = dict(given.get("selector") or {})
    selector["matchLabels"] = {**(selector.get("matchLabels") or {}), ROLE: role}
    return {
        **given,
        "selector": selector,
        "strategy": _strategy(given.get("strategy")),
        "progressDeadlineSeconds": _deadline(canary, given),
        "template": _labelled(template, {ROLE: role, REVISION: short(revision)}),
    }


def _strategy(given: Any) -> dict[str, Any]:
    surge = ((given or {}).get("rollingUpdate") or {}).get("maxSurge")
    if surge is None:
        surge = SURGE
    elif surge in (0, "0", "0%"):
        surge = 1  # with maxUnavailable 0 nothing could move
    return {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 0, "maxSurge": surge}}


def _deadline(canary: CanaryDeployment, given: Mapping[str, Any]) -> int:
    """Kubernetes wants it longer than minReadySeconds."""
    if given.get("progressDeadlineSeconds"):
        return int(given["progressDeadlineSeconds"])
    return max(math.ceil(canary.spec.progress_deadline.seconds), int(given.get("minReadySeconds") or 0) + 1)


def _labelled(template: Mapping[str, Any], labels: Mapping[str, str]) -> dict[str, Any]:
    metadata = {name: value for name, value in (template.get("metadata") or {}).items() if value is not None}
    metadata["labels"] = {**(metadata.get("labels") or {}), **labels}
    return {**template, "metadata": metadata}
