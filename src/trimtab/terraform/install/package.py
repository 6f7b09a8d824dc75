"""A release of the provider as files: made once in memory, and put into a folder whole or not at all."""

from __future__ import annotations

import contextlib
import errno
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from trimtab.terraform.install.contents import contents
from trimtab.terraform.install.hashing import digest, h1, h1_of
from trimtab.terraform.install.launcher import launcher

_TURNS = 20


@dataclass(frozen=True, slots=True)
class Package:
    version: str
    program: str
    """The file that Terraform executes."""
    files: Mapping[str, bytes]
    code: Mapping[str, bytes]
    """The part below `lib/`."""

    @property
    def h1(self) -> str:
        return h1(self.files)

    @property
    def digest(self) -> str:
        return digest(self.code)

    def mode(self, name: str) -> int:
        return 0o755 if name == self.program else 0o644


def package(version: str, extra: Mapping[str, bytes] | None = None) -> Package:
    """Of the code that runs here. `extra`: data files below `lib/`."""
    code = contents(extra)
    program = f"terraform-provider-trimtab_v{version}"
    files = {program: launcher(code), **{f"lib/{name}": data for name, data in code.items()}}
    return Package(version, program, files, code)


def put(made: Package, folder: Path) -> bool:
    """Make the folder hold the package and nothing else. False: it did so already."""
    if folder.is_dir() and not folder.is_symlink() and _holds(folder, made):
        return False
    write(folder, made.files, made.mode)
    return True


def _holds(folder: Path, made: Package) -> bool:
    try:
        return h1_of(folder) == made.h1
    except FileNotFoundError:  # it is being replaced
        return False


def write(folder: Path, files: Mapping[str, bytes], mode: object = None) -> None:
    """Write beside and rename, so that whoever starts it meets the old files or the new ones, never some of each."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    beside = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
    try:
        for name, data in files.items():
            path = beside / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
            path.chmod(mode(name) if callable(mode) else 0o644)
        beside.chmod(0o755)
        _swap(beside, folder)
    finally:
        shutil.rmtree(beside, ignore_errors=True)


def _swap(new: Path, folder: Path) -> None:
    """Several may install at once: whoever is last stays, whole."""
    if folder.is_symlink():
        folder.unlink()
    for _ in range(_TURNS):
        try:
            new.rename(folder)  # onto nothing, or onto an empty folder
            return
        except OSError as error:
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                raise
        old = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
        with contextlib.suppress(FileNotFoundError):  # another one took it away
            folder.rename(old)
        shutil.rmtree(old, ignore_errors=True)
    raise FileExistsError(errno.EEXIST, "others write it all the time", str(folder))
