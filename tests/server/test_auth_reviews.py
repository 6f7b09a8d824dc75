"""Reviews, token requests and limits. Messages and shapes are those of kube-apiserver 1.32 for the same requests."""

from __future__ import annotations

from typing import Any

import pytest

from trimtab.model.errors import StatusError
from trimtab.server.auth import reviews
from trimtab.server.auth.bootstrap import cluster_role_bindings, cluster_roles, reconciled
from trimtab.server.auth.certificates import signing_key
from trimtab.server.auth.identity import ANONYMOUS, Authenticator, User
from trimtab.server.auth.limits import InFlight, Limits
from trimtab.server.auth.rbac import Attributes, Authorizer
from trimtab.server.auth.token_requests import create_token
from trimtab.server.auth.tokens import TokenKey

NOW = 1_800_000_000.0
ISSUER = "https://kubernetes.default.svc"
BOB = User("bob", groups=("g1", "system:authenticated"))


@pytest.fixture(scope="module")
def defaults() -> Authorizer:
    authorizer = Authorizer()
    for document in cluster_roles():
        authorizer.upsert("clusterroles", document)
    for document in cluster_role_bindings():
        authorizer.upsert("clusterrolebindings", document)
    return authorizer


class Objects:
    def __init__(self, **objects: dict[str, Any]) -> None:
        self._objects = objects

    async def get(self, resource: str, namespace: str, name: str) -> dict[str, Any] | None:
        return self._objects.get(f"{resource}_{name}")


OBJECTS = Objects(
    serviceaccounts_robot={"metadata": {"name": "robot", "uid": "u-1"}},
    secrets_s1={"metadata": {"name": "s1", "uid": "u-s"}},
    pods_p={"metadata": {"name": "p", "uid": "u-p"}, "spec": {"serviceAccountName": "robot", "nodeName": "n"}},
    pods_q={"metadata": {"name": "q", "uid": "u-q"}, "spec": {"serviceAccountName": "other"}},
)


@pytest.fixture(scope="module")
def key() -> TokenKey:
    return TokenKey(signing_key())


@pytest.fixture
def authenticator(key: TokenKey) -> Authenticator:
    return Authenticator(key, OBJECTS, issuer=ISSUER, audiences=(ISSUER,), now=lambda: NOW)


async def requested(key: TokenKey, spec: dict[str, Any], name: str = "robot", **metadata: str) -> dict[str, Any]:
    return await create_token(
        {"metadata": metadata, "spec": spec},
        namespace="default",
        name=name,
        reader=OBJECTS,
        key=key,
        issuer=ISSUER,
        audiences=(ISSUER,),
        now=NOW,
    )


@pytest.mark.parametrize(
    ("path", "who", "allowed"),
    [
        ("/healthz", ANONYMOUS, True),
        ("/version", ANONYMOUS, True),
        ("/api", ANONYMOUS, False),
        ("/openapi/v3", ANONYMOUS, False),
        ("/metrics", ANONYMOUS, False),
        ("/apis/apps/v1", BOB, True),
        ("/metrics", BOB, False),
        ("/metrics", User("m", groups=("system:monitoring",)), True),
    ],
)
def test_by_default_nobody_sees_health_only_and_users_the_api(
    defaults: Authorizer, path: str, who: User, allowed: bool
) -> None:
    assert defaults.authorize(Attributes(who, "get", path=path)).allowed is allowed


def test_anonymous_reaches_no_resource_by_default(defaults: Authorizer) -> None:
    for verb in ("get", "list", "create"):
        for resource in ("pods", "secrets", "namespaces", "selfsubjectaccessreviews"):
            assert not defaults.authorize(Attributes(ANONYMOUS, verb, resource=resource)).allowed


