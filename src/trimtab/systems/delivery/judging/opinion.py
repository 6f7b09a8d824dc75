"""What a judge says: a verdict, and a sentence that gives its reasons."""

from __future__ import annotations

from typing import NamedTuple

from trimtab.systems.delivery.kinds.canary import Verdict


class Opinion(NamedTuple):
    verdict: Verdict
    message: str


def passed(message: str) -> Opinion:
    return Opinion("Pass", message)


def failed(message: str) -> Opinion:
    return Opinion("Fail", message)


def held(message: str) -> Opinion:
    return Opinion("Inconclusive", message)
