"""A CanaryDeployment as lines for people. Pure: the object and the time come in, lines go out."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from datetime import datetime

from msgspec import UnsetType

from trimtab.cli.canary_find import annotation, called, run_of, short, status_of, traffic
from trimtab.cli.canary_promote import fought, held, meaning, stuck, where
from trimtab.cli.tables import GAP, shown, stained
from trimtab.model.clock import parse_time
from trimtab.model.conditions import Condition, get_condition
from trimtab.systems.delivery.kinds import Analysis, CanaryDeployment, Check, RunStatus
from trimtab.systems.delivery.kinds.fields import PAUSE
from trimtab.systems.delivery.machine.runs import analysis_of, step_of

WIDTH = 40
LABEL, NEXT, NARROW = 11, 4, 30
"""The characters of a label, those before a message of its own lines, and how many a text needs to be broken."""
RUNS = 5
TELLING = ("Initializing", "Starting", "Promoting", "Returning", "RollingBack")
"""Phases in which pods or routes are waited for: Ready says what they lack."""
CHECKS = ("checked", "step", "weight", "verdict", "metric", "value", "stable", "samples", "message")
CONDITIONS = ("condition", "status", "reason", "message")
HISTORY = ("run", "outcome", "reason", "ended", "message")


def lines(canary: CanaryDeployment, now: datetime, *, colours: bool = False, width: int = 0) -> list[str]:
    """All there is to know of how its release goes. What is longer than `width` goes on below itself; 0 is no end."""
    said = [*_weights(canary), *_run(canary, now)]
    found = [*_heading(canary, colours, width), *(part for line in said for part in _wrapped(line, width))]
    status, going = status_of(canary), run_of(canary)
    if going is not None and going.checks:
        step = step_of(going)
        matched = step is not None and step.matched
        found += ["", *table(CHECKS, [row for check in going.checks for row in _check(check, matched)], colours, width)]
    if status.conditions:
        rows = [[c.type, c.status, shown(c.reason), _said(c, status.conditions)] for c in status.conditions]
        found += ["", *table(CONDITIONS, rows, colours, width)]
    ended = [run for run in status.history or () if run.outcome != "Running"][:RUNS]
    if ended:
        rows = [[r.id, r.outcome, r.reason or "", _ago(r.finished, now), shown(r.message or "")] for r in ended]
        found += ["", *table(HISTORY, rows, colours, width)]
    return found


def summary(canary: CanaryDeployment) -> str:
    """One line, for pipes: it changes when something happened."""
    status, going = status_of(canary), run_of(canary)
    words = [called(canary), str(status.phase or "new")]
    if going is not None:
        words += [f"step {going.step + 1}/{going.steps}"] if going.steps else []
        step = step_of(going)
        if step is not None and step.matched and going.weight:
            words.append("all that match" + ("" if going.verified else ", not live yet"))
        else:
            words += [f"weight {going.weight}", f"verified {going.verified_weight}"]
        words.append(f"run {going.id}")
        words += [f"waits for {going.waiting_for}"] if going.waiting_for else []
        if going.checks:
            last = going.checks[0]
            words.append(
                f"last check {last.time} {last.verdict}" + (f": {shown(last.message)}" if last.message else "")
            )
    elif status.history:
        last_run = status.history[0]
        words.append(f"last run {last_run.id} {last_run.outcome} {last_run.reason or ''}".rstrip())
    if (paused := annotation(canary, PAUSE)) is not None:
        words.append(f"paused: {shown(paused)}")
    words += [f"{label}: {why}" for label, why in (("stopped", stuck(canary)), ("fought", fought(canary))) if why]
    return "  ".join(words)


def table(headers: Sequence[str], rows: Sequence[Sequence[str]], colours: bool = False, width: int = 0) -> list[str]:
    """Aligned columns, but for those in which nothing is said. The last one goes on below itself, or has lines of its own
    where there is no room for it."""
    used = [i for i in range(len(headers)) if any(row[i] for row in rows)]
    titles, rows = [headers[i].upper() for i in used], [[row[i] for i in used] for row in rows]
    widths = [max(len(row[i]) for row in (titles, *rows)) for i in range(len(titles))]
    left = sum(widths[:-1]) + len(GAP) * (len(widths) - 1)
    apart = bool(width) and width < left + min(NARROW, widths[-1])
    shown_titles = titles[:-1] if apart else titles

    def line(cells: Sequence[str], paint: bool) -> str:
        padded = [cell.ljust(width) for cell, width in zip(cells, widths, strict=False)]
        if paint:
            # The first cell is a name, whatever word it is.
            padded[1:] = [stained(text, cell) for text, cell in zip(padded[1:], cells[1:], strict=False)]
        return GAP.join(padded).rstrip()

    def body(row: Sequence[str]) -> Iterator[str]:
        indent = NEXT if apart else left
        text = textwrap.wrap(row[-1], max(width - indent, NARROW), break_on_hyphens=False) if width else [row[-1]]
        rest = text if apart else text[1:]
        yield line(row[:-1] if apart else [*row[:-1], text[0] if text else ""], colours)
        yield from (f"{' ' * indent}{part}" for part in rest)

    head = line(shown_titles, False)
    return [f"\033[1m{head}\033[0m" if colours else head, *(part for row in rows for part in body(row))]


def _wrapped(line: str, width: int) -> list[str]:
    """A line with its label; what does not fit is below what it says."""
    if not width or len(line) <= width or width - LABEL < NARROW:
        return [line]
    return textwrap.wrap(line, width, subsequent_indent=" " * LABEL, break_on_hyphens=False)


def bar(weight: int) -> str:
    """The canary's share of a line."""
    full = round(weight * WIDTH / 100) or (1 if weight else 0)
    return "█" * full + "░" * (WIDTH - full)


