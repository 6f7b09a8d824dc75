"""ResourceQuotas: what exceeds them is refused, whatever happens at the same time, and what goes is given back. Messages are
those of kube-apiserver 1.32; tests/differential compares more of them with a real one."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.server.api import Answer, Api, config_map, running
from tests.server.test_policies import answered
from trimtab.model.quantity import Quantity
from trimtab.server.quota.usage import pod_amounts
from trimtab.store.memory import MemoryStore

HERE = "/api/v1/namespaces/default"
QUOTAS, MAPS, PODS, SERVICES = (f"{HERE}/{plural}" for plural in ("resourcequotas", "configmaps", "pods", "services"))


def quota(hard: dict[str, Any], name: str = "q", **spec: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": name}, "spec": {"hard": hard, **spec}}


def pod(name: str, **resources: Any) -> dict[str, Any]:
    container = {"name": "main", "image": "app:1", "resources": resources}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": {"containers": [container]}}


def service(name: str, **spec: Any) -> dict[str, Any]:
    filled = {"ports": [{"port": 80}], **spec}
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": filled}


async def limited(api: Api, hard: dict[str, Any], name: str = "q", **spec: Any) -> None:
    assert (await api.post(QUOTAS, quota(hard, name, **spec))).code == 201
    await api.until(f"{QUOTAS}/{name}", lambda answer: answer.doc["status"].get("used") is not None)


async def used(api: Api, expected: dict[str, str], name: str = "q") -> None:
    """Waits until the status says so."""
    await api.until(f"{QUOTAS}/{name}", lambda answer: answer.doc["status"].get("used") == expected)


def refused(answer: Answer, why: str) -> None:
    assert answer.code == 403, answer.doc
    assert answer.doc["message"].endswith(f"is forbidden: {why}")


async def test_one_too_many_is_refused_and_told_why(api: Api) -> None:
    await limited(api, {"configmaps": "1"})
    assert (await api.post(MAPS, config_map("a"))).code == 201
    answer = await api.post(MAPS, config_map("b"))
    refused(answer, "exceeded quota: q, requested: configmaps=1, used: configmaps=1, limited: configmaps=1")
    assert answer.doc["details"] == {"name": "b", "kind": "configmaps"}
    assert (await api.get(f"{MAPS}/b")).code == 404


async def test_writes_at_the_same_time_never_exceed_a_quota(api: Api) -> None:
    await limited(api, {"configmaps": "7"})
    answers = await asyncio.gather(*(api.post(MAPS, config_map(f"c{number}")) for number in range(40)))
    assert sorted(answer.code for answer in answers) == [201] * 7 + [403] * 33
    await used(api, {"configmaps": "7"})


async def test_writes_and_counts_at_the_same_time_never_exceed_a_quota(api: Api) -> None:
    await limited(api, {"configmaps": "5"})
    server = api.server

    async def churn(number: int) -> None:
        for turn in range(12):
            name = f"c{number}-{turn}"
            if (await api.post(MAPS, config_map(name))).code == 201:
                listed = (await api.get(MAPS)).doc["items"]
                assert len(listed) <= 5
                await api.delete(f"{MAPS}/{name}")

    async def count() -> None:
        for _ in range(40):
            await server.quotas.count("default")

    await asyncio.gather(count(), *(churn(number) for number in range(8)))
    await used(api, {"configmaps": "0"})


async def test_a_count_includes_what_is_charged_and_not_yet_written(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who counts between the charge and the commit must not give the charge away."""
    await limited(api, {"configmaps": "1"})
    store: Any = api.server.store
    commit, counted = store.commit, []

    async def slow(write: Any) -> Any:
        if write.key.resource == "configmaps" and not counted:
            counted.append(True)
            await api.server.quotas.count("default")
            refused(
                await api.post(MAPS, config_map("b")),
                "exceeded quota: q, requested: configmaps=1, used: configmaps=1, limited: configmaps=1",
            )
        return await commit(write)

    monkeypatch.setattr(store, "commit", slow)
    assert (await api.post(MAPS, config_map("a"))).code == 201
    assert counted
    await used(api, {"configmaps": "1"})


async def test_what_is_deleted_is_given_back(api: Api) -> None:
    await limited(api, {"configmaps": "1", "count/configmaps": "3"})
    await api.post(MAPS, config_map("a"))
    await api.delete(f"{MAPS}/a")
    await used(api, {"configmaps": "0", "count/configmaps": "0"})
    assert (await api.post(MAPS, config_map("b"))).code == 201


async def test_a_write_that_fails_uses_nothing(api: Api) -> None:
    await limited(api, {"configmaps": "2"})
    await api.post(MAPS, config_map("a"))
    assert (await api.post(MAPS, config_map("a"))).code == 409
    await used(api, {"configmaps": "1"})
    assert (await api.post(f"{MAPS}?dryRun=All", config_map("b"))).code == 201
    assert (await api.post(MAPS, config_map("b"))).code == 201
    answer = await api.post(f"{MAPS}?dryRun=All", config_map("c"))
    refused(answer, "exceeded quota: q, requested: configmaps=1, used: configmaps=2, limited: configmaps=2")


async def test_what_was_there_before_the_quota_counts(api: Api) -> None:
    await api.post(MAPS, config_map("a"))
    await limited(api, {"configmaps": "1"})
    await used(api, {"configmaps": "1"})
    assert (await api.post(MAPS, config_map("b"))).code == 403
    assert (await api.merge(f"{MAPS}/a", {"data": {"a": "b"}})).code == 200


async def test_a_larger_quota_lets_more_in(api: Api) -> None:
    await limited(api, {"configmaps": "0"})
    assert (await api.post(MAPS, config_map("a"))).code == 403
    await api.merge(f"{QUOTAS}/q", {"spec": {"hard": {"configmaps": "1"}}})
    await api.until(f"{QUOTAS}/q", lambda answer: answer.doc["status"]["hard"] == {"configmaps": "1"})
    assert (await api.post(MAPS, config_map("a"))).code == 201


