"""What the compiler says of wrong expressions: the words and the places of cel-go, as Kubernetes 1.32 shows them."""

# ruff: noqa: E501
import contextlib
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trimtab.model import cel
from trimtab.model.cel.composition import Variables, VariablesType

SCHEMA = {
    "type": "object",
    "properties": {
        "s": {"type": "string"},
        "i": {"type": "integer"},
        "n": {"type": "number"},
        "b": {"type": "boolean"},
        "l": {"type": "array", "items": {"type": "string"}},
        "m": {"type": "object", "additionalProperties": {"type": "string"}},
        "o": {"type": "object", "properties": {"x": {"type": "integer"}}},
        "o2": {"type": "object", "properties": {"x": {"type": "integer"}}},
        "ts": {"type": "string", "format": "date-time"},
        "du": {"type": "string", "format": "duration"},
        "any": {"x-kubernetes-preserve-unknown-fields": True},
    },
}
TYPE = cel.type_of_schema(SCHEMA)
_PRIMARY = (
    "{'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}"
)
# The expression, then line, column (from 1) and message of each problem.
CASES = [
    ("self.foo == 1", (1, 5, "undefined field 'foo'")),
    ("foo", (1, 1, "undeclared reference to 'foo' (in container '')")),
    ("foo(self.s)", (1, 4, "undeclared reference to 'foo' (in container '')")),
    ("self.s.foo()", (1, 11, "undeclared reference to 'foo' (in container '')")),
    ("self.s + 1 == 'a'", (1, 8, "found no matching overload for '_+_' applied to '(string, int)'")),
    ("self.s.startsWith(1)", (1, 18, "found no matching overload for 'startsWith' applied to 'string.(int)'")),
    ("self.o == self.o2", (1, 8, "found no matching overload for '_==_' applied to '(selfType0.o, selfType0.o2)'")),
    ("has(self.foo)", (1, 4, "undefined field 'foo'")),
    ("has(self)", (1, 5, "invalid argument to has() macro")),
    ("self.l.all(1, true)", (1, 12, "argument must be a simple name")),
    ("self.l.map(1, true) == []", (1, 12, "argument is not an identifier")),
    ("self.l.all(x, x)", (1, 15, "expected type 'bool' but found 'string'")),
    ("self.l.filter(x, 1) == []", (1, 14, "found no matching overload for '_?_:_' applied to '(int, list(string), list(string))'")),
    ("self.l.exists_one(x, 'a')", (1, 18, "found no matching overload for '_?_:_' applied to '(string, int, int)'")),
    ("self.i.all(x, true)", (1, 5, "expression of type 'int' cannot be range of a comprehension (must be list, map, or dynamic)")),
    ("self.any == 1", (1, 5, "undefined field 'any'")),
    ("self.s == null", (1, 8, "found no matching overload for '_==_' applied to '(string, null)'")),
    ("self.i.foo == 1", (1, 7, "type 'int' does not support field selection")),
    ("timestamp('bad') == self.ts", (1, 11, "invalid timestamp argument")),
    ("duration('bad') == self.du", (1, 10, "invalid duration argument")),
    ("self.s.matches('[')", (1, 16, "invalid matches argument")),
    ("[1, 'a'] == []", (1, 5, "expected type 'int' but found 'string'")),
    ("{'a': 1, 'b': 'c'} == {}", (1, 15, "expected type 'int' but found 'string'")),
    ("'%d'.format([self.s]) == 'a'", (1, 18, "error during formatting: decimal clause can only be used on integers, was given string")),
    ("'%s'.format([]) == 'a'", (1, 12, "index 0 out of range")),
    ("'%s'.format(['a', 'b']) == 'a'", (1, 12, "too many arguments supplied to string.format (expected 1, got 2)")),
    ("true ? 1 : 'a'", (1, 6, "found no matching overload for '_?_:_' applied to '(bool, int, string)'")),
    ("self.b && self.s", (1, 15, "expected type 'bool' but found 'string'")),
    ("Foo{a: 1} == 1", (1, 4, "undeclared reference to 'Foo' (in container '')")),
    ("namespace == 'a'", (1, 1, "reserved identifier: namespace")),
    ("99999999999999999999 > 1", (1, 1, "invalid int literal")),
    ("self.l.all(x, y, true)", (1, 11, "undeclared reference to 'all' (in container '')"), (1, 12, "undeclared reference to 'x' (in container '')"), (1, 15, "undeclared reference to 'y' (in container '')")),
    ("self.i >", (1, 9, f"Syntax error: mismatched input '<EOF>' expecting {_PRIMARY}")),
    ("self.s == 'a' b", (1, 15, "Syntax error: extraneous input 'b' expecting <EOF>")),
    ("self.s ? true", (1, 14, "Syntax error: mismatched input '<EOF>' expecting ':'")),
    ("(1 == 1", (1, 8, "Syntax error: missing ')' at '<EOF>'")),
    ("self..s == 'a'", (1, 6, "Syntax error: no viable alternative at input '..'")),
    ("self.s == 'a' &&\n self.foo", (2, 6, "undefined field 'foo'")),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=[case[0] for case in CASES])
