"""Server-side apply: who owns what, who is in conflict with whom, and what is removed when it is applied no more."""

from typing import Any

from ..exchange import Request
from ..kinds import (
    CONFIGMAPS,
    DEPLOYMENTS,
    GAUGES,
    GROUP,
    LEASES,
    SECRETS,
    WIDGETS,
    configmap,
    deployment,
    gauge,
    lease,
    secret,
    widget,
)
from ..verbs import APPLY, apply, get, merge, patch, post, put

A = f"{CONFIGMAPS}/a"
D = f"{DEPLOYMENTS}/a"
W = f"{WIDGETS}/a"


def applied(*steps: tuple[str, Any]) -> list[Request]:
    """Applies of specs to one widget, one after another; a manager with ! forces."""
    requests = [
        apply(W, widget(spec=spec), manager=manager.rstrip("!"), force=manager.endswith("!")) for manager, spec in steps
    ]
    return [*requests, get(W)]


SCENARIOS: dict[str, list[Request]] = {
    "creates": [apply(A, configmap(data={"k": "v"})), get(A)],
    "creates without a name in the body": [apply(A, configmap(None, data={"k": "v"}))],
    "again changes nothing": [apply(A, configmap(data={"k": "v"})), apply(A, configmap(data={"k": "v"})), get(A)],
    "without a manager": [patch(A, configmap(), APPLY)],
    "of another name": [apply(A, configmap("b"))],
    "of another namespace": [apply(A, configmap(metadata={"namespace": "b"}))],
    "of another kind": [apply(A, secret())],
    "of another version": [apply(A, {"apiVersion": "v2", "kind": "ConfigMap"})],
    "without kind": [apply(A, {"apiVersion": "v1"})],
    "of nothing": [apply(A, ""), apply(A, "{}"), apply(A, "null"), apply(A, "[]"), apply(A, "x: [")],
    "of YAML": [apply(A, "apiVersion: v1\nkind: ConfigMap\ndata:\n  k: v\n")],
    "of managedFields": [apply(A, configmap(metadata={"managedFields": [{"manager": "x"}]}))],
    "with a resourceVersion": [
        apply(A, configmap(metadata={"resourceVersion": "1"})),
        apply(A, configmap()),
        apply(A, configmap(metadata={"resourceVersion": "1"}, data={"k": "v"})),
        apply(A, configmap(metadata={"resourceVersion": "$rv:1"}, data={"k": "v"})),
    ],
    "with a uid": [
        apply(A, configmap(metadata={"uid": "x"})),
        apply(A, configmap()),
        apply(A, configmap(metadata={"uid": "$uid:1"})),
    ],
    "of what nobody takes": [
        apply(A, configmap(data={"k": 5})),
        apply(A, configmap(data="x")),
        apply(A, configmap(odd=1)),
    ],
    "dry": [
        apply(f"{A}?dryRun=All", configmap(data={"k": "v"})),
        get(A),
        apply(A, configmap()),
        apply(f"{A}?dryRun=All", configmap(data={"k": "v"})),
    ],
    "by two managers of different keys": [
        apply(A, configmap(data={"k": "v"})),
        apply(A, configmap(data={"l": "w"}), manager="two"),
        get(A),
    ],
    "by two managers of the same value": [
        apply(A, configmap(data={"k": "v"})),
        apply(A, configmap(data={"k": "v"}), manager="two"),
        get(A),
    ],
    "in conflict": [apply(A, configmap(data={"k": "v"})), apply(A, configmap(data={"k": "w"}), manager="two"), get(A)],
    "in conflict, forced": [
        apply(A, configmap(data={"k": "v", "l": "v"})),
        apply(A, configmap(data={"k": "w"}), manager="two", force=True),
        get(A),
        apply(A, configmap(data={"k": "x"})),
    ],
    "in conflict with two managers over two fields": [
        apply(A, configmap(data={"k": "v", "l": "v"})),
        apply(A, configmap(data={"k": "v"}), manager="two"),
        apply(A, configmap(data={"k": "x", "l": "x"}), manager="three"),
    ],
    "in conflict with an update": [
        post(f"{CONFIGMAPS}?fieldManager=creator", configmap(data={"k": "v"})),
        apply(A, configmap(data={"k": "w"})),
        apply(A, configmap(data={"k": "v"})),
        apply(A, configmap(data={"k": "w"}), force=True),
        get(A),
    ],
    "removes what it applies no more": [
        apply(A, configmap(data={"k": "v", "l": "w"})),
        apply(A, configmap(data={"k": "v"})),
        apply(A, configmap()),
        get(A),
    ],
    "leaves what another owns too": [
        apply(A, configmap(data={"k": "v", "l": "w"})),
        apply(A, configmap(data={"l": "w"}), manager="two"),
        apply(A, configmap(data={"k": "v"})),
        get(A),
    ],
    "an update takes over": [
        apply(A, configmap(data={"k": "v"})),
        put(f"{A}?fieldManager=two", configmap(data={"k": "w"})),
        get(A),
        apply(A, configmap(data={"k": "v"})),
    ],
    "a merge patch takes over": [
        apply(A, configmap(data={"k": "v"})),
        merge(f"{A}?fieldManager=two", {"data": {"k": "w"}}),
        get(A),
    ],
    "a patch removes an owned field": [
        apply(A, configmap(data={"k": "v"})),
        merge(f"{A}?fieldManager=two", {"data": {"k": None}}),
        get(A),
    ],
    "labels, annotations, finalizers and owners": [
        post(CONFIGMAPS, configmap("o")),
        post(CONFIGMAPS, configmap("p")),
        apply(
            A,
            configmap(
                metadata={
                    "labels": {"a": "1"},
                    "annotations": {"b": "2"},
                    "finalizers": ["example.com/x"],
                    "ownerReferences": [{"apiVersion": "v1", "kind": "ConfigMap", "name": "o", "uid": "$uid:0"}],
                }
            ),
        ),
        apply(
            A,
            configmap(
                metadata={
                    "labels": {"c": "3"},
                    "finalizers": ["example.com/y"],
                    "ownerReferences": [{"apiVersion": "v1", "kind": "ConfigMap", "name": "p", "uid": "$uid:1"}],
                }
            ),
            manager="two",
        ),
        apply(A, configmap()),
        merge(A, {"metadata": {"finalizers": None}}),
    ],
    "a secret's stringData": [
        apply(f"{SECRETS}/a", secret(stringData={"k": "v"})),
        apply(f"{SECRETS}/a", secret(stringData={"k": "v"})),
    ],
    "a lease": [
        apply(f"{LEASES}/a", lease(spec={"holderIdentity": "x"})),
        apply(f"{LEASES}/a", lease(spec={"holderIdentity": "y"}), manager="two"),
    ],
    "a deployment": [
        apply(D, deployment(replicas=2)),
        apply(D, deployment(image="app:2"), manager="two"),
        apply(D, deployment(image="app:2"), manager="two", force=True),
        get(D),
    ],
    "a deployment without its image": [
        apply(D, deployment()),
        apply(
            D,
            {
                "apiVersion": "apps/v1",
                "kind": "Deployment",
                "spec": {
                    "template": {"spec": {"containers": [{"name": "main", "env": [{"name": "A", "value": "1"}]}]}}
                },
            },
            manager="two",
        ),
        get(D),
    ],
    "a deployment's containers twice": [
        apply(
            D,
            deployment(
                template={
                    "metadata": {"labels": {"app": "a"}},
                    "spec": {"containers": [{"name": "x", "image": "1"}, {"name": "x", "image": "2"}]},
                }
            ),
        )
    ],
    "scale takes replicas over": [
        apply(D, deployment(replicas=2)),
        merge(f"{D}/scale?fieldManager=scaler", {"spec": {"replicas": 3}}),
        get(D),
        apply(D, deployment(replicas=2)),
    ],
    "a widget": applied(("one", {"size": "small"})),
    "a widget: defaults have no owner": applied(("one", {}), ("two", {"size": "medium"}), ("three", {"size": "large"})),
    "a widget: a default comes back": applied(("one", {"size": "small"}), ("one", {})),
    "a widget: conflict": applied(
        ("one", {"size": "small", "color": "red"}), ("two", {"size": "large", "color": "red"})
    ),
    "a widget: force": applied(("one", {"size": "small"}), ("two!", {"size": "large"}), ("one", {"color": "red"})),
    "a widget: sets": applied(
        ("one", {"tags": ["a", "b"]}), ("two", {"tags": ["b", "c"]}), ("one", {"tags": ["a"]}), ("one", {})
    ),
    "a widget: a set with one item twice": applied(("one", {"tags": ["a", "a"]})),
    "a widget: keyed lists": applied(
        ("one", {"entries": [{"name": "a", "port": 1}, {"name": "b", "port": 2}]}),
        ("two", {"entries": [{"name": "c", "port": 3}, {"name": "a", "note": "n"}]}),
        ("two", {"entries": [{"name": "a", "port": 9}]}),
        ("two!", {"entries": [{"name": "a", "port": 9}]}),
        ("one", {"entries": [{"name": "b", "port": 2}]}),
    ),
    "a widget: keys with defaults": applied(
        ("one", {"entries": [{"name": "a", "port": 1}, {"name": "a", "protocol": "UDP", "port": 2}]}),
        ("two", {"entries": [{"name": "a", "protocol": "TCP", "port": 3}]}),
    ),
    "a widget: a key is missing": applied(("one", {"entries": [{"port": 1}]})),
    "a widget: a key twice": applied(("one", {"entries": [{"name": "a"}, {"name": "a", "protocol": "TCP"}]})),
    "a widget: order of a keyed list": applied(
        ("one", {"entries": [{"name": "a"}, {"name": "b"}]}), ("one", {"entries": [{"name": "b"}, {"name": "a"}]})
    ),
    "a widget: atomic lists": applied(
        ("one", {"steps": ["a", "b"]}), ("two", {"steps": ["a"]}), ("two!", {"steps": ["a"]}), ("one", {})
    ),
    "a widget: plain lists are atomic": applied(
        ("one", {"plain": [{"a": 1}]}), ("two", {"plain": [{"a": 1, "b": "x"}]})
    ),
    "a widget: atomic maps": applied(
        ("one", {"reference": {"name": "x"}}), ("two", {"reference": {"name": "x", "kind": "Other"}})
    ),
    "a widget: maps": applied(
        ("one", {"settings": {"a": "1"}}), ("two", {"settings": {"b": "2"}}), ("one", {"settings": {}}), ("one", {})
    ),
    "a widget: unknown fields that are preserved": applied(
        ("one", {"extra": {"a": {"b": 1}}, "anything": [{"x": 1}]}),
        ("two", {"extra": {"a": {"c": 2}}}),
        ("one", {"extra": {"known": 5}}),
    ),
    "a widget: unknown fields that are not": applied(("one", {"nothing": 1})),
    "a widget: null": applied(("one", {"note": None}), ("one", {"size": None})),
    "a widget: int or string": applied(
        ("one", {"port": 80, "limits": {"cpu": "1"}}), ("two", {"port": "http", "limits": {"cpu": 1}})
    ),
    "a widget: an embedded resource": applied(
        (
            "one",
            {"template": {"apiVersion": "v1", "kind": "Pod", "metadata": {"labels": {"a": "b"}}, "spec": {"x": 1}}},
        ),
        ("two", {"template": {"apiVersion": "v1", "kind": "Pod", "spec": {"y": 2}}}),
    ),
    "a widget: empty map and list": applied(("one", {"settings": {}, "tags": [], "tuning": {}})),
    "a widget: what the schema refuses": applied(("one", {"size": "huge", "replicas": 99})),
    "a widget: wrong types": applied(
        ("one", {"size": 5}), ("one", {"tags": "x"}), ("one", {"entries": {}}), ("one", {"settings": []})
    ),
    "a widget's status": [
        apply(W, widget(spec={"size": "small"})),
        apply(
            f"{W}/status",
            widget(status={"phase": "Running", "conditions": [{"type": "A", "status": "True"}]}),
            manager="controller",
        ),
        apply(f"{W}/status", widget(status={"conditions": [{"type": "B", "status": "True"}]}), manager="other"),
        apply(f"{W}/status", widget(status={"phase": "Pending"}), manager="other"),
        apply(W, widget(spec={}, status={"phase": "Pending"})),
        get(W),
    ],
    "a widget's status that is not there": [apply(f"{W}/status", widget(status={"phase": "Running"}))],
    "a widget's scale": [
        apply(W, widget(spec={"replicas": 2})),
        apply(
            f"{W}/scale", {"apiVersion": "autoscaling/v1", "kind": "Scale", "spec": {"replicas": 3}}, manager="scaler"
        ),
        apply(
            f"{W}/scale",
            {"apiVersion": "autoscaling/v1", "kind": "Scale", "spec": {"replicas": 3}},
            manager="scaler",
            force=True,
        ),
        get(W),
        apply(W, widget(spec={"replicas": 2})),
    ],
    "a widget in its other version": [
        apply(W, widget(spec={"size": "small", "color": "red"})),
        apply(W.replace("/v1/", "/v1beta1/"), widget(spec={"color": "red"}) | {"apiVersion": f"{GROUP}/v1beta1"}),
        get(W),
    ],
    "a widget after an update": [
        post(f"{WIDGETS}?fieldManager=kubectl-create", widget(spec={"color": "red", "tags": ["a"]})),
        apply(W, widget(spec={"tags": ["a", "b"]})),
        put(
            f"{W}?fieldManager=editor",
            widget(spec={"tags": ["b"], "color": "blue"}, metadata={"resourceVersion": "$rv:1"}),
        ),
        get(W),
    ],
    "a widget made by kubectl apply of old": [
        post(
            f"{WIDGETS}?fieldManager=kubectl-client-side-apply",
            widget(
                spec={"color": "red"},
                metadata={"annotations": {"kubectl.kubernetes.io/last-applied-configuration": "{}"}},
            ),
        ),
        apply(W, widget(spec={"color": "blue"}), manager="kubectl"),
        get(W),
    ],
    "a gauge, which has no schema": [
        apply(f"{GAUGES}/g-$id", gauge(spec={"a": {"b": [1, 2]}})),
        apply(f"{GAUGES}/g-$id", gauge(spec={"a": {"c": 1}}), manager="two"),
        apply(f"{GAUGES}/g-$id", gauge(spec={"a": {"b": [1]}}), manager="two"),
        apply(f"{GAUGES}/g-$id", gauge()),
    ],
    "the collection": [apply(CONFIGMAPS, configmap())],
}
