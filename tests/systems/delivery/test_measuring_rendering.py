"""Variables in queries, and which queries can never be asked."""

from __future__ import annotations

import promql_parser
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.systems.delivery.measuring_kit import target_of, window
from trimtab.systems.delivery.measuring.rendering import (
    RenderError,
    duration,
    problems,
    quoted,
    rendered,
    used,
    values,
)

KNOWN = values(target_of("shop"), window(0, 90.5), 60.0, {"code": "5.."})


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ('up{a="{{ name }}",b="{{namespace}}"}', 'up{a="web",b="shop"}'),
        ('up{a="{{ target }}",b="{{ stable }}",c="{{ service }}"}', 'up{a="web-canary",b="web",c="web"}'),
        ("rate(x[{{ interval }}])", "rate(x[60s])"),
        ("rate(x[{{ window }}])", "rate(x[90500ms])"),
        ('x{code=~"{{ variables.code }}"}', 'x{code=~"5.."}'),
        ("x", "x"),
    ],
)
def test_variables_are_filled_in(query: str, expected: str) -> None:
    assert rendered(query, KNOWN) == expected


def test_the_same_query_asks_about_stable_when_it_is_the_target() -> None:
    known = values(target_of("shop"), window(0, 60), 60.0, workload="web")
    assert rendered('{{ target }}, "{{ stable }}"', known) == 'web, "web"'


def test_an_unknown_variable_is_named() -> None:
    with pytest.raises(RenderError, match=r"\{\{ tarket \}\} is no variable: there are name, namespace, target"):
        rendered('x{a="{{ tarket }}"}', KNOWN)
    with pytest.raises(RenderError, match=r"\{\{ variables.nobody \}\} is not among the metric's variables"):
        rendered('x{a="{{ variables.nobody }}"}', KNOWN)


@pytest.mark.parametrize(
    ("seconds", "expected"), [(60, "60s"), (0.5, "500ms"), (0, "1ms"), (1.0004, "1001ms"), (3600, "3600s")]
)
def test_durations_are_written_without_fractions(seconds: float, expected: str) -> None:
    assert duration(seconds) == expected


HOSTILE = 'a"} or vector(1) # \\'


@pytest.mark.parametrize("quote", ['"', "'"])
def test_a_value_never_leaves_its_quotes(quote: str) -> None:
    text = rendered(f"x{{a={quote}{{{{ variables.v }}}}{quote}}}", {"variables.v": HOSTILE + quote})
    tree = promql_parser.parse(text)
    assert isinstance(tree, promql_parser.VectorSelector)


def test_quotes_that_are_open_already_are_seen() -> None:
    query = """x{a="it's \\" {{ v }}", b='{{ v }}', c=`\\`, d="{{ v }}"}"""
    assert rendered(query, {"v": "\"'"}) == """x{a="it's \\" \\"'", b='"\\'', c=`\\`, d="\\"'"}"""


def test_a_value_outside_of_quotes_is_a_number_a_name_or_a_duration() -> None:
    assert rendered("x > {{ v }}", {"v": "1.5e-3"}) == "x > 1.5e-3"
    with pytest.raises(RenderError, match="outside of quotes"):
        rendered("x > {{ v }}", {"v": "1) or vector(1"})


def test_a_value_within_backquotes_holds_none() -> None:
    assert rendered("x{a=`{{ v }}`}", {"v": '\\"'}) == 'x{a=`\\"`}'
    with pytest.raises(RenderError, match="backquotes"):
        rendered("x{a=`{{ v }}`}", {"v": "`"})


def test_a_comment_stays_a_comment() -> None:
    assert rendered("x # it's {{ v }}\n + {{ w }}", {"v": "a\nb", "w": "1"}) == "x # it's a b\n + 1"


def test_what_grows_too_long_is_refused() -> None:
    with pytest.raises(RenderError, match="longer than"):
        rendered('"{{ v }}"' * 100, {"v": "x" * 1000})


@given(st.text(max_size=40).filter(lambda text: "\ufffd" not in text))
def test_what_is_quoted_is_one_string_of_promql_with_the_same_value(text: str) -> None:
    if any(0xD800 <= ord(each) <= 0xDFFF for each in text):
        return
    tree = promql_parser.parse(quoted(text))
    assert isinstance(tree, promql_parser.StringLiteral)


def test_variables_that_are_used_are_known() -> None:
    assert used('x{a="{{ target }}"}[{{interval}}] {{ variables.a }}') == {"target", "interval", "variables.a"}


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ('sum(rate(x{workload="{{ target }}"}[{{ window }}])) * 100', []),
        ('(x{code=~"{{ variables.code }}"})', []),
        ("vector(1)", []),
        ("1", []),
        ("{{ nobody }} + {{ nothing }}", ["{{ nobody }} is no variable", "{{ nothing }} is no variable"]),
        ('x{a="{{ variables.nobody }}"}', ["{{ variables.nobody }} is not among"]),
        ("sum(rate(x[1m])", ["it is no PromQL: "]),
        ("rate(x)", ["it is no PromQL: expected type"]),
        ('x{a=~"("}', ["it is no PromQL: "]),
        ("x[5m]", ["it gives ranges"]),
        ("(x[5m:1s])", ["it gives ranges"]),
        ('"text"', ["it gives a text"]),
        ("", ["it is no PromQL: "]),
    ],
)
def test_a_query_that_can_never_be_asked_is_found(query: str, expected: list[str]) -> None:
    found = problems(query, {"code": "5.."})
    assert len(found) == len(expected)
    assert all(text.startswith(start) for text, start in zip(found, expected, strict=True))


@given(st.text(max_size=200))
def test_any_text_is_a_query_or_has_a_problem(text: str) -> None:
    assert isinstance(problems(text), list)


def test_deep_queries_are_no_danger() -> None:
    assert problems("(" * 900 + "x" + ")" * 900) == []
    for query in ("(" * 2000 + "x" + ")" * 2000, "-" * 4000 + "x", "a+" * 2000 + "a"):
        assert problems(query) == ["it has more than 1000 parentheses and operators"]
