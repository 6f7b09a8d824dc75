"""What an audit policy says of a request, and what is wrong with one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from trimtab.server.audit.policy import Level, PolicyError, load_policy, policy_of
from trimtab.server.audit.trail import attributes
from trimtab.server.auth.identity import User

ALICE = User("alice", groups=("ops", "system:authenticated"))


def policy(*rules: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "rules": list(rules), **fields}


def level(rule: dict[str, Any], method: str, url: str) -> Level:
    path, _, query = url.partition("?")
    asked = attributes(ALICE, method, path, dict(part.split("=") for part in query.split("&") if part))
    return policy_of(policy({"level": "Request", **rule})).judge(asked).level


def resources(*names: str, group: str = "", only: tuple[str, ...] = ()) -> dict[str, Any]:
    return {"resources": [{"group": group, "resources": list(names), "resourceNames": list(only)}]}


PODS = "/api/v1/namespaces/a/pods"


@pytest.mark.parametrize(
    ("rule", "method", "url", "fits"),
    [
        ({}, "GET", "/healthz", True),
        ({"users": ["alice"]}, "GET", PODS, True),
        ({"users": ["bob"]}, "GET", PODS, False),
        ({"userGroups": ["dev", "ops"]}, "GET", PODS, True),
        ({"userGroups": ["dev"]}, "GET", PODS, False),
        ({"verbs": ["list"]}, "GET", PODS, True),
        ({"verbs": ["watch"]}, "GET", PODS, False),
        ({"verbs": ["watch"]}, "GET", f"{PODS}?watch=true", True),
        ({"verbs": ["get"]}, "HEAD", f"{PODS}/x", True),
        ({"verbs": ["deletecollection"]}, "DELETE", PODS, True),
        ({"verbs": ["post"]}, "POST", "/nowhere", True),
        ({"namespaces": ["a"]}, "GET", PODS, True),
        ({"namespaces": ["b"]}, "GET", PODS, False),
        ({"namespaces": [""]}, "GET", "/api/v1/pods", True),
        ({"namespaces": [""]}, "GET", "/healthz", False),
        (resources("pods"), "GET", PODS, True),
        (resources("pods"), "GET", f"{PODS}/x/status", False),
        (resources("pods/status"), "GET", f"{PODS}/x/status", True),
        (resources("*/status"), "GET", f"{PODS}/x/status", True),
        (resources("*/status"), "GET", f"{PODS}/x", False),
        (resources("pods/*"), "GET", f"{PODS}/x/status", True),
        (resources("*"), "GET", f"{PODS}/x/status", True),
        (resources("*"), "GET", "/apis/apps/v1/deployments", False),
        (resources(group="apps"), "GET", "/apis/apps/v1/deployments", True),
        (resources("pods", only=("x",)), "GET", f"{PODS}/x", True),
        (resources("pods", only=("x",)), "GET", f"{PODS}/y", False),
        ({"nonResourceURLs": ["/healthz"]}, "GET", "/healthz", True),
        ({"nonResourceURLs": ["/healthz"]}, "GET", "/healthz/ping", False),
        ({"nonResourceURLs": ["/healthz*"]}, "GET", "/healthz/ping", True),
        ({"nonResourceURLs": ["*"]}, "GET", "/version", True),
        ({"nonResourceURLs": ["*"]}, "GET", PODS, False),
    ],
)
def test_a_rule_fits_what_all_its_conditions_fit(rule: dict[str, Any], method: str, url: str, fits: bool) -> None:
    assert level(rule, method, url) is (Level.REQUEST if fits else Level.NONE)


def test_the_first_rule_that_fits_decides() -> None:
    made = policy_of(policy({"level": "None", "users": ["alice"]}, {"level": "Metadata"}))
    assert made.judge(attributes(ALICE, "GET", "/version", {})).level is Level.NONE
    assert made.judge(attributes(User("bob"), "GET", "/version", {})).level is Level.METADATA


def test_stages_are_omitted_by_the_policy_and_by_the_rule_and_managed_fields_by_the_nearer_one() -> None:
    rules = (
        {"level": "Request", "users": ["alice"], "omitStages": ["Panic"], "omitManagedFields": False},
        {"level": "Request"},
    )
    made = policy_of(policy(*rules, omitStages=["RequestReceived"], omitManagedFields=True))
    first = made.judge(attributes(ALICE, "GET", "/version", {}))
    second = made.judge(attributes(User("bob"), "GET", "/version", {}))
    assert (first.omit_stages, first.omit_managed_fields) == ({"RequestReceived", "Panic"}, False)
    assert (second.omit_stages, second.omit_managed_fields) == ({"RequestReceived"}, True)


@pytest.mark.parametrize(
    ("url", "group", "name"),
    [
        ("/api/v1/namespaces/a/serviceaccounts/x/token", "", "serviceaccounts/token"),
        ("/apis/authentication.k8s.io/v1/tokenreviews", "authentication.k8s.io", "tokenreviews"),
    ],
)
def test_bodies_with_tokens_are_told_only_by_a_rule_that_names_them(url: str, group: str, name: str) -> None:
    asked = attributes(ALICE, "POST", url, {})
    for rule in ({}, resources(group=group), resources("*", group=group)):
        verdict = policy_of(policy({"level": "RequestResponse", **rule})).judge(asked)
        assert (verdict.level, verdict.bodies) == (Level.REQUEST_RESPONSE, Level.METADATA)
    named = policy_of(policy({"level": "RequestResponse", **resources(name, group=group)})).judge(asked)
    assert named.bodies is Level.REQUEST_RESPONSE


@pytest.mark.parametrize(
    ("document", "problem"),
    [
        ([], "the policy: must be an object"),
        ({"kind": "Policy", "apiVersion": "audit.k8s.io/v1beta1"}, "apiVersion and kind: must be audit.k8s.io/v1"),
        (policy(), "rules: Required value"),
        (policy({}), "rules[0].level: Required value"),
        (policy({"level": "All"}), 'rules[0].level: Unsupported value: "All": supported values: "None", "Metadata"'),
        (policy({"level": "None", "user": ["x"]}), 'unknown field "rules[0].user"'),
        (policy({"level": "None"}, strict=True), 'unknown field "strict"'),
        (policy({"level": "None", "users": "x"}), 'rules[0].users: must be a list, not "x"'),
        (policy({"level": "None", "users": [1]}), "rules[0].users[0]: Invalid value: 1: must be a string"),
        (policy({"level": "None", "omitManagedFields": "yes"}), "rules[0].omitManagedFields: Invalid value"),
        (policy({"level": "None"}, omitStages=["End"]), 'omitStages[0]: Invalid value: "End": allowed stages are'),
        (policy({"level": "None", "nonResourceURLs": ["a"]}), "must begin with a '/' character"),
        (policy({"level": "None", "nonResourceURLs": ["/*/a"]}), "must be the final character"),
        (
            policy({"level": "None", "nonResourceURLs": ["/a"], "namespaces": ["b"]}),
            "rules cannot apply to both regular resources and non-resource URLs",
        ),
        (policy({"level": "None", **resources("x", group="apps/v1")}), "rules[0].resources[0].group: Invalid value"),
        (policy({"level": "None", **resources(only=("x",))}), "using resourceNames requires at least one resource"),
    ],
)
def test_a_mistake_is_refused_with_the_name_of_the_field(document: Any, problem: str) -> None:
    with pytest.raises(PolicyError) as refused:
        policy_of(document)
    assert problem in str(refused.value)


def test_every_mistake_is_told_at_once() -> None:
    with pytest.raises(PolicyError, match=r"rules\[0\].level.*rules\[1\].level"):
        policy_of(policy({}, {}))


@pytest.mark.parametrize("content", ["a: [", "\x00", "x: &a [*a]", "- 1"])
def test_a_file_that_is_no_policy_is_refused_by_its_name(tmp_path: Path, content: str) -> None:
    path = tmp_path / "policy.yaml"
    path.write_text(content)
    with pytest.raises(PolicyError, match=str(path)):
        load_policy(path)
    with pytest.raises(PolicyError, match="No such file"):
        load_policy(tmp_path / "absent")
