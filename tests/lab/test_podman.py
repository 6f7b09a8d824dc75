"""What Podman's Docker API really does: the facts that the definitions in examples/rest/docker rest on."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.lab.raw import Raw, raw
from trimtab.lab.podman import Podman


@pytest.fixture
async def api(podman: Podman) -> AsyncIterator[Raw]:
    async with raw(podman.url, under="/v1.41") as speaker:  # without a version it knows fewer of its paths
        yield speaker


async def test_all_that_it_keeps_is_below_its_own_folder(podman: Podman, api: Raw, fresh: str) -> None:
    made = await api.done("POST", "/volumes/create", {"Name": fresh})
    assert made["Mountpoint"].startswith(str(podman.socket.parent))


async def test_a_volume_is_made_at_a_path_of_its_own_and_known_by_its_name(api: Raw, fresh: str) -> None:
    said = await api.say("POST", "/volumes/create", {"Name": fresh, "Labels": {"team": "blue"}})
    assert said.status == 201
    found = await api.get(f"/volumes/{fresh}")
    assert (found["Name"], found["Labels"], found["Driver"], found["Options"]) == (
        fresh, {"team": "blue"}, "local", {},
    )  # fmt: skip


async def test_a_volume_that_exists_is_answered_as_made_and_left_as_it_was(api: Raw, fresh: str) -> None:
    await api.done("POST", "/volumes/create", {"Name": fresh, "Labels": {"team": "blue"}})
    said = await api.say("POST", "/volumes/create", {"Name": fresh, "Labels": {"team": "red"}})
    assert (said.status, said.body["Labels"]) == (201, {"team": "blue"})


async def test_a_volume_without_a_name_is_given_one(api: Raw) -> None:
    made = await api.done("POST", "/volumes/create", {})
    assert len(made["Name"]) == 64


async def test_there_is_no_update_of_a_volume_or_a_network(api: Raw, fresh: str) -> None:
    await api.done("POST", "/volumes/create", {"Name": fresh})
    await api.done("POST", "/networks/create", {"Name": fresh})
    for path in (f"/volumes/{fresh}", f"/networks/{fresh}"):
        for method in ("PUT", "PATCH"):
            assert (await api.say(method, path, {"Labels": {}})).status == 405


async def test_a_list_of_volumes_is_in_a_field(api: Raw, fresh: str) -> None:
    await api.done("POST", "/volumes/create", {"Name": fresh})
    assert fresh in [each["Name"] for each in (await api.get("/volumes"))["Volumes"]]


async def test_a_network_answers_with_an_id_and_is_found_by_name_and_id(api: Raw, fresh: str) -> None:
    made = await api.done("POST", "/networks/create", {"Name": fresh, "Labels": {"team": "blue"}, "Internal": True})
    for known in (fresh, made["Id"]):
        found = await api.get(f"/networks/{known}")
        assert (found["Name"], found["Id"], found["Internal"]) == (fresh, made["Id"], True)


async def test_a_network_is_given_a_driver_and_addresses(api: Raw, fresh: str) -> None:
    await api.done("POST", "/networks/create", {"Name": fresh})
    found = await api.get(f"/networks/{fresh}")
    assert found["Driver"] == "bridge"
    assert found["IPAM"]["Config"][0]["Subnet"]


async def test_a_network_that_exists_is_an_error_500_that_says_so(api: Raw, fresh: str) -> None:
    await api.done("POST", "/networks/create", {"Name": fresh})
    said = await api.say("POST", "/networks/create", {"Name": fresh})
    assert (said.status, said.body["cause"]) == (500, "network already exists")


async def test_a_driver_that_it_does_not_know_is_an_error_500_too(api: Raw, fresh: str) -> None:
    said = await api.say("POST", "/networks/create", {"Name": fresh, "Driver": "nonsense"})
    assert (said.status, said.body["cause"]) == (500, "invalid argument")


async def test_a_secret_is_never_given_back_and_its_fields_are_read_below_spec(api: Raw, fresh: str) -> None:
    made = await api.done("POST", "/secrets/create", {"Name": fresh, "Data": "aHVzaA==", "Labels": {"team": "blue"}})
    found = await api.get(f"/secrets/{fresh}")
    assert (found["ID"], found["Spec"]["Name"], found["Spec"]["Labels"]) == (made["ID"], fresh, {"team": "blue"})
    assert "aHVzaA" not in str(found)


async def test_a_list_of_secrets_leaves_out_their_labels(api: Raw, fresh: str) -> None:
    await api.done("POST", "/secrets/create", {"Name": fresh, "Data": "aHVzaA==", "Labels": {"team": "blue"}})
    (listed,) = [each for each in await api.get("/secrets") if each["Spec"]["Name"] == fresh]
    assert listed["Spec"]["Labels"] is None


async def test_a_secret_cannot_be_updated(api: Raw, fresh: str) -> None:
    made = await api.done("POST", "/secrets/create", {"Name": fresh, "Data": "aHVzaA=="})
    said = await api.say("POST", f"/secrets/{made['ID']}/update?version=1", {"Name": fresh, "Data": "bG91ZA=="})
    assert said.status == 501


async def test_a_secret_that_exists_is_a_conflict(api: Raw, fresh: str) -> None:
    await api.done("POST", "/secrets/create", {"Name": fresh, "Data": "aHVzaA=="})
    assert (await api.say("POST", "/secrets/create", {"Name": fresh, "Data": "aHVzaA=="})).status == 409


@pytest.mark.parametrize("kind", ["volumes", "networks", "secrets"])
async def test_what_is_deleted_is_gone_and_a_second_deletion_is_a_404(api: Raw, fresh: str, kind: str) -> None:
    await api.done("POST", f"/{kind}/create", {"Name": fresh, "Data": "aHVzaA=="})
    path = f"/{kind}/{fresh}"
    assert (await api.say("DELETE", path)).status == 204
    assert (await api.say("GET", path)).status == 404
    assert (await api.say("DELETE", path)).status == 404
