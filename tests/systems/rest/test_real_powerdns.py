"""PowerDNS, managed: what a user does to objects, and what is then true of a real PowerDNS."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.lab.conftest import fresh, powerdns
from tests.lab.raw import Raw, raw
from tests.systems.rest.real_examples import FOLDER
from tests.systems.rest.real_homes import EMBEDDED, home, namespace, scheme
from tests.systems.rest.real_station import Station
from tests.systems.rest.real_tap import Tap, tapped
from trimtab.client.api import ApiClient
from trimtab.lab.powerdns import PowerDns
from trimtab.model.errors import StatusError

__all__ = ["fresh", "home", "namespace", "powerdns", "scheme"]

ZONES = "/servers/localhost/zones"


@pytest.fixture
async def api(powerdns: PowerDns) -> AsyncIterator[Raw]:
    async with raw(powerdns.url, X_API_Key=powerdns.api_key) as speaker:
        yield speaker


@pytest.fixture
async def tap(powerdns: PowerDns) -> AsyncIterator[Tap]:
    async with tapped(powerdns.url) as listening:
        yield listening


@pytest.fixture
def hook(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The example's hook is installed, as pip would do it."""
    entry = tmp_path / "site" / "trimtab_powerdns_rrsets-1.dist-info"
    entry.mkdir(parents=True)
    (entry / "METADATA").write_text("Metadata-Version: 2.1\nName: trimtab-powerdns-rrsets\nVersion: 1\n")
    (entry / "entry_points.txt").write_text("[trimtab.rest.hooks]\npowerdns-rrsets = powerdns_rrsets\n")
    monkeypatch.syspath_prepend(entry.parent)
    monkeypatch.syspath_prepend(FOLDER / "powerdns" / "rrsets")


@pytest.fixture
async def station(home: ApiClient, namespace: str, tmp_path: Path, tap: Tap) -> AsyncIterator[Station]:
    made = Station(home, namespace, tmp_path, "powerdns", tap.url)
    async with made.working():
        yield made


async def zone(station: Station, fresh: str, **changes: Any) -> str:
    """The example's zone under a name of its own, when it is ready: its path."""
    name = f"{fresh}.example."
    await station.example("Zone", **{"name": name, "nameservers": [f"ns1.{name}"], **changes})
    await station.ready("Zone", "example.org")
    return f"{ZONES}/{name}"


async def test_a_zone_is_created_changed_corrected_stripped_and_deleted(station: Station, api: Raw, fresh: str) -> None:
    await station.serve("Zone")
    path = await zone(station, fresh)
    assert (await api.get(path))["account"] == "site"

    await station.change("Zone", "example.org", account="branch", masters=["192.0.2.1"])
    await station.ready("Zone", "example.org")
    found = await api.get(path)
    assert (found["account"], found["masters"]) == ("branch", ["192.0.2.1"])

    await api.done("PUT", path, {"account": "theirs"})
    await station.look("Zone", "example.org")
    await station.until_said("Updated", "account (drifted)")
    assert (await api.get(path))["account"] == "branch"

    await station.change("Zone", "example.org", account=None, masters=None)
    await station.ready("Zone", "example.org")
    found = await api.get(path)
    assert (found["account"], found["masters"]) == ("", [])

    await station.delete("Zone", "example.org")
    assert (await api.say("GET", path)).status == 404
    await station.clear()


async def test_a_zone_that_exists_is_taken_as_it_is_without_a_write(
    station: Station, api: Raw, tap: Tap, fresh: str
) -> None:
    name = f"{fresh}.example."
    await api.done("POST", ZONES, {"name": name, "kind": "Native", "account": "theirs"})
    await station.serve("Zone")
    spec = {"resourceID": f"{ZONES}/{name}", "kind": "Native", "account": "ours"}
    await station.create("Zone", "taken", spec)
    await station.ready("Zone", "taken")
    assert (await api.get(f"{ZONES}/{name}"))["account"] == "theirs"
    assert tap.writes == []
    await station.delete("Zone", "taken")
    await station.clear()


async def test_records_are_created_changed_corrected_and_deleted_by_actions_on_their_zone(
    hook: None, station: Station, api: Raw, tap: Tap, fresh: str
) -> None:
    await station.serve("Zone", "RRSet")
    path = await zone(station, fresh)
    name = f"www.{fresh}.example."
    await station.example("RRSet", name=name)
    found = await station.ready("RRSet", "www.example.org-a")
    assert found["status"]["resourceID"] == f"{path}/rrsets/{name}/A"
    assert await served(api, path, name) == (300, ["192.0.2.80", "192.0.2.81"])

    await station.change("RRSet", "www.example.org-a", ttl=60, records=[{"content": "192.0.2.82"}])
    await station.ready("RRSet", "www.example.org-a")
    assert await served(api, path, name) == (60, ["192.0.2.82"])

    theirs = {"name": name, "type": "A", "ttl": 5, "records": [{"content": "192.0.2.99", "disabled": False}]}
    await api.done("PATCH", path, {"rrsets": [{**theirs, "changetype": "REPLACE"}]})
    await station.look("RRSet", "www.example.org-a")
    await station.until_said("Updated", "drifted")
    assert await served(api, path, name) == (60, ["192.0.2.82"])

    await station.delete("RRSet", "www.example.org-a")
    assert await served(api, path, name) is None
    assert set(tap.writes) == {"POST /api/v1/servers/localhost/zones", f"PATCH /api/v1{path}"}
    await station.delete("Zone", "example.org")
    await station.clear()


