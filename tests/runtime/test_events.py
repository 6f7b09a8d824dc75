"""Events reach those who look at an object, and never hold up those who record them."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any

import pytest

from trimtab.client.api import ApiClient
from trimtab.client.connect import connect
from trimtab.client.protocol import Query, Ref
from trimtab.model.clock import SystemClock
from trimtab.model.errors import StatusError
from trimtab.model.kubernetes import ConfigMap, Event, EventSeries, Namespace
from trimtab.model.objectmeta import ObjectMeta
from trimtab.model.scheme import Untyped
from trimtab.runtime.events import Recorder
from trimtab.testing.clock import FakeClock
from trimtab.testing.peer import ApiServer

COMPONENT = "test.trimtab.dev/recorder"


def recorder(client: Any, clock: Any = None, **options: Any) -> Recorder:
    return Recorder(client, clock or SystemClock(), component=COMPONENT, instance="one", **options)


@pytest.fixture(autouse=True)
def said(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """The fields of what is logged."""
    lines: list[dict[str, Any]] = []
    monkeypatch.setattr("trimtab.runtime.events.recorder.log", Heard(lines))
    return lines


@pytest.fixture
async def thing(client: ApiClient, namespace: str) -> ConfigMap:
    return await client.create(ConfigMap(metadata=ObjectMeta(name="thing", namespace=namespace)))


async def told(client: ApiClient, namespace: str) -> list[Event]:
    found = (await client.list(Event, Query(namespace=namespace))).items
    return [event for event in found if event.reporting_controller == COMPONENT]


async def test_an_event_says_what_happened_to_what(client: ApiClient, namespace: str, thing: ConfigMap) -> None:
    async with recorder(client) as events:
        events.normal(thing, "Created", "made it", action="Create", related=thing)
    (event,) = await told(client, namespace)
    assert (event.type, event.reason, event.action, event.note) == ("Normal", "Created", "Create", "made it")
    assert event.regarding.uid == thing.metadata.uid  # type: ignore[union-attr]
    assert event.related.name == "thing"  # type: ignore[union-attr]
    assert event.reporting_instance == "one"


async def test_repetitions_are_counted_in_one_event(client: ApiClient, namespace: str, thing: ConfigMap) -> None:
    async with recorder(client) as events:
        for _ in range(50):
            events.warning(thing, "Failing", "again")
    (event,) = await told(client, namespace)
    assert isinstance(event.series, EventSeries)
    assert event.series.count == 50


async def test_an_object_of_the_whole_cluster_has_its_events_in_default(client: ApiClient, namespace: str) -> None:
    async with recorder(client) as events:
        events.normal(await client.get(Namespace, namespace), "Seen", "it is there")
    assert namespace in [event.regarding.name for event in await told(client, "default")]  # type: ignore[union-attr]


async def test_long_notes_and_odd_names_fit(client: ApiClient, namespace: str) -> None:
    names = ["system:" + "x" * 240, "A..b", ".", "é"]
    async with recorder(client) as events:
        for name in names:
            metadata = {"name": name, "namespace": namespace}
            events.normal(Untyped({"apiVersion": "v1", "kind": "X", "metadata": metadata}), "R" * 500, "ü" * 2000)
        assert events.lost == 0
    found = await told(client, namespace)
    assert len(found) == len(names)
    assert {event.note for event in found} == {"ü" * 512}


async def test_a_count_that_grows_is_written_every_half_minute(
    client: ApiClient, namespace: str, thing: ConfigMap
) -> None:
    clock = FakeClock()
    counting: Any = Counting(client)
    events = recorder(counting, clock)
    async with events:
        for _ in range(120):  # two minutes
            events.normal(thing, "Ticking", "tick")
            await clock.advance(1)
    assert counting.writes <= 7
    (event,) = await told(client, namespace)
    assert event.series.count == 120  # type: ignore[union-attr]


async def test_an_event_that_expired_is_told_again_with_its_count(
    client: ApiClient, namespace: str, thing: ConfigMap
) -> None:
    events = recorder(client)
    events.normal(thing, "Ticking", "tick")
    await events.flush()
    (event,) = await told(client, namespace)
    await client.delete(Ref(Event, event.name, namespace))
    events.normal(thing, "Ticking", "tick")
    await events.flush()
    (event,) = await told(client, namespace)
    assert event.series.count == 2  # type: ignore[union-attr]


async def test_another_writer_of_the_event_is_no_hindrance(client: ApiClient, namespace: str, thing: ConfigMap) -> None:
    events = recorder(client)
    events.normal(thing, "Ticking", "tick")
    await events.flush()
    (event,) = await told(client, namespace)
    await client.patch(
        event, event.replace(metadata=ObjectMeta(name=event.name, namespace=namespace, labels={"a": "b"}))
    )
    events.normal(thing, "Ticking", "tick")
    await events.flush()
    (event,) = await told(client, namespace)
    assert event.series.count == 2  # type: ignore[union-attr]
    assert event.metadata.labels == {"a": "b"}


async def test_a_failure_that_passes_is_waited_out(client: ApiClient, namespace: str, thing: ConfigMap) -> None:
    clock = FakeClock()
    failing: Any = Counting(
        client, StatusError(503, "ServiceUnavailable", "starting"), ConnectionError(), TimeoutError()
    )
    async with recorder(failing, clock) as events:
        events.normal(thing, "Created", "made it")
        await clock.advance(60)
        await events.flush()
        assert (failing.writes, events.lost) == (4, 0)
    assert len(await told(client, namespace)) == 1


async def test_a_write_whose_answer_was_lost_is_not_repeated(
    client: ApiClient, namespace: str, thing: ConfigMap
) -> None:
    clock = FakeClock()
    deaf: Any = Counting(client, TimeoutError(), after=True)
    async with recorder(deaf, clock) as events:
        events.normal(thing, "Created", "made it")
        await deaf.failed.wait()
        await clock.advance(60)
        await events.flush()
        assert events.lost == 0
    assert len(await told(client, namespace)) == 1


async def test_after_a_few_failures_an_event_is_given_up_and_the_next_is_told(
    client: ApiClient, namespace: str, thing: ConfigMap
) -> None:
    clock = FakeClock()
    failing: Any = Counting(client, *[ConnectionError()] * 4)
    async with recorder(failing, clock) as events:
        events.normal(thing, "Lost", "nobody sees it")
        events.normal(thing, "Created", "made it")
        await clock.advance(60)
        await events.flush()
        assert events.lost == 1
    assert [event.reason for event in await told(client, namespace)] == ["Created"]


async def test_a_namespace_that_goes_away_gets_no_events_and_costs_no_time(
    client: ApiClient, namespace: str, thing: ConfigMap
) -> None:
    held = ConfigMap(metadata=ObjectMeta(name="held", namespace=namespace, finalizers=("test.trimtab.dev/held",)))
    await client.create(held)
    await client.delete(Ref(Namespace, namespace))
    counting: Any = Counting(client)
    events = recorder(counting)
    events.normal(thing, "Created", "made it")
    await events.flush()
    assert (counting.writes, events.lost) == (1, 1)
    now = await client.get(ConfigMap, "held", namespace)
    await client.patch(now, now.replace(metadata=ObjectMeta(name="held", namespace=namespace, finalizers=())))


async def test_a_full_queue_loses_events_and_says_so_once_a_minute(said: list[dict[str, Any]]) -> None:
    clock = FakeClock()
    events = recorder(None, clock, queue=2)
    for letter in "abcdef":
        events.normal(ConfigMap(metadata=ObjectMeta(name="thing")), "Said", letter)
    assert events.lost == 4
    assert [line["lost"] for line in said] == [1]
    await clock.advance(60)
    events.normal(ConfigMap(metadata=ObjectMeta(name="thing")), "Said", "g")
    assert [line["lost"] for line in said] == [1, 4]


async def test_an_api_that_hangs_holds_up_the_end_for_a_few_seconds_only(said: list[dict[str, Any]]) -> None:
    class Hanging:
        async def create(self, obj: Any) -> Any:
            await asyncio.Event().wait()

    clock, before = FakeClock(), asyncio.all_tasks()

    async def life() -> None:
        async with recorder(Hanging(), clock) as events:
            events.normal(ConfigMap(metadata=ObjectMeta(name="thing", namespace="default")), "Made", "it is there")

    living = asyncio.create_task(life())
    await clock.advance(4.9)
    assert not living.done()
    await clock.advance(0.1)
    await living
    assert said == [{"component": COMPONENT}]
    assert asyncio.all_tasks() == before


def test_recording_garbage_raises_nothing() -> None:
    events = recorder(None, FakeClock())
    events.normal(None, "Said", "what")  # type: ignore[arg-type]
    events.normal(Untyped({"metadata": {"labels": 5}}), "", "\ud800")
    assert events.lost == 2


@pytest.mark.parametrize("home", ["trimtab_server", pytest.param("real_cluster", marks=pytest.mark.cluster)])
async def test_people_see_them(request: pytest.FixtureRequest, home: str, tmp_path: Path) -> None:
    """By kubectl and by our own command line."""
    api_server: ApiServer = request.getfixturevalue(home)
    client = connect(api_server.kubeconfig)
    try:
        name = f"events-{tmp_path.name.replace('_', '-')[:40].lower()}".rstrip("-")
        await client.create(Untyped({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}))
        metadata = {"name": "thing", "namespace": name}
        thing = await client.create(Untyped({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}))
        async with recorder(client) as events:
            events.normal(thing, "Created", "made it")
            for _ in range(7):
                events.warning(thing, "Failing", "again")
    finally:
        await client.close()
    for command in (["kubectl", "describe", "configmap", "thing"], ["trimtab", "describe", "configmap", "thing"]):
        out = await shown(command, api_server, name)
        assert "made it" in out
        assert "x7" in out, out
    listed = await shown(["kubectl", "get", "events", "-o", "wide"], api_server, name)
    header, *rows = listed.splitlines()
    (failing,) = (row for row in rows if "Failing" in row)
    assert "configmap/thing" in failing
    assert failing[header.index("COUNT") :].split()[0] == "7"
    assert "(x7)" in await shown(["trimtab", "events"], api_server, name)


async def shown(command: list[str], server: ApiServer, namespace: str) -> str:
    program = str(Path(sys.executable).with_name("trimtab")) if command[0] == "trimtab" else command[0]
    arguments = [*command[1:], "--kubeconfig", str(server.kubeconfig), "-n", namespace]
    process = await asyncio.create_subprocess_exec(
        program, *arguments, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
    )
    out, _ = await process.communicate()
    assert process.returncode == 0, out
    return out.decode()


class Heard:
    def __init__(self, lines: list[dict[str, Any]]) -> None:
        self._lines = lines

    def warning(self, _: str, **fields: Any) -> None:
        self._lines.append(fields)


class Counting:
    """A client that counts writes, and whose first ones fail: before they are sent, or after."""

    def __init__(self, client: ApiClient, *failures: Exception, after: bool = False) -> None:
        self._client = client
        self._failures = list(failures)
        self._after = after
        self.writes = 0
        self.failed = asyncio.Event()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)

    async def create(self, obj: Any) -> Any:
        self.writes += 1
        if self._failures and not self._after:
            raise self._failures.pop(0)
        made = await self._client.create(obj)
        if self._failures:
            self.failed.set()
            raise self._failures.pop(0)
        return made

    async def patch(self, old: Any, new: Any) -> Any:
        self.writes += 1
        return await self._client.patch(old, new)
