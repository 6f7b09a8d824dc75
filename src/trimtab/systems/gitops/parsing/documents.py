"""What comes out of a revision's files: documents with their places, and the problems that stand against them."""

from __future__ import annotations

from typing import Any

import msgspec

from trimtab.systems.gitops.parsing.identity import Identity


class SourceDocument(msgspec.Struct, frozen=True):
    """One resource in a file. `index` counts the file's documents from 0, empty ones too; `item` is its place in a `List`
    (-1: it is a document of its own). `digest` is of the document as it is read: comments and layout do not count."""

    path: str
    index: int
    line: int
    document: dict[str, Any]
    identity: Identity
    digest: str
    item: int = -1

    @property
    def place(self) -> str:
        return f"{self.path}:{self.line}"


class Problem(msgspec.Struct, frozen=True, order=True):
    """Why a file, or a document in it, cannot be taken. `line` 0: the file as a whole."""

    path: str
    line: int
    message: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.message}" if self.line else f"{self.path}: {self.message}"


class ParsedFile(msgspec.Struct, frozen=True):
    """One file's bytes, read: the same bytes are always the same. Paths in it are "": `Parsed` has them."""

    documents: tuple[SourceDocument, ...] = ()
    problems: tuple[Problem, ...] = ()
    foreign: int = 0
    """The line of the first thing that is no document (no apiVersion and kind); 0 when there is none."""


class Claim(msgspec.Struct, frozen=True):
    """What looks like a document and is none, for its file is named by another one (`by`, a path)."""

    document: SourceDocument
    by: str


class Parsed(msgspec.Struct, frozen=True):
    """A revision. Documents are in the order of their paths; artifacts are the files that documents name."""

    documents: tuple[SourceDocument, ...] = ()
    problems: tuple[Problem, ...] = ()
    artifacts: tuple[str, ...] = ()
    files: int = 0
    """How many files there were to read, whether or not they had documents."""
    claimed: tuple[Claim, ...] = ()
    """What the artifacts among them would be, were they not named."""
