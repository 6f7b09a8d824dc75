"""Nothing that an object made outlives it, and nobody else's finalizer is touched."""

from __future__ import annotations

from typing import Any

import pytest

from trimtab.client.api import ApiClient
from trimtab.client.protocol import Ref
from trimtab.model.errors import StatusError
from trimtab.model.kubernetes import ConfigMap
from trimtab.model.objectmeta import ObjectMeta
from trimtab.model.scheme import Untyped
from trimtab.runtime.finalizers import Act, act_for, finalizer

OURS = "test.trimtab.dev/cleanup"
THEIRS = ("example.com/first", "example.com/last")


@pytest.mark.parametrize(
    ("finalizers", "deleting", "act"),
    [
        ((), False, Act.ADD),
        (THEIRS, False, Act.ADD),
        ((OURS,), False, Act.APPLY),
        ((THEIRS[0], OURS), False, Act.APPLY),
        ((OURS,), True, Act.CLEAN_UP),
        ((THEIRS[0], OURS), True, Act.CLEAN_UP),
        ((), True, Act.NOTHING),
        (THEIRS, True, Act.NOTHING),
    ],
)
def test_what_is_to_do_follows_from_the_object_alone(finalizers: tuple[str, ...], deleting: bool, act: Act) -> None:
    assert act_for(finalizers, deleting, OURS) is act


class Work:
    """Remembers what ran, and on what."""

    def __init__(self) -> None:
        self.ran: list[tuple[str, tuple[str, ...]]] = []

    async def apply(self, obj: Any) -> str:
        self.ran.append(("apply", obj.metadata.finalizers or ()))
        return "applied"

    async def cleanup(self, obj: Any) -> str:
        self.ran.append(("cleanup", obj.metadata.finalizers or ()))
        return "cleaned"

    async def on(self, client: Any, obj: Any) -> str | None:
        return await finalizer(client, obj, OURS, apply=self.apply, cleanup=self.cleanup)


async def there(client: ApiClient, namespace: str) -> ConfigMap | None:
    try:
        return await client.get(ConfigMap, "c", namespace)
    except StatusError as error:
        if error.code != 404:
            raise
        return None


async def create(client: ApiClient, namespace: str, *finalizers: str) -> ConfigMap:
    return await client.create(ConfigMap(metadata=ObjectMeta(name="c", namespace=namespace, finalizers=finalizers)))


async def deleted(client: ApiClient, namespace: str) -> ConfigMap:
    await client.delete(Ref(ConfigMap, "c", namespace))
    return await client.get(ConfigMap, "c", namespace)


async def test_the_finalizer_is_there_before_apply_runs(client: ApiClient, namespace: str) -> None:
    work = Work()
    obj = await create(client, namespace, THEIRS[0])
    assert await work.on(client, obj) == "applied"
    assert work.ran == [("apply", (THEIRS[0], OURS))]


async def test_a_second_reconcile_writes_nothing(client: ApiClient, namespace: str) -> None:
    work = Work()
    await work.on(client, await create(client, namespace))
    first = await client.get(ConfigMap, "c", namespace)
    await work.on(client, first)
    again = await client.get(ConfigMap, "c", namespace)
    assert again.metadata.resource_version == first.metadata.resource_version


async def test_after_cleanup_the_object_goes(client: ApiClient, namespace: str) -> None:
    work = Work()
    await work.on(client, await create(client, namespace))
    assert await work.on(client, await deleted(client, namespace)) == "cleaned"
    assert await there(client, namespace) is None


async def test_finalizers_of_others_stay_in_their_order(client: ApiClient, namespace: str) -> None:
    await create(client, namespace, THEIRS[0], OURS, THEIRS[1])
    await Work().on(client, await deleted(client, namespace))
    left = await client.get(ConfigMap, "c", namespace)
    assert left.metadata.finalizers == THEIRS


async def test_an_object_that_is_going_gets_no_finalizer(client: ApiClient, namespace: str) -> None:
    work = Work()
    await create(client, namespace, THEIRS[0])
    assert await work.on(client, await deleted(client, namespace)) is None
    assert work.ran == []
    left = await client.get(ConfigMap, "c", namespace)
    assert left.metadata.finalizers == (THEIRS[0],)


async def test_a_failed_cleanup_keeps_the_finalizer(client: ApiClient, namespace: str) -> None:
    async def fail(_: Any) -> None:
        raise RuntimeError("the world is busy")

    await create(client, namespace, OURS)
    obj = await deleted(client, namespace)
    with pytest.raises(RuntimeError):
        await finalizer(client, obj, OURS, apply=fail, cleanup=fail)
    assert (await client.get(ConfigMap, "c", namespace)).metadata.finalizers == (OURS,)


async def test_apply_does_not_run_when_the_finalizer_could_not_be_added(client: ApiClient, namespace: str) -> None:
    work = Work()
    stale = await create(client, namespace)
    await client.patch(stale, stale.replace(data={"a": "1"}))
    with pytest.raises(StatusError) as refused:
        await work.on(client, stale)
    assert refused.value.code == 409
    assert work.ran == []


async def test_a_removal_on_a_stale_read_is_repeated_on_a_fresh_one(client: ApiClient, namespace: str) -> None:
    work = Work()
    await create(client, namespace, OURS)
    stale = await deleted(client, namespace)
    await client.patch(stale, stale.replace(data={"a": "1"}))
    assert await work.on(client, stale) == "cleaned"
    assert await there(client, namespace) is None
    assert len(work.ran) == 1


async def test_an_object_that_is_gone_is_done(client: ApiClient, namespace: str) -> None:
    work = Work()
    fresh = await create(client, namespace)
    await client.delete(Ref(ConfigMap, "c", namespace))
    assert await work.on(client, fresh) is None
    await create(client, namespace, OURS)
    going = await deleted(client, namespace)
    await work.on(client, going)
    assert await work.on(client, going) == "cleaned"


async def test_a_new_incarnation_keeps_its_finalizer(client: ApiClient, namespace: str) -> None:
    work = Work()
    await create(client, namespace, OURS)
    going = await deleted(client, namespace)
    await work.on(client, going)
    await create(client, namespace, OURS)
    await work.on(client, going)
    assert (await client.get(ConfigMap, "c", namespace)).metadata.finalizers == (OURS,)


async def test_untyped_objects_have_finalizers_too(client: ApiClient, namespace: str) -> None:
    work = Work()
    document = {"apiVersion": "v1", "kind": "Endpoints", "metadata": {"name": "c", "namespace": namespace}}
    assert await work.on(client, await client.create(Untyped(document))) == "applied"
    assert work.ran == [("apply", (OURS,))]


async def test_a_name_that_the_api_would_refuse_is_refused_at_once() -> None:
    work: Any = Work()
    with pytest.raises(ValueError, match="must be like"):
        await finalizer(work, ConfigMap(), "cleanup", apply=work.apply, cleanup=work.cleanup)
