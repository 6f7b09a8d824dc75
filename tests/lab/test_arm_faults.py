"""What goes wrong at the ARM emulator when it is told to, who may call it how often, and what it notes."""

from __future__ import annotations

import aiohttp
import pytest

from tests.lab.arm_calls import (
    ACCOUNT,
    GROUP,
    NETWORK,
    SET,
    SETS,
    SUBSCRIPTION,
    VMSS,
    account,
    calls,
    network,
    scale_set,
)
from trimtab.lab.arm import Dropped, ErrorInside, Html, Limit, Refused, Truncated
from trimtab.testing.clock import FakeClock

ID = SUBSCRIPTION.rpartition("/")[2]


async def test_the_next_requests_that_fit_get_an_error() -> None:
    async with calls() as call:
        call.arm.fault(Refused(409, "AnotherOperationInProgress"), "PUT", "/virtualMachineScaleSets/", times=2)
        await call("GET", SET)
        assert [(await call("PUT", SET, scale_set())).status for _ in range(3)] == [409, 409, 201]
        call.arm.fault(Refused(400, "PrincipalNotFound", "Not yet."), "PUT", "web")
        refused = await call("PUT", SET, scale_set())
        assert refused.body == {"error": {"code": "PrincipalNotFound", "message": "Not yet."}}


async def test_an_error_can_say_when_to_come_back() -> None:
    async with calls() as call:
        call.arm.fault(Refused(429, "RetryableError", retry_after=12), "PUT")
        refused = await call("PUT", SET, scale_set())
        assert (refused.status, refused.headers["Retry-After"]) == (429, "12")


@pytest.mark.parametrize("after", [False, True])
async def test_a_connection_can_be_cut_before_or_after_the_effect(after: bool) -> None:
    async with calls() as call:
        call.arm.fault(Dropped(after_effect=after), "PUT", times=2)  # aiohttp sends a PUT once more by itself
        with pytest.raises(aiohttp.ClientError):
            await call("PUT", SET, scale_set())
        assert (SET in call.arm.resources) is after
        assert [each.status for each in call.arm.requests] == [0, 0]


async def test_an_answer_can_break_off() -> None:
    async with calls() as call:
        call.arm.fault(Truncated(after=20), "PUT")
        with pytest.raises(aiohttp.ClientError):
            await call("PUT", SET, scale_set())
        assert SET in call.arm.resources


async def test_a_page_can_come_instead_of_json() -> None:
    async with calls() as call:
        call.arm.fault(Html(status=200), "GET")
        call.arm.fault(Html(status=502, after_effect=True), "PUT")
        assert (await call("PUT", SET, scale_set())).status == 502
        assert SET in call.arm.resources
        page = await call("GET", SET)
        assert (page.status, page.headers["Content-Type"]) == (200, "text/html")
        assert page.body.startswith(b"<!DOCTYPE html>")


async def test_200_can_have_an_error_inside() -> None:
    async with calls() as call:
        call.arm.fault(ErrorInside(code="Oops"), "PUT")
        said = await call("PUT", SET, scale_set())
        assert (said.status, said.code) == (200, "Oops")
        assert SET not in call.arm.resources


async def test_faults_can_be_taken_back() -> None:
    async with calls() as call:
        call.arm.fault(Refused(500, "InternalServerError"), times=100)
        call.arm.clear_faults()
        assert (await call("PUT", SET, scale_set())).status == 201


async def test_a_subscription_can_be_throttled_and_others_not() -> None:
    other = SETS.replace(ID, "22222222-0000-4000-8000-000000000002")
    async with calls() as call:
        call.arm.put(f"{other}/web", scale_set())
        call.arm.throttle(ID, retry_after=17)
        refused = await call("GET", SETS)
        assert (refused.status, refused.code) == (429, "SubscriptionRequestsThrottled")
        assert refused.headers["Retry-After"] == "17"
        assert (await call("GET", other)).status == 200
        call.arm.unthrottle(ID)
        assert (await call("GET", SETS)).status == 200


async def test_a_subscription_has_so_many_calls_and_is_told_how_many_are_left() -> None:
    clock = FakeClock()
    async with calls(clock=clock) as call:
        call.arm.behave(limits={"reads": Limit(calls=2, per_second=0.1, retry_after=10)})
        left = "x-ms-ratelimit-remaining-subscription-global-reads"
        seen = [await call("GET", SETS) for _ in range(3)]
        assert [each.status for each in seen] == [200, 200, 429]
        assert [each.headers[left] for each in seen] == ["1", "0", "0"]
        written = await call("PUT", SET, scale_set())
        assert written.headers["x-ms-ratelimit-remaining-subscription-global-writes"] == "11999"
        assert "x-ms-ratelimit-remaining-subscription-global-deletes" in (await call("DELETE", SET)).headers
        await clock.advance(10)
        assert [(await call("GET", SETS)).status for _ in range(2)] == [200, 429]


async def test_who_does_not_bear_the_token_is_turned_away() -> None:
    async with calls(token="t0ken") as call:
        for given in ({}, {"Authorization": "Bearer other"}, {"Authorization": "Basic t0ken"}):
            refused = await call("PUT", SET, scale_set(), **given)
            assert refused.status == 401
            assert refused.headers["WWW-Authenticate"].startswith("Bearer")
        assert SET not in call.arm.resources
        assert (await call("PUT", SET, scale_set(), Authorization="Bearer t0ken")).status == 201
        assert "t0ken" not in repr(call.arm.requests)


async def test_there_are_no_other_subscriptions_than_those_that_are_named() -> None:
    async with calls(subscriptions=[ID]) as call:
        assert (await call("GET", SETS)).status == 200
        refused = await call("GET", SETS.replace(ID, "other"))
        assert (refused.status, refused.code) == (404, "SubscriptionNotFound")


async def test_every_request_is_noted_and_counted() -> None:
    async with calls() as call:
        await call("PUT", SET, scale_set())
        await call("PUT", SET, scale_set(4), If_Match="*")
        await call("PATCH", SET, {"sku": {"capacity": 5}})
        await call("GET", SET)
        await call("GET", SETS)
        await call("GET", f"{SET}/instanceView")
        await call("PUT", ACCOUNT, account())
        await call("POST", f"{ACCOUNT}/listKeys")
        await call("DELETE", SET)
        log = call.arm.log
        assert dict(log.verbs) == {
            "create": 2,
            "update": 1,
            "patch": 1,
            "read": 1,
            "list": 1,
            "derived": 1,
            "action": 1,
            "delete": 1,
        }
        assert log.writes == 5
        assert log.by_type[f"PUT {VMSS}"] == 2
        assert log.count("PUT", "virtualmachinescalesets", status=200) == 1
        patched = next(each for each in call.arm.requests if each.method == "PATCH")
        assert (patched.path, patched.body) == (SET, {"sku": {"capacity": 5}})
        assert log.requests[1].headers["if-match"] == "*"
        log.clear()
        assert (log.writes, log.requests) == (0, [])


async def test_looks_at_operations_are_counted_as_such() -> None:
    async with calls() as call:
        call.arm.behave(asynchronous=True)
        said = await call("PUT", NETWORK, network())
        await call("GET", said.headers["Azure-AsyncOperation"])
        assert call.arm.log.verbs["poll"] == 1
        assert (await call("GET", f"{GROUP}/providers/Microsoft.Compute/locations/x/operations/none")).status == 404
