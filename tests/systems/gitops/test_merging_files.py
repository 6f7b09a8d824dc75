"""Files of documents, merged: who changed one, and who gets whose bytes."""

from __future__ import annotations

import pytest
from msgspec import UNSET

from trimtab.systems.gitops.merging import Fate, FileSides, fate

BOTH = {"to_git": True, "to_system": True}
DOWN = {"to_git": False, "to_system": True}
UP = {"to_git": True, "to_system": False}
NOTHING, AGREED, TO_GIT, TO_SYSTEM, CONFLICT = Fate


def sides(git: str, system: str, *, was: str = "1", **rest: object) -> FileSides:
    """Bytes are named by a letter or a digit; "" is none."""
    names = {"git": git and f"oid {git}", "system": system, "was_git": was and f"oid {was}", "was_system": was}
    read = git if was not in (git, system) else ""
    return FileSides(name="a", git_digest=read, **names, **rest)  # type: ignore[arg-type]


@pytest.mark.row(27)
@pytest.mark.parametrize(
    ("git", "system", "both", "down", "up"),
    [
        ("1", "1", NOTHING, NOTHING, NOTHING),
        ("2", "1", TO_SYSTEM, TO_SYSTEM, NOTHING),
        ("1", "2", TO_GIT, TO_SYSTEM, TO_GIT),
        ("2", "3", CONFLICT, TO_SYSTEM, TO_GIT),
        ("2", "2", AGREED, AGREED, AGREED),
        ("1", "", TO_GIT, TO_SYSTEM, TO_GIT),
        ("2", "", CONFLICT, TO_SYSTEM, TO_GIT),
        ("", "1", NOTHING, NOTHING, NOTHING),
        ("", "2", TO_GIT, NOTHING, TO_GIT),
        ("", "", AGREED, AGREED, AGREED),
    ],
)
def test_a_file_that_was_synced_goes_from_the_side_that_changed_it(
    git: str, system: str, both: Fate, down: Fate, up: Fate
) -> None:
    assert [fate(sides(git, system), "hold", **ways) for ways in (BOTH, DOWN, UP)] == [both, down, up]


@pytest.mark.row(27)
@pytest.mark.parametrize(
    ("git", "system", "both"),
    [
        ("1", "", TO_SYSTEM),
        ("", "1", TO_GIT),
        ("1", "1", AGREED),
        ("1", "2", CONFLICT),
        ("", "", NOTHING),
    ],
)
def test_a_file_that_was_not_synced_is_met(git: str, system: str, both: Fate) -> None:
    assert fate(sides(git, system, was=""), "hold", **BOTH) is both


def test_the_policy_decides_for_both() -> None:
    assert fate(sides("2", "3"), "git", **BOTH) is TO_SYSTEM
    assert fate(sides("2", "3"), "system", **BOTH) is TO_GIT


def test_a_sensitive_file_goes_to_git_in_no_way_and_is_not_shown() -> None:
    assert fate(sides("1", "2", sensitive=True), "hold", **BOTH) is NOTHING
    assert fate(sides("2", "3", sensitive=True), "system", **BOTH) is NOTHING
    assert sides("2", "", sensitive=True).conflict.git == "(not shown)"
    assert sides("2", "", sensitive=True).conflict.system is UNSET


def test_a_file_goes_with_its_name_unless_the_other_side_changed_it() -> None:
    dropped_in_system = {"in_system": False, "in_git": True}
    assert fate(sides("1", "", **dropped_in_system), "hold", named=False, **BOTH) is TO_GIT
    assert fate(sides("2", "", **dropped_in_system), "hold", named=False, **BOTH) is CONFLICT
    assert fate(sides("1", "", **dropped_in_system), "hold", named=True, **BOTH) is TO_SYSTEM
    dropped_in_git = {"in_system": True, "in_git": False}
    assert fate(sides("1", "1", **dropped_in_git), "hold", named=False, **BOTH) is NOTHING
    assert fate(sides("1", "2", **dropped_in_git), "hold", named=False, **BOTH) is CONFLICT
    assert fate(sides("1", "2", **dropped_in_git), "hold", named=False, **DOWN) is NOTHING
