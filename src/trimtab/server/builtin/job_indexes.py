"""The indexes of an indexed Job, as its status and its success policy list them: `1,3-5,7`."""

from __future__ import annotations

import re

from trimtab.server.builtin.problems import digits


class WrongIndexes(ValueError):  # noqa: N818 - it reads as what it is
    """A list of indexes that cannot be read. The text says why, in the real server's words."""


def count_indexes(text: str, completions: int) -> int:
    """How many indexes a list names. WrongIndexes when it is out of order or names one that the Job does not have."""
    total, last = 0, None
    for first, end in _intervals(text, completions):
        if last is not None and last >= first:
            raise _disorder(last, first)
        total += end - first + 1
        last = end
    return total


def overlap(one: str, other: str, completions: int) -> int | None:
    """The first index that two lists share. Parts that cannot be read are passed over."""
    mine, yours = _readable(one, completions), _readable(other, completions)
    while mine and yours:
        if mine[-1][0] <= yours[-1][1] and yours[-1][0] <= mine[-1][1]:
            return max(mine[-1][0], yours[-1][0])
        (mine if mine[-1][0] <= yours[-1][0] else yours).pop()
    return None


def _readable(text: str, completions: int) -> list[tuple[int, int]]:
    """The intervals of a list, the last first."""
    found = []
    for part in reversed(text.split(",")) if text else ():
        try:
            found.append(_interval(part, completions))
        except WrongIndexes:
            continue
    return found


def _intervals(text: str, completions: int) -> list[tuple[int, int]]:
    return [_interval(part, completions) for part in text.split(",")] if text else []


def _interval(part: str, completions: int) -> tuple[int, int]:
    limits = part.split("-")
    if len(limits) > 2:
        why = "violates the requirement that an index interval can have at most two parts separated by '-'"
        raise WrongIndexes(f'the fragment "{part}" {why}')
    first = _index(limits[0], completions)
    if len(limits) == 1:
        return first, first
    end = _index(limits[1], completions)
    if first >= end:
        raise _disorder(first, end)
    return first, end


def _index(text: str, completions: int) -> int:
    if not re.fullmatch("[+]?[0-9]+", text):
        raise WrongIndexes(f'cannot convert string to integer for index: "{text}"')
    number = digits(text.removeprefix("+"))
    if number >= completions:
        raise WrongIndexes(f'too large index: "{text}"')
    return number


def _disorder(previous: int, current: int) -> WrongIndexes:
    return WrongIndexes(f"non-increasing order, previous: {previous}, current: {current}")
