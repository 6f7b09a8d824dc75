"""What a controller's client reads: its own writes at once, the cache where it covers, the server for the rest."""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import AsyncIterator

import msgspec
import pytest
from msgspec import UNSET

from tests.runtime.widgets import PATIENCE, Tap, running, tapped, until
from trimtab.client.api import ApiClient
from trimtab.client.protocol import Named, Query, Ref
from trimtab.model.clock import SystemClock
from trimtab.model.errors import StatusError
from trimtab.model.kubernetes import ConfigMap, Namespace
from trimtab.model.objectmeta import ObjectMeta
from trimtab.model.scheme import Untyped
from trimtab.runtime.cached import CachedClient, covers
from trimtab.runtime.changes import Change, Request
from trimtab.runtime.controller import Controller
from trimtab.runtime.index import Index
from trimtab.runtime.informers import Informers
from trimtab.runtime.manager import Manager

HELD = "runtime.example.com/held"
ANY = Query()


def ignored(change: Change) -> None: ...


class Reach:
    """A cached client, and what it does on the wire."""

    def __init__(self, cached: CachedClient, informers: Informers, tap: Tap) -> None:
        self.cached, self.informers, self.tap = cached, informers, tap

    async def follow(self, query: Query, *indexes: Index) -> None:
        informer = self.informers.subscribe(ConfigMap, query, ignored, indexes)
        async with asyncio.timeout(PATIENCE):
            await informer.synced.wait()
        self.tap.calls.clear()

    def stick(self) -> None:
        """From now on the watch brings nothing."""
        self.tap.flowing.clear()


@pytest.fixture
async def reach(client: ApiClient) -> AsyncIterator[Reach]:
    reached, tap = tapped(client)
    informers = Informers(reached, clock=SystemClock(), chance=random.Random(1))
    yield Reach(CachedClient(reached, informers), informers, tap)
    await informers.close()


def made(namespace: str, name: str, **metadata: object) -> ConfigMap:
    return ConfigMap(metadata=ObjectMeta(name=name, namespace=namespace, **metadata))  # type: ignore[arg-type]


async def test_everything_written_is_read_at_once_while_the_watch_is_stuck(reach: Reach, namespace: str) -> None:
    cached = reach.cached
    await reach.follow(Query(namespace=namespace))
    reach.stick()
    created = await cached.create(made(namespace, "a"))
    assert await cached.find(ConfigMap, "a", namespace) == created
    patched = await cached.patch(created, created.replace(data={"x": "1"}))
    assert (await cached.get(ConfigMap, "a", namespace)).data == {"x": "1"} == patched.data
    await cached.apply(made(namespace, "a").replace(data={"y": "2"}), manager="test")
    assert (await cached.get(ConfigMap, "a", namespace)).data == {"x": "1", "y": "2"}
    named = await cached.create(ConfigMap(metadata=ObjectMeta(generate_name="many-", namespace=namespace)))
    assert await cached.find(ConfigMap, named.name, namespace) == named
    assert {"a", named.name} <= {
        found.name for found in (await cached.list(ConfigMap, Query(namespace=namespace))).items
    }
    await cached.delete(Ref(ConfigMap, "a", namespace))
    assert await cached.find(ConfigMap, "a", namespace) is None
    again = await cached.create(made(namespace, "a"))
    assert (await cached.get(ConfigMap, "a", namespace)).metadata.uid == again.metadata.uid
    assert reach.tap.reads("configmaps") == [], "all of it came from the cache"


async def test_a_look_brings_what_others_wrote_while_the_watch_is_stuck(
    reach: Reach, client: ApiClient, namespace: str
) -> None:
    """The write whose answer was lost is another's, for all we know."""
    await client.create(made(namespace, "a"))
    await reach.follow(Query(namespace=namespace))
    reach.stick()
    known = await client.get(ConfigMap, "a", namespace)
    await client.patch(known, known.replace(data={"x": "1"}))
    assert not (await reach.cached.get(ConfigMap, "a", namespace)).data, "nobody has told it"
    await reach.cached.look(ConfigMap, "a", namespace)
    assert (await reach.cached.get(ConfigMap, "a", namespace)).data == {"x": "1"}
    await reach.cached.look(ConfigMap, "none", namespace)
    assert await reach.cached.find(ConfigMap, "none", namespace) is None


async def test_what_finalizers_hold_is_seen_as_being_deleted_until_they_go(reach: Reach, namespace: str) -> None:
    cached = reach.cached
    await reach.follow(Query(namespace=namespace))
    reach.stick()
    await cached.create(made(namespace, "a", finalizers=(HELD,)))
    left = await cached.delete(Ref(ConfigMap, "a", namespace))
    assert left is not None
    found = await cached.get(ConfigMap, "a", namespace)
    assert found.metadata.deletion_timestamp is not UNSET
    await cached.patch(found, found.replace(metadata=msgspec.structs.replace(found.metadata, finalizers=())))
    assert await cached.find(ConfigMap, "a", namespace) is None
    assert reach.tap.reads("configmaps") == []


