"""The objects that scenarios use: two kinds of our own, one with many features of schemas, and some built-in ones."""

from typing import Any

GROUP = "differential.trimtab.dev"

CONFIGMAPS = "/api/v1/namespaces/$ns/configmaps"
SECRETS = "/api/v1/namespaces/$ns/secrets"
ACCOUNTS = "/api/v1/namespaces/$ns/serviceaccounts"
SERVICES = "/api/v1/namespaces/$ns/services"
DEPLOYMENTS = "/apis/apps/v1/namespaces/$ns/deployments"
DAEMON_SETS = "/apis/apps/v1/namespaces/$ns/daemonsets"
JOBS = "/apis/batch/v1/namespaces/$ns/jobs"
CRON_JOBS = "/apis/batch/v1/namespaces/$ns/cronjobs"
CONTROLLERS = "/api/v1/namespaces/$ns/replicationcontrollers"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/$ns/leases"
ROLES = "/apis/rbac.authorization.k8s.io/v1/namespaces/$ns/roles"
WIDGETS = f"/apis/{GROUP}/v1/namespaces/$ns/widgets"
OLD_WIDGETS = f"/apis/{GROUP}/v1beta1/namespaces/$ns/widgets"
GAUGES = f"/apis/{GROUP}/v1/gauges"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


def configmap(name: str | None = "a", **rest: Any) -> dict[str, Any]:
    return _object("v1", "ConfigMap", name, rest)


def secret(name: str | None = "a", **rest: Any) -> dict[str, Any]:
    return _object("v1", "Secret", name, rest)


def lease(name: str | None = "a", **rest: Any) -> dict[str, Any]:
    return _object("coordination.k8s.io/v1", "Lease", name, rest)


def role(name: str | None = "a", **rest: Any) -> dict[str, Any]:
    return _object("rbac.authorization.k8s.io/v1", "Role", name, rest)


def account(name: str | None = "a", **rest: Any) -> dict[str, Any]:
    return _object("v1", "ServiceAccount", name, rest)


def widget(name: str | None = "a", spec: Any = None, **rest: Any) -> dict[str, Any]:
    return _object(f"{GROUP}/v1", "Widget", name, {"spec": {} if spec is None else spec} | rest)


def gauge(name: str | None = "g-$id", **rest: Any) -> dict[str, Any]:
    return _object(f"{GROUP}/v1", "Gauge", name, rest)


def deployment(name: str | None = "a", *, image: str = "app:1", **spec: Any) -> dict[str, Any]:
    template = {"metadata": {"labels": {"app": "a"}}, "spec": {"containers": [{"name": "main", "image": image}]}}
    filled = {"selector": {"matchLabels": {"app": "a"}}, "template": template} | spec
    return _object("apps/v1", "Deployment", name, {"spec": filled})


def daemon_set(name: str | None = "a", *, image: str = "app:1", **rest: Any) -> dict[str, Any]:
    spec = {"selector": {"matchLabels": {"app": "a"}}, "template": _template(image), **rest.pop("spec", {})}
    return _object("apps/v1", "DaemonSet", name, {"spec": spec} | rest)


def job(name: str | None = "a", *, image: str = "app:1", **rest: Any) -> dict[str, Any]:
    return _object("batch/v1", "Job", name, {"spec": {"template": _once(image), **rest.pop("spec", {})}} | rest)


def cron_job(name: str | None = "a", *, image: str = "app:1", **rest: Any) -> dict[str, Any]:
    spec = {"schedule": "0 3 * * *", "jobTemplate": {"spec": {"template": _once(image)}}, **rest.pop("spec", {})}
    return _object("batch/v1", "CronJob", name, {"spec": spec} | rest)


def controller(name: str | None = "a", *, image: str = "app:1", **rest: Any) -> dict[str, Any]:
    spec = {"template": _template(image), **rest.pop("spec", {})}
    return _object("v1", "ReplicationController", name, {"spec": spec} | rest)


