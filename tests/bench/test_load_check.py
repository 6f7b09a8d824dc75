"""The judge of the load finds what it is there to find: events that were lost, repeated, out of order, or told wrongly."""

from __future__ import annotations

import sys
from array import array
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "bench" / "peers"))

from load_check import Log, Row, unacknowledged
from load_watchers import TYPES, Segment, Watched
from load_writers import hashed

LOG = [
    Row(1, "a", "x", False, "1"),
    Row(2, "a", "y", False, "1"),
    Row(3, "b", "x", False, "1"),
    Row(4, "a", "x", False, "2"),
    Row(5, "a", "y", True, ""),
]
ALL_OF_A = [("ADDED", 1, "x"), ("ADDED", 2, "y"), ("MODIFIED", 4, "x"), ("DELETED", 5, "y")]


def story(
    events: list[tuple[str, int, str]], *, part: str = "", since: int = 0, listed: dict[int, int] | None = None
) -> Watched:
    segment = Segment(since, listed, array("q"), array("b"), array("Q"))
    for kind, revision, name in events:
        segment.revisions.append(revision)
        segment.kinds.append(TYPES[kind])
        segment.places.append(hashed("a", name))
    return Watched("a", part, False, [segment])


def faults(watched: Watched) -> list[str]:
    return Log(LOG, [("a", ""), ("a", "1"), ("a", "2")]).faults(watched)


def test_a_whole_story_has_no_fault() -> None:
    assert faults(story(ALL_OF_A)) == []


def test_an_object_that_leaves_a_selector_is_deleted_there_and_added_to_the_other() -> None:
    assert (
        faults(story([("ADDED", 1, "x"), ("ADDED", 2, "y"), ("DELETED", 4, "x"), ("DELETED", 5, "y")], part="1")) == []
    )
    assert faults(story([("ADDED", 4, "x")], part="2")) == []
    assert faults(story([("MODIFIED", 4, "x")], part="2")) == ["events of the wrong type"]


@pytest.mark.parametrize(
    ("events", "said"),
    [
        (ALL_OF_A[:-1], "the last 1 events never came"),
        ([ALL_OF_A[0], *ALL_OF_A[2:]], "1 events lost, the first 2"),
        ([ALL_OF_A[0], *ALL_OF_A], "1 repeated"),
        ([ALL_OF_A[1], ALL_OF_A[0], *ALL_OF_A[2:]], "events out of order"),
        ([*ALL_OF_A, ("ADDED", 9, "z")], "1 that are not in the log"),
        ([("MODIFIED", 1, "x"), *ALL_OF_A[1:]], "events of the wrong type"),
        ([("ADDED", 1, "z"), *ALL_OF_A[1:]], "events of the wrong object"),
    ],
)
def test_what_is_wrong_is_said(events: list[tuple[str, int, str]], said: str) -> None:
    assert said in faults(story(events))[0]


def test_a_list_must_be_the_state_at_its_revision() -> None:
    assert faults(story(ALL_OF_A[2:], since=2, listed={hashed("a", "x"): 1, hashed("a", "y"): 2})) == []
    assert "not the state" in faults(story(ALL_OF_A[2:], since=2, listed={hashed("a", "x"): 1}))[0]


def test_an_acknowledged_write_must_be_in_the_log() -> None:
    assert unacknowledged(LOG, {4: hashed("a", "x")}) == 0
    assert unacknowledged(LOG, {4: hashed("a", "y"), 7: hashed("a", "x")}) == 2


def test_every_place_of_the_load_has_a_hash_of_its_own() -> None:
    assert len({hashed(f"n-{number % 100}", f"o-{number}") for number in range(100_000)}) == 100_000
