"""A set of objects is applied and pruned for its owner, whatever happens in between."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from trimtab.client.api import ApiClient
from trimtab.client.protocol import Named, Query, Ref
from trimtab.model.clock import SystemClock
from trimtab.model.errors import StatusError
from trimtab.model.kubernetes import ConfigMap, Namespace, Secret
from trimtab.model.objectmeta import ObjectMeta
from trimtab.runtime.inventory import record as inventory_record
from trimtab.runtime.inventory.keeper import Inventory, InventoryFailed
from trimtab.runtime.inventory.plan import LABEL, PRUNE, Entry, Reason
from trimtab.runtime.inventory.record import RECORD, InventoryTooLarge, Record
from trimtab.runtime.objects import uid_of, with_metadata
from trimtab.runtime.owners import owner_reference

ME = "test.trimtab.dev"
Document = dict[str, Any]


def secret(namespace: str, name: str, value: str = "AAAA") -> Document:
    metadata = {"name": name, "namespace": namespace}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": {"k": value}}


def secrets(namespace: str, *names: str) -> list[Document]:
    return [secret(namespace, name) for name in names]


async def owner_named(client: ApiClient, namespace: str, name: str = "owner") -> ConfigMap:
    return await client.create(ConfigMap(metadata=ObjectMeta(name=name, namespace=namespace)))


@pytest.fixture
async def owner(client: ApiClient, namespace: str) -> ConfigMap:
    return await owner_named(client, namespace)


def inventory(client: Any) -> Inventory:
    return Inventory(client, SystemClock(), manager=ME)


async def world(client: ApiClient, owner: ConfigMap) -> dict[str, str]:
    """All Secrets that carry our label, with what is in them."""
    found = await client.list(Secret, Query(labels=f"{LABEL}={uid_of(owner)}"))
    return {item.name: (item.data or {})["k"] for item in found.items}


async def recorded(client: ApiClient, owner: ConfigMap) -> dict[str, str]:
    """The names and uids in the record."""
    return {entry.name: entry.uid for entry in (await Record.read(client, owner, owner.namespace)).entries}


async def there(client: ApiClient, namespace: str) -> dict[str, str]:
    found = await client.list(Secret, Query(namespace=namespace))
    return {item.name: uid_of(item) for item in found.items}


async def test_a_set_is_applied_and_what_leaves_it_is_pruned(
    client: ApiClient, namespace: str, owner: ConfigMap
) -> None:
    await inventory(client).apply(owner, secrets(namespace, "a", "b", "c"))
    plan = await inventory(client).apply(owner, [secret(namespace, "b", "BBBB"), *secrets(namespace, "c", "d")])
    assert [
        [step.entry.name for step in steps] for steps in (plan.create, plan.change, plan.unchanged, plan.prune)
    ] == [
        ["d"],
        ["b"],
        ["c"],
        ["a"],
    ]
    assert await world(client, owner) == {"b": "BBBB", "c": "AAAA", "d": "AAAA"}
    assert await recorded(client, owner) == await there(client, namespace)


async def test_the_same_set_again_writes_nothing(client: ApiClient, namespace: str, owner: ConfigMap) -> None:
    await inventory(client).apply(owner, secrets(namespace, "a", "b"))
    counting: Any = Interrupted(client)
    plan = await inventory(counting).apply(owner, secrets(namespace, "a", "b"))
    assert len(plan.unchanged) == 2
    assert counting.writes == 0


async def test_an_emptied_inventory_leaves_no_trace(client: ApiClient, namespace: str, owner: ConfigMap) -> None:
    await inventory(client).apply(owner, secrets(namespace, "a", "b"))
    refused = await inventory(client).apply(owner, [])
    assert {refusal.reason for refusal in refused.refused} == {Reason.MASS_DELETE}
    assert set(await recorded(client, owner)) == {"a", "b"}
    await inventory(client).apply(owner, [], allow_mass_delete=True)
    assert await there(client, namespace) == {}
    left = await client.list(ConfigMap, Query(namespace=namespace, labels=RECORD))
    assert left.items == []


async def test_what_is_held_is_not_let_go_because_there_is_more_now(
    client: ApiClient, namespace: str, owner: ConfigMap
) -> None:
    old, new = [f"old{n}" for n in range(12)], [f"new{n}" for n in range(60)]
    await inventory(client).apply(owner, secrets(namespace, *old))
    for _ in range(2):
        held = await inventory(client).apply(owner, secrets(namespace, *new))
        assert {refusal.reason for refusal in held.refused} == {Reason.MASS_DELETE}
        assert not held.prune
    few = await inventory(client).apply(owner, secrets(namespace, *new, *old[:8]))
    assert [step.entry.name for step in few.prune] == old[8:]
    await inventory(client).apply(owner, secrets(namespace, *new), allow_mass_delete=True)
    assert set(await there(client, namespace)) == set(new)


async def test_what_belongs_to_others_is_left_alone(client: ApiClient, namespace: str, owner: ConfigMap) -> None:
    other = await owner_named(client, namespace, "other")
    await inventory(client).apply(other, secrets(namespace, "theirs"))
    await client.create(Secret(metadata=ObjectMeta(name="free", namespace=namespace), data={"k": "FREE"}))
    wish = [secret(namespace, name, "OURS") for name in ("theirs", "free", "ours")]
    plan = await inventory(client).apply(owner, wish)
    assert {refusal.entry.name: refusal.reason for refusal in plan.refused} == {
        "theirs": Reason.NOT_OURS,
        "free": Reason.UNOWNED,
    }
    await inventory(client).apply(owner, wish, adopt=True)
    assert await world(client, owner) == {"free": "OURS", "ours": "OURS"}
    assert await world(client, other) == {"theirs": "AAAA"}


async def test_an_object_that_is_marked_to_stay_stays(client: ApiClient, namespace: str, owner: ConfigMap) -> None:
    await inventory(client).apply(owner, secrets(namespace, "a", "b"))
    kept = await client.get(Secret, "a", namespace)
    await client.patch(kept, with_metadata(kept, annotations={PRUNE: "false"}))
    await inventory(client).apply(owner, secrets(namespace, "b"))
    assert set(await there(client, namespace)) == {"a", "b"}
    assert set(await recorded(client, owner)) == {"b"}


async def test_an_object_that_was_replaced_after_the_plan_is_not_deleted(
    client: ApiClient, namespace: str, owner: ConfigMap
) -> None:
    await inventory(client).apply(owner, secrets(namespace, "a", "b"))
    plan = await inventory(client).plan(owner, secrets(namespace, "b"))
    await client.delete(Ref(Secret, "a", namespace))
    fresh = await client.create(Secret(metadata=ObjectMeta(name="a", namespace=namespace)))
    await inventory(client).execute(plan)
    assert (await there(client, namespace))["a"] == uid_of(fresh)


async def test_an_object_that_came_or_went_after_the_plan_is_a_failure_and_the_next_run_heals_it(
    client: ApiClient, namespace: str, owner: ConfigMap
) -> None:
    await inventory(client).apply(owner, secrets(namespace, "a"))
    wish = [secret(namespace, "a", "BBBB"), secret(namespace, "b")]
    plan = await inventory(client).plan(owner, wish)
    await client.delete(Ref(Secret, "a", namespace))
    await client.create(Secret(metadata=ObjectMeta(name="b", namespace=namespace), data={"k": "FREE"}))
    with pytest.raises(InventoryFailed) as failed:
        await inventory(client).execute(plan)
    assert {failure.entry.name for failure in failed.value.failures} == {"a", "b"}
    again = await inventory(client).apply(owner, wish)
    assert [refusal.entry.name for refusal in again.refused] == ["b"]
    assert await world(client, owner) == {"a": "BBBB"}


async def test_after_a_failure_the_others_are_applied_and_nothing_is_pruned(
    client: ApiClient, namespace: str, owner: ConfigMap
) -> None:
    await inventory(client).apply(owner, secrets(namespace, "a"))
    with pytest.raises(InventoryFailed, match="/bad: ") as failed:
        await inventory(client).apply(owner, [secret(namespace, "bad", "hunter2!"), secret(namespace, "good")])
    assert "hunter2" not in str(failed.value)
    assert set(await there(client, namespace)) == {"a", "good"}
    await inventory(client).apply(owner, secrets(namespace, "good"))
    assert set(await there(client, namespace)) == set(await recorded(client, owner)) == {"good"}


async def test_a_kind_and_its_objects_come_in_one_set(client: ApiClient, namespace: str, owner: ConfigMap) -> None:
    """The definition is declared last, and its objects in a namespace that is declared too."""
    name = f"{namespace}-inner"
    text = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    group = f"{namespace}.test.trimtab.dev"
    definition = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"things.{group}"},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"plural": "things", "singular": "thing", "kind": "Thing", "listKind": "ThingList"},
            "versions": [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": text}}],
        },
    }
    thing = {"apiVersion": f"{group}/v1", "kind": "Thing", "metadata": {"name": "t", "namespace": name}}
    space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
    await inventory(client).apply(owner, [thing, definition, space])
    assert (await client.get(Named(f"{group}/v1", "Thing"), "t", name)).name == "t"
    await inventory(client).apply(owner, [], allow_mass_delete=True)
    with pytest.raises(StatusError):
        await client.get(Named(f"{group}/v1", "Thing"), "t", name)


async def test_the_record_outlives_the_garbage_collector(client: ApiClient, namespace: str, owner: ConfigMap) -> None:
    await inventory(client).apply(owner, secrets(namespace, "a"))
    (shard,) = (await client.list(ConfigMap, Query(namespace=namespace, labels=RECORD))).items
    await client.delete(Ref(ConfigMap, shard.name, namespace))
    assert set(await recorded(client, owner)) == {"a"}
    await inventory(client).apply(owner, secrets(namespace, "b"))
    assert set(await there(client, namespace)) == {"b"}


async def test_a_large_record_is_spread_and_too_large_a_one_refused(
    client: ApiClient, namespace: str, owner: ConfigMap, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inventory_record, "SHARD_BYTES", 1000)
    monkeypatch.setattr(inventory_record, "SHARDS", 3)
    entries = [Entry(api_version="v1", kind="Secret", name=f"x{n:02}", namespace=namespace) for n in range(40)]
    record = await Record.read(client, owner, namespace)
    await record.update(entries[:12])
    assert len((await client.list(ConfigMap, Query(namespace=namespace, labels=RECORD))).items) == 2
    await record.update(entries[12:14], entries[:3])
    assert set(await recorded(client, owner)) == {entry.name for entry in entries[3:14]}
    with pytest.raises(InventoryTooLarge, match="split"):
        await record.update(entries)
    assert len(await recorded(client, owner)) == 11


def forged(owner: ConfigMap, name: str, data: dict[str, str] | None = None, **metadata: Any) -> ConfigMap:
    labels = {RECORD: uid_of(owner)}
    return ConfigMap(
        metadata=ObjectMeta(name=name, namespace=owner.namespace, labels=labels, **metadata), data=data or {}
    )


async def test_configmaps_that_only_bear_the_label_are_passed_over(
    client: ApiClient, namespace: str, owner: ConfigMap
) -> None:
    await inventory(client).apply(owner, secrets(namespace, "a"))
    await client.create(forged(owner, "garbage", {"objects": "{"}))
    for number in range(17):
        await client.create(forged(owner, f"inventory-{number:02}"))
    other = await owner_named(client, namespace, "other")
    references = (owner_reference(other, controller=False),)
    await client.create(forged(owner, f"inventory-{uid_of(owner)}-07", {"objects": "["}, owner_references=references))
    references = (owner_reference(owner, controller=False),)
    await client.create(forged(owner, f"inventory-{uid_of(owner)}-007", {"objects": "["}, owner_references=references))
    await inventory(client).apply(owner, secrets(namespace, "a", "b"))
    assert await recorded(client, owner) == await there(client, namespace)
    assert set(await there(client, namespace)) == {"a", "b"}


async def test_a_name_that_a_stranger_has_taken_is_left_to_it(
    client: ApiClient, namespace: str, owner: ConfigMap, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inventory_record, "SHARD_BYTES", 300)
    taken = [f"inventory-{uid_of(owner)}-{number:02}" for number in (0, 2)]
    for name in taken:
        metadata = ObjectMeta(name=name, namespace=namespace)
        await client.create(ConfigMap(metadata=metadata, data={"objects": "{"}))
    names = [f"x{n}" for n in range(6)]
    await inventory(client).apply(owner, secrets(namespace, *names[:3]))
    await inventory(client).apply(owner, secrets(namespace, *names))
    assert await recorded(client, owner) == await there(client, namespace)
    await inventory(client).apply(owner, [], allow_mass_delete=True)
    assert await there(client, namespace) == {}
    assert [(await client.get(ConfigMap, name, namespace)).data for name in taken] == [{"objects": "{"}] * 2


async def test_two_first_executions_at_once_meet_a_conflict(
    client: ApiClient, namespace: str, owner: ConfigMap
) -> None:
    one = await Record.read(client, owner, namespace)
    await inventory(client).apply(owner, secrets(namespace, "a"))
    with pytest.raises(StatusError) as refused:
        await one.update([Entry(api_version="v1", kind="Secret", name="b", namespace=namespace)])
    assert refused.value.code == 409


async def test_an_owner_of_the_whole_cluster_keeps_its_record_where_it_is_told(
    client: ApiClient, namespace: str
) -> None:
    owner = await client.get(Namespace, namespace)
    with pytest.raises(ValueError, match="namespace"):
        await inventory(client).plan(owner, [])
    told = Inventory(client, SystemClock(), manager=ME, namespace=namespace)
    await told.apply(owner, secrets(namespace, "a"))
    await told.apply(owner, secrets(namespace, "b"))
    assert set(await there(client, namespace)) == {"b"}


async def test_two_executions_at_once_meet_a_conflict(client: ApiClient, namespace: str, owner: ConfigMap) -> None:
    await inventory(client).apply(owner, secrets(namespace, "a"))
    one = await Record.read(client, owner, namespace)
    await inventory(client).apply(owner, secrets(namespace, "a", "b"))
    with pytest.raises(StatusError) as refused:
        await one.update([], one.entries)
    assert refused.value.code == 409


async def test_a_set_that_names_an_object_twice_is_refused(client: ApiClient, namespace: str, owner: ConfigMap) -> None:
    with pytest.raises(ValueError, match="twice"):
        await inventory(client).plan(owner, secrets(namespace, "a", "a"))


@pytest.mark.parametrize("answered", [True, False], ids=["after the call", "before the call"])
async def test_a_crash_at_any_call_loses_nothing_and_leaves_nothing(
    client: ApiClient, namespace: str, answered: bool
) -> None:
    """A run is stopped at each of its calls in turn; the next one, which wants something else again, ends well."""
    for stop in itertools.count(1):
        own = await owner_named(client, namespace, f"owner-{stop}")
        a, b, c, d, e = (f"{letter}{stop}" for letter in "abcde")
        await inventory(client).apply(own, secrets(namespace, a, b, c))
        interrupted: Any = Interrupted(client, stop, answered)
        try:
            await inventory(interrupted).apply(own, [secret(namespace, b, "BBBB"), *secrets(namespace, c, d)])
            crashed = False
        except Crash:
            crashed = True
        await inventory(client).apply(own, [secret(namespace, c, "CCCC"), *secrets(namespace, d, e)])
        assert await world(client, own) == {c: "CCCC", d: "AAAA", e: "AAAA"}
        uids = await there(client, namespace)
        assert await recorded(client, own) == {name: uids[name] for name in (c, d, e)}
        for again in itertools.count(1):  # and so for the end of it all
            try:
                await inventory(Interrupted(client, again, answered)).apply(own, [], allow_mass_delete=True)  # type: ignore[arg-type]
                break
            except Crash:
                continue
        assert await there(client, namespace) == {}
        assert (await client.list(ConfigMap, Query(namespace=namespace, labels=RECORD))).items == []
        if not crashed:
            break
    assert stop > 8


class Crash(Exception):  # noqa: N818
    """The process ended here."""


class Interrupted:
    """A client whose process ends at its n-th call: before it is sent, or when it is answered."""

    def __init__(self, client: ApiClient, stop: int = 0, answered: bool = False) -> None:
        self._client, self._stop, self._answered = client, stop, answered
        self.calls = self.writes = 0

    def __getattr__(self, name: str) -> Any:
        call = getattr(self._client, name)

        async def counted(*arguments: Any, **options: Any) -> Any:
            self.calls += 1
            self.writes += name not in ("get", "list")
            last = self.calls == self._stop
            if last and not self._answered:
                raise Crash
            try:
                answer = await call(*arguments, **options)
            except StatusError as error:
                raise Crash if last else error from None
            if last:
                raise Crash
            return answer

        return counted
