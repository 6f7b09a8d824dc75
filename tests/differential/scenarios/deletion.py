"""Deletion: options, preconditions, finalizers, collections, and what follows an owner."""

from ..exchange import Request
from ..kinds import CONFIGMAPS, DEPLOYMENTS, SECRETS, WIDGETS, configmap, deployment, secret, widget
from ..verbs import TABLE, delete, get, merge, post, put

A = f"{CONFIGMAPS}/a"
W = f"{WIDGETS}/a"
_MAP = post(CONFIGMAPS, configmap())
_HELD = post(CONFIGMAPS, configmap(metadata={"finalizers": ["example.com/x"]}))
_THREE = [post(SECRETS, secret(f"s-{index}", metadata={"labels": {"n": str(index)}})) for index in range(3)]


def owned(name: str, **rest: bool) -> Request:
    owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "a", "uid": "$uid:0"} | rest
    return post(CONFIGMAPS, configmap(name, metadata={"ownerReferences": [owner]}))


SCENARIOS: dict[str, list[Request]] = {
    "of a config map": [_MAP, delete(A), get(A)],
    "of a widget": [post(WIDGETS, widget()), delete(W), get(W)],
    "of a deployment": [post(DEPLOYMENTS, deployment()), delete(f"{DEPLOYMENTS}/a?propagationPolicy=Background")],
    "of what is not there": [delete(A), delete(W)],
    "with options in the body": [
        _MAP,
        delete(A, {"apiVersion": "v1", "kind": "DeleteOptions", "gracePeriodSeconds": 0}),
    ],
    "with options without a kind": [_MAP, delete(A, {"propagationPolicy": "Background"})],
    "with options of meta.k8s.io": [_MAP, delete(A, {"apiVersion": "meta.k8s.io/v1", "kind": "DeleteOptions"})],
    "with options of another kind": [_MAP, delete(A, {"apiVersion": "v1", "kind": "ConfigMap"})],
    "with options that are no JSON": [_MAP, delete(A, "x")],
    "with options that are empty": [_MAP, delete(A, {})],
    "with unknown options": [_MAP, delete(A, {"nothing": 1})],
    "with options of wrong types": [_MAP, delete(A, {"gracePeriodSeconds": "x"})],
    "with a policy that is not known": [
        _MAP,
        delete(A, {"propagationPolicy": "Odd"}),
        delete(f"{A}?propagationPolicy=Odd"),
    ],
    "with a policy and orphanDependents": [_MAP, delete(A, {"propagationPolicy": "Orphan", "orphanDependents": True})],
    "with a negative grace": [_MAP, delete(f"{A}?gracePeriodSeconds=-1")],
    "with a grace that is no number": [_MAP, delete(f"{A}?gracePeriodSeconds=x")],
    "dry": [_MAP, delete(f"{A}?dryRun=All"), delete(A, {"dryRun": ["All"]}), delete(A, {"dryRun": ["Odd"]}), get(A)],
    "with the right uid": [_MAP, delete(A, {"preconditions": {"uid": "$uid:0"}})],
    "with a wrong uid": [_MAP, delete(A, {"preconditions": {"uid": "other"}})],
    "with the right resourceVersion": [_MAP, delete(A, {"preconditions": {"resourceVersion": "$rv:0"}})],
    "with a wrong resourceVersion": [_MAP, delete(A, {"preconditions": {"resourceVersion": "1"}})],
    "of a widget with a wrong uid": [post(WIDGETS, widget()), delete(W, {"preconditions": {"uid": "other"}})],
    "as a table": [_MAP, Request(method="DELETE", path=A, headers=(("Accept", TABLE),))],
    "waits for finalizers": [_HELD, delete(A), delete(A), get(A), merge(A, {"metadata": {"finalizers": None}}), get(A)],
    "waits: nothing is added": [
        _HELD,
        delete(A),
        merge(A, {"metadata": {"finalizers": ["example.com/x", "example.com/y"]}}),
        merge(A, {"metadata": {"finalizers": ["example.com/y"]}}),
        merge(A, {"data": {"k": "v"}}),
        put(A, configmap(metadata={"finalizers": []})),
        get(A),
    ],
    "waits: the time cannot be taken back": [
        _HELD,
        delete(A),
        merge(A, {"metadata": {"deletionTimestamp": None}}),
        merge(A, {"metadata": {"finalizers": []}}),
    ],
    "in the foreground without dependents": [
        _MAP,
        delete(f"{A}?propagationPolicy=Foreground"),
        get(A, until="NotFound"),
    ],
    "in the foreground with a dependent": [
        _MAP,
        owned("child", blockOwnerDeletion=True),
        delete(f"{A}?propagationPolicy=Foreground"),
        get(A, until="NotFound"),
        get(f"{CONFIGMAPS}/child", until="NotFound"),
    ],
    "in the background": [
        _MAP,
        owned("child"),
        delete(f"{A}?propagationPolicy=Background"),
        get(f"{CONFIGMAPS}/child", until="NotFound"),
    ],
    "that orphans": [
        _MAP,
        owned("child"),
        delete(f"{A}?propagationPolicy=Orphan"),
        get(A, until="NotFound"),
        get(f"{CONFIGMAPS}/child"),
    ],
    "by orphanDependents": [
        _MAP,
        owned("child"),
        delete(A, {"orphanDependents": True}),
        get(A, until="NotFound"),
        get(f"{CONFIGMAPS}/child"),
    ],
    "of a collection": [*_THREE, delete(SECRETS), get(SECRETS)],
    "of a collection by label": [*_THREE, delete(f"{SECRETS}?labelSelector=n!=1"), get(SECRETS)],
    "of a collection by name": [*_THREE, delete(f"{SECRETS}?fieldSelector=metadata.name=s-1"), get(SECRETS)],
    "of a collection dry": [*_THREE, delete(f"{SECRETS}?dryRun=All"), get(SECRETS)],
    "of a collection that is empty": [delete(SECRETS), delete(WIDGETS)],
    "of a collection with a limit": [*_THREE, delete(f"{SECRETS}?limit=1"), get(SECRETS)],
    "of a collection with a bad selector": [*_THREE, delete(f"{SECRETS}?labelSelector==")],
    "of a collection of widgets": [
        *(post(WIDGETS, widget(name, {"size": size})) for name, size in (("a", "small"), ("b", "large"))),
        delete(f"{WIDGETS}?fieldSelector=spec.size=small"),
        get(WIDGETS),
        delete(WIDGETS),
        get(WIDGETS),
    ],
    "of a collection with finalizers": [
        _HELD,
        post(CONFIGMAPS, configmap("b")),
        delete(CONFIGMAPS),
        get(CONFIGMAPS),
        merge(A, {"metadata": {"finalizers": None}}),
    ],
    "of a collection over all namespaces": [delete("/api/v1/secrets?labelSelector=no=$id")],
    "of a namespace": [
        post("/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "n-$id"}}),
        post("/api/v1/namespaces/n-$id/configmaps", configmap()),
        post("/apis/differential.trimtab.dev/v1/namespaces/n-$id/widgets", widget()),
        delete("/api/v1/namespaces/n-$id"),
        get("/api/v1/namespaces/n-$id", until="NotFound"),
        get("/api/v1/namespaces/n-$id/configmaps/a"),
        get("/apis/differential.trimtab.dev/v1/namespaces/n-$id/widgets/a"),
    ],
    "whose name is asked for meanwhile": [
        _HELD,
        delete(A),
        post(CONFIGMAPS, configmap()),
        post(f"{CONFIGMAPS}?dryRun=All", configmap()),
        merge(A, {"metadata": {"finalizers": None}}),
    ],
    "then the same name again": [_MAP, delete(A), _MAP, get(A)],
}
