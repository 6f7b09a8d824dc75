"""Commits and blobs: finding, reading, making. All of it blocks; it runs in threads."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

from trimtab.runtime.git.engine import libgit2
from trimtab.runtime.git.errors import NoSuchRef, TooLarge
from trimtab.runtime.git.limits import Limits
from trimtab.runtime.git.objects import CommitInfo, Person, Signer
from trimtab.runtime.git.refs import candidates, tracking
from trimtab.runtime.git.trees import commit_of, loaded

_SOME_ID = re.compile(r"[0-9a-f]{4,40}")
_OFFSETS = 24 * 60


def resolved(repository: Any, revision: str) -> str:
    for full in candidates(revision):
        name = tracking(full)
        if _is_reference(name) and (reference := repository.references.get(name)) is not None:
            return peeled(repository, reference.target)
    if _SOME_ID.fullmatch(revision):
        try:
            return peeled(repository, repository[revision].id)
        except KeyError:
            pass
        except ValueError:
            raise NoSuchRef(f"{revision!r} begins the ids of several objects; give more digits") from None
    raise NoSuchRef(f"{revision[:80]!r} is no branch, tag or commit that was fetched")


def _is_reference(name: str) -> bool:
    return bool(libgit2().reference_is_valid_name(name))


def peeled(repository: Any, target: Any) -> str:
    """The commit that an id is, or that the tag of that id is about. NoSuchRef when it is neither."""
    try:
        found = loaded(repository, target)
    except (KeyError, ValueError):
        raise NoSuchRef(f"object {target} is not in the mirror") from None
    try:
        return str(found.peel(libgit2().Commit).id)
    except (libgit2().InvalidSpecError, libgit2().GitError, ValueError):
        raise NoSuchRef(f"object {target} is a {found.type_str} and no commit") from None


def follows(repository: Any, commit: str, ancestor: str | None) -> bool:
    """Whether `ancestor` is in the history of `commit`, or is it. Without one, everything follows."""
    last = commit_of(repository, commit).id
    if ancestor is None:
        return True
    first = commit_of(repository, ancestor).id
    return bool(first == last or repository.descendant_of(last, first))


def contents(
    repository: Any, oids: Iterable[str], most: int, limits: Limits, sizes: Mapping[str, int]
) -> dict[str, bytes]:
    """`sizes` are of files that were listed: they need not be asked for again."""
    database = repository.odb
    blob = libgit2().enums.ObjectType.BLOB
    wanted, total = [], 0
    for oid in oids:
        size = sizes.get(oid, -1)
        if size < 0:
            try:
                kind, size = database.read_header(oid)
            except (KeyError, ValueError):
                raise NoSuchRef(f"object {oid[:80]!r} is not in the mirror") from None
            if kind != blob:
                raise NoSuchRef(f"object {oid} is no file")
        if size > limits.blob_bytes:
            raise TooLarge(f"a file of {size} bytes is larger than the {limits.blob_bytes} bytes that are allowed")
        total += size
        wanted.append(oid)
    if total > most:
        raise TooLarge(f"the files are {total} bytes together, which is more than the {most} bytes that are allowed")
    try:
        return {oid: database.read(oid)[1] for oid in wanted}
    except (KeyError, ValueError) as error:  # listed, and the mirror was made anew since
        raise NoSuchRef(f"an object is not in the mirror: {error}") from None


def described(repository: Any, oid: str) -> CommitInfo:
    commit = commit_of(repository, oid)
    signature, signed = commit.gpg_signature
    committer = _person(commit.committer)
    return CommitInfo(
        id=str(commit.id),
        author=_person(commit.author),
        committer=committer,
        time=committer.time or datetime.fromtimestamp(0, UTC),
        message=commit.raw_message.decode(errors="replace"),
        parents=tuple(str(each) for each in commit.parent_ids),
        tree=str(commit.tree_id),
        signature=signature.decode(errors="replace") if signature else None,
        signed=signed or b"",
    )


def _person(signature: Any) -> Person:
    """As it can be shown, whatever a hostile commit says."""
    name = re.sub(r"[<>\x00-\x1f]", " ", signature.raw_name.decode(errors="replace")).strip()
    email = re.sub(r"[<>\x00-\x1f]", " ", signature.raw_email.decode(errors="replace")).strip()
    offset = signature.offset if abs(signature.offset) < _OFFSETS else 0
    try:
        when = datetime.fromtimestamp(signature.time, timezone(timedelta(minutes=offset)))
    except (ValueError, OverflowError, OSError):
        when = datetime.fromtimestamp(0, UTC)
    return Person(name=name if name.strip(" .,:;\"'") else "(nobody)", email=email, time=when)


def made(
    repository: Any,
    parent: str | None,
    tree: Any,
    message: str,
    author: Person,
    committer: Person,
    sign: Signer | None,
    now: datetime,
) -> str:
    people = _signature(author, now), _signature(committer, now)
    parents = [] if parent is None else [parent]
    if sign is None:
        return str(repository.create_commit(None, *people, message, tree, parents))
    text = repository.create_commit_string(*people, message, tree, parents)
    return str(repository.create_commit_with_signature(text, sign.sign(text.encode()).rstrip("\n"), "gpgsig"))


def _signature(person: Person, now: datetime) -> Any:
    when = person.time or now
    offset = when.utcoffset() or timedelta()
    seconds = int(when.timestamp())
    return libgit2().Signature(person.name, person.email, seconds, int(offset.total_seconds() // 60), "utf-8")