@pytest.mark.parametrize(
    ("role", "verb", "group", "resource", "allowed"),
    [
        ("view", "list", "", "configmaps", True),
        ("view", "get", "", "secrets", False),
        ("edit", "get", "", "secrets", True),
        ("edit", "list", "", "configmaps", True),
        ("edit", "create", "rbac.authorization.k8s.io", "roles", False),
        ("admin", "create", "rbac.authorization.k8s.io", "roles", True),
        ("admin", "list", "", "pods", True),
        ("cluster-admin", "delete", "", "nodes", True),
        ("admin", "delete", "", "nodes", False),
    ],
)
def test_default_roles_grant_what_their_names_say(
    role: str, verb: str, group: str, resource: str, allowed: bool
) -> None:
    authorizer = Authorizer()
    for document in cluster_roles():
        authorizer.upsert("clusterroles", document)
    reference = {"kind": "ClusterRole", "name": role}
    subject = {"kind": "User", "name": "bob"}
    bound = {"metadata": {"name": "b", "namespace": "ns"}, "roleRef": reference, "subjects": [subject]}
    authorizer.upsert("rolebindings", bound)
    asked = Attributes(BOB, verb, group, resource=resource, namespace="ns")
    assert authorizer.authorize(asked).allowed is allowed


def test_a_default_role_regains_the_rules_that_it_lost() -> None:
    (expected,) = [role for role in cluster_roles() if role["metadata"]["name"] == "system:basic-user"]
    added = {"apiGroups": ["x"], "resources": ["y"], "verbs": ["get"]}
    written = reconciled(expected, {**expected, "rules": [added, expected["rules"][0]]})
    assert written is not None
    assert written["rules"] == [added, *expected["rules"]]
    assert reconciled(expected, written) is None


def test_a_default_role_is_left_alone_when_told_so() -> None:
    expected = cluster_roles()[0]
    metadata = {**expected["metadata"], "annotations": {"rbac.authorization.kubernetes.io/autoupdate": "false"}}
    assert reconciled(expected, {**expected, "metadata": metadata, "rules": []}) is None


def test_an_access_review_answers_with_the_reason(defaults: Authorizer) -> None:
    spec = {
        "resourceAttributes": {"verb": "create", "group": "authentication.k8s.io", "resource": "selfsubjectreviews"}
    }
    answer = reviews.self_subject_access_review(defaults, BOB, {"spec": spec})
    assert answer == {
        "kind": "SelfSubjectAccessReview",
        "apiVersion": "authorization.k8s.io/v1",
        "metadata": {"creationTimestamp": None},
        "spec": spec,
        "status": {
            "allowed": True,
            "reason": 'RBAC: allowed by ClusterRoleBinding "system:basic-user" of ClusterRole "system:basic-user" '
            'to Group "system:authenticated"',
        },
    }


def test_an_access_review_of_another_user_does_not_use_the_askers_rights(defaults: Authorizer) -> None:
    spec = {"user": "eve", "nonResourceAttributes": {"path": "/metrics", "verb": "get"}}
    assert reviews.subject_access_review(defaults, {"spec": spec})["status"] == {"allowed": False}


@pytest.mark.parametrize(
    ("document", "message"),
    [
        (
            {"spec": {}},
            (
                '.authorization.k8s.io "" is invalid: [spec.resourceAttributes: Invalid value: "null": exactly one of '
                "nonResourceAttributes or resourceAttributes must be specified, "
                'spec.user: Invalid value: "": at least one of user or group must be specified]'
            ),
        ),
    ],
)
def test_a_review_without_a_question_is_invalid(defaults: Authorizer, document: dict[str, Any], message: str) -> None:
    with pytest.raises(StatusError) as caught:
        reviews.subject_access_review(defaults, document)
    assert (caught.value.code, caught.value.message) == (422, message)


@pytest.mark.parametrize(
    ("spec", "problem"),
    [
        ({"resourceAttributes": {"namespace": "other"}}, '"other": must match metadata.namespace'),
        ({"nonResourceAttributes": {"path": "/a"}}, "disallowed on this kind of request"),
    ],
)
def test_a_local_review_stays_in_its_namespace(defaults: Authorizer, spec: dict[str, Any], problem: str) -> None:
    with pytest.raises(StatusError, match=problem):
        reviews.local_subject_access_review(defaults, "default", {"spec": {"user": "bob", **spec}})


