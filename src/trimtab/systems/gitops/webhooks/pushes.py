"""What a provider's message says was pushed: which branches, and which paths as far as it tells. Pure.

Messages are cut (GitLab names 20 commits, GitHub 2,048), and Bitbucket and Azure Repos name no paths: then `paths` is None, and a
path filter cannot leave the push out.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

MAX_CHANGES = 1000
_HEADS = "refs/heads/"


class Push(msgspec.Struct, frozen=True):
    """`delivery` is the provider's name for this message; "" when it has none."""

    branches: frozenset[str]
    paths: frozenset[str] | None = None
    delivery: str = ""


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


def concerns(push: Push, branch: str, filters: Sequence[str]) -> bool:
    """Whether a push to `branch` is among it, that touches one of the paths where some are asked for."""
    if branch not in push.branches:
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
    return Push(_branch(message.get("ref")), _touched(message) if whole else None, headers.get("X-GitHub-Delivery", ""))


def _gitlab(headers: Mapping[str, str], message: dict[str, Any]) -> Push:
    if message.get("object_kind", "push") != "push":
        raise NoPush
    commits, total = _list(message, "commits"), message.get("total_commits_count")
    whole = isinstance(total, int) and 0 < total <= len(commits)
    delivery = headers.get("X-Gitlab-Event-UUID", "") or headers.get("Idempotency-Key", "")
    return Push(_branch(message.get("ref")), _touched(message) if whole else None, delivery)


def _bitbucket(headers: Mapping[str, str], message: dict[str, Any]) -> Push:
    """Cloud has `push.changes[].new`, Data Center `changes[].ref`."""
    if headers.get("X-Event-Key", "repo:push") not in ("repo:push", "repo:refs_changed"):
        raise NoPush
    push = message.get("push")
    names: set[str] = set()
    for change in _list(push if isinstance(push, dict) else message, "changes")[:MAX_CHANGES]:
        for side in (change.get("new"), change.get("ref")):
            if isinstance(side, dict) and str(side.get("type", "")).lower() == "branch":
                names.add(str(side.get("name") or side.get("displayId") or ""))
    return Push(frozenset(names), None, headers.get("X-Request-UUID", "") or headers.get("X-Request-Id", ""))


def _azure(headers: Mapping[str, str], message: dict[str, Any]) -> Push:
    if message.get("eventType") != "git.push":
        raise NoPush
    resource = message.get("resource")
    updates = _list(resource if isinstance(resource, dict) else {}, "refUpdates")[:MAX_CHANGES]
    branches = frozenset[str]().union(*(_branch(update.get("name")) for update in updates))
    return Push(branches, None, str(message.get("id") or "")[:128])


_READERS = {"github": _github, "gitlab": _gitlab, "bitbucket": _bitbucket, "azure": _azure}


def _branch(ref: Any) -> frozenset[str]:
    return frozenset({ref.removeprefix(_HEADS)}) if isinstance(ref, str) and ref.startswith(_HEADS) else frozenset()


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
