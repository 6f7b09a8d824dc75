"""The generic reconciler as a system: its kinds, its controllers, and what they may do.

Rights on generated kinds come with them: `trimtab rest generate` prints a ClusterRole for each service, and where the home
lets the system define kinds, it makes that itself.

Caveats: `managed_rules` are an administrator's rights in effect. The groups of generated kinds are not known beforehand, RBAC
has no patterns for them, and who may escalate or bind a role of any name can give itself everything. To drop `bind`, or to
allow `escalate` for one role alone, changes nothing: that role would be the system's own. So they come only by
`--manage-crds`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from trimtab.model.kubernetes import ConfigMap, Secret
from trimtab.runtime import Context, Controller, Rule, System
from trimtab.runtime.credentials import Credentials
from trimtab.systems.rest.admission import ADMISSIONS
from trimtab.systems.rest.calling.connecting import Connections
from trimtab.systems.rest.definition_controller import DefinitionController
from trimtab.systems.rest.documents import Documents
from trimtab.systems.rest.kinds import RestDefinition, RestService
from trimtab.systems.rest.service_controller import ServiceController


def _controllers(context: Context) -> Iterable[Controller[Any]]:
    documents = Documents(context.clock)
    connections = Connections(
        Credentials(context.client, clock=context.clock), clock=context.clock, metrics=context.metrics.registry
    )
    return (ServiceController(context, documents), DefinitionController(context, documents, connections))


SYSTEM = System(
    name="rest",
    kinds=(RestService, RestDefinition),
    reconciles=(ServiceController, DefinitionController),
    controllers=_controllers,
    rules=(
        Rule(kinds=(Secret,), verbs=("get", "list", "watch", "create", "patch")),
        Rule(kinds=(ConfigMap,), verbs=("get", "list", "watch", "create", "patch", "delete")),
        Rule(kinds=("customresourcedefinitions.apiextensions.k8s.io",), verbs=("get",)),
    ),
    managed_rules=(
        Rule(kinds=("customresourcedefinitions.apiextensions.k8s.io",), verbs=("create", "patch", "delete")),
        Rule(
            kinds=("clusterroles.rbac.authorization.k8s.io", "clusterrolebindings.rbac.authorization.k8s.io"),
            verbs=("get", "create", "patch", "delete", "escalate", "bind"),
        ),
        Rule(
            kinds=("validatingwebhookconfigurations.admissionregistration.k8s.io",),
            verbs=("create", "patch", "delete"),
        ),
    ),
    admissions=ADMISSIONS,
    webhook_labels="rest.trimtab.dev/webhook=true",
)
