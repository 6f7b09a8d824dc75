"""Fields that were removed from the spec and are still there: which way to remove them comes next, and what was learned. Pure.

While there is another way, the field stays in what counts as applied, so that the next turn removes it again. When there is
none, it is given up: it is the service's from then on, and that is a quirk for people to see.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from trimtab.systems.rest.model import Model
from trimtab.systems.rest.syncing.leaves import walk
from trimtab.systems.rest.syncing.paths import get, parse, put
from trimtab.systems.rest.syncing.removing import RUNGS, next_removal
from trimtab.systems.rest.syncing.settling import Settled

Body = dict[str, Any]


class Lesson(msgspec.Struct, frozen=True, kw_only=True):
    path: str
    behaviour: str
    evidence: str


class Climbed(msgspec.Struct, frozen=True, kw_only=True):
    applied: Body
    removals: dict[str, int] = {}
    unfinished: tuple[str, ...] = ()
    lessons: tuple[Lesson, ...] = ()


def climbed(
    model: Model, sent: Body, previous: Body, settled: Settled, tried: Mapping[str, int], *, verb: str
) -> Climbed:
    """`sent` is what was applied, `previous` what was applied before it; `tried` are the ways of the last attempt."""
    had = walk(model, previous)
    applied, removals, unfinished, lessons = sent, {}, [], []
    for path in settled.still_present:
        rung = next_removal(model, had[path], tried.get(path, 0), desired=sent, verb=verb)
        if rung is None:
            evidence = f"still there after {', '.join(RUNGS[: tried.get(path, 0) + 1])}"
            lessons.append(Lesson(path=path, behaviour="CannotBeRemoved", evidence=evidence))
            continue
        removals[path] = rung
        unfinished.append(path)
        applied = put(applied, parse(path), get(previous, parse(path)))
    for path, rung in tried.items():
        if path in had and rung > 0 and path not in settled.still_present and path not in removals:
            behaviour = {"null": "RemovedByNull", "empty": "RemovedByEmpty", "default": "RemovedByDefault"}[RUNGS[rung]]
            evidence = f"was still there after {', '.join(RUNGS[:rung])}, and gone after {RUNGS[rung]}"
            lessons.append(Lesson(path=path, behaviour=behaviour, evidence=evidence))
    return Climbed(applied=applied, removals=removals, unfinished=tuple(unfinished), lessons=tuple(lessons))
