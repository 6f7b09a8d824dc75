"""From the parsed files of a revision to the revision: artifacts told from documents, scopes settled, duplicates found."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import msgspec

from trimtab.systems.gitops.parsing.beside import PathError, artifact_path
from trimtab.systems.gitops.parsing.documents import Claim, Parsed, ParsedFile, Problem, SourceDocument
from trimtab.systems.gitops.parsing.identity import Identity
from trimtab.systems.gitops.parsing.ignoring import NOTHING, Ignore, is_json, is_read
from trimtab.systems.gitops.parsing.reading import LIMITS, Limits, parse_file

Artifacts = Callable[[dict[str, Any]], Iterable[str]]
"""The files that a document names, relative to it."""

Home = Callable[[str], str]
"""The group whose objects a group shows once more, by another name; else the group itself."""

Namespaced = Callable[[str, str], bool | None]
"""Whether a kind (group, kind) is in namespaces; None: not known here."""


def parse(
    files: Mapping[str, bytes],
    *,
    ignore: Ignore = NOTHING,
    artifacts: Artifacts | None = None,
    namespace: str = "",
    namespaced: Namespaced | None = None,
    limits: Limits = LIMITS,
) -> Parsed:
    """A whole revision, without a cache."""
    read = {
        path: parse_file(data, json=is_json(path), limits=limits)
        for path, data in files.items()
        if is_read(path, ignore)
    }
    return gather(read, artifacts=artifacts, namespace=namespace, namespaced=namespaced)


def gather(
    files: Mapping[str, ParsedFile],
    *,
    artifacts: Artifacts | None = None,
    namespace: str = "",
    namespaced: Namespaced | None = None,
    home: Home = lambda group: group,
) -> Parsed:
    """Put files (of `is_read` paths) together. A namespaced document without a namespace gets `namespace`."""
    named = _artifacts(files, artifacts) if artifacts is not None else {}
    documents: list[SourceDocument] = []
    claimed: list[Claim] = []
    problems: list[Problem] = []

    def placed(path: str, found: SourceDocument) -> SourceDocument:
        identity = _settled(found.identity, namespace, namespaced)
        return SourceDocument(path, found.index, found.line, found.document, identity, found.digest, found.item)

    for path in sorted(files):
        if path in named:
            claimed += [Claim(placed(path, found), named[path]) for found in files[path].documents]
            continue
        if not path.isascii() and path != (readable := path.encode(errors="surrogateescape").decode(errors="replace")):
            problems.append(Problem(readable, 0, "has a name that is not UTF-8: rename the file, or its folder"))
            continue
        file = files[path]
        problems += [Problem(path, problem.line, problem.message) for problem in file.problems]
        if file.foreign:
            message = "is no document: it needs apiVersion and kind, or a line in .trimtabignore"
            problems.append(Problem(path, file.foreign, message))
        documents += [placed(path, found) for found in file.documents]
    problems += _duplicates(documents, home)
    return Parsed(tuple(documents), tuple(sorted(problems)), tuple(sorted(named)), len(files), tuple(claimed))


def confine(documents: Iterable[SourceDocument], namespace: str) -> list[Problem]:
    """What is outside of the one namespace (project) that a sync may write: also everything of the cluster."""
    return [
        Problem(document.path, document.line, _outside(document.identity, namespace))
        for document in documents
        if document.identity.namespace != namespace
    ]


def unsynced(documents: Iterable[SourceDocument]) -> list[Problem]:
    """Fields that people mean when they write them, and that no sync applies: silence would look like consent."""
    return [
        Problem(document.path, document.line, f"metadata.{name}: is not synced, for {why}; remove it from the file")
        for document in documents
        for name, why in _UNSYNCED.items()
        if document.document["metadata"].get(name)
    ]


_UNSYNCED = {
    "finalizers": "controllers add and take away their own",
    "ownerReferences": "an owner is known by its uid, which no file can know",
}


def _outside(identity: Identity, namespace: str) -> str:
    where = f'is in "{identity.namespace}"' if identity.namespace else "is of the whole cluster"
    return f'{identity} {where}: this sync writes in "{namespace}" only, unless it has a service account'


def _settled(identity: Identity, namespace: str, namespaced: Namespaced | None) -> Identity:
    scope = namespaced(identity.group, identity.kind) if namespaced is not None else None
    if scope is True and not identity.namespace and namespace:
        return msgspec.structs.replace(identity, namespace=namespace)
    if scope is False and identity.namespace:
        return msgspec.structs.replace(identity, namespace="")
    return identity


def _duplicates(documents: Iterable[SourceDocument], home: Home) -> list[Problem]:
    first: dict[Identity, SourceDocument] = {}
    homes: dict[str, str] = {}
    problems = []
    for document in documents:
        identity = document.identity
        group = homes.get(identity.group)
        if group is None:
            group = homes[identity.group] = home(identity.group)
        same = identity if group == identity.group else msgspec.structs.replace(identity, group=group)
        before = first.setdefault(same, document)
        if before is not document:
            also = "" if before.identity == identity else f", as {before.identity},"
            message = f"{identity} is in {before.place}{also} too: keep one of them"
            problems.append(Problem(document.path, document.line, message))
    return problems


def _artifacts(files: Mapping[str, ParsedFile], artifacts: Artifacts) -> dict[str, str]:
    """The paths that documents name, each with one that names it. A name that leaves its folder claims nothing, and neither
    does a file that is an artifact itself, whatever it looks like."""
    claims: dict[str, set[str]] = {}
    for path, file in files.items():
        for document in file.documents:
            for name in artifacts(document.document):
                with contextlib.suppress(PathError):
                    claimed = artifact_path(path, name)
                    if claimed != path:
                        claims.setdefault(claimed, set()).add(path)
    # named by documents alone, as nearly all are
    decided = {path: True for path, by in claims.items() if claims.keys().isdisjoint(by)}
    for path in sorted(claims.keys() - decided.keys()):
        if path not in decided:
            _decide(path, claims, decided)
    return {path: min(by for by in claims[path] if not decided.get(by)) for path in claims if decided[path]}


def _decide(path: str, claims: Mapping[str, Iterable[str]], decided: dict[str, bool]) -> None:
    """Whether the path is an artifact, and those that it depends on: one that a document names. The files of a chain may be
    many, so this keeps its own stack; in a circle, the file that is met first is a document."""
    asked: list[tuple[str, list[str]]] = []

    def ask(path: str) -> None:
        decided[path] = False
        asked.append((path, sorted(claims.get(path, ()), reverse=True)))

    ask(path)
    while asked:
        at, left = asked[-1]
        if not left:
            asked.pop()
        elif left[-1] not in decided:
            ask(left[-1])
        elif decided[left[-1]]:
            left.pop()
        else:
            decided[at] = True
            asked.pop()
