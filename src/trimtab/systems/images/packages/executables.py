"""Executables that say what they were built from: Go's build information, Rust's audit data."""

from __future__ import annotations

from trimtab.systems.images.packages import elf, golang, rust
from trimtab.systems.images.packages.package import Body, Package

SMALLEST = 4096
"""No program of Go or Rust is smaller."""

_MAGICS = {
    b"\x7fELF",
    b"\xfe\xed\xfa\xce",  # Mach-O
    b"\xfe\xed\xfa\xcf",
    b"\xce\xfa\xed\xfe",
    b"\xcf\xfa\xed\xfe",
}


_SECTIONS = (golang.SECTION, rust.SECTION)


def is_executable(head: bytes) -> bool:
    """By the first four bytes. Mach-O of several architectures is left out: its mark is that of Java classes."""
    return head in _MAGICS or head[:2] == b"MZ"


def read(path: str, body: Body) -> tuple[Package, ...]:
    """The modules of a Go program and the crates of a Rust program; nothing for others. Unreadable."""
    names = elf.section_names(body)
    if b".shstrtab\0" in names and not any(name in names for name in _SECTIONS):
        return ()  # nearly always
    return golang.read(path, body) + rust.read(path, body)
