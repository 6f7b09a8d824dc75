"""What a controller sees and does, on both servers."""

from __future__ import annotations

from msgspec import UNSET

from tests.runtime.widgets import Maker, Widget, WidgetSpec, define, running, until, until_found, widget
from trimtab.client.api import ApiClient
from trimtab.client.protocol import Ref
from trimtab.model.kubernetes import ConfigMap
from trimtab.runtime.manager import Manager


async def test_what_exists_and_what_comes_is_reconciled(client: ApiClient, namespace: str) -> None:
    await define(client)
    await client.create(widget("old", namespace, 3))
    manager = Manager(client)
    manager.add(Maker())
    async with running(manager):
        await until_found(client, ConfigMap, "old", namespace, lambda found: found.data == {"size": "3"})
        await client.create(widget("new", namespace, 4))
        await until_found(client, ConfigMap, "new", namespace, lambda found: found.data == {"size": "4"})
        await until_found(client, Widget, "new", namespace, lambda found: found.status and found.status.made == 4)


async def test_a_change_is_carried_over(client: ApiClient, namespace: str) -> None:
    await define(client)
    made = await client.create(widget("one", namespace, 1))
    manager = Manager(client)
    manager.add(Maker())
    async with running(manager):
        made = await until_found(client, Widget, "one", namespace, lambda found: found.status is not UNSET)
        await client.patch(made, made.replace(spec=WidgetSpec(size=7)))
        await until_found(client, ConfigMap, "one", namespace, lambda found: found.data == {"size": "7"})


async def test_what_someone_deletes_is_made_again(client: ApiClient, namespace: str) -> None:
    await define(client)
    await client.create(widget("one", namespace))
    manager = Manager(client)
    manager.add(Maker())
    async with running(manager):
        first = await until_found(client, ConfigMap, "one", namespace, lambda found: True)
        await client.delete(Ref(ConfigMap, "one", namespace))
        await until_found(client, ConfigMap, "one", namespace, lambda found: found.metadata.uid != first.metadata.uid)


async def test_a_controller_rests_when_all_is_done(client: ApiClient, namespace: str) -> None:
    await define(client)
    manager = Manager(client)
    maker = Maker()
    manager.add(maker)
    async with running(manager):
        for number in range(5):
            await client.create(widget(f"w{number}", namespace))
        for number in range(5):
            await until_found(client, Widget, f"w{number}", namespace, lambda found: found.status is not UNSET)
        last = await client.create(widget("last", namespace))
        await until_found(client, Widget, "last", namespace, lambda found: found.status is not UNSET)
        await until(lambda: len(manager.informers.client.scheme.classes) and not len(_queue(manager)))
        seen = [request for request in maker.seen if request.namespace == namespace]
        assert len(seen) <= 2 * 6, "one reconcile for the widget, one for its ConfigMap"
        assert last.name in {request.name for request in seen}


def _queue(manager: Manager):  # type: ignore[no-untyped-def]
    (driver,) = manager._drivers.values()
    return driver.queue
