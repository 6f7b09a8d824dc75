"""What makes the provider start fast on this machine: the interpreter itself rather than a shim of it, the code compiled
for it, and msgpack in C.

All of it is in the data folder, outside the package and named by the digest of the package's code: it can be absent, and
it cannot be of another release. Compiled files carry no times and are never looked at again (PEP 552, unchecked hashes),
so that nothing is written when the provider runs.
"""

from __future__ import annotations

import importlib.machinery
import importlib.util
import marshal
import os
import shutil
import stat
import sys
import tempfile
from pathlib import Path

from trimtab.terraform.install.contents import PackageError
from trimtab.terraform.install.package import Package, write

_KEPT = 3
"""Folders of earlier releases that stay: a `terraform apply` of one may be running."""


def prepare(made: Package, home: Path) -> Path:
    """The folder with the code, ready to run. It is made if it is not there."""
    home.mkdir(parents=True, exist_ok=True, mode=0o700)
    if home.stat().st_mode & stat.S_IWOTH:
        raise PackageError(f"the provider runs what is in {home}, and anyone may write there: run chmod o-w on it")
    link(home / "python", interpreter())
    folder = home / "code" / made.digest / str(sys.implementation.cache_tag)
    if not folder.is_dir():
        write(folder, {**made.code, **_compiled(made), **_native()})
    _forget(home / "code", keep=made.digest)
    return folder


def interpreter() -> Path:
    """The program that runs this: what a virtual environment or a version manager stands for."""
    return Path(os.path.realpath(getattr(sys, "_base_executable", "") or sys.executable))


def link(path: Path, target: Path) -> None:
    if path.is_symlink() and path.readlink() == target:
        return
    with tempfile.TemporaryDirectory(prefix=".link-", dir=path.parent) as beside:
        new = Path(beside) / path.name
        new.symlink_to(target)
        new.replace(path)


def _compiled(made: Package) -> dict[str, bytes]:
    found = {}
    for name, source in made.code.items():
        if name.endswith(".py"):
            cached = importlib.util.cache_from_source(name, optimization="")
            code = compile(source, name, "exec", dont_inherit=True)
            head = importlib.util.MAGIC_NUMBER + (0b01).to_bytes(4, "little") + importlib.util.source_hash(source)
            found[cached] = head + marshal.dumps(code)
    return found


def _native() -> dict[str, bytes]:
    """The compiled half of msgpack, where there is one for this interpreter."""
    try:
        spec = importlib.util.find_spec("msgpack._cmsgpack")
    except ModuleNotFoundError:
        return {}
    if spec is None or spec.origin is None or not spec.origin.endswith(tuple(importlib.machinery.EXTENSION_SUFFIXES)):
        return {}
    path = Path(spec.origin)
    return {f"msgpack/{path.name}": path.read_bytes()}


def _forget(folder: Path, keep: str) -> None:
    older = [each for each in folder.iterdir() if each.is_dir() and each.name != keep and not each.name.startswith(".")]
    older.sort(key=lambda each: each.stat().st_mtime, reverse=True)
    for each in older[_KEPT:]:
        shutil.rmtree(each, ignore_errors=True)
