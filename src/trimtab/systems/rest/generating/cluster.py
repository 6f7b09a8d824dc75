"""What a cluster needs beside the definitions of a service's kinds: rights of the controllers on them, rights of people,
and the webhook that judges their objects.

The definitions' controller has no right to grant rights, so whoever adds a service applies these with the CRDs. The
authority of the webhook's certificate is left out here: the keeper of the certificates puts it into every configuration
with the label `WEBHOOK`, and an apply of this does not take it away.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from trimtab.runtime.rights import RBAC, READ
from trimtab.runtime.system import NAMESPACE
from trimtab.runtime.webhooks.manifest import GROUP as ADMISSION
from trimtab.runtime.webhooks.manifest import Service
from trimtab.systems.rest.generating.crd import labels
from trimtab.systems.rest.model import Model

Document = dict[str, Any]

WEBHOOK = "rest.trimtab.dev/webhook"
AT = Service(NAMESPACE, "rest")
PATH = "/validate/rest-objects"
CHANGE = ("create", "update", "patch", "delete", "deletecollection")


def cluster(models: Sequence[Model], service: str) -> list[Document]:
    """For the kinds of one service, in the order in which they can be applied."""
    if not models:
        return []
    group = models[0].group
    account = {"kind": "ServiceAccount", "name": AT.name, "namespace": AT.namespace}
    name = f"trimtab:rest:{service}"
    return [
        _role(name, service, [*_controllers(models, group), _own_webhook(service)]),
        {
            **_made("ClusterRoleBinding", RBAC, name, service),
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name},
            "subjects": [account],
        },
        _role(f"{name}:view", service, _seen(models, group), "view"),
        _role(f"{name}:edit", service, _edited(models, group), "edit", "admin"),
        webhook(models, service),
    ]


def webhook_of(service: str) -> str:
    """The name of the configuration."""
    return f"trimtab-rest-{service}"


def webhook(models: Sequence[Model], service: str) -> Document:
    """A webhook that is down refuses every write of these kinds, and of no others."""
    made = _made("ValidatingWebhookConfiguration", ADMISSION, webhook_of(service), service)
    made["metadata"]["labels"] |= {WEBHOOK: "true"}
    made["webhooks"] = [
        {
            "name": f"rest-objects.{models[0].group}",
            "clientConfig": {
                "service": {"namespace": AT.namespace, "name": AT.name, "port": AT.port, "path": PATH},
            },
            "rules": [
                {
                    "operations": ["CREATE", "UPDATE"],
                    "apiGroups": [group],
                    "apiVersions": [version],
                    "resources": [*_plurals(its), *_parts(_scaled(its), "scale")],
                    "scope": "Namespaced",
                }
                for (group, version), its in _by_version(models).items()
            ],
            "failurePolicy": "Fail",
            "matchPolicy": "Equivalent",
            "sideEffects": "None",
            "timeoutSeconds": 10,
            "admissionReviewVersions": ["v1"],
        }
    ]
    return made


def _controllers(models: Sequence[Model], group: str) -> list[Document]:
    return [
        _rule(group, _plurals(models), (*READ, "patch", "delete")),
        _rule(group, _parts(models, "status"), ("patch",)),
        _rule(group, _parts(models, "finalizers"), ("update",)),
    ]


def _own_webhook(service: str) -> Document:
    rule = _rule(ADMISSION.partition("/")[0], ["validatingwebhookconfigurations"], ("get", "patch"))
    return rule | {"resourceNames": [webhook_of(service)]}


def _seen(models: Sequence[Model], group: str) -> list[Document]:
    parts = [*_parts(models, "status"), *_parts(_scaled(models), "scale")]
    return [_rule(group, _plurals(models), READ), _rule(group, parts, ("get",))]


def _edited(models: Sequence[Model], group: str) -> list[Document]:
    rules = [*_seen(models, group), _rule(group, _plurals(models), CHANGE)]
    if scaled := _parts(_scaled(models), "scale"):
        rules.append(_rule(group, scaled, ("update", "patch")))
    return rules


def _role(name: str, service: str, rules: list[Document], *gathered: str) -> Document:
    made = _made("ClusterRole", RBAC, name, service)
    for role in gathered:
        made["metadata"]["labels"][f"rbac.authorization.k8s.io/aggregate-to-{role}"] = "true"
    return made | {"rules": rules}


def _made(kind: str, version: str, name: str, service: str) -> Document:
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name, "labels": labels(service)}}


def _rule(group: str, resources: Sequence[str], verbs: Sequence[str]) -> Document:
    return {"apiGroups": [group], "resources": list(resources), "verbs": list(verbs)}


def _plurals(models: Sequence[Model]) -> list[str]:
    return sorted({model.plural for model in models})


def _parts(models: Sequence[Model], part: str) -> list[str]:
    return [f"{plural}/{part}" for plural in _plurals(models)]


def _scaled(models: Sequence[Model]) -> list[Model]:
    return [model for model in models if model.scale_spec]


def _by_version(models: Sequence[Model]) -> dict[tuple[str, str], list[Model]]:
    found: dict[tuple[str, str], list[Model]] = {}
    for model in models:
        found.setdefault((model.group, model.version), []).append(model)
    return found
