"""`trimtab canary replay`: what other thresholds would have made of a run, from the very numbers that it measured."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import msgspec
from msgspec import UnsetType

from trimtab.cli.access import Access, session
from trimtab.cli.blobs import Place, opened, read
from trimtab.cli.canary_find import called, canary_of, run_of, status_of
from trimtab.cli.codes import NOT_FOUND, OK, USAGE, Problem, run
from trimtab.cli.tables import Printer, shown
from trimtab.model.clock import parse_time
from trimtab.model.document import convert, to_document
from trimtab.systems.delivery.kinds import Analysis, CanaryDeployment
from trimtab.systems.delivery.machine.runs import analysis_of
from trimtab.systems.delivery.replaying import LARGEST, RecordError, Replay, Replayed, replay

HEADERS = ("checked", "step", "was", "would be", "then", "why")
MOST_RUNS = 10


class Options(msgspec.Struct, frozen=True, kw_only=True):
    run: str = ""
    """"" is the newest that has a record."""
    changes: tuple[str, ...] = ()
    """As `request-success-rate.min=99`, or `passes=3` for what is of the whole analysis."""
    output: str = "table"


class Recorded(NamedTuple):
    """A run with a record, and the analysis that a replay begins with."""

    id: str
    digest: str
    was: str
    analysis: Analysis
    by: str


def replayed(access: Access, name: str, options: Options, place: Place) -> int:
    return run(_replayed(access, name, options, place))


async def _replayed(access: Access, name: str, options: Options, place: Place) -> int:
    async with session(access) as server:
        canary = await canary_of(server, name)
    chosen = _chosen(canary, options.run)
    analysis = changed(chosen.analysis, options.changes)
    async with opened(access, place) as blobs:
        record = await read(blobs, chosen.digest, of=f"the record of run {chosen.id}", max_bytes=LARGEST)
    try:
        found = replay(record, analysis)
    except RecordError as error:
        raise Problem(f"the record of run {chosen.id} cannot be read: {error}") from None
    if options.output == "json":
        sys.stdout.write(msgspec.json.format(msgspec.json.encode(found)).decode() + "\n")
        return OK
    _show(canary, chosen, options, found)
    return OK


def _chosen(canary: CanaryDeployment, wanted: str) -> Recorded:
    going, history, spec = run_of(canary), status_of(canary).history or (), canary.spec.analysis
    known: list[Recorded] = []
    if going is not None and not isinstance(going.record, UnsetType):
        own = analysis_of(going)
        if not isinstance(own, UnsetType):
            known.append(Recorded(going.id, going.record, "it goes on", own, "its own analysis"))
    for each in history:
        if not isinstance(each.details, UnsetType) and not isinstance(spec, UnsetType):
            was = f"{each.outcome} {each.reason or ''}".rstrip()
            known.append(Recorded(each.id, each.details, was, spec, "spec.analysis as it is now"))
    found = [each for each in known if wanted in ("", each.id)]
    if found:
        return found[0]
    if history and isinstance(spec, UnsetType):
        raise Problem(f"{called(canary)} has no spec.analysis to judge a run by", NOT_FOUND)
    there = ", ".join(each.id for each in known[:MOST_RUNS]) or "none"
    what = f"run {wanted}" if wanted else "run"
    raise Problem(f"{called(canary)} has no {what} with a record; there are: {there}", NOT_FOUND)


def changed(analysis: Analysis, changes: Sequence[str]) -> Analysis:
    """The analysis with these fields set. What cannot be is a Problem."""
    document = to_document(analysis)
    for text in changes:
        name, equals, value = text.partition("=")
        metric, dot, field = name.strip().rpartition(".")
        if not equals:
            raise _wrong(text, "write it as request-success-rate.min=99 or passes=3")
        places = _OF_METRICS if dot else _OF_ANALYSIS
        if field not in places:
            raise _wrong(text, f"{'of a metric' if dot else 'of the analysis'} there are: {', '.join(places)}")
        target = _metric(document, metric, text) if dot else document
        path, reader = places[field]
        for step in path[:-1]:
            target = target.setdefault(step, {})
        try:
            target[path[-1]] = reader(value.strip())
        except ValueError:
            raise _wrong(text, f'"{value}" is no value of {field}') from None
    try:
        made = convert(document, Analysis)
    except msgspec.ValidationError as error:
        raise _wrong(" ".join(changes), str(error)) from None
    _sensible(made, changes)
    return made


def _sensible(analysis: Analysis, changes: Sequence[str]) -> None:
    from trimtab.systems.delivery.problems.metrics import metric_problems

    for problem in metric_problems(analysis) if changes else ():
        raise _wrong(" ".join(changes), str(problem))


def _metric(document: dict[str, Any], name: str, text: str) -> dict[str, Any]:
    metrics: list[dict[str, Any]] = list(document.get("metrics") or ())
    for metric in metrics:
        if metric["name"] == name:
            document["metrics"] = metrics
            return metric
    there = ", ".join(shown(metric["name"]) for metric in metrics) or "none"
    raise _wrong(text, f"there is no metric {name}; there are: {there}")


def _wrong(text: str, why: str) -> Problem:
    return Problem(f"--set {text}: {why}", USAGE)


def _switch(text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise ValueError(text)
    return text.lower() == "true"


Reader = Callable[[str], Any]
_OF_METRICS: dict[str, tuple[tuple[str, ...], Reader]] = {
    "min": (("thresholdRange", "min"), float),
    "max": (("thresholdRange", "max"), float),
    "judge": (("compare", "judge"), str),
    "margin": (("compare", "margin"), float),
    "confidence": (("compare", "confidence"), float),
    "minSamples": (("minSamples",), int),
    "critical": (("critical",), _switch),
    "onNoData": (("onNoData",), str),
}
_OF_ANALYSIS: dict[str, tuple[tuple[str, ...], Reader]] = {
    "threshold": (("threshold",), int),
    "passes": (("passes",), int),
    "failureMode": (("failureMode",), str),
    "onFail": (("onFail",), str),
    "onNoData": (("onNoData",), str),
    "noDataLimit": (("noDataLimit",), int),
    "errorLimit": (("errorLimit",), int),
}
"""What changes how numbers are judged. What changes which numbers are measured cannot be replayed."""


def _show(canary: CanaryDeployment, chosen: Recorded, options: Options, found: Replay) -> None:
    using = f" with {', '.join(options.changes)}" if options.changes else ""
    print(f"{called(canary)}: run {chosen.id} by {chosen.by}{using}\n")
    Printer(HEADERS).add([_row(each) for each in found.replayed])
    print(f"\nwas:       {chosen.was}")
    print(f"would be:  {_ending(found)}")
    if not found.complete:
        print("The record was full before the run ended: its last checks are not in it.")
    if found.missing:
        print(f"Not measured in this run, and left out: {', '.join(shown(name) for name in found.missing)}")


def _ending(found: Replay) -> str:
    if found.ending == "Unfinished":
        return f"Unfinished after {found.checks} check{'' if found.checks == 1 else 's'}, at step {found.step + 1}"
    why = " ".join(text for text in (found.reason, found.message) if text)
    return f"{found.ending} at check {found.checks}, {_clock(found.time)}" + (f": {shown(why)}" if why else "")


def _row(one: Replayed) -> list[str]:
    metrics = "; ".join(f"{m.name}: {m.message or m.verdict}" for m in one.metrics if m.verdict != "Pass")
    return [
        _clock(one.time),
        str(one.step + 1),
        one.was,
        one.verdict,
        one.action or "",
        shown(one.message or metrics),
    ]


def _clock(moment: str) -> str:
    try:
        return f"{parse_time(moment):%H:%M:%S}"
    except ValueError:
        return shown(moment)
