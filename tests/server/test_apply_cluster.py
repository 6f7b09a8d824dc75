"""Our managedFields, applied objects and conflicts, against those of a real kube-apiserver, step by step."""

from __future__ import annotations

import contextlib
import datetime
import http.client
import json
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import msgspec
import pytest

from trimtab.model.errors import StatusError
from trimtab.model.schema import Schema
from trimtab.server.apply import apply, update_managed_fields
from trimtab.server.builtin import tables
from trimtab.testing.cluster import RealCluster
from trimtab.testing.peer import read_access

pytestmark = pytest.mark.cluster


class Step(msgspec.Struct, frozen=True):
    """One write: POST, PUT, a patch by its media type, or apply."""

    verb: str
    body: Any
    manager: str = "me"
    force: bool = False
    subresource: str = ""


class Place(msgspec.Struct, frozen=True):
    """A kind on the real server, and where we have its schema from: the definition of a built-in kind."""

    path: str
    api_version: str
    kind: str
    definition: str = ""
    status: bool = True

    @property
    def native(self) -> bool:
        return bool(self.definition)


def post(**spec: Any) -> Step:
    return Step("POST", spec, manager="creator")


def put(change: dict[str, Any], manager: str = "me", subresource: str = "") -> Step:
    """A PUT of the live object with these changes, as a merge patch."""
    return Step("PUT", change, manager, subresource=subresource)


def patched(change: dict[str, Any], manager: str = "me", subresource: str = "") -> Step:
    return Step("merge", change, manager, subresource=subresource)


def applied(manager: str = "me", force: bool = False, subresource: str = "", **body: Any) -> Step:
    return Step("apply", body, manager, force, subresource)


CORE = "io.k8s.api.core.v1."
NAMESPACED = "/api/v1/namespaces/default/"
CONFIG_MAP = Place(NAMESPACED + "configmaps", "v1", "ConfigMap", CORE + "ConfigMap", status=False)
SERVICE = Place(NAMESPACED + "services", "v1", "Service", CORE + "Service")
SERVICE_ACCOUNT = Place(NAMESPACED + "serviceaccounts", "v1", "ServiceAccount", CORE + "ServiceAccount", status=False)
SECRET = Place(NAMESPACED + "secrets", "v1", "Secret", CORE + "Secret", status=False)
NAMESPACE = Place("/api/v1/namespaces", "v1", "Namespace", CORE + "Namespace")
DEPLOYMENT = Place(
    "/apis/apps/v1/namespaces/default/deployments", "apps/v1", "Deployment", "io.k8s.api.apps.v1.Deployment"
)
LEASE = Place(
    "/apis/coordination.k8s.io/v1/namespaces/default/leases",
    "coordination.k8s.io/v1",
    "Lease",
    "io.k8s.api.coordination.v1.Lease",
    status=False,
)
ROLE = Place(
    "/apis/rbac.authorization.k8s.io/v1/namespaces/default/roles",
    "rbac.authorization.k8s.io/v1",
    "Role",
    "io.k8s.api.rbac.v1.Role",
    status=False,
)
ROLE_BINDING = Place(
    "/apis/rbac.authorization.k8s.io/v1/namespaces/default/rolebindings",
    "rbac.authorization.k8s.io/v1",
    "RoleBinding",
    "io.k8s.api.rbac.v1.RoleBinding",
    status=False,
)
WEBHOOKS = Place(
    "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations",
    "admissionregistration.k8s.io/v1",
    "ValidatingWebhookConfiguration",
    "io.k8s.api.admissionregistration.v1.ValidatingWebhookConfiguration",
    status=False,
)
WIDGET = Place("/apis/test.trimtab.dev/v1/namespaces/default/widgets", "test.trimtab.dev/v1", "Widget")

LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


