"""RBAC: rules by table, the index against a naive evaluator, and the words of a denial."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trimtab.server.auth.identity import User
from trimtab.server.auth.rbac import Attributes, Authorizer, Decision, denial
from trimtab.server.auth.rules import Rule

ALICE = User("alice", groups=("devs", "system:authenticated"))


def role(name: str, *rules: dict[str, Any], namespace: str = "") -> dict[str, Any]:
    metadata = {"name": name, "namespace": namespace} if namespace else {"name": name}
    return {"metadata": metadata, "rules": list(rules)}


def binding(name: str, kind: str, role_name: str, *subjects: dict[str, str], namespace: str = "") -> dict[str, Any]:
    metadata = {"name": name, "namespace": namespace} if namespace else {"name": name}
    return {"metadata": metadata, "roleRef": {"kind": kind, "name": role_name}, "subjects": list(subjects)}


def user(name: str) -> dict[str, str]:
    return {"kind": "User", "name": name}


PODS = {"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list"]}


@pytest.mark.parametrize(
    ("rule", "question", "allowed"),
    [
        (PODS, {"verb": "list", "resource": "pods"}, True),
        (PODS, {"verb": "watch", "resource": "pods"}, False),
        (PODS, {"verb": "get", "resource": "pods", "subresource": "log"}, False),
        (PODS, {"verb": "get", "resource": "pods", "group": "apps"}, False),
        (PODS, {"verb": "get", "path": "/pods"}, False),
        ({**PODS, "resources": ["*"]}, {"verb": "get", "resource": "pods", "subresource": "log"}, True),
        ({**PODS, "resources": ["pods/log"]}, {"verb": "get", "resource": "pods", "subresource": "log"}, True),
        ({**PODS, "resources": ["pods/log"]}, {"verb": "get", "resource": "pods"}, False),
        ({**PODS, "resources": ["*/log"]}, {"verb": "get", "resource": "pods", "subresource": "log"}, True),
        ({**PODS, "resources": ["*/log"]}, {"verb": "get", "resource": "pods", "subresource": "x-log"}, False),
        ({**PODS, "resources": ["pods/*"]}, {"verb": "get", "resource": "pods", "subresource": "log"}, False),
        ({**PODS, "resourceNames": ["a"]}, {"verb": "get", "resource": "pods", "name": "a"}, True),
        ({**PODS, "resourceNames": ["a"]}, {"verb": "get", "resource": "pods", "name": "b"}, False),
        ({**PODS, "resourceNames": ["a"]}, {"verb": "list", "resource": "pods"}, False),
        ({**PODS, "apiGroups": ["*"], "verbs": ["*"]}, {"verb": "x", "group": "y", "resource": "pods"}, True),
        ({"nonResourceURLs": ["/healthz"], "verbs": ["get"]}, {"verb": "get", "path": "/healthz"}, True),
        ({"nonResourceURLs": ["/healthz"], "verbs": ["get"]}, {"verb": "get", "path": "/healthz/x"}, False),
        ({"nonResourceURLs": ["/healthz/*"], "verbs": ["get"]}, {"verb": "get", "path": "/healthz/x"}, True),
        ({"nonResourceURLs": ["*"], "verbs": ["*"]}, {"verb": "put", "path": "/any"}, True),
        ({"nonResourceURLs": ["*"], "verbs": ["*"]}, {"verb": "get", "resource": "pods"}, False),
        ({"apiGroups": None, "resources": None, "verbs": ["*"]}, {"verb": "get", "resource": "pods"}, False),
    ],
)
def test_a_rule_allows_what_it_says(rule: dict[str, Any], question: dict[str, str], allowed: bool) -> None:
    authorizer = Authorizer()
    authorizer.upsert("clusterroles", role("r", rule))
    authorizer.upsert("clusterrolebindings", binding("b", "ClusterRole", "r", user("alice")))
    assert authorizer.authorize(Attributes(ALICE, **question)).allowed is allowed


@pytest.mark.parametrize(
    ("subject", "who", "reason"),
    [
        (user("alice"), ALICE, 'User "alice"'),
        ({"kind": "Group", "name": "devs"}, ALICE, 'Group "devs"'),
        (
            {"kind": "ServiceAccount", "name": "robot"},
            User("system:serviceaccount:ns:robot"),
            'ServiceAccount "robot/ns"',
        ),
        (
            {"kind": "ServiceAccount", "name": "robot", "namespace": "far"},
            User("system:serviceaccount:far:robot"),
            'ServiceAccount "robot/far"',
        ),
    ],
)
def test_a_subject_is_granted_the_role_in_the_namespace_only(subject: dict[str, str], who: User, reason: str) -> None:
    authorizer = Authorizer()
    authorizer.upsert("roles.rbac.authorization.k8s.io", role("r", PODS, namespace="ns"))
    authorizer.upsert("rolebindings", binding("b", "Role", "r", subject, namespace="ns"))
    inside = authorizer.authorize(Attributes(who, "get", resource="pods", namespace="ns", name="x"))
    assert inside == Decision(True, f'RBAC: allowed by RoleBinding "b/ns" of Role "r" to {reason}')
    assert not authorizer.authorize(Attributes(who, "get", resource="pods", namespace="other")).allowed
    assert not authorizer.authorize(Attributes(who, "list", resource="pods")).allowed


def test_a_cluster_role_binding_never_means_a_namespaced_role() -> None:
    authorizer = Authorizer()
    authorizer.upsert("clusterroles", role("r", PODS))
    authorizer.upsert("clusterrolebindings", binding("b", "Role", "r", user("alice")))
    assert not authorizer.authorize(Attributes(ALICE, "get", resource="pods")).allowed


def test_masters_may_do_all_without_any_role() -> None:
    root = User("root", groups=("system:masters",))
    assert Authorizer().authorize(Attributes(root, "delete", resource="nodes")).allowed


@pytest.mark.parametrize("removed", [("clusterroles", "", "r"), ("clusterrolebindings", "", "b")])
def test_what_is_removed_no_longer_grants(removed: tuple[str, str, str]) -> None:
    authorizer = Authorizer()
    authorizer.upsert("clusterroles", role("r", PODS))
    authorizer.upsert("clusterrolebindings", binding("b", "ClusterRole", "r", user("alice")))
    question = Attributes(ALICE, "get", resource="pods", namespace="ns", name="x")
    assert authorizer.authorize(question).allowed
    authorizer.remove(*removed)
    assert not authorizer.authorize(question).allowed


def test_a_list_replaces_what_was_known_of_its_resource_only() -> None:
    authorizer = Authorizer()
    authorizer.upsert("clusterroles", role("old", PODS))
    authorizer.upsert("roles", role("kept", PODS, namespace="ns"))
    authorizer.upsert("rolebindings", binding("b", "Role", "kept", user("alice"), namespace="ns"))
    authorizer.upsert("clusterrolebindings", binding("b", "ClusterRole", "old", user("alice")))
    authorizer.replace("clusterroles", [role("new", PODS)])
    assert not authorizer.authorize(Attributes(ALICE, "get", resource="pods")).allowed
    assert authorizer.authorize(Attributes(ALICE, "get", resource="pods", namespace="ns")).allowed
    authorizer.replace("rolebindings", [])
    assert not authorizer.authorize(Attributes(ALICE, "get", resource="pods", namespace="ns")).allowed


def test_a_changed_binding_no_longer_grants_to_its_old_subject() -> None:
    authorizer = Authorizer()
    authorizer.upsert("clusterroles", role("r", PODS))
    authorizer.upsert("clusterrolebindings", binding("b", "ClusterRole", "r", user("alice")))
    authorizer.upsert("clusterrolebindings", binding("b", "ClusterRole", "r", user("bob")))
    assert not authorizer.authorize(Attributes(ALICE, "get", resource="pods")).allowed


def test_a_missing_role_is_the_reason_of_the_denial() -> None:
    authorizer = Authorizer()
    authorizer.upsert("clusterrolebindings", binding("b", "ClusterRole", "gone", user("alice")))
    decision = authorizer.authorize(Attributes(ALICE, "get", resource="pods"))
    assert decision == Decision(False, 'RBAC: clusterrole.rbac.authorization.k8s.io "gone" not found')


@pytest.mark.parametrize(
    ("question", "message"),
    [
        (
            {"verb": "list", "resource": "pods", "namespace": "default"},
            'pods is forbidden: User "alice" cannot list resource "pods" in API group "" in the namespace "default"',
        ),
        (
            {"verb": "get", "group": "apps", "resource": "deployments", "subresource": "scale", "name": "web"},
            (
                'deployments.apps "web" is forbidden: User "alice" cannot get resource "deployments/scale" '
                'in API group "apps" at the cluster scope'
            ),
        ),
        ({"verb": "get", "path": "/metrics<"}, 'forbidden: User "alice" cannot get path "/metrics&lt;"'),
    ],
)
def test_a_denial_says_who_may_not_do_what(question: dict[str, str], message: str) -> None:
    error = denial(Attributes(ALICE, **question))
    assert (error.code, error.reason, error.message) == (403, "Forbidden", message)


WORDS = st.sampled_from(["*", "a", "b"])
SOME = st.lists(WORDS, max_size=2)
RULES = st.fixed_dictionaries(
    {
        "verbs": SOME,
        "apiGroups": SOME,
        "resources": st.lists(st.sampled_from(["*", "a", "b", "a/s", "*/s"]), max_size=2),
        "resourceNames": st.lists(st.sampled_from(["a", "b"]), max_size=1),
        "nonResourceURLs": st.lists(st.sampled_from(["*", "/a", "/a*"]), max_size=1),
    }
)
SUBJECTS = st.sampled_from([user("alice"), user("bob"), {"kind": "Group", "name": "devs"}])
NAMESPACES = st.sampled_from(["", "n1", "n2"])
QUESTIONS = st.one_of(
    st.builds(
        Attributes,
        st.just(ALICE),
        verb=st.sampled_from(["a", "b"]),
        group=st.sampled_from(["a", "b"]),
        resource=st.sampled_from(["a", "b"]),
        subresource=st.sampled_from(["", "s", "t"]),
        namespace=NAMESPACES,
        name=st.sampled_from(["", "a", "b"]),
    ),
    st.builds(Attributes, st.just(ALICE), verb=st.sampled_from(["a", "b"]), path=st.sampled_from(["/a", "/ab", "/b"])),
)


def naive(roles: list[dict[str, Any]], bindings: list[dict[str, Any]], asked: Attributes) -> bool:
    """RBAC by its definition: some binding that applies names a role with a rule that matches."""

    def matches(rule: dict[str, Any]) -> bool:
        if not {"*", asked.verb} & set(rule["verbs"]):
            return False
        if asked.path:
            return any(
                url == asked.path or (url.endswith("*") and asked.path.startswith(url[:-1]))
                for url in rule["nonResourceURLs"]
            )
        wanted = {"*", f"{asked.resource}/{asked.subresource}" if asked.subresource else asked.resource}
        if asked.subresource:
            wanted.add(f"*/{asked.subresource}")
        return bool(
            {"*", asked.group} & set(rule["apiGroups"])
            and wanted & set(rule["resources"])
            and (not rule["resourceNames"] or asked.name in rule["resourceNames"])
        )

    for bound in bindings:
        namespace = bound["metadata"].get("namespace", "")
        if namespace not in ("", asked.namespace):
            continue
        if not any(s["name"] in ("alice", "devs") for s in bound["subjects"]):
            continue
        home = namespace if bound["roleRef"]["kind"] == "Role" else ""
        for document in roles:
            metadata = document["metadata"]
            if (metadata.get("namespace", ""), metadata["name"]) == (home, bound["roleRef"]["name"]):
                if bound["roleRef"]["kind"] == "Role" and not namespace:
                    continue
                if any(matches(rule) for rule in document["rules"]):
                    return True
    return False


@settings(max_examples=150, deadline=None)
@given(
    st.lists(st.tuples(NAMESPACES, st.lists(RULES, max_size=2)), max_size=3),
    st.lists(
        st.tuples(
            NAMESPACES, st.sampled_from(["Role", "ClusterRole"]), st.integers(0, 2), st.lists(SUBJECTS, max_size=2)
        ),
        max_size=4,
    ),
    st.lists(QUESTIONS, min_size=1, max_size=6),
)
def test_the_index_answers_as_the_definition_does(
    roles: list[Any], bindings: list[Any], questions: list[Attributes]
) -> None:
    authorizer = Authorizer()
    role_documents = [role(f"r{i}", *rules, namespace=ns) for i, (ns, rules) in enumerate(roles)]
    binding_documents = [
        binding(f"b{i}", kind, f"r{number}", *subjects, namespace=ns)
        for i, (ns, kind, number, subjects) in enumerate(bindings)
    ]
    for document in role_documents:
        authorizer.upsert("roles" if "namespace" in document["metadata"] else "clusterroles", document)
    for document in binding_documents:
        authorizer.upsert("rolebindings" if "namespace" in document["metadata"] else "clusterrolebindings", document)
    for question in questions + questions:
        assert authorizer.authorize(question).allowed == naive(role_documents, binding_documents, question)


def test_rules_for_a_user_are_those_of_the_cluster_and_the_namespace() -> None:
    authorizer = Authorizer()
    authorizer.upsert("clusterroles", role("r", PODS))
    authorizer.upsert("roles", role("n", {**PODS, "verbs": ["delete"]}, namespace="ns"))
    authorizer.upsert("clusterrolebindings", binding("b", "ClusterRole", "r", user("alice")))
    authorizer.upsert("rolebindings", binding("b", "Role", "n", user("alice"), namespace="ns"))
    everywhere = Rule(("get", "list"), ("",), ("pods",))
    assert authorizer.rules_for(ALICE, "other") == ([everywhere], [])
    assert authorizer.rules_for(ALICE, "ns") == ([everywhere, Rule(("delete",), ("",), ("pods",))], [])
