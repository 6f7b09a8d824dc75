"""What becomes of others when a project is deleted."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from tests.hub.served.conftest import HUB, INFRA, Home, addon, project
from trimtab.client.protocol import Named, Ref
from trimtab.client.transport import Call
from trimtab.model.errors import StatusError
from trimtab.model.scheme import Untyped

PROJECT, ADDON = Named(HUB, "Project"), Named(INFRA, "Addon")
ADDONS = "/apis/infra.trimtab.dev/v3/namespaces/shop/addons"


def _inside(name: str) -> dict[str, Any]:
    return {**addon(), "metadata": {"name": name, "namespace": "shop"}}


async def _get(home: Home, path: str, **query: str) -> dict[str, Any]:
    answer = await home.client.transport.call(Call(method="GET", path=path, query=query))
    found: dict[str, Any] = orjson.loads(answer.body)
    return found


@pytest.mark.row(9)
async def test_what_was_shared_with_a_project_that_is_gone_lives_on_and_is_not_shared_with_another_of_its_name(
    home: Home,
) -> None:
    for name in ("shop", "team"):
        await home.apply(project(name))
    sharing = {"enabled": True, "projects": [{"name": "shop"}, {"name": "team"}]}
    shared = await home.apply({**addon(), "spec": {**addon()["spec"], "sharing": sharing}})
    await home.client.delete(Ref(PROJECT, "shop"))
    left = (await home.client.get(ADDON, "nginx", "default")).raw
    assert left["spec"]["sharing"] == {"enabled": True, "projects": [{"name": "team"}]}
    assert left["metadata"]["generation"] == shared["metadata"]["generation"] + 1
    await home.client.patch(Untyped(left), Untyped({**left, "metadata": {**left["metadata"], "labels": {"a": "b"}}}))
    await home.client.delete(Ref(PROJECT, "team"))
    left = (await home.client.get(ADDON, "nginx", "default")).raw
    assert left["spec"]["sharing"] == {"enabled": False}
    await home.apply(project("shop"))
    left = (await home.client.get(ADDON, "nginx", "default")).raw
    assert left["spec"]["sharing"] == {"enabled": False}
    await home.client.delete(Ref(ADDON, "nginx", "default"))


async def test_nothing_is_made_in_a_project_that_is_being_deleted(home: Home) -> None:
    made = project("shop")
    made["metadata"]["finalizers"] = ["tests.trimtab.dev/hold"]
    await home.apply(made)
    await home.apply(_inside("early"))
    await home.client.delete(Ref(PROJECT, "shop"))
    for tried in (True, False):
        with pytest.raises(StatusError, match="the project shop is being deleted: nothing new is made in it"):
            await home.apply(_inside("late"), dry_run=tried)
    changed = {**_inside("early"), "spec": {**addon()["spec"], "namespace": "other"}}
    assert (await home.apply(changed))["spec"]["namespace"] == "other"
    await home.client.delete(Ref(ADDON, "early", "shop"))


async def test_a_list_goes_on_when_its_project_is_gone_or_made_anew(home: Home) -> None:
    await home.apply(project("shop"))
    for number in range(6):
        await home.apply(_inside(f"n{number}"))
    page = await _get(home, ADDONS, limit="2")
    at, token = page["metadata"]["resourceVersion"], page["metadata"]["continue"]
    for number in range(6):
        await home.client.delete(Ref(ADDON, f"n{number}", "shop"))
    await home.client.delete(Ref(PROJECT, "shop"))
    for _ in ("gone", "made anew"):
        rest = await _get(home, ADDONS, limit="50", **{"continue": token})
        assert [item["metadata"]["name"] for item in rest["items"]] == ["n2", "n3", "n4", "n5"]
        then = await _get(home, ADDONS, resourceVersion=at, resourceVersionMatch="Exact")
        assert len(then["items"]) == 6
        await home.apply(project("shop"))
    assert (await _get(home, ADDONS))["items"] == []
