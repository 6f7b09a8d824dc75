"""Which file of an image is read by which reader. It is asked for every file, so it looks at names first."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from trimtab.systems.images.packages import apk, dpkg, java, node, python, rpm, ruby
from trimtab.systems.images.packages.package import Body, Package

Read = Callable[[str, Body], tuple[Package, ...]]
"""The packages that the file at the path names. Unreadable."""


class Format(msgspec.Struct, frozen=True):
    """How a file is read, and the size that one of its kind can have."""

    read: Read
    max_bytes: int


def recognise(path: str, name: str) -> Format | None:
    """The format of the file at the path, whose last part is the name; None when it is none of ours."""
    form = _PATHS.get(path)
    if form is not None:
        return form
    if name in _NAMES:
        return _NAMES[name](path)
    dot = name.rfind(".")
    if dot >= 0:
        by_suffix = _SUFFIXES.get(name[dot:])
        if by_suffix is not None:
            return by_suffix(path)
    if path.startswith(dpkg.STATUS_FOLDER):
        return _DPKG
    return None


def is_os_release(path: str) -> bool:
    """Where distributions say what they are."""
    return path in ("etc/os-release", "usr/lib/os-release", "usr/share/os-release")


_DPKG = Format(dpkg.read, 64 << 20)
_APK = Format(apk.read, 64 << 20)
_RPM = Format(rpm.read, 64 << 20)
_PYTHON = Format(python.read, 1 << 20)
_NODE = Format(node.read, 1 << 20)
_JAVA = Format(java.read, 112 << 20)
_RUBY = Format(ruby.read, 256 << 10)

_PATHS: dict[str, Format] = {
    "var/lib/dpkg/status": _DPKG,
    "lib/apk/db/installed": _APK,
    "usr/lib/apk/db/installed": _APK,
    **dict.fromkeys(rpm.PATHS, _RPM),
}


def _python_metadata(path: str) -> Format | None:
    return _PYTHON if python.is_metadata(path) else None


def _package_json(path: str) -> Format | None:
    return _NODE if node.is_installed(path) else None


def _gemspec(path: str) -> Format | None:
    return _RUBY if "/specifications/" in f"/{path}" else None


_NAMES: dict[str, Callable[[str], Format | None]] = {
    "METADATA": _python_metadata,
    "PKG-INFO": _python_metadata,
    "package.json": _package_json,
}

_SUFFIXES: dict[str, Callable[[str], Format | None]] = {
    ".egg-info": lambda path: _PYTHON,
    ".gemspec": _gemspec,
    **{suffix: lambda path: _JAVA for suffix in java.SUFFIXES},
}
