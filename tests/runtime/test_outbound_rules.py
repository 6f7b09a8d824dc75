"""The rules behind the outbound client, by tables: what is shown, whom to talk to, what to repeat, where to follow."""

from __future__ import annotations

import random
from datetime import UTC, datetime

import pytest
import yarl
from hypothesis import given, settings
from hypothesis import strategies as st

from trimtab.runtime.outbound.budget import MOST_SCOPES, Budget, Late, Scope, Scopes
from trimtab.runtime.outbound.errors import (
    BudgetSpent,
    NotAllowed,
    OutboundError,
    TimedOut,
    TlsFailed,
    TooLarge,
    Unreachable,
    shown,
)
from trimtab.runtime.outbound.pin import HostPin
from trimtab.runtime.outbound.redirect import Hop, RedirectRefused, followed
from trimtab.runtime.outbound.retry import Failure, failure_of, pause_before_retry, retry_after
from trimtab.testing.clock import FakeClock

NOW = datetime(2026, 11, 16, 2, 0, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("url", "text"),
    [
        ("https://example.com/a?page=2", "https://example.com/a?page=2"),
        ("https://ann:pw@example.com/", "https://REDACTED@example.com/"),
        ("https://:pw@example.com:8443/", "https://REDACTED@example.com:8443/"),
        ("https://x/b?sv=1&sig=abc%2F", "https://x/b?sv=1&sig=REDACTED"),
        ("https://x/?access_token=a&api-key=b&PASSWORD=c", "https://x/?access_token=REDACTED&api-key=REDACTED&PASSWORD=REDACTED"),
        ("https://x/?X-Amz-Signature=a&X-Amz-Credential=b", "https://x/?X-Amz-Signature=REDACTED&X-Amz-Credential=REDACTED"),
        ("https://x/#token=a", "https://x/"),
        ("http://[::1]:80/", "http://[::1]:80/"),
        ("http://[::1/?token=a", "(an invalid URL)"),
    ],
)  # fmt: skip
def test_a_url_is_shown_without_its_secrets(url: str, text: str) -> None:
    assert shown(url) == text


@given(st.text(alphabet="abcXYZ019%/+=~", min_size=8, max_size=40))
def test_no_secret_value_is_ever_shown(value: str) -> None:
    url = f"https://u:{value.replace('/', '_')}@example.com/p?q=1&client_secret={value}&token={value}#{value}"
    assert shown(url) == "https://REDACTED@example.com/p?q=1&client_secret=REDACTED&token=REDACTED"


@pytest.mark.parametrize(
    ("pattern", "host", "port", "allowed"),
    [
        ("example.com", "example.com", 443, True),
        ("example.com", "EXAMPLE.com.", 443, True),
        ("example.com", "evil-example.com", 443, False),
        ("example.com", "a.example.com", 443, False),
        ("*.example.com", "a.b.example.com", 443, True),
        ("*.example.com", "example.com", 443, False),
        ("*.example.com", "evilexample.com", 443, False),
        ("*.example.com", ".example.com", 443, False),
        ("example.com:8443", "example.com", 8443, True),
        ("example.com:8443", "example.com", 443, False),
        ("[::1]:8080", "::1", 8080, True),
        ("fe80::a:1", "fe80::a:1", 80, True),
    ],
)
def test_a_pin_matches_whole_names(pattern: str, host: str, port: int, allowed: bool) -> None:
    assert HostPin(hosts=(pattern,)).allows(host, port) is allowed


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1", "127.8.9.1", "::1", "0.0.0.0", "0.1.2.3", "::", "::ffff:127.0.0.1", "64:ff9b::7f00:1", "2002:7f00:1::",
        "169.254.169.254", "fe80::1", "fe80::1%eth0", "::ffff:169.254.169.254", "168.63.129.16", "fd00:ec2::254",
        "10.0.0.1", "172.16.0.1", "192.168.1.1", "100.64.0.1", "fc00::1", "198.18.0.1", "64:ff9b::a00:1", "::ffff:10.1.1.1",
        "224.0.0.1", "ff02::1", "255.255.255.255", "240.0.0.1", "192.0.2.1",
    ],
)  # fmt: skip
def test_a_public_pin_refuses_every_address_that_is_not_public(address: str) -> None:
    assert HostPin(loopback=False, private=False).refusal(address) is not None


@pytest.mark.parametrize("address", ["8.8.8.8", "2606:4700::1111", "::ffff:1.1.1.1", "64:ff9b::808:808"])
def test_a_public_pin_allows_public_addresses(address: str) -> None:
    assert HostPin(loopback=False, private=False).refusal(address) is None