def test_a_wrong_expression_is_reported_as_cel_go_does(case):
    source, *expected = case
    with pytest.raises(cel.CelError) as raised:
        cel.compile(source, {"self": TYPE})
    assert [(i.line, i.column + 1, i.message) for i in raised.value.issues] == expected


def test_a_report_points_at_the_place():
    with pytest.raises(cel.CelError) as raised:
        cel.compile("self.s == 'é' && self.foo == 1", {"self": TYPE})
    assert raised.value.message == (
        "compilation failed: ERROR: <input>:1:22: undefined field 'foo'\n"
        " | self.s == 'é' && self.foo == 1\n"
        " | ...........\uff0e.........^"
    )


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("int('x') == 1", "type conversion error from 'string' to 'int'"),
        ("uint(-1) == 1u", "unsigned integer overflow"),
        ("self.s.find('(') == ''", "error parsing regexp: missing closing ): `(`"),
    ],
)
def test_constants_that_fail_are_found_at_compilation(source, reason):
    with pytest.raises(cel.CelError) as raised:
        cel.compile(source, {"self": TYPE})
    assert raised.value.message == f"program instantiation failed: {reason}"


def test_an_expression_of_another_type_is_refused():
    with pytest.raises(cel.WrongResult):
        cel.compile("self.s", {"self": TYPE})


BOMBS = [
    "(" * 50_000 + "1" + ")" * 50_000,
    "[" * 20_000,
    "-" * 90_000 + "1",
    "!" * 90_000 + "true",
    "1" + " + 1" * 20_000,
    "a" + ".b" * 30_000,
    "a" + "[0]" * 30_000,
    "[" + "[], " * 20_000 + "[]] == []",
    "{" + "'a': {}, " * 5_000 + "'a': {}} == {}",
    "true ? " * 20_000,
    "'" * 90_000,
    '"""' * 30_000,
    "@" * 90_000,
    "x" * 200_000,
    "self.s.matches('" + "(a*)*" * 10_000 + "')",
    "self.s.matches('(((a{100}){100}){100}){100}')",
    "1 == 1" + " || 1 == 1" * 9_000,
]


@pytest.mark.parametrize("source", BOMBS, ids=[source[:12] for source in BOMBS])
def test_a_bomb_in_the_source_ends_quickly(source):
    started = time.process_time()
    with contextlib.suppress(cel.CelError, cel.WrongResult):
        cel.compile(source, {"self": TYPE})
    assert time.process_time() - started < 3


def test_a_deep_expression_is_refused_by_its_depth():
    with pytest.raises(cel.CelError) as raised:
        cel.compile("(" * 200 + "true" + ")" * 200, {})
    assert "expression recursion limit exceeded" in str(raised.value)


@pytest.mark.parametrize(
    "source",
    [
        "self.all(a, self.all(b, self.all(c, self.all(d, a + b + c + d >= 0))))",
        "self.map(a, self.map(b, self.map(c, a * b * c))).size() > 0",
        "self.map(a, self.map(b, 'xy').join().replace('x', 'yyyyyyyyyyyyyyyy')).size() > 0",
        "self.all(a, self.all(b, self == self))",
    ],
)
def test_a_bomb_at_run_time_is_stopped_by_its_cost(source):
    kind = cel.list_of(cel.INT)
    program = cel.compile(source, {"self": kind})
    started = time.process_time()
    with pytest.raises(cel.CostExceeded, match="operation cancelled: actual cost limit exceeded"):
        program.evaluate({"self": list(range(5000))}, cel.Budget())
    assert time.process_time() - started < 5


