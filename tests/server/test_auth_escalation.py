"""Nobody grants what they do not hold. Messages are those of kube-apiserver 1.32 for the same requests."""

from __future__ import annotations

import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trimtab.model.errors import StatusError
from trimtab.server.auth.escalation import check_escalation
from trimtab.server.auth.identity import User
from trimtab.server.auth.rbac import Authorizer
from trimtab.server.auth.rules import Rule, breakdown, uncovered

BOB = User("bob", groups=("g1", "system:authenticated"))
GROUP = "rbac.authorization.k8s.io"


def role(name: str, *rules: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"metadata": {"name": name}, "rules": list(rules), **more}


def binding(role_name: str, kind: str = "ClusterRole", *users: str) -> dict[str, Any]:
    return {
        "metadata": {"name": "x"},
        "roleRef": {"apiGroup": GROUP, "kind": kind, "name": role_name},
        "subjects": [{"kind": "User", "name": user} for user in users],
    }


def holding(*rules: dict[str, Any]) -> Authorizer:
    authorizer = Authorizer()
    authorizer.upsert("clusterroles", role("held", *rules))
    authorizer.upsert("clusterrolebindings", binding("held", "ClusterRole", "bob"))
    return authorizer


PODS = {"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list"]}
ALL = [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}, {"nonResourceURLs": ["*"], "verbs": ["*"]}]


MANY = [f"w{i}" for i in range(300)]


@pytest.mark.parametrize(
    "rules",
    [
        [{"apiGroups": MANY, "resources": MANY, "verbs": MANY}],
        [{"apiGroups": [""], "resources": [f"r{i}"], "verbs": ["get"]} for i in range(3000)],
    ],
)
def test_rules_that_would_take_minutes_to_compare_are_refused_at_once(rules: list[dict[str, Any]]) -> None:
    """A few words may mean millions of rights, and nobody else is answered while they are compared."""
    held = [{"apiGroups": [""], "resources": [f"s{i}"], "verbs": ["get"]} for i in range(3000)]
    began = time.process_time()
    with pytest.raises(StatusError, match="too many to be compared") as caught:
        check_escalation(holding(*held), BOB, "roles", role("x", *rules), namespace="n")
    assert caught.value.code == 403
    assert time.process_time() - began < 5


def test_what_is_held_as_a_whole_may_be_granted_however_much_it_is() -> None:
    rule = {"apiGroups": MANY, "resources": MANY, "verbs": MANY}
    check_escalation(holding(rule), BOB, "roles", role("x", rule), namespace="n")
    check_escalation(holding(*ALL), BOB, "roles", role("x", rule), namespace="n")


def test_a_role_with_rules_that_are_not_held_is_refused_naming_them() -> None:
    new = role(
        "x",
        {"verbs": ["get", "list"], "apiGroups": ["", "apps"], "resources": ["pods", "secrets"]},
        {"verbs": ["get"], "nonResourceURLs": ["/x"]},
        {"verbs": ["get", "list"], "apiGroups": [""], "resources": ["pods"], "resourceNames": ["a", "b"]},
    )
    with pytest.raises(StatusError) as caught:
        check_escalation(holding(), BOB, "clusterroles", new)
    assert caught.value.code == 403
    assert caught.value.message == (
        'clusterroles.rbac.authorization.k8s.io "x" is forbidden: user "bob" (groups=["g1" "system:authenticated"]) is '
        "attempting to grant RBAC permissions not currently held:\n"
        '{APIGroups:[""], Resources:["pods"], ResourceNames:["a"], Verbs:["get" "list"]}\n'
        '{APIGroups:[""], Resources:["pods"], ResourceNames:["b"], Verbs:["get" "list"]}\n'
        '{APIGroups:[""], Resources:["pods"], Verbs:["get" "list"]}\n'
        '{APIGroups:[""], Resources:["secrets"], Verbs:["get" "list"]}\n'
        '{APIGroups:["apps"], Resources:["pods"], Verbs:["get" "list"]}\n'
        '{APIGroups:["apps"], Resources:["secrets"], Verbs:["get" "list"]}\n'
        '{NonResourceURLs:["/x"], Verbs:["get"]}'
    )


def test_a_binding_to_a_role_that_is_not_held_is_refused() -> None:
    authorizer = holding(PODS)
    authorizer.upsert("clusterroles", role("cluster-admin", *ALL))
    with pytest.raises(StatusError) as caught:
        check_escalation(authorizer, BOB, "rolebindings", binding("cluster-admin"), namespace="default")
    assert caught.value.message == (
        'rolebindings.rbac.authorization.k8s.io "x" is forbidden: user "bob" (groups=["g1" "system:authenticated"]) is '
        "attempting to grant RBAC permissions not currently held:\n"
        '{APIGroups:["*"], Resources:["*"], Verbs:["*"]}\n'
        '{NonResourceURLs:["*"], Verbs:["*"]}'
    )


