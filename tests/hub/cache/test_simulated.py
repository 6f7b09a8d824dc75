"""No read that began after an acknowledged write shows what was before it: on hundreds of schedules, each with its seed."""

from __future__ import annotations

import asyncio
import os

import pytest

from tests.hub.cache.history import violations
from tests.hub.cache.simulated import LEASE, Lab
from trimtab.hub.cache import membership
from trimtab.hub.cache.generations import Change
from trimtab.hub.cache.group import Group
from trimtab.hub.cache.rounds import Rounds
from trimtab.testing.loop import SimulatedLoop, run

SCHEDULES = int(os.environ.get("TRIMTAB_SCHEDULES", "20"))


async def storm(seed: int, *, faults: bool, peers: bool = True, steps: int = 40) -> Lab:
    lab = Lab(seed, peers=peers)
    for name in ("one", "two", "three"):
        lab.replica(name, steps)
    if faults:
        lab.calm = False
        for _ in range(5):
            await _misfortune(lab)
        lab.calm = True
    await lab.done()
    return lab


async def _misfortune(lab: Lab) -> None:
    loop = asyncio.get_running_loop()
    assert isinstance(loop, SimulatedLoop)
    chance = lab.chance
    await asyncio.sleep(chance.uniform(0, LEASE))
    match chance.choice(("stall", "stall", "stall", "cut", "outage", "kill")):
        case "stall":
            process = chance.choice(list(lab.processes.values()))
            process.stall()
            await asyncio.sleep(chance.choice((0.5, LEASE * membership.SPARE, LEASE, 2 * LEASE)))
            process.resume()
            loop.wake_stalled()
        case "cut" if lab.wire.sessions:
            chance.choice(lab.wire.sessions).cut()
        case "outage":
            lab.wire.outage()
            await asyncio.sleep(chance.uniform(0, 2 * LEASE))
            lab.wire.down = False
        case "kill":
            lab.processes["three"].kill()
        case _:
            pass


@pytest.mark.row(36)
@pytest.mark.row(38)
@pytest.mark.parametrize("peers", [True, False], ids=["sharded", "each for itself"])
def test_no_read_is_older_than_an_acknowledged_write(peers: bool) -> None:
    hits = asked = 0
    for seed in range(SCHEDULES):
        lab = run(storm(seed, faults=False, peers=peers), seed=seed)
        assert list(violations(lab.history)) == [], f"seed {seed}"
        hits += lab.served
        asked += lab.answered
    assert hits > 5 * SCHEDULES
    assert (asked > 0) == peers


@pytest.mark.row(35)
@pytest.mark.row(36)
@pytest.mark.parametrize("peers", [True, False], ids=["sharded", "each for itself"])
def test_nor_while_replicas_stall_and_die_and_the_bus_is_lost(peers: bool) -> None:
    hits = writes = 0
    for seed in range(SCHEDULES):
        lab = run(storm(seed, faults=True, peers=peers), seed=seed)
        assert list(violations(lab.history)) == [], f"seed {seed}"
        hits += lab.served
        writes += sum(event.op == "write" for event in lab.history)
    assert hits > SCHEDULES
    assert writes > 5 * SCHEDULES


def _fails_somewhere(faults: bool) -> bool:
    return any(list(violations(run(storm(seed, faults=faults), seed=seed).history)) for seed in range(300))


def test_the_simulation_finds_a_cache_that_keeps_what_was_read_before_a_change(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trimtab.hub.cache.generations.Generations.move", lambda self, change: None)
    assert _fails_somewhere(faults=False)


def test_the_simulation_finds_a_cache_that_does_not_hear_of_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    def deaf(self: Group, change: Change) -> None:
        return None

    monkeypatch.setattr(Group, "drop", deaf)
    assert _fails_somewhere(faults=False)


BROKEN: dict[str, tuple[str, object, bool]] = {
    "a lease that lasts longer than others wait": ("membership.SPARE", 3.0, True),
    "writers that wait for nobody": ("membership.Membership.awaited", lambda self, now: {}, True),
    "writers that have just come and wait for nobody else": ("membership.Membership.complete", lambda self: 0.0, True),
    "what was kept is kept over a lost session": ("caches.Caches.flush", lambda self: None, True),
    "a write that was not told is forgotten with the session": (
        "rounds.Rounds.again",
        lambda self: _forgotten(self),
        True,
    ),
    "an owner that lags behind is believed": ("positions.Positions.knows", lambda self, identity: True, False),
}


def _forgotten(rounds: Rounds) -> None:
    for going in rounds._going.values():
        if not going.done.done():
            going.done.set_result(None)
    rounds._going.clear()


@pytest.mark.slow
@pytest.mark.parametrize("broken", BROKEN)
def test_the_simulation_finds_each_part_of_the_protocol_that_is_missing(
    broken: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    place, instead, faults = BROKEN[broken]
    monkeypatch.setattr(f"trimtab.hub.cache.{place}", instead)
    if "owner" in broken:  # revisions would show it, too
        monkeypatch.setattr("trimtab.hub.cache.generations.Generations.floor", lambda self, scope: 0)
    assert _fails_somewhere(faults)
