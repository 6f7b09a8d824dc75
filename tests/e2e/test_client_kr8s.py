"""kr8s, the asynchronous client with kubectl's habits."""

import contextlib
from collections.abc import AsyncIterator

import kr8s.asyncio
import pytest
from kr8s.asyncio.objects import ConfigMap, Deployment, Namespace, new_class

from trimtab.testing.embedded import TrimtabServer

Beacon = new_class(kind="Beacon", version="ground.example.com/v1", namespaced=True)


@pytest.fixture
async def api(ground: TrimtabServer, namespace: str) -> AsyncIterator[kr8s.asyncio.Api]:
    api = await kr8s.asyncio.api(kubeconfig=str(ground.kubeconfig), namespace=namespace)
    await (await Namespace({"metadata": {"name": namespace}}, api=api)).create()
    yield api
    assert api._session is not None
    await api._session.aclose()  # it has no public way to close


async def test_objects_are_created_patched_labelled_and_deleted(api: kr8s.asyncio.Api, namespace: str) -> None:
    words = await ConfigMap({"metadata": {"name": "words", "namespace": namespace}, "data": {"a": "1"}}, api=api)
    await words.create()
    await words.patch({"data": {"b": "2"}})
    await words.label({"fleet": "one"})
    await words.refresh()
    assert (dict(words.data), dict(words.labels)) == ({"a": "1", "b": "2"}, {"fleet": "one"})
    await words.delete()
    assert not await words.exists()


async def test_custom_kinds_are_listed_by_selectors(api: kr8s.asyncio.Api, namespace: str) -> None:
    for name, site in [("north", "cape"), ("south", "reef")]:
        labels = {"site": site}
        metadata = {"name": name, "namespace": namespace, "labels": labels}
        await (await Beacon({"metadata": metadata, "spec": {"site": site}}, api=api)).create()
    by_label = [each.name async for each in api.get("beacons", namespace=namespace, label_selector={"site": "cape"})]
    by_field = [each.name async for each in api.get("beacons", namespace=namespace, field_selector="spec.site=reef")]
    assert (by_label, by_field) == (["north"], ["south"])


async def test_wait_ends_when_the_condition_holds(api: kr8s.asyncio.Api, namespace: str) -> None:
    north = await Beacon({"metadata": {"name": "north", "namespace": namespace}, "spec": {"site": "cape"}}, api=api)
    await north.create()
    await north.patch({"status": {"conditions": [{"type": "Ready", "status": "True"}]}}, subresource="status")
    await north.wait("condition=Ready", timeout=10)


async def test_a_deployment_is_scaled(api: kr8s.asyncio.Api, namespace: str) -> None:
    labels = {"app": "web"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "web", "image": "web:1"}]}}
    spec = {"replicas": 1, "selector": {"matchLabels": labels}, "template": template}
    web = await Deployment({"metadata": {"name": "web", "namespace": namespace}, "spec": spec}, api=api)
    await web.create()
    await web.patch({"spec": {"replicas": 3}}, subresource="scale")
    await web.refresh()
    assert web.replicas == 3


async def test_a_watch_sees_what_happens(api: kr8s.asyncio.Api, namespace: str) -> None:
    words = await ConfigMap({"metadata": {"name": "words", "namespace": namespace, "labels": {"w": "1"}}}, api=api)
    await words.create()
    seen = []
    async with contextlib.aclosing(api.watch("configmaps", namespace=namespace, label_selector="w=1")) as events:
        async for event, item in events:
            seen.append((event, item.name))
            if event == "ADDED":
                await words.delete()
            if event == "DELETED":
                break
    assert seen == [("ADDED", "words"), ("DELETED", "words")]
