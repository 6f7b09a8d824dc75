"""Where a document that Git does not have yet is written: `<root>/<project>/<kind>/<name>.yaml`, or, with files,
`<root>/<project>/<kind>/<name>/<name>.yaml` and its files there (`<name>-2.yaml` where one of them is `<name>.yaml`).

What exists is never moved: this is for new documents only. Names of the system may be no names of files: such bytes are
written as `%xx`, and what differs only in case from a taken path gets a number (not all file systems tell them apart).
"""

from __future__ import annotations

import contextlib
import posixpath
from collections.abc import Callable, Collection, Iterator

from trimtab.systems.gitops.parsing import Identity, PathError, artifact_path

Plural = Callable[[str, str], str | None]
"""The plural of a (group, kind), where it is known."""

MAX_NAME = 200
_SAFE = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.")
_RESERVED = frozenset(
    ("con", "prn", "aux", "nul", *(f"com{n}" for n in range(1, 10)), *(f"lpt{n}" for n in range(1, 10)))
)


class Folded(set[str]):
    """Paths in lower case, as they are compared. For who asks for many places: the paths that exist are folded once."""


def path_for(
    identity: Identity,
    *,
    root: str = "",
    plural: Plural | None = None,
    taken: Collection[str] = (),
    files: Collection[str] = (),
) -> str:
    """The path of a new document. `taken` are the paths that exist. One with `files` has a folder of its own: they are
    beside it, and those of two documents may have the same names."""
    kind = (plural(identity.group, identity.kind) if plural is not None else None) or identity.kind.lower()
    folders = [safe_name(identity.namespace)] if identity.namespace else []
    stem = posixpath.join(*_inside(root), *folders, safe_name(kind), safe_name(identity.name))
    folded: Collection[str] = taken if isinstance(taken, Folded) else Folded(map(str.casefold, taken))
    if files:
        folder = _numbered(stem, "", lambda path: any(each.startswith(f"{path}/") for each in folded))
        stem = f"{folder}/{safe_name(identity.name)}"
        folded = set(_paths(folder, files))
    return _numbered(stem, ".yaml", folded.__contains__)


def safe_name(name: str) -> str:
    """A name of the system as one name of a file, and no two as the same."""
    found = "".join(c if c in _SAFE else "".join(f"%{byte:02x}" for byte in c.encode()) for c in name)
    if found.startswith("."):
        found = "%2e" + found[1:]
    if found.split(".")[0].casefold() in _RESERVED:
        found = f"%{ord(found[0]):02x}{found[1:]}"
    if len(found) > MAX_NAME:
        import hashlib

        found = f"{found[: MAX_NAME - 17]}-{hashlib.sha256(name.encode()).hexdigest()[:16]}"
    return found


def _numbered(stem: str, suffix: str, is_taken: Callable[[str], bool]) -> str:
    """The stem itself or, where it is taken in any case, with the first number that makes it free."""
    path, number = f"{stem}{suffix}", 1
    while is_taken(path.casefold()):
        number += 1
        path = f"{stem}-{number}{suffix}"
    return path


def _paths(folder: str, files: Collection[str]) -> Iterator[str]:
    """What is in a folder by its files, and the folders above them, all in lower case."""
    for name in files:
        with contextlib.suppress(PathError):
            path = artifact_path(f"{folder}/", name)
            while len(path) > len(folder):
                yield path.casefold()
                path = posixpath.dirname(path)


def _inside(root: str) -> list[str]:
    parts = [part for part in root.split("/") if part not in ("", ".")]
    if ".." in parts:
        raise PathError(f'"{root}" leaves the repository')
    return parts
