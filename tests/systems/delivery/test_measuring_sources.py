"""Which source has the metrics, and that it is made once."""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator

import pytest
from aiohttp import web

from tests.runtime.conftest import client, namespace, scheme
from tests.systems.delivery.measuring_kit import answering, at
from trimtab.client.api import ApiClient
from trimtab.client.protocol import Ref
from trimtab.model.kubernetes import ConfigMap, Secret
from trimtab.model.objectmeta import ObjectMeta
from trimtab.model.scheme import Untyped
from trimtab.systems.delivery.kinds.analysis import Prometheus, SecretReference
from trimtab.systems.delivery.measuring.contract import SourceError
from trimtab.systems.delivery.measuring.scraping import ScrapeSource
from trimtab.systems.delivery.measuring.sources import Sources
from trimtab.testing.clock import FakeClock

__all__ = ["client", "namespace", "scheme"]

ADDRESS = "http://127.0.0.1:1"
GUARDED = Prometheus(address=ADDRESS, secret_ref=SecretReference(name="login"))


@pytest.fixture
async def sources(client: ApiClient) -> AsyncIterator[Sources]:
    async with Sources(client) as made:
        yield made


async def secret(client: ApiClient, namespace: str, **values: str) -> None:
    data = {key: base64.b64encode(value.encode()).decode() for key, value in values.items()}
    document = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "login", "namespace": namespace}}
    await client.apply(Untyped({**document, "data": data}), manager="tests")


@pytest.fixture
async def system(client: ApiClient) -> AsyncIterator[ApiClient]:
    """The client, with the namespace of the system there; nothing of it stays."""
    home = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "trimtab-system"}}
    await client.apply(Untyped(home), manager="tests")
    yield client
    try:
        await client.delete(Ref(ConfigMap, "data-plane", "trimtab-system"))
    except Exception as error:
        if getattr(error, "code", 0) != 404:
            raise


async def data_plane(client: ApiClient, **data: str) -> None:
    metadata = {"name": "data-plane", "namespace": "trimtab-system"}
    document = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}
    await client.apply(Untyped(document), manager="tests")


async def test_all_who_mean_the_same_prometheus_share_it(sources: Sources) -> None:
    one = await sources.source("a", Prometheus(address=ADDRESS))
    assert await sources.source("b", Prometheus(address=ADDRESS)) is one
    assert await sources.source("a", Prometheus(address="http://127.0.0.1:2")) is not one


async def test_who_names_none_gets_the_default(client: ApiClient) -> None:
    async with Sources(client, default=ADDRESS) as sources:
        assert repr(await sources.source("a")) == "PrometheusSource(127.0.0.1:1)"
        other = await sources.source("a", Prometheus(address="http://127.0.0.1:2"))
        assert repr(other) == "PrometheusSource(127.0.0.1:2)"


async def test_without_any_there_are_no_metrics(sources: Sources, system: ApiClient) -> None:
    with pytest.raises(SourceError, match=r"set analysis\.prometheus\.address or --prometheus"):
        await sources.source("a")
    await data_plane(system, other="x")
    with pytest.raises(SourceError, match=r"set analysis\.prometheus\.address or --prometheus"):
        await sources.source("a")


async def test_without_any_the_data_plane_is_scraped_by_one_for_all(sources: Sources, system: ApiClient) -> None:
    await data_plane(system, metrics="http://127.0.0.1:1/metrics")
    one = await sources.source("a", window=60)
    assert isinstance(one, ScrapeSource)
    assert one._task is not None
    assert await sources.source("b") is one
    await data_plane(system, metrics="http://127.0.0.1:2/metrics")
    moved = await sources.source("a")
    assert isinstance(moved, ScrapeSource)
    assert moved is not one


async def test_a_login_is_sent_and_a_renewed_one_too(client: ApiClient, namespace: str) -> None:
    seen: list[str] = []

    async def answer(request: web.Request) -> web.Response:
        seen.append(request.headers.get("Authorization", ""))
        return web.json_response({"status": "success", "data": {"resultType": "vector", "result": []}})

    async with answering(answer) as url, Sources(client) as sources:
        guarded = Prometheus(address=url, secret_ref=SecretReference(name="login"))
        await secret(client, namespace, token="one")
        first = await sources.source(namespace, guarded)
        assert await sources.source(namespace, guarded) is first
        assert await first.query("up", at(0)) == ()
        await secret(client, namespace, token="two")
        second = await sources.source(namespace, guarded)
        assert await first.query("up", at(0)) == ()  # who has it may still use it
        assert await second.query("up", at(0)) == ()
    assert seen == ["Bearer one", "Bearer one", "Bearer two"]


async def test_a_login_is_of_its_namespace_only(sources: Sources, client: ApiClient, namespace: str) -> None:
    await secret(client, namespace, token="one")
    guarded = await sources.source(namespace, GUARDED)
    assert await sources.source(namespace, Prometheus(address=ADDRESS)) is not guarded
    with pytest.raises(SourceError, match="Secret elsewhere/login does not exist"):
        await sources.source("elsewhere", GUARDED)


async def test_a_secret_without_a_login_is_an_error(sources: Sources, client: ApiClient, namespace: str) -> None:
    await secret(client, namespace, other="hunter2")
    with pytest.raises(SourceError, match=r"has neither token nor username and password nor ca\.crt") as raised:
        await sources.source(namespace, GUARDED)
    assert "hunter2" not in str(raised.value)


async def test_an_address_that_cannot_be_used_is_an_error(sources: Sources) -> None:
    with pytest.raises(SourceError, match="no http or https URL"):
        await sources.source("a", Prometheus(address="prometheus"))


async def test_one_that_nobody_asks_for_is_let_go(client: ApiClient) -> None:
    clock = FakeClock()
    async with Sources(client, clock=clock) as sources:
        one = await sources.source("a", Prometheus(address=ADDRESS))
        await clock.advance(600)
        assert await sources.source("a", Prometheus(address=ADDRESS)) is one
        await clock.advance(901)
        await sources.source("a", Prometheus(address="http://127.0.0.1:2"))
        assert len(sources._held) == 1
        assert len(sources._leaving) == 1
        await clock.advance(11)
        assert not sources._leaving


async def test_a_secret_is_read_as_it_is(client: ApiClient, namespace: str, sources: Sources) -> None:
    metadata = ObjectMeta(name="login", namespace=namespace)
    await client.create(Secret(metadata=metadata, string_data={"username": "me", "password": "x"}))
    held = await sources.source(namespace, GUARDED)
    assert repr(held) == "PrometheusSource(127.0.0.1:1)"
