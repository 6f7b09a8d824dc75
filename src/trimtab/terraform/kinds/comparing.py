"""A snapshot beside the server that it was taken of: which kinds are new, which have changed, which are gone."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from trimtab.terraform.kinds.definition import Definition
from trimtab.terraform.kinds.snapshot import Snapshot, packed


@dataclass(frozen=True, slots=True)
class Differences:
    """Names of definitions, in order."""

    new: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    gone: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.new or self.changed or self.gone)


def digests(definitions: Iterable[Definition]) -> dict[str, str]:
    """By name, of all that is known of each."""
    return {one.name: hashlib.sha256(packed(one)).hexdigest() for one in definitions}


def kept_digests(snapshot: Snapshot) -> dict[str, str]:
    """The same, of a file."""
    return {name: hashlib.sha256(snapshot.packed(name)).hexdigest() for name in snapshot.heads}


def compared(known: Mapping[str, str], served: Mapping[str, str]) -> Differences:
    """Of two such digests."""
    return Differences(
        new=tuple(sorted(served.keys() - known.keys())),
        changed=tuple(sorted(name for name in served.keys() & known.keys() if served[name] != known[name])),
        gone=tuple(sorted(known.keys() - served.keys())),
    )


def titled(head: Mapping[str, Any]) -> str:
    """`Widget of example.com/v1`, of a definition or the head of one."""
    group = f"{head['group']}/" if head["group"] else ""
    return f"{head['kind']} of {group}{head['version']}"
