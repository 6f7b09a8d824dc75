"""How often something changed, by scope: a type in an organization in a project, and the type over all of its projects.

Whoever reads takes the scope's mark before, and keeps what was read only if the mark is the same after. So what was read
before a change is never kept after it, and lists, of which nobody knows which ones a change touches, fall all at once.

`floor` is the newest revision that a scope was told of: news that is not newer has been heard already.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec

ALL = "*"
"""As a project: all of them."""

Mark = tuple[int, int, int]


class Scope(NamedTuple):
    type: str
    organization: str
    project: str  # an ID, "" for types without a project, ALL


class Change(msgspec.Struct, frozen=True, omit_defaults=True, array_like=True):
    """What is not to be believed any more: one resource, a project's (no name) or all of a type's (project ALL).

    `revision` is the one at which it changed, 0 where that is not known."""

    type: str
    organization: str
    project: str = ALL
    name: str = ""
    revision: int = 0

    @classmethod
    def of(cls, type: str, organization: str, hub: dict[str, Any]) -> Change:  # noqa: A002
        """The change that left this document; of a deletion, the last one at its revision."""
        metadata = hub.get("metadata") or {}
        project = str(metadata.get("project") or metadata.get("namespace") or "")
        return cls(type, organization, project, str(metadata.get("name", "")), revision_of(hub))


def revision_of(hub: dict[str, Any]) -> int:
    """0 where it has none."""
    text = str((hub.get("metadata") or {}).get("resourceVersion") or "")
    return int(text) if text.isdecimal() else 0


class Generations:
    def __init__(self) -> None:
        self._epoch = 0
        self._types: dict[tuple[str, str], int] = {}
        self._scopes: dict[Scope, int] = {}
        self._floors: dict[Scope, int] = {}

    def mark(self, scope: Scope) -> Mark:
        return (self._epoch, self._types.get(scope[:2], 0), self._scopes.get(scope, 0))

    def floor(self, scope: Scope) -> int:
        return self._floors.get(scope, 0)

    def move(self, change: Change) -> None:
        """After this no mark of the scopes that the change touches is as before."""
        if change.project == ALL:
            of_type = (change.type, change.organization)
            self._types[of_type] = self._types.get(of_type, 0) + 1
            for scope in [each for each in self._scopes if each[:2] == of_type]:
                del self._scopes[scope]
            scopes = [Scope(*of_type, ALL)]
        else:
            scopes = [Scope(change.type, change.organization, project) for project in (change.project, ALL)]
            for scope in scopes:
                self._scopes[scope] = self._scopes.get(scope, 0) + 1
        if change.revision:
            for scope in scopes:
                self._floors[scope] = max(change.revision, self._floors.get(scope, 0))

    def flush(self) -> None:
        """Everything moves. Floors stay: revisions never go back."""
        self._epoch += 1
        self._types.clear()
        self._scopes.clear()
