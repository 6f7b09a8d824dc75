"""Objects of every built-in kind, good and bad, that the real server and ours must judge alike."""

from __future__ import annotations

import json
from typing import Any

Sample = tuple[str, str, str, dict[str, Any]]  # name of the case, group, kind, what is in the object beside metadata

TEMPLATE = {"metadata": {"labels": {"app": "a"}}, "spec": {"containers": [{"name": "c", "image": "nginx"}]}}
RICH = {
    "metadata": {"labels": {"app": "a"}},
    "spec": {
        "serviceAccountName": "robot",
        "hostNetwork": False,
        "initContainers": [{"name": "i", "image": "busybox:1.36", "command": ["true"]}],
        "volumes": [
            {"name": "empty"},
            {"name": "s", "secret": {"secretName": "s"}},
            {"name": "c", "configMap": {"name": "c"}},
            {"name": "h", "hostPath": {"path": "/x"}},
            {"name": "p", "projected": {"sources": [{"serviceAccountToken": {"path": "t"}}]}},
            {"name": "d", "downwardAPI": {"items": [{"path": "l", "fieldRef": {"fieldPath": "metadata.labels"}}]}},
        ],
        "containers": [
            {
                "name": "c",
                "image": "example.com:5000/app@sha256:" + "a" * 64,
                "resources": {"limits": {"cpu": 0.5, "memory": "1024Mi"}, "requests": {"cpu": "100m"}},
                "ports": [{"containerPort": 80, "name": "http"}],
                "env": [
                    {"name": "A", "value": "1"},
                    {"name": "B", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
                    {"name": "C", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu"}}},
                    {"name": "D", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}},
                ],
                "volumeMounts": [{"name": "empty", "mountPath": "/e"}],
                "livenessProbe": {"httpGet": {"port": 80}},
                "readinessProbe": {"tcpSocket": {"port": "http"}, "periodSeconds": 5, "timeoutSeconds": 0},
                "startupProbe": {"exec": {"command": ["true"]}},
                "lifecycle": {"preStop": {"httpGet": {"port": 80}}},
            }
        ],
    },
}

ONCE = {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "busybox:1"}]}}
LABELED = {"metadata": {"labels": {"app": "a"}}, **ONCE}


def _deployment(**spec: Any) -> dict[str, Any]:
    return {"spec": {"selector": {"matchLabels": {"app": "a"}}, "template": TEMPLATE, **spec}}


def _job(**spec: Any) -> dict[str, Any]:
    return {"spec": {"template": ONCE, **spec}}


def _cron(*, job: dict[str, Any] | None = None, **spec: Any) -> dict[str, Any]:
    return {"spec": {"schedule": "*/5 * * * *", "jobTemplate": {"spec": {"template": ONCE, **(job or {})}}, **spec}}


def _owned(**spec: Any) -> dict[str, Any]:
    """A Job whose labels and selector do not depend on its uid."""
    given = {"template": LABELED, "manualSelector": True, "selector": {"matchLabels": {"app": "a"}}, **spec}
    return {"metadata": {"labels": {"own": "yes"}}, "spec": given}


def _reported(*conditions: str, **status: Any) -> dict[str, Any]:
    held = [{"type": condition, "status": "True"} for condition in conditions]
    return {"metadata": {"labels": {"own": "yes"}}, "status": {**({"conditions": held} if held else {}), **status}}


def _indexed(**spec: Any) -> dict[str, Any]:
    return _job(completionMode="Indexed", completions=3, **spec)


def _container(**fields: Any) -> dict[str, Any]:
    container = {"name": "c", "image": "nginx", **fields}
    return _deployment(template={**TEMPLATE, "spec": {"containers": [container]}})


def _hook(**fields: Any) -> dict[str, Any]:
    hook = {
        "name": "a.example.com",
        "clientConfig": {"url": "https://example.com/x"},
        "rules": [{"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"]}],
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        **fields,
    }
    return {"webhooks": [{key: value for key, value in hook.items() if value is not None}]}


def _crd(*versions: dict[str, Any], **spec: Any) -> dict[str, Any]:
    schema = {"openAPIV3Schema": {"type": "object", "properties": {"spec": {"type": "object"}}}}
    version = {"name": "v1", "served": True, "storage": True, "schema": schema}
    return {
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"plural": "widgets", "kind": "Widget"},
            "versions": [{**version, **given} for given in versions or ({},)],
            **spec,
        },
    }


_SECOND = {"name": "v2", "storage": False}
_UNTYPED = {"schema": {"openAPIV3Schema": {"type": "object", "properties": {"a": {}}}}}
_SCALED = {"subresources": {"scale": {"specReplicasPath": ".status.a", "labelSelectorPath": "x"}}}
_COLUMNS = {"additionalPrinterColumns": [{"name": "A", "type": "x", "jsonPath": ".a"}]}
_SELECTABLE = {"selectableFields": [{"jsonPath": ".spec.a"}]}
_ROLE = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"}
_RULE = {"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}
_INVOLVED = {"kind": "Pod", "name": "p", "namespace": "default", "apiVersion": "v1"}
_EVENT = {
    "eventTime": "2026-01-02T03:04:05.000006Z",
    "reportingController": "example.com/c",
    "reportingInstance": "i",
    "action": "Do",
    "reason": "Done",
    "regarding": _INVOLVED,
    "note": "hello",
    "type": "Normal",
}
_METRIC = {
    "type": "Resource",
    "resource": {"name": "memory", "target": {"type": "AverageValue", "averageValue": "1024Mi"}},
}
_HPA = {"scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"}, "maxReplicas": 3}
_SELECTED = {"name": "m", "selector": {"matchLabels": {"a": "b"}}}
_ROUND_TRIP = "autoscaling.alpha.kubernetes.io/"
_OTHER_METRICS = [
    {"type": "Object", "object": {"target": {"kind": "Service", "name": "s", "apiVersion": "v1"}, "metricName": "m",
                                  "targetValue": 1000, "averageValue": "0.5", "selector": _SELECTED["selector"]}},
    {"type": "Object", "object": {"target": {"kind": "Service", "name": "s"}, "metricName": "m", "targetValue": "5"}},
    {"type": "Pods", "pods": {"metricName": "m", "targetAverageValue": "1500m"}},
    {"type": "Resource", "resource": {"name": "memory", "targetAverageUtilization": 60}},
    {"type": "ContainerResource", "containerResource": {"name": "cpu", "targetAverageValue": "2", "container": "c"}},
    {"type": "External", "external": {"metricName": "m", "metricSelector": _SELECTED["selector"], "targetValue": "7"}},
    {"type": "External", "external": {"metricName": "m", "targetAverageValue": "7k"}},
]  # fmt: skip
_OTHER_MEASURES = [
    {"type": "Object", "object": {"target": {"kind": "Service", "name": "s"}, "metricName": "m", "currentValue": "5"}},
    {"type": "Pods", "pods": {"metricName": "m", "currentAverageValue": "1500m"}},
    {"type": "Resource", "resource": {"name": "cpu", "currentAverageUtilization": 60, "currentAverageValue": "50m"}},
    {"type": "External", "external": {"metricName": "m", "currentValue": "7", "currentAverageValue": "1"}},
]
_BEHAVIOR = {"ScaleUp": {"StabilizationWindowSeconds": 3, "SelectPolicy": "Min",
                         "Policies": [{"Type": "Pods", "Value": 1, "PeriodSeconds": 9}]},
             "scaleDown": {"selectPolicy": "Disabled",
                           "policies": [{"type": "Percent", "value": 5, "periodSeconds": 7}]}}  # fmt: skip
_CONDITION = {"type": "AbleToScale", "status": "True", "reason": "R", "message": "a < b & c",
              "lastTransitionTime": "2026-01-02T03:04:05Z"}  # fmt: skip


def _annotated(**values: Any) -> dict[str, Any]:
    return {"annotations": {"kept": "yes"} | {
        _ROUND_TRIP + name.replace("_", "-"): value if isinstance(value, str) else json.dumps(value)
        for name, value in values.items()
    }}  # fmt: skip


RBAC = "rbac.authorization.k8s.io"
ADMISSION = "admissionregistration.k8s.io"

_BACKEND = {"service": {"name": "s", "port": {"number": 80}}}


def _ingress(*paths: dict[str, Any], host: str = "a.example.com", **spec: Any) -> dict[str, Any]:
    return {"spec": {"rules": [{"host": host, "http": {"paths": [{"backend": _BACKEND, **p} for p in paths]}}], **spec}}


_API = {"group": "a.example.com", "version": "v1", "groupPriorityMinimum": 1000, "versionPriority": 10}

