"""What a test needs of its machine. Call it first in a test or a fixture: `needs("skopeo")`.

At a desk the test is then skipped. Where nothing may be left out it fails: where CI is set, or TRIMTAB_REQUIRE_PEERS=1.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import NoReturn

import pytest

TOOLS = Path(
    os.environ.get("TRIMTAB_TOOLS")
    or Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "trimtab" / "tools" / "bin"
)
"""What `make packages` builds."""

PLACES = os.pathsep.join((os.environ.get("PATH", os.defpath), "/usr/sbin", "/sbin"))
"""Daemons are where the path of a user may not lead."""


def needs(*things: str | Path, root: bool = False, hint: str = "") -> None:
    """Programs by name, files by path."""
    absent = [str(thing) for thing in things if not _is_here(thing)]
    if root and os.geteuid() != 0:
        absent.append("root")
    if absent:
        lacks(f"needs {', '.join(absent)}{f': {hint}' if hint else ''}")


def lacks(why: str) -> NoReturn:
    """For what is no program and no file."""
    if any(os.environ.get(name, "") not in ("", "0", "false") for name in ("CI", "TRIMTAB_REQUIRE_PEERS")):
        pytest.fail(why, pytrace=False)
    pytest.skip(why)


def _is_here(thing: str | Path) -> bool:
    return thing.exists() if isinstance(thing, Path) else shutil.which(thing, path=PLACES) is not None
