"""Our RBAC beside the real one: the same documents, the same questions, the same words."""

from __future__ import annotations

import json
import re
import subprocess
from typing import Any

import pytest

from trimtab.model.errors import StatusError
from trimtab.server.auth.bootstrap import cluster_role_bindings, cluster_roles
from trimtab.server.auth.escalation import check_escalation
from trimtab.server.auth.identity import User
from trimtab.server.auth.rbac import Attributes, Authorizer, denial
from trimtab.testing.cluster import RealCluster

pytestmark = pytest.mark.cluster

GROUP = "rbac.authorization.k8s.io"
BOB = User("bob", groups=("g1", "system:authenticated"))
HELD = {
    "apiVersion": f"{GROUP}/v1",
    "kind": "ClusterRole",
    "metadata": {"name": "trimtab-held"},
    "rules": [
        {
            "apiGroups": [GROUP],
            "resources": ["roles", "clusterroles", "rolebindings", "clusterrolebindings"],
            "verbs": ["create", "get", "update"],
        },
        {"apiGroups": [""], "resources": ["pods", "*/log"], "verbs": ["get"]},
        {"apiGroups": [""], "resources": ["secrets"], "verbs": ["*"], "resourceNames": ["one"]},
        {"nonResourceURLs": ["/a/*"], "verbs": ["get"]},
    ],
}
BOUND = {
    "apiVersion": f"{GROUP}/v1",
    "kind": "ClusterRoleBinding",
    "metadata": {"name": "trimtab-held"},
    "roleRef": {"apiGroup": GROUP, "kind": "ClusterRole", "name": "trimtab-held"},
    "subjects": [{"kind": "User", "apiGroup": GROUP, "name": "bob"}],
}


def kubectl(cluster: RealCluster, *arguments: str, document: Any = None) -> subprocess.CompletedProcess[str]:
    command = ["kubectl", "--kubeconfig", str(cluster.kubeconfig), *arguments]
    text = json.dumps(document) if document is not None else None
    return subprocess.run(command, input=text, capture_output=True, text=True, check=False, timeout=30)


@pytest.fixture(scope="module")
def cluster(real_cluster: RealCluster) -> RealCluster:
    for document in (HELD, BOUND):
        created = kubectl(real_cluster, "create", "-f", "-", document=document)
        assert created.returncode == 0, created.stderr
    kubectl(real_cluster, "wait", "--for=jsonpath={.rules}", "clusterrole/view", "--timeout=20s")
    return real_cluster


@pytest.fixture(scope="module")
def authorizer() -> Authorizer:
    authorizer = Authorizer()
    authorizer.replace("clusterroles", [*cluster_roles(), HELD])
    authorizer.replace("clusterrolebindings", [*cluster_role_bindings(), BOUND])
    return authorizer


def ours(check: Any) -> str:
    """What we would answer, as kubectl prints it."""
    try:
        check()
    except StatusError as error:
        return f"Error from server ({error.reason}): {error.message}\n"
    return ""


def test_default_roles_and_bindings_are_the_real_ones_but_for_the_extinct_group(cluster: RealCluster) -> None:
    listed = kubectl(cluster, "get", "clusterroles,clusterrolebindings", "-o", "json")
    real = {(item["kind"], item["metadata"]["name"]): item for item in json.loads(listed.stdout)["items"]}
    for document in (*cluster_roles(), *cluster_role_bindings()):
        expected = real[document["kind"], document["metadata"]["name"]]
        assert document["metadata"]["labels"] == expected["metadata"]["labels"]
        for field in ("aggregationRule", "roleRef", "subjects"):
            assert document.get(field) == expected.get(field)
        assert document.get("rules", []) == [rule for rule in expected.get("rules") or () if not _is_added(rule)]


_ADDED = re.compile(r'APIGroups:\["(extensions|(?![^"]*\.k8s\.io")[^"]*\.[^"]*)"\]')
"""The same, as a refusal names it."""


