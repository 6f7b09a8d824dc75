"""How much of the log is kept, for watches that resume and lists that continue."""

from __future__ import annotations

from collections import deque

import msgspec

from trimtab.store.contract import Revision


class Retention(msgspec.Struct, frozen=True, kw_only=True):
    """The log keeps at least this much time and at least this many revisions. What is older goes by and by."""

    seconds: float = 300.0
    revisions: int = 10_000


class Window:
    """Says up to where the log may be compacted, by remembering a few revisions and when they were the newest."""

    def __init__(self, retention: Retention, revision: Revision, now: float) -> None:
        self._retention = retention
        self._marks = deque([(now, revision)])
        self._horizon: Revision = 0

    def advance(self, revision: Revision, now: float) -> Revision:
        """Take note of the newest revision; the horizon, which never goes back."""
        marks, retention = self._marks, self._retention
        if now - marks[-1][0] >= retention.seconds / 32:
            marks.append((now, revision))
        old = now - retention.seconds
        while len(marks) > 1 and marks[1][0] <= old:
            marks.popleft()
        if marks[0][0] <= old:
            self._horizon = max(self._horizon, min(marks[0][1], revision - retention.revisions))
        return self._horizon
