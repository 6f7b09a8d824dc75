"""The period of a rule counts from start to start, also where it is a part of a second. On both servers."""

from __future__ import annotations

import time
from itertools import pairwise
from typing import Any

import pytest

from tests.runtime.widgets import Seen
from tests.systems.discovery.asked_runs import begin, face
from tests.systems.discovery.station import Station
from trimtab.lab.snmp import SnmpDevice
from trimtab.runtime.runs import Runs
from trimtab.testing.ports import free_ports


async def test_no_run_begins_before_its_time(station: Station, monkeypatch: pytest.MonkeyPatch) -> None:
    (port,) = free_ports(1)
    starts: Seen[float] = Seen()
    usual = Runs.start

    def start(runs: Runs, history: Any, trigger: str) -> Any:
        if trigger == "Schedule":
            starts.append(time.monotonic())
        return usual(runs, history, trigger)

    monkeypatch.setattr(Runs, "start", start)
    async with SnmpDevice({"127.52.0.1": face(1)}, port), station.working():
        await begin(station, port, "127.52.0.1", period="400ms")
        await starts.reach(5)
    assert min(later - sooner for sooner, later in pairwise(starts)) > 0.4 - CLOCKS_DIFFER


CLOCKS_DIFFER = 0.02
"""Seconds: one is the clock of the rule, the other that of the test."""
