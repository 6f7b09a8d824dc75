"""Snapshots of revisions in both homes: what ran can run again, exactly."""

from __future__ import annotations

import asyncio
import copy
import random
import uuid
from typing import Any

import msgspec
import pytest

from tests.runtime.conftest import client, scheme
from tests.systems.delivery.test_revisions_hashing import LARGE, RARE
from trimtab.client.api import ApiClient
from trimtab.client.protocol import Object, Query, Ref
from trimtab.model.clock import SystemClock
from trimtab.model.errors import StatusError
from trimtab.model.kubernetes import ConfigMap, ControllerRevision, Deployment, Secret
from trimtab.model.objectmeta import ObjectMeta
from trimtab.model.scheme import Scheme, Untyped
from trimtab.runtime.cached import CachedClient
from trimtab.runtime.informers import Informers
from trimtab.runtime.objects import with_metadata
from trimtab.runtime.owners import controller_of
from trimtab.runtime.prepare import prepare
from trimtab.runtime.system import System
from trimtab.systems.delivery.kinds import CanaryDeployment, CanaryDeploymentSpec
from trimtab.systems.delivery.kinds.fields import OWNER, TRACK
from trimtab.systems.delivery.revisions import snapshots
from trimtab.systems.delivery.revisions.configs import ConfigReference, TooManyConfigs, tracked
from trimtab.systems.delivery.revisions.hashing import revision_of, short
from trimtab.systems.delivery.revisions.snapshots import (
    Snapshot,
    SnapshotConflict,
    known_as,
    listed,
    load,
    lost,
    prune,
    save,
)

__all__ = ["client", "scheme"]

TEMPLATE: dict[str, Any] = {
    "metadata": {"labels": {"app": "web"}},
    "spec": {
        "containers": [
            {
                "name": "web",
                "image": "shop/web:1",
                "env": [{"name": "KEY", "valueFrom": {"secretKeyRef": {"name": "keys", "key": "main"}}}],
                "resources": {"limits": {"cpu": 0.5, "memory": "1024Mi"}},
            }
        ],
        "volumes": [{"name": "settings", "configMap": {"name": "settings"}}],
    },
}


class Shop:
    """A namespace with a CanaryDeployment and its configs."""

    def __init__(self, client: ApiClient, namespace: str) -> None:
        self.client = client
        self.namespace = namespace

    async def canary(self, name: str = "web") -> CanaryDeployment:
        spec = CanaryDeploymentSpec(deployment={"template": TEMPLATE}, service={"ports": [{"port": 80}]})
        return await self.client.create(CanaryDeployment(metadata=self.named(name), spec=spec))

    def named(self, name: str, **more: Any) -> ObjectMeta:
        return ObjectMeta(name=name, namespace=self.namespace, **more)

    async def settings(self, mode: str, **more: Any) -> None:
        made = ConfigMap(metadata=self.named("settings", **more), data={"mode": mode})
        await self.client.apply(made, manager="tests", force=True)

    async def keys(self, main: str = "MQ==") -> None:
        made = Secret(metadata=self.named("keys"), type="kubernetes.io/basic-auth", data={"username": main})
        await self.client.apply(made, manager="tests", force=True)

    async def configs(self) -> None:
        await self.settings("fast")
        await self.keys()

    async def save(self, owner: CanaryDeployment, image: str = "shop/web:1", using: Any = None) -> Snapshot:
        template = copy.deepcopy(TEMPLATE)
        template["spec"]["containers"][0]["image"] = image
        found = await tracked(self.client, self.namespace, template)
        return await save(using or self.client, owner, revision_of(template, found.configs), template, found)

    async def copies(self) -> list[ConfigMap | Secret]:
        query = Query(namespace=self.namespace, labels=OWNER)
        maps, secrets = await self.client.list(ConfigMap, query), await self.client.list(Secret, query)
        return [*maps.items, *secrets.items]


@pytest.fixture
async def shop(client: ApiClient, scheme: Scheme) -> Shop:
    scheme.register(CanaryDeployment)
    await prepare(client, (System(name="delivery", kinds=(CanaryDeployment,)),), rights=False)
    name = f"shop-{uuid.uuid4().hex[:12]}"
    await client.create(Untyped({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}))
    return Shop(client, name)


