"""Bounds the log of a container: at 10 MB it becomes the old part, and begins anew.

The process writes into the file itself, so that it goes on without us. A rename would not stop it, so the file is copied
and cut: what is printed in that very moment may be lost.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from pathlib import Path

MOST = 10_000_000  # bytes


def rotate(log: Path, most: int = MOST) -> bool:
    """Whether it was too long. Blocks for as long as a copy takes."""
    with contextlib.suppress(FileNotFoundError):
        if log.stat().st_size >= most:
            shutil.copyfile(log, log.with_suffix(".log.1"))
            os.truncate(log, 0)
            return True
    return False