async def served(api: Raw, path: str, name: str) -> tuple[int, list[str]] | None:
    found = (await api.get(f"{path}?rrset_name={name}&rrset_type=A"))["rrsets"]
    return (found[0]["ttl"], sorted(each["content"] for each in found[0]["records"])) if found else None


@EMBEDDED
async def test_a_change_of_a_zone_sends_what_the_spec_says_and_nothing_that_was_read(
    station: Station, tap: Tap, fresh: str
) -> None:
    await station.serve("Zone")
    await zone(station, fresh)
    await station.change("Zone", "example.org", account="branch")
    await station.ready("Zone", "example.org")
    sent = tap.last("PUT").body
    assert (sent["kind"], sent["account"]) == ("Native", "branch")
    assert set(sent) <= {"name", "kind", "account"}


@EMBEDDED
async def test_what_powerdns_adds_to_a_zone_is_no_drift(station: Station, api: Raw, tap: Tap, fresh: str) -> None:
    await station.serve("Zone")
    path = await zone(station, fresh)
    serial = (await api.get(path))["serial"]
    record = {"name": f"a.{fresh}.example.", "type": "A", "ttl": 60, "changetype": "REPLACE"}
    await api.done("PATCH", path, {"rrsets": [{**record, "records": [{"content": "192.0.2.1", "disabled": False}]}]})
    await station.look("Zone", "example.org")
    await station.until("Zone", "example.org", lambda held: held["status"]["observed"]["serial"] > serial)
    assert len(tap.writes) == 1


@EMBEDDED
async def test_a_default_is_put_back_when_its_field_is_removed(station: Station, api: Raw, fresh: str) -> None:
    await station.serve("Zone")
    path = await zone(station, fresh, soa_edit_api="INCEPTION-INCREMENT")
    assert (await api.get(path))["soa_edit_api"] == "INCEPTION-INCREMENT"
    await station.change("Zone", "example.org", soa_edit_api=None)
    await station.ready("Zone", "example.org")
    assert (await api.get(path))["soa_edit_api"] == "DEFAULT"


@EMBEDDED
async def test_name_servers_that_change_are_refused_with_their_path(station: Station, fresh: str) -> None:
    await station.serve("Zone")
    await zone(station, fresh)
    with pytest.raises(StatusError, match=r"spec\.nameservers"):
        await station.change("Zone", "example.org", nameservers=["ns9.example."])


@EMBEDDED
async def test_metadata_is_made_by_put_and_gone_when_it_reads_as_empty(
    station: Station, api: Raw, tap: Tap, fresh: str
) -> None:
    await station.serve("Zone", "ZoneMetadata")
    path = await zone(station, fresh)
    await station.example("ZoneMetadata")
    await station.ready("ZoneMetadata", "example.org-axfr")
    entry = f"{path}/metadata/ALLOW-AXFR-FROM"
    assert (await api.get(entry))["metadata"] == ["192.0.2.0/24"]
    await station.change("ZoneMetadata", "example.org-axfr", metadata=["192.0.2.0/24", "198.51.100.0/24"])
    await station.ready("ZoneMetadata", "example.org-axfr")
    assert sorted((await api.get(entry))["metadata"]) == ["192.0.2.0/24", "198.51.100.0/24"]
    await station.delete("ZoneMetadata", "example.org-axfr")
    assert (await api.get(entry))["metadata"] == []
    assert tap.writes[1:] == [f"PUT /api/v1{entry}", f"PUT /api/v1{entry}", f"DELETE /api/v1{entry}"]


@EMBEDDED
async def test_a_zone_that_someone_deleted_is_made_anew(station: Station, api: Raw, tap: Tap, fresh: str) -> None:
    await station.serve("Zone")
    path = await zone(station, fresh)
    await api.done("DELETE", path)
    await station.look("Zone", "example.org")
    await tap.until(lambda: len(tap.writes) == 2)
    await station.ready("Zone", "example.org")
    assert (await api.get(path))["account"] == "site"


@EMBEDDED
async def test_a_wrong_key_is_told_without_showing_it_and_a_right_one_goes_on(
    station: Station, tap: Tap, fresh: str
) -> None:
    await station.serve("Zone")
    await station.set_secret("powerdns", key="not-the-key")
    await station.example("Zone", name=f"{fresh}.example.")
    said = await station.waiting("Zone", "example.org", "Unauthorized")
    assert "401" in said
    assert "not-the-key" not in said
    await station.set_secret("powerdns", key="lab")
    while tap.heard[-1].headers["X-API-Key"] != "lab":
        count = len(tap.heard)
        await station.look("Zone", "example.org")
        await tap.until(lambda count=count: len(tap.heard) > count)  # type: ignore[misc]
    await station.ready("Zone", "example.org")


@EMBEDDED
async def test_a_definition_whose_hook_is_not_installed_says_so(station: Station) -> None:
    await station.serve("RRSet", wait=False)
    assert "powerdns-rrsets" in await station.definition_says("rrsets", "HookNotInstalled")
