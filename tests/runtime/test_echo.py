"""A reconcile that wants no echo is not called for its own writes, and for everything else it is."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from tests.runtime.test_cache import cache_of, event, made
from tests.runtime.widgets import Doer, Tap, Widget, config_map, define, running, tapped, widget
from trimtab.client.api import ApiClient
from trimtab.client.entries import Snapshot
from trimtab.model.kubernetes import ConfigMap
from trimtab.runtime.changes import Request
from trimtab.runtime.echo import Writer, begin, current
from trimtab.runtime.manager import Manager
from trimtab.runtime.predicates import generation_changed

Write = Callable[[Doer, Widget], Awaitable[Any]]


@pytest.fixture(autouse=True)
async def _defined(client: ApiClient) -> None:
    await define(client)


def doer(namespace: str, tap: Tap, write: Write, **settings: Any) -> Doer:
    """Writes once, when first called for "a"; the watches are held back meanwhile, so that the answer comes first."""

    async def act(controller: Doer, request: Request) -> None:
        if controller.names == ["a"]:
            tap.flowing.clear()
            await write(controller, await controller.client.get(Widget, "a", namespace))
            tap.flowing.set()

    settings = {"owns": (ConfigMap,), "when": generation_changed, "echo": False, "concurrency": 1} | settings
    return Doer(namespace, act, **settings)


async def heard(client: ApiClient, namespace: str, write: Write, *others: Doer, **settings: Any) -> list[str]:
    """What a controller is called for: by its own write, then by another's, which marks the end."""
    reach, tap = tapped(client)
    manager = Manager(reach)
    writer = doer(namespace, tap, write, **settings)
    for controller in (writer, *others):
        manager.add(controller)
    end = await client.create(widget("end", namespace))
    async with running(manager):
        await writer.seen.until(lambda seen: "end" in writer.names)
        await asyncio.gather(*(other.seen.reach(1) for other in others))
        writer.seen.clear()
        await client.create(widget("a", namespace))
        await writer.seen.reach(1)
        await tap.flowing.wait()
        await client.create(config_map(end, {}))
        await writer.seen.until(lambda seen: "end" in writer.names)
        for other in others:
            await other.seen.until(lambda seen: [request.name for request in seen].count("end") == 2)
    return writer.names


async def create(doer: Doer, owner: Widget) -> ConfigMap:
    return await doer.client.create(config_map(owner, {"size": "1"}))


async def create_and_patch(doer: Doer, owner: Widget) -> None:
    child = await create(doer, owner)
    await doer.client.patch(child, child.replace(data={"size": "2"}))


async def create_and_apply(doer: Doer, owner: Widget) -> None:
    await doer.client.apply(config_map(owner, {"size": "3"}), manager="doer", force=True)


async def create_for_another(doer: Doer, owner: Widget) -> None:
    await doer.client.create(config_map(await doer.client.get(Widget, "end", owner.namespace), {}))


@pytest.mark.parametrize("write", [create, create_and_patch])
async def test_own_writes_bring_no_reconcile(client: ApiClient, namespace: str, write: Write) -> None:
    assert await heard(client, namespace, write) == ["a", "end"]


async def test_they_do_unless_the_controller_says_otherwise(client: ApiClient, namespace: str) -> None:
    assert await heard(client, namespace, create, echo=True) == ["a", "a", "end"]


async def test_a_write_that_may_have_met_anothers_is_no_echo(client: ApiClient, namespace: str) -> None:
    assert await heard(client, namespace, create_and_apply) == ["a", "a", "end"]


async def test_another_controller_hears_of_it(client: ApiClient, namespace: str) -> None:
    other = Doer(namespace, name="other", owns=(ConfigMap,), when=generation_changed, echo=False, concurrency=1)
    await heard(client, namespace, create, other)
    assert other.names.count("a") == 2, "the widget, and its config map"


async def test_another_object_of_the_same_controller_hears_of_it(client: ApiClient, namespace: str) -> None:
    reach, tap = tapped(client)
    manager = Manager(reach)
    controller = doer(namespace, tap, create_for_another)
    manager.add(controller)
    async with running(manager):
        await client.create(widget("end", namespace))
        await controller.seen.until(lambda seen: "end" in controller.names)
        controller.seen.clear()
        await client.create(widget("a", namespace))
        await controller.seen.until(lambda seen: "end" in controller.names)


async def test_what_another_changes_afterwards_brings_a_reconcile(client: ApiClient, namespace: str) -> None:
    reach, tap = tapped(client)
    manager = Manager(reach)
    controller = doer(namespace, tap, create)
    manager.add(controller)
    async with running(manager):
        await client.create(widget("a", namespace))
        await controller.seen.reach(1)
        await tap.flowing.wait()
        child = await client.get(ConfigMap, "a", namespace)
        await client.patch(child, child.replace(data={"size": "someone else's"}))
        await controller.seen.reach(2)


# what a cache notes


def test_only_the_very_revision_that_was_written_is_an_echo() -> None:
    cache, writer = cache_of(made("a", 5)), Writer(None, Request("n", "a"))
    cache.absorb(made("a", 12), writer)
    told = [cache.advance(event("MODIFIED", made("a", revision))) for revision in (11, 12, 13)]
    assert [change and change.writer for change in told] == [None, writer, None]


def test_after_a_new_list_nothing_is_an_echo() -> None:
    """What another did before our write may be in that list alone."""
    cache, writer = cache_of(made("a", 5)), Writer(None, Request("n", "a"))
    cache.absorb(made("a", 12), writer)
    cache.replace(Snapshot([made("a", 11)], "11"), initial=False)
    change = cache.advance(event("MODIFIED", made("a", 12)))
    assert change is not None
    assert change.writer is None


def test_what_the_watch_never_tells_is_not_kept() -> None:
    cache = cache_of()
    cache.absorb(made("a", 12), Writer(None, Request("n", "a")))
    cache.advance(event("ADDED", made("b", 13)))
    assert not cache._writers


async def test_a_task_that_outlives_its_reconcile_writes_for_itself() -> None:
    async def later() -> Writer | None:
        await ended.wait()
        return current()

    ended = asyncio.Event()
    writer = begin(None, Request("n", "a"))
    task = asyncio.create_task(later())
    assert current() is writer
    writer.over = True
    ended.set()
    assert await task is None