SAMPLES: tuple[Sample, ...] = (
    ("a priority class", "scheduling.k8s.io", "PriorityClass", {"value": 1000, "description": "d"}),
    ("a priority class of a system", "scheduling.k8s.io", "PriorityClass",
     {"metadata": {"name": "system-mine"}, "value": 5}),
    ("a priority class above all", "scheduling.k8s.io", "PriorityClass",
     {"value": 1000000001, "preemptionPolicy": "Some", "globalDefault": True}),
    ("an ingress", "networking.k8s.io", "Ingress",
     _ingress({"path": "/", "pathType": "Prefix"}, ingressClassName="nginx", tls=[{"hosts": ["a.example.com"]}])),
    ("an ingress with a default", "networking.k8s.io", "Ingress", {"spec": {"defaultBackend": _BACKEND}}),
    ("an ingress of nothing", "networking.k8s.io", "Ingress", {}),
    ("an ingress of wrong paths", "networking.k8s.io", "Ingress", _ingress(
        {"path": "a", "pathType": "Exact"}, {"path": "/a//b/..", "pathType": "Prefix"}, {"path": "/"},
        {"path": "/", "pathType": "Some"}, {"path": "x", "pathType": "ImplementationSpecific"})),
    ("an ingress of wrong backends", "networking.k8s.io", "Ingress", _ingress(
        {"path": "/", "pathType": "Prefix", "backend": {}},
        {"path": "/", "pathType": "Prefix", "backend": {"service": {"name": "", "port": {}}}},
        {"path": "/", "pathType": "Prefix", "backend": {"service": {"name": "s", "port": {"number": 70000}}}},
        {"path": "/", "pathType": "Prefix", "backend": {"service": {"name": "s", "port": {"number": 1, "name": "a"}}}})),
    ("an ingress at an address", "networking.k8s.io", "Ingress", _ingress(
        {"path": "/", "pathType": "Prefix"}, host="10.0.0.1")),
    ("a namespace", "", "Namespace", {}),
    ("a namespace with a finalizer", "", "Namespace", {"spec": {"finalizers": ["example.com/f"]}}),
    ("a namespace whose name is no DNS label", "", "Namespace", {"metadata": {"name": "a.b"}}),
    ("a namespace with an unqualified finalizer", "", "Namespace", {"spec": {"finalizers": ["mine"]}}),
    ("a config map", "", "ConfigMap", {"data": {"a": "1"}, "binaryData": {"b": "AAE="}}),
    ("an empty config map", "", "ConfigMap", {}),
    ("a config map that is not immutable", "", "ConfigMap", {"immutable": False}),
    ("a config map with a bad key", "", "ConfigMap", {"data": {"a/b": "1"}}),
    ("a config map with a key that leaves the folder", "", "ConfigMap", {"data": {"..": "1"}}),
    ("a config map with a key twice", "", "ConfigMap", {"data": {"a": "1"}, "binaryData": {"a": "AA=="}}),
    ("a config map that is too large", "", "ConfigMap", {"data": {"a": "x" * (1024 * 1024 + 1)}}),
    ("a config map with a bad name", "", "ConfigMap", {"metadata": {"name": "A_b"}}),
    ("a secret", "", "Secret", {"stringData": {"a": "1"}, "data": {"b": "AAE="}}),
    ("a secret with a bad key", "", "Secret", {"stringData": {"a b": "1"}}),
    ("a TLS secret without its keys", "", "Secret", {"type": "kubernetes.io/tls"}),
    ("a basic-auth secret without its keys", "", "Secret", {"type": "kubernetes.io/basic-auth"}),
    ("an ssh secret without its key", "", "Secret", {"type": "kubernetes.io/ssh-auth"}),
    ("a docker secret without its key", "", "Secret", {"type": "kubernetes.io/dockerconfigjson"}),
    ("a docker secret with empty data", "", "Secret",
     {"type": "kubernetes.io/dockerconfigjson", "data": {".dockerconfigjson": ""}}),
    ("a token secret without an account", "", "Secret", {"type": "kubernetes.io/service-account-token"}),
    ("a service account", "", "ServiceAccount", {"secrets": [{"name": "a"}], "automountServiceAccountToken": False}),
    ("an event", "", "Event", {"involvedObject": _INVOLVED, "reason": "R", "message": "m", "type": "Normal",
                               "source": {"component": "c", "host": "h"}, "count": 2,
                               "firstTimestamp": "2026-01-02T03:04:05Z", "lastTimestamp": "2026-01-02T03:05:05Z"}),
    ("an event of another namespace", "", "Event", {"involvedObject": {**_INVOLVED, "namespace": "other"}}),
    ("a core event with a time and nothing else", "", "Event",
     {"involvedObject": _INVOLVED, "eventTime": "2026-01-02T03:04:05.000000Z"}),
    ("a new event", "events.k8s.io", "Event", _EVENT),
    ("a new event with a series", "events.k8s.io", "Event",
     {**_EVENT, "series": {"count": 2, "lastObservedTime": "2026-01-02T03:04:06.000000Z"}}),
    ("a new event without anything", "events.k8s.io", "Event", {"regarding": _INVOLVED}),
    ("a new event with old fields", "events.k8s.io", "Event",
     {**_EVENT, "deprecatedCount": 2, "deprecatedSource": {"component": "c"}, "series": {"count": 1}}),
    ("a lease", "coordination.k8s.io", "Lease",
     {"spec": {"holderIdentity": "me", "leaseDurationSeconds": 15, "renewTime": "2026-01-02T03:04:05.000006Z"}}),
    ("a lease that asks for what is off", "coordination.k8s.io", "Lease",
     {"spec": {"strategy": "x", "preferredHolder": "y"}}),
    ("a lease without a spec", "coordination.k8s.io", "Lease", {}),
    ("a lease with bad numbers", "coordination.k8s.io", "Lease",
     {"spec": {"leaseDurationSeconds": 0, "leaseTransitions": -1}}),
    ("a role", RBAC, "Role", {"rules": [_RULE]}),
    ("a role without rules", RBAC, "Role", {}),
    ("a role with an empty rule", RBAC, "Role", {"rules": [{}]}),
    ("a role for URLs", RBAC, "Role", {"rules": [{"verbs": ["get"], "nonResourceURLs": ["/x", "/y"]}]}),
    ("a role with a bad name", RBAC, "Role", {"metadata": {"name": "a%b"}}),
    ("a cluster role", RBAC, "ClusterRole", {"rules": [{"verbs": ["get"], "nonResourceURLs": ["/x"]}]}),
    ("a cluster role for URLs and resources", RBAC, "ClusterRole", {"rules": [{**_RULE, "nonResourceURLs": ["/x"]}]}),
    ("an aggregated cluster role", RBAC, "ClusterRole",
     {"aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {"a": "b"}}]}}),
    ("an aggregated cluster role without selectors", RBAC, "ClusterRole", {"aggregationRule": {}}),
    ("an aggregated cluster role with a bad selector", RBAC, "ClusterRole",
     {"aggregationRule": {"clusterRoleSelectors": [{"matchExpressions": [{"key": "a", "operator": "Is"}]}]}}),
    ("a role binding", RBAC, "RoleBinding",
     {"roleRef": {"kind": "ClusterRole", "name": "view"},
      "subjects": [{"kind": "User", "name": "u"}, {"kind": "Group", "name": "g"},
                   {"kind": "ServiceAccount", "name": "s", "namespace": "default"}]}),
    ("a role binding without anything", RBAC, "RoleBinding", {}),
    ("a role binding with bad subjects", RBAC, "RoleBinding",
     {"roleRef": _ROLE, "subjects": [{"kind": "ServiceAccount", "name": "S", "apiGroup": "x"}, {"kind": "Robot"},
                                     {"kind": "User", "apiGroup": "x", "name": "u"}]}),
    ("a cluster role binding", RBAC, "ClusterRoleBinding", {"roleRef": _ROLE}),
    ("a cluster role binding to a role", RBAC, "ClusterRoleBinding",
     {"roleRef": {**_ROLE, "kind": "Role"}, "subjects": [{"kind": "ServiceAccount", "name": "s"}]}),
    ("a mutating webhook", ADMISSION, "MutatingWebhookConfiguration", _hook()),
    ("a validating webhook", ADMISSION, "ValidatingWebhookConfiguration",
     _hook(clientConfig={"service": {"name": "s", "namespace": "n", "path": "/x"}})),
    ("a webhook without side effects and versions", ADMISSION, "ValidatingWebhookConfiguration",
     _hook(sideEffects=None, admissionReviewVersions=None)),
    ("a webhook with wrong words", ADMISSION, "MutatingWebhookConfiguration",
     _hook(name="a", sideEffects="Some", failurePolicy="Maybe", matchPolicy="No", reinvocationPolicy="Yes",
           timeoutSeconds=31, admissionReviewVersions=["v2", "v2"])),
    ("a webhook with a bad URL", ADMISSION, "ValidatingWebhookConfiguration",
     _hook(clientConfig={"url": "http://user@example.com/x?y#z"})),
    ("a webhook without a client", ADMISSION, "ValidatingWebhookConfiguration", _hook(clientConfig={})),
    ("a webhook with an empty service", ADMISSION, "ValidatingWebhookConfiguration",
     _hook(clientConfig={"service": {"port": 70000, "path": "x//Y"}})),
    ("a webhook with bad rules", ADMISSION, "ValidatingWebhookConfiguration",
     _hook(rules=[{}, {"operations": ["*", "GET"], "apiGroups": ["*", ""], "apiVersions": ["*", "v1"],
                       "resources": ["*", "pods", "pods/*", "pods/status"], "scope": "Some"},
                  {"operations": ["CREATE"], "apiGroups": [""], "apiVersions": [""],
                   "resources": ["*/*", "*/scale", ""]}])),
    ("a webhook with bad conditions", ADMISSION, "ValidatingWebhookConfiguration",
     _hook(matchConditions=[{"name": "", "expression": ""}])),
    ("a node", "", "Node", {}),
    ("a node with a status", "", "Node", {
        "metadata": {"labels": {"node-role.kubernetes.io/control-plane": "", "kubernetes.io/role": "x"}},
        "spec": {"unschedulable": True, "taints": [{"key": "a", "value": "b", "effect": "NoExecute"}]},
        "status": {"capacity": {"cpu": "4000m", "memory": "1024Mi"}, "phase": "Running",
                   "conditions": [{"type": "Ready", "status": "False", "reason": "r"}]}}),
    ("a node with wrong taints", "", "Node", {"spec": {"taints": [
        {"key": "a", "effect": "Never"}, {"key": "b"}, {"key": "", "effect": "NoSchedule"}]}}),
    ("a stateful set", "apps", "StatefulSet", _deployment(serviceName="s")),
    ("a stateful set with everything", "apps", "StatefulSet", _deployment(
        serviceName="s", template=RICH, replicas=0, podManagementPolicy="Parallel", ordinals={"start": 2},
        updateStrategy={"type": "RollingUpdate", "rollingUpdate": {"partition": 1}},
        persistentVolumeClaimRetentionPolicy={"whenDeleted": "Delete"},
        volumeClaimTemplates=[{"metadata": {"name": "d"}, "spec": {
            "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1024Mi"}}}}])),
    ("a stateful set on delete", "apps", "StatefulSet", _deployment(updateStrategy={"type": "OnDelete"})),
    ("a stateful set of nonsense", "apps", "StatefulSet", _deployment(
        replicas=-1, minReadySeconds=-1, podManagementPolicy="Some", ordinals={"start": -1},
        persistentVolumeClaimRetentionPolicy={"whenDeleted": "Keep"})),
    ("a stateful set of another selector", "apps", "StatefulSet", _deployment(
        selector={"matchLabels": {"app": "b"}})),
    ("a stateful set without a selector", "apps", "StatefulSet", {"spec": {"template": TEMPLATE}}),
    ("a stateful set that ends", "apps", "StatefulSet", _deployment(
        template={**TEMPLATE, "spec": {**TEMPLATE["spec"], "restartPolicy": "Never", "activeDeadlineSeconds": 5}})),
    ("a job", "batch", "Job", _job()),
    ("a job with a labeled template", "batch", "Job", _job(template=LABELED)),
    ("a job with labels of its own", "batch", "Job", {"metadata": {"labels": {"b": "c"}}, **_job(template=LABELED)}),
    ("a job with equal labels", "batch", "Job", {"metadata": {"labels": {"app": "a"}}, **_job(template=LABELED)}),
    ("a job in parallel", "batch", "Job", _job(parallelism=3, backoffLimit=0, ttlSecondsAfterFinished=5)),
    ("a job of many", "batch", "Job", _job(completions=5, activeDeadlineSeconds=60, suspend=True)),
    ("a job by its own selector", "batch", "Job",
     _job(template=LABELED, manualSelector=True, selector={"matchLabels": {"app": "a"}})),
    ("a job with everything", "batch", "Job", _indexed(
        template={**RICH, "spec": {**RICH["spec"], "restartPolicy": "Never"}}, backoffLimitPerIndex=1,
        maxFailedIndexes=2, managedBy="example.com/mine",
        successPolicy={"rules": [{"succeededIndexes": "0,2", "succeededCount": 1}, {"succeededCount": 3}]},
        podFailurePolicy={"rules": [
            {"action": "FailIndex", "onExitCodes": {"operator": "In", "values": [1, 2], "containerName": "c"}},
            {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}, {"type": "a", "status": "False"}]}]})),
    ("a job without anything", "batch", "Job", {}),
    ("a job that restarts", "batch", "Job", _job(template=TEMPLATE)),
    ("a job that restarts sometimes", "batch", "Job",
     _job(template={"spec": {**ONCE["spec"], "restartPolicy": "Sometimes"}})),
    ("a job with bad numbers", "batch", "Job", _job(
        parallelism=-1, completions=-1, activeDeadlineSeconds=-1, backoffLimit=-1, ttlSecondsAfterFinished=-1,
        backoffLimitPerIndex=-1, maxFailedIndexes=-1)),
    ("a job with labels of another", "batch", "Job", _job(
        template={"metadata": {"labels": {"job-name": "x", "controller-uid": "y"}}, **ONCE})),
    ("a job with a selector of its own", "batch", "Job", _job(selector={"matchLabels": {"app": "a"}})),
    ("a job whose selector misses", "batch", "Job",
     _job(template=LABELED, manualSelector=True, selector={"matchLabels": {"app": "b"}})),
    ("a job that forgot its selector", "batch", "Job", _job(template=LABELED, manualSelector=True)),
    ("a job with wrong words", "batch", "Job", _job(
        completionMode="Some", podReplacementPolicy="Never", managedBy="mine")),
    ("a job managed by nobody", "batch", "Job", _job(managedBy="")),
    ("a job managed from a bad place", "batch", "Job", _job(managedBy="A_/b c" + "d" * 60)),
    ("an indexed job without completions", "batch", "Job", _job(completionMode="Indexed", parallelism=200000)),
    ("an indexed job that is too large", "batch", "Job", _job(
        completionMode="Indexed", completions=200000, parallelism=20000, backoffLimitPerIndex=1)),
    ("an indexed job that may fail too often", "batch", "Job", _job(
        completionMode="Indexed", completions=150000, parallelism=1, backoffLimitPerIndex=1, maxFailedIndexes=200000)),
    ("an indexed job with a long name", "batch", "Job", {"metadata": {"name": "a" * 63}, **_indexed()}),
    ("a job with an index policy", "batch", "Job", _job(
        completions=2, podFailurePolicy={"rules": [{"action": "FailIndex", "onExitCodes": {
            "operator": "In", "values": [1]}}]})),
    ("a job with bad rules for failures", "batch", "Job", _job(
        template={"spec": {**ONCE["spec"], "restartPolicy": "OnFailure"}}, podReplacementPolicy="TerminatingOrFailed",
        podFailurePolicy={"rules": [
            {}, {"action": "Some", "onExitCodes": {"operator": "Of", "values": []}},
            {"action": "Count", "onExitCodes": {"values": [2, 1, 1, 0], "operator": "In", "containerName": "x"},
             "onPodConditions": [{"type": "", "status": "Maybe"}]}]})),
    ("a job with bad rules for success", "batch", "Job", _indexed(successPolicy={"rules": [
        {}, {"succeededIndexes": "0-5"}, {"succeededIndexes": "2,1"}, {"succeededIndexes": "a"},
        {"succeededIndexes": "0-1-2"}, {"succeededIndexes": "1-1"}, {"succeededCount": 4},
        {"succeededIndexes": "0", "succeededCount": 2}, {"succeededCount": -1}]})),
    ("a job that succeeds by no rule", "batch", "Job", _indexed(successPolicy={})),
    ("a cron job", "batch", "CronJob", _cron()),
    ("a cron job with everything", "batch", "CronJob", _cron(
        schedule="@every 1h30m", timeZone="Europe/Berlin", startingDeadlineSeconds=10, concurrencyPolicy="Replace",
        suspend=True, successfulJobsHistoryLimit=0, failedJobsHistoryLimit=0,
        job={"template": LABELED, "backoffLimit": 2, "completionMode": "Indexed", "completions": 2})),
    ("a cron job with names", "batch", "CronJob", _cron(schedule="0-30/10 ? 1,15 jan-MAR sun")),
    ("a cron job without anything", "batch", "CronJob", {}),
    ("a cron job with bad numbers", "batch", "CronJob", _cron(
        startingDeadlineSeconds=-1, successfulJobsHistoryLimit=-1, failedJobsHistoryLimit=-1,
        concurrencyPolicy="Some", job={"completions": -1})),
    ("a cron job in no zone", "batch", "CronJob", _cron(timeZone="Mars/Olympus")),
    ("a cron job in an empty zone", "batch", "CronJob", _cron(timeZone="")),
    ("a cron job in the zone of the machine", "batch", "CronJob", _cron(timeZone="local")),
    ("a cron job outside of the zones", "batch", "CronJob", _cron(timeZone="../UTC")),
    ("a cron job with its zone in the schedule", "batch", "CronJob", _cron(schedule="TZ=UTC 0 * * * *")),
    ("a cron job with a bad zone in the schedule", "batch", "CronJob", _cron(schedule="CRON_TZ=Mars 0 * * * *")),
    ("a cron job with a selector", "batch", "CronJob",
     _cron(job={"selector": {"matchLabels": {"a": "b"}}, "manualSelector": True})),
    ("a cron job with a long name", "batch", "CronJob", {"metadata": {"name": "a" * 53}, **_cron()}),
    ("a cron job that restarts", "batch", "CronJob", _cron(job={"template": TEMPLATE})),
    *((f"a cron job at {schedule}", "batch", "CronJob", _cron(schedule=schedule)) for schedule in (
        "x", "* * * *", "60 * * * *", "* 24 * * *", "* * 0 * *", "* * * 13 *", "* * * * 7", "a * * * *",
        "1-2-3 * * * *", "1/2/3 * * * *", "5-1 * * * *", "*/0 * * * *", "-1 * * * *", "@often", "@every x",
        "99999999999999999999 * * * *", "*/x * * * *")),
    ("a daemon set", "apps", "DaemonSet", _deployment()),
    ("a daemon set with everything", "apps", "DaemonSet", _deployment(
        template={**RICH, "spec": {**RICH["spec"], "nodeSelector": {"b": "c", "a": "b"}}}, minReadySeconds=5,
        revisionHistoryLimit=0, updateStrategy={"rollingUpdate": {"maxSurge": "10%", "maxUnavailable": 0}})),
    ("a daemon set on delete", "apps", "DaemonSet", _deployment(updateStrategy={"type": "OnDelete"})),
    ("a daemon set with a count", "apps", "DaemonSet", {
        "metadata": {"annotations": {"deprecated.daemonset.template.generation": "7", "a": "b"}}, **_deployment()}),
    ("a daemon set without anything", "apps", "DaemonSet", {}),
    ("a daemon set with an empty selector", "apps", "DaemonSet", _deployment(selector={})),
    ("a daemon set whose selector misses", "apps", "DaemonSet", _deployment(selector={"matchLabels": {"app": "b"}})),
    ("a daemon set of nonsense", "apps", "DaemonSet", _deployment(
        minReadySeconds=-1, revisionHistoryLimit=-1, updateStrategy={"type": "Some"})),
    ("a daemon set that never rolls", "apps", "DaemonSet",
     _deployment(updateStrategy={"rollingUpdate": {"maxUnavailable": 0}})),
    ("a daemon set that rolls both ways", "apps", "DaemonSet",
     _deployment(updateStrategy={"rollingUpdate": {"maxUnavailable": "101%", "maxSurge": 2}})),
    ("a daemon set that rolls badly", "apps", "DaemonSet",
     _deployment(updateStrategy={"rollingUpdate": {"maxUnavailable": "x", "maxSurge": -1}})),
    ("a daemon set that ends", "apps", "DaemonSet", _deployment(
        template={**TEMPLATE, "spec": {**TEMPLATE["spec"], "restartPolicy": "Never", "activeDeadlineSeconds": 5}})),
    ("a replication controller", "", "ReplicationController", {"spec": {"template": TEMPLATE}}),
    ("a replication controller with everything", "", "ReplicationController", {
        "metadata": {"labels": {"b": "c"}},
        "spec": {"template": RICH, "selector": {"app": "a"}, "replicas": 0, "minReadySeconds": 3}}),
    ("a replication controller without anything", "", "ReplicationController", {}),
    ("a replication controller without labels", "", "ReplicationController", {
        "spec": {"template": {"spec": TEMPLATE["spec"]}}}),
    ("a replication controller of nonsense", "", "ReplicationController", {
        "spec": {"template": TEMPLATE, "selector": {"app": "b"}, "replicas": -1, "minReadySeconds": -1}}),
    ("a replication controller that ends", "", "ReplicationController", {
        "spec": {"template": {**TEMPLATE, "spec": {
            **TEMPLATE["spec"], "restartPolicy": "OnFailure", "activeDeadlineSeconds": 5}}}}),
    ("a deployment", "apps", "Deployment", _deployment()),
    ("a deployment with everything", "apps", "Deployment", _deployment(template=RICH, replicas=0, paused=False)),
    ("a deployment that asks for what is off", "apps", "Deployment",
     _deployment(template={**TEMPLATE, "spec": {
         "hostUsers": False, "resources": {"limits": {"cpu": 1}},
         "securityContext": {"supplementalGroupsPolicy": "Strict"},
         "resourceClaims": [{"name": "x", "resourceClaimName": "y"}],
         "containers": [{"name": "c", "image": "i", "resources": {"claims": [{"name": "x"}]},
                         "resizePolicy": [{"resourceName": "cpu", "restartPolicy": "NotRequired"}]}]}})),
    ("a deployment that recreates", "apps", "Deployment", _deployment(strategy={"type": "Recreate"})),
    ("a deployment with partial rolling", "apps", "Deployment",
     _deployment(strategy={"rollingUpdate": {"maxSurge": 1}})),
    ("a deployment without anything", "apps", "Deployment", {}),
    ("a deployment whose selector misses", "apps", "Deployment",
     _deployment(selector={"matchLabels": {"app": "b"}})),
    ("a deployment with an empty selector", "apps", "Deployment", _deployment(selector={})),
    ("a deployment with a bad selector", "apps", "Deployment",
     _deployment(selector={"matchExpressions": [{"key": "a", "operator": "In"}]})),
    ("a deployment with bad numbers", "apps", "Deployment",
     _deployment(replicas=-1, minReadySeconds=10, progressDeadlineSeconds=5, revisionHistoryLimit=-1)),
    ("a deployment that never rolls", "apps", "Deployment",
     _deployment(strategy={"rollingUpdate": {"maxSurge": 0, "maxUnavailable": 0}})),
    ("a deployment that rolls badly", "apps", "Deployment",
     _deployment(strategy={"rollingUpdate": {"maxSurge": "x", "maxUnavailable": "101%"}})),
    ("a deployment that recreates by rolling", "apps", "Deployment",
     _deployment(strategy={"type": "Recreate", "rollingUpdate": {}})),
    ("a deployment that does not restart", "apps", "Deployment",
     _deployment(template={**TEMPLATE, "spec": {**TEMPLATE["spec"], "restartPolicy": "Never"}})),
    ("a deployment with a dotted name", "apps", "Deployment", {**_deployment(), "metadata": {"name": "a.b"}}),
    ("a container without anything", "apps", "Deployment",
     _deployment(template={**TEMPLATE, "spec": {"containers": [{}]}})),
    ("a container with a bad name", "apps", "Deployment", _container(name="A_b")),
    ("a container with bad ports", "apps", "Deployment",
     _container(ports=[{"containerPort": 0}, {"containerPort": 70000, "name": "-", "protocol": "X"},
                       {"containerPort": 1, "name": "a"}, {"containerPort": 2, "name": "a", "hostPort": -1}])),
    ("a container with bad variables", "apps", "Deployment",
     _container(env=[{"name": ""}, {"name": "a=b"}, {"name": "c", "valueFrom": {}},
                     {"name": "d", "value": "x", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}])),
    ("a container with bad mounts", "apps", "Deployment",
     _container(volumeMounts=[{"name": "x", "mountPath": "/a"}, {"name": "", "mountPath": "/a"}])),
    ("a container with bad resources", "apps", "Deployment",
     _container(resources={"limits": {"cpu": "1", "gpu": 1}, "requests": {"cpu": 2, "memory": "-1"}})),
    ("a container with wrong policies", "apps", "Deployment",
     _container(imagePullPolicy="Sometimes", terminationMessagePolicy="Log", restartPolicy="Always")),
    ("a container with bad probes", "apps", "Deployment",
     _container(livenessProbe={"successThreshold": 2}, readinessProbe={"exec": {"command": ["a"]},
                "httpGet": {"port": 80}, "periodSeconds": -1})),
    ("two containers of one name", "apps", "Deployment",
     _deployment(template={**TEMPLATE, "spec": {"containers": [{"name": "c", "image": "a"},
                                                               {"name": "c", "image": "b"}]}})),
    ("volumes that are wrong", "apps", "Deployment",
     _deployment(template={**TEMPLATE, "spec": {**TEMPLATE["spec"], "volumes": [
         {"name": "A"}, {"name": "b", "secret": {}}, {"name": "c", "emptyDir": {}, "configMap": {"name": "x"}},
         {"name": "d", "emptyDir": {}}, {"name": "d", "emptyDir": {}}, {"name": "", "hostPath": {"path": ""}}]}})),
    ("a pod spec with wrong words", "apps", "Deployment",
     _deployment(template={**TEMPLATE, "spec": {**TEMPLATE["spec"], "dnsPolicy": "X", "hostname": "A", "nodeName": "B_",
                                                "serviceAccountName": "C_", "nodeSelector": {"a b": "c d"}}})),
    ("a replica set", "apps", "ReplicaSet", _deployment()),
    ("a replica set without anything", "apps", "ReplicaSet", {}),
    ("a controller revision", "apps", "ControllerRevision", {"data": {"a": 1}, "revision": 3}),
    ("a controller revision without data", "apps", "ControllerRevision", {"revision": -1}),
    ("an autoscaler", "autoscaling", "HorizontalPodAutoscaler", {"spec": _HPA}),
    ("an autoscaler with a behavior", "autoscaling", "HorizontalPodAutoscaler",
     {"spec": {**_HPA, "behavior": {"scaleDown": {"stabilizationWindowSeconds": 5}}, "metrics": [_METRIC]}}),
    ("an autoscaler without anything", "autoscaling", "HorizontalPodAutoscaler", {}),
    ("an autoscaler with bad numbers", "autoscaling", "HorizontalPodAutoscaler",
     {"spec": {**_HPA, "minReplicas": 0, "maxReplicas": -1, "metrics": [{"type": "X"}, {"type": "Pods"},
      {"type": "Resource", "resource": {}}]}}),
    ("an autoscaler with bad metrics", "autoscaling", "HorizontalPodAutoscaler", {"spec": {**_HPA, "metrics": [
        {"type": "Object", "object": {"describedObject": {"kind": "a/b", "name": ""}, "metric": {"name": "%"},
                                      "target": {"type": "Value"}}},
        {"type": "Object", "object": {"describedObject": {"kind": "Service", "name": "s"}, "metric": {"name": "m"},
                                      "target": {"type": "X", "value": "0", "averageValue": "-1"}}},
        {"type": "External", "external": {"metric": {"name": ""}, "target": {"type": "Value"}}},
        {"type": "External", "external": {"metric": {"name": "m"},
                                          "target": {"type": "Value", "value": "-5Mi", "averageValue": "-1500m"}}},
        {"type": "Pods", "pods": {"metric": {"name": "m"}, "target": {"type": "Value", "value": "1"}}},
        {"type": "ContainerResource", "containerResource": {"name": "", "container": "", "target": {}}},
        {"type": "ContainerResource", "containerResource": {"name": "gpu", "container": "A",
            "target": {"type": "Utilization", "averageUtilization": 0, "averageValue": "1"}}},
        {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "AverageValue", "averageValue": 0}}},
        {"type": "Pods", "resource": {"name": "", "target": {}},
         "pods": {"metric": {"name": ""}, "target": {"averageValue": "1", "type": "AverageValue"}}},
        {"type": "Pods", "resource": {"name": "", "target": {}}}]}}),
    ("an autoscaler with bad behavior", "autoscaling", "HorizontalPodAutoscaler", {"spec": {**_HPA, "behavior": {
        "scaleUp": {"stabilizationWindowSeconds": -1, "selectPolicy": "X", "policies": []},
        "scaleDown": {"stabilizationWindowSeconds": 3601, "policies": [
            {"type": "X", "value": 0, "periodSeconds": 0}, {"type": "Pods", "value": 1, "periodSeconds": 1801}]}}}}),
    ("an autoscaler with annotations of v1", "autoscaling", "HorizontalPodAutoscaler",
     {"metadata": _annotated(metrics=_OTHER_METRICS, behavior=_BEHAVIOR), "spec": _HPA}),
    ("an old autoscaler", "autoscaling/v1", "HorizontalPodAutoscaler", {"spec": _HPA}),
    ("an old autoscaler with a target", "autoscaling/v1", "HorizontalPodAutoscaler",
     {"spec": {**_HPA, "minReplicas": 2, "targetCPUUtilizationPercentage": 50}}),
    ("an old autoscaler without anything", "autoscaling/v1", "HorizontalPodAutoscaler", {}),
    ("an old autoscaler with bad numbers", "autoscaling/v1", "HorizontalPodAutoscaler",
     {"spec": {**_HPA, "minReplicas": 0, "maxReplicas": -1, "targetCPUUtilizationPercentage": -1}}),
    ("an old autoscaler with other metrics", "autoscaling/v1", "HorizontalPodAutoscaler",
     {"metadata": _annotated(metrics=_OTHER_METRICS), "spec": _HPA}),
    ("an old autoscaler with one target and other metrics", "autoscaling/v1", "HorizontalPodAutoscaler",
     {"metadata": _annotated(metrics=_OTHER_METRICS), "spec": {**_HPA, "targetCPUUtilizationPercentage": 50}}),
    ("an old autoscaler with a behavior", "autoscaling/v1", "HorizontalPodAutoscaler",
     {"metadata": _annotated(behavior=_BEHAVIOR), "spec": _HPA}),
    ("an old autoscaler with a status in annotations", "autoscaling/v1", "HorizontalPodAutoscaler",
     {"metadata": _annotated(current_metrics=_OTHER_MEASURES, conditions=[_CONDITION]), "spec": _HPA}),
    ("an old autoscaler with annotations that say nothing", "autoscaling/v1", "HorizontalPodAutoscaler",
     {"metadata": _annotated(metrics="{", behavior="{}", conditions="[]", current_metrics="null"), "spec": _HPA}),
    ("an old autoscaler with annotations of wrong types", "autoscaling/v1", "HorizontalPodAutoscaler",
     {"metadata": _annotated(metrics=[{"type": "Pods", "pods": 1}], behavior={"ScaleUp": {"Policies": "x"}}),
      "spec": _HPA}),
    ("an old autoscaler with an empty metric", "autoscaling/v1", "HorizontalPodAutoscaler",
     {"metadata": _annotated(metrics=[{"type": "Pods", "pods": {"targetAverageValue": "0"}}, {}]), "spec": _HPA}),
    ("a budget", "policy", "PodDisruptionBudget",
     {"spec": {"minAvailable": "50%", "selector": {"matchLabels": {"a": "b"}}}}),
    ("a budget without anything", "policy", "PodDisruptionBudget", {}),
    ("a budget with bad shares", "policy", "PodDisruptionBudget",
     {"spec": {"maxUnavailable": "101%", "unhealthyPodEvictionPolicy": "X"}}),
    ("a budget with a bad word", "policy", "PodDisruptionBudget", {"spec": {"minAvailable": "half"}}),
    ("a pod", "", "Pod", {"spec": TEMPLATE["spec"]}),
    ("a pod with everything", "", "Pod", {"spec": RICH["spec"]}),
    ("a pod without containers", "", "Pod", {}),
    ("a service", "", "Service", {"spec": {"selector": {"a": "b"}, "ports": [{"port": 80}]}}),
    ("a headless service", "", "Service",
     {"spec": {"clusterIP": "None", "selector": {"a": "b"}, "ports": [{"port": 80, "targetPort": "http"}]}}),
    ("a headless service without a selector", "", "Service", {"spec": {"clusterIP": "None"}}),
    ("an external name", "", "Service", {"spec": {"type": "ExternalName", "externalName": "example.com"}}),
    ("a sticky service", "", "Service", {"spec": {"ports": [{"port": 80}], "sessionAffinity": "ClientIP"}}),
    ("a node port", "", "Service", {"spec": {"type": "NodePort", "ports": [{"port": 80}, {"port": 81, "name": "b"}]}}),
    ("a load balancer", "", "Service", {"spec": {"type": "LoadBalancer", "ports": [{"port": 80}]}}),
    ("a service without ports", "", "Service", {"spec": {}}),
    ("a service with a bad name", "", "Service", {"metadata": {"name": "1a"}, "spec": {"ports": [{"port": 80}]}}),
    ("a service with bad ports", "", "Service",
     {"spec": {"ports": [{"port": 0}, {"port": 70000, "name": "A", "protocol": "X", "targetPort": "a--b"},
                         {"port": 80, "name": "b", "nodePort": 30000}, {"port": 80, "name": "b"}]}}),
    ("a service with wrong words", "", "Service",
     {"spec": {"type": "Other", "sessionAffinity": "X", "ports": [{"port": 80}], "externalIPs": ["127.0.0.1", "x"]}}),
    ("an external name without one", "", "Service", {"spec": {"type": "ExternalName", "clusterIP": "10.0.0.9"}}),
    ("endpoints", "", "Endpoints",
     {"subsets": [{"addresses": [{"ip": "10.1.2.3"}, {"ip": "fd00::1"}], "ports": [{"port": 80}]}]}),
    ("endpoints with bad addresses", "", "Endpoints",
     {"subsets": [{}, {"addresses": [{"ip": "x", "hostname": "A"}, {"ip": "127.0.0.1"}, {"ip": "224.0.0.1"}],
                       "ports": [{"port": 0}, {"port": 1, "protocol": "X", "name": "A"}]}]}),
    ("a local service", "apiregistration.k8s.io", "APIService",
     {"metadata": {"name": "v1.a.example.com"}, "spec": _API}),
    ("a service without anything", "apiregistration.k8s.io", "APIService", {}),
    ("a local service that trusts", "apiregistration.k8s.io", "APIService",
     {"metadata": {"name": "v1.a.example.com"}, "spec": {**_API, "caBundle": "YWJj", "insecureSkipTLSVerify": True}}),
    ("a service that is wrong", "apiregistration.k8s.io", "APIService",
     {"metadata": {"name": "a"}, "spec": {"group": "A", "version": "1", "groupPriorityMinimum": 20001,
                                          "versionPriority": 1001, "service": {"port": 70000}, "caBundle": "YWJj",
                                          "insecureSkipTLSVerify": True}}),
    ("a definition", "apiextensions.k8s.io", "CustomResourceDefinition", _crd()),
    ("a definition with everything", "apiextensions.k8s.io", "CustomResourceDefinition",
     _crd({"deprecated": True, "deprecationWarning": "old", "subresources": {"status": {}},
           "additionalPrinterColumns": [{"name": "A", "type": "string", "jsonPath": ".spec.a"}]},
          {"name": "v2", "storage": False})),
    ("a definition without anything", "apiextensions.k8s.io", "CustomResourceDefinition", {}),
    ("a definition with a wrong name", "apiextensions.k8s.io", "CustomResourceDefinition",
     {**_crd(), "metadata": {"name": "gadgets.example.com"}}),
    ("a definition with bad names", "apiextensions.k8s.io", "CustomResourceDefinition",
     _crd(names={"plural": "widgets", "kind": "Wid_get", "listKind": "Wid_get", "shortNames": ["A"],
                 "categories": ["B"]}, scope="Galaxy")),
    ("a definition without a dot", "apiextensions.k8s.io", "CustomResourceDefinition", _crd(group="example")),
    ("a definition without a schema", "apiextensions.k8s.io", "CustomResourceDefinition", _crd({"schema": None})),
    ("a definition with columns that are wrong", "apiextensions.k8s.io", "CustomResourceDefinition",
     _crd({"additionalPrinterColumns": [{}, {"name": "a", "type": "x", "format": "y", "jsonPath": "z"}]})),
    ("a definition with a wrong scale", "apiextensions.k8s.io", "CustomResourceDefinition",
     _crd({"subresources": {"scale": {"specReplicasPath": ".status.a", "labelSelectorPath": "x"}}})),
    ("a definition with a wrong conversion", "apiextensions.k8s.io", "CustomResourceDefinition",
     _crd(conversion={"strategy": "Webhook"})),
    ("a definition with a conversion", "apiextensions.k8s.io", "CustomResourceDefinition",
     _crd(conversion={"strategy": "Webhook", "webhook": {"conversionReviewVersions": ["v1"],
          "clientConfig": {"service": {"name": "a", "namespace": "b"}}}})),
    ("a definition with an unstructured schema", "apiextensions.k8s.io", "CustomResourceDefinition",
     _crd({"schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": {}}}}})),
    ("a definition with a rule", "apiextensions.k8s.io", "CustomResourceDefinition",
     _crd({"schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": {
         "type": "object", "properties": {"a": {"type": "integer"}},
         "x-kubernetes-validations": [{"rule": "self.a > 1", "message": "more"}]}}}}})),
    ("a definition with a rule that is wrong", "apiextensions.k8s.io", "CustomResourceDefinition",
     _crd({"schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": {
         "type": "object", "properties": {"a": {"type": "integer"}},
         "x-kubernetes-validations": [{"rule": "self.b > 1"}, {"rule": "self.a"}, {"rule": ""}]}}}}})),
    ("a definition with a default that is wrong", "apiextensions.k8s.io", "CustomResourceDefinition",
     _crd({"schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": {
         "type": "object", "properties": {"a": {"type": "integer", "default": "x"}}}}}}})),
    ("a definition with selectable fields", "apiextensions.k8s.io", "CustomResourceDefinition",
     _crd({"selectableFields": [{"jsonPath": ".spec.a"}, {"jsonPath": ".spec.a"}, {"jsonPath": ".spec"},
                                {"jsonPath": ".metadata.name"}, {"jsonPath": ".spec.b"}, {}],
           "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": {
               "type": "object", "properties": {"a": {"type": "string"}}}}}}})),
    ("two versions that differ", "apiextensions.k8s.io", "CustomResourceDefinition",
     _crd({"additionalPrinterColumns": [{"name": "A", "type": "x", "jsonPath": ".a"}]},
          {"name": "v2", "storage": False,
           "schema": {"openAPIV3Schema": {"type": "object", "properties": {"a": {}}}}})),
    ("two versions that share a bad schema", "apiextensions.k8s.io", "CustomResourceDefinition",
     _crd(_UNTYPED, {**_UNTYPED, **_SECOND})),
    ("two versions with bad schemas of their own", "apiextensions.k8s.io", "CustomResourceDefinition",
     _crd(_UNTYPED, {"schema": {"openAPIV3Schema": {"type": "array"}}, **_SECOND})),
    ("two versions that share a bad schema but no subresources", "apiextensions.k8s.io", "CustomResourceDefinition",
     _crd({**_UNTYPED, "subresources": {"status": {}}}, {**_UNTYPED, **_SECOND})),
    ("two versions that share a scale", "apiextensions.k8s.io", "CustomResourceDefinition",
     _crd(_SCALED, {**_SCALED, **_SECOND})),
    ("two versions that share columns", "apiextensions.k8s.io", "CustomResourceDefinition",
     _crd(_COLUMNS, {**_COLUMNS, **_SECOND})),
    ("two versions of which one has selectable fields", "apiextensions.k8s.io", "CustomResourceDefinition",
     _crd(_SELECTABLE, _SECOND)),
    ("two versions that share selectable fields but no schema", "apiextensions.k8s.io", "CustomResourceDefinition",
     _crd(_SELECTABLE, {**_SELECTABLE, "schema": {"openAPIV3Schema": {"type": "object"}}, **_SECOND})),
    ("two versions of which one has no schema", "apiextensions.k8s.io", "CustomResourceDefinition",
     _crd({}, {"schema": {}, **_SECOND})),
    ("a definition without versions", "apiextensions.k8s.io", "CustomResourceDefinition", _crd(versions=[])),
    ("a definition with a version without a name", "apiextensions.k8s.io", "CustomResourceDefinition",
     _crd({"name": ""})),
    ("two storage versions of one name", "apiextensions.k8s.io", "CustomResourceDefinition", _crd({}, {})),
    ("a definition with a bad version", "apiextensions.k8s.io", "CustomResourceDefinition", _crd({"name": "1v"})),
    ("a definition of a protected group", "apiextensions.k8s.io", "CustomResourceDefinition",
     {**_crd(group="a.k8s.io"), "metadata": {"name": "widgets.a.k8s.io"}}),
)  # fmt: skip

