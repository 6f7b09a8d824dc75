"""How far a replica has come in the one order of the bus, so that one which lags behind is not believed.

A asks B for a document. A has heard of a change that B has not: B's answer is older than what A has promised. So A names the
last change of the scope that it heard, and B answers only if it has come that far: it remembers the change, or it has heard a
beat of its own that A heard after the change.
"""

from __future__ import annotations

from collections.abc import Iterable

from trimtab.hub.cache.generations import ALL, Change, Scope

MAX_SCOPES = 20_000
MAX_RECENT = 20_000


class Positions:
    """Of one replica in one session."""

    def __init__(self) -> None:
        self.order = 0
        """How many published messages were heard."""
        self._base = 0  # scopes that are not remembered changed here at the latest
        self._last: dict[Scope, tuple[int, str]] = {}
        self._recent: dict[str, None] = {}

    def heard(self) -> int:
        self.order += 1
        return self.order

    def changed(self, identity: str, changes: Iterable[Change]) -> None:
        """A change was heard, as the message that was counted last."""
        if len(self._last) > MAX_SCOPES:
            self._last.clear()
            self._base = self.order
        if len(self._recent) > MAX_RECENT:
            self._recent = dict.fromkeys(list(self._recent)[MAX_RECENT // 2 :])
        self._recent[identity] = None
        for change in changes:
            if change.project == ALL:
                self._base = self.order
            for project in (change.project, ALL):
                self._last[Scope(change.type, change.organization, project)] = (self.order, identity)

    def last(self, scope: Scope) -> tuple[int, str]:
        """The order and the identity of the last change; no identity where there is none, or it is not remembered."""
        order, identity = self._last.get(scope, (0, ""))
        return (order, identity) if order > self._base else (self._base, "")

    def knows(self, identity: str) -> bool:
        return identity in self._recent
