"""What reading a layer gives: plain data that encodes compactly, is cached by diffID, and is merged with other layers.

No contents are kept but the packages that they name. A change here needs a new extractor version (`cache.py`).
"""

from __future__ import annotations

import hashlib
import sys

import msgspec

from trimtab.systems.images.packages.package import Distro, Package


class Finding(msgspec.Struct, frozen=True, array_like=True):
    """The packages that one file of the layer names."""

    path: str
    packages: tuple[Package, ...]


class LayerResult(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a layer does to the layers below it."""

    digest: str  # of the bytes as the registry holds them
    diff_id: str  # of the tar
    size: int  # of the tar
    entries: int
    findings: tuple[Finding, ...] = ()
    distros: dict[str, Distro] = {}
    links: dict[str, str] = {}  # symlinks that stand where an os-release is looked for
    licenses: dict[str, tuple[str, ...]] = {}  # of Debian packages, by their names
    removed: tuple[str, ...] = ()  # whiteouts
    opaque: tuple[str, ...] = ()  # folders whose lower content is gone; "" is the root
    paths: bytes = b""  # sorted 8-byte digests of every path that is no folder: these replace what is below
    warnings: tuple[str, ...] = ()


def path_digest(path: str) -> bytes:
    """Eight bytes that stand for a path in `LayerResult.paths`."""
    return hashlib.blake2b(path.encode("utf-8", "replace"), digest_size=8).digest()


def path_key(path: str) -> int:
    """The same as the number that an array has for it."""
    return int.from_bytes(path_digest(path), sys.byteorder)
