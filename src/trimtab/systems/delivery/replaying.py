"""The record of a run, and what another analysis would have made of it. Pure.

A record is JSON lines, one for each check: the raw numbers that were measured and the queries as they were sent, beside
what came of them. It is bounded: one that is full gets a last line that says so, and is told to be incomplete.

A replay judges the very same numbers again. It cannot know what would have been measured at weights that the run did
not give: where the other analysis would have gone on earlier, the numbers are still those of the step that was held.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal

import msgspec
from msgspec import UnsetType

from trimtab.systems.delivery.judging.budget import Action, Outcome, settle
from trimtab.systems.delivery.judging.judges import judge_all
from trimtab.systems.delivery.kinds.analysis import Analysis
from trimtab.systems.delivery.kinds.canary import Check, Counters, Evidence, MetricCheck, Verdict
from trimtab.systems.delivery.measuring.contract import Measured
from trimtab.systems.delivery.plan import steps

LARGEST = 8 * 1024 * 1024
MAX_LINE = 128 * 1024
MAX_QUERY, MAX_PROBLEM, MAX_VALUES, MAX_REFUSALS = 8192, 1024, 120, 16
FULL = b'{"full":true}\n'

Ending = Literal["Promoted", "RolledBack", "Frozen", "Unfinished"]


class RecordError(ValueError):
    """This is no record of a run. The message says which line is wrong."""


class Line(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One check. Only numbers, queries and sentences that are safe to show are in it."""

    check: Check
    measured: tuple[Measured, ...] = ()
    refusals: tuple[str, ...] = ()


class Replayed(msgspec.Struct, frozen=True, kw_only=True):
    """One check, as it was and as it would have been. `action` is None once the run would have ended."""

    time: str
    step: int
    was: Verdict
    verdict: Verdict
    metrics: tuple[MetricCheck, ...]
    action: Action | None
    message: str = ""


class Replay(msgspec.Struct, frozen=True, kw_only=True):
    """What the run would have done: how it would have ended, when, and after how many checks."""

    ending: Ending
    time: str = ""
    checks: int = 0
    step: int = 0
    reason: str = ""
    message: str = ""
    complete: bool = True
    """Whether the record has all checks of the run."""
    missing: tuple[str, ...] = ()
    """Metrics of the analysis that were not measured in the run: nothing can be said of them, and they are left out."""
    replayed: tuple[Replayed, ...] = ()


def encode(check: Check, measured: Sequence[Measured], refusals: Sequence[str] = ()) -> bytes:
    """A check as one line of a record. What is longer than any real one is cut."""
    line = Line(
        check=check,
        measured=tuple(_bounded(each) for each in measured),
        refusals=tuple(each[:MAX_PROBLEM] for each in refusals[:MAX_REFUSALS]),
    )
    encoded = _written(line)
    if len(encoded) > MAX_LINE:  # the values of the parts are what is long
        encoded = _written(msgspec.structs.replace(line, measured=tuple(_bare(each) for each in line.measured)))
    return encoded


def appended(record: bytes, check: Check, measured: Sequence[Measured], refusals: Sequence[str] = ()) -> bytes:
    """The record with one more check; unchanged, but for the word that it is full, when it would become too long."""
    if record.endswith(FULL):
        return record
    line = encode(check, measured, refusals)
    return record + (line if len(record) + len(line) + len(FULL) <= LARGEST else FULL)


def decode(record: bytes) -> tuple[tuple[Line, ...], bool]:
    """The lines of a record, and whether it is complete. RecordError when it is none."""
    if len(record) > LARGEST:
        raise RecordError(f"it is longer than {LARGEST} bytes")
    complete = not record.endswith(FULL)
    lines = []
    for count, text in enumerate(record.removesuffix(FULL).splitlines(), 1):
        if not text.strip():
            continue
        try:
            lines.append(msgspec.convert(_spelt(msgspec.json.decode(text), _number), Line))
        except (msgspec.MsgspecError, RecursionError) as error:
            raise RecordError(f"line {count}: {error}") from None
    return tuple(lines), complete


