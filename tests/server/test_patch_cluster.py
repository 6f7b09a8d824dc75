"""What our patches make of documents, and how they fail, against a real kube-apiserver."""

from __future__ import annotations

import contextlib
import http.client
import json
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest

from trimtab.model.errors import StatusError
from trimtab.server.builtin import tables
from trimtab.server.patch import json_patch, merge, strategic
from trimtab.testing.cluster import RealCluster
from trimtab.testing.peer import read_access

pytestmark = pytest.mark.cluster

PATH = "/apis/apps/v1/namespaces/default/deployments"
CONTAINERS = [
    {"name": "x", "image": "x", "env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}]},
    {"name": "y", "image": "y"},
]
POD = {
    "containers": CONTAINERS,
    "tolerations": [{"key": "k", "operator": "Exists"}],
    "volumes": [{"name": "v", "emptyDir": {}}],
    "nodeSelector": {"a": "b"},
}
DEPLOYMENT = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "patched", "finalizers": ["test.dev/a", "test.dev/b"], "annotations": {"n": "1"}},
    "spec": {
        "replicas": 1,
        "selector": {"matchLabels": {"a": "b"}},
        "template": {"metadata": {"labels": {"a": "b"}}, "spec": POD},
    },
}


def pod(**spec: Any) -> dict[str, Any]:
    return {"spec": {"template": {"spec": spec}}}


JSON: list[Any] = [
    {},
    [1],
    [None],
    None,
    5,
    [],
    [{"op": "add", "path": 1}],
    [{"op": 1, "path": "/a"}],
    [{"op": "test", "path": "/spec/replicas", "value": 1}],
    [{"op": "test", "path": "/spec/replicas", "value": 1.0}],
    [{"op": "test", "path": "/spec/replicas", "value": 2}],
    [{"op": "test", "path": "/spec/absent", "value": None}],
    [{"op": "test", "path": "/spec/replicas", "value": 1}] * 10_001,
    [{"op": "replace", "path": "/spec/paused", "value": True}],
    [{"op": "remove", "path": "/spec/paused"}],
    [{"op": "remove", "path": "/metadata/finalizers/-1"}],
    [{"op": "add", "path": "/metadata/finalizers/0", "value": "test.dev/c"}],
    [{"op": "add", "path": "/metadata/finalizers/-", "value": "test.dev/c"}],
    [{"op": "add", "path": "/metadata/finalizers/3", "value": "test.dev/c"}],
    [{"op": "move", "from": "/metadata/annotations/n", "path": "/metadata/annotations/m~1o"}],
    [{"op": "copy", "from": "/metadata/annotations/n", "path": "/metadata/annotations/m"}],
    [{"op": "copy", "from": "/absent/n", "path": "/metadata/annotations/m"}],
    [{"op": "frob", "path": "/metadata"}],
    [{"op": "add", "path": "x/spec/paused", "value": True}],
]
MERGE: list[Any] = [
    [],
    None,
    "x",
    {},
    {"spec": {"replicas": 2}},
    {"metadata": {"annotations": {"n": None, "m": "1"}}},
    {"metadata": {"annotations": None}},
    pod(containers=[{"name": "z", "image": "z", "env": None}]),
]
CONFIG = {"name": "c", "defaultMode": 420}
STRATEGIC: list[Any] = [
    [],
    None,
    {},
    {"metadata": {"finalizers": ["test.dev/c", "test.dev/a"]}},
    {"metadata": {"$deleteFromPrimitiveList/finalizers": ["test.dev/a"]}},
    {"metadata": {"$setElementOrder/finalizers": ["test.dev/b", "test.dev/a"]}},
    {"metadata": {"$deleteFromPrimitiveList": []}},
    {"metadata": {"annotations": {"$patch": "replace", "o": "1"}}},
    pod(containers=[{"name": "x", "image": "x2"}]),
    pod(containers=[{"name": "z", "image": "z"}]),
    pod(containers=[{"name": "x", "env": [{"name": "C", "value": "3"}, {"name": "A", "$patch": "delete"}]}]),
    pod(containers=[{"name": "x", "$patch": "delete"}]),
    pod(containers=[{"name": "z", "image": "z"}, {"$patch": "replace"}]),
    pod(containers=[{"image": "z"}]),
    pod(containers=[{"$patch": "merge"}]),
    pod(containers=[{"$patch": "frob"}]),
    pod(**{"$setElementOrder/containers": [{"name": "y"}, {"name": "x"}]}),
    pod(**{"$setElementOrder/containers": "x"}),
    pod(**{"$setElementOrder/containers": [{"name": "x"}], "containers": [{"name": "y", "image": "z"}]}),
    pod(tolerations=[{"key": "l", "operator": "Exists"}]),
    pod(volumes=[{"name": "v", "$retainKeys": ["name", "configMap"], "configMap": CONFIG}]),
    pod(volumes=[{"name": "v", "$retainKeys": ["name"], "configMap": {"name": "c"}}]),
    pod(nodeSelector={"c": "d", "a": None}),
    {"spec": {"$patch": "frob"}},
    {"$retainKeys": "a"},
    {"spec": {"strategy": {"$retainKeys": ["type"], "type": "Recreate"}}},
]


