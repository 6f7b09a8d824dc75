"""Documents from files, folders and standard input, each with the file and line where it begins."""

from __future__ import annotations

import itertools
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
import orjson

from trimtab.cli.codes import USAGE, Problem

ENDINGS = (".yaml", ".yml", ".json")
MAX_BYTES = 64 * 1024 * 1024

_MARKER = re.compile(r"^(---|\.\.\.)(?=\s|$)", re.MULTILINE)
_BLANK = re.compile(r"(?:[ \t]*(?:#[^\n]*)?\n)*")


class Manifest(msgspec.Struct, frozen=True):
    """One document and its place: `web.yaml:12`."""

    document: dict[str, Any]
    where: str

    @property
    def kind(self) -> str:
        return str(self.document["kind"])

    @property
    def api_version(self) -> str:
        return str(self.document["apiVersion"])

    @property
    def metadata(self) -> dict[str, Any]:
        metadata: dict[str, Any] = self.document["metadata"]
        return metadata


class Bad(msgspec.Struct, frozen=True):
    """A document that cannot be used, and why."""

    where: str
    problem: str


def read(sources: Sequence[str], *, recursive: bool = False) -> list[Manifest | Bad]:
    """All documents of all sources, in order. A source that is not there is a Problem; a bad document is one of many."""
    found: list[Manifest | Bad] = []
    for source in sources:
        if source == "-":
            found += documents(_decoded(sys.stdin.buffer.read(MAX_BYTES + 1), "standard input"), "-")
            continue
        for path in _files(Path(source), recursive):
            try:
                with path.open("rb") as file:
                    content = file.read(MAX_BYTES + 1)
            except OSError as error:
                raise Problem(f"{path}: {error.strerror}") from None
            found += documents(_decoded(content, str(path)), str(path))
    return found


def documents(text: str, name: str) -> Iterator[Manifest | Bad]:
    """The documents in a text, Lists unpacked."""
    from trimtab.model.yaml import YamlError, load

    for line, part in _split(text):
        where = f"{name}:{line}"
        try:
            # the blank lines in front make the lines of messages those of the file
            document = orjson.loads(part) if part.lstrip().startswith("{") else load("\n" * (line - 1) + part)
        except YamlError as error:
            yield Bad(where, f"is no YAML: {error}")
            continue
        except orjson.JSONDecodeError:
            try:
                document = load("\n" * (line - 1) + part)  # YAML in flow style begins alike
            except YamlError as error:
                yield Bad(where, f"is neither JSON nor YAML: {error}")
                continue
        if document is not None:
            yield from _checked(document, where)


def _checked(document: Any, where: str) -> Iterator[Manifest | Bad]:
    if not isinstance(document, dict):
        yield Bad(where, "is no object")
        return
    for field in ("apiVersion", "kind"):
        if not isinstance(document.get(field), str) or not document[field]:
            yield Bad(where, f"{field} is missing")
            return
    if document["kind"].endswith("List") and isinstance(document.get("items"), list):
        for item in document["items"]:
            yield from _checked(item, where)
        return
    metadata = document.get("metadata")
    if not isinstance(metadata, dict) or not (metadata.get("name") or metadata.get("generateName")):
        yield Bad(where, "metadata.name is missing")
        return
    yield Manifest(document, where)


def _split(text: str) -> Iterator[tuple[int, str]]:
    """The documents of a stream, each with the line of its first content. A marker in the first column always divides."""
    bounds = [0, *(match.end() for match in _MARKER.finditer(text)), len(text) + 1]
    for start, end in itertools.pairwise(bounds):
        stop = end - 3 if end <= len(text) else end
        part = text[start : max(start, stop)]
        blank = _BLANK.match(part)
        skipped = blank.end() if blank else 0
        if part[skipped:].strip():
            yield text.count("\n", 0, start + skipped) + 1, part[skipped:]


def _files(path: Path, recursive: bool) -> list[Path]:
    if not path.exists():
        raise Problem(f"{path} does not exist")
    if not path.is_dir():
        return [path]
    inside = path.rglob("*") if recursive else path.iterdir()
    files = sorted(each for each in inside if each.suffix in ENDINGS and each.is_file())
    if not files:
        raise Problem(f"{path} holds no file that ends in {', '.join(ENDINGS)}")
    return files


def _decoded(content: bytes, name: str) -> str:
    if len(content) > MAX_BYTES:
        raise Problem(f"{name} is larger than {MAX_BYTES} bytes", USAGE)
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise Problem(f"{name} is not UTF-8") from None
