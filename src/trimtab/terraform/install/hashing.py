"""Hashes that Terraform keeps in lock files.

`h1:` is of a package's files whatever archive they come in: the SHA-256, in base64, of a list of lines, one for each file
in the order of their names, with the SHA-256 of its content and its name. `zh:` is of an archive as it is.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping
from pathlib import Path


def h1(files: Mapping[str, bytes]) -> str:
    lines = "".join(f"{hashlib.sha256(files[name]).hexdigest()}  {name}\n" for name in sorted(files, key=str.encode))
    return f"h1:{base64.b64encode(hashlib.sha256(lines.encode()).digest()).decode()}"


def h1_of(folder: Path) -> str:
    """Of all files in a folder, links followed, as Terraform does."""
    found = {path.relative_to(folder).as_posix(): path for path in folder.rglob("*") if path.is_file()}
    return h1({name: path.read_bytes() for name, path in found.items()})


def zh(archive: bytes) -> str:
    return f"zh:{hashlib.sha256(archive).hexdigest()}"


def digest(files: Mapping[str, bytes]) -> str:
    """A short name for these very files."""
    whole = hashlib.sha256()
    for name in sorted(files):
        whole.update(f"{name}\0{len(files[name])}\0".encode())
        whole.update(files[name])
    return whole.hexdigest()[:32]
