"""What a restricted user may do, through the whole of the server."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from tests.server.api import Answer, Api, config_map

MAPS = "/api/v1/namespaces/default/configmaps"
RBAC = "/apis/rbac.authorization.k8s.io/v1/namespaces/default"


async def allow(api: Api, user: str, **rule: list[str]) -> None:
    role = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": user}, "rules": [rule]}
    assert (await api.post(f"{RBAC}/roles", role)).code == 201
    binding = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "RoleBinding",
        "metadata": {"name": user},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": user},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user}],
    }
    assert (await api.post(f"{RBAC}/rolebindings", binding)).code == 201


async def eventually(ask: Callable[[], Awaitable[Answer]], good: Callable[[Answer], bool]) -> None:
    """Roles are followed by watch: what they allow is allowed a moment later."""
    async with asyncio.timeout(5):
        while not good(await ask()):  # noqa: ASYNC110 - the decision is not announced
            await asyncio.sleep(0.005)


async def test_nobody_may_do_what_no_role_allows(api: Api) -> None:
    answer = await api.as_("eve").get(MAPS)
    assert answer.code == 403
    assert (
        'User "eve" cannot list resource "configmaps" in API group "" in the namespace "default"'
        in answer.doc["message"]
    )


@pytest.mark.parametrize(
    ("query", "code"), [("fieldSelector=metadata.name%3Da", 200), ("fieldSelector=metadata.name%3Db", 403)]
)
async def test_a_list_by_name_needs_a_right_to_that_name_only(api: Api, query: str, code: int) -> None:
    await api.post(MAPS, config_map("a"))
    await allow(api, "ann", apiGroups=[""], resources=["configmaps"], resourceNames=["a"], verbs=["list"])
    answer = await api.as_("ann").until(f"{MAPS}?{query}", lambda answer: answer.code == code)
    assert answer.code == code


async def test_a_collection_is_not_deleted_by_a_right_to_one_name(api: Api) -> None:
    await api.post(MAPS, config_map("a"))
    rights = ["list", "deletecollection"]
    await allow(api, "ann", apiGroups=[""], resources=["configmaps"], resourceNames=["a"], verbs=rights)
    ann = api.as_("ann")
    await ann.until(f"{MAPS}?fieldSelector=metadata.name%3Da", lambda answer: answer.code == 200)
    assert (await ann.delete(f"{MAPS}?fieldSelector=metadata.name%3Da")).code == 403


async def test_nobody_grants_what_they_do_not_hold(api: Api) -> None:
    await allow(api, "ann", apiGroups=["rbac.authorization.k8s.io"], resources=["roles"], verbs=["create"])
    secrets = {"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"]}
    role = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "Role",
        "metadata": {"name": "more"},
        "rules": [secrets],
    }
    ann = api.as_("ann")
    review = {
        "spec": {"resourceAttributes": {"group": "rbac.authorization.k8s.io", "resource": "roles", "verb": "create"}}
    }
    review["spec"]["resourceAttributes"]["namespace"] = "default"
    path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
    await eventually(lambda: ann.post(path, review), lambda answer: answer.doc["status"]["allowed"])
    answer = await ann.post(f"{RBAC}/roles", role)
    assert "is attempting to grant RBAC permissions not currently held" in answer.doc["message"]


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/api/v1/namespaces/default/namespaces/kube-system"),
        ("GET", "/api/v1/namespaces/default/namespaces"),
        ("GET", "/api/v1/projects/default/namespaces/kube-system"),
        ("POST", "/api/v1/namespaces/default/namespaces"),
        ("DELETE", "/api/v1/namespaces/default/namespaces"),
        ("DELETE", "/api/v1/namespaces/default/namespaces/kube-system"),
        ("PUT", "/api/v1/namespaces/default/namespaces/kube-system/finalize"),
    ],
)
async def test_all_rights_in_one_namespace_are_none_to_others(api: Api, method: str, path: str) -> None:
    await allow(api, "ann", apiGroups=["*"], resources=["*"], verbs=["*"])
    ann = api.as_("ann")
    await ann.until("/api/v1/namespaces/default", lambda answer: answer.code == 200)
    body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "kube-system"}}
    answer = await ann.send(method, path, None if method == "GET" else body)
    assert answer.code in (404, 405)


@pytest.mark.parametrize("granted", [False, True])
async def test_an_update_or_an_apply_that_makes_an_object_needs_the_right_to_create_it(api: Api, granted: bool) -> None:
    verbs = ["get", "patch", "update", *(["create"] if granted else [])]
    await allow(api, "ann", apiGroups=["", "coordination.k8s.io"], resources=["configmaps", "leases"], verbs=verbs)
    ann = api.as_("ann")
    await ann.until(f"{MAPS}/a", lambda answer: answer.code == 404)
    applied = await ann.send("PATCH", f"{MAPS}/a?fieldManager=t", config_map("a"), "application/apply-patch+yaml")
    lease = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "a"}}
    path = "/apis/coordination.k8s.io/v1/namespaces/default/leases/a"
    put = await ann.send("PUT", path, lease)
    assert (applied.code, put.code) == ((201, 201) if granted else (403, 403))
    if not granted:
        assert (
            'cannot create resource "configmaps" in API group "" in the namespace "default"' in applied.doc["message"]
        )
        assert (await api.get(f"{MAPS}/a")).code == 404
        assert (await api.post(MAPS, config_map("a"))).code == 201
        answer = await ann.send("PATCH", f"{MAPS}/a?fieldManager=t", config_map("a"), "application/apply-patch+yaml")
        assert answer.code == 200
