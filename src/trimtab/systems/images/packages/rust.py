"""Rust programs built by cargo-auditable: a `.dep-v0` section with the crates as compressed JSON. ELF only."""

from __future__ import annotations

import zlib

import msgspec

from trimtab.systems.images.packages import elf
from trimtab.systems.images.packages.package import Body, Package
from trimtab.systems.images.packages.problems import Unreadable

SECTION = b".dep-v0"

_MAX_JSON = 8 << 20


class _Crate(msgspec.Struct, frozen=True):
    name: str
    version: str
    kind: str = "runtime"


class _Audit(msgspec.Struct, frozen=True):
    packages: tuple[_Crate, ...] = ()


def read(path: str, body: Body) -> tuple[Package, ...]:
    """The crates that are in the program; those that only built it are left out. Unreadable."""
    found = elf.section(body, SECTION)
    if found is None:
        return ()
    start, size = found
    inflate = zlib.decompressobj()
    try:
        text = inflate.decompress(bytes(body[start : start + min(size, _MAX_JSON)]), _MAX_JSON)
    except zlib.error as error:
        raise Unreadable(f"its audit data of Rust is damaged: {error}") from error
    if not inflate.eof:
        raise Unreadable(f"its audit data of Rust is cut off, or has more than {_MAX_JSON} bytes")
    try:
        audit = msgspec.json.decode(text, type=_Audit)
    except (msgspec.DecodeError, msgspec.ValidationError, UnicodeDecodeError, RecursionError) as error:
        raise Unreadable(f"its audit data of Rust is not as cargo-auditable writes it: {error}") from error
    return tuple(
        Package(type="cargo", name=crate.name, version=crate.version, path=path)
        for crate in audit.packages
        if crate.kind == "runtime"
    )
