"""One list-watch for each kind and scope, on both servers."""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pytest

from tests.runtime.widgets import PATIENCE, Seen, Tap, define, logged, tapped, until_gone
from trimtab.client.api import ApiClient
from trimtab.client.protocol import Named, Query, Ref
from trimtab.client.transport import Unreachable
from trimtab.model.clock import SystemClock
from trimtab.model.crd import crd
from trimtab.model.kubernetes import ConfigMap
from trimtab.model.objectmeta import ObjectMeta
from trimtab.model.resource import Resource, Spec
from trimtab.model.scheme import Untyped
from trimtab.runtime.changes import Change
from trimtab.runtime.index import Index
from trimtab.runtime.informers import Informers
from trimtab.testing.clock import FakeClock


class LateSpec(Spec):
    size: int = 1


class Late(Resource, group="late.example.com", version="v1", plural="lates"):
    """A kind that is not always there."""

    spec: LateSpec = LateSpec()


class Hurried(SystemClock):
    """Sleeps a hundredth of what it is asked for."""

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds / 100)


@contextlib.asynccontextmanager
async def informers_of(client: ApiClient) -> AsyncIterator[tuple[Informers, Tap]]:
    reached, tap = tapped(client)
    informers = Informers(reached, clock=Hurried(), chance=random.Random(1))
    try:
        yield informers, tap
    finally:
        async with asyncio.timeout(PATIENCE):
            await informers.close()


def told(change: Change) -> tuple[str, bool, bool, bool]:
    return change.request.name, change.before is not None, change.after is not None, change.initial


async def make(client: ApiClient, namespace: str, name: str, **metadata: Any) -> Any:
    return await client.create(ConfigMap(metadata=ObjectMeta(name=name, namespace=namespace, **metadata)))


async def test_whoever_follows_a_kind_shares_one_list_watch(client: ApiClient, namespace: str) -> None:
    one: Seen[Change] = Seen()
    other: Seen[Change] = Seen()
    async with informers_of(client) as (informers, tap):
        first = informers.subscribe(ConfigMap, Query(namespace=namespace), one.append)
        assert informers.subscribe(ConfigMap, Query(namespace=namespace), other.append) is first
        await first.synced.wait()
        await make(client, namespace, "a")
        await one.until(lambda seen: "a" in {c.request.name for c in seen})
        await other.until(lambda seen: "a" in {c.request.name for c in seen})
    assert len(tap.watches("configmaps")) == 1
    assert tap.reads("configmaps") == []


async def test_a_kind_by_its_names_and_by_its_class_is_one_kind(client: ApiClient, namespace: str) -> None:
    async with informers_of(client) as (informers, _):
        first = informers.subscribe(ConfigMap, Query(namespace=namespace), lambda change: None)
        second = informers.subscribe(Named("v1", "ConfigMap"), Query(namespace=namespace), lambda change: None)
        assert first is second


async def test_who_joins_late_is_told_what_is_there_and_then_what_comes(client: ApiClient, namespace: str) -> None:
    await make(client, namespace, "old")
    late: Seen[Change] = Seen()
    async with informers_of(client) as (informers, _):
        informer = informers.subscribe(
            ConfigMap, Query(namespace=namespace, fields="metadata.name!=kube-root-ca.crt"), lambda change: None
        )
        await informer.synced.wait()
        informers.subscribe(informer.kind, informer.query, late.append)
        assert [told(change) for change in late] == [("old", False, True, True)]
        await make(client, namespace, "new")
        await client.delete(Ref(ConfigMap, "old", namespace))
        await late.reach(3)
    assert [told(change) for change in late][1:] == [("new", False, True, False), ("old", True, False, False)]


async def test_an_informer_ends_with_its_last_subscriber(client: ApiClient, namespace: str) -> None:
    def one(change: Change) -> None: ...
    def other(change: Change) -> None: ...

    async with informers_of(client) as (informers, tap):
        before = len(asyncio.all_tasks())
        informer = informers.subscribe(ConfigMap, Query(namespace=namespace), one)
        informers.subscribe(ConfigMap, Query(namespace=namespace), other)
        await informer.synced.wait()
        await informers.unsubscribe(informer, one)
        assert list(informers) == [informer]
        await informers.unsubscribe(informer, other)
        assert list(informers) == []
        assert informers.following(ConfigMap) == ()
        assert len([t for t in asyncio.all_tasks() if t.get_name().startswith("informer")]) == 0
        assert len(asyncio.all_tasks()) <= before + 1, "the server may have a task of its own"
        again = informers.subscribe(ConfigMap, Query(namespace=namespace), one)
        assert again is not informer
        await again.synced.wait()
    assert len(tap.watches("configmaps")) == 2


async def test_a_handler_that_fails_disturbs_neither_the_watch_nor_the_others(
    client: ApiClient, namespace: str
) -> None:
    seen: Seen[Change] = Seen()

    def fails(change: Change) -> None:
        raise KeyError("mistake")

    async with informers_of(client) as (informers, _):
        with logged() as logs:
            informer = informers.subscribe(ConfigMap, Query(namespace=namespace), fails)
            informers.subscribe(ConfigMap, Query(namespace=namespace), seen.append)
            await informer.synced.wait()
            await make(client, namespace, "a")
            await make(client, namespace, "b")
            await seen.until(lambda told: {"a", "b"} <= {c.request.name for c in told})
    failures = [line for line in logs if line["event"] == "a handler failed on a change"]
    assert {line["object"] for line in failures} >= {f"{namespace}/a", f"{namespace}/b"}


