"""Who changed an object, as far as it tells: the author of the commit that carries the change. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from trimtab.systems.gitops.acting import MANAGER
from trimtab.systems.gitops.kinds import Committer
from trimtab.systems.gitops.kinds.fields import AUTHOR

Author = tuple[str, str]
"""Name and mail."""

_PERSON = re.compile(r" *([^<>\x00-\x1f]{1,200}?) *<([^<>\s\x00-\x1f]{1,200})> *")
_CRUFT = " .,:;\"'"
"""What Git takes off the ends of a name: nothing may be left without it."""


def author_of(live: Mapping[str, Any] | None) -> Author | None:
    """By its annotation; else by who wrote it last, of those that are not we. None when nobody is known."""
    metadata = (live or {}).get("metadata") or {}
    said = (metadata.get("annotations") or {}).get(AUTHOR)
    if isinstance(said, str):
        match = _PERSON.fullmatch(said)
        if match and match[1].strip(_CRUFT):
            return match[1], match[2]
        if said.strip():
            return _named(said)
    entries = [
        entry
        for entry in metadata.get("managedFields") or ()
        if isinstance(entry, dict) and entry.get("manager") != MANAGER and not entry.get("subresource")
    ]
    latest = max(entries, key=lambda entry: str(entry.get("time", "")), default=None)
    return _named(str(latest["manager"])) if latest is not None and latest.get("manager") else None


def together(authors: Iterable[Author | None], committer: Committer) -> tuple[Author, list[str]]:
    """The author of one commit of many changes, and trailers for the others when they were several."""
    known = list(dict.fromkeys(author for author in authors if author is not None))
    if len(known) == 1:
        return known[0], []
    return (committer.name, committer.email), [f"Co-authored-by: {name} <{mail}>" for name, mail in sorted(known)[:20]]


def _named(text: str) -> Author:
    """A user or a manager: `ann@example.com`, `kubectl-edit`."""
    plain = re.sub(r"[<>\x00-\x1f]", "", text).strip(_CRUFT)[:200].strip(_CRUFT) or "somebody"
    mail = (
        plain if re.fullmatch(r"[^@\s]+@[^@\s]+", plain) else f"{re.sub(r'[^A-Za-z0-9._+-]', '-', plain)}@users.invalid"
    )
    return plain.partition("@")[0] if "@" in plain else plain, mail
