"""Which files of a revision are read: YAML and JSON that is not hidden, not another tool's, and not in the ignore list.

The list is written as in `.gitignore`: the last line that matches decides, `!` takes a file back, `/` at the end is a folder,
`/` elsewhere ties the pattern to the list's place, `*` stays within a name, `**` does not.
"""

from __future__ import annotations

import re
from functools import lru_cache

import msgspec

IGNORE_FILE = ".trimtabignore"
SUFFIXES = (".yaml", ".yml", ".json")
FOREIGN_NAMES = frozenset({"kustomization.yaml", "kustomization.yml", "kustomizeconfig.yaml"})
"""Files of other tools that look like resources and are none."""


class Ignore(msgspec.Struct, frozen=True):
    """The lines of an ignore list; paths are relative to the synced folder."""

    lines: tuple[str, ...] = ()

    @classmethod
    def of(cls, text: str) -> Ignore:
        lines = (line.rstrip() for line in text.splitlines()[:1000])
        return cls(tuple(line for line in lines if line and not line.startswith("#")))

    def ignores(self, path: str) -> bool:
        ignored = False
        for line in self.lines:
            taken_back = line.startswith("!")
            if _pattern(line[1:] if taken_back else line).matches(path):
                ignored = not taken_back
        return ignored


NOTHING = Ignore()


def is_read(path: str, ignore: Ignore = NOTHING) -> bool:
    """Whether a file may hold documents."""
    if not path.endswith(SUFFIXES) or is_hidden(path) or path.rpartition("/")[2] in FOREIGN_NAMES:
        return False
    return not ignore.ignores(path)


def is_hidden(path: str) -> bool:
    return path.startswith(".") or "/." in path


def is_json(path: str) -> bool:
    return path.endswith(".json")


class _Line(msgspec.Struct, frozen=True):
    """A line of the list. `names` are patterns, one a level; None is `**`."""

    names: tuple[re.Pattern[str] | None, ...]
    folder: bool

    def matches(self, path: str) -> bool:
        """Level by level, with all places that are reached so far, so that many `**` cost no more than lines times levels."""
        parts = path.split("/")
        reached = {0}
        for number, name in enumerate(self.names, 1):
            if name is None:
                least = number == len(self.names)  # what ends so is about what is below
                reached = set(range(min(reached, default=len(parts) + 1) + least, len(parts) + 1))
            else:
                reached = {at + 1 for at in reached if at < len(parts) and name.match(parts[at])}
        return any(at < len(parts) or not self.folder for at in reached)


@lru_cache(maxsize=1024)
def _pattern(line: str) -> _Line:
    folder = line.endswith("/")
    body = line.rstrip("/")
    names = body.lstrip("/").split("/")
    if "/" not in body:
        names.insert(0, "**")
    return _Line(tuple(None if name == "**" else _translated(name) for name in names), folder)


def _translated(name: str) -> re.Pattern[str]:
    """Every `*` takes as little as lets the next letters follow, and that is not tried again: a name has no end of ways."""
    first, *others = (
        "".join("." if sign == "?" else re.escape(sign) for sign in part)
        for part in re.sub(r"\*+", "*", name).split("*")
    )
    if not others:
        return re.compile(first + r"\Z", re.DOTALL)
    *middle, last = others
    return re.compile(first + "".join(f"(?>.*?{part})" for part in middle) + f".*{last}" + r"\Z", re.DOTALL)
