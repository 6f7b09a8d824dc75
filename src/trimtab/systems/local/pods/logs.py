"""Bounds the log of a container: at 10 MB it becomes the old part, and begins anew.

The process writes into the file itself, so that it goes on without us. A rename would not stop it, so the file is copied
and cut: what is printed in that very moment may be lost. Of one that grew much faster than we look, the end is kept.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from trimtab.systems.local.pods.records import folders

MOST = 10_000_000  # bytes


def rotate_all(root: Path) -> None:
    """The logs of all pods."""
    for folder in folders(root):
        for log in folder.path.glob("*.log"):
            rotate(log)


def rotate(log: Path, most: int = MOST) -> bool:
    """Whether it was too long. Blocks for as long as a copy takes. It is cut also when there is no room for a copy: that
    may be all that the disk is full of."""
    try:
        size = log.stat().st_size
        if size < most:
            return False
        with log.open("rb") as whole:
            whole.seek(max(0, size - most))
            _keep(whole.read(most), log.with_suffix(".log.1"))
        os.truncate(log, 0)
    except OSError:
        return False  # it is gone, or nobody's to read
    return True


def _keep(end: bytes, old: Path) -> None:
    try:
        old.write_bytes(end)
    except OSError:
        with contextlib.suppress(OSError):
            old.unlink()