def _template(image: str) -> dict[str, Any]:
    return {"metadata": {"labels": {"app": "a"}}, "spec": {"containers": [{"name": "main", "image": image}]}}


def _once(image: str) -> dict[str, Any]:
    return {"spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": image}]}}


def _object(version: str, kind: str, name: str | None, rest: dict[str, Any]) -> dict[str, Any]:
    metadata = {} if name is None else {"name": name}
    return {"apiVersion": version, "kind": kind, "metadata": metadata | rest.pop("metadata", {})} | rest


_TEXT = {"type": "string"}
_WHOLE = {"type": "integer"}
_ENTRY = {
    "type": "object",
    "required": ["name"],
    "properties": {
        "name": _TEXT,
        "protocol": {"type": "string", "default": "TCP"},
        "port": {"type": "integer", "minimum": 1, "maximum": 65535},
        "note": _TEXT,
    },
}
_SPEC: dict[str, Any] = {
    "type": "object",
    "properties": {
        "size": {"type": "string", "enum": ["small", "medium", "large"], "default": "medium"},
        "color": {"type": "string", "maxLength": 8, "minLength": 2},
        "code": {"type": "string", "pattern": "^[a-z]{3}-[0-9]+$"},
        "replicas": {"type": "integer", "minimum": 0, "maximum": 10, "default": 1},
        "count32": {"type": "integer", "format": "int32"},
        "ratio": {"type": "number", "minimum": 0, "exclusiveMinimum": True, "maximum": 1},
        "even": {"type": "integer", "multipleOf": 2},
        "on": {"type": "boolean"},
        "note": {"type": "string", "nullable": True},
        "noteOrDefault": {"type": "string", "nullable": True, "default": "none"},
        "port": {"x-kubernetes-int-or-string": True},
        "percent": {
            "x-kubernetes-int-or-string": True,
            "anyOf": [{"type": "integer"}, {"type": "string"}],
            "pattern": "^[0-9]+%?$",
        },
        "tags": {"type": "array", "items": _TEXT, "x-kubernetes-list-type": "set", "maxItems": 4},
        "entries": {
            "type": "array",
            "items": _ENTRY,
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["name", "protocol"],
        },
        "steps": {"type": "array", "items": _TEXT, "x-kubernetes-list-type": "atomic", "minItems": 1},
        "plain": {"type": "array", "items": {"type": "object", "properties": {"a": _WHOLE, "b": _TEXT}}},
        "settings": {"type": "object", "additionalProperties": _TEXT, "maxProperties": 3},
        "limits": {"type": "object", "additionalProperties": {"x-kubernetes-int-or-string": True}},
        "extra": {"type": "object", "x-kubernetes-preserve-unknown-fields": True, "properties": {"known": _WHOLE}},
        "anything": {"x-kubernetes-preserve-unknown-fields": True},
        "reference": {
            "type": "object",
            "x-kubernetes-map-type": "atomic",
            "required": ["name"],
            "properties": {"name": _TEXT, "kind": {"type": "string", "default": "Widget"}},
        },
        "template": {
            "type": "object",
            "x-kubernetes-embedded-resource": True,
            "x-kubernetes-preserve-unknown-fields": True,
        },
        "when": {"type": "string", "format": "date-time"},
        "day": {"type": "string", "format": "date"},
        "address": {"type": "string", "format": "ipv4"},
        "mail": {"type": "string", "format": "email"},
        "data": {"type": "string", "format": "byte"},
        "period": {"type": "string", "format": "duration"},
        "key": {"type": "string", "format": "uuid"},
        "link": {"type": "string", "format": "uri"},
        "tuning": {
            "type": "object",
            "default": {},
            "properties": {"level": {"type": "integer", "default": 3}, "mode": _TEXT},
        },
        "choice": {
            "type": "object",
            "properties": {"left": _WHOLE, "right": _WHOLE},
            "oneOf": [{"required": ["left"]}, {"required": ["right"]}],
        },
        "bounded": {
            "type": "object",
            "properties": {"low": _WHOLE, "high": _WHOLE},
            "minProperties": 1,
            "x-kubernetes-validations": [
                {
                    "rule": "!has(self.low) || !has(self.high) || self.low <= self.high",
                    "message": "low must not be above high",
                },
            ],
        },
        "fixed": {
            "type": "string",
            "x-kubernetes-validations": [{"rule": "self == oldSelf", "message": "fixed is immutable"}],
        },
        "told": {
            "type": "integer",
            "x-kubernetes-validations": [
                {
                    "rule": "self < 100",
                    "messageExpression": "self > 200 ? 'far too much' : 'too much'",
                    "reason": "FieldValueForbidden",
                },
            ],
        },
        "names": {
            "type": "array",
            "maxItems": 10,
            "items": {"type": "string", "maxLength": 20},
            "x-kubernetes-validations": [{"rule": "self.all(n, n.startsWith('n-'))"}],
        },
    },
    "x-kubernetes-validations": [
        {"rule": "!has(self.color) || self.color != 'mauve'", "message": "no mauve", "fieldPath": ".color"},
        {
            "rule": "!has(oldSelf.on) || has(self.on)",
            "message": "on may not be removed",
            "reason": "FieldValueRequired",
        },
    ],
}
_STATUS = {
    "type": "object",
    "properties": {
        "replicas": _WHOLE,
        "selector": _TEXT,
        "phase": {"type": "string", "enum": ["Pending", "Running"]},
        "conditions": {
            "type": "array",
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["type"],
            "items": {
                "type": "object",
                "required": ["type", "status"],
                "properties": {"type": _TEXT, "status": _TEXT, "reason": _TEXT, "message": _TEXT},
            },
        },
    },
}