def _is_added(rule: dict[str, Any]) -> bool:
    """Of the extinct group, or gathered from roles that came with kinds of ours: other tests leave them in the cluster."""
    groups = rule.get("apiGroups") or ()
    return groups == ["extensions"] or any("." in group and not group.endswith(".k8s.io") for group in groups)


RULES: list[list[dict[str, Any]]] = [
    [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}],
    [{"apiGroups": [""], "resources": ["pods", "secrets"], "verbs": ["get", "list"]}],
    [{"apiGroups": [""], "resources": ["pods/log", "nodes/log", "pods/exec"], "verbs": ["get"]}],
    [{"apiGroups": [""], "resources": ["secrets"], "verbs": ["get", "delete"], "resourceNames": ["one", "two"]}],
    [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}, {"nonResourceURLs": ["*"], "verbs": ["*"]}],
    [{"nonResourceURLs": ["/a/b", "/b"], "verbs": ["get", "put"]}],
    [{"apiGroups": ["", "apps"], "resources": ["*"], "verbs": ["get"]}],
]


@pytest.mark.parametrize("rules", RULES, ids=range(len(RULES)))
def test_escalation_is_refused_in_the_same_words(
    cluster: RealCluster, authorizer: Authorizer, rules: list[dict[str, Any]]
) -> None:
    role = {"apiVersion": f"{GROUP}/v1", "kind": "ClusterRole", "metadata": {"name": "trimtab-x"}, "rules": rules}
    path = f"/apis/{GROUP}/v1/clusterroles?dryRun=All"
    real = kubectl(cluster, "create", "--as=bob", "--as-group=g1", "--raw", path, "-f", "-", document=role)
    assert ours(lambda: check_escalation(authorizer, BOB, "clusterroles", role)) == real.stderr


@pytest.mark.parametrize("name", ["trimtab-held", "view", "system:discovery", "cluster-admin", "absent"])
def test_bindings_are_refused_in_the_same_words(cluster: RealCluster, authorizer: Authorizer, name: str) -> None:
    binding = {**BOUND, "kind": "RoleBinding", "metadata": {"name": "trimtab-y"}}
    binding["roleRef"] = {"apiGroup": GROUP, "kind": "ClusterRole", "name": name}
    path = f"/apis/{GROUP}/v1/namespaces/default/rolebindings?dryRun=All"
    real = kubectl(cluster, "create", "--as=bob", "--as-group=g1", "--raw", path, "-f", "-", document=binding)
    said = ours(lambda: check_escalation(authorizer, BOB, "rolebindings", binding, namespace="default"))
    if name == "view":  # the real role also has rules for the extinct group, and for kinds of ours
        assert said.splitlines() == [line for line in real.stderr.splitlines() if not _ADDED.search(line)]
    else:
        assert said == real.stderr


@pytest.mark.parametrize(
    ("path", "attributes"),
    [
        ("/api/v1/pods", Attributes(BOB, "list", resource="pods")),
        ("/api/v1/namespaces/default/pods/x", Attributes(BOB, "get", resource="pods", namespace="default", name="x")),
        (
            "/apis/apps/v1/namespaces/default/deployments/web/scale",
            Attributes(BOB, "get", "apps", "v1", "deployments", "scale", "default", "web"),
        ),
        ("/api/v1/nodes/n", Attributes(BOB, "get", resource="nodes", name="n")),
        ("/metrics", Attributes(BOB, "get", path="/metrics")),
        ("/apis", Attributes(BOB, "get", path="/apis")),
    ],
)
def test_requests_are_denied_in_the_same_words(
    cluster: RealCluster, authorizer: Authorizer, path: str, attributes: Attributes
) -> None:
    real = kubectl(cluster, "get", "--as=bob", "--as-group=g1", "--raw", path).stderr
    decision = authorizer.authorize(attributes)
    if decision.allowed:
        assert "Forbidden" not in real
    else:
        error = denial(attributes, decision.reason)
        assert real == f"Error from server (Forbidden): {error.message}\n"
