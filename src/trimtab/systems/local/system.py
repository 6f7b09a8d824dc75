"""Local workloads as a system: Deployments run as processes of this machine, behind one Envoy.

It runs only with `trimtab up --local-workloads`. Whoever may create a Deployment then runs commands as the user of
`trimtab up`, with no shell, no sandbox and no limits: that is its purpose, and why it is off otherwise.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from trimtab.model import istio
from trimtab.model.kubernetes import ConfigMap, Pod, Secret
from trimtab.runtime import Context, Controller, Rule, System
from trimtab.systems.local.deployment_controller import DeploymentController
from trimtab.systems.local.gateway.controller import RULES as GATEWAY_RULES
from trimtab.systems.local.gateway.controller import GatewayController
from trimtab.systems.local.pods.controller import PodController, truth_of


def _controllers(context: Context) -> Iterable[Controller[Any]]:
    truth = truth_of(context)
    return (
        DeploymentController(context, truth),
        PodController(context, truth),
        GatewayController(context, truth),
    )


SYSTEM = System(
    name="local",
    borrowed=istio.KINDS,
    reconciles=(DeploymentController, PodController, GatewayController),
    controllers=_controllers,
    requires=("envoy",),
    rules=(
        Rule(kinds=(Pod,), verbs=("create", "patch", "delete")),
        Rule(kinds=("deployments.apps/finalizers",), verbs=("update",)),  # to own what blocks its deletion
        Rule(kinds=(ConfigMap, Secret), verbs=("get",)),
        *GATEWAY_RULES,
    ),
)