_TWINS = "[1]" + ".map(x, [x, x])" * 40
_MAPS = "[1]" + ".map(x, {'a': x, 'b': x})" * 40


@pytest.mark.parametrize(
    "source",
    [
        f"{_TWINS} == {_TWINS}",
        f"{_MAPS} == {_MAPS}",
        f"{_TWINS} in [{_TWINS}]",
        f"sets.contains({_TWINS}, {_TWINS})",
        f"'%s'.format([{_TWINS}]) == 'a'",
        f"dyn({_TWINS}).indexOf(1) == 0",
        "self.exists_one(a, self.exists_one(b, false))",
        "self.filter(a, self.filter(b, false) == [1]) == [1]",
        "self.map(a, self.map(b, false, b).size()).size() > 0",
        "self.all(a, nested == other)",
        "self.all(a, (self + self).size() > 0)",
        "self.all(a, 'aaaaaaaaaa'.replace('a', long) != '')",
        "self.all(a, '%s'.format([nested]) != '')",
        "self.all(a, " + " && ".join(["true"] * 10_000) + ")",
    ],
    ids=lambda source: source[-30:],
)
def test_what_costs_nothing_in_cel_go_is_bounded_here(source):
    """What shares its parts is small to make and huge to look at; what is looked at in a loop is so again and again."""
    program = cel.compile(
        source, {"self": cel.list_of(cel.INT), "nested": cel.DYN, "other": cel.DYN, "long": cel.STRING}
    )
    numbers = list(range(50_000))
    bound = {
        "self": numbers,
        "nested": {"a": [*numbers, "b"]},
        "other": {"a": [*numbers, "b"]},
        "long": "b" * 1_000_000,
    }
    started = time.process_time()
    with pytest.raises(cel.CostExceeded, match="operation cancelled: actual cost limit exceeded"):
        program.evaluate(bound, cel.Budget())
    assert time.process_time() - started < 5


