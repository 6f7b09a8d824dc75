"""libgit2, imported late and told to read no configuration but the repository's own."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any


@functools.cache
def libgit2() -> Any:
    """The module pygit2. Its settings are of the whole process, in which nobody else uses it."""
    import pygit2
    from pygit2.enums import ConfigLevel

    for level in (ConfigLevel.SYSTEM, ConfigLevel.XDG, ConfigLevel.GLOBAL, ConfigLevel.PROGRAMDATA):
        pygit2.settings.search_path[level] = ""
    return pygit2


def opened(folder: Path) -> Any:
    """A repository object is of one thread: open one for each piece of work, which costs a fraction of a millisecond."""
    return libgit2().Repository(str(folder))


def created(folder: Path) -> None:
    """An empty bare repository, without sample hooks; one that is there stays."""
    git = libgit2()
    flags = git.enums.RepositoryInitFlag
    git.init_repository(str(folder), bare=True, flags=flags.BARE | flags.MKPATH, mode=0o700, initial_head="main")
