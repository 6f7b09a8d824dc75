"""ResourceQuotas: what is filled in and refused when they are written, what they count, and what they refuse."""

from typing import Any

from ..exchange import Request
from ..kinds import DEPLOYMENTS, SECRETS, SERVICES, WIDGETS, deployment, secret, widget
from ..verbs import TABLE, delete, get, merge, post

QUOTAS = "/api/v1/namespaces/$ns/resourcequotas"
PODS = "/api/v1/namespaces/$ns/pods"
Q = f"{QUOTAS}/q"


def quota(hard: Any, name: str = "q", **spec: Any) -> dict[str, Any]:
    metadata = {"name": name, "namespace": "$ns"}
    return {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": metadata, "spec": {"hard": hard} | spec}


def pod(name: str = "a", requests: Any = None, limits: Any = None, **spec: Any) -> dict[str, Any]:
    resources = {k: v for k, v in (("requests", requests), ("limits", limits)) if v}
    containers = [{"name": "main", "image": "app:1", "resources": resources}]
    account = {"serviceAccountName": "default", "automountServiceAccountToken": False}
    filled = {"containers": containers, **account} | spec
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": filled}


def service(name: str = "a", **spec: Any) -> dict[str, Any]:
    filled = {"clusterIP": "None", "ports": [{"port": 80}]} | spec
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": filled}


def _counted(hard: Any, *requests: Request, **spec: Any) -> list[Request]:
    """The quota is there and was counted; then what it is asked."""
    return [post(QUOTAS, quota(hard, **spec)), get(Q, until='"used"'), *requests]


def _until(text: str) -> Request:
    return get(Q, until=text)


_WRONG: dict[str, dict[str, Any]] = {
    "a name that is not known": quota({"ships": "1"}),
    "a name that is none": quota({"a b": "1"}),
    "less than nothing": quota({"pods": "-1"}),
    "a fraction": quota({"secrets": "500m"}),
    "a text": quota({"pods": "many"}),
    "a scope that is not known": quota({"pods": "1"}, scopes=["Some"]),
    "a scope of another kind": quota({"secrets": "1"}, scopes=["Terminating"]),
    "a scope that has no cpu": quota({"cpu": "1"}, scopes=["BestEffort"]),
    "scopes that exclude each other": quota({"pods": "1"}, scopes=["Terminating", "NotTerminating"]),
    "a selector with values": quota(
        {"pods": "1"},
        scopeSelector={"matchExpressions": [{"scopeName": "PriorityClass", "operator": "Exists", "values": ["a"]}]},
    ),
    "a selector without values": quota(
        {"pods": "1"}, scopeSelector={"matchExpressions": [{"scopeName": "PriorityClass", "operator": "In"}]}
    ),
    "a selector by another operator": quota(
        {"pods": "1"},
        scopeSelector={"matchExpressions": [{"scopeName": "BestEffort", "operator": "In", "values": ["a"]}]},
    ),
}
_SMALL = {"cpu": "100m", "memory": "64Mi"}

LIMITS = "/api/v1/namespaces/$ns/limitranges"
L = f"{LIMITS}/l"


def limits(*items: Any) -> dict[str, Any]:
    metadata = {"name": "l", "namespace": "$ns"}
    return {"apiVersion": "v1", "kind": "LimitRange", "metadata": metadata, "spec": {"limits": list(items)}}


def _limited(item: Any, *requests: Request) -> list[Request]:
    """The range is there; then what it is asked."""
    return [post(LIMITS, limits(item)), *requests]


_WRONG_LIMITS: dict[str, dict[str, Any]] = {
    "an unknown type": limits({"type": "Ship", "max": {"cpu": "1"}}),
    "a type twice": limits({"type": "Pod", "max": {"cpu": "1"}}, {"type": "Pod", "max": {"cpu": "1"}}),
    "an unknown name": limits({"type": "Container", "max": {"ships": "1"}}),
    "less above more": limits({"type": "Pod", "max": {"cpu": "1"}, "min": {"cpu": "2"}}),
    "a default for pods": limits({"type": "Pod", "default": {"cpu": "1"}}),
    "a request above the limit": limits(
        {"type": "Container", "default": {"cpu": "1"}, "defaultRequest": {"cpu": "2"}, "max": {"cpu": "1500m"}}
    ),
    "a ratio below one": limits({"type": "Pod", "maxLimitRequestRatio": {"cpu": "500m"}}),
    "a claim without storage": limits({"type": "PersistentVolumeClaim", "max": {"cpu": "1"}}),
}

SCENARIOS: dict[str, list[Request]] = {
    "a plain quota": [post(QUOTAS, quota({"pods": "4", "requests.cpu": "1000m", "memory": "1024Mi"}))],
    "no limits": [post(QUOTAS, quota({})), delete(Q)],
    **{f"a quota with {name}": [post(f"{QUOTAS}?dryRun=All", body)] for name, body in _WRONG.items()},
    "scopes stay": [
        post(QUOTAS, quota({"pods": "1"}, scopes=["Terminating"])),
        merge(Q, {"spec": {"scopes": ["NotTerminating"]}}),
    ],
    "what is used": _counted(
        {"pods": "4", "secrets": "2", "count/secrets": "3", "limits.cpu": "2", "services.nodeports": "1"},
        get(Q, accept=TABLE),
        get(QUOTAS, accept=TABLE),
    ),
    "kinds that are not here": _counted({"persistentvolumeclaims": "1", "requests.storage": "1Gi", "secrets": "1"}),
    "one too many": _counted(
        {"secrets": "2"},
        post(SECRETS, secret("a")),
        post(SECRETS, secret("b")),
        post(SECRETS, secret("c")),
        post(SECRETS, secret("b")),
        post(f"{SECRETS}?dryRun=All", secret("c")),
        _until('"secrets": "2"}}'),
        delete(f"{SECRETS}/a"),
        _until('"used": {"secrets": "1"}'),
        post(SECRETS, secret("c")),
    ),
    "a rehearsal uses nothing": _counted(
        {"secrets": "1"}, post(f"{SECRETS}?dryRun=All", secret("a")), post(SECRETS, secret("b"))
    ),
    "a count by group": _counted(
        {"count/deployments.apps": "1"}, post(DEPLOYMENTS, deployment("a")), post(DEPLOYMENTS, deployment("b"))
    ),
    "a count of custom objects": _counted(
        {"count/widgets.differential.trimtab.dev": "1"}, post(WIDGETS, widget("a")), post(WIDGETS, widget("b"))
    ),
    "quotas of quotas": _counted({"resourcequotas": "1"}, post(QUOTAS, quota({"pods": "1"}, "r"))),
    "two quotas": _counted(
        {"secrets": "5"},
        post(QUOTAS, quota({"secrets": "1", "count/secrets": "1"}, "r")),
        get(f"{QUOTAS}/r", until='"used"'),
        post(SECRETS, secret("a")),
        post(SECRETS, secret("b")),
        get(Q),
        get(f"{QUOTAS}/r"),
    ),
    "a larger quota": _counted(
        {"secrets": "0"},
        post(SECRETS, secret("a")),
        merge(Q, {"spec": {"hard": {"secrets": "1"}}}),
        _until('"status": {"hard": {"secrets": "1"}'),
        post(SECRETS, secret("a")),
    ),
    "services": _counted(
        {"services": "2", "services.nodeports": "1"},
        post(SERVICES, service("a")),
        post(
            SERVICES,
            service("b", type="NodePort", clusterIP="", ports=[{"name": "x", "port": 1}, {"name": "y", "port": 2}]),
        ),
        post(SERVICES, service("c")),
        post(SERVICES, service("d")),
        get(Q, accept=TABLE),
    ),
    "pods that say nothing": _counted({"cpu": "1", "limits.memory": "1Gi"}, post(PODS, pod())),
    "pods that want too much": _counted(
        {"requests.cpu": "250m", "requests.memory": "1Gi", "pods": "3"},
        post(PODS, pod("a", _SMALL)),
        post(PODS, pod("b", _SMALL)),
        post(PODS, pod("c", _SMALL)),
        post(PODS, pod("d", {"cpu": "10m", "memory": "2Gi"})),
        get(Q, accept=TABLE),
    ),
    "limits": _counted(
        {"limits.cpu": "1", "limits.memory": "100Mi"},
        post(PODS, pod("a", limits={"cpu": "500m", "memory": "64Mi"})),
        post(PODS, pod("b", limits={"cpu": "600m", "memory": "64Mi"})),
        get(Q, accept=TABLE),
    ),
    "too many pods": _counted({"pods": "1"}, post(PODS, pod("a")), post(PODS, pod("b"))),
    "pods that do their best": _counted(
        {"pods": "1"}, post(PODS, pod("a")), post(PODS, pod("b", _SMALL)), post(PODS, pod("c")), scopes=["BestEffort"]
    ),
    "pods that end": _counted(
        {"pods": "0"}, post(PODS, pod("a")), post(PODS, pod("b", activeDeadlineSeconds=5)), scopes=["Terminating"]
    ),
    "pods that are done": _counted(
        {"pods": "1"},
        post(PODS, pod("a")),
        merge(f"{PODS}/a/status", {"status": {"phase": "Succeeded"}}),
        _until('"used": {"pods": "0"}'),
        post(PODS, pod("b")),
    ),
    "a range of limits": [
        post(LIMITS, limits({"type": "Container", "max": {"cpu": "2000m"}, "min": {"cpu": "10m", "memory": "1Mi"}})),
        get(L, accept=TABLE),
        delete(L),
    ],
    **{f"limits with {name}": [post(f"{LIMITS}?dryRun=All", body)] for name, body in _WRONG_LIMITS.items()},
    "containers that say nothing get the default": _limited(
        {"type": "Container", "default": {"cpu": "500m", "memory": "64Mi"}, "defaultRequest": {"cpu": "100m"}},
        post(f"{PODS}?dryRun=All", pod(), until="limit-ranger"),
        post(f"{PODS}?dryRun=All", pod("b", {"cpu": "200m"})),
    ),
    "containers that ask for too much": _limited(
        {"type": "Container", "max": {"cpu": "1"}, "min": {"memory": "32Mi"}},
        post(f"{PODS}?dryRun=All", pod("a", limits={"cpu": "2", "memory": "16Mi"}), until="usage per"),
        post(f"{PODS}?dryRun=All", pod("b", limits={"memory": "64Mi"})),
    ),
    "pods that ask for too much": _limited(
        {"type": "Pod", "max": {"cpu": "1"}},
        post(f"{PODS}?dryRun=All", pod("a", limits={"cpu": "2"}), until="usage per"),
        post(f"{PODS}?dryRun=All", pod("b")),
        post(f"{PODS}?dryRun=All", pod("c", limits={"cpu": "1"})),
    ),
    "limits far above requests": _limited(
        {"type": "Container", "maxLimitRequestRatio": {"cpu": "2"}},
        post(f"{PODS}?dryRun=All", pod("a", {"cpu": "1"}, {"cpu": "3"}), until="ratio"),
        post(f"{PODS}?dryRun=All", pod("b")),
    ),
}