async def test_a_write_is_read_also_when_the_cache_filled_meanwhile(reach: Reach, namespace: str) -> None:
    """The first list may be older than the write."""
    informer = reach.informers.subscribe(ConfigMap, Query(namespace=namespace), ignored)
    reach.stick()
    await until(lambda: reach.tap.watches("configmaps"))
    created = await reach.cached.create(made(namespace, "a"))
    patched = await reach.cached.patch(created, created.replace(data={"x": "1"}))
    reach.tap.flowing.set()
    async with asyncio.timeout(PATIENCE):
        await informer.synced.wait()
    found = await reach.cached.get(ConfigMap, "a", namespace)
    assert found.metadata.resource_version == patched.metadata.resource_version


async def test_a_dry_run_is_not_seen(reach: Reach, namespace: str) -> None:
    await reach.follow(Query(namespace=namespace))
    created = await reach.cached.create(made(namespace, "a"))
    await reach.cached.create(made(namespace, "b"), dry_run=True)
    await reach.cached.patch(created, created.replace(data={"x": "1"}), dry_run=True)
    await reach.cached.delete(Ref(ConfigMap, "a", namespace), dry_run=True)
    assert await reach.cached.find(ConfigMap, "b", namespace) is None
    assert (await reach.cached.get(ConfigMap, "a", namespace)).data is UNSET


async def test_an_index_finds_our_own_writes(reach: Reach, namespace: str) -> None:
    index = Index("colour", lambda found: [found.data["colour"]] if found.data else [])
    await reach.follow(Query(namespace=namespace), index)
    reach.stick()
    for name, colour in (("a", "red"), ("b", "blue"), ("c", "red")):
        await reach.cached.create(made(namespace, name).replace(data={"colour": colour}))
    await reach.cached.delete(Ref(ConfigMap, "c", namespace))
    assert [found.name for found in await reach.cached.indexed(ConfigMap, "colour", "red")] == ["a"]
    with pytest.raises(LookupError, match='ConfigMap has no filled index "taste"'):
        await reach.cached.indexed(ConfigMap, "taste", "sweet")


async def test_what_is_not_there_is_the_servers_404(reach: Reach, client: ApiClient, namespace: str) -> None:
    await reach.follow(Query(namespace=namespace))
    with pytest.raises(StatusError) as from_cache:
        await reach.cached.get(ConfigMap, "nothing", namespace)
    with pytest.raises(StatusError) as from_server:
        await client.get(ConfigMap, "nothing", namespace)
    assert from_cache.value.status() == from_server.value.status()
    assert reach.tap.calls == []


async def test_what_lies_outside_the_scope_is_asked_of_the_server(
    reach: Reach, client: ApiClient, namespace: str
) -> None:
    await client.create(made("default", f"outside-{namespace}"))
    await client.create(made(namespace, "plain"))
    await reach.follow(Query(namespace=namespace, labels="app=web"))
    assert await reach.cached.find(ConfigMap, f"outside-{namespace}", "default") is not None
    assert await reach.cached.find(ConfigMap, "plain", namespace) is not None
    assert "plain" in {found.name for found in (await reach.cached.list(ConfigMap, Query(namespace=namespace))).items}
    assert await reach.cached.find(Namespace, namespace) is not None
    assert len(reach.tap.reads("namespaces")) == 4


async def test_a_write_that_leaves_the_scope_is_read_from_the_server(reach: Reach, namespace: str) -> None:
    await reach.follow(Query(namespace=namespace, labels="app=web"))
    reach.stick()
    created = await reach.cached.create(made(namespace, "a", labels={"app": "web"}))
    metadata = msgspec.structs.replace(created.metadata, labels={"app": "db"})
    await reach.cached.patch(created, created.replace(metadata=metadata))
    assert (await reach.cached.list(ConfigMap, Query(namespace=namespace, labels="app=web"))).items == []
    assert (await reach.cached.get(ConfigMap, "a", namespace)).metadata.labels == {"app": "db"}
    assert len(reach.tap.reads("configmaps")) == 1


async def test_a_list_from_the_cache_is_selected_as_the_server_would(
    reach: Reach, client: ApiClient, namespace: str
) -> None:
    for name, app in (("a", "web"), ("b", "db"), ("c", "web")):
        await client.create(made(namespace, name, labels={"app": app}))
    await reach.follow(Query(namespace=namespace))
    for query in (
        Query(namespace=namespace, labels="app=web"),
        Query(namespace=namespace, labels="app in (db,x),app!=web"),
        Query(namespace=namespace, fields="metadata.name=b"),
        Query(namespace=namespace, fields="metadata.name!=b", labels="app"),
        Query(namespace=namespace),
    ):
        names = sorted(found.name for found in (await reach.cached.list(ConfigMap, query)).items)
        assert names == sorted(found.name for found in (await client.list(ConfigMap, query)).items)
    assert reach.tap.calls == []


