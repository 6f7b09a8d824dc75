"""What candidates write into a lease, by tables."""

from __future__ import annotations

from datetime import UTC, datetime

import msgspec
import pytest

from trimtab.model.kubernetes import Lease, LeaseSpec
from trimtab.model.scheme import Untyped
from trimtab.runtime.lease import is_free, released, taken, typed

NOW = datetime(2026, 1, 1, tzinfo=UTC)
STAMP = "2026-01-01T00:00:00.000000Z"
THEIRS = LeaseSpec(
    holder_identity="b", lease_duration_seconds=30, acquire_time="x", renew_time="y", lease_transitions=4
)


@pytest.mark.parametrize(
    ("seen", "unchanged", "free"),
    [
        (LeaseSpec(), 0, True),
        (LeaseSpec(holder_identity="", lease_duration_seconds=1), 0, True),
        (LeaseSpec(holder_identity="a", lease_duration_seconds=30), 0, True),
        (THEIRS, 29.9, False),
        (THEIRS, 30, True),
        (LeaseSpec(holder_identity="b"), 14.9, False),
        (LeaseSpec(holder_identity="b"), 15, True),
        (LeaseSpec(holder_identity="b", lease_duration_seconds=-1), 14.9, False),
    ],
)
def test_a_lease_is_free_when_nobody_holds_it_or_the_holder_was_silent_for_its_duration(
    seen: LeaseSpec, unchanged: float, free: bool
) -> None:
    assert is_free(seen, "a", unchanged, 15) is free


def test_taking_from_another_counts_a_transition_and_begins_a_reign() -> None:
    assert taken(THEIRS, "a", 15, NOW) == LeaseSpec(
        holder_identity="a",
        lease_duration_seconds=15,
        acquire_time=STAMP,
        renew_time=STAMP,
        lease_transitions=5,
    )


def test_renewing_moves_the_time_of_renewal_alone() -> None:
    assert taken(THEIRS, "b", 30, NOW) == THEIRS.replace(renew_time=STAMP)


def test_the_first_holder_is_no_transition_and_the_one_after_a_release_is() -> None:
    assert taken(LeaseSpec(), "a", 15, NOW).lease_transitions == 0
    assert taken(released(THEIRS, NOW), "a", 15, NOW).lease_transitions == 5


def test_a_duration_with_a_fraction_is_rounded_up_so_that_others_wait_long_enough() -> None:
    assert taken(LeaseSpec(), "a", 1.5, NOW).lease_duration_seconds == 2


def test_every_write_changes_the_lease_even_when_the_clock_stands() -> None:
    first = taken(THEIRS, "a", 15, NOW)
    assert taken(first, "a", 15, NOW) != first


def test_a_lease_without_a_class_is_read_and_what_is_none_is_refused() -> None:
    assert typed(Untyped({"spec": {"holderIdentity": "b"}})).spec == LeaseSpec(holder_identity="b")
    assert typed(Lease()) == Lease()
    with pytest.raises(msgspec.ValidationError):
        typed(Untyped({"spec": {"leaseDurationSeconds": "soon"}}))