def pod(*containers: dict[str, Any]) -> dict[str, Any]:
    return {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": list(containers)}}


def deployment(*containers: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"selector": {"matchLabels": {"app": "web"}}, "template": pod(*containers), **more}


A = {"name": "a", "image": "a:1", "ports": [{"containerPort": 80}], "env": [{"name": "X", "value": "1"}]}
B = {"name": "b", "image": "b:1"}

HOOK = {
    "name": "a.test.dev",
    "sideEffects": "None",
    "admissionReviewVersions": ["v1"],
    "clientConfig": {"url": "https://127.0.0.1/x"},
    "rules": [{"apiGroups": ["x"], "apiVersions": ["*"], "resources": ["y"], "operations": ["CREATE"]}],
}
RULE = {"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}
ROLE_REF = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "x"}
OWNER = {
    "apiVersion": "nowhere.example.com/v1",
    "kind": "Ghost",
    "name": "x",
    "uid": "1-2",
}  # of a kind that nobody can look for, nor collect

SEQUENCES: dict[str, tuple[Place, list[Step]]] = {
    "a Secret is written": (
        SECRET,
        [
            post(stringData={"a": "1"}, type="Opaque"),
            applied("one", force=True, data={"b": "MQ=="}, immutable=False),
            patched({"metadata": {"ownerReferences": [OWNER]}}),
            applied("one", metadata={"ownerReferences": [OWNER]}, data={"b": "MQ=="}),
        ],
    ),
    "a ServiceAccount is written": (
        SERVICE_ACCOUNT,
        [
            post(secrets=[{"name": "a"}], imagePullSecrets=[{"name": "p"}]),
            applied("one", secrets=[{"name": "b"}], imagePullSecrets=[{"name": "p"}, {"name": "q"}]),
            applied("one", secrets=[{"namespace": "b"}]),
            applied("one", imagePullSecrets=[{"name": "q"}]),
        ],
    ),
    "a Namespace is written": (
        NAMESPACE,
        [
            applied("one", metadata={"labels": {"c": "d"}, "finalizers": ["test.dev/x"]}),
            patched({"metadata": {"labels": {"a": "b"}, "finalizers": ["test.dev/x", "test.dev/y"]}}),
            applied("one"),
            patched({"metadata": {"finalizers": None}}),
        ],
    ),
    "a Lease is written": (
        LEASE,
        [
            post(spec={"holderIdentity": "a", "leaseDurationSeconds": 5, "renewTime": "2024-01-01T00:00:00.000000Z"}),
            put({"spec": {"renewTime": "2024-01-01T00:00:01.000000Z"}}, "creator"),
            put({"spec": {"holderIdentity": "b", "leaseTransitions": 1}}, "b"),
            applied("one", spec={"holderIdentity": "c"}),
        ],
    ),
    "a Role is written": (
        ROLE,
        [
            post(rules=[RULE]),
            applied("one", rules=[RULE]),
            applied("two", rules=[RULE, RULE]),
            applied("two", force=True, rules=[RULE, RULE]),
            applied("one"),
        ],
    ),
    "a RoleBinding is written": (
        ROLE_BINDING,
        [
            post(roleRef=ROLE_REF, subjects=[{"kind": "User", "name": "u", "apiGroup": "rbac.authorization.k8s.io"}]),
            applied(
                "one", roleRef=ROLE_REF, subjects=[{"kind": "ServiceAccount", "name": "s", "namespace": "default"}]
            ),
            applied("one", force=True, roleRef=ROLE_REF, subjects=[]),
        ],
    ),
    "webhooks are written": (
        WEBHOOKS,
        [
            post(webhooks=[HOOK]),
            applied("one", webhooks=[{"name": "a.test.dev", "timeoutSeconds": 3}]),
            applied(
                "one", force=True, webhooks=[{"name": "a.test.dev", "timeoutSeconds": 3}, HOOK | {"name": "b.test.dev"}]
            ),
            applied("one", webhooks=[HOOK | {"name": "b.test.dev"}]),
        ],
    ),
    "a ConfigMap is created, updated and patched": (
        CONFIG_MAP,
        [
            post(data={"a": "1", "b": "2"}, metadata={"labels": {"x": "y"}, "annotations": {"n": "1"}}),
            put({"data": {"a": "2"}}),
            put({"data": {"a": "2"}}, "other"),
            patched({"data": {"b": None, "c": "3"}}, "third"),
            patched({"metadata": {"labels": {"x": None}, "finalizers": ["test.dev/a"]}}, "me"),
            patched({"metadata": {"finalizers": None}}, "me"),
            patched({"data": None}, "me"),
        ],
    ),
    "managedFields are cleared and stay so until an apply": (
        CONFIG_MAP,
        [
            post(data={"a": "1"}),
            patched({"metadata": {"managedFields": [{}]}}),
            patched({"data": {"b": "2"}}),
            applied(data={"a": "1", "c": "3"}),
            patched({"metadata": {"managedFields": []}}),
        ],
    ),
    "unsound managedFields of a request are ignored": (
        CONFIG_MAP,
        [
            post(data={"a": "1"}),
            patched({"data": {"b": "1"}, "metadata": {"managedFields": [{"manager": "x", "operation": "Frob"}]}}),
            patched(
                {
                    "metadata": {
                        "managedFields": [
                            {
                                "manager": "x",
                                "operation": "Update",
                                "apiVersion": "v1",
                                "fieldsType": "FieldsV1",
                                "fieldsV1": {"f:data": {"f:b": {}}},
                            }
                        ]
                    }
                }
            ),
        ],
    ),
    "appliers share, conflict, force and give up": (
        CONFIG_MAP,
        [
            applied("one", data={"a": "1", "b": "1"}),
            applied("one", data={"a": "1", "b": "1"}),
            applied("two", data={"a": "1", "c": "1"}),
            applied("two", data={"a": "2", "c": "1"}),
            applied("two", force=True, data={"a": "2", "b": "2", "c": "1"}),
            patched({"data": {"c": "9"}}, "three"),
            applied("one", data={"a": "3", "b": "3", "c": "3"}),
            applied("one", metadata={"labels": {"l": "1"}}),
            applied("two", data={"b": "2"}),
            applied("two"),
            applied("one"),
        ],
    ),
    "an empty map is applied and filled": (
        CONFIG_MAP,
        [applied("one", data={}), applied("two", data={"a": "1"}), applied("two", data={}), applied("one")],
    ),
    "a Deployment is created and patched": (
        DEPLOYMENT,
        [
            post(spec=deployment(A)),
            patched({"spec": {"replicas": 3}}),
            put({"spec": {"template": pod(A, B)}}),
            patched({"status": {"replicas": 1, "observedGeneration": 1}}, "controller", "status"),
            patched({"metadata": {"annotations": {"a": "b"}}, "status": {"replicas": 2}}, "controller", "status"),
            patched({"spec": {"paused": True}}, "controller"),
        ],
    ),
    "a Deployment is applied by several": (
        DEPLOYMENT,
        [
            applied("one", spec=deployment(A, replicas=1)),
            applied("one", spec=deployment(A, replicas=1)),
            applied("scaler", spec={"replicas": 5}),
            applied("scaler", force=True, spec={"replicas": 5}),
            applied("one", spec=deployment(A, replicas=1)),
            applied("one", spec=deployment(A)),
            applied("two", spec={"template": {"spec": {"containers": [{"name": "b", "image": "b:1"}]}}}),
            applied("two", spec={"template": {"spec": {"containers": [{"name": "b", "image": "b:2"}]}}}),
            applied("one", spec=deployment(B, A)),
            applied("one", spec=deployment(A | {"env": [{"name": "Y", "value": "2"}], "args": ["x"]})),
            applied("one", spec=deployment(A | {"env": [], "ports": [{"containerPort": 80, "protocol": "UDP"}]})),
            applied("controller", subresource="status", status={"replicas": 1}),
        ],
    ),
    "elements without their keys and with the same are refused": (
        DEPLOYMENT,
        [
            applied("one", spec=deployment(A)),
            applied("one", spec=deployment(A, A)),
            applied("one", spec=deployment(A | {"ports": [{"containerPort": 80}, {"containerPort": 80}]})),
            applied("one", spec=deployment(A, replicas="3")),
            applied("one", spec=deployment(A, odd="3")),
            applied("one", spec=deployment(A, paused="yes")),
            applied("one", spec={"selector": "x"}),
            applied("one", metadata={"managedFields": []}, spec=deployment(A)),
        ],
    ),
    "kubectl goes over from client-side apply": (
        CONFIG_MAP,
        [
            Step(
                "POST",
                {
                    "data": {"a": "1", "b": "1"},
                    "metadata": {
                        "annotations": {
                            LAST_APPLIED: json.dumps(
                                {"apiVersion": "v1", "kind": "ConfigMap", "data": {"a": "1", "b": "1"}}
                            )
                        }
                    },
                },
                manager="kubectl-client-side-apply",
            ),
            applied("other", data={"a": "2"}),
            applied("kubectl", data={"a": "2", "b": "<2>"}),
            patched({"data": {"b": "3"}}, "other"),
            applied("kubectl", data={"a": "2", "b": "4"}),
            applied("kubectl", force=True, data={"a": "2", "b": "4"}),
        ],
    ),
    "a Service's ports are a map with a defaulted key": (
        SERVICE,
        [
            applied("one", spec={"selector": {"a": "b"}, "ports": [{"port": 80, "name": "http"}]}),
            applied("two", spec={"ports": [{"port": 80, "protocol": "TCP", "targetPort": 8080}]}),
            applied("two", spec={"ports": [{"port": 443, "name": "https"}]}),
            applied("one", spec={"selector": {"a": "b"}}),
        ],
    ),
    "a custom resource is created, updated and its status written": (
        WIDGET,
        [
            post(
                spec={
                    "size": 1,
                    "tags": ["b", "a"],
                    "parts": [{"name": "p", "n": 1}],
                    "free": {"x": [1], "y": {"z": 1}},
                }
            ),
            patched({"spec": {"tags": ["a", "c"], "parts": [{"name": "q", "n": 1}, {"name": "p", "n": 2}]}}),
            patched({"status": {"phase": "Done"}}, "controller", "status"),
            patched({"spec": {"free": {"x": 1, "y": {}}}}, "third"),
            patched({"spec": {"free": None, "tags": None}}, "third"),
            put({"spec": {"whole": {"a": "1"}}, "status": {"phase": "Ignored"}}),
            patched({"spec": {"whole": {"b": "1"}}}, "third"),
        ],
    ),
    "a custom resource is applied by several": (
        WIDGET,
        [
            applied("one", spec={"size": 1, "tags": ["b", "a"], "parts": [{"name": "p", "n": 1}], "map": {"k": "v"}}),
            applied(
                "two", spec={"tags": ["c", "a"], "parts": [{"name": "q", "n": 1}], "free": {"l": [1], "m": {"n": 1}}}
            ),
            applied("one", spec={"size": 1, "tags": ["b"], "parts": [{"name": "q"}, {"name": "p"}], "map": {"l": "v"}}),
            applied("two", spec={"tags": ["a"], "free": {"m": {"n": 2}}, "whole": {"a": "1"}}),
            applied("one", spec={"size": 1, "whole": {"b": "1"}, "free": {"m": {"n": 3}}}),
            applied("one", force=True, spec={"size": 1, "whole": {"b": "1"}, "free": {"m": {"n": 3}}}),
            applied("two", spec={"parts": []}),
            applied("one", spec={"size": 2}),
            applied("status", subresource="status", status={"phase": "Ready"}),
            applied("other", subresource="status", status={"phase": "Not"}),
            applied("one", spec={"tags": ["x", "x"]}),
            applied("one", spec={"parts": [{"n": 1}]}),
            applied("one", spec={"ports": [{"port": 1}, {"port": 1, "protocol": "UDP"}]}),
        ],
    ),
    "ten updaters are kept apart and older ones are not": (
        CONFIG_MAP,
        [post(data={"a": "1"}), *[patched({"data": {f"k{n}": "1"}}, f"updater-{n}") for n in range(13)]],
    ),
}

WIDGETS = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "widgets.test.trimtab.dev"},
    "spec": {
        "group": "test.trimtab.dev",
        "scope": "Namespaced",
        "names": {"plural": "widgets", "kind": "Widget"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "subresources": {"status": {}},
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {
                            "spec": {
                                "type": "object",
                                "properties": {
                                    "size": {"type": "integer"},
                                    "tags": {
                                        "type": "array",
                                        "items": {"type": "string"},
                                        "x-kubernetes-list-type": "set",
                                    },
                                    "parts": {
                                        "type": "array",
                                        "x-kubernetes-list-type": "map",
                                        "x-kubernetes-list-map-keys": ["name"],
                                        "items": {
                                            "type": "object",
                                            "required": ["name"],
                                            "properties": {"name": {"type": "string"}, "n": {"type": "integer"}},
                                        },
                                    },
                                    "ports": {
                                        "type": "array",
                                        "x-kubernetes-list-type": "map",
                                        "x-kubernetes-list-map-keys": ["port", "protocol"],
                                        "items": {
                                            "type": "object",
                                            "required": ["port"],
                                            "properties": {
                                                "port": {"type": "integer"},
                                                "protocol": {"type": "string", "default": "TCP"},
                                            },
                                        },
                                    },
                                    "map": {"type": "object", "additionalProperties": {"type": "string"}},
                                    "whole": {
                                        "type": "object",
                                        "x-kubernetes-map-type": "atomic",
                                        "additionalProperties": {"type": "string"},
                                    },
                                    "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                                },
                            },
                            "status": {"type": "object", "properties": {"phase": {"type": "string"}}},
                        },
                    }
                },
            }
        ],
    },
}