def _version(name: str, **rest: Any) -> dict[str, Any]:
    return {
        "name": name,
        "served": True,
        "storage": False,
        "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": _SPEC, "status": _STATUS}}},
        "subresources": {
            "status": {},
            "scale": {
                "specReplicasPath": ".spec.replicas",
                "statusReplicasPath": ".status.replicas",
                "labelSelectorPath": ".status.selector",
            },
        },
    } | rest


WIDGET = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": f"widgets.{GROUP}"},
    "spec": {
        "group": GROUP,
        "scope": "Namespaced",
        "names": {
            "plural": "widgets",
            "singular": "widget",
            "kind": "Widget",
            "listKind": "WidgetList",
            "shortNames": ["wd"],
            "categories": ["all", "things"],
        },
        "versions": [
            _version(
                "v1",
                storage=True,
                additionalPrinterColumns=[
                    {"name": "Size", "type": "string", "jsonPath": ".spec.size", "description": "How big it is"},
                    {"name": "Replicas", "type": "integer", "jsonPath": ".spec.replicas"},
                    {"name": "Ready", "type": "string", "jsonPath": ".status.conditions[?(@.type=='Ready')].status"},
                    {"name": "Tags", "type": "string", "jsonPath": ".spec.tags", "priority": 1},
                    {"name": "On", "type": "boolean", "jsonPath": ".spec.on"},
                    {"name": "When", "type": "date", "jsonPath": ".spec.when"},
                    {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
                ],
                selectableFields=[{"jsonPath": ".spec.size"}, {"jsonPath": ".spec.color"}],
            ),
            _version(
                "v1beta1",
                deprecated=True,
                deprecationWarning="use v1 widgets",
                # Not the schema of v1: equal ones are moved to one place, and then selectable fields are refused.
                schema={
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {"spec": _SPEC, "status": _STATUS, "old": _TEXT},
                    }
                },
            ),
        ],
    },
}
GAUGE = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": f"gauges.{GROUP}"},
    "spec": {
        "group": GROUP,
        "scope": "Cluster",
        "names": {"plural": "gauges", "singular": "gauge", "kind": "Gauge", "listKind": "GaugeList"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
            }
        ],
    },
}
