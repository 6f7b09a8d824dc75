"""Evictions and bindings: what they do to a Pod, and when they are refused."""

from typing import Any

import pytest

from tests.server.api import Api, running

PODS = "/api/v1/namespaces/default/pods"
POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "a", "labels": {"app": "a"}},
    "spec": {"containers": [{"name": "c", "image": "i"}]},
}
BUDGETS = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
BUDGET = {
    "apiVersion": "policy/v1",
    "kind": "PodDisruptionBudget",
    "metadata": {"name": "b"},
    "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "a"}}},
}
EVICTION = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "a"}}


def binding(node: str = "n", **target: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Binding", "target": {"name": node, **target}}


async def guarded(api: Api, allowed: int) -> None:
    """A running Pod whose budget has this much left."""
    await api.post(PODS, POD)
    await api.merge(f"{PODS}/a/status", {"status": {"phase": "Running"}})
    await api.post(BUDGETS, BUDGET)
    status = {"disruptionsAllowed": allowed, "currentHealthy": 1, "desiredHealthy": 1, "observedGeneration": 1}
    await api.merge(f"{BUDGETS}/b/status", {"status": status})


async def test_an_eviction_deletes_the_pod(api: Api) -> None:
    await api.post(PODS, POD)
    answer = await api.post(f"{PODS}/a/eviction", EVICTION)
    assert (answer.code, answer.doc["status"]) == (201, "Success")
    assert (await api.get(f"{PODS}/a")).code == 404


async def test_a_dry_eviction_deletes_nothing(api: Api) -> None:
    await api.post(PODS, POD)
    assert (await api.post(f"{PODS}/a/eviction?dryRun=All", EVICTION)).code == 201
    assert (await api.get(f"{PODS}/a")).code == 200


@pytest.mark.parametrize(
    ("metadata", "why"),
    [
        ({"name": "b"}, "name in URL does not match name in Eviction object"),
        ({}, "name in URL does not match name in Eviction object"),
        (
            {"name": "a", "namespace": "other"},
            "the namespace of the provided object does not match the namespace sent on the request",
        ),
    ],
)
async def test_an_eviction_of_another_pod_is_refused(api: Api, metadata: dict[str, str], why: str) -> None:
    await api.post(PODS, POD)
    answer = await api.post(f"{PODS}/a/eviction", {**EVICTION, "metadata": metadata})
    assert (answer.code, answer.doc["message"]) == (400, why)
    assert (await api.get(f"{PODS}/a")).code == 200


async def test_an_empty_budget_refuses_an_eviction(api: Api) -> None:
    await guarded(api, 0)
    answer = await api.post(f"{PODS}/a/eviction", EVICTION)
    why = "Cannot evict pod as it would violate the pod's disruption budget."
    assert (answer.code, answer.doc["message"]) == (429, why)
    assert answer.doc["details"]["causes"][0]["reason"] == "DisruptionBudget"
    assert (await api.get(f"{PODS}/a")).code == 200


async def test_an_eviction_spends_of_its_budget(api: Api) -> None:
    await guarded(api, 2)
    assert (await api.post(f"{PODS}/a/eviction", EVICTION)).code == 201
    status = (await api.get(f"{BUDGETS}/b")).doc["status"]
    assert status["disruptionsAllowed"] == 1
    assert list(status["disruptedPods"]) == ["a"]


async def test_no_budget_counts_a_pod_that_does_not_run(api: Api) -> None:
    await guarded(api, 0)
    await api.merge(f"{PODS}/a/status", {"status": {"phase": "Pending"}})
    assert (await api.post(f"{PODS}/a/eviction", EVICTION)).code == 201


async def test_a_binding_gives_a_pod_its_node(api: Api) -> None:
    await api.post(PODS, POD)
    answer = await api.post(f"{PODS}/a/binding", binding("n"))
    assert (answer.code, answer.doc["status"]) == (201, "Success")
    pod = (await api.get(f"{PODS}/a")).doc
    assert pod["spec"]["nodeName"] == "n"
    (condition,) = pod["status"]["conditions"]
    assert (condition["type"], condition["status"]) == ("PodScheduled", "True")
    assert [
        one["metadata"]["name"] for one in (await api.get(f"{PODS}?fieldSelector=spec.nodeName=n")).doc["items"]
    ] == ["a"]


async def test_a_pod_is_bound_once(api: Api) -> None:
    await api.post(PODS, POD)
    await api.post(f"{PODS}/a/binding", binding("n"))
    answer = await api.post(f"{PODS}/a/binding", binding("m"))
    why = 'Operation cannot be fulfilled on pods/binding "a": pod a is already assigned to node "n"'
    assert (answer.code, answer.doc["message"]) == (409, why)


async def test_a_binding_names_a_node(api: Api) -> None:
    await api.post(PODS, POD)
    answer = await api.post(f"{PODS}/a/binding", binding("", kind="Pod"))
    causes = {cause["field"]: cause["reason"] for cause in answer.doc["details"]["causes"]}
    assert answer.code == 422
    assert causes == {"target.kind": "FieldValueNotSupported", "target.name": "FieldValueRequired"}


async def test_what_is_not_there_is_neither_evicted_nor_bound(api: Api) -> None:
    for part, document in (("eviction", EVICTION), ("binding", binding())):
        assert (await api.post(f"{PODS}/a/{part}", document)).code == 404


async def test_an_unmanaged_server_leaves_to_others_what_kube_controller_manager_does() -> None:
    async with running(managed=False) as api:
        maps = "/api/v1/namespaces/default/configmaps"
        owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "never", "uid": "0"}
        await api.post(
            maps, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "ownerReferences": [owner]}}
        )
        await api.post("/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "foo"}})
        await api.delete("/api/v1/namespaces/foo")
        names = {task.get_name() for task in api.server._tasks}
        assert {"namespaces", "garbage", "roles"}.isdisjoint(names)
        assert (await api.get("/api/v1/namespaces/foo")).doc["status"]["phase"] == "Terminating"
        assert (await api.get("/api/v1/namespaces/default/serviceaccounts")).doc["items"] == []
        assert (await api.get(f"{maps}/a")).code == 200