class Session:
    """Requests to the real server."""

    def __init__(self, cluster: RealCluster) -> None:
        self._connection = http.client.HTTPSConnection(
            urlsplit(cluster.url).netloc, timeout=30, context=read_access(cluster.kubeconfig).tls()
        )

    def send(self, method: str, path: str, body: Any = None, media: str = "application/json") -> tuple[int, Any]:
        payload = None if body is None else json.dumps(body)
        self._connection.request(method, path, payload, {"Content-Type": media})
        response = self._connection.getresponse()
        answer = response.read()
        return response.status, json.loads(answer) if answer.startswith(b"{") else answer

    def close(self) -> None:
        self._connection.close()


@pytest.fixture(scope="module")
def session(real_cluster: RealCluster) -> Iterator[Session]:
    with contextlib.closing(Session(real_cluster)) as session:
        session.send("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", WIDGETS)
        for _ in range(5000):
            if session.send("GET", WIDGET.path)[0] == 200:
                break
        yield session


@pytest.mark.parametrize("name", SEQUENCES)
def test_every_step_leaves_what_it_leaves_on_the_real_server(session: Session, name: str) -> None:
    place, steps = SEQUENCES[name]
    schema = schema_of(place)
    object_name = "t" + "".join(character if character.isalnum() else "-" for character in name.lower())[:50].rstrip(
        "-"
    )
    live: dict[str, Any] | None = None
    for number, step in enumerate(steps):
        body = complete(step, place, object_name, live)
        code, answer = send(session, place, step, object_name, body)
        where = f"step {number} {step}\nanswer {json.dumps(answer)}"
        options: dict[str, Any] = {
            "manager": step.manager,
            "api_version": place.api_version,
            "schema": schema,
            "subresource": step.subresource,
            "now": datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "reset": None if place.status else {},
        }
        if step.verb == "apply":
            ours = outcome(live, body, force=step.force, **options)
            if code >= 300 or ours.get("kind") == "Status":
                assert by_cause(ours) == by_cause(answer), where
                continue
            assert shown(ours) == shown(answer), where
            if not place.native:
                schema.default(ours)
                assert ours.get("spec") == answer.get("spec"), where
        else:
            assert code < 300, where
            new = answer | {"metadata": answer["metadata"] | {"managedFields": None}}
            if "managedFields" in step.body.get("metadata", {}):
                new["metadata"]["managedFields"] = step.body["metadata"]["managedFields"]
            entries = update_managed_fields(live, new, **options)
            assert shown(new | {"metadata": {"managedFields": entries}}) == shown(answer), where
        live = answer
    session.send("DELETE", f"{place.path}/{object_name}")


