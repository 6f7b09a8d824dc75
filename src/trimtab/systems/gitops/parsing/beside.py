"""Where the files are that documents name: beside the document or below it, nowhere else."""

from __future__ import annotations

import functools
import posixpath

REMEMBERED = 65_536
"""Paths of files that documents name: each run of a sync asks for all of them again."""


class PathError(ValueError):
    """A path that leaves its folder, or is none."""


@functools.lru_cache(maxsize=REMEMBERED)
def artifact_path(document_path: str, name: str) -> str:
    """Where a file is that a document names: relative to the document, never above its folder, and never hidden: such files
    steer Git, builds and this sync itself."""
    if not name or "\0" in name or "\\" in name or name.startswith("/"):
        raise PathError(f'"{name}" is no path relative to the document')
    parts = posixpath.normpath(name).split("/")
    if parts[0] in ("..", "."):
        raise PathError(f'"{name}" leaves the folder of its document')
    if any(part.startswith(".") for part in parts):
        raise PathError(f'"{name}" is hidden: no name in it may begin with a dot')
    return posixpath.join(posixpath.dirname(document_path), *parts)
