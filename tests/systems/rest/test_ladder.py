"""Fields that left the spec and are still there: which way comes next, and what was learned."""

from __future__ import annotations

from typing import Any

import pytest

from tests.systems.rest.syncing_kit import kind
from trimtab.systems.rest.model import Overlay, Writer
from trimtab.systems.rest.reconciling.ladder import Climbed, climbed
from trimtab.systems.rest.syncing.removing import RUNGS
from trimtab.systems.rest.syncing.settling import Settled

MODEL = kind(patch=Writer.NONE)
OMIT, NULL, EMPTY, DEFAULT = range(len(RUNGS))
NOTE, SIZE = "properties.note", "properties.size"
HAD: dict[str, Any] = {"properties": {"note": "ours", "size": 3, "mode": "fast"}}
SENT: dict[str, Any] = {"properties": {"mode": "fast"}}


def climb(*still: str, tried: dict[str, int] | None = None, verb: str = "update", model: Any = MODEL) -> Climbed:
    """After a write that left note and size out, and found some of it there."""
    return climbed(model, SENT, HAD, Settled(still_present=still), tried or {}, verb=verb)


def test_what_is_gone_asks_for_nothing() -> None:
    assert climb() == Climbed(applied=SENT)


@pytest.mark.parametrize(
    ("path", "tried", "verb", "following"),
    [
        (NOTE, OMIT, "update", NULL),
        (NOTE, NULL, "update", EMPTY),
        (NOTE, OMIT, "patch", EMPTY),
        (SIZE, OMIT, "update", NULL),
        (SIZE, NULL, "update", DEFAULT),
        (SIZE, OMIT, "patch", DEFAULT),
    ],
)
def test_what_is_still_there_is_removed_another_way(path: str, tried: int, verb: str, following: int) -> None:
    rungs = climb(path, tried={path: tried}, verb=verb)
    assert rungs.removals == {path: following}
    assert rungs.unfinished == (path,)
    assert rungs.lessons == ()


def test_what_is_to_be_removed_still_counts_as_applied() -> None:
    assert climb(NOTE).applied == {"properties": {"mode": "fast", "note": "ours"}}


@pytest.mark.parametrize(("path", "last"), [(NOTE, EMPTY), (SIZE, DEFAULT)])
def test_what_no_way_removes_is_the_services_from_then_on(path: str, last: int) -> None:
    rungs = climb(path, tried={path: last})
    assert rungs.applied == SENT
    assert (rungs.removals, rungs.unfinished) == ({}, ())
    [lesson] = rungs.lessons
    assert (lesson.path, lesson.behaviour) == (path, "CannotBeRemoved")
    assert lesson.evidence == f"still there after {', '.join(RUNGS[: last + 1])}"


def test_where_the_overlay_says_the_way_there_is_no_other() -> None:
    rungs = climb(NOTE, model=kind(patch=Writer.NONE, overlay=Overlay(removal={NOTE: "null"})))
    assert rungs.applied == SENT
    assert [lesson.behaviour for lesson in rungs.lessons] == ["CannotBeRemoved"]


@pytest.mark.parametrize(
    ("rung", "behaviour"), [(NULL, "RemovedByNull"), (EMPTY, "RemovedByEmpty"), (DEFAULT, "RemovedByDefault")]
)
def test_the_way_that_removed_a_field_is_learned(rung: int, behaviour: str) -> None:
    [lesson] = climb(tried={NOTE: rung}).lessons
    assert (lesson.path, lesson.behaviour) == (NOTE, behaviour)
    assert lesson.evidence == f"was still there after {', '.join(RUNGS[:rung])}, and gone after {RUNGS[rung]}"


@pytest.mark.parametrize("tried", [{NOTE: OMIT}, {"tags.team": NULL}], ids=["the first way", "another field"])
def test_nothing_is_learned_of(tried: dict[str, int]) -> None:
    assert climb(tried=tried).lessons == ()


def test_each_field_has_a_way_of_its_own() -> None:
    rungs = climb(NOTE, SIZE, tried={NOTE: NULL})
    assert rungs.removals == {NOTE: EMPTY, SIZE: NULL}
    assert rungs.applied == {"properties": {"mode": "fast", "note": "ours", "size": 3}}
