"""Random expressions, evaluated by us and by cel-expr-python (Google's C++ implementation): the values must agree.

Whether an expression fails must agree too; the words of a failure are cel-go's, so they are not compared.
"""

import math
import re

import pytest
from hypothesis import given, reject, settings
from hypothesis import strategies as st

from trimtab.model import cel
from trimtab.model.cel.errors import InstantiationError
from trimtab.model.cel.values import Duration, Timestamp, Uint

oracle = pytest.importorskip("cel_expr_python.cel")

DATA = {"i": 7, "s": "héllo", "l": [3, 1, 2], "m": {"a": 1, "b": 2}, "b": True, "d": 2.5, "t": ["x", "", "yz"]}
OURS = {
    "i": cel.INT,
    "s": cel.STRING,
    "l": cel.list_of(cel.INT),
    "m": cel.map_of(cel.STRING, cel.INT),
    "b": cel.BOOL,
    "d": cel.DOUBLE,
    "t": cel.list_of(cel.STRING),
}
FAILED = object()


@pytest.fixture(scope="module")
def env():
    kind = oracle.Type
    from cel_expr_python.ext import ext_optional, ext_strings

    return oracle.NewEnv(
        variables={
            "i": kind.INT,
            "s": kind.STRING,
            "l": kind.List(kind.INT),
            "m": kind.Map(kind.STRING, kind.INT),
            "b": kind.BOOL,
            "d": kind.DOUBLE,
            "t": kind.List(kind.STRING),
        },
        extensions=[ext_strings.ExtStrings(), ext_optional.ExtOptional()],
    )


# Each kind of value: what it may be at the leaves, and how it is made of others.
GRAMMAR = {
    "int": (
        ["i", "0", "1", "-1", "2", "5", "9223372036854775807", "-9223372036854775808", "l[0]", "m['a']"],
        ["({int} + {int})", "({int} - {int})", "({int} * {int})", "({int} / {int})", "({int} % {int})", "size({str})",
         "size({ints})", "{str}.indexOf({str})", "({bool} ? {int} : {int})", "m[{str}]", "l[{int}]", "int({double})",
         "int({str})", "optional.of({int}).optMap(v, v + 1).orValue(0)", "m[?{str}].orValue({int})"],
    ),
    "double": (
        ["d", "0.0", "1.5", "-2.25", "1e10"],
        ["({double} + {double})", "({double} * {double})", "({double} / {double})", "double({int})"],
    ),
    "str": (
        ["s", "''", "'a'", "'l'", "'Hé'", "t[0]", "'a,b'", "'12'"],
        ["({str} + {str})", "string({int})", "string({bool})", "{str}.substring({int})", "{str}.charAt({int})",
         "{str}.replace({str}, 'zz')", "{str}.lowerAscii()", "{str}.upperAscii()", "{str}.trim()", "{strs}.join({str})",
         "({bool} ? {str} : {str})"],
    ),
    "ints": (
        ["l", "[1, 2]"],
        ["[{int}, {int}]", "({ints} + {ints})", "{ints}.map(x, x + {int})", "{ints}.filter(x, x > {int})",
         "{ints}.map(x, x != {int}, x * 2)"],
    ),
    "strs": (["t", "['a']"], ["[{str}, {str}]", "{strs}.map(x, x + {str})", "{str}.split(',')"]),
    "bool": (
        ["b", "true", "false", "has(m.a)", "has(m.z)"],
        ["({int} == {int})", "({int} < {int})", "(dyn({int}) >= dyn({double}))", "({str} == {str})", "({str} < {str})",
         "({ints} == {ints})", "({bool} && {bool})", "({bool} || {bool})", "!{bool}", "({int} in {ints})",
         "({str} in m)",
         "{ints}.all(x, x > {int})", "{ints}.exists(x, x > {int})", "{ints}.exists_one(x, x > {int})",
         "{ints}.all(x, 6 / x > {int})", "{ints}.exists(x, 6 / x > {int})", "{str}.contains({str})",
         "{str}.startsWith({str})", "{str}.endsWith({str})", "{str}.matches('^[a-zé]+$')",
         "(dyn({int}) == dyn({double}))",
         "(dyn({str}) == dyn({ints}))"],
    ),
}  # fmt: skip
_HOLE = re.compile(r"\{(\w+)\}")


@st.composite
def expressions(draw, kind=None, depth=4):
    kind = kind or draw(st.sampled_from(sorted(GRAMMAR)))
    leaves, made = GRAMMAR[kind]
    template = draw(st.sampled_from(leaves if depth == 0 else made))
    return _HOLE.sub(lambda hole: draw(expressions(hole[1], draw(st.integers(0, depth - 1)))), template)


@settings(max_examples=300, deadline=None)
@given(source=expressions())
def test_random_expressions_have_the_value_that_google_s_implementation_gives(env, source):
    assert _same(_ours(source), _theirs(env, source))


@pytest.mark.parametrize(
    "source",
    [
        "timestamp('2024-02-29T12:30:15.5Z').getMonth()",
        "timestamp('2024-02-29T12:30:15Z').getDayOfYear()",
        "timestamp('2024-02-29T12:30:15Z').getHours('Europe/Berlin')",
        "string(timestamp('2024-02-29T12:30:15Z') + duration('36h'))",
        "string(duration('1h30m1s'))",
        "duration('1h30m').getMinutes()",
        "int(timestamp('2024-01-01T00:00:00Z'))",
        "{'a': [1, 2], 'b': []}",
        "[1u, 2u].map(x, x * 3u)",
        "b'abc\\x01' + b'd'",
        "bytes('é')",
        "type(1u) == uint",
        "-7 / 2 + -7 % 2",
        "1.0 / 0.0",
        "r'\\d' + '\\u00e9' + '''q''' + \"\\x41\"",
        "[[1], [2, 3]].map(x, x.map(y, y * y))",
        "dyn(1) == 1.0 && dyn(1u) == 1 && dyn([1]) != dyn('a')",
        "dyn(1) < dyn(2u) && dyn(2.5) > dyn(2) && dyn(-1) < dyn(1u)",
    ],
)
def test_values_of_every_type_agree(env, source):
    assert _same(_ours(source), _theirs(env, source))


def _ours(source):
    try:
        program = cel.compile(source, OURS, result=None)
    except InstantiationError:
        reject()  # cel-go refuses constants that fail even where they would not be reached
    try:
        return program.evaluate(DATA, cel.Budget())
    except cel.EvaluationError:
        return FAILED


def _theirs(env, source):
    value = env.compile(source).eval(data=DATA)
    if value.type() == oracle.Type.ERROR:
        return FAILED
    plain = value.plain_value()
    return bytes(plain) if isinstance(plain, bytearray) else plain


def _same(ours, theirs):
    if isinstance(ours, float) and isinstance(theirs, float) and math.isnan(ours):
        return math.isnan(theirs)
    if isinstance(ours, Uint):
        return int(ours) == theirs
    if isinstance(ours, list) and isinstance(theirs, list):
        return len(ours) == len(theirs) and all(_same(a, b) for a, b in zip(ours, theirs, strict=True))
    if isinstance(ours, Duration | Timestamp):
        return True  # compared through string(), which keeps nanoseconds
    return ours == theirs and (ours is FAILED or type(ours) is type(theirs))