@pytest.mark.parametrize(
    ("wrapped", "public"),
    [
        ("64:ff9b::{}", True),
        ("::{}", True),
        ("::ffff:{}", True),
        ("::ffff:0:{}", True),
        ("2002:{}::1", True),
        ("64:ff9b:1::{}", False),
        ("64:ff9b:1:a:b:c:{}", False),
        ("2001:0:4136:e378:8000:63bf:{}", False),
        ("fec0::{}", False),
        ("feff::{}", False),
        ("5f00::{}", False),
        ("3fff::{}", False),
        ("100::{}", False),
    ],
)
@pytest.mark.parametrize(
    ("inner", "allowed"),
    [
        ("808:808", True),
        ("7f00:1", False),
        ("a00:1", False),
        ("c0a8:101", False),
        ("a9fe:a9fe", False),
        ("6440:1", False),
        ("e000:1", False),
    ],
)
def test_an_address_within_an_address_is_judged_as_the_inner_one(
    wrapped: str, public: bool, inner: str, allowed: bool
) -> None:
    refusal = HostPin(loopback=False, private=False).refusal(wrapped.format(inner))
    assert (refusal is None) is (public and allowed)


@pytest.mark.parametrize(
    "address",
    ["64:ff9b::a9fe:a9fe", "::a9fe:a9fe", "::ffff:0:a9fe:a9fe", "2002:a9fe:a9fe::", "64:ff9b:1::1", "2001::1"],
)
def test_by_default_no_wrapping_leads_to_a_metadata_service(address: str) -> None:
    assert HostPin().refusal(address) is not None
    assert HostPin(link_local=True).refusal(address) is None


@pytest.mark.parametrize("address", ["169.254.169.254", "fe80::1", "168.63.129.16", "100.100.100.200", "224.0.0.1"])
def test_metadata_services_are_refused_unless_they_are_asked_for(address: str) -> None:
    assert HostPin().refusal(address) is not None


@pytest.mark.parametrize("address", ["127.0.0.1", "10.0.0.1", "fc00::1", "fec0::1", "::1", "::", "8.8.8.8"])
def test_by_default_a_machines_own_networks_are_allowed(address: str) -> None:
    assert HostPin().refusal(address) is None


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        (None, None),
        ("0", 0),
        (" 120 ", 120),
        ("Mon, 16 Nov 2026 02:00:30 GMT", 30),
        ("Monday, 16-Nov-26 02:00:30 GMT", 30),
        ("Mon Nov 16 02:00:30 2026", 30),
        ("Mon, 16 Nov 2026 01:00:00 GMT", 0),
        ("-5", None),
        ("1.5", None),
        ("٣", None),
        ("soon", None),
        ("9" * 100, None),
        ("Mon, 99 Nov 2026 02:00:30 GMT", None),
    ],
)
def test_retry_after_is_read_in_all_its_forms(value: str | None, seconds: float | None) -> None:
    assert retry_after(value, NOW) == seconds


@given(st.text(max_size=80))
def test_no_retry_after_breaks_the_reader(value: str) -> None:
    seconds = retry_after(value, NOW)
    assert seconds is None or seconds >= 0


@pytest.mark.parametrize(
    ("outcome", "failure"),
    [
        (200, None), (404, None), (500, None), (429, Failure.BUSY), (502, Failure.BUSY), (503, Failure.BUSY), (504, Failure.BUSY),
        (Unreachable("GET", "http://x", "", sent=False), Failure.NOT_SENT),
        (Unreachable("GET", "http://x", "", sent=True), Failure.LOST),
        (TimedOut("GET", "http://x", "", sent=False, final=False), Failure.NOT_SENT),
        (TimedOut("GET", "http://x", "", sent=True, final=False), Failure.LOST),
        (TimedOut("GET", "http://x", "", sent=True, final=True), None),
        (TlsFailed("GET", "http://x", ""), None),
        (NotAllowed("GET", "http://x", ""), None),
        (TooLarge("GET", "http://x", ""), None),
        (BudgetSpent("GET", "http://x", ""), None),
    ],
)  # fmt: skip
def test_only_what_may_pass_is_tried_again(outcome: OutboundError | int, failure: Failure | None) -> None:
    assert failure_of(outcome) is failure


