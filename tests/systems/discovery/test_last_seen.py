"""When a Target that is missed was last seen: by the last sweep that it answered, not by the first that it did not.

The tests write other times into the history of the rule, as if its runs had been long ago. On both servers.
"""

from __future__ import annotations

from typing import Any

import msgspec

from tests.systems.discovery.asked_runs import AT_ONCE, begin, face, sweep
from tests.systems.discovery.station import Station
from trimtab.lab.snmp import SnmpDevice
from trimtab.model.duration import Duration
from trimtab.runtime.runs import Run
from trimtab.systems.discovery.kinds import DiscoveryRule, Fading
from trimtab.testing.ports import free_ports

PREFIX = "127.56.0.0/29"
BEFORE = "2026-01-02T03:04:05Z"
TOGETHER = msgspec.structs.replace(AT_ONCE, max_loss_percent=100)


async def rewrite(station: Station, *runs: dict[str, Any]) -> None:
    """The history of the rule, newest first, with what its one run had else."""
    rule = await station.client.get(DiscoveryRule, "lab", station.namespace)
    (run,) = rule.status.history
    history = tuple(run.replace(**{"id": f"{run.id}-{n}", **changes}) for n, changes in enumerate(runs))
    await station.client.patch(rule, rule.replace(status=rule.status.replace(history=history)), subresource="status")


async def test_it_is_the_end_of_the_sweep_before(station: Station) -> None:
    (port,) = free_ports(1)
    devices = {"127.56.0.1": face(1), "127.56.0.2": face(2)}
    async with SnmpDevice(devices, port), station.working():
        await begin(station, port, PREFIX, fading=TOGETHER)
        await rewrite(station, {"finished": BEFORE})
        del devices["127.56.0.1"]
        await sweep(station)
        stale = (await station.targets())["switch-1"].status
        await sweep(station)
        lost = (await station.targets())["switch-1"].status
    assert (stale.phase, stale.last_seen) == ("Stale", BEFORE)
    assert (lost.phase, lost.last_seen) == ("Lost", BEFORE)


async def test_sweeps_that_failed_or_cannot_be_trusted_have_seen_nobody(station: Station) -> None:
    (port,) = free_ports(1)
    devices = {"127.56.0.1": face(1), "127.56.0.2": face(2)}
    async with SnmpDevice(devices, port), station.working():
        await begin(station, port, PREFIX)
        later = {"finished": "2026-02-02T00:00:00Z"}
        await rewrite(station, {"outcome": "Failed", **later}, {"reason": "PoorSweep", **later}, {"finished": BEFORE})
        del devices["127.56.0.1"]
        await sweep(station)
        assert (await station.targets())["switch-1"].status.last_seen == BEFORE


async def test_a_time_in_which_nobody_swept_is_no_absence(station: Station) -> None:
    (port,) = free_ports(1)
    devices = {"127.56.0.1": face(1), "127.56.0.2": face(2)}
    slow = Fading(lost_after_misses=1, lost_after=Duration("1h"), delete_after_misses=2, delete_after=Duration("1h"))
    async with SnmpDevice(devices, port), station.working():
        await begin(station, port, PREFIX, fading=slow)
        await rewrite(station, {"finished": BEFORE})
        del devices["127.56.0.1"]
        for _ in range(3):
            await sweep(station)
        assert (await station.targets())["switch-1"].status.phase == "Stale"


async def test_a_device_that_comes_back_and_goes_again_was_seen_in_between(station: Station) -> None:
    (port,) = free_ports(1)
    devices = {"127.56.0.1": face(1), "127.56.0.2": face(2)}
    async with SnmpDevice(devices, port), station.working():
        await begin(station, port, PREFIX)
        await rewrite(station, {"finished": BEFORE})
        gone = devices.pop("127.56.0.1")
        await sweep(station)
        devices["127.56.0.1"] = gone
        back: Run = (await sweep(station)).status.history[0]
        del devices["127.56.0.1"]
        await sweep(station)
        assert (await station.targets())["switch-1"].status.last_seen == back.finished