def test_a_rules_review_lists_what_the_asker_may_do(defaults: Authorizer) -> None:
    answer = reviews.self_subject_rules_review(defaults, BOB, {"spec": {"namespace": "default"}})
    assert answer["spec"] == {}
    assert {"verbs": ["create"], "apiGroups": ["authentication.k8s.io"], "resources": ["selfsubjectreviews"]} in answer[
        "status"
    ]["resourceRules"]
    assert {
        "verbs": ["get"],
        "nonResourceURLs": ["/healthz", "/livez", "/readyz", "/version", "/version/"],
    } in answer["status"]["nonResourceRules"]


def test_a_rules_review_needs_a_namespace(defaults: Authorizer) -> None:
    with pytest.raises(StatusError, match="no namespace on request"):
        reviews.self_subject_rules_review(defaults, BOB, {"spec": {}})


def test_a_self_review_says_who_is_asking() -> None:
    answer = reviews.self_subject_review(BOB, NOW)
    assert answer["status"] == {"userInfo": {"username": "bob", "groups": ["g1", "system:authenticated"]}}
    assert answer["metadata"] == {"creationTimestamp": "2027-01-15T08:00:00Z"}


async def test_a_token_review_names_the_account(authenticator: Authenticator, key: TokenKey) -> None:
    token = (await requested(key, {}))["status"]["token"]
    status = (await reviews.token_review(authenticator, {"spec": {"token": token}}))["status"]
    assert status["user"]["username"] == "system:serviceaccount:default:robot"
    assert (status["authenticated"], status["audiences"]) == (True, [ISSUER])


async def test_a_token_review_for_another_audience_fails(authenticator: Authenticator, key: TokenKey) -> None:
    token = (await requested(key, {}))["status"]["token"]
    await authenticator.authenticate_token(token)
    status = (await reviews.token_review(authenticator, {"spec": {"token": token, "audiences": ["vault"]}}))["status"]
    assert status == {
        "user": {},
        "error": f'[invalid bearer token, token audiences ["{ISSUER}"] is invalid for the target audiences ["vault"]]',
    }


async def test_a_token_for_another_audience_is_reviewed_for_it(authenticator: Authenticator, key: TokenKey) -> None:
    token = (await requested(key, {"audiences": ["vault", "x"]}))["status"]["token"]
    review = await reviews.token_review(authenticator, {"spec": {"token": token, "audiences": ["vault"]}})
    assert review["status"]["audiences"] == ["vault"]
    with pytest.raises(StatusError, match="Unauthorized"):
        await authenticator.authenticate_token(token)


async def test_a_token_review_of_nonsense_is_not_authenticated(authenticator: Authenticator) -> None:
    review = await reviews.token_review(authenticator, {"spec": {"token": "x"}})
    assert review["status"] == {"user": {}, "error": "invalid bearer token"}


async def test_a_token_request_is_answered_with_a_token_for_an_hour(key: TokenKey) -> None:
    answer = await requested(key, {})
    assert answer["metadata"] == {
        "name": "robot",
        "namespace": "default",
        "creationTimestamp": "2027-01-15T08:00:00Z",
    }
    assert answer["spec"] == {"audiences": [ISSUER], "expirationSeconds": 3600, "boundObjectRef": None}
    assert answer["status"]["expirationTimestamp"] == "2027-01-15T09:00:00Z"


async def test_a_token_can_be_bound_to_a_pod_and_tells_its_node(authenticator: Authenticator, key: TokenKey) -> None:
    answer = await requested(key, {"boundObjectRef": {"kind": "Pod", "apiVersion": "v1", "name": "p"}})
    user = await authenticator.authenticate_token(answer["status"]["token"])
    assert user.extra["authentication.kubernetes.io/pod-name"] == ("p",)
    assert user.extra["authentication.kubernetes.io/node-name"] == ("n",)


