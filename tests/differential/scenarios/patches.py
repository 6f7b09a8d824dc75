"""JSON Patch, merge patch and strategic merge patch, on built-in kinds and on widgets."""

from typing import Any

from ..exchange import Request
from ..kinds import CONFIGMAPS, DEPLOYMENTS, SECRETS, WIDGETS, configmap, deployment, secret, widget
from ..verbs import JSON_PATCH, MERGE, STRATEGIC, get, json_patch, merge, patch, post, strategic

A = f"{CONFIGMAPS}/a"
D = f"{DEPLOYMENTS}/a"
W = f"{WIDGETS}/a"
_MAP = post(CONFIGMAPS, configmap(data={"k": "v", "l": "w"}, metadata={"labels": {"x": "1"}}))
_WIDGET = post(
    WIDGETS,
    widget(
        spec={
            "tags": ["a", "b"],
            "steps": ["one", "two"],
            "entries": [{"name": "e", "port": 1}],
            "settings": {"k": "v"},
        }
    ),
)

_OPERATIONS: dict[str, list[Any]] = {
    "add": [{"op": "add", "path": "/data/n", "value": "x"}],
    "add over what is there": [{"op": "add", "path": "/data/k", "value": "x"}],
    "add below what is not there": [{"op": "add", "path": "/nothing/k", "value": "x"}],
    "add the whole": [{"op": "add", "path": "/data", "value": {"only": "x"}}],
    "add at the root": [{"op": "add", "path": "", "value": {}}],
    "replace": [{"op": "replace", "path": "/data/k", "value": "x"}],
    "replace what is not there": [{"op": "replace", "path": "/data/n", "value": "x"}],
    "remove": [{"op": "remove", "path": "/data/k"}],
    "remove what is not there": [{"op": "remove", "path": "/data/n"}],
    "move": [{"op": "move", "from": "/data/k", "path": "/data/m"}],
    "move from nowhere": [{"op": "move", "from": "/data/n", "path": "/data/m"}],
    "copy": [{"op": "copy", "from": "/data/k", "path": "/data/m"}],
    "test that holds": [{"op": "test", "path": "/data/k", "value": "v"}, {"op": "remove", "path": "/data/k"}],
    "test that fails": [{"op": "test", "path": "/data/k", "value": "other"}],
    "test of what is not there": [{"op": "test", "path": "/data/n", "value": "v"}],
    "test for null": [{"op": "test", "path": "/data/n", "value": None}],
    "an operation that is not known": [{"op": "eat", "path": "/data/k"}],
    "an operation without path": [{"op": "remove"}],
    "an operation without value": [{"op": "add", "path": "/data/n"}],
    "escapes": [
        {"op": "add", "path": "/metadata/annotations", "value": {}},
        {"op": "add", "path": "/metadata/annotations/a~1b", "value": "x"},
    ],
    "a wrong type": [{"op": "add", "path": "/data/k", "value": 5}],
    "the name": [{"op": "replace", "path": "/metadata/name", "value": "b"}],
    "the namespace": [{"op": "replace", "path": "/metadata/namespace", "value": "b"}],
    "the kind": [{"op": "replace", "path": "/kind", "value": "Secret"}],
    "the apiVersion": [{"op": "replace", "path": "/apiVersion", "value": "v2"}],
    "the uid": [{"op": "replace", "path": "/metadata/uid", "value": "x"}],
    "a resourceVersion that is current": [
        {"op": "replace", "path": "/metadata/resourceVersion", "value": "$rv:0"},
        {"op": "remove", "path": "/data/k"},
    ],
    "a resourceVersion that is old": [{"op": "replace", "path": "/metadata/resourceVersion", "value": "1"}],
    "nothing": [],
    "a path without slash": [{"op": "add", "path": "data", "value": {}}],
    "a bad label": [{"op": "add", "path": "/metadata/labels/y", "value": "not ok"}],
}
_LISTS: dict[str, list[Any]] = {
    "append": [{"op": "add", "path": "/spec/tags/-", "value": "c"}],
    "insert": [{"op": "add", "path": "/spec/tags/0", "value": "c"}],
    "insert past the end": [{"op": "add", "path": "/spec/tags/9", "value": "c"}],
    "insert at -1": [{"op": "add", "path": "/spec/tags/-1", "value": "c"}],
    "remove an item": [{"op": "remove", "path": "/spec/tags/0"}],
    "remove past the end": [{"op": "remove", "path": "/spec/tags/9"}],
    "replace an item": [{"op": "replace", "path": "/spec/entries/0/port", "value": 2}],
    "an index that is no number": [{"op": "replace", "path": "/spec/tags/x", "value": "c"}],
    "a duplicate in a set": [{"op": "add", "path": "/spec/tags/-", "value": "a"}],
    "what the schema refuses": [{"op": "add", "path": "/spec/replicas", "value": 11}],
    "what the schema does not know": [{"op": "add", "path": "/spec/nothing", "value": 1}],
    "the spec away": [{"op": "remove", "path": "/spec"}],
    "status at the main door": [{"op": "add", "path": "/status", "value": {"phase": "Running"}}],
}
_MERGES: dict[str, Any] = {
    "add and change": {"data": {"k": "x", "n": "y"}},
    "remove": {"data": {"k": None}},
    "remove what is not there": {"data": {"n": None}},
    "remove all": {"data": None},
    "remove labels": {"metadata": {"labels": None}},
    "nothing": {},
    "a list": [],
    "a number": 5,
    "null": None,
    "not JSON": "{",
    "a wrong type": {"data": {"k": 1}},
    "a wrong type for a map": {"data": "x"},
    "another name": {"metadata": {"name": "b"}},
    "another namespace": {"metadata": {"namespace": "b"}},
    "another kind": {"kind": "Secret"},
    "another apiVersion": {"apiVersion": "v2"},
    "the name away": {"metadata": {"name": None}},
    "a resourceVersion that is current": {"metadata": {"resourceVersion": "$rv:0"}, "data": {"k": "x"}},
    "a resourceVersion that is old": {"metadata": {"resourceVersion": "1"}, "data": {"k": "x"}},
    "another uid": {"metadata": {"uid": "x"}},
    "managedFields away": {"metadata": {"managedFields": [{}]}},
    "managedFields to nothing": {"metadata": {"managedFields": []}},
    "a finalizer": {"metadata": {"finalizers": ["example.com/x"]}},
    "a deletionTimestamp": {"metadata": {"deletionTimestamp": "2001-01-01T00:00:00Z"}},
}
_DEPLOYMENT_PATCHES: dict[str, Any] = {
    "merges containers by name": {"spec": {"template": {"spec": {"containers": [{"name": "main", "image": "app:2"}]}}}},
    "adds a container": {"spec": {"template": {"spec": {"containers": [{"name": "side", "image": "side:1"}]}}}},
    "deletes a container": {
        "spec": {
            "template": {"spec": {"containers": [{"name": "main", "$patch": "delete"}, {"name": "b", "image": "b"}]}}
        }
    },
    "replaces containers": {
        "spec": {"template": {"spec": {"containers": [{"$patch": "replace"}, {"name": "b", "image": "b"}]}}}
    },
    "orders containers": {
        "spec": {
            "template": {
                "spec": {
                    "$setElementOrder/containers": [{"name": "side"}, {"name": "main"}],
                    "containers": [{"name": "side", "image": "s"}],
                }
            }
        }
    },
    "replaces a map": {
        "spec": {"template": {"metadata": {"labels": {"$patch": "replace", "app": "a", "only": "this"}}}}
    },
    "merges env and ports": {
        "spec": {
            "template": {
                "spec": {
                    "containers": [
                        {
                            "name": "main",
                            "env": [{"name": "A", "value": "1"}],
                            "ports": [{"containerPort": 80}, {"containerPort": 81, "name": "x"}],
                        }
                    ]
                }
            }
        }
    },
    "deletes from a list of values": {"metadata": {"$deleteFromPrimitiveList/finalizers": ["example.com/x"]}},
    "retains keys": {"spec": {"strategy": {"$retainKeys": ["type"], "type": "Recreate"}}},
    "has a merge item without its key": {"spec": {"template": {"spec": {"containers": [{"image": "x"}]}}}},
    "has a directive that is not known": {"spec": {"$patch": "eat"}},
    "nulls a field": {"spec": {"replicas": None}},
    "removes the selector": {"spec": {"selector": None}},
}