def _heading(canary: CanaryDeployment, colours: bool, width: int) -> Iterator[str]:
    phase = str(status_of(canary).phase or "nobody has looked at it yet")
    yield f"{called(canary)}   {stained(phase, phase) if colours else phase}"
    for line in _holds(canary):
        yield from _wrapped(line, width)


def _holds(canary: CanaryDeployment) -> Iterator[str]:
    """Whatever keeps it from going its way."""
    if (paused := annotation(canary, PAUSE)) is not None:
        yield f"paused     {shown(paused)}   `trimtab canary resume {canary.name}` lets it go on"
    if canary.spec.suspend:
        yield "suspended  by spec.suspend: nothing moves while it is set"
    if canary.spec.abort:
        yield "aborted    by spec.abort: nothing begins while it is set"
    if (why := stuck(canary)) is not None:
        yield f"stopped    {why}"
    if (why := fought(canary)) is not None:
        yield f"fought     {why}"
    if canary.spec.skip_analysis:
        yield "override   the next change goes straight out: spec.skipAnalysis is set"


def _weights(canary: CanaryDeployment) -> Iterator[str]:
    status, going = status_of(canary), run_of(canary)
    yield f"stable     {short(status.stable_revision or '') or 'none'}"
    if going is not None:
        yield f"canary     {short(going.revision)}"
        yield f"weight     {_traffic(canary, going)}{_live(going)}"
    elif status.failed_revision:
        yield f"failed     {short(status.failed_revision)}   `trimtab canary retry {canary.name}` runs it again"


def _traffic(canary: CanaryDeployment, going: RunStatus) -> str:
    """A bar only where a share of all is meant."""
    some = traffic(canary, going)
    return f"{bar(going.weight)} {going.weight} %" if some.startswith(f"{going.weight} %") else some


def _live(going: RunStatus) -> str:
    if going.verified_weight == going.weight:
        return ""
    step = step_of(going)
    if step is not None and step.matched:
        return "   the data plane has not taken that yet"
    return f"   the data plane was last seen at {going.verified_weight} %"


