"""The claim of a registry for one discovery: the annotations running-*, which are there or not there. Pure.

Whoever sets them in a write that is conditional on the registry's revision has the registry; `running-id` is the run's own
name, which every later write compares. On completion one write moves running-* to last-*. An empty value counts as absent,
for the annotations' first readers wrote them so.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Literal

import msgspec

from trimtab.model.clock import format_time, parse_time

PREFIX = "images.trimtab.dev/"
RUNNING_ID = f"{PREFIX}running-id"
RUNNING_ONLY = f"{PREFIX}running-only"
RUNNING_PUSHED = f"{PREFIX}running-pushed"
"""What was pushed before a whole listing began, which sees it too."""
PUSHED = f"{PREFIX}pushed"
"""Repositories and tags that the registry told of, in JSON; the next run takes them."""
PUSHED_FAILURES = f"{PREFIX}pushed-failures"
"""How many runs in a row could not have what was pushed."""
RELEASE = f"{PREFIX}release-removal"
"""The id of the run that held a removal back: what it would have removed may go."""
LAST_DISCOVERED = f"{PREFIX}last-discovered-at"
WHOLE_STARTED = f"{PREFIX}whole-discovery-started-at"
"""When the last discovery of all began: what the schedule counts from. Those for pushes do not count."""
MOST_TRIES = 8
"""How often what was pushed is taken, if it can be asked for and some of it fails."""
MOST_PUSHED = 500
MOST_BYTES = 32 << 10
FIRST_PAUSE, LONGEST_PAUSE = 60.0, 900.0
EVERYTHING = "*"
"""In place of repositories, where too many were pushed to name them."""

Type = Literal["manual", "scheduled"]
Only = Mapping[str, tuple[str, ...]]


class Running(msgspec.Struct, frozen=True, kw_only=True):
    """A discovery that goes on. A scheduled one names no job: the reserved one tells of it."""

    id: str
    type: Type
    started_at: datetime
    job: str = ""
    generation: int = 0
    uid: str = ""
    only: Only | None = None


def running(annotations: Mapping[str, str]) -> Running | None:
    """The discovery that has the registry; None when it is free."""
    kind = annotations.get(f"{PREFIX}running-discovery-type", "")
    run = annotations.get(RUNNING_ID, "")
    if not kind and not run:
        return None
    only = _only(annotations.get(RUNNING_ONLY, ""))
    return Running(
        id=run,
        type="manual" if kind == "manual" else "scheduled",
        started_at=_time(annotations.get(f"{PREFIX}running-discovery-started-at", "")),
        job=annotations.get(f"{PREFIX}running-discoveryjob-name", ""),
        generation=_number(annotations.get(f"{PREFIX}running-discoveryjob-generation", "")),
        uid=annotations.get(f"{PREFIX}running-discoveryjob-uid", ""),
        only=None if only is None or EVERYTHING in only else only,
    )


def claimed(annotations: Mapping[str, str], run: Running) -> dict[str, str]:
    """The annotations of a registry that the run has. What was pushed so far is the run's own."""
    new = _without(annotations, "running-")
    new[RUNNING_ID] = run.id
    new[f"{PREFIX}running-discovery-type"] = run.type
    new[f"{PREFIX}running-discovery-started-at"] = format_time(run.started_at)
    if run.type == "manual":
        new[f"{PREFIX}running-discoveryjob-name"] = run.job
        new[f"{PREFIX}running-discoveryjob-generation"] = str(run.generation)
        new[f"{PREFIX}running-discoveryjob-uid"] = run.uid
    if run.only is not None:
        new[RUNNING_ONLY] = _written(run.only)
    else:
        new[WHOLE_STARTED] = format_time(run.started_at)
        if pushed(annotations) is not None:
            new[RUNNING_PUSHED] = annotations[PUSHED]
    new.pop(PUSHED, None)
    return new


