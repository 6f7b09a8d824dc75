"""A valid object of every kind, made of its shape: what must be there, and whatever else the server takes.

The server itself judges, by dry runs. A kind whose rules no schema tells has its own beginning in `BEGINNINGS`.
"""

from __future__ import annotations

import base64
import copy
from collections.abc import Callable, Iterator
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from trimtab.terraform.kinds.definition import NOTHING, Definition, Field, Shape

Document = dict[str, Any]
Judge = Callable[[Document], Document | None]
"""What the server would make of an object; None when it refuses."""

TEXTS = ("alpha", "1m", "10.0.0.0/24", "https://localhost:1/x", "sha256:" + "0" * 64, "v1", "1", "a: b")
PLAIN: dict[str, Any] = {
    "integer": 3,
    "number": 1.5,
    "bool": True,
    "json": {"a": {"b": 1}},
    "int_or_string": 30,
    "quantity": "100m",
    "duration": "90s",
    "time": "2026-01-02T03:04:05Z",
}

UNTRIED = frozenset({"nodeName", "volumeClaimTemplates"})
"""Would need more than a server: a kubelet lets go of the pods of its node. And what the server fills in inside an atomic list
is everybody's who wrote the list, so that an import takes it for written."""

GENERATED = {("Job", "spec", "selector")}
"""Written by the server unless it is told not to; who writes it all the same cannot write it again."""

