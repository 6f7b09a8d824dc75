"""Made-up releases, healthy and bad, before our judges and before a fixed threshold, from the very same samples.

    python bench/judges.py [--quick]

A release has ten steps. The fixed threshold is Flagger's way: a check fails below 99 % success (or above a latency),
also when there were no requests; so many failed checks, counted over the whole run, roll back; a passed check is a step.
Ours are the judges of this project with what is set when nothing is said (confidence 95 %, three failed checks): an
answer that is not sure yet holds the step, and the run takes longer, up to LIMIT checks. What is undecided by then is
told apart: its traffic stays where it is until people, or noDataLimit, decide.
"""

from __future__ import annotations

import argparse
import functools
import math
import random
import time
from bisect import bisect
from collections.abc import Callable, Iterable, Sequence
from statistics import fmean
from typing import NamedTuple

from rich.console import Console
from rich.table import Table

from trimtab.systems.delivery.judging import judge_all, settle
from trimtab.systems.delivery.kinds import Analysis, Counters, Evidence, Metric
from trimtab.systems.delivery.kinds.analysis import DURATION, SUCCESS_RATE, Comparison
from trimtab.systems.delivery.measuring.contract import Counts, Measured

RELEASES, STEPS, LIMIT = 1000, 10, 100
HEALTHY = 0.003
STABLE = 9
"""Stable gets so many times the requests of the canary."""
THRESHOLDS = (1, 3, 5)
"""Failed checks that roll back, for the fixed threshold: Flagger's default, ours, and what its examples use."""
PARTS = 6
"""Of a window: what a judge of values sees one by one."""
TYPICAL, SPREAD = 100.0, 0.5
"""Latencies are log-normal: this median in ms; 99 of 100 are below 320 ms."""
BUCKETS = (0, 0.5, 1, 5, 10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10000, 30000, 60000)
"""Bounds of Istio's histogram, in ms."""
POOL = 2000


class Ending(NamedTuple):
    """How one release went: out to everyone, rolled back, or still undecided; and after how many checks."""

    result: str
    checks: int


class Row(NamedTuple):
    """All releases of one sort before one judge."""

    traffic: str
    defect: str
    judge: str
    endings: tuple[Ending, ...]

    def share(self, result: str) -> float:
        return sum(ending.result == result for ending in self.endings) / len(self.endings)

    def checks(self, result: str) -> float:
        found = [ending.checks for ending in self.endings if ending.result == result]
        return fmean(found) if found else math.nan


class Errors(NamedTuple):
    """A window: failures and requests of the canary and of stable."""

    failed: int
    total: int
    stable_failed: int
    stable_total: int


class Latencies(NamedTuple):
    """A window: the means of its parts, by a histogram, and the canary's slowest request, which is its P99 up to 100 requests."""

    canary: tuple[float, ...]
    stable: tuple[float, ...]
    slowest: float
    total: int


def errors(releases: int = RELEASES) -> list[Row]:
    """Bayes and the fixed threshold, for each traffic and each defect."""
    rows = []
    for requests in (20, 50, 100):
        for more in (0.0, 0.01, 0.02, 0.05):
            draw = functools.partial(_errors, requests=requests, more=more)
            rows += _compared(f"{requests}", _percent(more), draw, releases)
        turned = functools.partial(_errors, requests=requests, more=0.05, since=5)
        rows += _compared(f"{requests}", "+5 % from the 6th window", turned, releases)
    idle = functools.partial(_errors, requests=20, more=0.0, idle=0.25)
    return rows + _compared("20, every 4th window empty", _percent(0.0), idle, releases)


def latencies(releases: int = RELEASES) -> list[Row]:
    """MannWhitney and the fixed threshold, for each traffic and each shift of all latencies."""
    analysis = Analysis(metrics=(Metric(name=DURATION, compare=Comparison(judge="MannWhitney")),))
    rows = []
    for requests in (20, 50):
        for more in (0.0, 0.25, 0.5, 1.0):
            dice = random.Random(f"{requests} {more}")
            endings: dict[str, list[Ending]] = {}
            for _ in range(releases):
                windows = [_latencies(dice, requests, more) for _ in range(LIMIT)]
                endings.setdefault("MannWhitney", []).append(_ours(analysis, map(_timed, windows)))
                for bound in (350, 500):
                    bad = (each.slowest > bound for each in windows)
                    endings.setdefault(f"fixed {bound} ms, 3", []).append(_fixed(bad, 3))
            rows += [Row(f"{requests}", _percent(more), judge, tuple(found)) for judge, found in endings.items()]
    return rows


