"""What goes wrong on purpose, for the next requests that fit: errors, cut connections, answers that are none."""

from __future__ import annotations

import re

import msgspec


class Refused(msgspec.Struct, frozen=True, tag="refused"):
    """An error with a code, and nothing is done."""

    status: int
    code: str
    message: str = "Refused on purpose."
    retry_after: int | str | None = None


class Dropped(msgspec.Struct, frozen=True, tag="dropped"):
    """The connection ends without an answer: before anything was done, or after."""

    after_effect: bool = False


class Truncated(msgspec.Struct, frozen=True, tag="truncated"):
    """It is done, and the answer breaks off after some bytes."""

    after: int = 10


class Html(msgspec.Struct, frozen=True, tag="html"):
    """A page of a gateway."""

    status: int = 502
    after_effect: bool = False


class ErrorInside(msgspec.Struct, frozen=True, tag="error-inside"):
    """200, and the body is an error. Nothing is done."""

    code: str = "InternalError"
    message: str = "It did not work."


Fault = Refused | Dropped | Truncated | Html | ErrorInside

PAGE = b"<!DOCTYPE html><html><head><title>Bad Gateway</title></head><body><h1>Bad Gateway</h1></body></html>"


class Rule(msgspec.Struct):
    method: str  # "" is any
    path: re.Pattern[str]
    fault: Fault
    times: int  # that are left


class Faults:
    def __init__(self) -> None:
        self._rules: list[Rule] = []

    def add(self, method: str, path: str, fault: Fault, times: int) -> None:
        self._rules.append(Rule(method, re.compile(path, re.IGNORECASE), fault, times))

    def clear(self) -> None:
        self._rules.clear()

    def next(self, method: str, path: str) -> Fault | None:
        for rule in self._rules:
            if rule.method in ("", method) and rule.path.search(path):
                rule.times -= 1
                if rule.times <= 0:
                    self._rules.remove(rule)
                return rule.fault
        return None
