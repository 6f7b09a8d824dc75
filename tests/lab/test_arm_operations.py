"""Long-running operations of the ARM emulator, in every shape that real traffic has."""

from __future__ import annotations

from typing import Any

import pytest

from tests.lab.arm_calls import (
    ACCOUNT,
    GROUP,
    NETWORK,
    SET,
    VMSS,
    VNET,
    Calls,
    Said,
    account,
    calls,
    network,
    scale_set,
)
from trimtab.lab.arm import OBSERVED_DELETE, OBSERVED_PUT, Behaviour, Lro, shape
from trimtab.testing.clock import FakeClock

AAO, LOC = "Azure-AsyncOperation", "Location"


def doing(**operations: Lro) -> Behaviour:
    return Behaviour(operations=operations)


def state(said: Said) -> str | None:
    found: str | None = said.body["properties"].get("provisioningState")
    return found


async def look_until_done(call: Calls, said: Said) -> int:
    """How many looks it took, by whatever the answer gave."""
    for looks in range(1, 20):
        if AAO in said.headers:
            seen = await call("GET", said.headers[AAO])
            assert seen.status == 200
            if seen.body["status"] != "InProgress":
                return looks
        elif LOC in said.headers:
            if (await call("GET", said.headers[LOC])).status != 202:
                return looks
        else:
            read = await call("GET", SET)
            if read.status == 200 and state(read) in ("Succeeded", None):
                return looks
    raise AssertionError("it is never done")


@pytest.mark.parametrize("text", list(OBSERVED_PUT))
async def test_a_creation_answers_as_real_ones_do_and_ends(text: str) -> None:
    lro = shape(text, polls=2)
    async with calls(doing(create=lro)) as call:
        said = await call("PUT", SET, scale_set())
        assert said.status == int(text[:3])
        assert (AAO in said.headers, LOC in said.headers) == ("AAO" in text, "LOC" in text)
        assert (said.body == b"") == ("empty" in text)
        if "empty" not in text:
            wanted = {"nonterminal": "Creating", "body": "Creating", "terminal": "Succeeded", "no-state": None}
            assert state(said) == wanted[text.partition(" ")[2]]
        assert await look_until_done(call, said) == (3 if lro.running else 1)
        read = await call("GET", SET)
        assert read.status == 200
        assert state(read) in ("Succeeded", None)
        assert read.body["sku"]["capacity"] == 3


@pytest.mark.parametrize("text", list(OBSERVED_DELETE))
async def test_a_deletion_answers_as_real_ones_do_and_ends(text: str) -> None:
    async with calls(doing(create=shape("201 terminal"), delete=shape(text, polls=1))) as call:
        await call("PUT", SET, scale_set())
        said = await call("DELETE", SET)
        assert said.status == int(text[:3])
        if "+" in text:
            assert state(await call("GET", SET)) == "Deleting"
            assert await look_until_done(call, said) == 2
        assert (await call("GET", SET)).status == 404


async def test_what_is_created_with_202_is_not_there_until_it_is_done() -> None:
    async with calls(doing(create=shape("202+LOC empty"))) as call:
        said = await call("PUT", SET, scale_set())
        assert (await call("GET", SET)).status == 404
        assert (await call("GET", SET.rpartition("/")[0])).body["value"] == []
        assert (await call("GET", said.headers[LOC])).status == 202
        done = await call("GET", said.headers[LOC])
        assert (done.status, done.body["id"]) == (200, SET)
        assert (await call("GET", SET)).status == 200


async def test_202_without_a_header_is_followed_by_the_resource() -> None:
    async with calls(doing(create=shape("202 empty", polls=1))) as call:
        said = await call("PUT", SET, scale_set())
        assert (said.status, said.body) == (202, b"")
        assert [(await call("GET", SET)).status for _ in range(2)] == [404, 200]


async def test_a_state_that_is_final_does_not_end_what_the_header_says_goes_on() -> None:
    async with calls(doing(update=shape("200+AAO terminal", outcome="Failed"), create=shape("201 terminal"))) as call:
        await call("PUT", SET, scale_set())
        said = await call("PUT", SET, scale_set(4))
        assert state(said) == state(await call("GET", SET)) == "Succeeded"
        assert (await call("GET", said.headers[AAO])).body["status"] == "InProgress"
        assert (await call("GET", said.headers[AAO])).body["status"] == "Failed"
        assert state(await call("GET", SET)) == "Failed"