def _run(canary: CanaryDeployment, now: datetime) -> Iterator[str]:
    status, going = status_of(canary), run_of(canary)
    ready, metrics = (get_condition(status.conditions, kind) for kind in ("Ready", "MetricsAvailable"))
    lacks = ready is not None and ready.reason == status.phase and ready.reason in TELLING
    pods = f"not ready  {shown(ready.message)}" if ready is not None and lacks else ""
    if going is None:
        yield from [pods] if pods else ()
        return
    yield f"run        {where(canary, going).removeprefix('run ')}, began {_ago(going.started, now)}"
    yield from [pods] if pods else ()
    analysis = analysis_of(going)
    if not isinstance(analysis, UnsetType):
        yield f"checks     {_counters(going, analysis)}{_next(going, now)}"
        if metrics is not None and metrics.message and status.phase in ("Progressing", "WaitingPromotion"):
            yield f"metrics    {shown(metrics.message)}"
    if going.waiting_for:
        gate = going.waiting_for.rpartition("/")[2]
        yield f"waits      {_waits(gate, canary)}"
    if going.message:
        yield f"because    {shown(going.reason or '')}: {shown(going.message)}"


def _counters(going: RunStatus, analysis: Analysis) -> str:
    counted, step = going.counters, step_of(going)
    wanted = f" of {step.passes}" if step is not None and counted.passes < step.passes else ""
    said = f"{counted.passes}{wanted} passed at this step, {counted.failed} of {analysis.threshold} failed"
    said += f", {counted.held} without a verdict" if counted.held else ""
    return said + (f", {counted.errors} could not be made" if counted.errors else "")


def _next(going: RunStatus, now: datetime) -> str:
    if isinstance(going.next_check_time, UnsetType):
        return ""
    left = (parse_time(going.next_check_time) - now).total_seconds()
    return f", the next in {left:.0f} s" if left > 0 else ", the next now"


def _waits(gate: str, canary: CanaryDeployment) -> str:
    name = canary.name
    if gate.endswith("-webhook"):
        return "for a webhook to agree"
    if gate.endswith("-group"):
        return "for the other members of its ReleaseGroup"
    if gate.endswith("-check"):
        return "for a check that passes"
    if stuck(canary) is not None or held(canary) is not None:
        return f"at the gate {gate}, for what is said above"
    other = f", `trimtab canary abort {name}` rolls it back" if gate.startswith("frozen") else ""
    return f"for you: `trimtab canary promote {name}` lets it {meaning(gate)}{other}"


def _check(check: Check, matched: bool) -> Iterator[list[str]]:
    """A row for each metric; the first has what is true of all."""
    first = [_clock(check.time), str(check.step + 1), "matching" if matched else f"{check.weight} %"]
    if not check.metrics:
        yield [*first, check.verdict, "", "", "", "", shown(check.message or "")]
    for number, metric in enumerate(check.metrics):
        yield [
            *(first if number == 0 else ("", "", "")),
            metric.verdict,
            shown(metric.name),
            _number(metric.value),
            _number(metric.stable),
            "" if isinstance(metric.samples, UnsetType) else str(metric.samples),
            shown(metric.message or (check.message if number == 0 else "") or ""),
        ]


def _said(one: Condition, conditions: Sequence[Condition]) -> str:
    """Its message, but for one that Ready has as well."""
    ready = get_condition(conditions, "Ready")
    same = ready is not None and one is not ready and one.message and one.message == ready.message
    return "as Ready" if same else shown(one.message)


def _number(value: float | UnsetType) -> str:
    return "" if isinstance(value, UnsetType) else f"{value:.4g}" if abs(value) < 10_000 else f"{value:.0f}"


def _clock(moment: str) -> str:
    try:
        return f"{parse_time(moment):%H:%M:%S}"
    except ValueError:
        return shown(moment)


def _ago(moment: str | UnsetType, now: datetime) -> str:
    """How long ago, in one unit."""
    if isinstance(moment, UnsetType) or not moment:
        return ""
    seconds = max(0, int((now - parse_time(moment)).total_seconds()))
    for unit, size in (("d", 86400), ("h", 3600), ("m", 60)):
        if seconds >= 2 * size:
            return f"{seconds // size}{unit} ago"
    return f"{seconds}s ago"
