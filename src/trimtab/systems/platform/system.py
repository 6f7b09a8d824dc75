"""The platform as a system: its kinds, its three controllers, and what they may do.

What it does on other clusters is decided there, by the user of each kubeconfig.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from trimtab.model.kubernetes import Namespace, Secret
from trimtab.runtime import Context, Controller, Rule, System
from trimtab.systems.platform.cluster_controller import ClusterController
from trimtab.systems.platform.hub_kinds import HUB_KINDS
from trimtab.systems.platform.kinds import Addon, Blueprint, Cluster, Workload
from trimtab.systems.platform.project_controller import ProjectController
from trimtab.systems.platform.workload_controller import WorkloadController

OTHERS = ("repositories.hub.trimtab.dev", "gitsyncs.hub.trimtab.dev", "syncconflicts.hub.trimtab.dev")


def _controllers(context: Context) -> Iterable[Controller[Any]]:
    from trimtab.systems.platform.ground import Ground

    ground = Ground(context)
    return ProjectController(), ClusterController(ground), WorkloadController(ground)


SYSTEM = System(
    name="platform",
    hub=HUB_KINDS,
    reconciles=(ProjectController, ClusterController, WorkloadController),
    controllers=_controllers,
    rules=(
        Rule(kinds=(Namespace,), verbs=("get", "create", "patch", "delete")),
        Rule(kinds=(Secret,), verbs=("get", "create", "patch")),
        Rule(kinds=("clusters.infra.trimtab.dev/finalizers",), verbs=("update",)),
        Rule(kinds=(Addon, Blueprint, Cluster, Workload), verbs=("get", "list", "delete")),
        Rule(kinds=OTHERS, verbs=("get", "list", "delete")),
        Rule(kinds=("addons.infra.trimtab.dev/artifacts", "workloads.apps.trimtab.dev/artifacts"), verbs=("get",)),
    ),
)
