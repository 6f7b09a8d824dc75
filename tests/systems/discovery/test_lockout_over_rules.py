"""What a rule has tried at a device counts for all rules, also when that rule sweeps no more. On both servers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from tests.systems.discovery.station import Station, condition, ended
from tests.systems.discovery.test_lockout import ledger
from trimtab.client.protocol import Ref
from trimtab.lab.ssh import SshDevice
from trimtab.model.kubernetes import Secret
from trimtab.systems.discovery.findings import Outcome
from trimtab.systems.discovery.kinds import DiscoveryRule
from trimtab.testing.ports import free_ports

ADDRESS = "127.59.0.1"


def device(port: int) -> SshDevice:
    return SshDevice(address=ADDRESS, port=port, password="right")


async def prepare(station: Station, port: int) -> None:
    """One port has both protocols: each password that is wrong may be tried by either."""
    for protocol in ("ssh", "netconf"):
        await station.profile(protocol, protocol, port)
    await station.ranges("lab", ADDRESS)


async def add(station: Station, name: str) -> DiscoveryRule:
    """A rule with a wrong password of its own; when its first run has ended."""
    await station.secret(f"login-{name}", username="admin", password="wrong")
    return await again(station, name)


async def again(station: Station, name: str) -> DiscoveryRule:
    await station.rule(name, ("ssh", "netconf"), f"login-{name}", source="lab")
    return await station.until(DiscoveryRule, name, ended)


async def suspend(station: Station, name: str) -> None:
    await station.change(DiscoveryRule, name, suspend=True)
    await until_stopped(station, name, "Suspended")


async def spoil(station: Station, name: str) -> None:
    """Its Secret is gone: the rule is invalid."""
    await station.client.delete(Ref(Secret, f"login-{name}", station.namespace))
    await until_stopped(station, name, "InvalidProfile")


async def delete(station: Station, name: str) -> None:
    await station.client.delete(Ref(DiscoveryRule, name, station.namespace))
    await station.until_gone(DiscoveryRule, name)


async def until_stopped(station: Station, name: str, reason: str) -> None:
    def stopped(rule: DiscoveryRule) -> bool:
        said = condition(rule, "Ready")
        return said is not None and said.reason == reason

    await station.until(DiscoveryRule, name, stopped)


@pytest.mark.parametrize("stop", [suspend, spoil, delete])
async def test_rules_that_are_stopped_one_after_the_other_have_two_tries_together(
    station: Station, stop: Callable[[Station, str], Awaitable[None]]
) -> None:
    (port,) = free_ports(1)
    async with device(port) as asked, station.working():
        await prepare(station, port)
        for name in ("la", "lb", "lc"):
            await add(station, name)
            await stop(station, name)
        assert asked.failed_logins == 2


async def test_a_rule_that_is_made_anew_again_and_again_has_two_tries_in_all(station: Station) -> None:
    (port,) = free_ports(1)
    async with device(port) as asked, station.working():
        await prepare(station, port)
        await add(station, "la")
        for _ in range(4):
            await delete(station, "la")
            await again(station, "la")
        assert asked.failed_logins == 2
        record = (await ledger(station, "la")).records[ADDRESS]
        assert record.outcome == Outcome.WAITING
        assert "nothing is tried before" in record.detail


async def test_what_a_suspended_rule_has_tried_counts_in_the_next_process(station: Station) -> None:
    (port,) = free_ports(1)
    async with device(port) as asked:
        async with station.working():
            await prepare(station, port)
            await add(station, "la")
            await suspend(station, "la")
        async with station.working():
            await add(station, "lb")
        assert asked.failed_logins == 2


async def test_what_a_rule_has_tried_counts_that_was_deleted_while_no_process_ran(station: Station) -> None:
    (port,) = free_ports(1)
    async with device(port) as asked:
        async with station.working():
            await prepare(station, port)
            await add(station, "la")
        await station.client.delete(Ref(DiscoveryRule, "la", station.namespace))
        async with station.working():
            await station.until_gone(DiscoveryRule, "la")
            await again(station, "la")
        assert asked.failed_logins == 2


async def test_a_rule_that_is_resumed_does_not_count_its_own_tries_twice(station: Station) -> None:
    (port,) = free_ports(1)
    async with device(port) as asked, station.working():
        await station.profile("ssh", "ssh", port)
        await station.ranges("lab", ADDRESS)
        await station.secret("login-la", username="admin", password="right")
        await station.rule("la", ("ssh",), "login-la", source="lab")
        await station.until(DiscoveryRule, "la", lambda rule: rule.status and rule.status.targets)
        for _ in range(3):
            await suspend(station, "la")
            await station.change(DiscoveryRule, "la", suspend=False)
            await station.until(DiscoveryRule, "la", lambda rule: condition(rule, "Ready").reason == "Swept")
        assert (await ledger(station, "la")).records[ADDRESS].outcome == Outcome.IDENTIFIED
        assert asked.failed_logins == 0