def test_rules_that_are_held_can_be_granted() -> None:
    authorizer = holding(PODS)
    check_escalation(authorizer, BOB, "clusterroles", role("x", {**PODS, "resourceNames": ["a"]}))
    check_escalation(authorizer, BOB, "clusterrolebindings", binding("held"))


def test_rules_held_in_one_namespace_can_be_granted_there_only() -> None:
    authorizer = Authorizer()
    authorizer.upsert("roles", {"metadata": {"name": "held", "namespace": "ns"}, "rules": [PODS]})
    bound = binding("held", "Role", "bob")
    bound["metadata"]["namespace"] = "ns"
    authorizer.upsert("rolebindings", bound)
    check_escalation(authorizer, BOB, "roles", role("x", PODS), namespace="ns")
    with pytest.raises(StatusError):
        check_escalation(authorizer, BOB, "roles", role("x", PODS), namespace="other")


@pytest.mark.parametrize(
    ("verb", "resource", "document"),
    [("escalate", "clusterroles", role("x", *ALL)), ("bind", "clusterrolebindings", binding("big"))],
)
def test_the_special_verb_stands_for_the_rules(verb: str, resource: str, document: dict[str, Any]) -> None:
    authorizer = holding({"apiGroups": [GROUP], "resources": ["clusterroles"], "verbs": [verb]})
    authorizer.upsert("clusterroles", role("big", *ALL))
    check_escalation(authorizer, BOB, resource, document)


def test_bind_can_be_held_for_one_role() -> None:
    rule = {"apiGroups": [GROUP], "resources": ["clusterroles"], "verbs": ["bind"], "resourceNames": ["big"]}
    authorizer = holding(rule)
    authorizer.upsert("clusterroles", role("big", *ALL))
    authorizer.upsert("clusterroles", role("huge", *ALL))
    check_escalation(authorizer, BOB, "clusterrolebindings", binding("big"))
    with pytest.raises(StatusError):
        check_escalation(authorizer, BOB, "clusterrolebindings", binding("huge"))


def test_masters_may_grant_anything() -> None:
    check_escalation(Authorizer(), User("root", groups=("system:masters",)), "clusterroles", role("x", *ALL))


def test_an_absent_role_cannot_be_bound() -> None:
    with pytest.raises(StatusError) as caught:
        check_escalation(holding(), BOB, "clusterrolebindings", binding("nope"))
    assert (caught.value.code, caught.value.message) == (
        404,
        'clusterrolebindings.rbac.authorization.k8s.io "nope" not found',
    )


@pytest.mark.parametrize("where", ["new", "old"])
def test_an_aggregation_rule_needs_all_rights(where: str) -> None:
    aggregating = role("x", aggregationRule={"clusterRoleSelectors": [{"matchLabels": {"a": "b"}}]})
    new, old = (aggregating, role("x")) if where == "new" else (role("x"), aggregating)
    with pytest.raises(StatusError, match="must have cluster-admin privileges to use the aggregationRule"):
        check_escalation(holding(), BOB, "clusterroles", new, old, name="x")
    check_escalation(holding(*ALL), BOB, "clusterroles", new, old, name="x")


def test_garbage_collection_may_touch_roles_that_its_account_could_not_write() -> None:
    old = {**role("x", *ALL), "metadata": {"name": "x", "finalizers": ["a"]}}
    check_escalation(holding(), BOB, "clusterroles", role("x", *ALL), old, name="x")


WORDS = st.lists(st.sampled_from(["*", "a", "b"]), min_size=1, max_size=2).map(tuple)
RESOURCES = st.lists(st.sampled_from(["*", "a", "b", "a/s", "*/s"]), min_size=1, max_size=2).map(tuple)
RULES = st.builds(Rule, WORDS, WORDS, RESOURCES, st.lists(st.sampled_from(["a", "b"]), max_size=1).map(tuple))


@given(st.lists(RULES, max_size=3))
@settings(max_examples=100, deadline=None)
def test_rules_cover_themselves(rules: list[Rule]) -> None:
    assert uncovered(rules, rules) == []


@given(st.lists(RULES, max_size=3), st.lists(RULES, max_size=2))
@settings(max_examples=150, deadline=None)
def test_what_is_covered_allows_nothing_that_the_owner_may_not(held: list[Rule], wanted: list[Rule]) -> None:
    left = uncovered(held, wanted)
    parts = [part for rule in wanted for part in breakdown(rule) if part not in left]
    for part in parts:
        for verb in ("a", "b"):
            for group in ("a", "b"):
                for resource in ("a", "b"):
                    for subresource in ("", "s"):
                        if part.allows_resource(verb, group, resource, subresource):
                            assert any(
                                owner.allows_resource(verb, group, resource, subresource)
                                and (not owner.resource_names or set(part.resource_names) & set(owner.resource_names))
                                for owner in held
                            )
