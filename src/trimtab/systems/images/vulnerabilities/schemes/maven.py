"""Maven versions, as its version order specification says (maven.apache.org/pom.html, Version Order).

A version is a row of tokens, each with the separator before it; a change between digits and letters is a hyphen, and so is
a dot before a word. What means nothing (0, ga, final, release) is cut at the end and before each hyphen. Of two rows the
shorter is filled up with nothing. Because of that filling a key cannot be a plain tuple: it compares itself.

Maven's own code departs from its specification for a word between a dot and a hyphen (`1.redhat-2`) and for several words
in a row; here the specification is followed.
"""

from __future__ import annotations

import functools
import re
from typing import NamedTuple


@functools.total_ordering
class Key:
    """Sorts as the version does. Equal ones may be written differently: `1.0` and `1`."""

    __slots__ = ("tokens",)

    def __init__(self, tokens: tuple[Token, ...]) -> None:
        self.tokens = tokens

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Key) and _compare(self.tokens, other.tokens) == 0

    def __lt__(self, other: Key) -> bool:
        return _compare(self.tokens, other.tokens) < 0

    __hash__ = None  # type: ignore[assignment]


class Token(NamedTuple):
    """A number (rank 0) or a word by its rank, after its separator."""

    hyphen: bool
    number: int | None
    rank: int = 0
    word: str = ""

    @property
    def is_nothing(self) -> bool:
        return self.number == 0 or (self.number is None and self.rank == _NOTHING)


def key(version: str) -> Key:
    if not _VERSION.fullmatch(version):
        raise ValueError("no Maven version: printable characters without spaces, commas, brackets or $")
    return Key(_trimmed(_tokens(version.lower())))


def _tokens(version: str) -> list[Token]:
    tokens: list[Token] = []
    hyphen = False
    for part in _SEPARATOR.split(version):
        if part in ("-", "."):
            hyphen = part == "-"
            continue
        runs = _RUN.findall(part) or ["0"]
        for i, run in enumerate(runs):
            if run[0] in "0123456789":
                tokens.append(Token(hyphen, int(run)))
            else:
                before_number = i + 1 < len(runs)
                word = _SHORT.get(run, run) if before_number else run
                rank = _WORDS.get(word, _OTHER)
                tokens.append(Token(True, None, rank, word if rank == _OTHER else ""))
            hyphen = True
    return tokens


def _trimmed(tokens: list[Token]) -> tuple[Token, ...]:
    """Without what means nothing at the end and before each hyphen."""
    kept: list[Token] = []
    for token in tokens:
        if token.hyphen:
            while kept and kept[-1].is_nothing:
                kept.pop()
        kept.append(token)
    while kept and kept[-1].is_nothing:
        kept.pop()
    return tuple(kept)


def _compare(left: tuple[Token, ...], right: tuple[Token, ...]) -> int:
    for i in range(max(len(left), len(right))):
        a = left[i] if i < len(left) else _nothing_beside(right[i])
        b = right[i] if i < len(right) else _nothing_beside(left[i])
        if (one := _order(a)) != (other := _order(b)):
            return -1 if one < other else 1
    return 0


def _nothing_beside(token: Token) -> Token:
    return Token(token.hyphen, 0) if token.number is not None else Token(token.hyphen, None, _NOTHING)


def _order(token: Token) -> tuple[int, int, str]:
    """Words before numbers after a hyphen, and those before numbers after a dot."""
    if token.number is None:
        return 0, token.rank, token.word
    return (1 if token.hyphen else 2), token.number, ""


_RANKED = (("alpha",), ("beta",), ("milestone",), ("rc", "cr"), ("snapshot",), ("", "ga", "final", "release"), ("sp",))
_WORDS = {word: rank for rank, words in enumerate(_RANKED) for word in words}
_NOTHING, _OTHER = _WORDS[""], len(_RANKED)
_SHORT = {"a": "alpha", "b": "beta", "m": "milestone"}
_SEPARATOR = re.compile(r"([.-])")
_RUN = re.compile(r"[0-9]+|[^0-9]+")
_VERSION = re.compile(r"[!-#%-'*+./0-Z^-z|~-]+")
