"""Random expressions in the environment of kube-apiserver itself: values, failures, refusals and costs must agree."""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, reject, settings
from hypothesis import strategies as st

from tests.oracles.asking import Oracle
from trimtab.model import cel
from trimtab.model.cel.values import Uint

pytestmark = pytest.mark.slow

DATA = {"i": 7, "s": "héllo", "l": [3, 1, 2], "m": {"a": 1, "b": 2}, "b": True, "d": 2.5, "t": ["x", "", "yz"]}
TYPES = {
    "i": cel.INT,
    "s": cel.STRING,
    "l": cel.list_of(cel.INT),
    "m": cel.map_of(cel.STRING, cel.INT),
    "b": cel.BOOL,
    "d": cel.DOUBLE,
    "t": cel.list_of(cel.STRING),
}

# Each kind of value: what it may be at the leaves, and how it is made of others.
GRAMMAR = {
    "int": (
        ["i", "0", "1", "-1", "2", "5", "9223372036854775807", "l[0]", "m['a']", "m.b"],
        ["({int} + {int})", "({int} - {int})", "({int} * {int})", "({int} / {int})", "({int} % {int})", "-{int}",
         "size({str})", "{ints}.size()", "{str}.indexOf({str})", "{str}.lastIndexOf({str})",
         "({bool} ? {int} : {int})", "m[{str}]", "{ints}[{int}]", "int({double})", "int({str})", "{ints}.sum()",
         "{ints}.min()", "{ints}.max()", "{ints}.indexOf({int})", "{ints}.lastIndexOf({int})",
         "m[?{str}].orValue({int})", "optional.of({int}).optMap(v, v + 1).orValue(0)", "quantity({str}).asInteger()",
         "duration({str}).getSeconds()", "timestamp({str}).getFullYear()", "math.greatest({int}, {int})"],
    ),
    "double": (
        ["d", "0.0", "1.5", "-2.25", "1e10"],
        ["({double} + {double})", "({double} - {double})", "({double} * {double})", "({double} / {double})",
         "double({int})", "double({str})"],
    ),
    "str": (
        ["s", "''", "'a'", "'l'", "'Hé'", "t[0]", "'a,b'", "'12'", "'1Gi'", "'90s'", "'2024-02-29T12:30:15Z'",
         "'https://a.b:80/c?d=e'", "'10.0.0.1'"],
        ["({str} + {str})", "string({int})", "string({bool})", "string({double})", "{str}.substring({int})",
         "{str}.substring({int}, {int})", "{str}.charAt({int})", "{str}.replace({str}, {str})",
         "{str}.replace({str}, 'zz', {int})", "{str}.lowerAscii()", "{str}.upperAscii()", "{str}.trim()",
         "{strs}.join({str})", "{strs}.join()", "({bool} ? {str} : {str})", "{str}.find('[a-l]+')",
         "'%s-%d-%.2f'.format([{str}, {int}, {double}])", "'%s'.format([{ints}])", "'%x'.format([{int}])",
         "strings.quote({str})", "url({str}).getHost()", "{strs}[{int}]", "{strs}.min()"],
    ),
    "ints": (
        ["l", "[1, 2]"],
        ["[{int}, {int}]", "({ints} + {ints})", "{ints}.map(x, x + {int})", "{ints}.filter(x, x > {int})",
         "{ints}.map(x, x != {int}, x * 2)", "[?m[?{str}]]"],
    ),
    "strs": (
        ["t", "['a']"],
        ["[{str}, {str}]", "{strs}.map(x, x + {str})", "{str}.split({str})", "{str}.split(',', {int})",
         "{str}.findAll('[a-l]')", "m.map(k, k == {str}, k)"],
    ),
    "bool": (
        ["b", "true", "false", "has(m.a)", "has(m.z)"],
        ["({int} == {int})", "({int} < {int})", "({int} >= {int})", "(dyn({int}) >= dyn({double}))", "({str} == {str})",
         "({str} < {str})", "({ints} == {ints})", "({bool} && {bool})", "({bool} || {bool})", "!{bool}",
         "({int} in {ints})", "({str} in {strs})", "({str} in m)", "{ints}.all(x, x > {int})",
         "{ints}.exists(x, x > {int})", "{ints}.exists_one(x, x > {int})", "{ints}.all(x, 6 / x > {int})",
         "{ints}.exists(x, 6 / x > {int})", "{str}.contains({str})", "{str}.startsWith({str})",
         "{str}.endsWith({str})", "{str}.matches('^[a-zé]+$')", "{str}.matches({str})", "(dyn({int}) == dyn({double}))",
         "(dyn({str}) == dyn({ints}))", "{ints}.isSorted()", "{strs}.isSorted()", "isQuantity({str})", "isURL({str})",
         "isIP({str})", "quantity({str}).isGreaterThan(quantity({str}))", "sets.contains({ints}, {ints})",
         "sets.intersects({ints}, {ints})", "sets.equivalent({strs}, {strs})", "(duration({str}) < duration({str}))",
         "cidr('10.0.0.0/8').containsIP({str})", "format.named({str}).hasValue()"],
    ),
}  # fmt: skip
ABSORBING = re.compile(r"&&|\|\||\.all\(|\.exists\(")
FAR = re.compile(r"[eE][+-]?[0-9]{4}")
_HOLE = re.compile(r"\{(\w+)\}")


