"""ClusterRoles that gather others have what those have, and have it no longer when those go."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.server.api import Answer, Api, running
from trimtab.store.contract import Unavailable
from trimtab.store.memory import MemoryStore

ROLES = "/apis/rbac.authorization.k8s.io/v1/clusterroles"
RULE = {"apiGroups": ["ports.example.com"], "resources": ["harbours"], "verbs": ["get"]}


def labelled(name: str, **labels: str) -> dict[str, Any]:
    return {"metadata": {"name": name, "labels": labels}, "rules": [RULE]}


def has(answer: Answer) -> bool:
    return RULE in (answer.doc["rules"] or ())


@pytest.mark.parametrize("role", ["view", "edit", "admin"])
async def test_a_role_with_a_label_joins_those_that_gather_it(api: Api, role: str) -> None:
    """What view gathers edit gathers, and what edit gathers admin does."""
    label = {"rbac.authorization.k8s.io/aggregate-to-view": "true"}
    assert (await api.post(ROLES, labelled("harbours", **label))).code == 201
    before = await api.until(f"{ROLES}/{role}", has)
    assert {"configmaps"} <= {name for rule in before.doc["rules"] for name in rule["resources"]}
    await api.delete(f"{ROLES}/harbours")
    await api.until(f"{ROLES}/{role}", lambda answer: not has(answer))


async def test_who_may_is_asked_of_what_was_gathered(api: Api) -> None:
    await api.post(ROLES, labelled("harbours", **{"rbac.authorization.k8s.io/aggregate-to-edit": "true"}))
    binding = {
        "metadata": {"name": "bob"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "admin"},
        "subjects": [{"kind": "User", "name": "bob"}],
    }
    await api.post("/apis/rbac.authorization.k8s.io/v1/namespaces/default/rolebindings", binding)
    harbours = "/apis/ports.example.com/v1/namespaces/{}/harbours/one"
    bob = api.as_("bob")
    await bob.until(harbours.format("default"), lambda answer: answer.code == 404)
    assert (await bob.get(harbours.format("kube-system"))).code == 403
    await api.merge(
        f"{ROLES}/harbours", {"metadata": {"labels": {"rbac.authorization.k8s.io/aggregate-to-edit": None}}}
    )
    await bob.until(harbours.format("default"), lambda answer: answer.code == 403)


async def test_what_is_written_into_a_gathering_role_by_hand_does_not_last(api: Api) -> None:
    before = (await api.get(f"{ROLES}/view")).doc["rules"]
    written = await api.merge(f"{ROLES}/view", {"rules": [RULE]})
    assert written.doc["rules"] == [RULE]
    await api.until(f"{ROLES}/view", lambda answer: bool(answer.doc["rules"] == before))


async def test_a_role_of_ones_own_gathers_by_its_selectors(api: Api) -> None:
    own = {
        "metadata": {"name": "pilots"},
        "aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {"for": "pilots"}}]},
        "rules": [],
    }
    await api.post(ROLES, own)
    await api.post(ROLES, labelled("harbours", **{"for": "pilots"}))
    found = await api.until(f"{ROLES}/pilots", has)
    assert found.doc["rules"] == [RULE]


async def test_a_server_that_starts_gathers_what_was_labelled_before() -> None:
    store = MemoryStore()
    async with running(store=store, keep_store=True) as api:
        await api.server.stop()
        await api.post(ROLES, labelled("harbours", **{"rbac.authorization.k8s.io/aggregate-to-admin": "true"}))
        assert not has(await api.get(f"{ROLES}/admin"))
    async with running(store=store) as api:
        await api.until(f"{ROLES}/admin", has)


async def test_roles_that_gather_each_other_come_to_rest(api: Api) -> None:
    def gathering(name: str, *others: str) -> dict[str, Any]:
        selectors = [{"matchLabels": {"is": other}} for other in others]
        metadata = {"name": name, "labels": {"is": name}}
        return {"metadata": metadata, "aggregationRule": {"clusterRoleSelectors": selectors}, "rules": []}

    def rule(group: str) -> dict[str, Any]:
        return {"apiGroups": [group], "resources": ["harbours"], "verbs": ["get"]}

    for name in ("c", "d"):
        await api.post(ROLES, {"metadata": {"name": name, "labels": {"is": name}}, "rules": [rule(name)]})
    await api.post(ROLES, gathering("a", "b", "c"))
    await api.post(ROLES, gathering("b", "a", "d"))
    for name in ("a", "b"):
        await api.until(f"{ROLES}/{name}", lambda answer: len(answer.doc["rules"] or ()) == 2)
    before = await api.server.roles.gather()
    assert await api.server.roles.gather() == before


async def test_a_store_that_fails_once_does_not_end_the_gathering(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    failed = asyncio.Event()
    modify = api.server.acts.modify

    async def fails_once(*given: Any, **named: Any) -> Any:
        if not failed.is_set():
            failed.set()
            raise Unavailable("the disk is full")
        return await modify(*given, **named)

    monkeypatch.setattr(api.server.acts, "modify", fails_once)
    await api.post(ROLES, labelled("harbours", **{"rbac.authorization.k8s.io/aggregate-to-view": "true"}))
    await failed.wait()
    await api.until(f"{ROLES}/view", has)