_CONTAINERS = [{"name": "web", "image": "example.com/web"}, {"name": "proxy", "image": "example.com/proxy"}]
_PODS = {
    "selector": {"matchLabels": {"app": "web"}},
    "template": {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": _CONTAINERS}},
}
_VEX = (
    '{"@context":"https://openvex.dev/ns/v0.2.0","@id":"https://example.com/vex","author":"us","version":1,'
    '"timestamp":"2026-01-01T00:00:00Z","statements":[{"vulnerability":{"name":"CVE-2023-1"},'
    '"products":[{"@id":"pkg:deb/debian/x"}],"status":"fixed"}]}'
)
_ADMISSION = "admissionregistration.k8s.io"
_RBAC = "rbac.authorization.k8s.io"


def _request() -> str:
    """Of a certificate, as a Secret would hold it."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "jane")])
    signed = x509.CertificateSigningRequestBuilder().subject_name(name).sign(key, hashes.SHA256())
    return base64.b64encode(signed.public_bytes(serialization.Encoding.PEM)).decode()


_ONCE = {"spec": {"restartPolicy": "Never", "containers": _CONTAINERS}}

BEGINNINGS: dict[tuple[str, str], Document] = {
    ("", "Pod"): {"spec": {"containers": _CONTAINERS}},
    ("", "Service"): {"spec": {"ports": [{"name": "http", "port": 80}, {"name": "https", "port": 443}]}},
    ("", "Secret"): {"data": {"one": "MQ==", "two": "Mg=="}},
    ("", "LimitRange"): {"spec": {"limits": [{"type": "example.com/disks", "max": {"storage": "100Gi"}}]}},
    ("", "ResourceQuota"): {"spec": {"hard": {"count/buoys.sample.example.com": "100"}}},
    (_ADMISSION, "ValidatingAdmissionPolicy"): {
        "spec": {
            "matchConstraints": {
                "resourceRules": [
                    {
                        "apiGroups": ["sample.example.com"],
                        "apiVersions": ["v1"],
                        "operations": ["CREATE"],
                        "resources": ["buoys"],
                        "scope": "*",
                    }
                ]
            },
            "validations": [{"expression": "true", "message": "one"}, {"expression": "1 == 1", "message": "two"}],
        }
    },
    (_ADMISSION, "ValidatingAdmissionPolicyBinding"): {
        "spec": {"policyName": "absent", "validationActions": ["Audit", "Warn"]}
    },
    ("apiregistration.k8s.io", "APIService"): {
        "metadata": {"name": "v1.tide.example.com"},
        "spec": {
            "group": "tide.example.com",
            "version": "v1",
            "groupPriorityMinimum": 100,
            "versionPriority": 10,
            "service": {"name": "tide", "namespace": "default"},
        },
    },
    ("certificates.k8s.io", "CertificateSigningRequest"): {
        "spec": {
            "request": _request(),
            "signerName": "example.com/harbour",
            "usages": ["client auth", "digital signature"],
        }
    },
    ("networking.k8s.io", "Ingress"): {
        "spec": {"defaultBackend": {"service": {"name": "web", "port": {"number": 80}}}}
    },
    ("scheduling.k8s.io", "PriorityClass"): {"value": 100},
    ("apps", "ControllerRevision"): {"data": {"a": 1}, "revision": 1},
    ("apps", "DaemonSet"): {"spec": _PODS},
    ("apps", "Deployment"): {"spec": _PODS},
    ("", "ReplicationController"): {"spec": {"template": _PODS["template"]}},
    ("batch", "CronJob"): {"spec": {"schedule": "0 3 * * *", "jobTemplate": {"spec": {"template": _ONCE}}}},
    ("batch", "Job"): {"spec": {"template": _ONCE}},
    ("apps", "StatefulSet"): {"spec": {"serviceName": "web", **_PODS}},
    ("apps", "ReplicaSet"): {"spec": _PODS},
    (_RBAC, "RoleBinding"): {"roleRef": {"apiGroup": _RBAC, "kind": "Role", "name": "x"}},
    (_RBAC, "ClusterRoleBinding"): {"roleRef": {"apiGroup": _RBAC, "kind": "ClusterRole", "name": "x"}},
    ("apiextensions.k8s.io", "CustomResourceDefinition"): {
        "metadata": {"name": "buoys.sample.example.com"},
        "spec": {
            "group": "sample.example.com",
            "names": {"kind": "Buoy", "plural": "buoys"},
            "scope": "Namespaced",
            "versions": [
                {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object"}}}
            ],
        },
    },
    ("delivery.trimtab.dev", "CanaryDeployment"): {
        "spec": {"deployment": {"replicas": 1, **_PODS}, "service": {"ports": [{"port": 80, "targetPort": 8080}]}}
    },
    ("discovery.trimtab.dev", "DiscoveryRuleIPRange"): {"spec": {"prefixes": [{"prefix": "127.0.0.2/32"}]}},
    ("discovery.trimtab.dev", "DiscoveryRule"): {
        "spec": {
            "ruleRef": {
                "group": "discovery.trimtab.dev",
                "version": "v1alpha1",
                "kind": "DiscoveryRuleIPRange",
                "name": "nowhere",
            },
            "targetConnectionProfiles": [{"connectionProfile": "ssh", "credentials": "x"}],
        }
    },
    ("hub.trimtab.dev", "Repository"): {"spec": {"type": "git", "endpoint": "https://localhost:1/x.git"}},
    ("images.trimtab.dev", "VEXSource"): {"spec": {"inline": _VEX}},
    ("infra.trimtab.dev", "Blueprint"): {"spec": {}},
    ("rest.trimtab.dev", "RestService"): {
        "spec": {"endpoint": "http://127.0.0.1:1", "document": {"inline": '{"openapi":"3.0.0","paths":{}}'}}
    },
    ("rest.trimtab.dev", "RestDefinition"): {
        "metadata": {"name": "things.nowhere"},
        "spec": {
            "serviceRef": "nowhere",
            "names": {"kind": "Thing", "plural": "things"},
            "operations": {
                verb: {"method": method, "path": "/things/{id}"}
                for verb, method in {"create": "PUT", "read": "GET", "delete": "DELETE"}.items()
            },
            "identity": {"parameter": "id"},
        },
    },
}


def beginning(definition: Definition, name: str, namespace: str) -> Document:
    """The least that an object must have."""
    body: Document = {"apiVersion": definition.api_version, "kind": definition.kind}
    for field in definition.root.fields:
        if field.wire not in ("metadata", "status") and (field.required or _has_choice(field.shape)):
            body[field.wire] = _least(field.shape, TEXTS[0])
    body |= copy.deepcopy(BEGINNINGS.get((definition.group, definition.kind), {}))
    named = body.get("metadata", {}).get("name", name)
    body["metadata"] = {"name": named, **({"namespace": namespace} if definition.namespaced else {})}
    return body


def enriched(definition: Definition, body: Document, judge: Judge, tries: int = 40) -> Document:
    """The object with as many further fields as the server takes and keeps, widest first."""
    body["metadata"] |= {"labels": {"app": "web", "tier": "front"}, "annotations": {"example.com/note": "x"}}
    if definition.hub:
        body["metadata"]["description"] = "A description."
    for path, field in _further(definition.root):
        if tries <= 0:
            break
        if path[0] in ("metadata", "status") or path[-1] in UNTRIED or not _has_parent(body, path):
            continue
        if (definition.kind, *path) in GENERATED:
            continue
        for value in _samples(field):
            tries -= 1
            wider = copy.deepcopy(body)
            _parent(wider, path)[path[-1]] = value
            made = judge(wider)
            if made is not None and _holds(_parent(made, path).get(path[-1]), value):
                body = wider
                break
    return body


def _further(shape: Shape) -> Iterator[tuple[tuple[str, ...], Field]]:
    """Fields that may be left out, those near the root first."""
    level: list[tuple[tuple[str, ...], Shape]] = [((), shape)]
    while level:
        below = []
        for path, one in level:
            for field in one.fields:
                if field.computed or field.write_only:
                    continue
                here = (*path, field.wire)
                if not field.required:
                    yield here, field
                if field.shape.fields and len(here) < 4:
                    below.append((here, field.shape))
        level = below


def _samples(field: Field) -> list[Any]:
    shape = field.shape
    if shape.form == "string" and not shape.values:
        return [*TEXTS]
    if field.default is not NOTHING and shape.form in ("integer", "bool"):
        return [5 if shape.form == "integer" else not field.default]
    if shape.form == "set" and shape.items is not None:
        return [list(shape.items.values[:2])] if shape.items.values else [["b", "a"], ["1.1.1.1", "10.0.0.1"], [1, 2]]
    if shape.form == "map" and shape.items is not None and not shape.items.fields:
        return [{"one": sample, "two": sample} for sample in _samples(Field("x", "x", shape.items))[:2]]
    return [_least(shape, text) for text in TEXTS[:3]] if shape.items or shape.fields else [_least(shape, TEXTS[0])]


def _least(shape: Shape, text: str) -> Any:
    items = shape.items
    match shape.form:
        case "object":
            chosen = {choice.wires[0] for choice in shape.choices if choice.required}
            kept = [field for field in shape.fields if field.required or field.wire in chosen]
            return {field.wire: _least(field.shape, text) for field in kept}
        case "list" | "set" if items is not None:
            return [_least(items, text)]
        case "map" if items is not None:
            return {"one": _least(items, text)}
        case "keyed" if items is not None:
            keys: list[Any] = [1, 2] if shape.key_form == "integer" else ["two", "one"]
            return [{shape.keys[0]: key, **_least(items, text)} for key in keys]
    return shape.values[0] if shape.values else PLAIN.get(shape.form, text)


def _has_choice(shape: Shape) -> bool:
    return any(choice.required for choice in shape.choices) or any(field.required for field in shape.fields)


def _has_parent(body: Document, path: tuple[str, ...]) -> bool:
    parent = _parent(body, path)
    return parent is not None and path[-1] not in parent


def _parent(body: Document, path: tuple[str, ...]) -> Any:
    value: Any = body
    for step in path[:-1]:
        value = value.get(step) if isinstance(value, dict) else None
    return value if isinstance(value, dict) else None if value is None else {}


def _holds(made: Any, given: Any) -> bool:
    """Whether all that was given is there; the server may have added to it."""
    if isinstance(given, dict):
        return isinstance(made, dict) and all(_holds(made.get(key), item) for key, item in given.items())
    if isinstance(given, list):
        return isinstance(made, list) and len(made) == len(given) and all(map(_holds, made, given))
    return bool(made == given)
