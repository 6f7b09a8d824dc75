"""Create, read and update of built-in kinds: what is filled in, what is refused and how."""

from typing import Any

from ..exchange import Request
from ..kinds import (
    ACCOUNTS,
    CONFIGMAPS,
    DEPLOYMENTS,
    LEASES,
    ROLES,
    SECRETS,
    SERVICES,
    account,
    configmap,
    deployment,
    lease,
    role,
    secret,
)
from ..verbs import delete, get, post, put

A = f"{CONFIGMAPS}/a"


def refused(metadata: dict[str, Any]) -> list[Request]:
    return [post(CONFIGMAPS, configmap(None, metadata=metadata))]


SCENARIOS: dict[str, list[Request]] = {
    "create a config map and read it": [post(CONFIGMAPS, configmap(data={"k": "v"})), get(A)],
    "create one twice": [post(CONFIGMAPS, configmap()), post(CONFIGMAPS, configmap(data={"k": "v"}))],
    "read what is not there": [get(f"{CONFIGMAPS}/nothing")],
    "create in a namespace that is not there": [post("/api/v1/namespaces/no-such-$id/configmaps", configmap())],
    "read in a namespace that is not there": [get("/api/v1/namespaces/no-such-$id/configmaps/a")],
    "list in a namespace that is not there": [get("/api/v1/namespaces/no-such-$id/configmaps")],
    "create without namespace in the path": [post("/api/v1/configmaps", configmap())],
    "create with a name in the path": [post(A, configmap())],
    "create with another namespace in the body": [post(CONFIGMAPS, configmap(metadata={"namespace": "other"}))],
    "create with the same namespace in the body": [post(CONFIGMAPS, configmap(metadata={"namespace": "$ns"}))],
    "create with resourceVersion set": [post(CONFIGMAPS, configmap(metadata={"resourceVersion": "5"}))],
    "create with resourceVersion set, and something else wrong": [
        post(CONFIGMAPS, configmap(data={"not ok": "v"}, metadata={"resourceVersion": "5"})),
        post(CONFIGMAPS, configmap()),
        post(CONFIGMAPS, configmap(metadata={"resourceVersion": "5"})),
        post("/api/v1/namespaces/no-such-$id/configmaps", configmap(metadata={"resourceVersion": "5"})),
    ],
    "create with uid set": [post(CONFIGMAPS, configmap(metadata={"uid": "mine"}))],
    "create with fields that only the server sets": [
        post(
            CONFIGMAPS,
            configmap(
                metadata={
                    "generation": 7,
                    "creationTimestamp": "2001-01-01T00:00:00Z",
                    "deletionTimestamp": "2001-01-01T00:00:00Z",
                    "deletionGracePeriodSeconds": 30,
                    "selfLink": "/x",
                }
            ),
        )
    ],
    "create by generateName": [post(CONFIGMAPS, configmap(None, metadata={"generateName": "cm-"}))],
    "create by name and generateName": [post(CONFIGMAPS, configmap(metadata={"generateName": "cm-"}))],
    "create with a generateName that is no name": [
        post(CONFIGMAPS, configmap(None, metadata={"generateName": "Bad_"}))
    ],
    "create without any name": refused({}),
    "create with an empty name": refused({"name": ""}),
    "create with capitals in the name": refused({"name": "Bad"}),
    "create with an underscore in the name": refused({"name": "a_b"}),
    "create with a slash in the name": refused({"name": "a/b"}),
    "create with a name of 254 characters": refused({"name": "a" * 254}),
    "create with dots in the name": refused({"name": "a.b.c"}),
    "create with a name that ends in a dash": refused({"name": "a-"}),
    "create with good labels and annotations": refused(
        {"name": "a", "labels": {"app.kubernetes.io/name": "x", "empty": ""}, "annotations": {"note": "some text\n"}}
    ),
    "create with a bad label key": refused({"name": "a", "labels": {"-bad": "x"}}),
    "create with a bad label value": refused({"name": "a", "labels": {"app": "not ok!"}}),
    "create with a label value of 64 characters": refused({"name": "a", "labels": {"app": "x" * 64}}),
    "create with a label prefix that is no domain": refused({"name": "a", "labels": {"Bad_Domain/x": "y"}}),
    "create with a bad annotation key": refused({"name": "a", "annotations": {"not ok": "x"}}),
    "create with annotations over 256 KiB": refused({"name": "a", "annotations": {"big": "x" * 262145}}),
    "create with a finalizer without a domain": refused({"name": "a", "finalizers": ["mine"]}),
    "create with a good finalizer": refused({"name": "a", "finalizers": ["example.com/mine"]}),
    "create with a bad finalizer": refused({"name": "a", "finalizers": ["not ok!"]}),
    "create with foregroundDeletion and orphan finalizers": refused(
        {"name": "a", "finalizers": ["orphan", "foregroundDeletion"]}
    ),
    "create with an owner": refused(
        {"name": "a", "ownerReferences": [{"apiVersion": "v1", "kind": "ConfigMap", "name": "o", "uid": "u-1"}]}
    ),
    "create with an owner without uid": refused(
        {"name": "a", "ownerReferences": [{"apiVersion": "v1", "kind": "ConfigMap", "name": "o", "uid": ""}]}
    ),
    "create with an empty owner": refused({"name": "a", "ownerReferences": [{}]}),
    "create with two controllers": refused(
        {
            "name": "a",
            "ownerReferences": [
                {"apiVersion": "v1", "kind": "ConfigMap", "name": name, "uid": name, "controller": True}
                for name in "pq"
            ],
        }
    ),
    "create with an owner that is an Event": refused(
        {"name": "a", "ownerReferences": [{"apiVersion": "v1", "kind": "Event", "name": "o", "uid": "u"}]}
    ),
    "create with managedFields that make no sense": refused(
        {"name": "a", "managedFields": [{"manager": "x", "operation": "Eat"}]}
    ),
    "create with managedFields of another": refused(
        {
            "name": "a",
            "managedFields": [
                {
                    "manager": "x",
                    "operation": "Apply",
                    "apiVersion": "v1",
                    "time": "2020-01-01T00:00:00Z",
                    "fieldsType": "FieldsV1",
                    "fieldsV1": {"f:data": {"f:k": {}}},
                }
            ],
        }
    ),
    "create dry": [post(f"{CONFIGMAPS}?dryRun=All", configmap(data={"k": "v"})), get(A)],
    "create with a dryRun that is not known": [post(f"{CONFIGMAPS}?dryRun=Some", configmap())],
    "create with a field manager": [post(f"{CONFIGMAPS}?fieldManager=me", configmap(data={"k": "v"}))],
    "create with a field manager that is too long": [post(f"{CONFIGMAPS}?fieldManager={'m' * 129}", configmap())],
    "create with a field manager that cannot be printed": [post(f"{CONFIGMAPS}?fieldManager=a%07b", configmap())],
    "update": [
        post(CONFIGMAPS, configmap(data={"k": "v"})),
        put(A, configmap(data={"k": "w", "l": "x"})),
        get(A),
    ],
    "update with the current resourceVersion": [
        post(CONFIGMAPS, configmap()),
        put(A, configmap(data={"k": "w"}, metadata={"resourceVersion": "$rv:0"})),
    ],
    "update with an old resourceVersion": [
        post(CONFIGMAPS, configmap()),
        put(A, configmap(data={"k": "1"})),
        put(A, configmap(data={"k": "2"}, metadata={"resourceVersion": "$rv:0"})),
    ],
    "update with a resourceVersion that is no number": [
        post(CONFIGMAPS, configmap()),
        put(A, configmap(metadata={"resourceVersion": "abc"})),
    ],
    "update without change keeps the resourceVersion": [
        post(CONFIGMAPS, configmap(data={"k": "v"})),
        put(A, configmap(data={"k": "v"})),
        get(A),
    ],
    "update what is not there": [put(A, configmap())],
    "update what is not there, with a resourceVersion": [put(A, configmap(metadata={"resourceVersion": "1"}))],
    "update with another name": [post(CONFIGMAPS, configmap()), put(A, configmap("b"))],
    "update without a name": [post(CONFIGMAPS, configmap()), put(A, configmap(None))],
    "update with another namespace": [
        post(CONFIGMAPS, configmap()),
        put(A, configmap(metadata={"namespace": "other"})),
    ],
    "update with another uid": [post(CONFIGMAPS, configmap()), put(A, configmap(metadata={"uid": "other"}))],
    "update with the same uid": [post(CONFIGMAPS, configmap()), put(A, configmap(metadata={"uid": "$uid:0"}))],
    "update with another creationTimestamp": [
        post(CONFIGMAPS, configmap()),
        put(A, configmap(data={"x": "y"}, metadata={"creationTimestamp": "2001-01-01T00:00:00Z"})),
    ],
    "update dry": [post(CONFIGMAPS, configmap()), put(f"{A}?dryRun=All", configmap(data={"k": "v"})), get(A)],
    "update by two managers": [
        post(f"{CONFIGMAPS}?fieldManager=one", configmap(data={"k": "v"})),
        put(f"{A}?fieldManager=two", configmap(data={"k": "v", "l": "w"})),
        put(f"{A}?fieldManager=three", configmap(data={"k": "other"})),
        get(A),
    ],
    "update with managedFields emptied": [
        post(CONFIGMAPS, configmap(data={"k": "v"})),
        put(A, configmap(data={"k": "v"}, metadata={"managedFields": [{}]})),
        get(A),
    ],
    "update the collection": [put(CONFIGMAPS, configmap())],
    "update adds labels and annotations": [
        post(CONFIGMAPS, configmap(metadata={"labels": {"a": "1"}})),
        put(A, configmap(metadata={"labels": {"b": "2"}, "annotations": {"c": "3"}})),
    ],
    "config map with binary data": [post(CONFIGMAPS, configmap(binaryData={"b": "AAEC"}, data={"t": "x"}))],
    "config map with binary data that is not base64": [post(CONFIGMAPS, configmap(binaryData={"b": "!!"}))],
    "config map with one key twice": [post(CONFIGMAPS, configmap(binaryData={"k": "AAEC"}, data={"k": "x"}))],
    "config map with a bad key": [post(CONFIGMAPS, configmap(data={"not ok": "x"}))],
    "config map with data over a megabyte": [post(CONFIGMAPS, configmap(data={"k": "x" * (1024 * 1024 + 1)}))],
    "immutable config map": [
        post(CONFIGMAPS, configmap(data={"k": "v"}, immutable=True)),
        put(A, configmap(data={"k": "w"}, immutable=True)),
        put(A, configmap(data={"k": "v"})),
        put(A, configmap(data={"k": "v"}, immutable=True, metadata={"labels": {"x": "y"}})),
    ],
    "secret": [post(SECRETS, secret(data={"k": "dg=="}, stringData={"s": "text"})), get(f"{SECRETS}/a")],
    "secret with data that is not base64": [post(SECRETS, secret(data={"k": "***"}))],
    "secret of type basic-auth without a user": [post(SECRETS, secret(type="kubernetes.io/basic-auth"))],
    "secret of type dockerconfigjson without it": [post(SECRETS, secret(type="kubernetes.io/dockerconfigjson"))],
    "secret of type tls without keys": [post(SECRETS, secret(type="kubernetes.io/tls"))],
    "secret type cannot change": [post(SECRETS, secret()), put(f"{SECRETS}/a", secret(type="example.com/other"))],
    "service account": [post(ACCOUNTS, account()), get(f"{ACCOUNTS}/a")],
    "lease": [
        post(
            LEASES,
            lease(
                spec={"holderIdentity": "me", "leaseDurationSeconds": 15, "renewTime": "2024-01-01T00:00:00.000000Z"}
            ),
        ),
        put(f"{LEASES}/a", lease(spec={"holderIdentity": "you", "leaseTransitions": 1})),
    ],
    "lease with bad times and numbers": [
        post(LEASES, lease(spec={"leaseDurationSeconds": 0})),
        post(LEASES, lease(spec={"leaseTransitions": -1})),
        post(LEASES, lease(spec={"renewTime": "yesterday"})),
        post(LEASES, lease(spec={"holderIdentity": ""})),
    ],
    "role": [post(ROLES, role(rules=[{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get"]}]))],
    "role without verbs": [post(ROLES, role(rules=[{"apiGroups": [""], "resources": ["configmaps"]}]))],
    "role with a non-resource rule": [post(ROLES, role(rules=[{"nonResourceURLs": ["/x"], "verbs": ["get"]}]))],
    "role without rules": [post(ROLES, role())],
    "role with a name with a colon": [post(ROLES, role("system:a:b"))],
    "role binding": [
        post(
            "/apis/rbac.authorization.k8s.io/v1/namespaces/$ns/rolebindings",
            {
                "apiVersion": "rbac.authorization.k8s.io/v1",
                "kind": "RoleBinding",
                "metadata": {"name": "a"},
                "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "a"},
                "subjects": [
                    {"kind": "User", "name": "u"},
                    {"kind": "ServiceAccount", "name": "s", "namespace": "$ns"},
                ],
            },
        )
    ],
    "deployment with its defaults": [post(DEPLOYMENTS, deployment()), get(f"{DEPLOYMENTS}/a")],
    "deployment without selector": [post(DEPLOYMENTS, deployment(selector=None))],
    "deployment whose selector does not match": [post(DEPLOYMENTS, deployment(selector={"matchLabels": {"app": "b"}}))],
    "deployment with negative replicas": [post(DEPLOYMENTS, deployment(replicas=-1))],
    "deployment without containers": [
        post(DEPLOYMENTS, deployment(template={"metadata": {"labels": {"app": "a"}}, "spec": {"containers": []}}))
    ],
    "deployment counts generations": [
        post(DEPLOYMENTS, deployment()),
        put(f"{DEPLOYMENTS}/a", deployment(replicas=2)),
        put(f"{DEPLOYMENTS}/a", deployment(replicas=2) | {"metadata": {"name": "a", "labels": {"x": "y"}}}),
    ],
    "deployment's selector is immutable": [
        post(DEPLOYMENTS, deployment()),
        put(f"{DEPLOYMENTS}/a", deployment(selector={"matchLabels": {"app": "a", "more": "b"}})),
    ],
    "deployment's status by its own door": [
        post(DEPLOYMENTS, deployment()),
        put(f"{DEPLOYMENTS}/a/status", deployment(replicas=5) | {"status": {"replicas": 1, "observedGeneration": 1}}),
        put(f"{DEPLOYMENTS}/a", deployment() | {"status": {"replicas": 9}}),
        get(f"{DEPLOYMENTS}/a/status"),
    ],
    "deployment's scale": [
        post(DEPLOYMENTS, deployment()),
        get(f"{DEPLOYMENTS}/a/scale"),
        put(
            f"{DEPLOYMENTS}/a/scale",
            {
                "apiVersion": "autoscaling/v1",
                "kind": "Scale",
                "metadata": {"name": "a", "namespace": "$ns"},
                "spec": {"replicas": 4},
            },
        ),
        get(f"{DEPLOYMENTS}/a"),
    ],
    "service with its defaults": [
        post(
            SERVICES,
            {
                "apiVersion": "v1",
                "kind": "Service",
                "metadata": {"name": "a"},
                "spec": {"clusterIP": "None", "selector": {"a": "b"}, "ports": [{"port": 80}]},
            },
        )
    ],
    "status of a kind that has none": [
        post(CONFIGMAPS, configmap()),
        get(f"{A}/status"),
        put(f"{A}/status", configmap()),
    ],
    "a subresource that is not there": [post(CONFIGMAPS, configmap()), get(f"{A}/nothing")],
    "namespace": [
        post(
            "/api/v1/namespaces",
            {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "n-$id", "labels": {"x": "y"}}},
        ),
        get("/api/v1/namespaces/n-$id"),
    ],
    "namespace with a name that is no label": [
        post("/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "n.$id"}})
    ],
    "namespace that is going takes nothing new": [
        post(
            "/api/v1/namespaces",
            {
                "apiVersion": "v1",
                "kind": "Namespace",
                "metadata": {"name": "n-$id"},
                "spec": {"finalizers": ["example.com/wait", "kubernetes"]},
            },
        ),
        delete("/api/v1/namespaces/n-$id"),
        post("/api/v1/namespaces/n-$id/configmaps", configmap()),
        get("/api/v1/namespaces/n-$id", until="NamespaceContentRemoved"),
        put(
            "/api/v1/namespaces/n-$id/finalize",
            {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "n-$id"}, "spec": {}},
        ),
        get("/api/v1/namespaces/n-$id", until="NotFound"),
    ],
    "the default namespace cannot be deleted": [delete("/api/v1/namespaces/default")],
    "event": [
        post(
            "/api/v1/namespaces/$ns/events",
            {
                "apiVersion": "v1",
                "kind": "Event",
                "metadata": {"name": "e"},
                "involvedObject": {"kind": "ConfigMap", "name": "a", "namespace": "$ns"},
                "reason": "Tested",
                "message": "m",
                "type": "Normal",
            },
        ),
        get("/apis/events.k8s.io/v1/namespaces/$ns/events/e"),
        get("/api/v1/namespaces/$ns/events?fieldSelector=involvedObject.name=a,reason=Tested"),
    ],
    "who am I": [
        post(
            "/apis/authentication.k8s.io/v1/selfsubjectreviews",
            {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"},
        )
    ],
    "what may I": [
        post(
            "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
            {
                "apiVersion": "authorization.k8s.io/v1",
                "kind": "SelfSubjectAccessReview",
                "spec": {"resourceAttributes": {"verb": "get", "resource": "configmaps", "namespace": "$ns"}},
            },
        ),
        post(
            "/apis/authorization.k8s.io/v1/subjectaccessreviews",
            {
                "apiVersion": "authorization.k8s.io/v1",
                "kind": "SubjectAccessReview",
                "spec": {
                    "user": "nobody",
                    "resourceAttributes": {"verb": "get", "resource": "configmaps", "namespace": "$ns"},
                },
            },
        ),
        post(
            "/apis/authorization.k8s.io/v1/subjectaccessreviews",
            {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": {"user": "nobody"}},
        ),
    ],
}
