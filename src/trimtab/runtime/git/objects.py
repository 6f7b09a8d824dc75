"""What a repository is made of, as plain values."""

from __future__ import annotations

import enum
from datetime import datetime
from typing import Protocol

import msgspec


class FileKind(enum.StrEnum):
    """What an entry of a tree is."""

    FILE = "file"
    EXECUTABLE = "executable"
    SYMLINK = "symlink"
    SUBMODULE = "submodule"


class TreeFile(msgspec.Struct, frozen=True, kw_only=True):
    """An entry of a tree. A symlink's bytes are its target; a submodule's oid is a commit of another repository."""

    oid: str
    size: int
    mode: int

    @property
    def kind(self) -> FileKind:
        return _KINDS.get(self.mode, FileKind.FILE)

    @property
    def regular(self) -> bool:
        return self.mode not in (0o120000, 0o160000)


_KINDS = {
    0o100755: FileKind.EXECUTABLE,
    0o120000: FileKind.SYMLINK,
    0o160000: FileKind.SUBMODULE,
}


class Person(msgspec.Struct, frozen=True, kw_only=True):
    """Who wrote or committed. Without a time it is now."""

    name: str
    email: str
    time: datetime | None = None

    def __post_init__(self) -> None:
        for what, text in (("name", self.name), ("email", self.email)):
            if any(character in text for character in "<>\n\r\0"):
                raise ValueError(f"{what}: {text!r} must be without '<', '>' and line breaks")
        if not self.name.strip(" .,:;\"'"):
            raise ValueError("name: must not be empty")


class CommitInfo(msgspec.Struct, frozen=True, kw_only=True):
    """What a commit says of itself."""

    id: str
    author: Person
    committer: Person
    time: datetime
    """When it was committed, by the committer's own clock."""
    message: str
    parents: tuple[str, ...]
    tree: str
    signature: str | None = None
    """Armoured, as the commit carries it. `signatures.verify` says what it is worth."""
    signed: bytes = b""
    """The bytes that the signature is about."""


class Signer(Protocol):
    """Makes the armoured signature of a commit's bytes. It may block: it is called in a thread."""

    def sign(self, payload: bytes) -> str: ...
