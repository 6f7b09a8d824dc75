"""What is known of an address that was silent, when a later run fails before it is reached. On both servers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.systems.discovery.asked_runs import begin, face, sweep
from tests.systems.discovery.station import Station
from trimtab.lab.snmp import SnmpDevice
from trimtab.storage.blobs import BlobError, Digest, read
from trimtab.storage.folder import FolderBlobs
from trimtab.systems.discovery import sweeping
from trimtab.systems.discovery.findings import Outcome
from trimtab.systems.discovery.kinds import DiscoveryRule, DiscoveryRuleIPRange
from trimtab.systems.discovery.ledger.records import Ledger, decode
from trimtab.systems.discovery.ledger.why import Why, explain
from trimtab.systems.discovery.scope.addresses import Addresses, parse
from trimtab.systems.discovery.scope.implementations import find
from trimtab.testing.ports import free_ports

PREFIX = "127.55.0.0/26"
SCOPE = Addresses(parse(PREFIX))


class Filling(FolderBlobs):
    """A place that has room for so many blobs more."""

    room = 1_000

    async def put(self, data: Any, *, media_type: str = "") -> Digest:  # type: ignore[override]
        self.room -= 1
        if self.room < 0:
            raise BlobError("no space is left")
        return await super().put(data, media_type=media_type)


async def known(station: Station, rule: DiscoveryRule) -> Ledger:
    return decode(await read(station.blobs, Digest(rule.status.ledger), max_bytes=1 << 20))


async def why(station: Station, rule: DiscoveryRule, address: str) -> Why:
    implementation: Any = find(rule.spec.rule_ref)
    source = await station.client.get(DiscoveryRuleIPRange, "lab", station.namespace)
    entries = implementation.entries(source)
    return explain(rule, await known(station, rule), SCOPE, address, entries=entries)


async def test_what_the_run_before_found_counts_until_another_one_reaches_it(
    station: Station, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (port,) = free_ports(1)
    station.blobs = blobs = Filling(tmp_path / "blobs")
    monkeypatch.setattr(sweeping, "CHECKPOINT", 0.05)
    async with SnmpDevice({"127.55.0.1": face(1)}, port, listen="0.0.0.0"), station.working():
        await begin(station, port, PREFIX, packets_per_second=200)
        blobs.room = 1
        failed = await sweep(station)
        assert failed.status.history[0].outcome == "Failed"
        ledger = await known(station, failed)
        assert ledger.run == failed.status.history[0].id
        assert ledger.position < len(SCOPE)
        said = {address: (await why(station, failed, address)).outcome for address in SCOPE}
        assert said.pop("127.55.0.1") is Outcome.IDENTIFIED
        assert set(said.values()) == {Outcome.SILENT}


async def test_two_failures_in_a_row_lose_nothing_either(
    station: Station, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (port,) = free_ports(1)
    station.blobs = blobs = Filling(tmp_path / "blobs")
    monkeypatch.setattr(sweeping, "CHECKPOINT", 0.05)
    async with SnmpDevice({"127.55.0.1": face(1)}, port, listen="0.0.0.0"), station.working():
        await begin(station, port, PREFIX, packets_per_second=200)
        for _ in range(2):
            blobs.room = 1
            failed = await sweep(station)
            assert failed.status.history[0].outcome == "Failed"
        assert (await why(station, failed, "127.55.0.60")).outcome is Outcome.SILENT
