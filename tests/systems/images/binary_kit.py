"""Programs for the tests: real ones by the Go tool, and ELF files with just the sections that matter."""

from __future__ import annotations

import os
import struct
import subprocess
from collections.abc import Mapping
from pathlib import Path

from tests.needs import needs

BASE = 0x400000
MARK = b"\xff Go buildinf:"
MODULES = (
    "path\texample.com/old\nmod\texample.com/old\tv1.0.0\th1:x=\n"
    "dep\texample.com/dep\tv1.2.3\th1:y=\ndep\texample.com/lost\tv0.1.0\n=>\texample.com/fork\tv0.2.0\th1:z=\n"
)
FRAMED = b"S" * 16 + MODULES.encode() + b"E" * 16


def go_program(folder: Path) -> bytes:
    """A small program of one module that needs two others, built without the network."""
    needs("go")
    (folder / "go.mod").write_text(
        "module example.com/hello\n\ngo 1.18\n\nrequire (\n\texample.com/dep v1.2.3\n\texample.com/far/other v0.1.0\n)\n\n"
        "replace example.com/dep => ./dep\n\nreplace example.com/far/other => ./other\n"
    )
    for name, module in (("dep", "example.com/dep"), ("other", "example.com/far/other")):
        (folder / name).mkdir()
        (folder / name / "go.mod").write_text(f"module {module}\n\ngo 1.18\n")
        (folder / name / "it.go").write_text(f'package {name}\n\nfunc Hi() string {{ return "hi" }}\n')
    (folder / "main.go").write_text(
        'package main\n\nimport (\n\t"example.com/dep"\n\t"example.com/far/other"\n)\n\n'
        "func main() { println(dep.Hi(), other.Hi()) }\n"
    )
    environment = {**os.environ, "CGO_ENABLED": "0", "GOPROXY": "off", "GOFLAGS": "-mod=mod", "GOTOOLCHAIN": "local"}
    command = ["go", "build", "-buildvcs=false", "-ldflags=-s -w", "-o", "hello", "."]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, check=False, timeout=110)
    assert done.returncode == 0, done.stderr.decode()
    return (folder / "hello").read_bytes()


def elf(sections: Mapping[bytes, bytes], *, order: str = "<", wide: bool = True, headers: bool = True) -> bytes:
    """An ELF file with these sections, loaded at BASE as a whole; each starts at a multiple of 16."""
    head = 0x40 + 56 if wide else 0x34 + 32
    body = bytearray(bytes(-head % 16))
    places, names = [], b"\0"
    for name, content in {**sections, b".shstrtab": b""}.items():
        if name == b".shstrtab":
            content = names + b".shstrtab\0"
        places.append((len(names), head + len(body), len(content)))
        names += name + b"\0"
        body += content + bytes(-len(content) % 16)
    table = bytes(64 if wide else 40)
    for start, where, length in places:
        if wide:
            table += struct.pack(order + "IIQQQQIIQQ", start, 1, 0, BASE + where, where, length, 0, 0, 0, 0)
        else:
            table += struct.pack(order + "IIIIIIIIII", start, 1, 0, BASE + where, where, length, 0, 0, 0, 0)
    offset, count = (head + len(body), len(places) + 1) if headers else (0, 0)
    size = head + len(body)
    ident = b"\x7fELF" + bytes([2 if wide else 1, 1 if order == "<" else 2, 1]) + bytes(9)
    if wide:
        ident += struct.pack(
            order + "HHIQQQIHHHHHH", 2, 62, 1, 0, 64, offset, 0, 64, 56, 1, 64, count, max(count - 1, 0)
        )
        ident += struct.pack(order + "IIQQQQQQ", 1, 6, 0, BASE, BASE, size, size, 16)
    else:
        ident += struct.pack(
            order + "HHIIIIIHHHHHH", 2, 3, 1, 0, 52, offset, 0, 52, 32, 1, 40, count, max(count - 1, 0)
        )
        ident += struct.pack(order + "IIIIIIII", 1, 0, BASE, BASE, size, size, 6, 16)
    return ident + bytes(body) + (table if headers else b"")


def old_go(*, order: str = "<", wide: bool = True) -> bytes:
    """A program as Go before 1.18 linked it: the build information has pointers to two strings."""
    form = "Q" if wide else "I"
    size = 8 if wide else 4
    head = 0x40 + 56 if wide else 0x34 + 32
    start = BASE + head + (-head % 16)
    version = b"go1.16.4"
    strings = version + FRAMED
    texts = start + 32 + size * 4
    info = MARK + bytes([size, 0 if order == "<" else 1])
    info += struct.pack(order + form * 2, start + 32, start + 32 + size * 2).ljust(16, b"\0")
    info += struct.pack(order + form * 4, texts, len(version), texts + len(version), len(FRAMED))
    return elf({b".go.buildinfo": info + strings}, order=order, wide=wide)


def inline_go(version: str = "go1.22.1") -> bytes:
    """The build information as Go writes it since 1.18."""
    texts = b""
    for text in (version.encode(), FRAMED):
        length = len(text)
        while length >= 0x80:
            texts += bytes([length & 0x7F | 0x80])
            length >>= 7
        texts += bytes([length]) + text
    return (MARK + bytes([8, 2])).ljust(32, b"\0") + texts