@pytest.mark.parametrize(
    ("spec", "code", "message"),
    [
        (
            {"expirationSeconds": 10},
            422,
            (
                'TokenRequest.authentication.k8s.io "" is invalid: spec.expirationSeconds: Invalid value: 10: '
                "may not specify a duration less than 10 minutes"
            ),
        ),
        (
            {"expirationSeconds": 2**32 + 1},
            422,
            (
                'TokenRequest.authentication.k8s.io "" is invalid: spec.expirationSeconds: Invalid value: 4294967297: '
                "may not specify a duration larger than 2^32 seconds"
            ),
        ),
        (
            {"boundObjectRef": {"kind": "ConfigMap", "apiVersion": "v1", "name": "x"}},
            400,
            "cannot bind token to object of type /v1, Kind=ConfigMap",
        ),
        ({"boundObjectRef": {"kind": "Secret", "apiVersion": "v1", "name": "x"}}, 404, 'secrets "x" not found'),
        (
            {"boundObjectRef": {"kind": "Secret", "apiVersion": "v1", "name": "s1", "uid": "wrong"}},
            409,
            (
                'Operation cannot be fulfilled on Secret "s1": the UID in the bound object reference (wrong) does '
                "not match the UID in record. The object might have been deleted and then recreated"
            ),
        ),
        (
            {"boundObjectRef": {"kind": "Pod", "apiVersion": "v1", "name": "q"}},
            400,
            'cannot bind token for serviceaccount "robot" to pod running with different serviceaccount name.',
        ),
    ],
)
async def test_a_token_request_that_cannot_be_met_says_why(
    key: TokenKey, spec: dict[str, Any], code: int, message: str
) -> None:
    with pytest.raises(StatusError) as caught:
        await requested(key, spec)
    assert (caught.value.code, caught.value.message) == (code, message)


async def test_a_token_request_for_an_absent_account_is_not_found(key: TokenKey) -> None:
    with pytest.raises(StatusError, match='serviceaccounts "nope" not found'):
        await requested(key, {}, name="nope")


async def test_a_token_request_with_another_name_is_invalid(key: TokenKey) -> None:
    with pytest.raises(StatusError) as caught:
        await requested(key, {}, name="robot", namespace="x")
    assert caught.value.message == (
        'TokenRequest.authentication.k8s.io "robot" is invalid: metadata.namespace: Invalid value: "x": '
        "must match the service account namespace if specified"
    )


def test_one_user_cannot_take_all_places() -> None:
    flight = InFlight(Limits(requests=3, requests_per_user=1))
    with flight.acquire(BOB):
        with pytest.raises(StatusError) as caught:
            flight.acquire(BOB)
        assert (caught.value.code, caught.value.retry_after) == (429, 1)
        with flight.acquire(ANONYMOUS):
            pass
    with flight.acquire(BOB):
        pass


def test_all_users_together_have_a_limit_that_masters_pass() -> None:
    flight = InFlight(Limits(requests=1, requests_per_user=9))
    with flight.acquire(ANONYMOUS):
        with pytest.raises(StatusError):
            flight.acquire(BOB)
        with flight.acquire(User("root", groups=("system:masters",))):
            assert flight.requests.total == 2
    assert (flight.requests.total, flight.requests.by_user) == (0, {})


def test_watches_do_not_take_the_places_of_requests() -> None:
    flight = InFlight(Limits(requests=1, requests_per_user=1, watches=1, watches_per_user=1))
    with flight.acquire(BOB, long_running=True), flight.acquire(BOB), pytest.raises(StatusError):
        flight.acquire(BOB, long_running=True)


@pytest.mark.parametrize(
    "document",
    [
        {"metadata": 1e308},
        {"metadata": []},
        {"spec": "x"},
        {"spec": {"audiences": "me"}},
        {"spec": {"audiences": [1]}},
        {"spec": {"expirationSeconds": "an hour"}},
        {"spec": {"expirationSeconds": True}},
        {"spec": {"boundObjectRef": "pod"}},
        {"spec": {"boundObjectRef": {"kind": 1}}},
    ],
)
async def test_a_token_request_of_another_shape_is_refused(key: TokenKey, document: dict[str, Any]) -> None:
    with pytest.raises(StatusError, match="the body is no TokenRequest") as refused:
        await create_token(
            document,
            namespace="default",
            name="robot",
            reader=OBJECTS,
            key=key,
            issuer=ISSUER,
            audiences=(ISSUER,),
            now=NOW,
        )
    assert refused.value.code == 400
