"""MassLoss from end to end: what is held back goes when somebody says so, and only that. On both servers."""

from __future__ import annotations

from tests.systems.discovery.asked_runs import AT_ONCE, annotate, begin, face, held_run, release, sweep
from tests.systems.discovery.station import Station, condition
from trimtab.lab.snmp import SnmpDevice
from trimtab.systems.discovery.kinds.rule import RELEASE_ANNOTATION
from trimtab.testing.ports import free_ports

PREFIX = "127.44.0.0/28"


async def phases(station: Station) -> dict[str, str]:
    return {name: target.status.phase for name, target in sorted((await station.targets()).items())}


async def test_what_is_released_twice_is_deleted_and_nothing_else(station: Station) -> None:
    (port,) = free_ports(1)
    devices = {f"127.44.0.{n}": face(n) for n in range(1, 5)}
    gone = ("switch-1", "switch-2", "switch-3")
    async with SnmpDevice(devices, port), station.working():
        await begin(station, port, PREFIX, fading=AT_ONCE)
        for number in (1, 2, 3):
            del devices[f"127.44.0.{number}"]
        await sweep(station)
        held = await sweep(station)
        assert await phases(station) == {**dict.fromkeys(gone, "Stale"), "switch-4": "Ready"}
        first = held_run(held)
        await release(station, held)
        lost = await sweep(station)
        assert condition(lost, "MassLoss") is None
        assert await phases(station) == {**dict.fromkeys(gone, "Lost"), "switch-4": "Ready"}
        held = await sweep(station)
        assert "3 of 4" in condition(held, "MassLoss").message
        assert held_run(held) != first
        assert await phases(station) == {**dict.fromkeys(gone, "Lost"), "switch-4": "Ready"}
        await release(station, held)
        deleted = await sweep(station)
        assert condition(deleted, "MassLoss") is None
        assert await phases(station) == {"switch-4": "Ready"}
        assert deleted.status.history[0].counts["deleted"] == 3


async def test_a_release_does_not_count_for_a_later_loss(station: Station) -> None:
    """The devices came back, so the run that was held back has nothing to say any more."""
    (port,) = free_ports(1)
    devices = {f"127.44.0.{n}": face(n) for n in range(1, 5)}
    kept = dict(devices)
    async with SnmpDevice(devices, port), station.working():
        await begin(station, port, PREFIX, fading=AT_ONCE)
        devices.clear()
        await sweep(station)
        old = held_run(await sweep(station))
        devices.update(kept)
        back = await sweep(station)
        assert condition(back, "MassLoss") is None
        devices.clear()
        await sweep(station)
        await annotate(station, RELEASE_ANNOTATION, old)
        held = await sweep(station)
        assert held_run(held) not in ("", old)
        assert set((await phases(station)).values()) == {"Stale"}
