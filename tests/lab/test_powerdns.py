"""What PowerDNS really does: the facts that the definitions in examples/rest/powerdns rest on."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.lab.raw import Raw, raw
from trimtab.lab.powerdns import PowerDns

ZONES = "/servers/localhost/zones"


@pytest.fixture
async def api(powerdns: PowerDns) -> AsyncIterator[Raw]:
    async with raw(powerdns.url, X_API_Key=powerdns.api_key) as speaker:
        yield speaker


@pytest.fixture
async def zone(api: Raw, fresh: str) -> str:
    """The path of a zone with an account and a primary server."""
    body = {"name": f"{fresh}.example.", "kind": "Slave", "masters": ["192.0.2.1"], "account": "ours"}
    await api.done("POST", ZONES, body)
    return f"{ZONES}/{fresh}.example."


async def records(api: Raw, zone: str) -> dict[tuple[str, str], Any]:
    return {(each["name"], each["type"]): each for each in (await api.get(zone))["rrsets"]}


async def test_a_wrong_key_is_refused_in_plain_text(powerdns: PowerDns) -> None:
    async with raw(powerdns.url, X_API_Key="wrong") as stranger:
        said = await stranger.say("GET", ZONES)
    assert (said.status, said.body) == (401, "Unauthorized")


async def test_a_new_zone_is_given_a_start_of_authority_and_a_default_of_soa_edit_api(api: Raw, fresh: str) -> None:
    name = f"{fresh}.example."
    made = await api.done("POST", ZONES, {"name": name, "kind": "Native", "nameservers": [f"ns.{name}"]})
    assert (made["id"], made["soa_edit_api"]) == (name, "DEFAULT")
    assert {each["type"] for each in made["rrsets"]} == {"SOA", "NS"}
    assert "nameservers" not in await api.get(f"{ZONES}/{name}")


async def test_a_zone_that_exists_is_a_conflict_in_plain_text(api: Raw, zone: str) -> None:
    said = await api.say("POST", ZONES, {"name": zone.rpartition("/")[2], "kind": "Native"})
    assert (said.status, said.body) == (409, "Conflict")


async def test_a_name_without_its_final_dot_is_refused(api: Raw, fresh: str) -> None:
    said = await api.say("POST", ZONES, {"name": f"{fresh}.example", "kind": "Native"})
    assert (said.status, said.body["error"]) == (422, f"DNS Name '{fresh}.example' is not canonical")


async def test_a_zone_is_found_with_and_without_its_final_dot_and_in_any_case(api: Raw, zone: str) -> None:
    name = zone.rpartition("/")[2]
    for spelled in (name, name.rstrip("."), name.upper()):
        assert (await api.get(f"{ZONES}/{spelled}"))["id"] == name


async def test_a_put_merges_and_is_answered_with_nothing(api: Raw, zone: str) -> None:
    said = await api.say("PUT", zone, {"kind": "Master"})
    assert (said.status, said.body) == (204, "")
    found = await api.get(zone)
    assert (found["kind"], found["account"], found["masters"]) == ("Master", "ours", ["192.0.2.1"])


async def test_a_put_removes_only_what_it_names_as_empty(api: Raw, zone: str) -> None:
    await api.done("PUT", zone, {"masters": [], "account": ""})
    found = await api.get(zone)
    assert (found["masters"], found["account"]) == ([], "")


async def test_a_put_of_what_a_read_gave_is_refused(api: Raw, zone: str) -> None:
    said = await api.say("PUT", zone, await api.get(zone))
    assert said.status == 422
    assert said.body["error"].startswith("Unable to remove NSEC3PARAMs")


async def test_a_put_ignores_records_unknown_fields_and_kinds_that_it_does_not_know(api: Raw, zone: str) -> None:
    await api.done("PUT", zone, {"rrsets": [], "unknown": 1, "kind": "Nonsense"})
    assert (await api.get(zone))["kind"] == "Native"


async def test_a_list_of_zones_has_only_some_of_their_fields(api: Raw, zone: str) -> None:
    (listed,) = [each for each in await api.get(ZONES) if zone.endswith(each["name"])]
    assert {"account", "kind", "masters"} <= set(listed)
    assert not {"rrsets", "soa_edit_api", "api_rectify"} & set(listed)


async def test_records_are_changed_by_a_patch_that_is_a_list_of_actions(api: Raw, zone: str) -> None:
    name = f"www.{zone.rpartition('/')[2]}"
    wanted = {"name": name, "type": "A", "ttl": 300, "records": [{"content": "192.0.2.7", "disabled": False}]}
    await api.done("PATCH", zone, {"rrsets": [{**wanted, "changetype": "REPLACE"}]})
    assert (await records(api, zone))[name, "A"] == {**wanted, "comments": []}
    await api.done("PATCH", zone, {"rrsets": [{"name": name, "type": "A", "changetype": "DELETE"}]})
    assert (name, "A") not in await records(api, zone)


async def test_one_set_of_records_can_be_asked_for_and_none_is_an_empty_list(api: Raw, zone: str) -> None:
    name = f"www.{zone.rpartition('/')[2]}"
    only = f"{zone}?rrset_name={name}&rrset_type=TXT"
    assert (await api.get(only))["rrsets"] == []
    added = {"name": name, "type": "TXT", "ttl": 60, "records": [{"content": '"here"', "disabled": False}]}
    await api.done("PATCH", zone, {"rrsets": [{**added, "changetype": "REPLACE"}]})
    assert (await api.get(only))["rrsets"] == [{**added, "comments": []}]


async def test_a_record_of_another_zone_is_refused(api: Raw, zone: str) -> None:
    stray = {"name": "www.elsewhere.", "type": "A", "ttl": 60, "changetype": "REPLACE", "records": []}
    stray["records"] = [{"content": "192.0.2.7", "disabled": False}]
    said = await api.say("PATCH", zone, {"rrsets": [stray]})
    assert (said.status, said.body["error"]) == (422, "RRset www.elsewhere. IN A: Name is out of zone")


async def test_metadata_is_made_and_changed_by_put_and_deleted_it_reads_as_empty(api: Raw, zone: str) -> None:
    path = f"{zone}/metadata/ALLOW-AXFR-FROM"
    assert (await api.get(path))["metadata"] == []
    await api.done("PUT", path, {"metadata": ["192.0.2.2"]})
    await api.done("PUT", path, {"metadata": ["192.0.2.3"]})
    assert await api.get(path) == {"kind": "ALLOW-AXFR-FROM", "metadata": ["192.0.2.3"], "type": "Metadata"}
    said = await api.say("DELETE", path)
    assert (said.status, said.body) == (200, "")
    assert (await api.get(path))["metadata"] == []


async def test_metadata_of_a_kind_that_it_does_not_know_is_refused_even_to_read(api: Raw, zone: str) -> None:
    assert (await api.say("GET", f"{zone}/metadata/NONSENSE")).status == 422


async def test_a_deleted_zone_is_gone_and_a_second_deletion_is_a_404(api: Raw, zone: str) -> None:
    assert (await api.say("DELETE", zone)).status == 204
    said = await api.say("GET", zone)
    assert (said.status, said.body) == (404, "Not Found")
    assert (await api.say("DELETE", zone)).status == 404