@st.composite
def expressions(draw: Any, kind: str | None = None, depth: int = 3) -> str:
    kind = kind or draw(st.sampled_from(sorted(GRAMMAR)))
    leaves, made = GRAMMAR[kind]
    template = draw(st.sampled_from(leaves if depth == 0 else made))
    return _HOLE.sub(lambda hole: draw(expressions(hole[1], draw(st.integers(0, depth - 1)))), template)


@pytest.fixture(scope="module")
def oracle(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Oracle]:
    with Oracle("cel", tmp_path_factory.mktemp("oracle"), DATA) as made:
        yield made


@settings(max_examples=1500, deadline=None, derandomize=True)
@given(source=expressions())
def test_an_expression_means_and_costs_what_it_does_on_the_real_server(oracle: Oracle, source: str) -> None:
    if ".format(" in source and "[?" in source:
        reject()  # a format is refused there for what is only sometimes in a list
    ours, theirs = answered(source), oracle.ask_plainly(source)
    if "failed" in theirs or ABSORBING.search(source):
        ours["cost"] = theirs["cost"] = 0  # what a failure cost is counted in another way
    if "refused" in theirs and ".optMap(" in source:  # that macro makes two of what it is called on
        assert set(ours["refused"].splitlines()) == set(theirs["refused"].splitlines())
        return
    assert ours == theirs


QUANTITY = st.one_of(
    st.text("0159.+-eEinumkKMGTPx", max_size=6),
    st.from_regex(r"[+-]?[0-9]{0,20}(\.[0-9]{0,12})?(e-?[0-9]{1,2}|[KMGTPE]i?|[numk])?", fullmatch=True),
)
USES = ("isQuantity('{}')", "quantity('{}').asInteger()", "quantity('{}').asApproximateFloat()", "sign(quantity('{}'))",
        "quantity('{}').add(quantity('{}')).isInteger()", "quantity('{}').sub(quantity('{}')).asApproximateFloat()",
        "quantity('{}').sub(3).isInteger()", "quantity('{}').compareTo(quantity('{}'))")  # fmt: skip


@settings(max_examples=2000, deadline=None, derandomize=True)
@given(use=st.sampled_from(USES), one=QUANTITY, other=QUANTITY)
def test_a_quantity_is_what_it_is_on_the_real_server(oracle: Oracle, use: str, one: str, other: str) -> None:
    if FAR.search(one) or FAR.search(other):
        reject()  # here an exponent has three digits at most
    source = use.format(one, other)
    ours, theirs = answered(source), oracle.ask_plainly(source)
    if "failed" in theirs:
        ours["cost"] = theirs["cost"] = 0
    assert ours == theirs


def answered(source: str) -> dict[str, Any]:
    """Our answer in the words of the oracle."""
    budget = cel.Budget()
    before = budget.remaining
    try:
        program = cel.compile(source, TYPES, result=None)
    except cel.CelError as error:
        return {"refused": error.report, "value": None, "cost": 0}
    try:
        value = plain(program.evaluate(DATA, budget))
    except (cel.EvaluationError, cel.CostExceeded) as error:
        return {"failed": str(error), "value": None, "cost": before - budget.remaining}
    return {"value": value, "cost": before - budget.remaining}


def plain(value: Any) -> Any:
    if isinstance(value, Uint):
        return {"uint": str(int(value))}
    if isinstance(value, bool | str):
        return value
    if isinstance(value, int):
        return {"int": str(value)}
    if isinstance(value, float):
        if value != value:
            return {"double": "nan"}
        return {"double": struct.pack(">d", value).hex()}
    return [plain(item) for item in value]