Change = tuple[str, str, str, dict[str, Any], dict[str, Any], str]  # as a Sample, but before and after; the subresource

BEGAN, ENDED = "2026-01-02T03:04:05Z", "2026-01-02T03:09:05Z"
BOTH = {"metadata": {"labels": {"app": "a", "b": "c"}}, **ONCE}
OWN, OWN_INDEXED = _owned(), _owned(completionMode="Indexed", completions=5, backoffLimitPerIndex=1)

CHANGES: tuple[Change, ...] = (
    ("a priority class changes", "scheduling.k8s.io", "PriorityClass", {"value": 1},
     {"value": 2, "preemptionPolicy": "Never"}, ""),
    ("a priority class is told better", "scheduling.k8s.io", "PriorityClass", {"value": 1},
     {"value": 1, "description": "d", "globalDefault": True}, ""),
    ("an ingress gets its address", "networking.k8s.io", "Ingress", {"spec": {"defaultBackend": _BACKEND}},
     {"spec": {"defaultBackend": _BACKEND},
      "status": {"loadBalancer": {"ingress": [{"ip": "192.0.2.1"}, {"hostname": "lb.example.com"}]}}}, "status"),
    ("a node becomes ready", "", "Node", {"metadata": {"labels": {"node-role.kubernetes.io/worker": ""}}},
     {"status": {"conditions": [{"type": "Ready", "status": "True"}], "capacity": {"cpu": "2"},
                 "addresses": [{"type": "InternalIP", "address": "10.0.0.7"}],
                 "nodeInfo": {"kubeletVersion": "v1.32.0", "osImage": "Debian"}}}, "status"),
    ("a node is cordoned", "", "Node", {"spec": {"podCIDR": "10.1.0.0/24", "podCIDRs": ["10.1.0.0/24"]}},
     {"spec": {"podCIDR": "10.1.0.0/24", "podCIDRs": ["10.1.0.0/24"], "unschedulable": True}}, ""),
    ("a node gets another provider", "", "Node", {"spec": {"providerID": "a://1"}}, {"spec": {"providerID": "b://1"}}, ""),
    ("a node gets another network", "", "Node", {"spec": {"podCIDR": "10.1.0.0/24", "podCIDRs": ["10.1.0.0/24"]}},
     {"spec": {"podCIDR": "10.2.0.0/24", "podCIDRs": ["10.2.0.0/24"]}}, ""),
    ("a daemon set changes its template", "apps", "DaemonSet", _deployment(), _deployment(template=RICH), ""),
    ("a daemon set changes its limit", "apps", "DaemonSet", _deployment(), _deployment(revisionHistoryLimit=2), ""),
    ("a daemon set changes its selector", "apps", "DaemonSet", _deployment(), _deployment(
        selector={"matchLabels": {"app": "b"}}, template={**TEMPLATE, "metadata": {"labels": {"app": "b"}}}), ""),
    ("a daemon set reports", "apps", "DaemonSet", _deployment(),
     {"status": {"desiredNumberScheduled": 3, "currentNumberScheduled": 2, "numberReady": 1, "numberAvailable": 1,
                 "updatedNumberScheduled": 2, "numberMisscheduled": 0, "observedGeneration": 1}}, "status"),
    ("a daemon set reports nonsense", "apps", "DaemonSet", _deployment(),
     {"status": {"desiredNumberScheduled": -3, "collisionCount": -1, "numberUnavailable": -1}}, "status"),
    ("a replication controller scales", "", "ReplicationController", {"spec": {"template": TEMPLATE}},
     {"spec": {"template": TEMPLATE, "replicas": 3}}, ""),
    ("a replication controller changes its selector", "", "ReplicationController", {"spec": {"template": TEMPLATE}},
     {"spec": {"template": {**TEMPLATE, "metadata": {"labels": {"app": "b"}}}}}, ""),
    ("a replication controller reports", "", "ReplicationController", {"spec": {"template": TEMPLATE}},
     {"status": {"replicas": 3, "readyReplicas": 2, "availableReplicas": 1}}, "status"),
    ("a replication controller reports nonsense", "", "ReplicationController", {"spec": {"template": TEMPLATE}},
     {"status": {"replicas": 1, "readyReplicas": 2, "availableReplicas": 3, "fullyLabeledReplicas": -1}}, "status"),
    ("a cron job changes", "batch", "CronJob", _cron(), _cron(schedule="@daily", suspend=True), ""),
    ("a cron job gets a bad zone", "batch", "CronJob", _cron(), _cron(timeZone="Mars"), ""),
    ("a cron job reports", "batch", "CronJob", _cron(), {
        "status": {"active": [{"kind": "Job", "name": "j", "namespace": "default"}],
                   "lastScheduleTime": "2026-01-02T03:04:05Z"}}, "status"),
    ("a job changes what it may", "batch", "Job", OWN, _owned(
        parallelism=2, suspend=True, backoffLimit=1, activeDeadlineSeconds=9, ttlSecondsAfterFinished=1), ""),
    ("a job changes how much it does", "batch", "Job", OWN, _owned(completions=2), ""),
    ("a job changes how it counts", "batch", "Job", OWN, _owned(completionMode="Indexed", completions=1), ""),
    ("a job changes who manages it", "batch", "Job", OWN, _owned(managedBy="example.com/mine"), ""),
    ("a job changes its selector", "batch", "Job", _owned(template=BOTH), _owned(
        template=BOTH, selector={"matchLabels": {"b": "c"}}), ""),
    ("a job forgets its selector", "batch", "Job", OWN, _job(template=LABELED, manualSelector=True), ""),
    ("an indexed job grows", "batch", "Job", _owned(completionMode="Indexed", completions=2, parallelism=2),
     _owned(completionMode="Indexed", completions=4, parallelism=4), ""),
    ("an indexed job grows alone", "batch", "Job", _owned(completionMode="Indexed", completions=2),
     _owned(completionMode="Indexed", completions=4), ""),
    ("an indexed job gets a limit", "batch", "Job", _owned(completionMode="Indexed", completions=2),
     _owned(completionMode="Indexed", completions=2, backoffLimitPerIndex=1), ""),
    ("a suspended job moves", "batch", "Job", _owned(suspend=True), _owned(
        suspend=True, template={"metadata": {"labels": {"app": "a", "b": "c"}, "annotations": {"x": "y"}}, "spec": {
            **ONCE["spec"], "nodeSelector": {"a": "b"}, "tolerations": [{"key": "a", "operator": "Exists"}],
            "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
                {"matchExpressions": [{"key": "a", "operator": "Exists"}]}]}}}}}), ""),
    ("a job begins without labels", "batch", "Job", _job(), {"status": {"startTime": BEGAN}}, "status"),
    ("a job begins", "batch", "Job", OWN, _reported(startTime=BEGAN, active=1, ready=1), "status"),
    ("a job completes", "batch", "Job", OWN, _reported(
        "SuccessCriteriaMet", "Complete", startTime=BEGAN, completionTime=ENDED, succeeded=1), "status"),
    ("a job fails", "batch", "Job", OWN, _reported("FailureTarget", "Failed", startTime=BEGAN, failed=7), "status"),
    ("a job is suspended", "batch", "Job", OWN, _reported("Suspended"), "status"),
    ("a job will fail", "batch", "Job", OWN, _reported("FailureTarget"), "status"),
    ("a job reports bad numbers", "batch", "Job", OWN, _reported(
        active=-1, succeeded=-1, failed=-1, ready=-1, terminating=-1,
        uncountedTerminatedPods={"succeeded": ["a", "", "a"], "failed": ["a"]}), "status"),
    ("a job completes without anything", "batch", "Job", OWN, _reported("Complete"), "status"),
    ("a job fails without anything", "batch", "Job", OWN, _reported(
        "Failed", active=1, ready=2, terminating=1, uncountedTerminatedPods={"failed": ["a"]}), "status"),
    ("a job completes and fails", "batch", "Job", OWN, _reported(
        "SuccessCriteriaMet", "Complete", "Failed", "FailureTarget", startTime=ENDED, completionTime=BEGAN), "status"),
    ("a job ends before it is complete", "batch", "Job", OWN, _reported(completionTime=ENDED), "status"),
    ("a job reports indexes", "batch", "Job", OWN, _reported(completedIndexes="0", failedIndexes="0"), "status"),
    ("an indexed job reports", "batch", "Job", OWN_INDEXED, _reported(
        completedIndexes="0,2-3", failedIndexes="1"), "status"),
    ("an indexed job reports nonsense", "batch", "Job", OWN_INDEXED, _reported(
        completedIndexes="0-2,1", failedIndexes="7,2"), "status"),
    ("a stateful set scales", "apps", "StatefulSet", _deployment(serviceName="s"),
     _deployment(serviceName="s", replicas=3), ""),
    ("a stateful set changes its service", "apps", "StatefulSet", _deployment(serviceName="s"),
     _deployment(serviceName="t"), ""),
    ("a stateful set reports", "apps", "StatefulSet", _deployment(serviceName="s"),
     {**_deployment(serviceName="s"), "status": {"replicas": 2, "readyReplicas": 1, "currentReplicas": 2}}, "status"),
    ("a stateful set reports nonsense", "apps", "StatefulSet", _deployment(serviceName="s"),
     {**_deployment(serviceName="s"), "status": {"replicas": 1, "readyReplicas": 2, "availableReplicas": 3,
                                                 "currentReplicas": -1}}, "status"),
    ("a config map changes", "", "ConfigMap", {"data": {"a": "1"}}, {"data": {"a": "2"}}, ""),
    ("an immutable config map changes", "", "ConfigMap", {"data": {"a": "1"}, "immutable": True},
     {"data": {"a": "2"}, "binaryData": {"b": "AA=="}}, ""),
    ("a secret changes its type", "", "Secret", {"type": "a"}, {"type": "b"}, ""),
    ("a secret says no type", "", "Secret", {"type": "a", "data": {"a": "AA=="}}, {"stringData": {"b": "x"}}, ""),
    ("an immutable secret changes", "", "Secret", {"immutable": True}, {"immutable": True, "stringData": {"b": "x"}},
     ""),
    ("a namespace changes its finalizers", "", "Namespace", {}, {"spec": {"finalizers": []}, "status": {"phase": "X"}},
     ""),
    ("a namespace changes its status", "", "Namespace", {}, {"status": {"phase": "Terminating"}}, "status"),
    ("a namespace is finalized badly", "", "Namespace", {}, {"spec": {"finalizers": ["mine"]}}, "finalize"),
    ("a role binding changes its role", RBAC, "RoleBinding", {"roleRef": _ROLE}, {"roleRef": {**_ROLE, "name": "edit"}},
     ""),
    ("a lease is renewed", "coordination.k8s.io", "Lease", {"spec": {"holderIdentity": "a"}},
     {"spec": {"holderIdentity": "b"}}, ""),
    ("a new event changes", "events.k8s.io", "Event", _EVENT,
     {**_EVENT, "note": "bye", "reason": "Other", "series": {"count": 1}}, ""),
    ("an event of the core group changes", "", "Event", {"involvedObject": _INVOLVED}, {"involvedObject": _INVOLVED,
     "count": 2}, ""),
    ("a deployment changes its selector", "apps", "Deployment", _deployment(),
     _deployment(selector={"matchLabels": {"app": "b"}}, template={**TEMPLATE, "metadata": {"labels": {"app": "b"}}}),
     ""),
    ("a deployment changes", "apps", "Deployment", _deployment(),
     {**_deployment(replicas=2), "status": {"replicas": 3}, "metadata": {"annotations": {"a": "b"}}}, ""),
    ("a deployment reports", "apps", "Deployment", _deployment(),
     {**_deployment(replicas=2), "status": {"replicas": 1, "readyReplicas": 1, "availableReplicas": 1,
      "conditions": [{"type": "Available", "status": "True"}]}}, "status"),
    ("a deployment reports nonsense", "apps", "Deployment", _deployment(),
     {**_deployment(), "status": {"replicas": 1, "readyReplicas": 2, "availableReplicas": 3, "updatedReplicas": -1}},
     "status"),
    ("a replica set changes its selector", "apps", "ReplicaSet", _deployment(),
     _deployment(selector={"matchLabels": {"app": "b"}}, template={**TEMPLATE, "metadata": {"labels": {"app": "b"}}}),
     ""),
    ("a revision changes its data", "apps", "ControllerRevision", {"data": {"a": 1}}, {"data": {"a": 2}}, ""),
    ("an autoscaler reports", "autoscaling", "HorizontalPodAutoscaler", {"spec": _HPA},
     {"spec": _HPA, "status": {"currentReplicas": -1}}, "status"),
    ("an old autoscaler reports", "autoscaling/v1", "HorizontalPodAutoscaler", {"spec": _HPA},
     {"spec": {}, "status": {"currentReplicas": 2, "desiredReplicas": 3, "currentCPUUtilizationPercentage": 40,
                             "lastScaleTime": "2026-01-02T03:04:05Z"}}, "status"),
    ("an old autoscaler reports by annotations", "autoscaling/v1", "HorizontalPodAutoscaler", {"spec": _HPA},
     {"metadata": _annotated(metrics=_OTHER_METRICS, current_metrics=_OTHER_MEASURES, conditions=[_CONDITION]),
      "spec": {}, "status": {"currentReplicas": 2, "desiredReplicas": 3}}, "status"),
    ("an old autoscaler changes", "autoscaling/v1", "HorizontalPodAutoscaler",
     {"metadata": _annotated(metrics=_OTHER_METRICS), "spec": _HPA},
     {"metadata": _annotated(current_metrics=_OTHER_MEASURES), "spec": {**_HPA, "targetCPUUtilizationPercentage": 9}}, ""),
    ("a budget changes", "policy", "PodDisruptionBudget", {}, {"spec": {"minAvailable": 1}}, ""),
    ("a service changes its address", "", "Service", {"spec": {"ports": [{"port": 80}]}},
     {"spec": {"ports": [{"port": 80}], "clusterIP": "None"}}, ""),
    ("a service says no address", "", "Service", {"spec": {"ports": [{"port": 80}]}},
     {"spec": {"ports": [{"port": 81}]}}, ""),
    ("a service becomes an external name", "", "Service", {"spec": {"ports": [{"port": 80}]}},
     {"spec": {"type": "ExternalName", "externalName": "example.com", "ports": [{"port": 80}]}}, ""),
    ("a service becomes a node port and back", "", "Service", {"spec": {"type": "NodePort", "ports": [{"port": 80}]}},
     {"spec": {"ports": [{"port": 80}]}}, ""),
    ("a pod changes its image", "", "Pod", {"spec": TEMPLATE["spec"]},
     {"spec": {"containers": [{"name": "c", "image": "other"}]}}, ""),
    ("a pod gets a container", "", "Pod", {"spec": TEMPLATE["spec"]},
     {"spec": {"containers": [{"name": "c", "image": "nginx"}, {"name": "d", "image": "nginx"}]}}, ""),
    ("a pod runs", "", "Pod", {"spec": TEMPLATE["spec"]},
     {"spec": TEMPLATE["spec"], "status": {"phase": "Running", "podIP": "10.0.0.1", "podIPs": [{"ip": "10.0.0.1"}],
      "conditions": [{"type": "Ready", "status": "True"}], "containerStatuses": [
          {"name": "c", "ready": True, "restartCount": 0, "image": "i", "imageID": "", "state": {"running": {}}}]}},
     "status"),
    ("a pod fails", "", "Pod", {"spec": TEMPLATE["spec"]},
     {"spec": TEMPLATE["spec"], "status": {"phase": "Failed", "reason": "Evicted", "message": "m"}}, "status"),
    ("a load balancer gets its address", "", "Service", {"spec": {"type": "LoadBalancer", "ports": [{"port": 80}]}},
     {"spec": {"type": "LoadBalancer", "ports": [{"port": 80}]},
      "status": {"loadBalancer": {"ingress": [{"ip": "192.0.2.1"}, {"hostname": "lb.example.com"}]}}}, "status"),
    ("an autoscaler measures", "autoscaling", "HorizontalPodAutoscaler", {"spec": {**_HPA, "metrics": [_METRIC]}},
     {"spec": _HPA, "status": {"currentReplicas": 2, "desiredReplicas": 3, "currentMetrics": [
         {"type": "Resource", "resource": {"name": "memory", "current": {"averageValue": "100Mi"}}}]}}, "status"),
    ("a replica set reports", "apps", "ReplicaSet", _deployment(),
     {**_deployment(), "status": {"replicas": 1, "readyReplicas": 1, "fullyLabeledReplicas": 1}}, "status"),
    ("a budget reports", "policy", "PodDisruptionBudget", {},
     {"status": {"disruptionsAllowed": 1, "currentHealthy": 2, "desiredHealthy": 1, "expectedPods": 2}}, "status"),
    ("an event gets a series", "", "Event", {"involvedObject": _INVOLVED, "message": " m "},
     {"involvedObject": _INVOLVED, "message": " m ", "series": {"count": 3,
      "lastObservedTime": "2026-01-02T03:04:06.000000Z"}}, ""),
    ("a definition changes its group", "apiextensions.k8s.io", "CustomResourceDefinition", _crd(),
     _crd(group="example.org"), ""),
    ("a definition gets a version", "apiextensions.k8s.io", "CustomResourceDefinition", _crd(),
     _crd({"storage": False}, {"name": "v2"}), ""),
    ("a definition loses its stored version", "apiextensions.k8s.io", "CustomResourceDefinition", _crd(),
     _crd({"name": "v2"}), ""),
    ("a webhook changes", ADMISSION, "ValidatingWebhookConfiguration", _hook(), _hook(timeoutSeconds=5), ""),
)  # fmt: skip
