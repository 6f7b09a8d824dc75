"""CanaryDeployments as the controller would leave them, for commands that read them and annotate them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from trimtab.client.api import ApiClient
from trimtab.model.clock import format_micro_time, format_time
from trimtab.model.conditions import Condition
from trimtab.model.objectmeta import ObjectMeta
from trimtab.runtime.runs import Run
from trimtab.systems.delivery.kinds import (
    Analysis,
    CanaryDeployment,
    CanaryDeploymentSpec,
    CanaryDeploymentStatus,
    Check,
    Counters,
    MetricCheck,
    RunStatus,
)

OLD, NEW = f"v1:{'0a' * 32}", f"v1:{'1b' * 32}"
RUN = "20260101t120000-1b1b1b1b"
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
ANALYSIS: dict[str, Any] = {
    "interval": "30s",
    "stepWeights": [10, 25, 50],
    "passes": 2,
    "threshold": 3,
    "manual": ["Promotion"],
    "metrics": [{"name": "request-success-rate", "thresholdRange": {"min": 99}, "minSamples": 50}],
}
DEPLOYMENT = {
    "replicas": 2,
    "selector": {"matchLabels": {"app": "web"}},
    "template": {
        "metadata": {"labels": {"app": "web"}},
        "spec": {
            "containers": [
                {
                    "name": "web",
                    "image": "web:2",
                    "ports": [{"containerPort": 8080}],
                    "readinessProbe": {"httpGet": {"port": 8080}},
                }
            ]
        },
    },
}
SERVICE = {"selector": {"app": "web"}, "ports": [{"port": 80, "targetPort": 8080}]}


def going(**changes: Any) -> RunStatus:
    """A run at its second step."""
    said: dict[str, Any] = {
        "id": RUN,
        "revision": NEW,
        "before": OLD,
        "analysis": ANALYSIS,
        "started": format_time(NOON),
        "since": format_micro_time(NOON),
        "step": 1,
        "steps": 3,
        "weight": 25,
        "verified_weight": 25,
        "counters": Counters(passes=1, failed=2),
        **changes,
    }
    return RunStatus(**said)


def check(verdict: str, value: float = 99.5, **changes: Any) -> Check:
    said: dict[str, Any] = {
        "time": format_micro_time(NOON + timedelta(seconds=42)),
        "step": 1,
        "weight": 25,
        "verdict": verdict,
        "metrics": (
            MetricCheck(name="request-success-rate", verdict=verdict, value=value, stable=99.9, samples=1200),  # type: ignore[arg-type]
        ),
        **changes,
    }
    return Check(**said)


def progressing(run: RunStatus | None = None, **changes: Any) -> CanaryDeploymentStatus:
    said: dict[str, Any] = {
        "phase": "Progressing",
        "observed_generation": 1,
        "target_revision": NEW,
        "stable_revision": OLD,
        "canary_weight": 25,
        "run": run or going(),
        **changes,
    }
    return CanaryDeploymentStatus(**said)


def stable(**changes: Any) -> CanaryDeploymentStatus:
    said: dict[str, Any] = {
        "phase": "Stable",
        "observed_generation": 1,
        "target_revision": OLD,
        "stable_revision": OLD,
        **changes,
    }
    return CanaryDeploymentStatus(**said)


def failed(**changes: Any) -> CanaryDeploymentStatus:
    ended = Run(
        id=RUN,
        trigger="Revision",
        started=format_time(NOON),
        finished=format_time(NOON + timedelta(minutes=3)),
        outcome="Failed",
        reason="ChecksFailed",
        message="3 checks failed",
    )
    return stable(target_revision=NEW, failed_revision=NEW, history=(ended,), **changes)


def condition(kind: str, status: str, reason: str, message: str) -> Condition:
    return Condition(type=kind, status=status, reason=reason, message=message, last_transition_time=format_time(NOON))  # type: ignore[arg-type]


def manifest(name: str = "web", **spec: Any) -> CanaryDeployment:
    from trimtab.model.document import convert

    given: dict[str, Any] = {
        "deployment": DEPLOYMENT,
        "service": SERVICE,
        "analysis": convert(ANALYSIS, Analysis),
        **spec,
    }
    return CanaryDeployment(metadata=ObjectMeta(name=name), spec=CanaryDeploymentSpec(**given))


class Stage:
    """One namespace of a server, where the test is the controller."""

    def __init__(self, client: ApiClient, namespace: str) -> None:
        self.client, self.namespace = client, namespace

    async def put(
        self, status: CanaryDeploymentStatus | None = None, name: str = "web", **spec: Any
    ) -> CanaryDeployment:
        made = manifest(name, **spec)
        made = await self.client.create(made.replace(metadata=ObjectMeta(name=name, namespace=self.namespace)))
        return await self.write(made, status) if status is not None else made

    async def write(self, canary: CanaryDeployment, status: CanaryDeploymentStatus) -> CanaryDeployment:
        return await self.client.patch(canary, canary.replace(status=status), subresource="status")

    async def annotations(self, name: str = "web") -> dict[str, str]:
        found = await self.client.get(CanaryDeployment, name, self.namespace)
        return dict(found.metadata.annotations or {})
