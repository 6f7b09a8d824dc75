"""What every bus promises: one order for all, no gap, and an end where there would be one."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from types import SimpleNamespace

import pytest

from trimtab.hub.bus.contract import MAX_MESSAGE, Bus, BusError, Lost, Session
from trimtab.hub.bus.local import LocalBus
from trimtab.testing.nats import NatsServer
from trimtab.testing.postgres import PostgresServer


@pytest.fixture(params=["local", "postgres", "nats"])
async def bus(request: pytest.FixtureRequest) -> AsyncIterator[Bus]:
    bus: Bus
    match request.param:
        case "local":
            bus = LocalBus()
        case "postgres":
            from trimtab.hub.bus.postgres import PostgresBus

            bus = PostgresBus(request.getfixturevalue("postgres").url)
        case _:
            from trimtab.hub.bus.nats import NatsBus

            bus = NatsBus(request.getfixturevalue("nats").url)
    yield bus
    await bus.close()


async def heard(session: Session, count: int) -> list[bytes]:
    async with asyncio.timeout(20):
        return [await session.receive() for _ in range(count)]


async def opened(bus: Bus) -> Session:
    """Once the server is back: it listens before it serves."""
    async with asyncio.timeout(20):
        while True:
            with contextlib.suppress(Lost):
                return await bus.open("one")


async def test_what_is_published_comes_to_all_and_to_oneself(bus: Bus) -> None:
    one, two = await bus.open("one"), await bus.open("two")
    await one.publish(b"hello")
    assert await heard(one, 1) == await heard(two, 1) == [b"hello"]
    await one.close()
    await two.close()


async def test_all_hear_what_several_publish_at_once_in_the_same_order(bus: Bus) -> None:
    sessions = [await bus.open(f"r{number}") for number in range(3)]

    async def speak(session: Session, number: int) -> None:
        for count in range(30):
            await session.publish(f"{number} {count}".encode())

    await asyncio.gather(*(speak(session, number) for number, session in enumerate(sessions)))
    orders = [await heard(session, 90) for session in sessions]
    assert orders[0] == orders[1] == orders[2]
    assert sorted(set(orders[0])) == sorted(orders[0])
    for session in sessions:
        await session.close()


async def test_a_message_to_one_comes_to_that_one_only(bus: Bus) -> None:
    one, two = await bus.open("one"), await bus.open("two")
    await one.send("two", b"for two")
    assert await heard(two, 1) == [b"for two"]
    await one.send("nobody", b"lost")
    await two.publish(b"all")
    assert await heard(one, 1) == [b"all"]
    await one.close()
    await two.close()


async def test_a_session_hears_nothing_from_before_it(bus: Bus) -> None:
    one = await bus.open("one")
    await one.publish(b"before")
    two = await bus.open("two")
    await one.publish(b"after")
    assert await heard(two, 1) == [b"after"]
    await one.close()
    await two.close()


async def test_long_messages_come_whole_and_too_long_ones_not_at_all(bus: Bus) -> None:
    one, two = await bus.open("one"), await bus.open("two")
    long = bytes(range(256)) * 400
    await asyncio.gather(one.publish(long), two.publish(b"short"))
    assert sorted(await heard(two, 2), key=len) == [b"short", long]
    with pytest.raises(BusError, match="at most"):
        await one.publish(bytes(MAX_MESSAGE + 1))
    await one.publish(b"it goes on")
    assert (await heard(one, 3))[-1] == b"it goes on"
    await one.close()
    await two.close()


async def test_a_closed_session_is_lost(bus: Bus) -> None:
    one = await bus.open("one")
    await one.close()
    with pytest.raises(Lost):
        await one.receive()
    with pytest.raises(Lost):
        await one.publish(b"too late")


async def test_a_session_is_lost_with_the_database_and_another_begins_when_it_is_back(
    postgres: PostgresServer,
) -> None:
    from trimtab.hub.bus.postgres import PostgresBus

    bus = PostgresBus(postgres.url)
    session = await bus.open("one")
    postgres.kill()
    async with asyncio.timeout(20):
        with pytest.raises(Lost):
            await session.receive()
    with pytest.raises(Lost) as caught:
        await bus.open("one")
    assert postgres.password not in str(caught.value)
    await session.close()
    postgres.restart()
    again = await opened(bus)
    await again.publish(b"back")
    assert await heard(again, 1) == [b"back"]
    await again.close()


async def test_a_session_is_lost_with_the_server_and_another_begins_when_it_is_back(nats: NatsServer) -> None:
    from trimtab.hub.bus.nats import NatsBus

    bus = NatsBus(nats.url, timeout=1.0)
    session = await bus.open("one")
    nats.kill()
    async with asyncio.timeout(20):
        with pytest.raises(Lost):
            await session.publish(b"to nobody")
        with pytest.raises(Lost):
            await session.receive()
    await session.close()
    nats.restart()
    again = await opened(bus)
    await again.publish(b"back")
    assert await heard(again, 1) == [b"back"]
    await again.close()
    await bus.close()


async def test_a_hole_in_the_numbers_of_a_stream_ends_the_session(nats: NatsServer) -> None:
    """As on a cluster of servers that lost the newest messages, or where a consumer was made anew."""
    from trimtab.hub.bus.nats import NatsBus

    bus = NatsBus(nats.url)
    session = await bus.open("one")
    await session.publish(b"before")
    assert await heard(session, 1) == [b"before"]
    place = SimpleNamespace(sequence=SimpleNamespace(stream=session._next + 1))
    await session._numbered(SimpleNamespace(metadata=place, data=b"after a hole"))
    try:
        with pytest.raises(Lost, match="went on at"):
            await heard(session, 1)
    finally:
        await session.close()
        await bus.close()


async def test_a_bus_on_postgres_is_not_the_channel_of_the_log() -> None:
    """Else every beat would have every hub look into its log."""
    from trimtab.hub.bus import postgres
    from trimtab.hub.storage import postgres_tail

    assert postgres.CHANNEL != postgres_tail.CHANNEL