def released(
    annotations: Mapping[str, str], now: datetime, *, succeeded: bool, again: bool | None = None
) -> dict[str, str]:
    """The annotations when the run has ended. With `again`, what was pushed is to be taken once more; unless it is said,
    that is so after a failure."""
    again = not succeeded if again is None else again
    run = running(annotations)
    if run is None:
        return dict(annotations)
    new = _without(_without(annotations, "running-"), "last-", keep=LAST_DISCOVERED)
    for name, value in annotations.items():
        if name.startswith(f"{PREFIX}running-discovery") and value:
            new[name.replace("running-", "last-", 1)] = value
    if succeeded:
        new[LAST_DISCOVERED] = format_time(now)
    failures = _number(new.pop(PUSHED_FAILURES, ""))
    if not again or (succeeded and failures >= MOST_TRIES):
        return new
    for taken in (RUNNING_ONLY, RUNNING_PUSHED):
        if what := _only(annotations.get(taken, "")):
            new = with_pushed(new, what)
            new[PUSHED_FAILURES] = str(failures + 1)
    return new


def run_id(now: datetime) -> str:
    """A name that no other run has."""
    return f"{now:%Y%m%dt%H%M%S}-{secrets.token_hex(4)}"


def last_whole(annotations: Mapping[str, str]) -> datetime | None:
    """When the last discovery of all began; None when there was none."""
    text = annotations.get(WHOLE_STARTED, "")
    return _time(text) if text else last_started(annotations)


def last_started(annotations: Mapping[str, str]) -> datetime | None:
    """When the last discovery began, or the one that goes on."""
    for which in ("running", "last"):
        if text := annotations.get(f"{PREFIX}{which}-discovery-started-at", ""):
            return _time(text)
    return None


def pushed(annotations: Mapping[str, str]) -> Only | None:
    """What the registry told of and no run has taken; None when there is nothing. No tags are all of a repository."""
    return _only(annotations.get(PUSHED, ""))


def pushed_after(annotations: Mapping[str, str]) -> datetime | None:
    """From when on what was pushed may be taken; None is at once. After a run that failed it waits, longer each time."""
    failures, began = _number(annotations.get(PUSHED_FAILURES, "")), last_started(annotations)
    if not failures or began is None:
        return None
    return began + timedelta(seconds=min(FIRST_PAUSE * 2.0 ** min(failures - 1, 10), LONGEST_PAUSE))


def with_pushed(annotations: Mapping[str, str], more: Only) -> dict[str, str]:
    """The annotations when the registry has told of more."""
    return {**annotations, PUSHED: _written(merged(pushed(annotations) or {}, more))}


def merged(some: Only, more: Only) -> dict[str, tuple[str, ...]]:
    """Both, each tag once. Where there are too many, repositories are named without their tags, which means all of them;
    where these are too many, everything is meant. Nothing is lost."""
    whole = {repository for known in (some, more) for repository, tags in known.items() if not tags}
    both: dict[str, tuple[str, ...]] = {
        repository: tuple(sorted({*some.get(repository, ()), *more.get(repository, ())}))
        for repository in sorted({*some, *more})
    }
    both |= dict.fromkeys(sorted(whole), ())
    if _too_many(both):
        both = dict.fromkeys(both, ())
    return {EVERYTHING: ()} if EVERYTHING in both or _too_many(both) else both


def _too_many(only: Only) -> bool:
    return sum(map(len, only.values())) + len(only) > MOST_PUSHED or len(_written(only)) > MOST_BYTES


def _written(only: Only) -> str:
    return json.dumps(only, separators=(",", ":"), sort_keys=True)


def _only(text: str) -> Only | None:
    if not text:
        return None
    try:
        return msgspec.json.decode(text, type=dict[str, tuple[str, ...]])
    except msgspec.DecodeError:
        return None


def _without(annotations: Mapping[str, str], what: str, keep: str = "") -> dict[str, str]:
    start = f"{PREFIX}{what}"
    return {name: value for name, value in annotations.items() if name == keep or not name.startswith(start)}


def _time(text: str) -> datetime:
    """One that cannot be read was long ago: the run is past its deadline."""
    try:
        return parse_time(text)
    except ValueError:
        return parse_time("1970-01-01T00:00:00Z")


def _number(text: str) -> int:
    return int(text) if text.isascii() and text.isdigit() else 0