def test_sets_of_texts_are_compared_at_once():
    kind = cel.type_of_schema({"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}})
    program = cel.compile("self == oldSelf", {"self": kind, "oldSelf": kind})
    words = [f"w{number}" for number in range(20_000)]
    for other, same in ((words[::-1], True), ([*words[1:], "else"], False)):
        assert program.evaluate({"self": kind.bind(words), "oldSelf": kind.bind(other)}, cel.Budget()) is same


def test_values_within_values_end_in_an_error():
    programs: dict[str, cel.Program | str] = {"v0": cel.compile("[1]", {}, result=None)}
    types = {"v0": programs["v0"].type}
    for number in range(1, 600):
        known = {"variables": VariablesType(types)}
        program = programs[f"v{number}"] = cel.compile(f"[dyn(variables.v{number - 1})]", known, result=None)
        types[f"v{number}"] = program.type
    budget = cel.Budget()
    variables = Variables(programs, {}, budget)
    asked = cel.compile("variables.v599 == variables.v599", {"variables": VariablesType(types)})
    for name in programs:
        variables.find(name)
    with pytest.raises(cel.CostExceeded):
        asked.evaluate({"variables": variables}, budget)


def test_a_budget_is_spent_by_evaluations_that_fail_too():
    program = cel.compile("[1, 2, 3].all(x, x / (x - x) > self)", {"self": cel.INT})
    budget = cel.Budget()
    with pytest.raises(cel.EvaluationError, match="division by zero"):
        program.evaluate({"self": 1}, budget)
    assert budget.remaining < cel.PER_OBJECT


WORDS = [
    "self", "self.s", "self.i", "self.l", "self.m", "self.ts", "any", "any.s", "any.l", "x", "1", "2u", "1.5", "'a'", "b'a'", "true",
    "null", "[", "]", "{", "}", "(", ")", ".", ",", "?", ":", "+", "-", "*", "/", "%", "!", "==", "<", "&&", "||", "in", ".?", "[?",
    "[1, 2]", "{'a': 1}", ".all(x, ", ".map(x, ", ".exists(x, ", ".optMap(x, ", "has(", "optional.of(", "type(", "size(", "int(",
    ".split(", ".format(", ".join(", ".sum()", ".matches(", "quantity(", "ip(", ".value()", ".orValue(", "dyn(", "duration('1s')",
]  # fmt: skip
VALUE = {"s": "abc", "i": 3, "l": ["a", "b"], "m": {"a": "b"}, "ts": "2024-01-01T00:00:00Z"}


@settings(max_examples=400, deadline=None)
@given(words=st.lists(st.sampled_from(WORDS), min_size=1, max_size=9))
def test_any_text_compiles_or_is_refused_and_any_program_ends_in_a_value_or_an_error(words):
    with contextlib.suppress(cel.CelError, cel.EvaluationError, cel.CostExceeded):
        program = cel.compile("".join(words), {"self": TYPE, "any": cel.DYN}, result=None)
        program.estimate(TYPE)
        program.evaluate({"self": TYPE.bind(VALUE), "any": VALUE}, cel.Budget())


@pytest.mark.parametrize(
    "source",
    [
        "any.f + 5 == 6",
        "any.s - 5 == 1",
        "any.s < 'b' && any.f < 'b'",
        "any.s.startsWith('a') && any.f.startsWith('a')",
    ],
)
def test_a_dynamic_value_of_the_wrong_type_has_no_overload(source):
    program = cel.compile(source, {"any": cel.DYN})
    with pytest.raises(cel.EvaluationError, match="no such overload"):
        program.evaluate({"any": {"s": "abc", "f": 1.5}}, cel.Budget())


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("''.lastIndexOf(s)", "index out of range: -1"),
        ("cidr('10.0.0.0/8').containsIP(s)", "no such overload"),
        ("quantity(s)", "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"),
        ("quantity('9k' + '5')", "unable to parse quantity's suffix"),
        ("quantity('i')", "unable to parse quantity's suffix"),
        ("quantity('Ei')", "unable to parse numeric part of quantity"),
        ("quantity('1000m').asInteger()", "cannot convert value to integer"),
    ],
)
def test_an_evaluation_fails_with_the_words_of_the_real_server(source, reason):
    program = cel.compile(source, {"s": cel.STRING}, result=None)
    with pytest.raises(cel.EvaluationError) as raised:
        program.evaluate({"s": "90s"}, cel.Budget())
    assert str(raised.value) == reason


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("string(1e10 - 2.25)", "9.99999999775e+09"),
        ("string(999999.75)", "999999.75"),
        ("'%.2f'.format([-0.0])", "0.00"),
        ("'%.2f'.format([-0.001])", "-0.00"),
    ],
)
def test_a_number_is_written_as_the_real_server_writes_it(source, text):
    assert cel.compile(source, {}, result=None).evaluate({}, cel.Budget()) == text


@pytest.mark.parametrize(
    ("source", "value"),
    [
        ("isQuantity('Gi') && isQuantity('m') && isQuantity('-') && isQuantity('.') && isQuantity('.e3')", True),
        ("quantity('+Gi') == quantity('0') && quantity('k').asInteger() == 0", True),
        ("isQuantity('Pi') || isQuantity('ii') || isQuantity('+-5')", False),
        ("quantity('1000m').isInteger() || quantity('1.0').isInteger() || quantity('8Ei').isInteger()", False),
        ("quantity('1000m').add(quantity('2')).isInteger()", False),
        ("quantity('9E').add(quantity('9E')).isInteger()", False),
        ("quantity('7E').add(1).asInteger()", 7_000_000_000_000_000_001),
        ("quantity('1e30').isGreaterThan(quantity('1e29'))", True),
        ("quantity('9Ei').compareTo(quantity('8Ei'))", 0),
        ("quantity('0.3').asApproximateFloat()", 0.30000000000000004),
        ("quantity('1e99').asApproximateFloat()", 1.0000000000000001e99),
        ("quantity('-1e309').asApproximateFloat()", float("-inf")),
    ],
)
def test_a_quantity_is_what_the_real_server_takes_it_for(source, value):
    assert cel.compile(source, {}, result=None).evaluate({}, cel.Budget()) == value


@pytest.mark.parametrize(("source", "cost"), [("-1", 0), ("--1", 0), ("---1", 1)])
def test_two_minuses_before_a_number_are_none(source, cost):
    budget = cel.Budget(total=10)
    cel.compile(source, {}, result=None).evaluate({}, budget)
    assert 10 - budget.remaining == cost
