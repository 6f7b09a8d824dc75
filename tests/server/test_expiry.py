"""Events go by themselves."""

import asyncio
from datetime import UTC, datetime, timedelta

from tests.server.api import Api, running

EVENTS = "/api/v1/namespaces/default/events"


class Hand:
    """A clock that is moved by hand; who sleeps on it waits for `turn`."""

    def __init__(self) -> None:
        self.time = datetime(2026, 1, 1, tzinfo=UTC)
        self.asleep = asyncio.Event()

    def turn(self) -> None:
        """Wake all who sleep, once."""
        self.asleep.set()
        self.asleep = asyncio.Event()

    def now(self) -> datetime:
        return self.time

    def monotonic(self) -> float:
        return self.time.timestamp()

    async def sleep(self, seconds: float) -> None:
        await self.asleep.wait()


def event(name: str) -> dict[str, object]:
    involved = {"kind": "ConfigMap", "name": "a", "namespace": "default"}
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": name},
        "involvedObject": involved,
        "type": "Normal",
    }


async def codes(api: Api, *names: str) -> list[int]:
    return [(await api.get(f"{EVENTS}/{name}")).code for name in names]


async def test_an_event_goes_an_hour_after_its_last_write() -> None:
    clock = Hand()
    async with running(clock=clock) as api:
        await api.post(EVENTS, event("old"))
        await api.post(EVENTS, event("seen-again"))
        clock.time += timedelta(minutes=40)
        await api.merge(f"{EVENTS}/seen-again", {"count": 2})
        clock.time += timedelta(minutes=21)
        assert await api.server.expiry_task.sweep() == 1
        assert await codes(api, "old", "seen-again") == [404, 200]
        clock.time += timedelta(minutes=40)
        await api.server.expiry_task.sweep()
        assert await codes(api, "seen-again") == [404]


async def test_the_server_sweeps_by_itself() -> None:
    clock = Hand()
    async with running(clock=clock, event_ttl=-1.0) as api:
        await api.post(EVENTS, event("old"))
        clock.turn()
        await api.gone(f"{EVENTS}/old")


async def test_the_expiry_of_an_event_is_told_to_watchers() -> None:
    clock = Hand()
    async with running(clock=clock) as api:
        made = (await api.post(EVENTS, event("old"))).doc
        async with api.watch(f"{EVENTS}?watch=true&resourceVersion={made['metadata']['resourceVersion']}") as seen:
            clock.time += timedelta(minutes=61)
            await api.server.expiry_task.sweep()
            assert (await seen())["type"] == "DELETED"
