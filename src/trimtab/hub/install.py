"""What a cluster needs to have a hub behind its API server, for `kubectl apply --server-side -f -`.

The hub's account may do little: ask the cluster who somebody is and what they may, read namespaces, keep its own certificate,
and put that certificate's authority into its own APIServices. Who may do what with hub kinds is told by the cluster's roles;
the usual ones (view, edit, admin) are given what their names say, without lineage, which belongs to Git sync.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from trimtab.model.kind import Kind
from trimtab.runtime.system import NAMESPACE

Document = dict[str, Any]

NAME = "trimtab-hub"
PORT = 7444
PEERS = 7445
RBAC = "rbac.authorization.k8s.io"
PART_OF = {"app.kubernetes.io/part-of": "trimtab"}
LABELS = {"app.kubernetes.io/name": NAME, "app.kubernetes.io/component": "hub"}
SECRET = f"{NAME}-webhook-certs"
"""Where all replicas keep the certificate that they serve with."""


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """`storage` and `bus` have no passwords in them: those come from the Secret `trimtab-hub-env` (PGPASSWORD)."""

    image: str
    storage: str
    bus: str = ""
    replicas: int = 2
    systems: str = "all"
    suffixes: tuple[str, ...] = ()
    more: tuple[str, ...] = ()
    """Further options of `trimtab hub serve`."""


def documents(kinds: Sequence[Kind], settings: Settings) -> list[Document]:
    """Everything, in the order in which it can be applied."""
    return [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}},
        *rights(kinds),
        service(),
        *api_services(kinds),  # before those who put their authority into them
        _budget(),
        _deployment(settings),
    ]


def api_services(kinds: Iterable[Kind], *, port: int = 443) -> list[Document]:
    """One for each group and version. The hub puts the authority of its certificate into them when it starts."""
    found = sorted({(kind.group, kind.version) for kind in kinds})
    return [
        _made(
            "apiregistration.k8s.io/v1",
            "APIService",
            service_name(group, version),
            spec={
                "group": group,
                "version": version,
                "groupPriorityMinimum": 1000,
                "versionPriority": 15,
                "service": {"namespace": NAMESPACE, "name": NAME, "port": port},
            },
        )
        for group, version in found
    ]


def service_name(group: str, version: str) -> str:
    return f"{version}.{group}"


def rights(kinds: Sequence[Kind]) -> list[Document]:
    """The hub's account, and what it may."""
    named = [document["metadata"]["name"] for document in api_services(kinds)]
    reader = "extension-apiserver-authentication-reader"
    everywhere = [
        {"apiGroups": [""], "resources": ["namespaces"], "verbs": ["get", "list", "watch"]},
        {
            "apiGroups": ["apiregistration.k8s.io"],
            "resources": ["apiservices"],
            "resourceNames": named,
            "verbs": ["get", "patch"],
        },
    ]
    secrets = [{"apiGroups": [""], "resources": ["secrets"], "resourceNames": [SECRET], "verbs": ["get", "patch"]}]
    return [
        _made("v1", "ServiceAccount", NAME, NAMESPACE),
        # Made here, so that nobody needs the right to make Secrets: those may stand for any account.
        _made("v1", "Secret", SECRET, NAMESPACE, type="Opaque"),
        _made(f"{RBAC}/v1", "ClusterRole", f"trimtab:{NAME}", rules=everywhere),
        _bound("ClusterRole", f"trimtab:{NAME}", f"trimtab:{NAME}"),
        _bound("ClusterRole", f"trimtab:{NAME}:auth-delegator", "system:auth-delegator"),
        _bound("Role", f"trimtab:{NAME}:auth-reader", reader, "kube-system"),
        _made(f"{RBAC}/v1", "Role", f"trimtab:{NAME}", NAMESPACE, rules=secrets),
        _bound("Role", f"trimtab:{NAME}", f"trimtab:{NAME}", NAMESPACE),
    ]


def service() -> Document:
    ports = [{"name": "https", "port": 443, "targetPort": "https"}]
    return _made("v1", "Service", NAME, NAMESPACE, spec={"selector": LABELS, "ports": ports})


def _budget() -> Document:
    spec = {"maxUnavailable": 1, "selector": {"matchLabels": LABELS}}
    return _made("policy/v1", "PodDisruptionBudget", NAME, NAMESPACE, spec=spec)


def _deployment(settings: Settings) -> Document:
    arguments = ["hub", "serve", "--host", "0.0.0.0", "--port", str(PORT)]  # noqa: S104 - in a pod
    arguments += ["--storage", settings.storage, "--systems", settings.systems, "--peer-port", str(PEERS)]
    arguments += ["--bus", settings.bus] if settings.bus else []
    for suffix in settings.suffixes:
        arguments += ["--group-suffix", suffix]
    probe = {"port": "https", "scheme": "HTTPS"}
    container = {
        "name": "hub",
        "image": settings.image,
        "command": ["trimtab"],
        "args": [*arguments, *settings.more],
        "ports": [{"name": "https", "containerPort": PORT}, {"name": "peers", "containerPort": PEERS}],
        "livenessProbe": {"httpGet": {"path": "/livez", **probe}, "periodSeconds": 10},
        "readinessProbe": {"httpGet": {"path": "/readyz", **probe}, "periodSeconds": 5},
        "resources": {"requests": {"cpu": "50m", "memory": "96Mi"}, "limits": {"memory": "2Gi"}},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
        "env": [{"name": "POD_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}],
        "envFrom": [{"secretRef": {"name": f"{NAME}-env", "optional": True}}],
        "volumeMounts": [
            {"name": "tmp", "mountPath": "/tmp"},  # noqa: S108
            {"name": "files", "mountPath": "/etc/trimtab", "readOnly": True},
        ],
    }
    pod = {
        "serviceAccountName": NAME,
        "terminationGracePeriodSeconds": 60,
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": 65532,
            "fsGroup": 65532,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "topologySpreadConstraints": [
            {
                "maxSkew": 1,
                "topologyKey": "kubernetes.io/hostname",
                "whenUnsatisfiable": "ScheduleAnyway",
                "labelSelector": {"matchLabels": LABELS},
            }
        ],
        "containers": [container],
        "volumes": [
            {"name": "tmp", "emptyDir": {"sizeLimit": "2Gi"}},
            {"name": "files", "secret": {"secretName": f"{NAME}-files", "optional": True}},
        ],
    }
    spec = {
        "replicas": settings.replicas,
        "selector": {"matchLabels": LABELS},
        "template": {"metadata": {"labels": LABELS}, "spec": pod},
    }
    return _made("apps/v1", "Deployment", NAME, NAMESPACE, spec=spec)


def _bound(kind: str, name: str, role: str, namespace: str = "") -> Document:
    """A binding of a role to the hub's account."""
    return _made(
        f"{RBAC}/v1",
        f"{kind}Binding",
        name,
        namespace,
        roleRef={"apiGroup": RBAC, "kind": kind, "name": role},
        subjects=[{"kind": "ServiceAccount", "name": NAME, "namespace": NAMESPACE}],
    )


def _made(version: str, kind: str, name: str, namespace: str = "", **body: Any) -> Document:
    metadata = {"name": name, **({"namespace": namespace} if namespace else {}), "labels": {**LABELS, **PART_OF}}
    return {"apiVersion": version, "kind": kind, "metadata": metadata, **body}