async def test_a_document_says_which_operations_take_long() -> None:
    async with calls(Behaviour()) as call:
        made = await call("PUT", SET, scale_set())
        assert (made.status, state(made), AAO in made.headers) == (201, "Creating", True)
        call.arm.finish()
        changed = await call("PATCH", SET, {"sku": {"capacity": 4}})
        assert (changed.status, LOC in changed.headers) == (202, True)
        call.arm.finish()
        assert (await call("PATCH", GROUP, {"tags": {}})).status == 200
        stored = await call("PUT", ACCOUNT, account())
        assert (stored.status, stored.body, LOC in stored.headers) == (202, b"", True)
        call.arm.finish()
        assert (await call("PUT", ACCOUNT, account(accessTier="Cool"))).status == 200
        restarted = await call("POST", f"{SET}/restart")
        assert (restarted.status, LOC in restarted.headers) == (202, True)
        assert [(await call("GET", restarted.headers[LOC])).status for _ in range(2)] == [202, 200]


@pytest.mark.parametrize("outcome", ["Failed", "Canceled"])
async def test_an_operation_can_fail(outcome: str) -> None:
    lro = shape("201+AAO+LOC nonterminal", outcome=outcome, error_code="SkuNotAvailable", error_message="None left.")
    async with calls(doing(create=lro)) as call:
        said = await call("PUT", SET, scale_set())
        await look_until_done(call, said)
        seen = (await call("GET", said.headers[AAO])).body
        assert (seen["status"], seen["error"]) == (outcome, {"code": "SkuNotAvailable", "message": "None left."})
        at = await call("GET", said.headers[LOC])
        assert (at.status >= 400, at.code) == (True, "SkuNotAvailable")
        assert state(await call("GET", SET)) == outcome


async def test_a_creation_with_202_that_fails_leaves_nothing() -> None:
    async with calls(doing(create=shape("202+LOC", outcome="Failed", polls=0))) as call:
        said = await call("PUT", SET, scale_set())
        assert (await call("GET", said.headers[LOC])).status == 400
        assert SET not in call.arm.resources


async def test_a_deletion_that_fails_leaves_the_resource() -> None:
    async with calls(doing(create=shape("201 terminal"), delete=shape("202+AAO", outcome="Failed", polls=0))) as call:
        await call("PUT", SET, scale_set())
        said = await call("DELETE", SET)
        assert (await call("GET", said.headers[AAO])).body["status"] == "Failed"
        assert state(await call("GET", SET)) == "Failed"


async def test_a_status_that_cannot_be_read_is_not_the_end() -> None:
    async with calls(doing(create=shape("201+AAO nonterminal", monitor_errors=2, polls=0))) as call:
        said = await call("PUT", SET, scale_set())
        assert [(await call("GET", said.headers[AAO])).status for _ in range(3)] == [500, 500, 200]
        assert state(await call("GET", SET)) == "Succeeded"


async def test_the_monitor_can_be_gone_while_the_resource_goes_on() -> None:
    async with calls(doing(create=shape("201+AAO nonterminal", monitor_gone=True, polls=1))) as call:
        said = await call("PUT", SET, scale_set())
        assert (await call("GET", said.headers[AAO])).status == 404
        assert [state(await call("GET", SET)) for _ in range(2)] == ["Creating", "Succeeded"]


@pytest.mark.parametrize("header", [AAO, LOC])
async def test_the_place_to_look_can_change_with_every_look(header: str) -> None:
    async with calls(
        doing(create=shape(f"201+{'AAO' if header == AAO else 'LOC'} nonterminal", rotating=True, polls=2))
    ) as call:
        said = await call("PUT", SET, scale_set())
        places = [said.headers[header]]
        for _ in range(2):
            seen = await call("GET", places[-1])
            places.append(seen.headers[header])
        assert len(set(places)) == 3
        assert (await call("GET", places[0])).status == 404
        assert (await call("GET", places[-1])).status == 200
        assert state(await call("GET", SET)) == "Succeeded"


