"""Rules that take long: others are served between them, and users take turns."""

import asyncio
import itertools
import time

from trimtab.model.errors import FieldError
from trimtab.model.schema import Schema
from trimtab.server.judging import LONG, Judging

RULE = "self.all(x, self.all(y, x + y >= 0))"
SCHEMA = {
    "type": "object",
    "properties": {
        "l": {"type": "array", "maxItems": 500, "items": {"type": "integer"}, "x-kubernetes-validations": [{"rule": RULE}]}
    },
}  # fmt: skip
HEAVY = {"l": list(range(330))}


class Slow(Schema):
    """Whose rules take a while of a clock that we hold."""

    def __init__(self) -> None:
        super().__init__({})
        self.at, self.takes = 0.0, 10 * LONG
        self.log: list[str] = []

    @property
    def ruled(self) -> bool:
        return True

    def rules(self, obj, old, errors=(), warn=None) -> list[FieldError]:  # type: ignore[no-untyped-def]
        self.at += self.takes
        self.log.append(obj["by"])
        return []


async def test_others_are_served_between_two_objects() -> None:
    schema, judging = Schema(SCHEMA), Judging()
    started = time.process_time()
    assert schema.rules(HEAVY, None) == []
    alone = time.process_time() - started
    assert alone > LONG, "nothing to share"
    turns: list[float] = []

    async def others() -> None:
        while True:
            turns.append(time.process_time())
            await asyncio.sleep(0)

    watching = asyncio.create_task(others())
    found = await asyncio.gather(*(judging.rules("bob", schema, HEAVY, None, ()) for _ in range(8)))
    watching.cancel()
    gaps = [after - before for before, after in itertools.pairwise(turns)]
    assert found == [[]] * 8
    assert max(gaps) < 4 * alone  # two of them where the first two met, and the machine may be busy
    assert len(turns) > 8


async def test_users_take_turns() -> None:
    schema = Slow()
    judging = Judging(now=lambda: schema.at)
    await judging.rules("ann", schema, {"by": "first"}, None, ())
    users = ["bob"] * 6 + ["ann"] * 2
    await asyncio.gather(*(judging.rules(user, schema, {"by": user}, None, ()) for user in users))
    assert schema.log[1:5] == ["bob", "ann", "bob", "ann"]
    assert schema.log.count("bob") == 6


async def test_quick_rules_wait_for_nobody() -> None:
    schema = Slow()
    schema.takes = LONG / 2
    judging = Judging(now=lambda: schema.at)
    await judging.rules("ann", schema, {"by": "ann"}, None, ())
    assert not schema.slow
    schema.takes = 2 * LONG
    await judging.rules("ann", schema, {"by": "ann"}, None, ())
    assert schema.slow
    schema.takes = LONG / 2
    await judging.rules("ann", schema, {"by": "ann"}, None, ())
    assert not schema.slow
