"""What a command is about: `pods`, `pod web`, `pod/web service/web`, `deploy,svc`, `all`."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from trimtab.cli.access import Session, unknown
from trimtab.cli.codes import USAGE, Problem
from trimtab.client.discovery import ApiResource


class Target(msgspec.Struct, frozen=True):
    """Objects of one kind: those named, or all when none is."""

    resource: ApiResource
    names: tuple[str, ...] = ()


async def targets(session: Session, words: Sequence[str]) -> list[Target]:
    """Read the words after a command. Problems name the word that is wrong."""
    if not words:
        raise Problem("name a kind, for example `configmaps`", USAGE)
    if any("/" in word for word in words):
        return [await _pair(session, word) for word in words]
    kinds, names = words[0].split(","), tuple(words[1:])
    found: list[ApiResource] = []
    catalogue = await session.catalogue()
    for word in kinds:
        one = catalogue.find(word)
        members = [one] if one is not None else [r for r in catalogue.category(word) if "list" in r.verbs]
        if not members:
            raise unknown(word)
        found += members
    return [Target(resource, names) for resource in dict.fromkeys(found)]


async def _pair(session: Session, word: str) -> Target:
    kind, slash, name = word.partition("/")
    if not slash or not kind or not name or "/" in name:
        raise Problem(f'"{word}" is not of the form kind/name, and others are', USAGE)
    return Target(await session.resource(kind), (name,))


def namespace_of(session: Session, resource: ApiResource, everywhere: bool = False) -> str:
    """Where to look: "" for kinds of the whole cluster, and for all namespaces."""
    return session.namespace if resource.namespaced and not everywhere else ""