async def test_a_snapshot_keeps_the_template_and_what_was_in_its_configs(shop: Shop) -> None:
    await shop.configs()
    owner = await shop.canary()
    made = await shop.save(owner)
    await shop.settings("slow")

    assert await load(shop.client, owner, made.revision) == made
    name = made.template["spec"]["volumes"][0]["configMap"]["name"]
    settings = await shop.client.get(ConfigMap, name, shop.namespace)
    assert (settings.data, settings.immutable) == ({"mode": "fast"}, True)
    secret = made.template["spec"]["containers"][0]["env"][0]["valueFrom"]["secretKeyRef"]["name"]
    keys = await shop.client.get(Secret, secret, shop.namespace)
    assert (keys.type, keys.data, keys.immutable) == ("kubernetes.io/basic-auth", {"username": "MQ=="}, True)
    stored = await shop.client.get(ControllerRevision, f"web-{short(made.revision)}", shop.namespace)
    for obj in (settings, keys, stored):
        assert (obj.metadata.labels or {})[OWNER] == "web"
        holder = controller_of(obj)
        assert holder is not None
        assert holder.uid == owner.metadata.uid
    assert b"MQ==" not in msgspec.json.encode(stored.raw)
    assert made.rehashed == made.revision
    assert await lost(shop.client, owner, made) == ()


@pytest.mark.parametrize("template", [TEMPLATE, LARGE, RARE], ids=["small", "large", "rare"])
async def test_a_template_that_the_server_has_filled_is_the_same_revision(shop: Shop, template: dict[str, Any]) -> None:
    selector = {"matchLabels": {"app": "web"}}
    deployment = Deployment(metadata=shop.named("other"), spec={"selector": selector, "template": template})
    answer = await shop.client.create(deployment)
    assert answer.spec["template"] != template
    assert revision_of(answer.spec["template"]) == revision_of(template)


@pytest.mark.parametrize("metadata_only", [False, True], ids=["whole", "metadata"])
async def test_a_controller_reads_from_its_caches_what_it_has_just_written(shop: Shop, metadata_only: bool) -> None:
    await shop.configs()
    owner = await shop.canary()
    informers = Informers(shop.client, clock=SystemClock(), chance=random.Random(1))
    try:
        async with asyncio.timeout(30):
            for kind in (ConfigMap, Secret):
                query = Query(namespace=shop.namespace, metadata_only=metadata_only)
                await informers.subscribe(kind, query, lambda _: None).synced.wait()
            query = Query(namespace=shop.namespace)
            await informers.subscribe(ControllerRevision, query, lambda _: None).synced.wait()
        cached = CachedClient(shop.client, informers)
        made = [await shop.save(owner, f"shop/web:{number}", using=cached) for number in range(3)]
        assert await shop.save(owner, "shop/web:0", using=cached) == made[0]
        assert await listed(cached, owner) == tuple(reversed(made))
        await prune(cached, owner, set(), 1)
        assert await listed(cached, owner) == (made[2],)
        assert await lost(cached, owner, made[2]) == ()
        await prune(cached, owner, set(), 0)
        assert await listed(cached, owner) == await listed(shop.client, owner) == ()
        assert await shop.copies() == []
    finally:
        await informers.close()


async def test_saving_twice_writes_once(shop: Shop) -> None:
    await shop.configs()
    owner = await shop.canary()
    first = await shop.save(owner)
    before = {obj.name: obj.metadata.resource_version for obj in await shop.copies()}
    assert await shop.save(owner) == first
    assert {obj.name: obj.metadata.resource_version for obj in await shop.copies()} == before
    assert len(before) == 2
    assert await listed(shop.client, owner) == (first,)


async def test_the_newest_is_listed_first(shop: Shop) -> None:
    await shop.configs()
    owner = await shop.canary()
    made = [await shop.save(owner, f"shop/web:{number}") for number in range(1, 4)]
    assert [snapshot.number for snapshot in made] == [1, 2, 3]
    assert await listed(shop.client, owner) == tuple(reversed(made))


