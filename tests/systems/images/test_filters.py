"""Which tags filters select, what they refuse at once, and what they cannot decide."""

from __future__ import annotations

import pytest

from trimtab.systems.images.filters import Filters, InvalidFilter
from trimtab.systems.images.kinds import Filter, MatchCondition
from trimtab.systems.images.registry.outcomes import FilterFailed


def of(*expressions: str, repository: str = "*", operator: str = "And") -> Filter:
    conditions = tuple(MatchCondition(name=f"c{n}", expression=text) for n, text in enumerate(expressions))
    return Filter(repository=repository, match_conditions=conditions, match_operator=operator)  # type: ignore[arg-type]


FAILS = "int(tag) > 0"  # on a tag that is no number


def test_without_filters_every_tag_is_selected() -> None:
    assert Filters.compile(())("team/app", "latest")


@pytest.mark.parametrize(
    ("pattern", "repository", "fits"),
    [
        ("*", "app", True), ("team/*", "team/app", True), ("team/*", "team/a/b", True), ("team/*", "team", False),
        ("team/*", "teams/app", False), ("team/app", "team/app", True), ("team/app", "team/app2", False),
    ],
)  # fmt: skip
def test_a_filter_is_for_the_repositories_that_its_pattern_names(pattern: str, repository: str, fits: bool) -> None:
    nothing_there = Filters.compile([of("false", repository=pattern)])
    assert nothing_there(repository, "1") is not fits


@pytest.mark.parametrize("pattern", ["te*m", "team*", "*/app", "**"])
def test_a_star_elsewhere_is_refused(pattern: str) -> None:
    with pytest.raises(InvalidFilter) as refused:
        Filters.compile([of("true", repository=pattern)])
    assert refused.value.path == "spec.filters[0].repository"


def test_every_filter_of_a_repository_must_take_the_tag() -> None:
    filters = Filters.compile([of("tag.startsWith('v')"), of("tag != 'v0'", repository="team/*")])
    assert [filters("team/app", tag) for tag in ("v0", "v1", "1")] == [False, True, False]
    assert filters("other", "v0")


def test_conditions_see_tag_and_repository() -> None:
    filters = Filters.compile([of("tag.matches('^v[0-9]+$') && repository.endsWith('/app')")])
    assert filters("team/app", "v12")
    assert not filters("team/lib", "v12")


@pytest.mark.parametrize(
    ("operator", "expressions", "taken"),
    [
        ("And", ["true", "true"], True), ("And", ["true", "false"], False), ("And", [FAILS, "false"], False),
        ("Or", ["false", "true"], True), ("Or", ["false", "false"], False), ("Or", [FAILS, "true"], True),
    ],
)  # fmt: skip
def test_conditions_are_joined_as_cel_joins(operator: str, expressions: list[str], taken: bool) -> None:
    assert Filters.compile([of(*expressions, operator=operator)])("app", "latest") is taken


@pytest.mark.parametrize(("operator", "other"), [("And", "true"), ("Or", "false")])
def test_an_error_that_nothing_outweighs_names_its_condition(operator: str, other: str) -> None:
    filters = Filters.compile([of(other, FAILS, operator=operator)])
    with pytest.raises(FilterFailed, match="c1"):
        filters("app", "latest")
    assert filters("app", "7") is True  # only that tag is not decided


def test_a_filter_that_refuses_outweighs_another_that_fails() -> None:
    assert Filters.compile([of(FAILS), of("false")])("app", "latest") is False


def test_what_costs_too_much_fails_for_the_tag() -> None:
    long = "tag.split('')"
    costly = f"{long}.all(a, {long}.all(b, {long}.all(c, a + b + c != 'zzz')))"
    with pytest.raises(FilterFailed, match="cost"):
        Filters.compile([of(costly)])("app", "x" * 128)


def test_many_conditions_together_may_not_cost_too_much() -> None:
    dear = "tag.split('').all(a, tag.split('').all(b, a + b != 'zz'))"
    with pytest.raises(FilterFailed, match="cost"):
        Filters.compile([of(*[dear] * 32)] * 64)("app", "x" * 40)


@pytest.mark.parametrize(
    ("expression", "said"),
    [
        ("tag.startsWith(", "Syntax error"), ("image == 'x'", "undeclared reference"), ("tag.size()", "bool"),
        ("tag.matches('[')", "matches"), ("'yes'", "bool"),
    ],
)  # fmt: skip
def test_an_expression_that_cannot_be_used_is_refused_with_its_place(expression: str, said: str) -> None:
    with pytest.raises(InvalidFilter, match=said) as refused:
        Filters.compile([of("true", expression)])
    assert refused.value.path == "spec.filters[0].matchConditions[1].expression"
    assert refused.value.message in str(refused.value)
