"""What tells an API server about our webhooks: the configurations that follow from declared functions.

A webhook that is down refuses every write that it judges. For our own kinds that is meant. Kinds that a cluster needs to
heal itself (pods, nodes, leases) are not judged in kube-system and in the webhook's own namespace: there a dead webhook
could keep itself from coming back.
"""

from __future__ import annotations

import base64
import math
from collections.abc import Sequence
from typing import Any

import msgspec

from trimtab.model.admission import Admission
from trimtab.model.kind import Kind
from trimtab.model.scheme import Scheme

Document = dict[str, Any]

GROUP = "admissionregistration.k8s.io/v1"


class Service(msgspec.Struct, frozen=True):
    """Where webhooks are served in a cluster."""

    namespace: str
    name: str
    port: int = 443


def configurations(
    functions: Sequence[Admission],
    *,
    name: str,
    at: Service | str,
    ca_bundle: bytes = b"",
    scheme: Scheme | None = None,
) -> list[Document]:
    """A MutatingWebhookConfiguration and a ValidatingWebhookConfiguration of this name, each where there are such
    functions. `at` is a Service, or the URL in front of our paths. Without `ca_bundle` the field is left out: whoever
    rotates the certificates sets it, and an apply of the manifest does not take it away. A function of groups has no
    rules here: they come with each kind that is made of such a group."""
    known = scheme or Scheme()
    made = []
    for kind, mutating in (("MutatingWebhookConfiguration", True), ("ValidatingWebhookConfiguration", False)):
        webhooks = [_webhook(a, at, ca_bundle, known) for a in functions if a.mutating is mutating and a.kinds]
        if webhooks:
            made.append({"apiVersion": GROUP, "kind": kind, "metadata": {"name": name}, "webhooks": webhooks})
    return made


def conversion(at: Service | str, ca_bundle: bytes = b"") -> Document:
    """The `spec.conversion` of a CustomResourceDefinition whose versions we convert."""
    webhook = {"clientConfig": _client(at, "/convert", ca_bundle), "conversionReviewVersions": ["v1"]}
    return {"strategy": "Webhook", "webhook": webhook}


def path_of(admission: Admission) -> str:
    return admission.path


def _webhook(admission: Admission, at: Service | str, ca_bundle: bytes, scheme: Scheme) -> Document:
    kinds = admission.matched(scheme)
    webhook: Document = {
        "name": f"{admission.name}.{scheme.suffix}",
        "clientConfig": _client(at, path_of(admission), ca_bundle),
        "rules": [_rule(admission, kind) for kind in kinds],
        "failurePolicy": "Fail",
        "matchPolicy": "Equivalent",
        "sideEffects": "None",
        "timeoutSeconds": math.ceil(admission.timeout),
        "admissionReviewVersions": ["v1"],
    }
    if any(_built_in(kind) for kind in kinds):
        spared = ["kube-system", *((at.namespace,) if isinstance(at, Service) else ())]
        requirement = {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": spared}
        webhook["namespaceSelector"] = {"matchExpressions": [requirement]}
    return webhook


def _rule(admission: Admission, kind: Kind) -> Document:
    return {
        "operations": [operation.value for operation in admission.operations],
        "apiGroups": [kind.group],
        "apiVersions": [kind.version],
        "resources": [f"{kind.plural}/{sub}" if sub else kind.plural for sub in admission.subresources],
        "scope": "Namespaced" if kind.namespaced else "Cluster",
    }


def _client(at: Service | str, path: str, ca_bundle: bytes) -> Document:
    client: Document
    if isinstance(at, Service):
        client = {"service": {"namespace": at.namespace, "name": at.name, "port": at.port, "path": path}}
    else:
        client = {"url": at.rstrip("/") + path}
    if ca_bundle:
        client["caBundle"] = base64.b64encode(ca_bundle).decode()
    return client


def _built_in(kind: Kind) -> bool:
    return "." not in kind.group or kind.group.endswith(".k8s.io")
