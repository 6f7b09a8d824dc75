"""Kinds of Python classes in several versions, embedded: the server calls the convertors itself."""

from __future__ import annotations

from typing import Any

from tests.model.test_conversion import GROUP, NEW, OLD, berth, berths
from tests.server.api import Api, running
from trimtab.runtime.prepare import definitions
from trimtab.runtime.system import System

BERTHS = f"/apis/{GROUP}/{{}}/namespaces/default/berths"
SYSTEM = System(name="harbour", convertors=(OLD, NEW))


async def defined(api: Api) -> None:
    (definition,) = definitions((SYSTEM,), berths())
    assert (await api.post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition)).code == 201
    await api.until(BERTHS.format("v3"), lambda answer: answer.code == 200)


def named(version: str, **spec: Any) -> dict[str, Any]:
    return berth(version, **spec) | {"metadata": {"name": "a", "namespace": "default"}}


async def test_every_version_is_served_by_the_convertors() -> None:
    async with running(scheme=berths()) as api:
        await defined(api)
        made = await api.post(BERTHS.format("v1"), named("v1", size="2x3"))
        assert (made.code, made.doc["spec"]) == (201, {"size": "2x3", "note": "none"})
        assert (await api.get(BERTHS.format("v2") + "/a")).doc["spec"] == {"width": 2, "depth": 3, "note": "none"}
        changed = await api.merge(BERTHS.format("v3") + "/a", {"spec": {"sides": [4, 5]}})
        assert changed.doc["spec"] == {"sides": [4, 5], "note": "none"}
        listed = (await api.get(BERTHS.format("v1"))).doc["items"]
        assert [item["spec"]["size"] for item in listed] == ["4x5"]


async def test_a_convertor_that_refuses_fails_the_request_with_its_reason() -> None:
    async with running(scheme=berths()) as api:
        await defined(api)
        refused = await api.post(BERTHS.format("v1"), named("v1", size="2"))
        assert (refused.code, refused.doc["message"]) == (
            500,
            f"conversion webhook for {GROUP}/v1, Kind=Berth failed: spec.size: 2 is no area",
        )


async def test_a_server_that_does_not_have_the_convertors_asks_the_service_of_the_system() -> None:
    async with running() as api:
        await defined(api)
        refused = await api.post(BERTHS.format("v1"), named("v1", size="2x3"))
        assert refused.code == 500
        assert 'Post "https://harbour.trimtab-system.svc:443/convert?timeout=30s"' in refused.doc["message"]