async def test_a_new_content_is_a_new_revision_and_a_new_copy(shop: Shop) -> None:
    await shop.configs()
    owner = await shop.canary()
    fast = await shop.save(owner)
    await shop.settings("slow")
    slow = await shop.save(owner)
    assert fast.revision != slow.revision
    assert fast.template != slow.template
    assert len(await shop.copies()) == 3
    await shop.settings("fast")
    assert await shop.save(owner) == fast


async def test_a_config_that_is_not_tracked_is_read_live(shop: Shop) -> None:
    await shop.configs()
    await shop.settings("fast", annotations={TRACK: "false"})
    owner = await shop.canary()
    made = await shop.save(owner)
    assert made.template["spec"]["volumes"] == TEMPLATE["spec"]["volumes"]
    assert [config.name for config in made.configs] == ["keys"]


async def test_what_is_missing_is_told(shop: Shop) -> None:
    await shop.settings("fast")
    template = copy.deepcopy(TEMPLATE)
    template["spec"]["containers"][0]["envFrom"] = [{"configMapRef": {"name": "more", "optional": True}}]
    found = await tracked(shop.client, shop.namespace, template)
    assert [config.name for config in found.configs] == ["settings"]
    assert found.missing == (ConfigReference("ConfigMap", "more", True), ConfigReference("Secret", "keys"))
    assert found.needed == (ConfigReference("Secret", "keys"),)
    many = {"spec": {"volumes": [{"configMap": {"name": f"c{number}"}} for number in range(65)]}}
    with pytest.raises(TooManyConfigs, match="65 ConfigMaps"):
        await tracked(shop.client, shop.namespace, many)


async def test_two_that_share_a_config_have_a_copy_each(shop: Shop) -> None:
    await shop.configs()
    web, api = await shop.canary("web"), await shop.canary("api")
    await shop.save(web)
    other = await shop.save(api)
    assert len(await shop.copies()) == 4
    await prune(shop.client, web, set(), 0)
    assert {(obj.metadata.labels or {})[OWNER] for obj in await shop.copies()} == {"api"}
    assert await lost(shop.client, api, other) == ()


async def test_old_snapshots_go_with_their_copies_and_those_in_use_stay(shop: Shop) -> None:
    await shop.configs()
    owner = await shop.canary()
    made = []
    for number in range(5):
        await shop.settings(f"mode {number}")
        made.append(await shop.save(owner))
    gone = await prune(shop.client, owner, {made[0].revision}, 2)
    assert gone == (made[2].revision, made[1].revision)
    assert await listed(shop.client, owner) == (made[4], made[3], made[0])
    assert {obj.name for obj in await shop.copies()} == {name for kept in (0, 3, 4) for _, name in made[kept].copies}
    assert await prune(shop.client, owner, {made[0].revision}, 2) == ()
    settings = await shop.client.get(ConfigMap, "settings", shop.namespace)
    assert settings.data == {"mode": "mode 4"}


class Dying:
    """A client whose process ends at its n-th write."""

    def __init__(self, client: ApiClient, left: int) -> None:
        self._client = client
        self._left = left

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)

    async def create(self, obj: Object) -> Any:
        if self._left == 0:
            raise ConnectionResetError
        self._left -= 1
        return await self._client.create(obj)


@pytest.mark.parametrize("writes", range(3))
async def test_a_crash_at_any_write_leaves_nothing_wrong(shop: Shop, writes: int) -> None:
    await shop.configs()
    owner = await shop.canary()
    with pytest.raises(ConnectionResetError):
        await shop.save(owner, using=Dying(shop.client, writes))
    assert len(await shop.copies()) == writes
    assert await listed(shop.client, owner) == ()
    made = await shop.save(owner)
    assert made.number == 1
    assert await lost(shop.client, owner, made) == ()


async def test_copies_of_a_save_that_was_given_up_are_pruned(shop: Shop) -> None:
    await shop.configs()
    owner = await shop.canary()
    with pytest.raises(ConnectionResetError):
        await shop.save(owner, using=Dying(shop.client, 2))
    await prune(shop.client, owner, set(), 10)
    assert await shop.copies() == []