def worse(rows: Sequence[Row], other: str, ours: str) -> list[str]:
    """Sentences on where ours has more false rollbacks, or more bad releases that went out, than the other."""
    found = []
    by_sort = {(row.traffic, row.defect, row.judge): row for row in rows}
    for (traffic, defect, judge), row in by_sort.items():
        if judge != ours:
            continue
        rival = by_sort[traffic, defect, other]
        wrong = "back" if defect == _percent(0.0) else "out"
        if row.share(wrong) > rival.share(wrong):
            what = "false rollbacks" if wrong == "back" else "bad releases out"
            found.append(
                f"{traffic} requests, {defect}: {row.share(wrong):.1%} {what}, {other} has {rival.share(wrong):.1%}"
            )
    return found


def show(console: Console, title: str, rows: Sequence[Row], ours: str) -> None:
    judges = list(dict.fromkeys(row.judge for row in rows))
    sorts = list(dict.fromkeys((row.traffic, row.defect) for row in rows))
    by_sort = {(row.traffic, row.defect, row.judge): row for row in rows}
    table = Table(title=title, caption="wrong (undecided) after so many checks when right")
    table.add_column("requests", max_width=12)
    table.add_column("release", max_width=12)
    for judge in judges:
        table.add_column(judge, justify="right")
    for traffic, defect in sorts:
        healthy = defect == _percent(0.0)
        cells = [_cell(by_sort[traffic, defect, judge], healthy) for judge in judges]
        table.add_row(traffic, "healthy" if healthy else defect, *cells)
    console.print(table)
    for other in dict.fromkeys(row.judge for row in rows if row.judge != ours):
        sums = [summed(rows, judge) for judge in (ours, other)]
        console.print(
            f"beside {other}: {_times(sums[1][0], sums[0][0])} false rollbacks, "
            f"{_times(sums[1][1], sums[0][1])} bad releases missed"
        )
        for sentence in worse(rows, other, ours):
            console.print(f"  worse at {sentence}")


def _cell(row: Row, healthy: bool) -> str:
    wrong, right = ("back", "out") if healthy else ("out", "back")
    undecided, took = row.share("limit"), row.checks(right)
    after = "" if math.isnan(took) else f" after {took:.1f}"
    return f"{row.share(wrong):.1%}{f' ({undecided:.1%})' if undecided else ''}{after}"


def summed(rows: Sequence[Row], judge: str) -> tuple[float, float]:
    """False rollbacks, and bad releases that went out, over all sorts."""
    own = [row for row in rows if row.judge == judge]
    false = sum(row.share("back") * len(row.endings) for row in own if row.defect == _percent(0.0))
    return false, sum(row.share("out") * len(row.endings) for row in own if row.defect != _percent(0.0))


def _times(theirs: float, ours: float) -> str:
    return f"{theirs:.0f} to our {ours:.0f}" + (f" ({theirs / ours:.1f} times as many)" if ours else "")


def _compared(traffic: str, defect: str, draw: Callable[[random.Random], list[Errors]], releases: int) -> list[Row]:
    analysis = Analysis(metrics=(Metric(name=SUCCESS_RATE, compare=Comparison(judge="Bayes")),))
    dice = random.Random(f"{traffic} {defect}")
    endings: dict[str, list[Ending]] = {}
    for _ in range(releases):
        windows = draw(dice)
        endings.setdefault("Bayes", []).append(_ours(analysis, map(_counted, windows)))
        for threshold in THRESHOLDS:
            bad = (not each.total or (each.total - each.failed) * 100 < 99 * each.total for each in windows)
            endings.setdefault(f"fixed 99 %, {threshold}", []).append(_fixed(bad, threshold))
    return [Row(traffic, defect, judge, tuple(found)) for judge, found in endings.items()]


