"""Canary delivery as a system: its kinds, its two controllers, and what they may do."""

from __future__ import annotations

from trimtab.model import istio
from trimtab.model.istio import DestinationRule, VirtualService
from trimtab.model.kubernetes import ConfigMap, ControllerRevision, Deployment, Pod, Secret, Service
from trimtab.runtime import Rule, System
from trimtab.systems.delivery.admission import ADMISSIONS
from trimtab.systems.delivery.canary_controller import CanaryController
from trimtab.systems.delivery.group_controller import GroupController
from trimtab.systems.delivery.kinds import CanaryDeployment, MetricTemplate, ReleaseGroup

SYSTEM = System(
    name="delivery",
    kinds=(CanaryDeployment, MetricTemplate, ReleaseGroup),
    borrowed=istio.KINDS,
    reconciles=(CanaryController, GroupController),
    controllers=lambda context: [CanaryController(context), GroupController()],
    rules=(
        Rule(
            kinds=(Deployment, Service, VirtualService, DestinationRule, ControllerRevision, ConfigMap, Secret),
            verbs=("get", "list", "create", "patch", "delete"),
        ),
        Rule(kinds=(Pod,), verbs=("list",)),
        Rule(kinds=(MetricTemplate,), verbs=("get",)),
        Rule(kinds=("canarydeployments.delivery.trimtab.dev/status",), verbs=("patch",)),
        Rule(kinds=("releasegroups.delivery.trimtab.dev/status",), verbs=("patch",)),
    ),
    admissions=ADMISSIONS,
    requires=("promql_parser",),
)
