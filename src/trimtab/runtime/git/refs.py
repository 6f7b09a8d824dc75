"""Names of branches and tags: which are allowed, where the remote has them, where we note them. Pure."""

from __future__ import annotations

import re

LONGEST = 250
_BAD = re.compile(r"[\x00-\x20\x7f~^:?*\[\\]|\.\.|@\{|//")  # git check-ref-format
_ID = re.compile(r"[0-9a-f]{40}")
HEAD = "HEAD"


def branch_name(name: str) -> str:
    """The same. ValueError when no branch or tag could be named so."""
    components = name.split("/")
    if (
        not name
        or len(name) > LONGEST
        or _BAD.search(name)
        or name in ("@", HEAD)
        or name.startswith(("-", "/"))
        or name.endswith(("/", "."))
        or any(each.startswith(".") or each.endswith(".lock") for each in components)
    ):
        raise ValueError(f"{name[:80]!r} cannot be the name of a branch or tag")
    return name


def is_commit(name: str) -> bool:
    """Whether it is the id of a commit, and no name."""
    return bool(_ID.fullmatch(name))


def candidates(name: str) -> tuple[str, ...]:
    """Full names at the remote, in the order in which they are meant. A full name means itself."""
    if name == HEAD:
        return (HEAD,)
    if name.startswith(("refs/heads/", "refs/tags/")):
        return (name,)
    return (f"refs/heads/{name}", f"refs/tags/{name}")


def tracking(full: str) -> str:
    """Where we note what the remote had there at the last fetch.

    Branches `a` and `a/b` cannot be at one time, but one may be gone when the other comes: folders and names are told
    apart, so that an old note is never in the way of a new one.
    """
    if full == HEAD:
        return "refs/remote/HEAD"
    _, kind, *folders, name = full.split("/")
    return "/".join(["refs/remote", kind, *(f"d-{folder}" for folder in folders), f"f-{name}"])