class Session:
    """Requests to the real server."""

    def __init__(self, cluster: RealCluster) -> None:
        self._connection = http.client.HTTPSConnection(
            urlsplit(cluster.url).netloc, timeout=30, context=read_access(cluster.kubeconfig).tls()
        )

    def send(self, method: str, path: str, body: Any, media: str = "application/json") -> Any:
        self._connection.request(method, path, json.dumps(body), {"Content-Type": media})
        return json.loads(self._connection.getresponse().read())

    def close(self) -> None:
        self._connection.close()


@pytest.fixture(scope="module")
def session(real_cluster: RealCluster) -> Iterator[Session]:
    with contextlib.closing(Session(real_cluster)) as session:
        session.send("POST", PATH, DEPLOYMENT)
        yield session
        session.send("PATCH", f"{PATH}/patched", {"metadata": {"finalizers": None}}, "application/merge-patch+json")
        session.send("DELETE", f"{PATH}/patched", {})


@pytest.mark.parametrize("patch", JSON, ids=lambda patch: json.dumps(patch)[:60])
def test_a_json_patch_does_what_it_does_on_the_real_server(session: Session, patch: Any) -> None:
    check(session, patch, "application/json-patch+json", lambda live: json_patch.apply(live, patch))


@pytest.mark.parametrize("patch", MERGE, ids=lambda patch: json.dumps(patch)[:60])
def test_a_merge_patch_does_what_it_does_on_the_real_server(session: Session, patch: Any) -> None:
    check(session, patch, "application/merge-patch+json", lambda live: merge.apply(live, patch))


@pytest.mark.parametrize("patch", STRATEGIC, ids=lambda patch: json.dumps(patch)[:90])
def test_a_strategic_merge_patch_does_what_it_does_on_the_real_server(session: Session, patch: Any) -> None:
    schema = tables.schema("io.k8s.api.apps.v1.Deployment")
    check(
        session,
        patch,
        "application/strategic-merge-patch+json",
        lambda live: strategic.apply(live, patch, schema.document, schema.definitions),
    )


def check(session: Session, patch: Any, media: str, ours: Any) -> None:
    """The same outcome of a dry run there and of our patch of the object as it is there."""
    live = session.send("GET", f"{PATH}/patched", None)
    theirs = session.send("PATCH", f"{PATH}/patched?dryRun=All&fieldManager=t", patch, media)
    try:
        result = ours(live)
    except StatusError as failure:
        result = failure.status()
    assert essence(result) == essence(theirs)


def essence(document: dict[str, Any]) -> Any:
    """A Status, or what a patch can change of a Deployment without what defaulting and the server add."""
    if document["kind"] == "Status":
        return document
    metadata = {name: document["metadata"].get(name) for name in ("finalizers", "annotations", "labels")}
    spec = document["spec"]
    inner = spec["template"]["spec"]
    containers = [{name: c[name] for name in ("name", "image", "env") if c.get(name)} for c in inner["containers"]]
    others = {name: inner.get(name) for name in ("tolerations", "volumes", "nodeSelector")}
    return metadata, spec["replicas"], spec.get("paused"), spec["strategy"].get("type"), containers, others
