"""Which files of a revision are read: YAML and JSON that is not hidden, not another tool's, and not in the ignore list.

The list is written as in `.gitignore`: the last line that matches decides, `!` takes a file back, `/` at the end is a folder,
`/` elsewhere ties the pattern to the list's place, `*` stays within a name, `**` does not.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
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
            if _pattern(line[1:] if taken_back else line).match(path):
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


@lru_cache(maxsize=1024)
def _pattern(line: str) -> re.Pattern[str]:
    folder = line.endswith("/")
    body = line.rstrip("/")
    tied = "/" in body
    parts = _translated(body.lstrip("/").split("/"))
    start = "" if tied else "(?:.*/)?"
    return re.compile(start + parts + ("/.*" if folder else "(?:/.*)?") + r"\Z", re.DOTALL)


def _translated(names: Iterable[str]) -> str:
    found = ""
    names = list(names)
    for number, name in enumerate(names):
        last = number == len(names) - 1
        if name == "**":
            found += ".*" if last else "(?:.*/)?"
        else:
            found += "".join({"*": "[^/]*", "?": "[^/]"}.get(c, re.escape(c)) for c in re.sub(r"\*+", "*", name))
            found += "" if last else "/"
    return found