def replay(record: bytes, analysis: Analysis) -> Replay:
    """Judges a recorded run again, by another analysis."""
    lines, complete = decode(record)
    measured = {each.name for line in lines for each in line.measured}
    missing = tuple(metric.name for metric in analysis.metrics if metric.name not in measured)
    analysis = analysis.replace(metrics=tuple(each for each in analysis.metrics if each.name in measured))
    run = _Run(counters=Counters(), evidence=(), earlier=(), step=0, over=not steps(analysis))
    end = Replay(ending="Unfinished", complete=complete, missing=missing)
    replayed, before = [], None
    for count, line in enumerate(lines, 1):
        again = before is not None and _same_window(before, line)
        run, one, outcome = _replayed(analysis, run, line, again)
        replayed.append(one)
        before = line
        ending = _ending(analysis, run, one)
        if ending is not None:
            run = msgspec.structs.replace(run, over=True)
            end = msgspec.structs.replace(
                end, ending=ending, time=one.time, checks=count, reason=outcome.reason, message=outcome.message
            )
    if end.ending == "Unfinished":
        end = msgspec.structs.replace(end, checks=len(lines))
    return msgspec.structs.replace(end, step=min(run.step, max(0, len(steps(analysis)) - 1)), replayed=tuple(replayed))


class _Run(msgspec.Struct, frozen=True, kw_only=True):
    """Where the replay stands. `earlier` is the evidence before the latest window, which may still grow."""

    counters: Counters
    evidence: tuple[Evidence, ...]
    earlier: tuple[Evidence, ...]
    step: int
    over: bool


def _replayed(analysis: Analysis, run: _Run, line: Line, again: bool) -> tuple[_Run, Replayed, Outcome]:
    """One more check. With `again`, its window holds all that the one before it held, which must not count twice."""
    known = run.earlier if again else run.evidence
    asked = analysis if line.measured else analysis.replace(metrics=())  # a step without traffic is not measured
    judged = judge_all(asked, line.measured, known, line.refusals)
    passes = None if run.over else steps(analysis)[run.step].passes
    counters, outcome = settle(asked, run.counters, judged.checks, line.refusals, passes=passes)
    one = Replayed(
        time=line.check.time,
        step=run.step,
        was=line.check.verdict,
        verdict=outcome.verdict,
        metrics=judged.checks,
        action=None if run.over else outcome.action,
        message=outcome.message,
    )
    step = run.step
    if one.action == "Advance":
        step, counters = step + 1, counters.replace(passes=0)
    return _Run(counters=counters, evidence=judged.evidence, earlier=known, step=step, over=run.over), one, outcome


def _same_window(before: Line, line: Line) -> bool:
    start = line.check.window_start
    return not isinstance(start, UnsetType) and before.check.window_start == start


def _ending(analysis: Analysis, run: _Run, one: Replayed) -> Ending | None:
    if one.action == "Rollback":
        return "RolledBack"
    if one.action == "Freeze":
        return "Frozen"
    return "Promoted" if one.action == "Advance" and run.step == len(steps(analysis)) else None


def _bounded(measured: Measured) -> Measured:
    return msgspec.structs.replace(
        measured,
        query=measured.query[:MAX_QUERY],
        problem=measured.problem[:MAX_PROBLEM],
        canary_values=measured.canary_values[-MAX_VALUES:],
        stable_values=measured.stable_values[-MAX_VALUES:],
    )


def _bare(measured: Measured) -> Measured:
    return msgspec.structs.replace(measured, canary_values=(), stable_values=(), query=measured.query[:1024])


_ODD = {"NaN": math.nan, "+Inf": math.inf, "-Inf": -math.inf}
_FLOATS = ("value", "stable", "total", "failed", "canary_values", "stable_values")


def _written(line: Line) -> bytes:
    """JSON has no NaN and no infinity: they are written as Prometheus spells them."""
    return msgspec.json.encode(_spelt(msgspec.to_builtins(line), _spelling)) + b"\n"


def _spelt(tree: Any, how: Any) -> Any:
    """The measurements of a line with their odd numbers spelt, or read. Nothing else in it may be a NaN."""
    if not isinstance(tree, dict) or not isinstance(tree.get("measured"), (list, tuple)):
        return tree
    return {**tree, "measured": [_spelt_measured(each, how) for each in tree["measured"]]}


def _spelt_measured(tree: Any, how: Any) -> Any:
    if not isinstance(tree, dict):
        return tree
    changed = dict(tree)
    for name, value in tree.items():
        if name in ("canary_counts", "stable_counts"):
            changed[name] = _spelt_measured(value, how)
        elif name in _FLOATS:
            changed[name] = [how(each) for each in value] if isinstance(value, (list, tuple)) else how(value)
    return changed


def _spelling(value: Any) -> Any:
    if not isinstance(value, float) or math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else "+Inf" if value > 0 else "-Inf"


def _number(value: Any) -> Any:
    return _ODD.get(value, value) if isinstance(value, str) else value
