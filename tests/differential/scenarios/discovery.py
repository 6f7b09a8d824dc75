"""Discovery, unknown paths and methods, and everything that is not a resource."""

from ..exchange import Request
from ..kinds import CONFIGMAPS, GROUP, WIDGETS
from ..verbs import get, post

AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
_PATHS = (
    "/nothing",
    "/api/v2",
    "/api/v1/nothings",
    "/api/v1/namespaces/$ns/nothings",
    "/api/v1/namespaces/$ns/nothings/x",
    "/apis/nothing.example.com",
    "/apis/nothing.example.com/v1",
    "/apis/nothing.example.com/v1/things",
    "/apis/apps/v2",
    "/apis/apps/v1/nothings",
    f"/apis/{GROUP}/v9",
    f"/apis/{GROUP}/v9/widgets",
    f"/apis/{GROUP}/v1/nothings",
    f"/apis/{GROUP}/v1/namespaces/$ns/nothings/x",
    f"/apis/{GROUP}/v1/namespaces/$ns/widgets/x/y/z",
    "/api/v1/namespaces/$ns",
    "/api/v1/namespaces/$ns/",
    "/api/v1//configmaps",
    "/api/v1/namespaces/$ns/configmaps/..",
    "/api/v1/namespaces/$ns/configmaps/a%2Fb",
    "/api/v1/namespaces/$ns/configmaps/%zz",
    "/api/v1/",
    "/apis/",
    "/healthz",
    "/livez",
    "/readyz",
    "/healthz/ping",
    "/healthz/nothing",
    "/openapi/v4",
    "/openapi/v3/nothing",
    "/version/",
    "/logs",
    "/metrics/nothing",
    "/.well-known/nothing",
)
_METHODS = ("POST", "PUT", "PATCH", "DELETE", "OPTIONS", "HEAD", "TRACE", "ODD")


def _bare(method: str, path: str) -> list[Request]:
    return [Request(method=method, path=path, body="" if method in {"POST", "PUT", "PATCH"} else None)]


SCENARIOS: dict[str, list[Request]] = {
    **{f"path {path}": [get(path)] for path in _PATHS},
    **{f"{method} of a collection": _bare(method, CONFIGMAPS) for method in _METHODS if method != "DELETE"},
    **{f"{method} of an object": _bare(method, f"{CONFIGMAPS}/a") for method in _METHODS},
    **{f"{method} of widgets": _bare(method, WIDGETS) for method in _METHODS if method != "DELETE"},
    **{f"{method} of a widget": _bare(method, f"{WIDGETS}/a") for method in _METHODS},
    **{f"{method} of /version": _bare(method, "/version") for method in _METHODS},
    **{f"{method} of /api/v1": _bare(method, "/api/v1") for method in _METHODS},
    "our group": [get(f"/apis/{GROUP}"), get(f"/apis/{GROUP}/v1"), get(f"/apis/{GROUP}/v1beta1")],
    "core": [get("/api")],
    "kinds of the groups that both serve": [
        get("/apis/apps"),
        get("/apis/coordination.k8s.io"),
        get("/apis/coordination.k8s.io/v1"),
        get("/apis/rbac.authorization.k8s.io/v1"),
        get("/apis/apiextensions.k8s.io/v1"),
        get("/apis/authorization.k8s.io/v1"),
        get("/apis/authentication.k8s.io/v1"),
        get("/apis/events.k8s.io/v1"),
    ],
    "a group as protobuf": [
        get("/apis/coordination.k8s.io", accept="application/vnd.kubernetes.protobuf,application/json")
    ],
    "a review of another kind": [
        post("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", {"apiVersion": "v1", "kind": "ConfigMap"}),
        get("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"),
    ],
}
