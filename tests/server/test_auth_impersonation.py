"""Acting as someone else: allowed, refused, never ignored."""

from __future__ import annotations

from typing import Any

import pytest

from trimtab.model.errors import StatusError
from trimtab.server.auth.identity import User
from trimtab.server.auth.impersonation import impersonated
from trimtab.server.auth.rbac import Authorizer

ROOT = User("root", groups=("system:masters", "system:authenticated"))
ALICE = User("alice", groups=("system:authenticated",))


def allowing(*rules: dict[str, Any]) -> Authorizer:
    authorizer = Authorizer()
    authorizer.upsert("clusterroles", {"metadata": {"name": "r"}, "rules": list(rules)})
    subjects = [{"kind": "User", "name": "alice"}]
    reference = {"kind": "ClusterRole", "name": "r"}
    authorizer.upsert("clusterrolebindings", {"metadata": {"name": "b"}, "roleRef": reference, "subjects": subjects})
    return authorizer


def headers(**given: str | list[str]) -> list[tuple[bytes, bytes]]:
    return [
        (f"impersonate-{name.replace('_', '-')}".encode(), value.encode())
        for name, values in given.items()
        for value in ([values] if isinstance(values, str) else values)
    ]


def test_without_the_headers_a_request_is_its_senders() -> None:
    assert impersonated(Authorizer(), ALICE, [(b"accept", b"*/*")]) is ALICE


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (headers(user="bob"), User("bob", groups=("system:authenticated",))),
        (headers(user="bob", group=["a", "b"]), User("bob", groups=("a", "b", "system:authenticated"))),
        (headers(user="system:anonymous"), User("system:anonymous", groups=("system:unauthenticated",))),
        (headers(user="bob", group="system:unauthenticated"), User("bob", groups=("system:unauthenticated",))),
        (
            headers(user="system:serviceaccount:ns:robot"),
            User(
                "system:serviceaccount:ns:robot",
                groups=("system:serviceaccounts", "system:serviceaccounts:ns", "system:authenticated"),
            ),
        ),
        (
            headers(user="bob", uid="u1", **{"extra_a%2fb": ["1", "2"]}),
            User("bob", "u1", ("system:authenticated",), {"a/b": ("1", "2")}),
        ),
    ],
)
def test_an_administrator_may_act_as_anyone(given: list[tuple[bytes, bytes]], expected: User) -> None:
    assert impersonated(Authorizer(), ROOT, given) == expected


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            headers(user="bob"),
            (
                'users "bob" is forbidden: User "alice" cannot impersonate resource "users" in API group "" '
                "at the cluster scope"
            ),
        ),
        (
            headers(user="carol", group="system:masters"),
            (
                'groups "system:masters" is forbidden: User "alice" cannot impersonate resource "groups" in API '
                'group "" at the cluster scope'
            ),
        ),
        (
            headers(user="system:serviceaccount:ns:robot"),
            (
                'serviceaccounts "robot" is forbidden: User "alice" cannot impersonate resource "serviceaccounts" '
                'in API group "" in the namespace "ns"'
            ),
        ),
        (
            headers(user="carol", extra_k="v"),
            (
                'userextras.authentication.k8s.io "v" is forbidden: User "alice" cannot impersonate resource '
                '"userextras/k" in API group "authentication.k8s.io" at the cluster scope'
            ),
        ),
    ],
)
def test_every_part_must_be_allowed(given: list[tuple[bytes, bytes]], message: str) -> None:
    rule = {"apiGroups": [""], "resources": ["users"], "verbs": ["impersonate"], "resourceNames": ["carol"]}
    with pytest.raises(StatusError) as caught:
        impersonated(allowing(rule), ALICE, given)
    assert (caught.value.code, caught.value.message) == (403, message)


def test_a_user_may_act_as_the_one_who_is_named() -> None:
    rule = {"apiGroups": [""], "resources": ["users"], "verbs": ["impersonate"], "resourceNames": ["carol"]}
    assert impersonated(allowing(rule), ALICE, headers(user="carol")).name == "carol"


def test_groups_without_a_user_are_an_error() -> None:
    with pytest.raises(StatusError) as caught:
        impersonated(Authorizer(), ROOT, headers(group="a"))
    assert caught.value.code == 400
