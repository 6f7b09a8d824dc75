"""Sweeps that find what they found before: nobody is written to, and nobody is woken. On both servers."""

from __future__ import annotations

import pytest

from tests.runtime.widgets import Seen, running, tapped
from tests.systems.discovery.asked_runs import begin, face
from tests.systems.discovery.station import Station
from trimtab.client.protocol import Query
from trimtab.lab.snmp import SnmpDevice
from trimtab.runtime import Controller, Request, Result
from trimtab.runtime.manager import Manager
from trimtab.systems.discovery.kinds import Target
from trimtab.testing.ports import free_ports


class Follower(Controller[Target]):
    """Somebody else who builds on Targets, and hears of every change."""

    def __init__(self, namespace: str) -> None:
        self.query = Query(namespace=namespace)
        self.asked: Seen[str] = Seen()

    async def reconcile(self, request: Request) -> Result | None:
        self.asked.append(request.name)
        return None


@pytest.mark.slow
async def test_ten_of_them_write_no_target_and_wake_nobody(station: Station) -> None:
    (port,) = free_ports(1)
    client, tap = tapped(station.client)
    controller, follower = station.controller(), Follower(station.namespace)
    reconciled: Seen[str] = Seen()
    usual = controller.reconcile

    async def reconcile(request: Request) -> Result | None:
        reconciled.append(request.name)
        return await usual(request)

    controller.reconcile = reconcile  # type: ignore[method-assign]
    manager = Manager(client)
    manager.add(controller)
    manager.add(follower)
    async with SnmpDevice({f"127.47.0.{n}": face(n) for n in (1, 2, 3)}, port), running(manager):
        await begin(station, port, "127.47.0.0/29", period="550ms", patience="500ms")
        await station.until_swept("lab")
        await follower.asked.until(lambda asked: {"switch-1", "switch-2", "switch-3"} <= {*asked})
        writes, woken, asked = len(tap.writes), len(reconciled), len(follower.asked)
        await station.until_swept("lab", 10)
        assert [call.path for call in tap.writes[writes:] if "/targets" in call.path] == []
        await station.annotate((await station.targets())["switch-2"], "example.com/touched", "yes")
        await follower.asked.reach(asked + 1)  # so it has heard of whatever came before
        assert follower.asked[asked:] == ["switch-2"]
        assert reconciled[woken:] == []
