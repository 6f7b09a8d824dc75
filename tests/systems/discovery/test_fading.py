"""How a Target disappears."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trimtab.model.duration import Duration
from trimtab.systems.discovery.kinds import Fading
from trimtab.systems.discovery.targets import fading
from trimtab.systems.discovery.targets.fading import Missed, Phase, Seen, held, needs_confirmation

POLICY = Fading(
    lost_after_misses=3,
    lost_after=Duration("10m"),
    delete_after_misses=10,
    delete_after=Duration("24h"),
)
DAY = 86400.0


def test_the_first_miss_makes_a_target_stale() -> None:
    assert fading.next(Phase.READY, Missed(1, 0), POLICY) is Phase.STALE


def test_a_ready_target_is_never_lost_at_once() -> None:
    assert fading.next(Phase.READY, Missed(1000, 10 * DAY, confirmed=True), POLICY) is Phase.STALE


@pytest.mark.parametrize(
    "missed",
    [
        pytest.param(Missed(2, DAY, confirmed=True), id="too few misses"),
        pytest.param(Missed(3, 599, confirmed=True), id="too young"),
        pytest.param(Missed(3, 600, confirmed=False), id="not confirmed"),
        pytest.param(Missed(3, -DAY, confirmed=True), id="a clock that went back"),
    ],
)
def test_a_stale_target_stays_until_count_age_and_probe_agree(missed: Missed) -> None:
    assert fading.next(Phase.STALE, missed, POLICY) is Phase.STALE


def test_a_stale_target_is_lost_when_count_age_and_probe_agree() -> None:
    assert fading.next(Phase.STALE, Missed(3, 600, confirmed=True), POLICY) is Phase.LOST


@pytest.mark.parametrize(
    "missed",
    [Missed(9, 2 * DAY, confirmed=True), Missed(10, DAY - 1, confirmed=True), Missed(10, DAY, confirmed=False)],
)
def test_a_lost_target_stays_until_count_age_and_probe_agree(missed: Missed) -> None:
    assert fading.next(Phase.LOST, missed, POLICY) is Phase.LOST


def test_a_lost_target_is_deleted_when_count_age_and_probe_agree() -> None:
    assert fading.next(Phase.LOST, Missed(10, DAY, confirmed=True), POLICY) is Phase.DELETED


@pytest.mark.parametrize("phase", [Phase.READY, Phase.STALE, Phase.LOST])
def test_whatever_is_seen_is_ready(phase: Phase) -> None:
    assert fading.next(phase, Seen(), POLICY) is Phase.READY


@pytest.mark.parametrize("event", [Seen(), Missed(1, 1)])
def test_deleted_is_the_end(event: Seen | Missed) -> None:
    assert fading.next(Phase.DELETED, event, POLICY) is Phase.DELETED


phases = st.sampled_from(list(Phase))
misses = st.builds(Missed, st.integers(0, 30), st.floats(-DAY, 3 * DAY), st.booleans())


@given(phases, misses)
def test_a_target_goes_one_step_at_a_time(phase: Phase, missed: Missed) -> None:
    order = list(Phase)
    step = order.index(fading.next(phase, missed, POLICY)) - order.index(phase)
    assert step in (0, 1)


@given(phases, misses)
def test_a_probe_is_sent_only_when_it_decides(phase: Phase, missed: Missed) -> None:
    sure = fading.next(phase, Missed(missed.misses, missed.age_seconds, confirmed=True), POLICY)
    unsure = fading.next(phase, Missed(missed.misses, missed.age_seconds, confirmed=False), POLICY)
    assert needs_confirmation(phase, missed, POLICY) is (sure is not unsure)


@given(st.lists(misses, max_size=20))
def test_without_a_confirming_probe_nothing_is_ever_lost(events: list[Missed]) -> None:
    phase = Phase.READY
    for event in events:
        phase = fading.next(phase, Missed(event.misses, event.age_seconds), POLICY)
        assert phase in (Phase.READY, Phase.STALE)


@pytest.mark.parametrize(
    ("total", "losing", "expected"),
    [(100, 25, False), (100, 26, True), (3, 1, False), (1, 1, True), (3, 2, True), (4, 1, False), (2, 2, True), (0, 0, False)],
)  # fmt: skip
def test_more_than_the_share_at_once_is_held_back(total: int, losing: int, expected: bool) -> None:
    assert held(total, losing, 25) is expected


def test_a_share_of_all_holds_nothing_back() -> None:
    assert not held(100, 100, 100)
