"""What a difference between the spec and what runs asks for, row by row."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trimtab.systems.delivery.kinds import TrackedConfig
from trimtab.systems.delivery.revisions.changes import LEAVING, Change, Facts, classify, configs_changed, within_window

REST = {"stable": "a", "target_before": "a", "generation": 2, "target_generation": 1}
RUN = {**REST, "target_before": "b", "run_revision": "b", "phase": "Progressing"}

TABLE: dict[str, tuple[Facts, Change]] = {
    "the first revision": (Facts(target="a", generation=1), Change.INITIAL),
    "nothing new": (Facts(**{**REST, "target": "a", "target_generation": 2}), Change.NO_CHANGE),
    "replicas": (Facts(**REST, target="a"), Change.IN_PLACE),
    "another template": (Facts(**REST, target="b"), Change.NEW_RUN),
    "another config": (
        Facts(**{**REST, "target_generation": 2}, target="b", configs_changed=True),
        Change.NEW_RUN,
    ),
    "a target that was waiting": (Facts(**{**REST, "target_before": "b", "target_generation": 2}, target="b"), Change.NEW_RUN),
    "another hash of the same": (Facts(**{**REST, "target_generation": 2}, target="b"), Change.REBASELINE),
    "another hash of the same in a run": (Facts(**{**RUN, "target_generation": 2}, target="c"), Change.REBASELINE),
    "replicas in a run": (Facts(**RUN, target="b"), Change.IN_PLACE),
    "nothing new in a run": (Facts(**{**RUN, "target_generation": 2}, target="b"), Change.NO_CHANGE),
    "back to stable": (Facts(**RUN, target="a"), Change.REVERT),
    "a third revision": (Facts(**RUN, target="c"), Change.SUPERSEDED),
    "a third that failed before": (Facts(**RUN, target="c", failed="c"), Change.SUPERSEDED),
    "what failed": (Facts(**REST, target="b", failed="b"), Change.FAILED_BEFORE),
    "what failed, with its token": (
        Facts(**REST, target="b", failed="b", retry_token="1", failed_token="1"),
        Change.FAILED_BEFORE,
    ),
    "what failed, with a new token": (
        Facts(**REST, target="b", failed="b", retry_token="2", failed_token="1"),
        Change.NEW_RUN,
    ),
    "what failed, promoted now": (Facts(**REST, target="b", failed="b", promote_now="b"), Change.PROMOTE_NOW),
    "promoted now": (Facts(**REST, target="b", promote_now="b"), Change.PROMOTE_NOW),
    "promoted now in a run": (Facts(**RUN, target="b", promote_now="b"), Change.PROMOTE_NOW),
    "another is promoted now": (Facts(**REST, target="b", promote_now="c"), Change.NEW_RUN),
    "what is stable is promoted now": (Facts(**REST, target="a", promote_now="a"), Change.IN_PLACE),
    "within the window": (
        Facts(**REST, target="b", history_revisions=("a", "c", "b"), rollback_window=2),
        Change.ROLLBACK_WINDOW,
    ),
    "beyond the window": (
        Facts(**REST, target="b", history_revisions=("a", "c", "b"), rollback_window=1),
        Change.NEW_RUN,
    ),
    "no window": (Facts(**REST, target="b", history_revisions=("b",)), Change.NEW_RUN),
    "within the window, but failed since": (
        Facts(**REST, target="b", failed="b", history_revisions=("b",), rollback_window=1),
        Change.FAILED_BEFORE,
    ),
}  # fmt: skip


@pytest.mark.parametrize(("facts", "change"), TABLE.values(), ids=TABLE)
def test_each_case_has_its_answer(facts: Facts, change: Change) -> None:
    assert classify(facts) is change


@pytest.mark.parametrize("phase", sorted(LEAVING))
@pytest.mark.parametrize("target", ["a", "c"])
def test_a_run_that_is_decided_is_finished_first(phase: str, target: str) -> None:
    assert classify(Facts(**{**RUN, "phase": phase}, target=target)) is Change.LATER


@pytest.mark.parametrize("phase", sorted(LEAVING))
def test_what_is_decided_is_not_promoted_again(phase: str) -> None:
    assert classify(Facts(**{**RUN, "phase": phase}, target="b", promote_now="b")) is Change.IN_PLACE


REVISIONS = st.sampled_from(["", "a", "b", "c"])


@given(
    st.builds(
        Facts,
        target=st.sampled_from(["a", "b", "c"]),
        target_before=st.sampled_from(["a", "b", "c"]),
        stable=st.sampled_from(["a", "b", "c"]),
        failed=REVISIONS,
        run_revision=REVISIONS,
        phase=st.sampled_from(["Stable", "Progressing", "WaitingPromotion", *sorted(LEAVING)]),
        generation=st.just(5),
        target_generation=st.just(5),
        promote_now=REVISIONS,
        rollback_window=st.integers(0, 3),
        history_revisions=st.lists(REVISIONS, max_size=3).map(tuple),
    )
)
def test_nothing_begins_or_ends_behind_the_fence(facts: Facts) -> None:
    if facts.target != facts.target_before:
        assert classify(facts) is Change.REBASELINE


def test_the_window_counts_each_revision_once_and_not_the_present_one() -> None:
    history = ["c", "b", "c", "b", "a"]
    assert within_window("b", "c", history, 1)
    assert within_window("a", "c", history, 2)
    assert not within_window("a", "c", history, 1)
    assert not within_window("c", "c", history, 3)


def test_configs_change_by_content_and_by_number() -> None:
    one = TrackedConfig(kind="ConfigMap", name="a", checksum="1")
    two = TrackedConfig(kind="Secret", name="a", checksum="1")
    assert not configs_changed((one, two), (two, one))
    assert configs_changed((one, two), (one,))
    assert configs_changed((one,), (one.replace(checksum="2"),))