def _ours(analysis: Analysis, windows: Iterable[Measured]) -> Ending:
    counters, step = Counters(), 0
    evidence: tuple[Evidence, ...] = ()
    for index, window in enumerate(windows, 1):
        judged = judge_all(analysis, (window,), evidence)
        evidence = judged.evidence
        counters, outcome = settle(analysis, counters, judged.checks)
        if outcome.action == "Rollback":
            return Ending("back", index)
        if outcome.action == "Advance":
            step, counters = step + 1, counters.replace(passes=0)
            if step == STEPS:
                return Ending("out", index)
    return Ending("limit", LIMIT)


def _fixed(bad: Iterable[bool], threshold: int) -> Ending:
    failed = passed = 0
    for index, fails in enumerate(bad, 1):
        failed, passed = failed + fails, passed + (not fails)
        if failed >= threshold:
            return Ending("back", index)
        if passed >= STEPS:
            return Ending("out", index)
    return Ending("limit", LIMIT)


def _errors(dice: random.Random, *, requests: int, more: float, since: int = 0, idle: float = 0.0) -> list[Errors]:
    windows = []
    for index in range(LIMIT):
        total = 0 if idle and dice.random() < idle else requests
        share = HEALTHY + (more if index >= since else 0.0)
        stable = STABLE * requests
        windows.append(Errors(_binomial(dice, total, share), total, _binomial(dice, stable, HEALTHY), stable))
    return windows


def _latencies(dice: random.Random, requests: int, more: float) -> Latencies:
    count = requests // PARTS
    ours, theirs = _pool(count, more), _pool(count * STABLE, 0.0)
    canary = [ours[dice.randrange(POOL)] for _ in range(PARTS)]
    stable = [theirs[dice.randrange(POOL)] for _ in range(PARTS)]
    return Latencies(
        tuple(mean for mean, _ in canary),
        tuple(mean for mean, _ in stable),
        max(slowest for _, slowest in canary),
        count * PARTS,
    )


@functools.cache
def _pool(count: int, more: float) -> list[tuple[float, float]]:
    """Parts of windows with so many requests to draw from: their mean, and the slowest."""
    dice = random.Random(f"{count} {more}")
    parts = []
    for _ in range(POOL):
        values = [dice.lognormvariate(math.log(TYPICAL * (1 + more)), SPREAD) for _ in range(count)]
        parts.append((fmean(_middle(value) for value in values), max(values)))
    return parts


def _middle(value: float) -> float:
    """Of the bucket that a latency falls into: all that a histogram tells. A mean of these does not depend on how many
    requests there were, as a high quantile of a few does: the P99 of three is lower than that of thirty."""
    place = bisect(BUCKETS, value)
    return (BUCKETS[place - 1] + BUCKETS[place]) / 2


def _binomial(dice: random.Random, count: int, share: float) -> int:
    return bisect(_chances(count, share), dice.random()) if count else 0


@functools.cache
def _chances(count: int, share: float) -> list[float]:
    chance, total, chances = (1 - share) ** count, 0.0, []
    for k in range(count + 1):
        total += chance
        chances.append(total)
        if total > 1 - 1e-12:
            break
        chance *= (count - k) / (k + 1) * share / (1 - share)
    return chances


def _counted(window: Errors) -> Measured:
    value = (window.total - window.failed) / window.total * 100 if window.total else None
    return Measured(
        name=SUCCESS_RATE,
        value=value,
        canary_counts=Counts(window.total, window.failed),
        stable_counts=Counts(window.stable_total, window.stable_failed),
    )


def _timed(window: Latencies) -> Measured:
    return Measured(
        name=DURATION,
        value=window.slowest,
        canary_counts=Counts(window.total),
        canary_values=window.canary,
        stable_values=window.stable,
    )


def _percent(more: float) -> str:
    return f"+{more:.0%}".replace("%", " %")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a tenth of the releases")
    releases = RELEASES // 10 if parser.parse_args().quick else RELEASES
    console, begin = Console(width=130), time.perf_counter()
    show(console, f"Errors, {releases} releases each; stable has {HEALTHY:.1%}", errors(releases), "Bayes")
    show(console, f"Latencies, {releases} releases each", latencies(releases), "MannWhitney")
    console.print(f"{time.perf_counter() - begin:.0f} s")


if __name__ == "__main__":
    main()
