"""Custom resources as objects: versions, generations, names, scale, and writes without a resourceVersion."""

from ..exchange import Request
from ..kinds import GAUGES, GROUP, OLD_WIDGETS, WIDGETS, gauge, widget
from ..verbs import METADATA, TABLE, delete, get, merge, post, put

W = f"{WIDGETS}/a"
G = f"{GAUGES}/g-$id"
SCALE = {"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "a", "namespace": "$ns"}}

SCENARIOS: dict[str, list[Request]] = {
    "update without a resourceVersion": [post(WIDGETS, widget()), put(W, widget(spec={"color": "red"}))],
    "update with an old resourceVersion": [
        post(WIDGETS, widget()),
        merge(W, {"spec": {"color": "red"}}),
        put(W, widget(spec={"color": "blue"}, metadata={"resourceVersion": "$rv:0"})),
    ],
    "update of what is not there": [put(W, widget()), put(W, widget(metadata={"resourceVersion": "1"}))],
    "update of the status of what is not there": [put(f"{W}/status", widget(metadata={"resourceVersion": "1"}))],
    "generations": [
        post(WIDGETS, widget()),
        merge(W, {"spec": {"color": "red"}}),
        merge(W, {"metadata": {"labels": {"a": "b"}}}),
        merge(f"{W}/status", {"status": {"phase": "Running"}}),
        merge(W, {"metadata": {"finalizers": ["example.com/x"]}}),
        delete(W),
        merge(W, {"metadata": {"finalizers": None}}),
        get(W),
    ],
    "a generation that a client sets": [
        post(WIDGETS, widget(metadata={"generation": 9})),
        merge(W, {"metadata": {"generation": 50}}),
    ],
    "generations without a status door": [
        post(GAUGES, gauge(spec={"a": 1})),
        merge(G, {"status": {"b": 2}}),
        merge(G, {"metadata": {"labels": {"a": "b"}}}),
        get(f"{G}/status"),
        delete(G),
    ],
    "the deprecated version warns": [
        post(OLD_WIDGETS, widget() | {"apiVersion": f"{GROUP}/v1beta1"}),
        get(f"{OLD_WIDGETS}/a"),
        get(OLD_WIDGETS),
        get(W),
        put(
            f"{OLD_WIDGETS}/a",
            widget(spec={"color": "red"}, metadata={"resourceVersion": "$rv:0"}) | {"apiVersion": f"{GROUP}/v1beta1"},
        ),
        get(OLD_WIDGETS, accept=TABLE),
        get(f"{OLD_WIDGETS}/a", accept=METADATA),
        delete(f"{OLD_WIDGETS}/a"),
    ],
    "one version's body at the other's door": [
        post(OLD_WIDGETS, widget()),
        post(WIDGETS, widget() | {"apiVersion": f"{GROUP}/v1beta1"}),
    ],
    "a version that is not there": [
        post(WIDGETS.replace("/v1/", "/v3/"), widget()),
        post(WIDGETS, widget() | {"apiVersion": f"{GROUP}/v3"}),
    ],
    "names": [
        post(WIDGETS, widget("Bad_Name")),
        post(WIDGETS, widget("a" * 254)),
        post(WIDGETS, widget("a.b-c")),
        post(WIDGETS, widget(None)),
        post(WIDGETS, widget(None, metadata={"generateName": "w-"})),
        post(WIDGETS, widget("x", metadata={"labels": {"-": "x"}})),
        post(WIDGETS, widget("x", metadata={"annotations": {"-": "x"}})),
        post(WIDGETS, widget("x", metadata={"finalizers": ["x"]})),
        post(WIDGETS, widget("x", metadata={"namespace": "other"})),
        post(WIDGETS, widget("x", metadata={"resourceVersion": "1"})),
    ],
    "one twice": [post(WIDGETS, widget()), post(WIDGETS, widget())],
    "in a namespace that is not there": [post(WIDGETS.replace("$ns", "no-$id"), widget())],
    "a cluster-wide kind": [
        post(GAUGES, gauge(spec={"x": [1]})),
        get(G),
        get(f"{GAUGES}?fieldSelector=metadata.name=g-$id"),
        delete(G),
        get(G),
    ],
    "a cluster-wide kind in a namespace": [
        post(f"/apis/{GROUP}/v1/namespaces/$ns/gauges", gauge()),
        get(f"/apis/{GROUP}/v1/namespaces/$ns/gauges"),
        post(GAUGES, gauge(metadata={"namespace": "$ns"})),
        delete(G),
    ],
    "a namespaced kind without a namespace": [
        post(f"/apis/{GROUP}/v1/widgets", widget()),
        get(f"/apis/{GROUP}/v1/widgets/a"),
    ],
    "a kind without schema keeps everything": [
        post(GAUGES, gauge(a=1, spec=None, list=[None, {"b": {}}])),
        get(G),
        merge(G, {"a": None}),
        delete(G),
    ],
    "strategic merge patch is not for custom kinds": [
        post(WIDGETS, widget()),
        Request(
            method="PATCH", path=W, body="{}", headers=(("Content-Type", "application/strategic-merge-patch+json"),)
        ),
    ],
    "scale": [
        post(WIDGETS, widget(spec={"replicas": 3})),
        get(f"{W}/scale"),
        merge(f"{W}/status", {"status": {"replicas": 2, "selector": "app=a"}}),
        get(f"{W}/scale"),
        put(f"{W}/scale", SCALE | {"spec": {"replicas": 5}}),
        put(f"{W}/scale", SCALE | {"spec": {"replicas": -1}}),
        put(f"{W}/scale", SCALE | {"spec": {"replicas": 11}}),
        put(f"{W}/scale", SCALE | {"spec": {}}),
        put(f"{W}/scale", widget()),
        put(
            f"{W}/scale",
            SCALE | {"spec": {"replicas": 1}, "metadata": {"name": "a", "namespace": "$ns", "resourceVersion": "1"}},
        ),
        get(W),
        delete(f"{W}/scale"),
        post(f"{W}/scale", SCALE),
    ],
    "scale of what is not there": [get(f"{W}/scale"), merge(f"{W}/scale", {})],
    "scale of a kind without it": [post(GAUGES, gauge()), get(f"{G}/scale"), delete(G)],
    "dry": [
        post(f"{WIDGETS}?dryRun=All", widget()),
        get(W),
        post(WIDGETS, widget()),
        delete(f"{W}?dryRun=All"),
        get(W),
    ],
    "managers of create, update, patch and status": [
        post(
            f"{WIDGETS}?fieldManager=creator",
            widget(spec={"color": "red", "tags": ["a", "b"], "entries": [{"name": "e", "port": 1}]}),
        ),
        merge(f"{W}?fieldManager=patcher", {"spec": {"tags": ["b", "c"], "settings": {"k": "v"}}}),
        put(
            f"{W}?fieldManager=updater",
            widget(
                spec={"color": "blue", "entries": [{"name": "e", "port": 2}, {"name": "f"}]},
                metadata={"resourceVersion": "$rv:1"},
            ),
        ),
        merge(f"{W}/status?fieldManager=controller", {"status": {"conditions": [{"type": "Ready", "status": "True"}]}}),
        merge(f"{W}/scale?fieldManager=scaler", {"spec": {"replicas": 7}}),
        get(W),
    ],
    "a manager from the agent's name": [
        Request(
            method="POST",
            path=WIDGETS,
            body=widget(spec={"color": "red"}),
            headers=(("User-Agent", "tool/v1 (x; y) z"),),
        ),
        Request(
            method="PATCH",
            path=W,
            body={"spec": {"on": True}},
            headers=(("User-Agent", ""), ("Content-Type", "application/merge-patch+json")),
        ),
    ],
}
