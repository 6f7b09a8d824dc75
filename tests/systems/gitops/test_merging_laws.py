"""The laws of the merge, for any documents."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trimtab.systems.gitops.merging import Base, Policy, impose, merge, normal, same

WORDS = st.sampled_from(["a", "b", "c", "d"])
SCALARS = st.one_of(st.booleans(), st.integers(0, 2), st.sampled_from([0.5, 1.0]), st.sampled_from(["", "x", "1"]))
NAMED = st.lists(
    st.fixed_dictionaries({"name": WORDS}, optional={"v": SCALARS, "w": SCALARS}),
    max_size=4,
    unique_by=lambda i: i["name"],
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(st.dictionaries(WORDS, inner, max_size=3), st.lists(inner, max_size=3), NAMED),
    max_leaves=8,
)


def _document(spec: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Thing", "metadata": {"name": "thing", "namespace": "shop"}, "spec": spec}


def _edited(draw: st.DrawFn, value: Any) -> Any:
    """A value with small changes: most of it stays, so that two edits of one base often do not meet."""
    if draw(st.integers(0, 5)) == 0:
        return draw(VALUES)
    if isinstance(value, dict):
        found = {
            name: _edited(draw, inner) for name, inner in value.items() if name == "name" or draw(st.integers(0, 5))
        }
        if "name" in value:
            found["name"] = value["name"]
        else:
            found.update(draw(st.dictionaries(WORDS, SCALARS, max_size=1)))
        return found
    if isinstance(value, list):
        found = [_edited(draw, inner) for inner in value if draw(st.integers(0, 5))]
        if draw(st.integers(0, 8)) == 0:
            found = draw(st.permutations(found))
        if draw(st.booleans()):
            found.insert(draw(st.integers(0, len(found))), {"name": draw(st.sampled_from(["m", "n", "o", "p"]))})
        return found
    return value


@st.composite
def _three(draw: st.DrawFn) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    """A base and two edits of it."""
    spec = draw(st.dictionaries(WORDS, st.one_of(NAMED, VALUES), min_size=1, max_size=4))
    return _document(spec), _document(_edited(draw, spec)), _document(_edited(draw, spec))


THREE = _three()
DOCUMENTS = st.dictionaries(WORDS, VALUES, max_size=4).map(_document)
Three = tuple[dict[str, Any], dict[str, Any], dict[str, Any]]
POLICIES: list[Policy] = ["git", "system"]

laws = settings(max_examples=40, deadline=None)


@laws
@given(THREE)
def test_what_only_git_changed_goes_to_the_system(three: Three) -> None:
    base, git, _ = three
    found = merge(Base.of(base, base), git, base)
    assert not found.conflicts
    assert same(found.git, git)
    assert same(found.system, git)
    assert not found.to_git
    assert found.to_system == (not same(base, git))


@laws
@given(THREE)
def test_what_only_the_system_changed_goes_to_git(three: Three) -> None:
    base, live, _ = three
    found = merge(Base.of(base, base), base, live)
    assert not found.conflicts
    assert same(found.git, live)
    assert same(found.system, live)
    assert not found.to_system


@laws
@given(THREE)
def test_equal_changes_agree(three: Three) -> None:
    base, both, _ = three
    found = merge(Base.of(base, base), both, both)
    assert not found.conflicts
    assert same(found.git, both)
    assert not found.to_git
    assert not found.to_system


@laws
@given(THREE)
def test_a_merge_without_conflicts_does_not_care_which_side_is_which(three: Three) -> None:
    base, one, other = three
    found, turned = merge(Base.of(base, base), one, other), merge(Base.of(base, base), other, one)
    assert len(found.conflicts) == len(turned.conflicts)
    assert sorted(c.path for c in found.conflicts) == sorted(c.path for c in turned.conflicts)
    if not found.conflicts:
        assert same(found.git, found.system)
        assert same(found.git, turned.git)


@laws
@given(THREE, st.sampled_from(POLICIES))
def test_a_policy_leaves_no_conflict_and_both_sides_alike(three: Three, policy: Policy) -> None:
    base, git, live = three
    found = merge(Base.of(base, base), git, live, policy=policy)
    assert not found.conflicts
    assert same(found.git, found.system)
    assert len(found.resolved) == len(merge(Base.of(base, base), git, live).conflicts)


@laws
@given(THREE, THREE, st.sampled_from(POLICIES))
def test_after_a_sync_there_is_nothing_to_do(ours: Three, theirs: Three, policy: Policy) -> None:
    found = merge(Base.of(ours[0], theirs[0]), ours[1], theirs[1], policy=policy)
    again = merge(Base.of(found.git, found.system), found.git, found.system)
    assert (again.conflicts, again.to_git, again.to_system) == ((), False, False)


@laws
@given(THREE)
def test_two_documents_that_meet_first_leave_nothing_to_do_either(three: Three) -> None:
    _, git, live = three
    found = merge(None, git, live, policy="git")
    assert not found.to_git
    again = merge(Base.of(found.git, found.system), git, found.system)
    assert (again.conflicts, again.to_git, again.to_system) == ((), False, False)


@laws
@given(THREE, DOCUMENTS)
def test_what_is_imposed_needs_no_second_time(three: Three, base_live: dict[str, Any]) -> None:
    base_git, git, live = three
    found = impose(Base.of(base_git, base_live), git, live)
    assert found.system is not None
    assert not impose(Base.of(git, found.system), git, found.system).to_system


@laws
@given(DOCUMENTS)
def test_a_normal_document_is_normal(document: dict[str, Any]) -> None:
    assert normal(normal(document)) == normal(document)


@pytest.mark.parametrize(
    ("one", "other", "alike"), [(1, 1.0, True), (True, 1, False), (0, False, False), ("1", 1, False)]
)
def test_numbers_are_compared_as_numbers_and_truth_is_none(one: Any, other: Any, alike: bool) -> None:
    assert same({"a": [one]}, {"a": [other]}) is alike
