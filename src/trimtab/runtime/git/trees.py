"""Trees: listing and comparing them. All of it blocks; it runs in threads."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Iterator
from typing import Any

from trimtab.runtime.git.errors import Malformed, NoSuchRef, TooLarge
from trimtab.runtime.git.limits import Limits
from trimtab.runtime.git.objects import TreeFile
from trimtab.runtime.git.paths import DEEPEST, checked, component

FOLDER, FILE, EXECUTABLE, LINK, MODULE = 0o040000, 0o100644, 0o100755, 0o120000, 0o160000

LARGEST = 64 << 20
"""Bytes of a tree or commit: what is packed small can be large."""

Entry = tuple[int, str]
"""Mode and object id."""


class Budget:
    """Counts what is looked at: a small tree that names itself over and over has no end worth waiting for."""

    def __init__(self, limits: Limits) -> None:
        self._limits, self._left = limits, limits.files

    def spend(self) -> None:
        self._left -= 1
        if self._left < 0:
            raise TooLarge(f"the tree has more than the {self._limits.files} files and folders that are allowed")


def loaded(repository: Any, oid: Any) -> Any:
    """A tree, commit or tag. KeyError when it is not here."""
    size = repository.odb.read_header(oid)[1]
    if size > LARGEST:
        raise Malformed(f"object {oid} has {size} bytes, and is no file")
    return repository[oid]


def commit_of(repository: Any, oid: str) -> Any:
    """NoSuchRef when the mirror does not have it."""
    try:
        found = loaded(repository, oid)
    except (KeyError, ValueError):
        found = None
    if found is None or not hasattr(found, "parent_ids"):
        raise NoSuchRef(f"commit {oid[:80]!r} is not in the mirror; fetch the branch that has it")
    return found


def listing(repository: Any, commit: str, path: str, limits: Limits) -> dict[str, TreeFile]:
    """The files below `path` (or the one there), by their paths from the root, in order."""
    tree = commit_of(repository, commit).tree
    database = repository.odb
    found: dict[str, TreeFile] = {}
    for name, (mode, oid) in _below(repository, tree, path, limits):
        size = 0 if mode == MODULE else database.read_header(oid)[1]
        found[name] = TreeFile(oid=oid, size=size, mode=mode)
    return found


def _below(repository: Any, tree: Any, path: str, limits: Limits) -> Iterator[tuple[str, Entry]]:
    prefix = ""
    for name in checked(path) if path else ():
        entry = _entry(tree, name)
        if entry is None:
            return
        prefix = f"{prefix}/{name}" if prefix else name
        if entry[0] != FOLDER:
            if prefix == path:
                yield path, entry
            return
        tree = loaded(repository, entry[1])
    yield from _walk(repository, tree, prefix, 0, Budget(limits))


def _walk(repository: Any, tree: Any, prefix: str, depth: int, budget: Budget) -> Iterator[tuple[str, Entry]]:
    if depth > DEEPEST:
        raise Malformed(f"folders are nested more than {DEEPEST} levels deep, at {prefix[:80]!r}…")
    for name, (mode, oid) in entries(tree).items():
        budget.spend()
        path = f"{prefix}/{name}" if prefix else name
        if mode == FOLDER:
            yield from _walk(repository, loaded(repository, oid), path, depth + 1, budget)
        else:
            yield path, (mode, oid)


def entries(tree: Any) -> dict[str, Entry]:
    """Names that are no UTF-8 keep their bytes as surrogates. Malformed for a name that no honest tree has.

    Read from the tree's bytes: a folder may have thousands of files, and an object for each costs more than all else."""
    return _read(_ENTRY.findall(tree.read_raw()))


def _entry(tree: Any, name: str) -> Entry | None:
    """One of them: the others are not even decoded."""
    wanted = name.encode(errors="surrogateescape")
    return _read(each for each in _ENTRY.findall(tree.read_raw()) if each[1] == wanted).get(name)


def _read(raws: Iterable[tuple[bytes, bytes, bytes]]) -> dict[str, Entry]:
    found = {}
    for octal, raw, oid in raws:
        name = raw.decode(errors="surrogateescape")
        if (name[:1] in ("", ".") or "/" in name) and not component(name):
            raise Malformed(f"a tree has an entry named {name!r}")
        found[name] = (_mode(int(octal, 8)), oid.hex())
    return found


_ENTRY = re.compile(rb"([0-7]+) ([^\0]*)\0(.{20})", re.DOTALL)


@functools.cache
def _mode(mode: int) -> int:
    """One of the modes that Git writes now; old trees have others."""
    kind = mode & 0o170000
    return kind if kind in (FOLDER, LINK, MODULE) else EXECUTABLE if mode & 0o111 else FILE


def differing(repository: Any, old: str, new: str, path: str, limits: Limits) -> frozenset[str]:
    """Paths of files that are in one only or differ. Folders that are the same are not looked into."""
    budget = Budget(limits)
    left: Entry | None = (FOLDER, str(commit_of(repository, old).tree_id))
    right: Entry | None = (FOLDER, str(commit_of(repository, new).tree_id))
    for name in checked(path) if path else ():
        left, right = _inside(repository, left, name), _inside(repository, right, name)
    return frozenset(_compare(repository, left, right, path, 0, budget))


def _inside(repository: Any, entry: Entry | None, name: str) -> Entry | None:
    tree = _tree(repository, entry)
    return _entry(tree, name) if tree is not None else None


def _tree(repository: Any, entry: Entry | None) -> Any | None:
    return loaded(repository, entry[1]) if entry is not None and entry[0] == FOLDER else None


def _compare(
    repository: Any, left: Entry | None, right: Entry | None, path: str, depth: int, budget: Budget
) -> Iterator[str]:
    if left == right:
        return
    if depth > DEEPEST:
        raise Malformed(f"folders are nested more than {DEEPEST} levels deep, at {path[:80]!r}…")
    if any(each is not None and each[0] != FOLDER for each in (left, right)):
        yield path
    one, other = _tree(repository, left), _tree(repository, right)
    ours, theirs = ({*_ENTRY.findall(tree.read_raw())} if tree is not None else set() for tree in (one, other))
    here, there = _read(ours - theirs), _read(theirs - ours)  # of a folder with thousands a few differ, mostly
    for name in sorted(here.keys() | there.keys()):
        budget.spend()
        below = f"{path}/{name}" if path else name
        yield from _compare(repository, here.get(name), there.get(name), below, depth + 1, budget)
