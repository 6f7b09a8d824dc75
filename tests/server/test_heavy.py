"""Large bodies: of one user one at a time, with time for others in between."""

import asyncio

from trimtab.model.schema import Schema
from trimtab.model.schema.finding import MAX_ERRORS
from trimtab.server import heavy
from trimtab.server.heavy import Heavy


class Held:
    """A clock that tells of each turn that it took so long."""

    def __init__(self, takes: float) -> None:
        self.at, self.takes = 0.0, takes

    def __call__(self) -> float:
        self.at += self.takes
        return self.at


async def test_one_of_a_user_at_a_time_and_others_besides() -> None:
    turns, order = Heavy(Held(0.0)), []

    async def asked(user: str, name: str, pause: float) -> None:
        with await turns.turn(user):
            order.append(f"{name} in")
            await asyncio.sleep(pause)
            order.append(f"{name} out")

    await asyncio.gather(asked("bob", "first", 0.05), asked("bob", "second", 0.0), asked("alice", "other", 0.0))
    assert order == ["first in", "other in", "other out", "first out", "second in", "second out"]
    assert turns._queues == {}


async def test_accounts_of_one_namespace_are_as_one_user() -> None:
    turns = Heavy(Held(0.0))
    with await turns.turn("system:serviceaccount:a:one"):
        waiting = asyncio.create_task(turns.turn("system:serviceaccount:a:two"))
        with await turns.turn("system:serviceaccount:b:one"):
            await asyncio.sleep(0)
            assert not waiting.done()
    with await waiting:
        pass
    assert turns._queues == {}


async def test_after_each_the_server_rests_for_as_long_as_it_took() -> None:
    turns, loop = Heavy(Held(0.1)), asyncio.get_running_loop()
    with await turns.turn("bob"):
        pass
    started = loop.time()
    with await turns.turn("bob"):
        pass
    assert loop.time() - started > 0.09


async def test_nobody_waits_for_long_for_one_that_waits_itself(monkeypatch) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.setattr(heavy, "PATIENCE", 0.02)
    turns = Heavy()
    async with asyncio.timeout(5):
        with await turns.turn("bob"), await turns.turn("bob"):
            pass


async def test_who_leaves_while_it_waits_is_forgotten() -> None:
    turns = Heavy(Held(0.0))
    with await turns.turn("bob"):
        waiting = asyncio.create_task(turns.turn("bob"))
        await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
    assert turns._queues == {}


def test_of_very_many_errors_so_many_are_written() -> None:
    schema = Schema({"type": "object", "properties": {"l": {"type": "array", "items": {"type": "string"}}}})
    assert len(schema.walk({"l": [1] * (3 * MAX_ERRORS)}).errors) == MAX_ERRORS