async def test_the_place_to_look_can_be_on_another_host() -> None:
    lro = shape("202+AAO+LOC", host="http://127.0.0.9:9")
    async with calls(doing(create=lro)) as call:
        said = await call("PUT", SET, scale_set())
        assert said.headers[AAO].startswith("http://127.0.0.9:9/")
        assert said.headers[LOC].startswith("http://127.0.0.9:9/")


async def test_the_place_to_look_can_be_the_resource_itself() -> None:
    async with calls(doing(create=shape("202+LOC", polls_resource=True))) as call:
        said = await call("PUT", SET, scale_set())
        place = said.headers[LOC]
        assert f"{SET}?" in place
        seen = await call("GET", place)
        assert (seen.status, seen.headers[LOC]) == (202, place)
        assert "sku" not in seen.body
        assert (await call("GET", place)).body["sku"]["capacity"] == 3


@pytest.mark.parametrize("wait", [0, 7, "Fri, 31 Dec 2027 23:59:59 GMT"])
async def test_it_says_when_to_look_again(wait: Any) -> None:
    async with calls(doing(create=shape("201+AAO nonterminal", retry_after=wait))) as call:
        said = await call("PUT", SET, scale_set())
        assert said.headers["Retry-After"] == str(wait)
        assert (await call("GET", said.headers[AAO])).headers["Retry-After"] == str(wait)
        call.arm.behave(VMSS, operations={}, retry_after=None)
        assert "Retry-After" not in (await call("PUT", f"{SET}2", scale_set())).headers


async def test_the_status_can_be_in_small_letters() -> None:
    async with calls(doing(create=shape("201+AAO nonterminal", lower_case=True, polls=0))) as call:
        said = await call("PUT", SET, scale_set())
        assert (await call("GET", said.headers[AAO])).body["status"] == "succeeded"


async def test_an_operation_can_take_its_time() -> None:
    clock = FakeClock()
    async with calls(doing(create=shape("201+AAO nonterminal", lasting=60.0, polls=0)), clock=clock) as call:
        said = await call("PUT", SET, scale_set())
        assert (await call("GET", said.headers[AAO])).body["status"] == "InProgress"
        await clock.advance(60)
        assert (await call("GET", said.headers[AAO])).body["status"] == "Succeeded"


async def test_a_write_during_an_operation_is_refused_or_takes_over() -> None:
    async with calls(Behaviour()) as call:
        await call("PUT", NETWORK, network("a"))
        for method, body in (("PUT", network()), ("PATCH", {"tags": {}}), ("DELETE", None)):
            refused = await call(method, NETWORK, body)
            assert (refused.status, refused.code) == (409, "AnotherOperationInProgress")
        call.arm.behave(concurrent="accept")
        assert (await call("PUT", NETWORK, network("a", "b"))).status == 200


async def test_a_write_while_a_relative_is_written_can_be_refused() -> None:
    subnet = {"properties": {"addressPrefix": "10.0.9.0/24"}}
    async with calls(Behaviour()) as call:
        call.arm.put(NETWORK, network("a"))
        call.arm.behave(f"{VNET}/subnets", relatives="refuse")
        await call("PUT", f"{NETWORK}/subnets/b", subnet)
        refused = await call("PUT", f"{NETWORK}/subnets/c", subnet)
        assert (refused.status, refused.code) == (409, "AnotherOperationInProgress")
        call.arm.finish()
        assert (await call("PUT", f"{NETWORK}/subnets/c", subnet)).status == 201


async def test_one_resource_can_behave_otherwise_than_its_type() -> None:
    async with calls(Behaviour()) as call:
        call.arm.behave(SET, operations={"create": shape("201+AAO nonterminal", outcome="Failed", polls=0)})
        for path in (SET, f"{SET}2"):
            await look_until_done(call, await call("PUT", path, scale_set()))
        assert [state(await call("GET", path)) for path in (SET, f"{SET}2")] == ["Failed", "Succeeded"]


async def test_the_place_to_look_can_be_without_a_host() -> None:
    async with calls(doing(create=shape("201+AAO nonterminal", host="/", polls=0))) as call:
        place = (await call("PUT", SET, scale_set())).headers[AAO]
        assert place.startswith("/subscriptions/")
        assert (await call("GET", call.arm.url + place)).body["status"] == "Succeeded"


def test_a_shape_with_a_header_that_is_none_is_refused() -> None:
    with pytest.raises(ValueError, match="AAO or LOC"):
        shape("201+XYZ")
