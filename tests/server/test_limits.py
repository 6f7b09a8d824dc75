"""LimitRanges: what containers get that say nothing, and what pods may not ask for. Messages are those of kube-apiserver 1.32;
tests/differential compares more of them with a real one."""

from __future__ import annotations

from typing import Any

import pytest

from tests.server.api import Api, running
from tests.server.test_policies import answered
from tests.server.test_quotas import PODS, limited, pod, used
from trimtab.store.memory import MemoryStore

LIMITS = "/api/v1/namespaces/default/limitranges"


async def ranged(api: Api, *items: dict[str, Any]) -> None:
    """The range is written, and the server has seen it."""
    body = {"apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "l"}, "spec": {"limits": list(items)}}
    assert (await api.post(LIMITS, body)).code == 201
    last = {**body, "metadata": {"name": "last"}, "spec": {"limits": [{"type": "Pod", "max": {"example.com/x": "1"}}]}}
    await api.post(LIMITS, last)
    marked = pod("m", limits={"example.com/x": "2", "cpu": "1", "memory": "1Gi"})
    await answered(lambda: api.post(f"{PODS}?dryRun=All", marked), 403)
    await api.delete(f"{LIMITS}/last")
    await answered(lambda: api.post(f"{PODS}?dryRun=All", marked), 201)


async def test_containers_that_say_nothing_get_the_default(api: Api) -> None:
    await ranged(api, {"type": "Container", "default": {"cpu": "500m"}, "defaultRequest": {"cpu": "100m"}})
    made = (await api.post(PODS, pod("a"))).doc
    assert made["spec"]["containers"][0]["resources"] == {"limits": {"cpu": "500m"}, "requests": {"cpu": "100m"}}
    told = "LimitRanger plugin set: cpu request for container main; cpu limit for container main"
    assert made["metadata"]["annotations"] == {"kubernetes.io/limit-ranger": told}
    assert made["status"]["qosClass"] == "Burstable"


@pytest.mark.parametrize(
    ("item", "resources", "why"),
    [
        (
            {"type": "Container", "max": {"cpu": "1"}},
            {"limits": {"cpu": "2"}},
            "maximum cpu usage per Container is 1, but limit is 2",
        ),
        (
            {"type": "Pod", "max": {"cpu": "1"}},
            {},
            "maximum cpu usage per Pod is 1.  No limit is specified",
        ),
        (
            {"type": "Container", "min": {"memory": "64Mi"}},
            {"requests": {"memory": "32Mi"}},
            "minimum memory usage per Container is 64Mi, but request is 32Mi",
        ),
        (
            {"type": "Container", "maxLimitRequestRatio": {"cpu": "2"}},
            {"limits": {"cpu": "3"}, "requests": {"cpu": "1"}},
            "cpu max limit to request ratio per Container is 2, but provided ratio is 3.000000",
        ),
    ],
    ids=["limit", "nothing said", "request", "ratio"],
)
async def test_pods_that_ask_for_too_much_or_too_little_are_refused(
    api: Api, item: dict[str, Any], resources: dict[str, Any], why: str
) -> None:
    await ranged(api, item)
    answer = await api.post(PODS, pod("a", **resources))
    assert answer.code == 403
    assert answer.doc["message"] == f'pods "a" is forbidden: {why}'


async def test_a_pod_is_charged_for_what_it_gets_by_default(api: Api) -> None:
    await ranged(api, {"type": "Container", "defaultRequest": {"cpu": "100m"}})
    await limited(api, {"requests.cpu": "1"})
    assert (await api.post(PODS, pod("a"))).code == 201
    await used(api, {"requests.cpu": "100m"})


async def test_limits_hold_from_the_first_request_after_a_restart() -> None:
    store = MemoryStore()
    async with running(store=store, keep_store=True) as api:
        await ranged(api, {"type": "Pod", "max": {"cpu": "1"}})
    async with running(store=store) as api:
        assert (await api.post(PODS, pod("a", limits={"cpu": "2"}))).code == 403


async def test_defaults_of_a_range_follow_from_its_bounds(api: Api) -> None:
    item = {"type": "Container", "max": {"cpu": "2000m"}, "min": {"memory": "1Mi"}}
    body = {"apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "l"}, "spec": {"limits": [item]}}
    (made,) = (await api.post(LIMITS, body)).doc["spec"]["limits"]
    assert (made["default"], made["defaultRequest"]) == ({"cpu": "2"}, {"cpu": "2", "memory": "1Mi"})
