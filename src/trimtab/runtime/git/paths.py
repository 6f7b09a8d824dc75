"""Which paths a tree may have. What is refused here would leave a folder, or mean Git's own, were it ever written."""

from __future__ import annotations

LONGEST = 4096
DEEPEST = 64


def component(name: str) -> bool:
    """Whether one name between slashes is acceptable."""
    return bool(name) and name not in (".", "..") and name.lower() != ".git" and "/" not in name and "\0" not in name


def checked(path: str) -> tuple[str, ...]:
    """Its names. ValueError says what is wrong."""
    names = tuple(path.split("/"))
    if len(path) > LONGEST or len(names) > DEEPEST:
        raise ValueError(f"path {path[:80]!r}…: at most {LONGEST} characters and {DEEPEST} levels")
    for name in names:
        if not component(name):
            raise ValueError(f"path {path!r}: must be relative, without empty names, '.', '..' and '.git'")
    return names