@pytest.mark.parametrize(
    ("failure", "idempotent", "again"),
    [
        (Failure.NOT_SENT, False, True),
        (Failure.LOST, False, False),
        (Failure.BUSY, False, False),
        (Failure.LOST, True, True),
        (Failure.BUSY, True, True),
    ],
)
def test_what_may_have_arrived_is_repeated_only_when_idempotent(
    failure: Failure, idempotent: bool, again: bool
) -> None:
    pause = pause_before_retry(Budget(), failure, 1, idempotent=idempotent, wish=None, chance=random.Random(1))
    assert (pause is not None) is again


@given(st.integers(1, 100), st.integers(0, 2**32))
def test_back_off_grows_and_stays_bounded(attempt: int, seed: int) -> None:
    budget = Budget(attempts=1000)
    chance = random.Random(seed)
    pause = pause_before_retry(budget, Failure.LOST, attempt, idempotent=True, wish=None, chance=chance)
    assert pause is not None
    longest = min(budget.longest_pause, budget.first_pause * 2.0 ** (attempt - 1))
    assert longest / 2 <= pause <= longest


@pytest.mark.parametrize(
    ("method", "status", "then"),
    [
        ("POST", 301, "GET"), ("POST", 302, "GET"), ("POST", 303, "GET"), ("PUT", 303, "GET"), ("HEAD", 303, "HEAD"),
        ("POST", 307, "POST"), ("POST", 308, "POST"), ("PUT", 301, "PUT"), ("GET", 302, "GET"),
    ],
)  # fmt: skip
def test_a_redirect_changes_the_method_as_http_says(method: str, status: int, then: str) -> None:
    body = method in ("POST", "PUT")
    headers = {"Content-Type": "a/b", "Authorization": "x"} if body else {"Authorization": "x"}
    hop = followed(Hop(method, yarl.URL("https://a/x"), headers, body), status, "/y")
    assert (hop.method, hop.with_body) == (then, body and then == method)
    assert ("Content-Type" in hop.headers) is hop.with_body
    assert hop.headers["Authorization"] == "x"


@pytest.mark.parametrize("location", ["http://a/", "ftp://a/", "javascript:alert(1)", "https://[::1/", "//a:99999/"])
def test_a_redirect_to_somewhere_strange_is_refused(location: str) -> None:
    with pytest.raises(RedirectRefused):
        followed(Hop("GET", yarl.URL("https://a/x"), {}, False), 302, location)


def test_a_body_is_not_taken_to_another_host() -> None:
    with pytest.raises(RedirectRefused, match="body"):
        followed(Hop("POST", yarl.URL("https://a/x"), {}, True), 307, "https://b/")


@pytest.mark.parametrize("location", ["https://b/", "https://a:8443/", "https://ann:pw@b/"])
def test_another_origin_gets_neither_credentials_nor_the_client_certificate(location: str) -> None:
    hop = followed(Hop("GET", yarl.URL("https://a/x"), {"X-Token": "x", "Accept": "y"}, False), 302, location)
    assert hop.headers == {"Accept": "y"}
    assert not hop.with_identity
    assert hop.url.user is None


def test_a_hop_does_not_show_its_headers() -> None:
    assert "pw" not in repr(Hop("GET", yarl.URL("https://a/"), {"Authorization": "pw"}, False))


@given(st.lists(st.booleans(), max_size=200))
@settings(max_examples=60)
def test_retries_are_never_more_than_the_ratio_and_the_reserve(fails: list[bool]) -> None:
    scope = Scope(Budget(), FakeClock(), random.Random(1))
    requests = retries = 0
    for failed in fails:
        scope.earn()
        requests += 1
        while failed and scope.spend():
            retries += 1
    assert retries <= 0.2 * requests + Budget().retry_reserve


async def test_a_waiter_that_would_come_too_late_gives_its_token_back() -> None:
    clock = FakeClock()
    scope = Scope(Budget(rate=1, burst=1), clock, random.Random(1))
    await scope.turn(deadline=10)
    for _ in range(5):
        with pytest.raises(Late, match="rate limit"):
            await scope.turn(deadline=0.5)
    await clock.advance(1)
    await scope.turn(deadline=1)


async def test_scopes_that_are_like_new_are_forgotten() -> None:
    clock = FakeClock()
    scopes = Scopes(Budget(), clock, random.Random(1))
    scopes.of("paused").pause(100)
    used = scopes.of("used")
    await used.enter(1)
    for number in range(3 * MOST_SCOPES):
        scopes.of(str(number))
    assert len(scopes) <= MOST_SCOPES
    assert scopes.of("used") is used
    with pytest.raises(Late):
        await scopes.of("paused").turn(deadline=50)