def schema_of(place: Place) -> Schema:
    if place.native:
        return tables.schema(place.definition)
    return Schema(WIDGETS["spec"]["versions"][0]["schema"]["openAPIV3Schema"])  # type: ignore[index]


def outcome(live: dict[str, Any] | None, config: dict[str, Any], **options: Any) -> dict[str, Any]:
    """Our applied object, or the Status of our failure."""
    try:
        return apply(live, config, **options)
    except StatusError as failure:
        return failure.status()


def shown(document: dict[str, Any]) -> Any:
    """The managedFields of a document, byte by byte but for the times, of which only the presence counts."""
    entries = document["metadata"].get("managedFields") or []
    custom = document["kind"] == WIDGET.kind  # the real server keeps these in a map, whose keys it sorts
    entries = [{**entry, "time": "time"} if "time" in entry else entry for entry in entries]
    entries.sort(key=lambda entry: (entry["operation"], entry["manager"], entry.get("subresource", "")))
    return [json.dumps(entry, sort_keys=custom) for entry in entries]


def by_cause(status: dict[str, Any]) -> dict[str, Any]:
    """A Status with its causes sorted: the real server iterates over a map of managers."""
    details = dict(status.get("details") or {})
    if "causes" in details:
        details["causes"] = sorted(details["causes"], key=lambda cause: (cause["message"], cause["field"]))
    return status | {"details": details}


