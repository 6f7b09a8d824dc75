"""From one file's bytes to its documents. Pure and of the bytes alone: whoever reads Git may keep what comes out by blob.

The input is foreign and bounded: size, number of documents, nesting, and what aliases unfold to.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from trimtab.model import yaml
from trimtab.model.plain import NotPlain as NotJson
from trimtab.model.plain import check_plain
from trimtab.systems.gitops.parsing.documents import ParsedFile, Problem, SourceDocument
from trimtab.systems.gitops.parsing.identity import identity_of
from trimtab.systems.gitops.parsing.plain import NotPlain
from trimtab.systems.gitops.parsing.plain import documents as plain_documents


class Limits(msgspec.Struct, frozen=True):
    """How much one file may hold."""

    file_bytes: int = 4 * 1024 * 1024
    documents: int = 10_000
    nodes: int = 200_000


LIMITS = Limits()
QUICK = 64 * 1024
"""Bytes of a file that may be quick to read."""


class Unreadable(ValueError):  # noqa: N818
    """A document is not what a resource looks like."""


def parse_file(data: bytes, *, json: bool = False, limits: Limits = LIMITS) -> ParsedFile:
    """The documents in a file's bytes; their paths are ""."""
    quick = parse_quickly(data, json=json, limits=limits)
    return quick if quick is not None else _parsed(_values(data, json, limits), limits)


def parse_quickly(data: bytes, *, json: bool = False, limits: Limits = LIMITS) -> ParsedFile | None:
    """The same, when it takes no more than a fraction of a millisecond; else None."""
    if len(data) > min(QUICK, limits.file_bytes):
        return None
    if json:
        return _parsed(_values(data, json, limits), limits)
    try:
        return _parsed(plain_documents(data.decode("utf-8-sig")), limits, plain=True)
    except (NotPlain, UnicodeDecodeError):
        return None


def _parsed(values: Iterable[tuple[int, Any]], limits: Limits, *, plain: bool = False) -> ParsedFile:
    """`plain`: the values are only what JSON can say."""
    documents: list[SourceDocument] = []
    problems: list[Problem] = []
    foreign = 0
    line = 0
    try:
        for index, (line, value) in enumerate(values):
            if value is None:
                continue
            if index >= limits.documents:
                raise Unreadable(f"has more than {limits.documents} documents: split the file")
            if not _is_document(value):
                foreign = foreign or line
                continue
            try:
                documents += _resources(value, index, line, plain)
            except Unreadable as error:
                problems.append(Problem("", line, str(error)))
    except yaml.YamlError as error:
        at, message = _placed(str(error))
        problems.append(Problem("", at, f"is not YAML: {message}"))
    except Unreadable as error:
        problems.append(Problem("", 0, str(error)))
    if len(documents) > limits.documents:
        problems.append(Problem("", 0, f"has more than {limits.documents} documents: split the file"))
    return ParsedFile(tuple(documents), tuple(problems), foreign)


def digest_of(document: Any) -> str:
    """Of what a document says: the order of its keys does not count."""
    return hashlib.sha256(msgspec.json.encode(document, order="deterministic")).hexdigest()


def _values(data: bytes, json: bool, limits: Limits) -> Iterator[tuple[int, Any]]:
    if len(data) > limits.file_bytes:
        raise Unreadable(f"is larger than {limits.file_bytes // 1024} KiB")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise Unreadable(f"is not UTF-8: byte {error.start}") from None
    if json:
        if text.strip():
            yield 1, _json(text)
    else:
        yield from yaml.load_each(text, nodes=limits.nodes)


def _json(text: str) -> Any:
    import json

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) != len(pairs):
            names = [name for name, _ in pairs]
            counted = Counter(names)
            twice = next(name for name in names if counted[name] > 1)
            raise Unreadable(f'is not JSON that can be told: found duplicate key "{twice}"')
        return found

    try:
        return json.loads(text, object_pairs_hook=once)
    except RecursionError:
        raise Unreadable("is nested too deeply") from None
    except ValueError as error:
        if isinstance(error, Unreadable):
            raise
        raise Unreadable(f"is not JSON: {error}") from None


def _placed(message: str) -> tuple[int, str]:
    """libyaml's messages begin with their line."""
    head, _, rest = message.partition(": ")
    number = head.removeprefix("line ")
    return (int(number), rest) if number != head and number.isdigit() else (0, message)


def _is_document(value: Any) -> bool:
    return isinstance(value, dict) and "apiVersion" in value and "kind" in value


def _resources(value: dict[str, Any], index: int, line: int, plain: bool) -> Iterator[SourceDocument]:
    """The document, or those that a list holds."""
    kind = value["kind"]
    items = value.get("items")
    if not (isinstance(kind, str) and kind.endswith("List") and isinstance(items, list)):
        yield _resource(value, index, line, -1, plain)
        return
    for number, item in enumerate(items):
        if isinstance(item, dict) and kind != "List":  # a typed list says once what its items are
            item = {"apiVersion": value["apiVersion"], "kind": kind.removesuffix("List"), **item}
        try:
            if not _is_document(item):
                raise Unreadable("needs apiVersion and kind")
            yield _resource(item, index, line, number, plain)
        except Unreadable as error:
            raise Unreadable(f"items[{number}]: {error}") from None


def _resource(document: dict[str, Any], index: int, line: int, item: int, plain: bool) -> SourceDocument:
    _check_words(document)
    if not plain:
        try:
            check_plain(document)
        except NotJson as error:
            raise Unreadable(str(error)) from None
    try:
        digest = digest_of(document)
    except (UnicodeError, ValueError) as error:
        raise Unreadable(f"cannot be written as JSON: {error}") from None
    return SourceDocument("", index, line, document, identity_of(document), digest, item)


def _check_words(document: dict[str, Any]) -> None:
    version, kind, metadata = document["apiVersion"], document["kind"], document.get("metadata")
    if not isinstance(version, str) or not version or version.count("/") > 1 or not all(version.split("/")):
        raise Unreadable(f"apiVersion: {version!r} is not a version: write `v1` or `group/v1`")
    if not isinstance(kind, str) or not kind.isalnum():
        raise Unreadable(f"kind: {kind!r} is not the name of a kind")
    if not isinstance(metadata, dict):
        raise Unreadable("metadata: needs a mapping with a name")
    name = metadata.get("name")
    if not isinstance(name, str) or not name or len(name) > 253 or "/" in name:
        hint = " (generateName cannot be synced)" if "generateName" in metadata else ""
        raise Unreadable(
            f"metadata.name: needs a name{hint}" if name is None else f"metadata.name: {name!r} is no name"
        )
    for word in ("namespace", "project"):
        value = metadata.get(word)
        if value is not None and (not isinstance(value, str) or len(value) > 253 or "/" in value):
            raise Unreadable(f"metadata.{word}: {value!r} is no name")
    namespace, project = metadata.get("namespace"), metadata.get("project")
    if namespace and project and namespace != project:
        raise Unreadable(f'metadata.project: is "{project}", but metadata.namespace is "{namespace}": give one of them')
