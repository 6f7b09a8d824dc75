"""Editing a tree without a work tree. It blocks; it runs in threads.

An edit touches only the folders on the way to what changes, so its cost does not grow with the repository.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from trimtab.runtime.git.paths import checked
from trimtab.runtime.git.trees import EXECUTABLE, FILE, FOLDER, entries, loaded


def edited(repository: Any, tree: Any | None, changes: Mapping[str, bytes | None]) -> Any:
    """The id of `tree` with these files written (bytes) or removed (None); what is not there to remove is passed over.

    An executable file stays one. ValueError where a file would take the place of a folder, a symlink or a submodule, or
    a folder that of a file, unless what is in the way is removed by the same edit.
    """
    removed = _nested(path for path, content in changes.items() if content is None)
    written = _nested(path for path, content in changes.items() if content is not None)
    left = _remove(repository, tree, removed, "") if tree is not None else None
    contents = {path: content for path, content in changes.items() if content is not None}
    oid = _write(repository, repository[left] if left is not None else None, written, contents, "")
    return oid if oid is not None else repository.TreeBuilder().write()


class _Node:
    """A folder on the way: the files named in it, and further folders."""

    def __init__(self) -> None:
        self.files: set[str] = set()
        self.folders: dict[str, _Node] = {}


def _nested(paths: Iterable[str]) -> _Node:
    root = _Node()
    for path in paths:
        names = checked(path)
        at = root
        for name in names[:-1]:
            at = at.folders.setdefault(name, _Node())
        at.files.add(names[-1])
    return root


def _remove(repository: Any, tree: Any, node: _Node, prefix: str) -> Any | None:
    """None when nothing is left: Git has no empty folders."""
    there = entries(tree)
    builder = repository.TreeBuilder(tree)
    for name in node.files:
        mode, _ = there.get(name, (None, None))
        if mode == FOLDER:
            raise ValueError(f"path {prefix + name!r}: is a folder; name the files in it")
        if mode is not None:
            builder.remove(name)
    for name, folder in node.folders.items():
        mode, oid = there.get(name, (None, None))
        if mode == FOLDER:
            left = _remove(repository, loaded(repository, oid), folder, f"{prefix}{name}/")
            builder.remove(name) if left is None else builder.insert(name, left, FOLDER)
    return builder.write() if len(builder) else None


def _write(repository: Any, tree: Any | None, node: _Node, contents: Mapping[str, bytes], prefix: str) -> Any | None:
    there = entries(tree) if tree is not None else {}
    builder = repository.TreeBuilder(tree) if tree is not None else repository.TreeBuilder()
    for name, folder in node.folders.items():
        mode, oid = there.get(name, (None, None))
        if name in node.files or mode not in (None, FOLDER):
            raise ValueError(f"path {prefix + name!r}: is not a folder, and files are to be written below it")
        below = loaded(repository, oid) if oid is not None else None
        builder.insert(name, _write(repository, below, folder, contents, f"{prefix}{name}/"), FOLDER)
    for name in node.files:
        mode, _ = there.get(name, (None, None))
        if mode not in (None, FILE, EXECUTABLE):
            raise ValueError(f"path {prefix + name!r}: is a folder, a symlink or a submodule, and no file")
        builder.insert(name, repository.create_blob(contents[prefix + name]), mode or FILE)
    return builder.write() if len(builder) else None