def complete(step: Step, place: Place, name: str, live: dict[str, Any] | None) -> dict[str, Any]:
    if step.verb == "merge":
        return dict(step.body)
    if step.verb == "PUT":
        assert live is not None
        return merged(live, step.body)
    metadata = {"name": name, **step.body.get("metadata", {})}
    if "/namespaces/default/" in place.path:
        metadata["namespace"] = "default"
    return {"apiVersion": place.api_version, "kind": place.kind, **step.body, "metadata": metadata}


def merged(document: Any, change: Any) -> Any:
    if not isinstance(document, dict) or not isinstance(change, dict):
        return change
    return document | {key: merged(document.get(key), value) for key, value in change.items()}


def send(session: Session, place: Place, step: Step, name: str, body: dict[str, Any]) -> tuple[int, Any]:
    query = f"?fieldManager={step.manager}" + ("&force=true" if step.force else "")
    if step.verb == "POST":
        return session.send("POST", place.path + query, body)
    path = f"{place.path}/{name}" + (f"/{step.subresource}" if step.subresource else "") + query
    if step.verb == "PUT":
        return session.send("PUT", path, body)
    media = {"merge": "application/merge-patch+json", "apply": "application/apply-patch+yaml"}[step.verb]
    return session.send("PATCH", path, body, media)
