"""The kinds of this system."""

from trimtab.systems.delivery.kinds.analysis import Analysis, Metric, Prometheus, Webhook
from trimtab.systems.delivery.kinds.canary import (
    CanaryDeployment,
    CanaryDeploymentSpec,
    CanaryDeploymentStatus,
    Check,
    Counters,
    Evidence,
    MetricCheck,
    RunStatus,
    TrackedConfig,
)
from trimtab.systems.delivery.kinds.group import ReleaseGroup, ReleaseGroupSpec, ReleaseGroupStatus
from trimtab.systems.delivery.kinds.template import MetricTemplate, MetricTemplateSpec

__all__ = [
    "Analysis",
    "CanaryDeployment",
    "CanaryDeploymentSpec",
    "CanaryDeploymentStatus",
    "Check",
    "Counters",
    "Evidence",
    "Metric",
    "MetricCheck",
    "MetricTemplate",
    "MetricTemplateSpec",
    "Prometheus",
    "ReleaseGroup",
    "ReleaseGroupSpec",
    "ReleaseGroupStatus",
    "RunStatus",
    "TrackedConfig",
    "Webhook",
]
