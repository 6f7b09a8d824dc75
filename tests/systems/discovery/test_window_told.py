"""A rule outside of its windows says when it will be swept. On both servers."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from tests.systems.discovery.station import Station, condition
from trimtab.model.duration import Duration
from trimtab.systems.discovery.kinds import DiscoveryRule, Window
from trimtab.testing.ports import free_ports


async def test_a_rule_outside_its_window_says_when_it_opens(station: Station) -> None:
    (port,) = free_ports(1)
    opening = (datetime.now(UTC) + timedelta(hours=12)).replace(minute=0, second=0, microsecond=0)
    window = Window(start=f"0 {opening.hour} * * *", duration=Duration("1h"))
    async with station.working():
        await station.secret("login", community="public")
        await station.profile("snmp", "snmp", port)
        await station.ranges("lab", "127.63.9.1")
        await station.rule("lab", ("snmp",), "login", windows=(window,))
        rule = await station.until(DiscoveryRule, "lab", lambda rule: condition(rule, "Ready"))
    said = condition(rule, "Ready")
    assert (said.status, said.reason) == ("Unknown", "OutsideWindow")
    assert said.message.endswith(f"at {opening:%Y-%m-%dT%H:%M:%SZ}")
