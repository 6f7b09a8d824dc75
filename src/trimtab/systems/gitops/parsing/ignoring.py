"""Which files of a revision are read: YAML and JSON that is not hidden, not another tool's, and not in the ignore list.

The list is written as a `.gitignore`, and means the same: the last line that matches decides, `!` takes back what is in no
folder that is left out, `/` at the end is a folder, `/` elsewhere ties the pattern to the list's place.
"""

from __future__ import annotations

from functools import lru_cache

import msgspec

from trimtab.systems.gitops.parsing.patterns import Line, bytewise, line_of

IGNORE_FILE = ".trimtabignore"
SUFFIXES = (".yaml", ".yml", ".json")
FOREIGN_NAMES = frozenset({"kustomization.yaml", "kustomization.yml", "kustomizeconfig.yaml"})
"""Files of other tools that look like resources and are none."""


MOST_LINES = 1000


class TooLong(ValueError):  # noqa: N818
    """A list that nobody wants to wait for."""


class Ignore(msgspec.Struct, frozen=True, eq=False):
    """The lines of an ignore list that may match; paths are relative to the synced folder."""

    lines: tuple[Line, ...] = ()

    @classmethod
    def of(cls, text: str) -> Ignore:
        """Raises TooLong."""
        found = (line_of(_trimmed(line)) for line in text.removeprefix("\ufeff").split("\n"))
        lines = tuple(line for line in found if line is not None)
        if len(lines) > MOST_LINES:
            raise TooLong(f"has more than {MOST_LINES} patterns")
        return cls(lines)

    def ignores(self, path: str, *, is_folder: bool = False) -> bool:
        """What is in a folder that is left out is left out, whatever else is said of it."""
        return bool(self.lines) and _is_left_out(self, bytewise(path), is_folder=is_folder)


def _is_left_out(ignore: Ignore, path: str, *, is_folder: bool) -> bool:
    folder = path.rpartition("/")[0]
    if folder and _is_folder_left_out(ignore, folder):
        return True
    parts = path.split("/")
    line = next((line for line in reversed(ignore.lines) if line.matches(parts, is_folder=is_folder)), None)
    return line is not None and not line.takes_back


@lru_cache(maxsize=4096)
def _is_folder_left_out(ignore: Ignore, folder: str) -> bool:
    return _is_left_out(ignore, folder, is_folder=True)


def _trimmed(line: str) -> str:
    """Without the spaces at its end, but for one that is escaped, and without a carriage return."""
    line = line.removesuffix("\r")
    kept = line.rstrip(" ")
    escapes = len(kept) - len(kept.rstrip("\\"))
    return kept + " " if escapes % 2 and kept != line else kept


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