def _body(body: Any) -> Any:
    return "null" if body is None else body


SCENARIOS: dict[str, list[Request]] = {
    **{f"JSON patch: {name}": [_MAP, json_patch(A, *operations), get(A)] for name, operations in _OPERATIONS.items()},
    **{
        f"JSON patch of a widget: {name}": [_WIDGET, json_patch(W, *operations), get(W)]
        for name, operations in _LISTS.items()
    },
    **{
        f"JSON patch of a widget: {name}": [_WIDGET, json_patch(W, *_OPERATIONS[name])]
        for name in (
            "test that fails",
            "the name",
            "the kind",
            "the apiVersion",
            "a resourceVersion that is old",
            "nothing",
            "the uid",
        )
    },
    "JSON patch that is no list": [
        _MAP,
        patch(A, {"op": "remove"}, JSON_PATCH),
        patch(A, "x", JSON_PATCH),
        patch(A, "[5]", JSON_PATCH),
    ],
    "JSON patch with 10,001 operations": [
        _MAP,
        json_patch(A, *([{"op": "test", "path": "/data/k", "value": "v"}] * 10_001)),
    ],
    **{f"merge patch: {name}": [_MAP, patch(A, _body(body), MERGE), get(A)] for name, body in _MERGES.items()},
    **{
        f"strategic merge patch: {name}": [_MAP, patch(A, _body(body), STRATEGIC), get(A)]
        for name, body in _MERGES.items()
    },
    **{
        f"merge patch of a widget: {name}": [_WIDGET, patch(W, _body(body), MERGE), get(W)]
        for name, body in (
            *(
                (name, _MERGES[name])
                for name in (
                    "nothing",
                    "a list",
                    "null",
                    "not JSON",
                    "another name",
                    "another kind",
                    "another apiVersion",
                    "managedFields away",
                )
            ),
            ("spec away", {"spec": None}),
            ("spec to a list", {"spec": []}),
            ("a list replaced", {"spec": {"tags": ["z"]}}),
            ("a default removed", {"spec": {"size": None, "replicas": None}}),
            ("a value that the schema refuses", {"spec": {"size": "huge", "replicas": -1}}),
            ("a field that the schema does not know", {"spec": {"nothing": 1}}),
            ("an entry without its key", {"spec": {"entries": [{"port": 5}]}}),
            ("a map value removed", {"spec": {"settings": {"k": None, "n": "x"}}}),
            ("status at the main door", {"status": {"phase": "Running"}}),
        )
    },
    "strategic merge patch of a widget": [_WIDGET, strategic(W, {"spec": {"size": "large"}})],
    **{
        f"strategic merge patch of a deployment {name}": [post(DEPLOYMENTS, deployment()), strategic(D, body), get(D)]
        for name, body in _DEPLOYMENT_PATCHES.items()
    },
    "merge patch of a deployment replaces lists": [
        post(DEPLOYMENTS, deployment()),
        merge(D, _DEPLOYMENT_PATCHES["adds a container"]),
    ],
    "patch of what is not there": [merge(A, {}), strategic(A, {}), json_patch(A), merge(W, {})],
    "patch dry": [_MAP, merge(f"{A}?dryRun=All", {"data": {"k": "x"}}), get(A)],
    "patch with force": [
        _MAP,
        merge(f"{A}?force=true", {"data": {"k": "x"}}),
        merge(f"{A}?force=odd", {"data": {"k": "y"}}),
    ],
    "patch by another manager": [_MAP, merge(f"{A}?fieldManager=two", {"data": {"k": "x"}}), get(A)],
    "patch of the status of a widget": [
        _WIDGET,
        merge(
            f"{W}/status",
            {"spec": {"size": "large"}, "status": {"phase": "Running"}, "metadata": {"labels": {"a": "b"}}},
        ),
        merge(f"{W}/status", {"status": {"phase": "Odd"}}),
        json_patch(
            f"{W}/status", {"op": "add", "path": "/status/conditions", "value": [{"type": "Ready", "status": "True"}]}
        ),
        get(W),
    ],
    "patch of the scale of a widget": [
        _WIDGET,
        merge(f"{W}/scale", {"spec": {"replicas": 5}}),
        merge(f"{W}/scale", {"spec": {"replicas": 50}}),
        json_patch(f"{W}/scale", {"op": "replace", "path": "/spec/replicas", "value": 2}),
        strategic(f"{W}/scale", {"spec": {"replicas": 3}}),
        get(W),
    ],
    "patch of a secret's stringData": [
        post(SECRETS, secret(data={"k": "dg=="})),
        merge(f"{SECRETS}/a", {"stringData": {"k": "new"}}),
    ],
    "patch the collection": [merge(CONFIGMAPS, {})],
}
