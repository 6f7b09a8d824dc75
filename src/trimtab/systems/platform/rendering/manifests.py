"""Documents out of files: read, unfolded, checked, completed. Pure; everything is bounded."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from trimtab.model.plain import NotPlain, check_plain
from trimtab.model.yaml import YamlError, load_all
from trimtab.systems.platform.faults import without_tag

Document = dict[str, Any]

MAX_FILE = 4 << 20
MAX_TOTAL = 16 << 20
MAX_DOCUMENTS = 2000
MAX_NODES = 1_000_000
MAX_LISTS = 8
MARK = len("sha256:") + 16
SERVER_S = ("uid", "resourceVersion", "generation", "creationTimestamp", "managedFields", "selfLink")
"""Metadata that an exported manifest carries and that only the server may say."""


class Unfit(ValueError):  # noqa: N818 - it reads as what is wrong
    """Files that are no manifests; the message names the file and the document."""


class Manifests(msgspec.Struct, frozen=True, kw_only=True):
    """What to apply, and the digest by which it is known again. Not shown: it may hold Secrets."""

    documents: tuple[Document, ...]
    digest: str
    revision: str = ""

    @property
    def mark(self) -> str:
        """Enough of the digest to see a change by, for statuses with many parts."""
        return self.digest[:MARK]

    def __repr__(self) -> str:
        return f"Manifests({len(self.documents)} documents, {self.digest})"


def read(files: Mapping[str, bytes], *, revision: str = "", namespace: str = "") -> Manifests:
    """The documents of all files, in the order of the files' names. Unfit for what cannot be applied. `namespace` is where
    those go that name none: the same files elsewhere are other manifests."""
    if sum(map(len, files.values())) > MAX_TOTAL:
        raise Unfit(f"the files are larger than {MAX_TOTAL >> 20} MiB together: split them")
    documents: list[Document] = []
    seen: dict[tuple[str, str, str, str], str] = {}
    for name in sorted(files):
        for place, document in _documents(name, files[name]):
            _check(place, document)
            key = _key(document)
            if key in seen:
                raise Unfit(f"{place}: {key[1]} {key[3]} is declared already in {seen[key]}")
            seen[key] = place
            documents.append(_cleaned(document))
            if len(documents) > MAX_DOCUMENTS:
                raise Unfit(f"there are more than {MAX_DOCUMENTS} documents: split them")
    encoded = msgspec.json.encode([namespace, documents], order="sorted")
    return Manifests(
        documents=tuple(documents), digest=f"sha256:{hashlib.sha256(encoded).hexdigest()}", revision=revision
    )


def placed(
    documents: Sequence[Document], namespace: str, namespaced: Callable[[Document], bool | None]
) -> list[Document]:
    """With `namespace` in those that live in one and name none. `namespaced` is None when nobody knows the kind: then it is
    left as it is, and the cluster says what is wrong. Unfit when two become one by it."""
    made: list[Document] = []
    seen: set[tuple[str, str, str, str]] = set()
    for document in documents:
        metadata = document["metadata"]
        known = namespaced(document)
        if known and not metadata.get("namespace"):
            document = {**document, "metadata": {**metadata, "namespace": namespace}}
        elif known is False and "namespace" in metadata:
            kept = {name: value for name, value in metadata.items() if name != "namespace"}
            document = {**document, "metadata": kept}
        key = _key(document)
        if key in seen:
            raise Unfit(f"{document['kind']} {metadata['name']} is declared twice in namespace {namespace}")
        seen.add(key)
        made.append(document)
    return made


def defined(documents: Sequence[Document]) -> dict[tuple[str, str], bool]:
    """The kinds that the documents themselves define, by group and kind, and whether they are namespaced."""
    found: dict[tuple[str, str], bool] = {}
    for document in documents:
        if document["kind"] == "CustomResourceDefinition" and isinstance(spec := document.get("spec"), dict):
            names = spec.get("names")
            if isinstance(names, dict):
                found[str(spec.get("group")), str(names.get("kind"))] = spec.get("scope") != "Cluster"
    return found


def _documents(name: str, content: bytes) -> Iterator[tuple[str, Document]]:
    if len(content) > MAX_FILE:
        raise Unfit(f"{name}: is larger than {MAX_FILE >> 20} MiB")
    try:
        for number, document in enumerate(load_all(content.decode("utf-8-sig"), nodes=MAX_NODES), 1):
            _unfolding(f"{name}, document {number}", document, {})
            if document is not None:
                yield from _unfolded(f"{name}, document {number}", document, 0)
    except UnicodeDecodeError:
        raise Unfit(f"{name}: is not UTF-8 text") from None
    except YamlError as error:
        raise Unfit(f"{name}: {without_tag(str(error))}") from None


def _unfolded(place: str, document: Any, depth: int) -> Iterator[tuple[str, Document]]:
    if not isinstance(document, dict):
        raise Unfit(f"{place}: is no object of Kubernetes, but {type(document).__name__}")
    kind = document.get("kind")
    named = isinstance(document.get("metadata"), dict) and "name" in document["metadata"]
    if isinstance(kind, str) and kind.endswith("List") and isinstance(document.get("items"), list) and not named:
        if depth >= MAX_LISTS:
            raise Unfit(f"{place}: lists in lists, deeper than {MAX_LISTS}")
        for number, item in enumerate(document["items"], 1):
            yield from _unfolded(f"{place}, item {number}", item, depth + 1)
        return
    yield place, document


def _unfolding(place: str, value: Any, known: dict[int, int]) -> int:
    """How many values it is when every alias is written out: a few lines of YAML can mean billions."""
    if not isinstance(value, dict | list):
        return 1
    size = known.get(id(value))
    if size is None:
        known[id(value)] = MAX_NODES  # until it is known: what contains itself has no end
        inner = value.values() if isinstance(value, dict) else value
        size = known[id(value)] = 1 + sum(_unfolding(place, each, known) for each in inner)
    if size > MAX_NODES:
        raise Unfit(f"{place}: its aliases unfold to more than {MAX_NODES} values")
    return size


def _check(place: str, document: Document) -> None:
    try:
        check_plain(document)
    except NotPlain as error:
        raise Unfit(f"{place}: {error}") from None
    for field in ("apiVersion", "kind"):
        if not isinstance(document.get(field), str) or not document[field]:
            raise Unfit(f"{place}: {field} is missing")
    metadata = document.get("metadata")
    if not isinstance(metadata, dict) or not isinstance(metadata.get("name"), str) or not metadata["name"]:
        hint = (
            ": generateName makes another object each time"
            if isinstance(metadata, dict) and metadata.get("generateName")
            else ""
        )
        raise Unfit(f"{place}: metadata.name is missing{hint}")
    for field in ("labels", "annotations"):
        held = metadata.get(field)
        if held is not None and not (isinstance(held, dict) and all(isinstance(value, str) for value in held.values())):
            raise Unfit(f"{place}: metadata.{field} must be texts by name; quote numbers and booleans")
    if not isinstance(metadata.get("namespace", ""), str):
        raise Unfit(f"{place}: metadata.namespace must be text")


def _cleaned(document: Document) -> Document:
    metadata = {name: value for name, value in document["metadata"].items() if name not in SERVER_S}
    rest = {name: value for name, value in document.items() if name not in ("metadata", "status")}
    return {**rest, "metadata": metadata}


def _key(document: Document) -> tuple[str, str, str, str]:
    metadata = document["metadata"]
    group = document["apiVersion"].rpartition("/")[0]
    return group, document["kind"], str(metadata.get("namespace") or ""), metadata["name"]