async def test_a_quota_that_is_gone_limits_nothing(api: Api) -> None:
    await limited(api, {"configmaps": "0"})
    await api.delete(f"{QUOTAS}/q")
    await answered(lambda: api.post(f"{MAPS}?dryRun=All", config_map("a")), 201)


async def test_every_quota_must_have_room(api: Api) -> None:
    await limited(api, {"configmaps": "5"}, "many")
    await limited(api, {"configmaps": "1"}, "few")
    await api.post(MAPS, config_map("a"))
    refused(
        await api.post(MAPS, config_map("b")),
        "exceeded quota: few, requested: configmaps=1, used: configmaps=1, limited: configmaps=1",
    )
    await used(api, {"configmaps": "1"}, "many")


async def test_kinds_of_definitions_are_counted_by_their_group(api: Api) -> None:
    definition = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "ships.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"plural": "ships", "kind": "Ship"},
            "versions": [
                {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object"}}}
            ],
        },
    }
    await limited(api, {"count/ships.example.com": "1", "pods": "1"})
    await api.post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition)
    await used(api, {"count/ships.example.com": "0", "pods": "0"})
    ships = "/apis/example.com/v1/namespaces/default/ships"
    ship = {"apiVersion": "example.com/v1", "kind": "Ship", "metadata": {"name": "a"}}
    assert (await api.post(ships, ship)).code == 201
    assert (await api.post(ships, ship | {"metadata": {"name": "b"}})).code == 403


async def test_pods_are_charged_for_what_they_ask(api: Api) -> None:
    await limited(api, {"requests.cpu": "1", "limits.memory": "1Gi", "pods": "5"})
    refused(
        await api.post(PODS, pod("a", requests={"cpu": "1"})),
        "failed quota: q: must specify limits.memory for: main",
    )
    asks = {"requests": {"cpu": "600m"}, "limits": {"memory": "256Mi"}}
    assert (await api.post(PODS, pod("a", **asks))).code == 201
    refused(
        await api.post(PODS, pod("b", **asks)),
        "exceeded quota: q, requested: requests.cpu=600m, used: requests.cpu=600m, limited: requests.cpu=1",
    )
    await used(api, {"limits.memory": "256Mi", "pods": "1", "requests.cpu": "600m"})


async def test_a_pod_that_is_done_makes_room(api: Api) -> None:
    await limited(api, {"pods": "1", "count/pods": "9"})
    await api.post(PODS, pod("a"))
    await api.merge(f"{PODS}/a/status", {"status": {"phase": "Succeeded"}})
    await used(api, {"count/pods": "1", "pods": "0"})
    assert (await api.post(PODS, pod("b"))).code == 201


async def test_scopes_choose_pods(api: Api) -> None:
    await limited(api, {"pods": "1"}, scopes=["BestEffort"])
    assert (await api.post(PODS, pod("a", requests={"cpu": "1"}))).code == 201
    await used(api, {"pods": "0"})
    assert (await api.post(PODS, pod("b"))).code == 201
    assert (await api.post(PODS, pod("c"))).code == 403


async def test_a_service_that_becomes_more_is_charged_for_it(api: Api) -> None:
    await limited(api, {"services": "3", "services.nodeports": "0", "services.loadbalancers": "1"})
    assert (await api.post(SERVICES, service("a"))).code == 201
    refused(
        await api.merge(f"{SERVICES}/a", {"spec": {"type": "NodePort"}}),
        "exceeded quota: q, requested: services.nodeports=1, used: services.nodeports=0, limited: services.nodeports=0",
    )
    assert (await api.merge(f"{SERVICES}/a", {"metadata": {"labels": {"a": "b"}}})).code == 200


async def test_counts_are_right_after_a_restart() -> None:
    store = MemoryStore()
    async with running(store=store, keep_store=True) as api:
        await limited(api, {"configmaps": "2"})
        await api.post(MAPS, config_map("a"))
    async with running(store=store) as api:
        assert (await api.post(MAPS, config_map("b"))).code == 201
        assert (await api.post(MAPS, config_map("c"))).code == 403


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({"containers": [{"resources": {"requests": {"cpu": "1"}}}] * 2}, "2"),
        (
            {
                "containers": [{"resources": {"requests": {"cpu": "1"}}}],
                "initContainers": [
                    {"resources": {"requests": {"cpu": "3"}}},
                    {"resources": {"requests": {"cpu": "2"}}},
                ],
            },
            "3",
        ),
        (
            {
                "containers": [{"resources": {"requests": {"cpu": "1"}}}],
                "initContainers": [
                    {"restartPolicy": "Always", "resources": {"requests": {"cpu": "2"}}},
                    {"resources": {"requests": {"cpu": "3"}}},
                ],
                "overhead": {"cpu": "250m"},
            },
            "5250m",
        ),
    ],
    ids=["containers add up", "init containers take turns", "sidecars stay"],
)
def test_what_a_pod_requests(spec: dict[str, Any], expected: str) -> None:
    assert pod_amounts(spec, "requests") == {"cpu": Quantity(expected)}


@pytest.mark.parametrize("amount", ["1e1000", "1e00001", "1" * 65, "1e-65"])
async def test_an_amount_beyond_all_bounds_is_refused_where_it_is_read(api: Api, amount: str) -> None:
    for path, document in ((QUOTAS, quota({"cpu": amount})), (PODS, pod("a", limits={"cpu": amount}))):
        answer = await api.post(path, document)
        assert answer.code == 400, answer.doc
        assert "quantit" in answer.doc["message"]