async def test_an_index_that_fails_on_an_object_leaves_that_one_out(client: ApiClient, namespace: str) -> None:
    def keys(found: ConfigMap) -> list[str]:
        labels: Any = found.metadata.labels
        return [labels["app"]]

    await make(client, namespace, "bad")
    await make(client, namespace, "good", labels={"app": "web"})
    async with informers_of(client) as (informers, _):
        with logged() as logs:
            informer = informers.subscribe(
                ConfigMap, Query(namespace=namespace), lambda change: None, (Index("app", keys),)
            )
            await informer.synced.wait()
            assert [request.name for request in informers.indexed(ConfigMap, "app", "web")] == ["good"]
    assert f"{namespace}/bad" in {line["object"] for line in logs if line["event"] == "an index failed on an object"}


async def test_two_indexes_of_one_name_are_refused_and_nothing_is_left_behind(
    client: ApiClient, namespace: str
) -> None:
    async with informers_of(client) as (informers, _):
        with pytest.raises(ValueError, match="another index"):
            informers.subscribe(
                ConfigMap, Query(), lambda change: None, (Index("x", lambda o: []), Index("x", lambda o: ["y"]))
            )
        assert list(informers) == []


async def test_scopes_are_followed_each_by_itself(client: ApiClient, namespace: str) -> None:
    wide: Seen[Change] = Seen()
    web: Seen[Change] = Seen()
    async with informers_of(client) as (informers, _):
        informers.subscribe(ConfigMap, Query(namespace=namespace), wide.append)
        narrow = informers.subscribe(ConfigMap, Query(namespace=namespace, labels="app=web"), web.append)
        await narrow.synced.wait()
        made = await make(client, namespace, "a", labels={"app": "web"})
        await make(client, namespace, "b")
        await wide.until(lambda seen: "b" in {c.request.name for c in seen})
        await web.reach(1)
        metadata = msgspec.structs.replace(made.metadata, labels={"app": "db"})
        await client.patch(made, made.replace(metadata=metadata))
        await web.reach(2)
        assert [told(change)[:3] for change in web] == [("a", False, True), ("a", True, False)]
        assert [i.query.labels for i in informers.of(ConfigMap)] == ["", "app=web"], "the widest first"


async def test_metadata_alone_is_kept_where_that_is_asked_for(client: ApiClient, namespace: str) -> None:
    metadata = ObjectMeta(name="big", namespace=namespace, labels={"app": "web"})
    await client.create(ConfigMap(metadata=metadata, data={"x": "y" * 1000}))
    seen: Seen[Change] = Seen()
    async with informers_of(client) as (informers, _):
        query = Query(namespace=namespace, labels="app=web", metadata_only=True)
        informers.subscribe(ConfigMap, query, seen.append)
        await seen.reach(1)
    (change,) = seen
    assert isinstance(change.new, Untyped)
    assert change.new.metadata.labels == {"app": "web"}
    assert change.after is not None
    assert b"yyy" not in change.after.body


async def test_a_kind_may_come_later_go_and_come_again(client: ApiClient, namespace: str) -> None:
    seen: Seen[Change] = Seen()
    definition = Ref(Named("apiextensions.k8s.io/v1", "CustomResourceDefinition"), crd(Late)["metadata"]["name"])
    client.scheme.register(Late)
    async with informers_of(client) as (informers, _):
        informer = informers.subscribe(Late, Query(), seen.append)
        await define(client, Late)
        await client.create(Late(metadata=ObjectMeta(name="a", namespace=namespace)))
        await seen.reach(1)
        await client.delete(definition)
        await until_gone(client, definition.kind, definition.name, "")
        await define(client, Late)
        await client.create(Late(metadata=ObjectMeta(name="b", namespace=namespace)))
        await seen.until(lambda told: "b" in {c.request.name for c in told})
        gone = [change.request.name for change in seen if change.after is None]
        assert gone == ["a"], "told when the kind is served again at the latest"
        assert [entry.name for entry in informer.cache.entries()] == ["b"]
        await client.delete(definition)


async def test_a_mistake_of_our_own_is_told_to_who_supervises(client: ApiClient, namespace: str) -> None:
    async with informers_of(client) as (informers, tap):
        informer = informers.subscribe(ConfigMap, Query(namespace=namespace), lambda change: None)
        await informer.synced.wait()
        tap.mistake = AssertionError("a bug")
        await make(client, namespace, "a")
        with pytest.raises(AssertionError, match="a bug"):
            async with asyncio.timeout(PATIENCE):
                await informers.supervise()


async def test_a_cache_is_stale_while_its_watch_keeps_failing(client: ApiClient, namespace: str) -> None:
    clock = FakeClock()
    informers = Informers(client, clock=clock, chance=random.Random(1))
    informer = informers.subscribe(ConfigMap, Query(namespace=namespace), lambda change: None)
    await informer.synced.wait()
    await informers.close()  # the real watch would say at any time that all is well
    informer._failed(Unreachable("the server does not answer"), 0.1)
    assert informer.stale == "", "what passes at once is no news"
    await clock.advance(31)
    informer._failed(Unreachable("the server does not answer"), 30.0)
    assert informer.stale == "ConfigMap: the server does not answer"
    await clock.advance(76)
    assert informer.stale == "", "it has not failed again"
