"""How much of a foreign repository, and how much time, is given before we give up."""

from __future__ import annotations

import msgspec

MIB = 1 << 20


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """What a remote may cost."""

    repository_bytes: int = 2048 * MIB
    """On disk, all history packed."""
    files: int = 200_000
    """In one tree; folders count too, so that one of folders only ends as well."""
    blob_bytes: int = 32 * MIB
    """Of one file that is read or written."""
    refs: int = 50_000
    """That a server may name."""
    fetched: int = 2_000
    """Branches and tags of one fetch: git compares each with all."""
    memory_bytes: int = 1024 * MIB
    """Of each process that reads what a server sends."""
    time: float = 600.0
    """Seconds, for one fetch or push."""
    stall: float = 60.0
    """Seconds of silence in a fetch."""
    connect: float = 15.0
    """Seconds until a server is reached (where the transport can tell)."""
    packs: int = 40
    """More packs than this are rolled together after a fetch."""
