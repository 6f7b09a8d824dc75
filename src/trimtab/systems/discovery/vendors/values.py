"""From what a device said to a value: the entry's regex, then its CEL expression, then what is safe to keep.

Everything here is foreign twice: the text comes from a device, the expressions from a user. RE2 runs in linear time, CEL
has a budget, and what comes out is short and printable.
"""

from __future__ import annotations

import functools
from typing import Any

import re2

from trimtab.model import cel
from trimtab.systems.discovery.kinds import GnmiPath, NetconfPath, SnmpOid, SshCommand

Entry = GnmiPath | NetconfPath | SshCommand | SnmpOid

LONGEST = 512
"""Characters of a value."""
LONGEST_TEXT = 65536
"""Characters that a regex looks at."""
LONGEST_VARIABLE = 4096
"""Characters of CEL's `value`."""
REMEMBERED_TEXT = 512
"""Characters of a text that is worth to be remembered."""
COST = 100_000
"""What one evaluation may cost, as Kubernetes counts."""
MEMORY = 1 << 20
"""Bytes that RE2 may use for one expression."""


class BadExpression(ValueError):  # noqa: N818 - it reads as what it is
    """A regex or a CEL expression that cannot be used. The message says why."""


class NotRead(Exception):  # noqa: N818 - it reads as what happened
    """The expression failed on this text. The message does not contain the text."""


def read(entry: Entry, text: str) -> tuple[str, bool]:
    """The value that the entry finds in what the device said, and whether its regex found something there.

    Without a match of the regex the text stays. A match gives its first group that took part, all of the match when there
    are no groups, and nothing when none took part: a regex that ends in `|\\z` gives nothing rather than the text. NotRead
    when the transform fails.
    """
    text, found = plain(text), True
    if isinstance(entry.regex, str):
        text, found = (_cut_again if len(text) <= REMEMBERED_TEXT else _cut)(entry.regex, text)
    if isinstance(entry.transform, str):
        text = _transformed(entry.transform, text)
    return printable(text), found


def printable(text: str) -> str:
    """One line without control characters, of bounded length."""
    text = text[: LONGEST * 8].strip()
    if not text.isprintable():
        text = "".join([char if char.isprintable() else " " if char.isspace() else "" for char in text]).strip()
    return text[:LONGEST].rstrip()


def plain(text: str) -> str:
    """What RE2 can search: of bounded length, without the halves of characters that UTF-8 does not know."""
    text = text[:LONGEST_TEXT]
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


@functools.lru_cache(maxsize=4096)
def pattern(source: str) -> Any:
    """A compiled RE2 expression. BadExpression."""
    options = re2.Options()
    options.log_errors = False
    options.max_mem = MEMORY
    try:
        return re2.compile(source, options)
    except re2.error as error:
        reason = error.args[0] if error.args else "not a regular expression"
        raise BadExpression(reason.decode("utf-8", "replace") if isinstance(reason, bytes) else str(reason)) from None


@functools.lru_cache(maxsize=4096)
def expression(source: str) -> cel.Program:
    """A compiled CEL expression over `value` that gives a string. BadExpression."""
    try:
        return cel.compile(source, {"value": cel.STRING}, result=cel.STRING)
    except (cel.CelError, cel.WrongResult) as error:
        raise BadExpression(str(error)) from None


def _cut(regex: str, text: str) -> tuple[str, bool]:
    match = pattern(regex).search(text)
    if match is None:
        return text, False
    groups = match.groups()
    if not groups:
        return str(match.group()), True
    return next((group for group in groups if group is not None), ""), True


_cut_again = functools.lru_cache(maxsize=4096)(_cut)
"""Devices of one kind describe themselves alike: what was cut from such a text is remembered."""


def _transformed(transform: str, text: str) -> str:
    try:
        value = expression(transform).evaluate({"value": text[:LONGEST_VARIABLE]}, cel.Budget(COST, COST))
    except (cel.EvaluationError, cel.CostExceeded) as error:
        raise NotRead(str(error)[:LONGEST]) from None
    return str(value)
