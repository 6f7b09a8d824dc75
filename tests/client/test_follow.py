"""How `follow` lives through failures: which phase comes next, how long it waits, and what it gives up on."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Any

import pytest

from trimtab.client.follow import LONGEST_PAUSE, Outcome, Phase, after, follow
from trimtab.client.protocol import AnyKind, Event, EventType, Listing, Named, Query
from trimtab.model.clock import SystemClock
from trimtab.model.errors import StatusError, expired
from trimtab.model.scheme import Untyped

KIND = Named("v1", "ConfigMap")


class Stopped(SystemClock):
    """Time that passes only when somebody sleeps."""

    def __init__(self) -> None:
        self.slept: list[float] = []

    def monotonic(self) -> float:
        return sum(self.slept)

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)


class EndOfScriptError(Exception):
    """The server has no more answers."""


class Scripted:
    """A server's answers, one after the other: a revision is a list, a tuple is the events of a watch. Then it is
    broken.
    """

    def __init__(self, *answers: Any) -> None:
        self.answers = list(answers)
        self.asked: list[str] = []

    async def list(self, kind: AnyKind, query: Query) -> Listing[Any]:
        self.asked.append("list")
        return Listing([], self._next())

    async def watch(self, kind: AnyKind, query: Query, since: str) -> AsyncGenerator[Event[Any], None]:
        self.asked.append(since)
        for event in self._next():
            yield event

    def _next(self) -> Any:
        answer = self.answers.pop(0) if self.answers else EndOfScriptError()
        if isinstance(answer, Exception):
            raise answer
        return answer


def added(revision: str) -> Event[Any]:
    return Event(EventType.ADDED, revision, Untyped({}))


async def followed(server: Scripted, clock: Stopped | None = None, **settings: Any) -> list[Any]:
    """All that it tells until the script is over."""
    seen: list[Any] = []
    try:
        async for told in follow(server, KIND, clock=clock or Stopped(), **settings):  # type: ignore[arg-type]
            seen.append(told)  # noqa: PERF401 - what came before the end counts
    except EndOfScriptError:
        pass
    return seen


@pytest.mark.parametrize(
    ("phase", "outcome", "following"),
    [
        (Phase.LISTING, Outcome.LISTED, Phase.WATCHING),
        (Phase.LISTING, Outcome.FAILED, Phase.LISTING),
        (Phase.WATCHING, Outcome.ENDED, Phase.WATCHING),
        (Phase.WATCHING, Outcome.FAILED, Phase.WATCHING),
        (Phase.WATCHING, Outcome.EXPIRED, Phase.LISTING),
        (Phase.LISTING, Outcome.EXPIRED, Phase.LISTING),
    ],
)
def test_phases_follow_outcomes(phase: Phase, outcome: Outcome, following: Phase) -> None:
    assert after(phase, outcome) is following


async def test_each_watch_goes_on_from_the_last_revision_seen() -> None:
    bookmark: Event[Any] = Event(EventType.BOOKMARK, "9")
    server = Scripted("3", (added("5"),), (bookmark,), ConnectionError(), (added("12"),))
    seen = await followed(server)
    assert server.asked == ["list", "3", "5", "9", "9", "12"]
    assert [told.revision for told in seen] == ["3", "5", "12"], "bookmarks are kept to itself"


@pytest.mark.parametrize("lost", [expired("too old"), StatusError(410, "Gone", "gone")])
async def test_a_lost_past_is_listed_again(lost: StatusError) -> None:
    server = Scripted("3", lost, "8", (added("9"),))
    seen = await followed(server)
    assert server.asked == ["list", "3", "list", "8", "9"]
    assert [type(told) for told in seen] == [Listing, Listing, Event]


@pytest.mark.parametrize(
    "failure", [ConnectionError(), TimeoutError(), StatusError(500, "InternalError", "no"), expired("old"), ()]
)
async def test_pauses_grow_whatever_goes_wrong(failure: Any) -> None:
    clock = Stopped()
    again = (failure, "1") if isinstance(failure, StatusError) and failure.code == 410 else (failure,)
    await followed(Scripted("1", *again * 5), clock)
    assert all(0.05 * 2**n <= pause <= 0.1 * 2**n for n, pause in enumerate(clock.slept[:5]))


async def test_pauses_are_bounded_and_begin_anew_after_an_event() -> None:
    clock = Stopped()
    await followed(Scripted("1", *[ConnectionError()] * 30, (added("2"),), ConnectionError()), clock)
    assert max(clock.slept) <= LONGEST_PAUSE
    assert clock.slept[29] >= LONGEST_PAUSE / 2
    assert clock.slept[30] <= 0.1


async def test_what_is_waited_out_is_told() -> None:
    told: list[str] = []
    server = Scripted("1", ConnectionError("down"), expired("old"), "2", (added("3"),))
    await followed(server, failed=lambda error, pause: told.append(str(error)))
    assert told == ["down", "old"]


@pytest.mark.parametrize("code", [401, 403, 404])
async def test_a_refusal_that_may_pass_is_raised_when_it_does_not(code: int) -> None:
    refusal = StatusError(code, "X", "no")
    server = Scripted(*[refusal] * 10)
    with pytest.raises(StatusError):
        async for _ in follow(server, KIND, clock=Stopped(), patience=3):  # type: ignore[arg-type]
            pass
    assert len(server.asked) == 4


async def test_refusals_count_only_in_a_row() -> None:
    refusal = StatusError(403, "Forbidden", "no")
    server = Scripted(refusal, refusal, "1", refusal, refusal, (added("2"),), refusal, refusal)
    assert len(await followed(server, patience=2)) == 2


@pytest.mark.parametrize("code", [400, 405, 422])
async def test_a_refusal_that_cannot_pass_is_raised_at_once(code: int) -> None:
    server = Scripted("1", StatusError(code, "X", "no"))
    with pytest.raises(StatusError):
        async for _ in follow(server, KIND, clock=Stopped()):  # type: ignore[arg-type]
            pass
    assert server.asked == ["list", "1"]
