"""One scenario on two servers, and what they answered differently."""

import itertools
import re
from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec

from .differences import accepted
from .exchange import Answer, Exchange, Request, shown
from .normalise import normalised

_numbers = itertools.count(1)


class Scenario(msgspec.Struct, frozen=True):
    """A few requests with a name that says what they are about."""

    name: str
    requests: tuple[Request, ...]


class Difference(NamedTuple):
    """One place in one answer; the path is as in `body.metadata.labels.app`."""

    step: int
    path: str
    real: Any
    ours: Any

    def __str__(self) -> str:
        return f"    {self.path}\n      real: {shown(self.real, 1500)}\n      ours: {shown(self.ours, 1500)}"


class Pair:
    """The real server and the other, with the namespaces that scenarios use on both."""

    def __init__(self, real: Exchange, ours: Exchange) -> None:
        self.sides = (real, ours)

    def differences(self, scenario: Scenario) -> list[Difference]:
        """What differs and is not accepted."""
        found = self.all_differences(scenario)
        agreed = [each for each in found if accepted(scenario.name, scenario.requests[each.step], each) is not None]
        whole = {each.step for each in agreed if each.path == "status"}
        return [each for each in found if each not in agreed and each.step not in whole]

    def all_differences(self, scenario: Scenario) -> list[Difference]:
        number = next(_numbers)
        words = {"ns": f"ns{number}q", "id": f"x{number}q"}
        real, ours = (run(side, scenario.requests, words) for side in self.sides)
        steps = zip(*(normalised(scenario.requests, side, words) for side in (real, ours)), strict=True)
        found = []
        for step, (wanted, got) in enumerate(steps):
            found += [Difference(step, *rest) for rest in unlike(wanted, got, "")]
        return found


def run(side: Exchange, requests: Sequence[Request], words: dict[str, str]) -> list[Answer]:
    if any("$ns" in request.path for request in requests):
        body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "$ns"}}
        side.send(Request(method="POST", path="/api/v1/namespaces", body=body), [], words)
    answers: list[Answer] = []
    for request in requests:
        answers.append(side.send(request, answers, words))
    return answers


MISSING = "(nothing)"


def unlike(real: Any, ours: Any, path: str) -> list[tuple[str, Any, Any]]:
    """The smallest places in which two documents differ."""
    if isinstance(real, dict) and isinstance(ours, dict):
        found = []
        for name in sorted(real.keys() | ours.keys()):
            below = f"{path}.{name}" if path else name
            found += unlike(real.get(name, MISSING), ours.get(name, MISSING), below)
        return found
    if isinstance(real, list) and isinstance(ours, list) and len(real) == len(ours):
        pairs = enumerate(zip(real, ours, strict=True))
        return [each for index, (one, other) in pairs for each in unlike(one, other, f"{path}[{index}]")]
    if type(real) is type(ours) and real == ours:
        return []
    return [(path, real, ours)]


def script(scenario: Scenario, found: Sequence[Difference]) -> str:
    """The scenario as a list of requests, with both answers where they differ."""
    lines = [scenario.name]
    for step, request in enumerate(scenario.requests):
        lines.append(f"[{step}] {request}")
        lines += [str(each) for each in found if each.step == step]
    return "\n".join(lines)


def signature(difference: Difference) -> str:
    """The path without indices: differences with the same one often have the same cause."""
    return re.sub(r"\[\d+\]", "[]", difference.path)
