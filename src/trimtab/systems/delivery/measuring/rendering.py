"""Variables in queries: `{{ target }}` becomes the name of a workload, as it must be written where it stands.

Within quotes a value is escaped as PromQL wants it for those quotes; outside of them only what numbers, names and
durations are made of may be filled in, so that a value never becomes a piece of the query's grammar.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping

from trimtab.systems.delivery.measuring.contract import Target, Window

NAMES = ("name", "namespace", "target", "stable", "service", "interval", "window")
LONGEST = 16384
MOST_SIGNS = 1000


class RenderError(ValueError):
    """Why a query cannot be filled in."""


def values(
    target: Target,
    window: Window,
    interval: float,
    variables: Mapping[str, str] | None = None,
    *,
    workload: str | None = None,
) -> dict[str, str]:
    """What the variables are. `workload` stands for {{ target }}: the canary, unless it is named."""
    return {
        "name": target.name,
        "namespace": target.namespace,
        "target": target.canary if workload is None else workload,
        "stable": target.stable,
        "service": target.service,
        "interval": duration(interval),
        "window": duration((window.end - window.start).total_seconds()),
        **{f"variables.{name}": value for name, value in (variables or {}).items()},
    }


def duration(seconds: float) -> str:
    """As PromQL writes it, which knows no fractions; never shorter than its shortest."""
    milliseconds = max(1, math.ceil(seconds * 1000 - 1e-6))
    return f"{milliseconds // 1000}s" if milliseconds % 1000 == 0 else f"{milliseconds}ms"


def quoted(value: str) -> str:
    """A PromQL string."""
    return f'"{_escaped(value, chr(34))}"'


def used(query: str) -> frozenset[str]:
    """The variables in it."""
    return frozenset(name for name in (found[1].strip() for found in _VARIABLE.finditer(query)))


def rendered(query: str, known: Mapping[str, str]) -> str:
    """The query to ask. RenderError names what is wrong."""
    pieces: list[str] = []
    quote = ""
    place = 0
    for found in _VARIABLE.finditer(query):
        before = query[place : found.start()]
        quote = _quote_after(before, quote)
        name = found[1].strip()
        if name not in known:
            raise RenderError(_unknown(name, known))
        pieces += (before, _written(name, known[name], quote))
        place = found.end()
    pieces.append(query[place:])
    text = "".join(pieces)
    if len(text) > LONGEST:
        raise RenderError(f"with its variables filled in it is longer than {LONGEST} characters")
    return text


def problems(query: str, variables: Mapping[str, str] | None = None) -> list[str]:
    """Why it can never be asked, for admission: unknown variables, bad syntax, not a number in the end."""
    example = {name: "1m" if name in ("interval", "window") else "example" for name in NAMES}
    known = {**example, **{f"variables.{name}": value for name, value in (variables or {}).items()}}
    unknown = [_unknown(name, known) for name in sorted(used(query) - known.keys())]
    if unknown:
        return unknown
    try:
        text = rendered(query, known)
    except RenderError as error:
        return [str(error)]
    if sum(text.count(sign) for sign in "(+-*/%^") > MOST_SIGNS:  # the parser's time grows with their square
        return [f"it has more than {MOST_SIGNS} parentheses and operators"]
    import promql_parser  # a parser that only those carry who check a query

    try:
        tree = promql_parser.parse(text)
    except ValueError as error:
        return [f"it is no PromQL: {str(error).strip()[:300]}"]
    while isinstance(tree, promql_parser.ParenExpr):
        tree = tree.expr
    if isinstance(tree, promql_parser.MatrixSelector | promql_parser.SubqueryExpr):
        return ["it gives ranges of samples, and one number is wanted: use a function such as rate() or increase()"]
    if isinstance(tree, promql_parser.StringLiteral):
        return ["it gives a text, and one number is wanted"]
    return []


def _written(name: str, value: str, quote: str) -> str:
    if not quote:
        if not _PLAIN.fullmatch(value):
            raise RenderError(
                f"{{{{ {name} }}}} stands outside of quotes, where its value may hold letters, digits and _ : . , + - only"
            )
        return value
    if quote == "#":
        return " ".join(value.split())
    if quote == "`" and "`" in value:
        raise RenderError(f"{{{{ {name} }}}} stands within backquotes, and its value holds one")
    return value if quote == "`" else _escaped(value, quote)


def _escaped(value: str, quote: str) -> str:
    text = value.replace("\\", "\\\\").replace(quote, "\\" + quote)
    return "".join(_CONTROL.get(each) or (f"\\x{ord(each):02x}" if ord(each) < 32 else each) for each in text)


def _quote_after(text: str, quote: str) -> str:
    """Which quote is open at the end of a piece of a query: none, one of three kinds, or # for a comment."""
    place = 0
    while place < len(text):
        each = text[place]
        if not quote:
            quote = each if each in "\"'`#" else ""
        elif each == "\\" and quote in "\"'":
            place += 1
        elif each == ("\n" if quote == "#" else quote):
            quote = ""
        place += 1
    return quote


def _unknown(name: str, known: Mapping[str, str]) -> str:
    if name.startswith("variables."):
        return f"{{{{ {name[:80]} }}}} is not among the metric's variables"
    there = ", ".join((*NAMES, *sorted(each for each in known if each.startswith("variables.")), "variables.<name>"))
    return f"{{{{ {name[:80]} }}}} is no variable: there are {there}"


_VARIABLE = re.compile(r"\{\{([^{}]*)\}\}")
_PLAIN = re.compile(r"[A-Za-z0-9_:.,+\- ]*")
_CONTROL = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}
