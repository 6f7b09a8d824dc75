"""rpm databases made by the real rpm, and the same headers in the other forms that its databases had."""

from __future__ import annotations

import struct
import subprocess
from pathlib import Path

import apsw

from tests.needs import needs

PACKAGES = "apt-get install rpm db5.3-util"
SPEC = """
Name: alpha
Version: 1.2
Release: 3%{{?dist}}
Epoch: 2
Summary: first
License: MIT and GPLv2+
BuildArch: noarch
%description
{words}
%package -n alpha-libs
Epoch: 0
Summary: second
%description -n alpha-libs
short
%package -n beta
Summary: third
Version: 0.9~rc1
%description -n beta
short
%files
%files -n alpha-libs
%files -n beta
"""
WORDS = "\n".join("many words that do not fit into one page of a database " * 3 for _ in range(200))


def run(*command: str | Path, stdin: bytes = b"") -> bytes:
    done = subprocess.run([str(word) for word in command], input=stdin, capture_output=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout


def database(folder: Path) -> Path:
    """A database in SQLite with three packages, made by rpm. Returns its folder."""
    needs("rpm", "rpmbuild", hint=PACKAGES)
    spec = folder / "alpha.spec"
    spec.write_text(SPEC.format(words=WORDS))
    define = ("--define", f"_topdir {folder}", "--define", f"_rpmdir {folder}")
    run("rpmbuild", "-bb", "--quiet", *define, spec)
    place = folder / "root" / "var" / "lib" / "rpm"
    place.mkdir(parents=True)
    run(
        *("rpm", "--root", folder / "root", "--dbpath", "/var/lib/rpm", "--define", "_db_backend sqlite"),
        *("-i", "--justdb", "--nodeps", "--nosignature", *sorted((folder / "noarch").glob("*.rpm"))),
    )
    return place


def listed(place: Path, backend: str) -> set[tuple[str, str]]:
    """What rpm itself says is in a database: names and versions, an epoch of zero left out."""
    form = "%{NAME} %|EPOCH?{%{EPOCH}:}|%{VERSION}-%{RELEASE}\n"
    told = run("rpm", "--dbpath", place, "--define", f"_db_backend {backend}", "-qa", "--qf", form).decode()
    return {(name, version.removeprefix("0:")) for name, version in (line.split() for line in told.splitlines())}


def headers(place: Path) -> list[bytes]:
    """The headers of a database in SQLite, read by SQLite."""
    connection = apsw.Connection(str(place / "rpmdb.sqlite"))
    try:
        return [row[0] for row in connection.execute("select blob from Packages order by hnum")]
    finally:
        connection.close()


def berkeley(folder: Path, blobs: list[bytes], page: int = 4096) -> Path:
    """A database in Berkeley DB, by its own loader. Returns its folder."""
    needs("db5.3_load", hint=PACKAGES)
    folder.mkdir()
    lines = ["VERSION=3", "format=bytevalue", "type=hash", f"db_pagesize={page}", "HEADER=END"]
    for number, blob in enumerate([struct.pack("<I", len(blobs)), *blobs]):
        lines += [" " + struct.pack("<I", number).hex(), " " + blob.hex()]
    run("db5.3_load", folder / "Packages", stdin="\n".join([*lines, "DATA=END", ""]).encode())
    return folder


def ndb(blobs: list[bytes]) -> bytes:
    """A database in NDB by its layout: a page of slots, then the blobs at multiples of 16 bytes."""
    slots = [struct.pack("<4sIII", b"RpmP", 0, 1, 1), struct.pack("<IIII", len(blobs) + 1, 0, 0, 0)]
    body = b""
    for number, blob in enumerate(blobs, 1):
        block = struct.pack("<4sIII", b"BlbS", number, 0, len(blob)) + blob
        block += bytes(-len(block) % 16) + struct.pack("<III4s", 0, len(blob), 0, b"BlbE").ljust(16, b"\0")
        slots.append(struct.pack("<4sIII", b"Slot", number, (4096 + len(body)) // 16, len(block) // 16))
        body += block
    slots += [struct.pack("<4sIII", b"Slot", 0, 0, 0)] * (256 - len(slots))
    return b"".join(slots) + body


def header(tags: dict[int, str]) -> bytes:
    """A header with these texts only."""
    index = store = b""
    for tag, text in tags.items():
        index += struct.pack(">IIII", tag, 6, len(store), 1)
        store += text.encode() + b"\0"
    return struct.pack(">II", len(tags), len(store)) + index + store
