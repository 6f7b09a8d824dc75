"""What a controller sees and does, on both servers."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec
import pytest
from msgspec import UNSET

from tests.runtime.widgets import (
    Doer,
    Maker,
    Widget,
    WidgetSpec,
    config_map,
    define,
    running,
    tapped,
    until,
    until_found,
    widget,
)
from trimtab.client.api import ApiClient
from trimtab.client.protocol import Named, Query, Ref
from trimtab.model.kubernetes import ConfigMap, Secret
from trimtab.model.objectmeta import ObjectMeta, OwnerReference
from trimtab.model.resource import Resource, Spec
from trimtab.runtime.changes import Change, Request
from trimtab.runtime.controller import Controller, Result, Watch
from trimtab.runtime.index import Index
from trimtab.runtime.manager import Manager
from trimtab.runtime.predicates import generation_changed, labels_changed


@pytest.fixture(autouse=True)
async def _defined(client: ApiClient) -> None:
    await define(client)


async def labelled(client: ApiClient, obj: Any, **labels: str) -> Any:
    return await client.patch(obj, obj.replace(metadata=msgspec.structs.replace(obj.metadata, labels=labels)))


async def test_what_exists_and_what_comes_is_reconciled(client: ApiClient, namespace: str) -> None:
    await client.create(widget("old", namespace, 3))
    manager = Manager(client)
    manager.add(Maker(namespace))
    async with running(manager):
        await until_found(client, ConfigMap, "old", namespace, lambda found: found.data == {"size": "3"})
        await client.create(widget("new", namespace, 4))
        await until_found(client, ConfigMap, "new", namespace, lambda found: found.data == {"size": "4"})
        await until_found(client, Widget, "new", namespace, lambda found: found.status and found.status.made == 4)


async def test_a_change_is_carried_over(client: ApiClient, namespace: str) -> None:
    made = await client.create(widget("one", namespace, 1))
    manager = Manager(client)
    manager.add(Maker(namespace))
    async with running(manager):
        made = await until_found(client, Widget, "one", namespace, lambda found: found.status is not UNSET)
        await client.patch(made, made.replace(spec=WidgetSpec(size=7)))
        await until_found(client, ConfigMap, "one", namespace, lambda found: found.data == {"size": "7"})


async def test_what_someone_deletes_is_made_again(client: ApiClient, namespace: str) -> None:
    await client.create(widget("one", namespace))
    manager = Manager(client)
    manager.add(Maker(namespace))
    async with running(manager):
        first = await until_found(client, ConfigMap, "one", namespace, lambda found: True)
        await client.delete(Ref(ConfigMap, "one", namespace))
        await until_found(client, ConfigMap, "one", namespace, lambda found: found.metadata.uid != first.metadata.uid)


async def test_a_controller_rests_when_all_is_done(client: ApiClient, namespace: str) -> None:
    reached, tap = tapped(client)
    manager = Manager(reached)
    maker = Maker(namespace)
    manager.add(maker)
    async with running(manager):
        for number in range(5):
            await client.create(widget(f"w{number}", namespace))
        for number in range(5):
            await until_found(client, Widget, f"w{number}", namespace, lambda found: found.status is not UNSET)
        assert len(maker.seen) <= 2 * 5, "one reconcile for the widget, one for its ConfigMap"
        assert len(tap.writes) == 2 * 5
        assert tap.reads("") == [], "all reads came from the cache"


async def test_a_reconcile_reads_what_the_one_before_wrote(client: ApiClient, namespace: str) -> None:
    """Each reconcile counts in the object itself: one that read an old state would count twice, or conflict."""
    conflicts: list[Exception] = []

    async def count(doer: Doer, request: Request) -> Result | None:
        found = await doer.client.get(Widget, request.name, request.namespace)
        if found.spec.size >= 20:
            return None
        try:
            await doer.client.patch(found, found.replace(spec=WidgetSpec(size=found.spec.size + 1)))
        except Exception as error:
            conflicts.append(error)
            raise
        return Result(requeue_after=0.0001)

    manager = Manager(client)
    doer = Doer(namespace, count)
    manager.add(doer)
    async with running(manager):
        await client.create(widget("one", namespace, 0))
        await until_found(client, Widget, "one", namespace, lambda found: found.spec.size == 20)
    assert conflicts == []


async def test_an_owner_hears_of_what_it_owns_and_of_what_it_owned(client: ApiClient, namespace: str) -> None:
    manager = Manager(client)
    doer = Doer(namespace, owns=(ConfigMap,), when=generation_changed)
    manager.add(doer)
    async with running(manager):
        a = await client.create(widget("a", namespace))
        b = await client.create(widget("b", namespace))
        await doer.seen.reach(2)
        made = await client.create(config_map(a, {}))
        await doer.seen.reach(3)
        references = config_map(b, {}).metadata.owner_references
        metadata = msgspec.structs.replace(made.metadata, owner_references=references)
        await client.patch(made, made.replace(metadata=metadata))
        await doer.seen.reach(5)
        await client.delete(Ref(ConfigMap, "a", namespace))
        await doer.seen.reach(6)
    assert doer.names[2:3] == ["a"]
    assert sorted(doer.names[3:5]) == ["a", "b"]
    assert doer.names[5] == "b"


async def test_owners_of_another_kind_or_that_do_not_control_hear_nothing(client: ApiClient, namespace: str) -> None:
    manager = Manager(client)
    doer = Doer(namespace, owns=(ConfigMap,))
    manager.add(doer)
    async with running(manager):
        await doer.seen.reach(0)
        owner = await client.create(widget("a", namespace))
        await doer.seen.reach(1)
        controlled = config_map(owner, {})
        (reference,) = controlled.metadata.owner_references or ()  # type: ignore[misc]
        for name, other in (
            ("merely-owned", msgspec.structs.replace(reference, controller=False)),
            ("other-kind", msgspec.structs.replace(reference, kind="Gadget")),
            ("other-group", msgspec.structs.replace(reference, api_version="other.example.com/v1")),
        ):
            metadata = ObjectMeta(name=name, namespace=namespace, owner_references=(other,))
            await client.create(ConfigMap(metadata=metadata))
        await client.create(widget("last", namespace))
        await doer.seen.until(lambda seen: "last" in doer.names)
    assert doer.names == ["a", "last"]


class HallSpec(Spec):
    size: int = 1


class Hall(Resource, group="runtime.example.com", version="v1", plural="halls", namespaced=False):
    """A kind without namespaces."""

    spec: HallSpec = HallSpec()


@pytest.mark.parametrize("by_name", [False, True])
async def test_an_owner_without_a_namespace_is_one_request(client: ApiClient, namespace: str, by_name: bool) -> None:
    seen: list[Request] = []

    class Halls(Controller[Hall]):
        owns = (ConfigMap,)

        async def reconcile(self, request: Request) -> None:
            seen.append(request)

    await define(client, Hall)
    hall = await client.create(Hall(metadata=ObjectMeta(name=f"hall-{namespace}")))
    assert isinstance(hall.metadata.uid, str)
    reference = OwnerReference(
        api_version="runtime.example.com/v1", kind="Hall", name=hall.name, uid=hall.metadata.uid, controller=True
    )
    metadata = ObjectMeta(name="owned", namespace=namespace, owner_references=(reference,))
    owned = await client.create(ConfigMap(metadata=metadata))
    controller = Halls()
    if by_name:
        controller.kind = Named("runtime.example.com/v1", "Hall")
    manager = Manager(ApiClient(client.transport) if by_name else client)
    manager.add(controller)
    mine = Request("", hall.name)
    async with running(manager):
        await until(lambda: mine in seen)
        seen.clear()
        await client.patch(owned, owned.replace(data={"x": "1"}))
        await until(lambda: mine in seen)
    assert {request for request in seen if request.name == hall.name} == {mine}
    await client.delete(Ref(Hall, hall.name))


async def test_a_watch_maps_the_old_and_the_new_object(client: ApiClient, namespace: str) -> None:
    def widgets_named(change: Change) -> Iterable[Request]:
        for found in (change.old, change.new):
            if found is not None and found.metadata.labels:
                yield Request(found.namespace, found.metadata.labels["widget"])

    watch = Watch(kind=Secret, to=widgets_named, when=labels_changed, query=Query(namespace=namespace))
    manager = Manager(client)
    doer = Doer(namespace, watches=(watch,))
    manager.add(doer)
    async with running(manager):
        made = await client.create(Secret(metadata=ObjectMeta(name="s", namespace=namespace, labels={"widget": "a"})))
        await doer.seen.reach(1)
        made = await client.patch(made, made.replace(data={"password": "eA=="}))  # the predicate does not care
        await labelled(client, made, widget="b")
        await doer.seen.reach(3)
        await client.delete(Ref(Secret, "s", namespace))
        await doer.seen.reach(4)
    assert (doer.names[0], sorted(doer.names[1:3]), doer.names[3]) == ("a", ["a", "b"], "b")


async def test_a_watch_finds_by_an_index_whom_it_concerns(client: ApiClient, namespace: str) -> None:
    def users(change: Change) -> Iterable[Request]:
        return change.informers.indexed(Widget, "secret", change.request.name)

    manager = Manager(client)
    doer = Doer(
        namespace,
        indexes=(Index("secret", lambda found: [found.spec.secret] if found.spec.secret else []),),
        watches=(Watch(kind=Secret, to=users, query=Query(namespace=namespace)),),
    )
    manager.add(doer)
    for name, secret in (("a", "one"), ("b", "two"), ("c", "one")):
        await client.create(widget(name, namespace).replace(spec=WidgetSpec(size=1, secret=secret)))
    async with running(manager):
        await doer.seen.reach(3)
        await client.create(Secret(metadata=ObjectMeta(name="one", namespace=namespace)))
        await doer.seen.reach(5)
        assert sorted(doer.names[3:]) == ["a", "c"]
        assert sorted(w.name for w in await doer.client.indexed(Widget, "secret", "one")) == ["a", "c"]


async def test_only_changes_that_count_are_reconciled(client: ApiClient, namespace: str) -> None:
    manager = Manager(client)
    specs = Doer(namespace, name="specs", when=generation_changed)
    either = Doer(namespace, name="either", when=generation_changed | labels_changed)
    everything = Doer(namespace, name="everything")
    for doer in (specs, either, everything):
        manager.add(doer)
    async with running(manager):
        made = await client.create(widget("a", namespace))
        await everything.seen.reach(1)
        made = await labelled(client, made, app="web")
        await everything.seen.reach(2)
        made = await client.patch(made, made.replace(status={"made": 1}), subresource="status")
        await everything.seen.reach(3)
        made = await client.patch(made, made.replace(spec=WidgetSpec(size=2)))
        await everything.seen.reach(4)
        await specs.seen.reach(2)
        await either.seen.reach(3)
        await client.delete(Ref(Widget, "a", namespace))
        await everything.seen.reach(5)
        await specs.seen.reach(3)
        await either.seen.reach(4)
    assert (len(specs.seen), len(either.seen), len(everything.seen)) == (3, 4, 5)


async def test_a_controller_of_a_part_leaves_the_rest_alone(client: ApiClient, namespace: str) -> None:
    """Two share the work by a label: an owned object of the other's widget is the other's."""
    blue, red = (
        Doer(namespace, name=colour, owns=(ConfigMap,), query=Query(namespace=namespace, labels=f"colour={colour}"))
        for colour in ("blue", "red")
    )
    manager = Manager(client)
    manager.add(blue)
    manager.add(red)
    async with running(manager):
        owner = await client.create(widget("b", namespace, labels={"colour": "blue"}))
        await client.create(widget("r", namespace, labels={"colour": "red"}))
        await blue.seen.reach(1)
        await red.seen.reach(1)
        await client.create(config_map(owner, {}))
        await blue.seen.reach(2)
        owner = await labelled(client, owner, colour="red")
        await blue.seen.reach(3)
        await red.seen.reach(2)
    assert (blue.names, red.names) == (["b", "b", "b"], ["r", "b"])


async def test_a_namespace_is_all_that_a_controller_of_it_sees(client: ApiClient, namespace: str) -> None:
    manager = Manager(client)
    doer, maker = Doer(namespace), Maker(namespace)
    maker.name = "maker"
    manager.add(doer)
    manager.add(maker)
    async with running(manager):
        await client.create(widget(f"outside-{namespace}", "default"))
        await client.create(widget("inside", namespace))
        await until_found(client, ConfigMap, "inside", namespace, lambda found: True)
    assert set(doer.names) == {"inside"}


async def test_metadata_alone_is_enough_for_a_watch(client: ApiClient, namespace: str) -> None:
    bodies: list[bytes] = []

    def to(change: Change) -> Iterable[Request]:
        assert change.after is not None
        bodies.append(change.after.body)
        yield Request(namespace, change.new.metadata.name)

    query = Query(namespace=namespace, fields="metadata.name=big", metadata_only=True)
    manager = Manager(client)
    doer = Doer(namespace, watches=(Watch(kind=ConfigMap, to=to, query=query),))
    manager.add(doer)
    async with running(manager):
        await client.create(ConfigMap(metadata=ObjectMeta(name="big", namespace=namespace), data={"x": "y" * 1000}))
        await doer.seen.reach(1)
    assert doer.names == ["big"]
    assert b"yyy" not in bodies[0]


async def test_a_kind_without_a_class_is_reconciled_too(client: ApiClient, namespace: str) -> None:
    found: list[Any] = []

    async def read(doer: Doer, request: Request) -> None:
        found.append(await doer.client.find(doer.kind, request.name, request.namespace))

    manager = Manager(ApiClient(client.transport))  # knows no class
    doer = Doer(namespace, read, kind=Named("runtime.example.com/v1", "Widget"))
    manager.add(doer)
    async with running(manager):
        await client.create(widget("a", namespace, 5))
        await doer.seen.reach(1)
        await until(lambda: found)
    assert found[0].raw["spec"] == {"size": 5}
