"""What Alertmanager really does: the facts that the definition in examples/rest/alertmanager rests on."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.lab.raw import Raw, raw
from trimtab.lab.alertmanager import Alertmanager

PAST, FUTURE, LATER = "2020-01-01T00:00:00Z", "2098-01-01T00:00:00Z", "2099-01-01T00:00:00Z"
NOBODY = "00000000-0000-0000-0000-000000000000"


@pytest.fixture
async def api(alertmanager: Alertmanager) -> AsyncIterator[Raw]:
    async with raw(alertmanager.url) as speaker:
        yield speaker


def silence(team: str, **fields: Any) -> dict[str, Any]:
    matchers = [{"name": "team", "value": team, "isRegex": False}]
    return {
        "matchers": matchers, "startsAt": PAST, "endsAt": FUTURE, "createdBy": "lab", "comment": "quiet", **fields,
    }  # fmt: skip


async def made(api: Raw, body: dict[str, Any]) -> Any:
    """The silence as it is right after."""
    answer = await api.done("POST", "/silences", body)
    return await api.get(f"/silence/{answer['silenceID']}")


async def test_the_server_chooses_the_id_and_rewrites_a_start_that_is_past(api: Raw, fresh: str) -> None:
    found = await made(api, silence(fresh))
    assert found["startsAt"] > PAST
    assert found["status"] == {"state": "active"}


async def test_times_come_back_with_milliseconds_and_matchers_with_a_default(api: Raw, fresh: str) -> None:
    found = await made(api, silence(fresh))
    assert found["endsAt"] == "2098-01-01T00:00:00.000Z"
    assert found["matchers"] == [{"name": "team", "value": fresh, "isRegex": False, "isEqual": True}]


async def test_a_change_with_the_start_that_was_read_keeps_the_id(api: Raw, fresh: str) -> None:
    found = await made(api, silence(fresh))
    changed = await made(api, {**silence(fresh), **found, "comment": "louder", "endsAt": LATER})
    assert (changed["id"], changed["comment"]) == (found["id"], "louder")


async def test_a_change_with_another_start_makes_a_new_silence_and_expires_the_old(api: Raw, fresh: str) -> None:
    found = await made(api, silence(fresh))
    changed = await made(api, silence(fresh, id=found["id"], comment="louder"))
    assert changed["id"] != found["id"]
    assert (await api.get(f"/silence/{found['id']}"))["status"] == {"state": "expired"}


async def test_other_matchers_make_a_new_silence_and_expire_the_old(api: Raw, fresh: str) -> None:
    found = await made(api, silence(fresh))
    other = [{"name": "team", "value": f"{fresh}-b", "isRegex": False, "isEqual": True}]
    changed = await made(api, {**found, "matchers": other})
    assert changed["id"] != found["id"]
    assert (await api.get(f"/silence/{found['id']}"))["status"] == {"state": "expired"}


async def test_each_creation_makes_one_more(api: Raw, fresh: str) -> None:
    first, second = await made(api, silence(fresh)), await made(api, silence(fresh))
    assert first["id"] != second["id"]


async def test_a_change_of_a_silence_that_is_not_there_is_a_404(api: Raw, fresh: str) -> None:
    said = await api.say("POST", "/silences", silence(fresh, id=NOBODY))
    assert (said.status, said.body) == (404, "silence not found")


@pytest.mark.parametrize("field", ["comment", "createdBy", "startsAt", "endsAt", "matchers"])
async def test_every_field_is_required_in_a_change_too(api: Raw, fresh: str, field: str) -> None:
    found = await made(api, silence(fresh))
    said = await api.say("POST", "/silences", {name: value for name, value in found.items() if name != field})
    assert (said.status, said.body["message"]) == (422, f"{field} in body is required")


async def test_an_end_before_the_start_is_refused(api: Raw, fresh: str) -> None:
    said = await api.say("POST", "/silences", silence(fresh, endsAt=PAST))
    assert (said.status, said.body) == (400, "Failed to create silence: start time must be before end time")


async def test_a_deletion_only_expires_and_can_be_repeated(api: Raw, fresh: str) -> None:
    path = f"/silence/{(await made(api, silence(fresh)))['id']}"
    assert (await api.say("DELETE", path)).status == 200
    assert (await api.get(path))["status"] == {"state": "expired"}
    assert (await api.say("DELETE", path)).status == 200


async def test_a_deletion_of_what_never_was_is_a_500(api: Raw) -> None:
    said = await api.say("DELETE", f"/silence/{NOBODY}")
    assert (said.status, said.body) == (500, "silence not found")
    assert (await api.say("GET", f"/silence/{NOBODY}")).status == 404


async def test_an_expired_silence_stays_in_the_list(api: Raw, fresh: str) -> None:
    found = await made(api, silence(fresh))
    await api.done("DELETE", f"/silence/{found['id']}")
    (listed,) = [each for each in await api.get("/silences") if each["id"] == found["id"]]
    assert listed["status"] == {"state": "expired"}
