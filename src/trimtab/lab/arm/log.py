"""What was asked, in order, and counted: so that a test can say how many writes there were."""

from __future__ import annotations

import re
from collections import Counter
from datetime import datetime
from typing import Any

import msgspec

from trimtab.lab.arm.service import Verb

WRITES: tuple[Verb, ...] = ("create", "update", "patch", "delete")
MOST = 200_000


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """One request, without its token."""

    method: str
    path: str
    query: str
    verb: Verb
    type: str
    status: int  # 0 when the connection was cut
    at: datetime
    body: Any = None
    headers: dict[str, str] = {}


class Log:
    """The newest requests, and counts of all."""

    def __init__(self) -> None:
        self.requests: list[Asked] = []
        self.verbs: Counter[str] = Counter()
        self.by_type: Counter[str] = Counter()  # "PUT Microsoft.Network/virtualNetworks"

    def add(self, asked: Asked) -> None:
        self.requests.append(asked)
        if len(self.requests) > MOST:
            del self.requests[: MOST // 2]
        self.verbs[asked.verb] += 1
        self.by_type[f"{asked.method} {asked.type}"] += 1

    def clear(self) -> None:
        self.requests.clear()
        self.verbs.clear()
        self.by_type.clear()

    @property
    def writes(self) -> int:
        """Of resources; actions, such as asking for keys, are none."""
        return sum(self.verbs[each] for each in WRITES)

    def count(self, method: str = "", path: str = "", *, verb: str = "", status: int | None = None) -> int:
        """How many such requests there were; `path` is a regular expression."""
        return sum(
            1
            for each in self.requests
            if (not method or each.method == method)
            and (not verb or each.verb == verb)
            and (status is None or each.status == status)
            and (not path or re.search(path, each.path, re.IGNORECASE))
        )
