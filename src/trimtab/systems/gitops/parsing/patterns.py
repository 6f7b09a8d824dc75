"""Lines of a `.gitignore`, as Git's own `wildmatch` reads them: by bytes, with classes and escapes.

No line takes long, whatever it is and whatever it is held against: `*` takes as little as lets the next letters follow, which
is not tried again, and `**` is followed level by level with all places that are reached.
"""

from __future__ import annotations

import re
from functools import lru_cache

import msgspec

_SPECIAL = re.compile(r"[*?\[\\]")
_STARS = re.compile(r"\*{2,}(?=\Z|/|\\/)")
_CLASSES = {
    "alnum": "0-9A-Za-z",
    "alpha": "A-Za-z",
    "blank": " \\t",
    "cntrl": "\\x00-\\x1f\\x7f",
    "digit": "0-9",
    "graph": "!-~",
    "lower": "a-z",
    "print": " -~",
    "punct": "!-/:-@\\[-`{-~",
    "space": " \\t\\n\\r\\f\\v",
    "upper": "A-Z",
    "xdigit": "0-9A-Fa-f",
}


class Line(msgspec.Struct, frozen=True):
    """`levels` are the ways in which it may be met: of each, patterns of names, one a level; None is `**`."""

    takes_back: bool
    folder: bool
    anywhere: bool
    levels: tuple[tuple[re.Pattern[str] | None, ...], ...]

    def matches(self, parts: list[str], *, is_folder: bool) -> bool:
        """Whether it is about just this path; `parts` are as `bytewise` has them."""
        if self.folder and not is_folder:
            return False
        if self.anywhere:
            parts = parts[-1:]
        return any(_meets(names, parts) for names in self.levels)


@lru_cache(maxsize=1024)
def line_of(text: str) -> Line | None:
    """A line without its end; None for one that can match nothing, or is a comment."""
    if not text or text.startswith("#"):
        return None
    takes_back = text.startswith("!")
    body = bytewise(text[1:] if takes_back else text)
    folder = body.endswith("/")
    body = body[:-1] if folder else body
    anywhere = "/" not in body
    found = [_levels(each, whole=anywhere) for each in ([body] if anywhere else _ways(body.removeprefix("/")))]
    levels = tuple(each for each in found if each is not None)
    return Line(takes_back, folder, anywhere, levels) if levels and body else None


def bytewise(text: str) -> str:
    """Each byte of a path as one letter, as Git compares them."""
    return text if text.isascii() else text.encode("utf-8", "surrogateescape").decode("latin-1")


def _ways(pattern: str) -> list[str]:
    """Git compares the letters before the first sign by themselves, so `**` behind them spans folders, too."""
    special = _SPECIAL.search(pattern)
    stars = _STARS.match(pattern, special.start()) if special else None
    if stars is None or stars.start() == 0 or pattern[stars.start() - 1] == "/":
        return [pattern]
    head, rest = pattern[: stars.start()], pattern[stars.end() :]
    if not rest:
        return [f"{head}*", f"{head}*/**"]
    return [f"{head}*/**{rest}", *([head + rest[1:]] if rest[0] == "/" else [])]


def _levels(pattern: str, *, whole: bool) -> tuple[re.Pattern[str] | None, ...] | None:
    """None when it is malformed: then it matches nothing."""
    levels: list[re.Pattern[str] | None] = []
    pieces, at, begins = [""], 0, True
    while at < len(pattern):
        stars = _STARS.match(pattern, at) if begins and not whole else None
        if stars is not None:
            at = stars.end()
            if pattern.startswith("\\/", at):  # only `**/` itself may be about no folder at all
                levels.append(_compiled(["", ""]))
            levels.append(None)
            if at < len(pattern):
                at += 1 if pattern[at] == "/" else 2
                begins = True
                if at == len(pattern):
                    levels.append(_compiled([""]))
            continue
        sign, begins = pattern[at], False
        if sign == "*":
            pieces.append("")
        elif sign == "?":
            pieces[-1] += "."
        elif sign == "[":
            found = _class(pattern, at + 1)
            if found is None:
                return None
            at, letters = found
            pieces[-1] += letters
            continue
        elif sign == "/" or pattern.startswith("\\/", at):
            levels.append(_compiled(pieces))
            pieces, begins = [""], True
            at += sign == "\\"
        elif sign == "\\":
            at += 1
            if at == len(pattern):
                return None
            pieces[-1] += re.escape(pattern[at])
        else:
            pieces[-1] += re.escape(sign)
        at += 1
    if not (levels and levels[-1] is None and begins):
        levels.append(_compiled(pieces))
    return tuple(levels)


def _compiled(pieces: list[str]) -> re.Pattern[str]:
    first, *others = pieces
    if not others:
        return re.compile(first + r"\Z", re.DOTALL)
    *middle, last = others
    return re.compile(first + "".join(f"(?>.*?{each})" for each in middle if each) + f".*{last}" + r"\Z", re.DOTALL)


def _class(pattern: str, at: int) -> tuple[int, str] | None:
    """The class that begins behind a bracket: where it ends, and what it says as a regular expression."""
    negated = pattern[at : at + 1] in ("!", "^") and at < len(pattern)
    at += negated
    letters, before, first = "", "", True
    while True:
        if at >= len(pattern):
            return None
        sign = pattern[at]
        if sign == "]" and not first:
            break
        first = False
        named = re.compile(r"\[:([^\]]*)").match(pattern, at)
        if sign == "\\":
            at += 1
            if at >= len(pattern):
                return None
            before = pattern[at]
            letters += re.escape(before)
        elif sign == "-" and before and at + 1 < len(pattern) and pattern[at + 1] != "]":
            at += 1 + (pattern[at + 1] == "\\")
            if at >= len(pattern):
                return None
            if before <= pattern[at]:
                letters += f"{re.escape(before)}-{re.escape(pattern[at])}"
            before = ""
        elif named is not None:
            if named.end() >= len(pattern):
                return None
            if not named[1].endswith(":"):
                letters, before = letters + r"\[", "["
            elif named[1][:-1] not in _CLASSES:
                return None
            else:
                letters, before, at = letters + _CLASSES[named[1][:-1]], "", named.end()
        else:
            letters, before = letters + re.escape(sign), sign
        at += 1
    return at + 1, (f"[{'^' if negated else ''}{letters}]" if letters else "." if negated else r"(?!)")


def _meets(names: tuple[re.Pattern[str] | None, ...], parts: list[str]) -> bool:
    reached = {0}
    for number, name in enumerate(names, 1):
        if name is None:
            least = number == len(names)  # what ends so is about what is below
            reached = set(range(min(reached, default=len(parts) + 1) + least, len(parts) + 1))
        else:
            reached = {at + 1 for at in reached if at < len(parts) and name.match(parts[at])}
    return len(parts) in reached
