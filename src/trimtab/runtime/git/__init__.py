"""Git repositories as controllers use them: one remote, one bare folder of objects, no work tree.

`mirror` first. Objects are read and written by libgit2 in threads; remotes are spoken to by the `git` program, in an
environment of its own: a process can be ended whatever its server does, and has its own CA, keys and limits. pygit2 is
imported when a repository is opened: who only names an error or an Access does not carry it.
"""

from trimtab.runtime.git.access import Access, Remote
from trimtab.runtime.git.errors import (
    AuthFailed,
    BadAddress,
    GitMissing,
    HostKeyUnknown,
    Malformed,
    Moved,
    NoSuchRef,
    Refused,
    RemoteError,
    TimedOut,
    TooLarge,
    Uncertain,
    Unreachable,
)
from trimtab.runtime.git.limits import Limits
from trimtab.runtime.git.mirror import Mirror
from trimtab.runtime.git.objects import CommitInfo, Person, Signer, TreeFile

__all__ = [
    "Access",
    "AuthFailed",
    "BadAddress",
    "CommitInfo",
    "GitMissing",
    "HostKeyUnknown",
    "Limits",
    "Malformed",
    "Mirror",
    "Moved",
    "NoSuchRef",
    "Person",
    "Refused",
    "Remote",
    "RemoteError",
    "Signer",
    "TimedOut",
    "TooLarge",
    "TreeFile",
    "Uncertain",
    "Unreachable",
]
