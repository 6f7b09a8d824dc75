"""What becomes of a login, kept for whole devices: each end has its consequence, and a wait tells its true cause."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest
from msgspec import UNSET

from trimtab.model.objectmeta import ObjectMeta
from trimtab.storage.folder import FolderBlobs
from trimtab.systems.discovery.findings import LoginEnd, NotIdentified, Outcome
from trimtab.systems.discovery.kinds import DiscoveryRule
from trimtab.systems.discovery.ledger.attempts import Attempts
from trimtab.systems.discovery.ledger.book import Book
from trimtab.systems.discovery.ledger.books import Books
from trimtab.testing.clock import FakeClock

WINDOW = 900.0
SECRETS = ("first", "second")


class Kept(Book):
    """A book whose commits go nowhere: who commits when is the matter of others."""

    async def commit(self) -> None:
        return


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock(datetime(2026, 1, 1, tzinfo=UTC))


@pytest.fixture
def attempts(tmp_path: Path, clock: FakeClock) -> Attempts:
    rule = DiscoveryRule(metadata=ObjectMeta(name="lab", namespace="lab", uid="1"), spec=UNSET)
    book = Kept(FolderBlobs(tmp_path), None, rule)  # type: ignore[arg-type]
    return Attempts(book, Books(), clock, WINDOW)


def failure(outcome: Outcome, login: LoginEnd | None = None) -> NotIdentified:
    return NotIdentified(outcome, "so it was", login=login)


async def sweep(attempts: Attempts, ended: NotIdentified | None, address: str = "10.0.0.1") -> str:
    """The Secret that was tried, or why none was."""
    try:
        secret = await attempts.begin(address, "ssh", SECRETS)
    except NotIdentified as waiting:
        return waiting.detail
    attempts.end(address, "ssh", secret, ended)
    return secret


def test_a_credential_that_is_refused_is_a_login_that_is() -> None:
    assert failure(Outcome.AUTHENTICATION_FAILED).login == "refused"
    assert failure(Outcome.TIMED_OUT).login == "unknown"


@pytest.mark.parametrize("outcome", [Outcome.TIMED_OUT, Outcome.DISCONNECTED, Outcome.PROTOCOL_ERROR])
async def test_a_device_that_never_gets_a_credential_is_asked_in_each_sweep(
    attempts: Attempts, outcome: Outcome
) -> None:
    told = [await sweep(attempts, failure(outcome, "unsent")) for _ in range(5)]
    assert told == ["first"] * 5


@pytest.mark.parametrize("outcome", [Outcome.TIMED_OUT, Outcome.DISCONNECTED, Outcome.PROTOCOL_ERROR])
async def test_a_device_that_lets_us_in_and_then_breaks_is_asked_in_each_sweep(
    attempts: Attempts, outcome: Outcome
) -> None:
    told = [await sweep(attempts, failure(outcome, "accepted")) for _ in range(5)]
    assert told == ["first"] * 5


async def test_after_a_refusal_the_wait_says_so_and_until_when(attempts: Attempts) -> None:
    await sweep(attempts, failure(Outcome.AUTHENTICATION_FAILED))
    told = await sweep(attempts, None)
    assert told.startswith("a login was refused;")
    assert told.endswith("nothing is tried before 2026-01-01T00:15:00Z")


async def test_after_logins_without_an_end_the_wait_does_not_speak_of_a_refusal_as_of_a_fact(
    attempts: Attempts,
) -> None:
    told = [await sweep(attempts, failure(Outcome.TIMED_OUT)) for _ in range(3)]
    assert told[:2] == ["first", "first"]
    assert told[2].startswith("a login had no known end, and may have been refused;")


async def test_a_login_that_counts_as_refused_and_was_not_answered_is_told_as_such(attempts: Attempts) -> None:
    await sweep(attempts, failure(Outcome.AUTHENTICATION_FAILED, "unknown"))
    assert (await sweep(attempts, None)).startswith("a login had no known end")


async def test_the_way_to_log_in_that_the_device_lacks_is_told_in_each_sweep(attempts: Attempts) -> None:
    told = [await sweep(attempts, failure(Outcome.AUTHENTICATION_FAILED, "unsent")) for _ in range(3)]
    assert told == ["first"] * 3


async def test_tries_by_other_protocols_are_told_as_what_they_are(attempts: Attempts) -> None:
    for protocol in ("netconf", "gnmi"):
        secret = await attempts.begin("10.0.0.1", protocol, SECRETS)
        attempts.end("10.0.0.1", protocol, secret, failure(Outcome.AUTHENTICATION_FAILED))
    assert (await sweep(attempts, None)).startswith("2 logins were refused or had no known end;")


async def test_an_address_that_shows_the_key_of_a_device_that_refused_names_it(attempts: Attempts) -> None:
    async with attempts.turn("10.0.0.1", "ssh", "SHA256:key"):
        await sweep(attempts, failure(Outcome.AUTHENTICATION_FAILED))
    with pytest.raises(NotIdentified, match=r"at 10\.0\.0\.1, which is the same device, a login was refused") as caught:
        async with attempts.turn("10.0.0.2", "ssh", "SHA256:key"):
            raise AssertionError("nobody may log in")
    assert caught.value.login == "unsent"


async def test_after_the_window_the_next_credential_is_tried(attempts: Attempts, clock: FakeClock) -> None:
    await sweep(attempts, failure(Outcome.AUTHENTICATION_FAILED))
    await clock.advance(WINDOW)
    assert await sweep(attempts, None) == "second"
