"""The guide's kind of one file, over a real PowerDNS."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.hub.served.conftest import Home
from tests.needs import needs
from trimtab.cli.systems import operator
from trimtab.client.protocol import Named, Ref
from trimtab.hub.compose import Hub
from trimtab.hub.storage.sqlite import SqliteStorage
from trimtab.lab.powerdns import PowerDns
from trimtab.model.errors import StatusError
from trimtab.model.scheme import Untyped
from trimtab.server.core import Server
from trimtab.store.memory import MemoryStore
from trimtab.testing.ports import free_ports

FILE = Path(__file__).parents[3] / "examples" / "hub" / "zones.py"
ZONE = Named("dns.trimtab.dev/v1", "Zone")


@pytest.fixture
async def zones(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Home]:
    needs("pdns_server")
    dns = PowerDns(tmp_path / "pdns", *free_ports(2))
    monkeypatch.setenv("PDNS_URL", dns.url)
    monkeypatch.setenv("PDNS_KEY", dns.api_key)
    server = Server(MemoryStore())
    hub = Hub(server, operator(FILE).hub, SqliteStorage(tmp_path / "hub.db"))
    try:
        await server.start()
        await hub.start()
        yield Home(server, hub)
    finally:
        await hub.stop()
        await server.stop()
        dns.stop()


def zone(*records: dict[str, Any]) -> dict[str, Any]:
    metadata = {"name": "shop", "namespace": "default"}
    return {
        "apiVersion": "dns.trimtab.dev/v1",
        "kind": "Zone",
        "metadata": metadata,
        "spec": {"domain": "shop.test", "records": list(records)},
    }


@pytest.mark.row(14)
@pytest.mark.row(16)
async def test_a_kind_over_a_foreign_service_is_one_short_file(zones: Home) -> None:
    assert len(FILE.read_text().splitlines()) < 150
    www = {"name": "www", "type": "A", "ttl": 60, "values": ["192.0.2.1", "192.0.2.2"]}
    made = await zones.apply(zone(www))
    assert made["spec"]["records"] == [www]
    apex = {"name": "@", "type": "TXT", "ttl": 300, "values": ['"v=spf1 -all"']}
    changed = await zones.apply(zone(apex))
    assert changed["spec"]["records"] == [apex]
    assert changed["metadata"]["uid"] == made["metadata"]["uid"]
    assert changed["metadata"]["generation"] == 2
    assert (await zones.client.get(ZONE, "shop", "default")).raw == changed
    await zones.client.delete(Ref(ZONE, "shop", "default"))
    assert not (await zones.client.list(ZONE)).items


async def test_what_the_service_refuses_names_the_field_and_leaves_nothing(zones: Home) -> None:
    with pytest.raises(StatusError, match="spec") as refusal:
        await zones.apply(zone({"name": "www", "type": "A", "values": ["no address"]}))
    assert refusal.value.code == 422
    assert not (await zones.client.list(ZONE)).items


@pytest.mark.row(8)
async def test_records_in_another_order_are_no_change(zones: Home) -> None:
    www = {"name": "www", "values": ["192.0.2.9", "192.0.2.1"]}
    apex = {"name": "@", "type": "TXT", "values": ['"v=spf1 -all"']}
    made = await zones.apply(zone(www, apex))
    for records in ((www, apex), (apex, www)):
        again = await zones.apply(zone(*records))
        assert again["metadata"]["generation"] == 1
        assert again["metadata"]["resourceVersion"] == made["metadata"]["resourceVersion"]


async def test_a_zone_keeps_its_domain(zones: Home) -> None:
    await zones.apply(zone())
    moved = zone()
    moved["spec"]["domain"] = "other.test"
    with pytest.raises(StatusError, match=r"spec.domain") as refusal:
        await zones.apply(moved)
    assert refusal.value.code == 422


async def test_what_a_defaulter_cannot_complete_is_told_by_its_fields(zones: Home) -> None:
    for record in ({"name": "www"}, {"values": ["192.0.2.1"]}, {"name": "www", "values": [1, "a"]}):
        with pytest.raises(StatusError, match=r"spec.records\[0\].(name|values)") as refusal:
            await zones.client.create(Untyped(zone(record)))
        assert refusal.value.code == 422
