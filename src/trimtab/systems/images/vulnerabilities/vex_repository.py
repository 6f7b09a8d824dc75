"""VEX repositories (github.com/aquasecurity/vex-repo-spec): a folder or a zip file of OpenVEX documents.

`vex-repository.json` says what it is, `index.json` lists a document for each package. A zip file of a Git repository has one
folder around everything. A location outside of the repository is not followed; without an index every JSON file is read.
"""

from __future__ import annotations

import posixpath
from pathlib import Path

import msgspec

from trimtab.systems.images.vulnerabilities.openvex import LARGEST, VexDocument, VexError, parse
from trimtab.systems.images.vulnerabilities.sources import Limits, documents

MANIFEST, INDEX = "vex-repository.json", "index.json"
LIMITS = Limits(file_bytes=LARGEST, files=200_000, total_bytes=1 << 30, directory_bytes=64 << 20)
SKIPPED = 100
_File = VexDocument | bytes | str


class VexRepository(msgspec.Struct, frozen=True, kw_only=True):
    """What was read, and what not and why (the first ones)."""

    name: str
    documents: tuple[VexDocument, ...]
    skipped: tuple[str, ...] = ()


def read_repository(source: Path, *, limits: Limits = LIMITS) -> VexRepository:
    """All documents of a repository; of a single file, that one. SourceError, VexError for a broken index."""
    if source.is_file() and source.suffix == ".json":
        with source.open("rb") as file:
            content = file.read(limits.file_bytes + 1)
        return VexRepository(name=source.name, documents=(parse(content),))
    source = source.absolute()
    files = _within(source, {name: _parsed(name, content) for name, content, _ in documents(source, limits)})
    index = files.get(INDEX)
    listed = _listed(index) if isinstance(index, bytes) else None
    skipped: list[str] = []
    read: list[VexDocument] = []
    for name, form in listed if listed is not None else [(name, "openvex") for name in sorted(files)]:
        found = files.get(posixpath.normpath(name))
        if isinstance(found, VexDocument):
            read.append(found)
        elif form != "openvex":
            skipped.append(f"{name[:200]}: the format {form[:40]} is not read")
        elif isinstance(found, str):
            skipped.append(f"{name[:200]}: {found}")
        elif found is None:
            skipped.append(f"{name[:200]}: there is no such file in the repository")
    manifest = files.get(MANIFEST)
    return VexRepository(
        name=_name(manifest) if isinstance(manifest, bytes) else source.name,
        documents=tuple(read),
        skipped=tuple(skipped[:SKIPPED]),
    )


def _parsed(name: str, content: bytes | None) -> _File:
    """A document, or a text that says why not; the two files that tell of others as they are."""
    if content is None:
        return "it is too large, or no JSON"
    if posixpath.basename(name) in (INDEX, MANIFEST):
        return content
    try:
        return parse(content)
    except VexError as error:
        return str(error)


def _within(source: Path, files: dict[str, _File]) -> dict[str, _File]:
    """By their names in the repository: without the folder's path, or the one folder of a zip file."""
    top = f"{source}/" if source.is_dir() else ""
    if not source.is_dir() and INDEX not in files and MANIFEST not in files:
        found = sorted(name for name in files if name.endswith((f"/{INDEX}", f"/{MANIFEST}")) and name.count("/") == 1)
        top = found[0].partition("/")[0] + "/" if found else ""
    return {name[len(top) :]: file for name, file in files.items() if name.startswith(top)}


def _listed(index: bytes) -> list[tuple[str, str]]:
    try:
        packages = _INDEX.decode(index).packages
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        raise VexError(f"{INDEX} of the repository cannot be read") from None
    return list(dict.fromkeys((each.location, each.format or "openvex") for each in packages))


def _name(manifest: bytes) -> str:
    try:
        return _MANIFEST.decode(manifest).name[:200]
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        raise VexError(f"{MANIFEST} of the repository cannot be read") from None


class _Package(msgspec.Struct):
    location: str
    format: str | None = None


class _Index(msgspec.Struct):
    packages: list[_Package] = []


class _Manifest(msgspec.Struct):
    name: str = ""


_INDEX = msgspec.json.Decoder(_Index)
_MANIFEST = msgspec.json.Decoder(_Manifest)