async def test_a_cache_of_metadata_is_not_taken_for_the_whole(reach: Reach, client: ApiClient, namespace: str) -> None:
    await client.create(made(namespace, "a").replace(data={"x": "1"}))
    await reach.follow(Query(namespace=namespace, metadata_only=True))
    assert (await reach.cached.get(ConfigMap, "a", namespace)).data == {"x": "1"}
    listed = await reach.cached.list(ConfigMap, Query(namespace=namespace, metadata_only=True))
    assert "a" in {found.name for found in listed.items}
    assert len(reach.tap.reads("configmaps")) == 1


async def test_a_kind_without_a_class_is_cached_like_any_other(reach: Reach, client: ApiClient, namespace: str) -> None:
    secret = Named("v1", "ServiceAccount")
    reached = ApiClient(reach.tap)  # knows no class
    informers = Informers(reached, clock=SystemClock(), chance=random.Random(1))
    cached = CachedClient(reached, informers)
    try:
        await informers.subscribe(secret, Query(namespace=namespace), ignored).synced.wait()
        reach.stick()
        document = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "a", "namespace": namespace}}
        await cached.create(Untyped(document))
        found = await cached.get(secret, "a", namespace)
        assert isinstance(found, Untyped)
        assert found.kind == "ServiceAccount"
        await cached.delete(Ref(secret, "a", namespace))
        assert await cached.find(secret, "a", namespace) is None
    finally:
        await informers.close()


async def test_what_is_read_is_nobody_elses(reach: Reach, namespace: str) -> None:
    await reach.follow(Query(namespace=namespace))
    await reach.cached.create(made(namespace, "a").replace(data={"x": "1"}))
    first = await reach.cached.get(ConfigMap, "a", namespace)
    first.data["x"] = "spoiled"  # type: ignore[index]
    assert (await reach.cached.get(ConfigMap, "a", namespace)).data == {"x": "1"}


async def test_a_read_behind_the_cache_is_the_servers(reach: Reach, namespace: str) -> None:
    await reach.follow(Query(namespace=namespace))
    with contextlib.suppress(StatusError):
        await reach.cached.live.get(ConfigMap, "a", namespace)
    assert len(reach.tap.reads("configmaps")) == 1


@pytest.mark.parametrize(
    ("scope", "asked", "covered"),
    [
        (ANY, ANY, True),
        (ANY, Query(namespace="a"), True),
        (Query(namespace="a"), Query(namespace="a"), True),
        (Query(namespace="a"), ANY, False),
        (Query(namespace="a"), Query(namespace="b"), False),
        (ANY, Query(labels="x=y"), True),
        (Query(labels="x=y"), Query(labels="x=y"), True),
        (Query(labels="x=y"), ANY, False),
        (Query(labels="x=y"), Query(labels="x=z"), False),
        (ANY, Query(fields="metadata.name=a"), True),
        (ANY, Query(fields="spec.nodeName=a"), False),
        (Query(fields="spec.nodeName=a"), Query(fields="spec.nodeName=a"), True),
        (Query(fields="spec.nodeName=a"), ANY, False),
        (Query(metadata_only=True), ANY, False),
        (Query(metadata_only=True), Query(metadata_only=True), True),
        (ANY, Query(metadata_only=True), True),
    ],
)
def test_a_cache_answers_for_what_its_scope_covers(scope: Query, asked: Query, covered: bool) -> None:
    assert covers(scope, asked) is covered


async def test_what_left_the_scope_of_a_controller_is_gone_for_it(client: ApiClient, namespace: str) -> None:
    """Who goes by a label must not touch an object that has lost it, though the server still has the object."""
    seen: asyncio.Queue[bool] = asyncio.Queue()

    class ByLabel(Controller[ConfigMap]):
        query = Query(namespace=namespace, labels="greet")

        async def reconcile(self, request: Request) -> None:
            seen.put_nowait(await self.client.find(ConfigMap, request.name, request.namespace) is not None)

    manager = Manager(client)
    manager.add(ByLabel())
    async with running(manager), asyncio.timeout(30):
        labelled = ObjectMeta(name="one", namespace=namespace, labels={"greet": "World"})
        made = await client.create(ConfigMap(metadata=labelled))
        assert await seen.get() is True
        await client.patch(made, made.replace(metadata=msgspec.structs.replace(made.metadata, labels={})))
        assert await seen.get() is False
