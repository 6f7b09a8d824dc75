"""What a provider's message says was pushed: which branches and tags, and which paths as far as it tells. Pure.

Messages are cut (GitLab names 20 commits, GitHub 2,048), and Bitbucket and Azure Repos name no paths: then `paths` is None, and a
path filter cannot leave the push out.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from trimtab.runtime.git.refs import HEAD

MAX_CHANGES = 1000
_HEADS, _TAGS = "refs/heads/", "refs/tags/"


class Push(msgspec.Struct, frozen=True):
    """`delivery` is the provider's name for this message; "" when it has none."""

    branches: frozenset[str]
    paths: frozenset[str] | None = None
    delivery: str = ""
    tags: frozenset[str] = frozenset()


class NoPush(Exception):  # noqa: N818 - it reads as what it is
    """A message of another sort, such as a ping: nothing is to be done."""


def push_of(provider: str, headers: Mapping[str, str], body: bytes) -> Push:
    """NoPush for messages that tell of none; ValueError for what is no message of this provider."""
    try:
        message = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise ValueError("the body is not JSON") from None
    if not isinstance(message, dict):
        raise ValueError("the body is no object")
    return _READERS[provider](headers, message)


def concerns(push: Push, revision: str, filters: Sequence[str]) -> bool:
    """Whether a push to `revision` is among it, that touches one of the paths where some are asked for. HEAD may be any branch;
    of a tag that moved nobody tells what is touched."""
    if revision.removeprefix(_TAGS) in push.tags and not revision.startswith(_HEADS):
        return True
    if revision.removeprefix(_HEADS) not in push.branches and not (revision == HEAD and push.branches):
        return False
    if not filters or push.paths is None:
        return True
    return any(matches(pattern, path) for path in push.paths for pattern in filters)


def matches(pattern: str, path: str) -> bool:
    """`clusters/**`: all below; `clusters/*`: one level; a pattern without a slash is a name in any folder."""
    parts = path.split("/")
    if "/" not in pattern:
        return pattern == "**" or fnmatch.fnmatchcase(parts[-1], pattern)
    return _match(pattern.strip("/").split("/"), parts)


def _match(pattern: list[str], parts: list[str]) -> bool:
    """Row by row, so that many `**` cost no more than patterns times parts."""
    reached = {0}
    for step in pattern:
        if step == "**":
            reached = set(range(min(reached, default=len(parts) + 1), len(parts) + 1))
        else:
            reached = {at + 1 for at in reached if at < len(parts) and fnmatch.fnmatchcase(parts[at], step)}
    return len(parts) in reached


def _github(headers: Mapping[str, str], message: dict[str, Any]) -> Push:
    if headers.get("X-GitHub-Event", "push") != "push":
        raise NoPush
    whole = not message.get("forced") and not message.get("created") and len(_list(message, "commits")) < 2048
    ref, delivery = message.get("ref"), headers.get("X-GitHub-Delivery", "")
    return Push(_branch(ref), _touched(message) if whole else None, delivery, _tag(ref))


def _gitlab(headers: Mapping[str, str], message: dict[str, Any]) -> Push:
    if message.get("object_kind", "push") not in ("push", "tag_push"):
        raise NoPush
    commits, total = _list(message, "commits"), message.get("total_commits_count")
    whole = isinstance(total, int) and 0 < total <= len(commits)
    ref, delivery = message.get("ref"), headers.get("Idempotency-Key", "") or headers.get("X-Gitlab-Event-UUID", "")
    return Push(_branch(ref), _touched(message) if whole else None, delivery, _tag(ref))


def _bitbucket(headers: Mapping[str, str], message: dict[str, Any]) -> Push:
    """Cloud has `push.changes[].new`, Data Center `changes[].ref`."""
    if headers.get("X-Event-Key", "repo:push") not in ("repo:push", "repo:refs_changed"):
        raise NoPush
    push = message.get("push")
    names: dict[str, set[str]] = {"branch": set(), "tag": set()}
    for change in _list(push if isinstance(push, dict) else message, "changes")[:MAX_CHANGES]:
        for side in (change.get("new"), change.get("ref")):
            sort = str(side.get("type", "")).lower() if isinstance(side, dict) else ""
            if isinstance(side, dict) and sort in names:
                names[sort].add(str(side.get("name") or side.get("displayId") or ""))
    delivery = headers.get("X-Request-UUID", "") or headers.get("X-Request-Id", "")
    return Push(frozenset(names["branch"]), None, delivery, frozenset(names["tag"]))


def _azure(headers: Mapping[str, str], message: dict[str, Any]) -> Push:
    if message.get("eventType") != "git.push":
        raise NoPush
    resource = message.get("resource")
    updates = _list(resource if isinstance(resource, dict) else {}, "refUpdates")[:MAX_CHANGES]
    refs = [update.get("name") for update in updates]
    branches, tags = (frozenset[str]().union(*map(among, refs)) for among in (_branch, _tag))
    return Push(branches, None, str(message.get("id") or "")[:128], tags)


_READERS = {"github": _github, "gitlab": _gitlab, "bitbucket": _bitbucket, "azure": _azure}


def _branch(ref: Any) -> frozenset[str]:
    return frozenset({ref.removeprefix(_HEADS)}) if isinstance(ref, str) and ref.startswith(_HEADS) else frozenset()


def _tag(ref: Any) -> frozenset[str]:
    return frozenset({ref.removeprefix(_TAGS)}) if isinstance(ref, str) and ref.startswith(_TAGS) else frozenset()


def _touched(message: Mapping[str, Any]) -> frozenset[str]:
    return frozenset(_paths(_list(message, "commits")))


def _paths(commits: Iterable[Mapping[str, Any]]) -> Iterable[str]:
    for commit in commits:
        for how in ("added", "modified", "removed"):
            found = commit.get(how)
            yield from (path for path in found if isinstance(path, str)) if isinstance(found, list) else ()


def _list(holder: Mapping[str, Any], name: str) -> list[dict[str, Any]]:
    found = holder.get(name)
    return [item for item in found if isinstance(item, dict)] if isinstance(found, list) else []
