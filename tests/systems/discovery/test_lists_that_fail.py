"""Pods or Services that cannot be listed: the rule says so, and no Target goes for it. On both servers."""

from __future__ import annotations

from typing import Any

import pytest

from tests.runtime.widgets import Tap, running, until
from tests.systems.discovery.asked_runs import AT_ONCE, face, until_ended
from tests.systems.discovery.station import Station, condition, is_ready
from tests.systems.discovery.test_sources import pod
from trimtab.client.api import ApiClient
from trimtab.client.protocol import Query
from trimtab.client.transport import Call, Reply
from trimtab.lab.snmp import SnmpDevice
from trimtab.model.duration import Duration
from trimtab.model.errors import StatusError
from trimtab.model.kubernetes import Pod, Service
from trimtab.model.objectmeta import ObjectMeta
from trimtab.runtime.cached import CachedClient
from trimtab.runtime.manager import Manager
from trimtab.systems.discovery import loop
from trimtab.systems.discovery.kinds import DefaultSchema, DiscoveryRule, TargetConnection
from trimtab.systems.discovery.kinds.range import Selector
from trimtab.testing.ports import free_ports

DEVICES = Selector(match_labels={"app": "device"})


class Lists:
    """Lists of one kind fail while `broken`, whoever asks."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, kind: type[Any]) -> None:
        self.broken = False
        usual = CachedClient.list

        async def fails(client: CachedClient, asked: Any, query: Query = Query()) -> Any:  # noqa: B008 - frozen
            if self.broken and asked is kind:
                raise StatusError(503, "ServiceUnavailable", "the list cannot be had, says the test")
            return await usual(client, asked, query)

        monkeypatch.setattr(CachedClient, "list", fails)


async def login(station: Station, port: int) -> None:
    await station.secret("login", community="public")
    await station.profile("snmp", "snmp", port, probe_timeout=Duration("500ms"))


async def service(station: Station, name: str) -> None:
    """One with an address in the cluster: a real server gives it one."""
    metadata = ObjectMeta(name=name, namespace=station.namespace, labels={"app": "device"})
    made: Any = await station.client.create(Service(metadata=metadata, spec={"ports": [{"port": 161}]}))
    if not made.spec.get("clusterIP"):
        await station.client.patch(made, made.replace(spec={**made.spec, "clusterIP": "10.96.7.7"}))


async def revisions(station: Station) -> dict[str, Any]:
    return {name: target.metadata.resource_version for name, target in (await station.targets()).items()}


async def test_pods_that_cannot_be_listed_fail_the_sweep_and_no_target_goes(
    station: Station, monkeypatch: pytest.MonkeyPatch
) -> None:
    (port,) = free_ports(1)
    lists = Lists(monkeypatch, Pod)
    monkeypatch.setattr(loop, "AGAIN_AFTER", 0.2)
    async with SnmpDevice({"127.50.0.1": face(1), "127.50.0.2": face(2)}, port), station.working():
        await login(station, port)
        await pod(station, "one", "127.50.0.1")
        await pod(station, "two", "127.50.0.2")
        await station.ranges("lab", pod_selector=DEVICES)
        await station.rule("lab", ("snmp",), "login", fading=AT_ONCE, period="600ms")
        await station.until(DiscoveryRule, "lab", is_ready)
        before = await revisions(station)
        lists.broken = True
        rule = await station.until(DiscoveryRule, "lab", lambda rule: not is_ready(rule))
        assert condition(rule, "Ready").reason == "SweepFailed"
        assert "the list cannot be had" in condition(rule, "Ready").message
        await station.until_swept("lab", 2)
        assert await revisions(station) == before
        lists.broken = False
        await until_ended(station, is_ready)
        assert await revisions(station) == before


async def test_services_that_cannot_be_listed_fail_the_sweep_and_no_target_goes(
    station: Station, monkeypatch: pytest.MonkeyPatch
) -> None:
    (port,) = free_ports(1)
    lists = Lists(monkeypatch, Service)
    async with station.working():
        await login(station, port)
        await service(station, "core")
        await station.ranges("lab", service_selector=DEVICES, default_schema=DefaultSchema(provider="x", version="1"))
        connection = TargetConnection(connection_profile="snmp", credentials="login")
        await station.rule("lab", (), "login", connections=(connection,))
        await station.until(DiscoveryRule, "lab", is_ready)
        before = await revisions(station)
        assert len(before) == 1
        lists.broken = True
        await station.until(DiscoveryRule, "lab", lambda rule: not is_ready(rule))
        assert await revisions(station) == before


class NoPods(Tap):
    """A server that lists no Pods while `broken`; what watches there are have no word of them either."""

    broken = True
    refused = 0

    def __init__(self, client: ApiClient) -> None:
        super().__init__(client.transport)

    async def call(self, call: Call) -> Reply:
        self._judge(call)
        return await super().call(call)

    async def stream(self, call: Call, inactivity: float) -> Any:
        self._judge(call)
        async for line in super().stream(call, inactivity):
            yield line

    def _judge(self, call: Call) -> None:
        if self.broken and call.path.endswith("/pods"):
            self.refused += 1
            raise StatusError(503, "ServiceUnavailable", "the list cannot be had, says the test")


async def test_a_process_that_finds_no_list_of_pods_when_it_starts_waits_for_it(station: Station) -> None:
    (port,) = free_ports(1)
    async with SnmpDevice({"127.50.0.1": face(1), "127.50.0.2": face(2)}, port):
        async with station.working():
            await login(station, port)
            await pod(station, "one", "127.50.0.1")
            await pod(station, "two", "127.50.0.2")
            await station.ranges("lab", pod_selector=DEVICES)
            await station.rule("lab", ("snmp",), "login", fading=AT_ONCE, period="600ms")
            await station.until(DiscoveryRule, "lab", is_ready)
        before = await revisions(station)
        ended = (await station.client.get(DiscoveryRule, "lab", station.namespace)).status.history[0].id
        tap = NoPods(station.client)
        manager = Manager(ApiClient(tap, station.client.scheme, namespace=station.client.namespace))
        manager.add(station.controller())
        async with running(manager):
            await until(lambda: tap.refused >= 3)
            rule = await station.client.get(DiscoveryRule, "lab", station.namespace)
            assert rule.status.history[0].id == ended
            tap.broken = False
            await station.until_swept("lab", 3)
    assert await revisions(station) == before
