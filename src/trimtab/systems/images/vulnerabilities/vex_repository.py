"""VEX repositories (github.com/aquasecurity/vex-repo-spec): a folder or a zip file of OpenVEX documents.

`vex-repository.json` says what it is, `index.json` lists a document for each package. A zip file of a Git repository has one
folder around everything. A location outside of the repository is not followed; without an index every JSON file is read.

`each_document` holds one document at a time, however large the repository is; `read_repository` holds them all.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import msgspec

from trimtab.systems.images.vulnerabilities.openvex import LARGEST, VexDocument, VexError, parse
from trimtab.systems.images.vulnerabilities.sources import Limits, documents

MANIFEST, INDEX = "vex-repository.json", "index.json"
LIMITS = Limits(file_bytes=LARGEST, files=200_000, total_bytes=1 << 30, directory_bytes=64 << 20)
SKIPPED = 100


class VexRepository(msgspec.Struct, frozen=True, kw_only=True):
    """What was read, and what not and why (the first ones)."""

    name: str
    documents: tuple[VexDocument, ...]
    skipped: tuple[str, ...] = ()


class Skipped(NamedTuple):
    """A file that does not count."""

    name: str
    why: str


def read_repository(source: Path, *, limits: Limits = LIMITS) -> VexRepository:
    """All documents of a repository; of a single file, that one. SourceError, VexError for a broken index."""
    read: list[VexDocument] = []
    skipped: list[str] = []
    for each in each_document(source, limits=limits):
        if isinstance(each, VexDocument):
            read.append(each)
        elif len(skipped) < SKIPPED:
            skipped.append(f"{each.name[:200]}: {each.why}")
    return VexRepository(name=name_of(source, limits=limits), documents=tuple(read), skipped=tuple(skipped))


def each_document(source: Path, *, limits: Limits = LIMITS) -> Iterator[VexDocument | Skipped]:
    """One after the other, by their names. SourceError, VexError for a broken index, or for a single file."""
    if _is_single(source):
        with source.open("rb") as file:
            single = file.read(limits.file_bytes + 1)
        if len(single) > limits.file_bytes:
            raise VexError(f"it is over {limits.file_bytes:,} bytes")
        yield parse(single)
        return
    source = source.absolute()
    head = _head(source, limits)
    top, listed = head.top, None if head.listing is None else _listed(head.listing)
    awaited = dict(listed or {})
    seen: set[str] = set()
    for full, content, _ in documents(source, limits):
        name = full[len(top) :]
        is_told_of = listed is None or name in listed
        if not full.startswith(top) or name in seen or not is_told_of or posixpath.basename(name) in (INDEX, MANIFEST):
            continue
        seen.add(name)
        form = awaited.pop(name, "openvex")
        try:
            yield _parsed(content)
        except VexError as error:
            yield Skipped(name, str(error) if form == "openvex" else f"the format {form[:40]} is not read")
    for name, form in awaited.items():
        if name not in (INDEX, MANIFEST):
            missing = "there is no such file in the repository"
            yield Skipped(name, missing if form == "openvex" else f"the format {form[:40]} is not read")


def name_of(source: Path, *, limits: Limits = LIMITS) -> str:
    """What the repository calls itself, or the name of its file."""
    if _is_single(source):
        return source.name
    source = source.absolute()
    manifest = _head(source, limits).manifest
    if manifest is None:
        return source.name
    try:
        return _MANIFEST.decode(manifest).name[:200]
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        raise VexError(f"{MANIFEST} of the repository cannot be read") from None


class _Head(NamedTuple):
    """What is before all names, and the two files that tell of the others."""

    top: str
    listing: bytes | None
    manifest: bytes | None


def _head(source: Path, limits: Limits) -> _Head:
    """Other files are not read for it."""
    files: dict[str, bytes] = {}
    top = f"{source}/" if source.is_dir() else ""
    for full, content, _ in documents(source, limits, (INDEX, MANIFEST)):
        folder, _, name = full[len(top) :].rpartition("/")
        if content is not None and full.startswith(top) and name in (INDEX, MANIFEST) and "/" not in folder:
            files.setdefault(full, content)
    if not source.is_dir() and INDEX not in files and MANIFEST not in files:
        top = min(files).partition("/")[0] + "/" if files else ""
    return _Head(top, files.get(top + INDEX), files.get(top + MANIFEST))


def _is_single(source: Path) -> bool:
    return source.suffix == ".json" and source.is_file()


def _parsed(content: bytes | None) -> VexDocument:
    if content is None:
        raise VexError("it is too large, or no JSON")
    return parse(content)


def _listed(index: bytes) -> dict[str, str]:
    """Names of files, with their formats."""
    try:
        packages = _INDEX.decode(index).packages
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        raise VexError(f"{INDEX} of the repository cannot be read") from None
    return {posixpath.normpath(each.location): each.format or "openvex" for each in packages}


class _Package(msgspec.Struct):
    location: str
    format: str | None = None


class _Index(msgspec.Struct):
    packages: list[_Package] = []


class _Manifest(msgspec.Struct):
    name: str = ""


_INDEX = msgspec.json.Decoder(_Index)
_MANIFEST = msgspec.json.Decoder(_Manifest)
