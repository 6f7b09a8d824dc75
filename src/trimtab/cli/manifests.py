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
MAX_NODES = 2_000_000

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

    @property
    def namespace(self) -> str:
        """As it says itself; a resource of the hub may name its project instead, which is the same word."""
        said = self.metadata.get("namespace") or self.metadata.get("project") or ""
        return said if isinstance(said, str) else ""


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
    from trimtab.model.yaml import YamlError

    for line, part in _split(text):
        where = f"{name}:{line}"
        try:
            document = _parsed(part)
        except YamlError:
            yield Bad(where, f"is no YAML: {_complaint(part, line)}")
            continue
        if _nodes(document, {}) > MAX_NODES:
            yield Bad(where, "its aliases make it too large")
        elif document is not None:
            yield from _checked(document, where)


def _parsed(text: str) -> Any:
    from trimtab.model.yaml import load

    if text.startswith("{"):
        try:
            return orjson.loads(text)  # a hundred times faster
        except orjson.JSONDecodeError:
            pass  # YAML in flow style begins alike
    return load(text)


def _complaint(text: str, line: int) -> str:
    """What is wrong with a document; blank lines in front make the line in it that of the file."""
    from trimtab.model.yaml import YamlError, load

    try:
        load("\n" * (line - 1) + text)
    except YamlError as error:
        return str(error)
    return "it cannot be read"


def _nodes(value: Any, known: dict[int, int]) -> int:
    """How many values there are once aliases are written out; each shared one is counted once and multiplied."""
    if not isinstance(value, dict | list):
        return 1
    if id(value) not in known:
        known[id(value)] = 0  # a circle adds nothing here, and is no JSON later
        inside = value.values() if isinstance(value, dict) else value
        known[id(value)] = 1 + sum(_nodes(item, known) for item in inside)
    return known[id(value)]


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
    bounds = [0, *(match.end() for match in _MARKER.finditer(text)), len(text) + 3]
    line, counted = 1, 0
    for start, end in itertools.pairwise(bounds):
        part = text[start : end - 3]  # the marker itself is the next one's
        blank = _BLANK.match(part)
        skipped = blank.end() if blank else 0
        line, counted = line + text.count("\n", counted, start + skipped), start + skipped
        if part[skipped:].strip():
            yield line, part[skipped:]


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