async def test_a_copy_that_was_deleted_is_told_and_made_again(shop: Shop) -> None:
    await shop.configs()
    owner = await shop.canary()
    made = await shop.save(owner)
    kind, name = made.copies[0]
    await shop.client.delete(Ref(ConfigMap, name, shop.namespace))
    assert await lost(shop.client, owner, made) == ((kind, name),)
    await shop.save(owner)
    assert await lost(shop.client, owner, made) == ()


async def test_an_object_of_someone_else_is_never_touched(shop: Shop) -> None:
    await shop.configs()
    owner = await shop.canary()
    made = await shop.save(owner)
    await prune(shop.client, owner, set(), 0)
    for strange in (
        ConfigMap(metadata=shop.named(made.copies[0][1]), data={"mode": "fast"}),
        ControllerRevision(metadata=shop.named(f"web-{short(made.revision)}"), data={"a": 1}, revision=1),
    ):
        answer = await shop.client.create(strange)
        with pytest.raises(SnapshotConflict, match=f"{strange.name} exists and belongs to nobody"):
            await shop.save(owner)
        now = await shop.client.get(type(strange), strange.name, shop.namespace)
        assert now.metadata.resource_version == answer.metadata.resource_version
        assert await load(shop.client, owner, made.revision) is None
        await shop.client.delete(Ref(type(strange), strange.name, shop.namespace))


@pytest.mark.parametrize(("mode", "immutable"), [("another", True), ("fast", False)], ids=["other", "mutable"])
async def test_the_same_name_with_other_content_is_told(shop: Shop, mode: str, immutable: bool) -> None:
    await shop.configs()
    owner = await shop.canary()
    made = await shop.save(owner)
    await prune(shop.client, owner, set(), 0)
    metadata = shop.named(made.copies[0][1], labels={OWNER: "web"})
    await shop.client.create(ConfigMap(metadata=metadata, data={"mode": mode}, immutable=immutable))
    with pytest.raises(SnapshotConflict, match="other content"):
        await shop.save(owner)
    assert controller_of(await shop.client.get(ConfigMap, made.copies[0][1], shop.namespace)) is None


async def test_what_an_earlier_one_of_the_name_left_behind_is_taken_again(shop: Shop) -> None:
    await shop.configs()
    first = await shop.canary()
    made = await shop.save(first)
    stored = await shop.client.get(ControllerRevision, f"web-{short(made.revision)}", shop.namespace)
    for obj in (stored, *await shop.copies()):
        await shop.client.patch(obj, with_metadata(obj, owner_references=()))
    await shop.client.delete(Ref(CanaryDeployment, "web", shop.namespace))
    second = await shop.canary()
    assert await load(shop.client, second, made.revision) is None
    assert await shop.save(second) == made
    assert await load(shop.client, second, made.revision) == made


async def test_a_revision_keeps_its_name_when_the_hash_changes(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    await shop.configs()
    owner = await shop.canary()
    made = await shop.save(owner)

    def tomorrow(template: Any, configs: Any = ()) -> str:
        return "v2:" + revision_of(template, configs)[3:]

    monkeypatch.setattr(snapshots, "revision_of", tomorrow)
    found = await tracked(shop.client, shop.namespace, TEMPLATE)
    stored = await listed(shop.client, owner)
    assert known_as(tomorrow(TEMPLATE, found.configs), stored) == made.revision
    assert known_as(made.revision, stored) == made.revision
    assert known_as("v2:other", stored) == "v2:other"


async def test_a_refusal_is_not_taken_for_absence(shop: Shop) -> None:
    class Refusing(Dying):
        async def get(self, *_: Any) -> Any:
            raise StatusError(403, "Forbidden", "no")

    owner = await shop.canary()
    refusing: Any = Refusing(shop.client, 0)
    with pytest.raises(StatusError, match="no"):
        await load(refusing, owner, "v1:a")
    with pytest.raises(StatusError, match="no"):
        await tracked(refusing, shop.namespace, TEMPLATE)
