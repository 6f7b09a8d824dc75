"""The hub and Git sync: many documents from Git, one change told by a webhook, cached reads, and a million resources.

    python bench/hub.py [--quick] [--only sync|reads|size …] [--json FILE] [--docs]

Everything is in one run on one machine. A ratio says how many times better Trimtab is; below its goal it is behind, and is
printed like the others. What is measured, and how, is in `bench/peers/hub_sync.py` and `bench/peers/hub_reads.py`.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "peers"))

import hub_reads as reads  # noqa: E402 - of bench/peers
import hub_sync as sync  # noqa: E402

import table  # noqa: E402
from table import Row  # noqa: E402

PARTS = ("sync", "reads", "size")
KUBECTL, LOOP, UNCHANGED, LIVE, CACHED = 3.0, 1.3, 1.0, 300.0, 10.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="few documents, to see that it works; goals are for many")
    options = table.asked(parser, PARTS)
    count, turns, rounds = (300, 1, 3) if options.quick else (5_000, 5, 20)
    rows: list[Row] = []
    if "sync" in options.only:
        for kind in ("ConfigMap", "Addon"):
            rows += of_sync(sync.measure(count, kind, turns, rounds, say), kind)
    if "reads" in options.only:
        say("reads over PostgreSQL")
        rows += of_reads(reads.measure(200 if options.quick else 2_000, 1.0 if options.quick else 5.0))
    if "size" in options.only:
        counts = (1_000, 5_000) if options.quick else (10_000, 100_000, 1_000_000)
        rows += of_sizes(reads.sizes(counts, say))
    table.show("the hub", rows, digits=2, width=150)
    if options.docs:
        table.renew("hub", rows, digits=2)
    if options.json:
        options.json.write_text(json.dumps([row._asdict() for row in rows], indent=2) + "\n")


def say(step: str) -> None:
    print(step, file=sys.stderr, flush=True)


def of_sync(found: sync.Synced, kind: str) -> Iterator[Row]:
    what = f"{found.documents:,} {kind}s from Git"
    ratio = found.kubectl / found.sync
    yield Row(
        f"{what}: beside kubectl apply --server-side",
        f"{found.kubectl:.2f} s",
        f"{found.sync:.2f} s",
        ratio,
        f"{KUBECTL:g}x",
        ratio >= KUBECTL,
    )
    ratio = found.loop / found.sync
    yield Row(
        f"{what}: beside a bare loop of applies, {sync.CLIENTS} at once",
        f"{found.loop:.2f} s",
        f"{found.sync:.2f} s",
        ratio,
        f"within {LOOP:g}",
        found.sync <= found.loop * LOOP,
    )
    yield Row(
        f"{what}, nothing changed: the command `trimtab git sync`, start to end",
        "",
        f"{found.unchanged:.2f} s",
        None,
        f"< {UNCHANGED:g} s",
        found.unchanged < UNCHANGED,
    )
    times = f"{found.one_p50:.0f} ms, {found.one_max:.0f} ms"
    title = f"one of {found.documents:,} {kind}s changed: webhook to live, p50 and slowest"
    yield Row(title, "", times, None, f"< {LIVE:g} ms", found.one_p50 < LIVE)


def of_reads(found: reads.Reads) -> Iterator[Row]:
    ratio = found.cached / found.uncached
    yield Row(
        "gets of the accessor over PostgreSQL: beside itself without the cache",
        f"{found.uncached:,.0f}/s",
        f"{found.cached:,.0f}/s",
        ratio,
        f"{CACHED:g}x",
        ratio >= CACHED,
    )
    yield Row("conversion of a Blueprint from its rows", "", f"{found.conversion:.0f} µs")
    yield Row("names for its IDs, remembered", "", f"{found.hydration:.0f} µs")


def of_sizes(found: list[reads.Size]) -> Iterator[Row]:
    """Beside the smallest: size must not matter."""
    first = found[0]
    for size in found[1:]:
        for what, small, large in (
            ("a get", first.get, size.get),
            ("the first page of 500", first.first_page, size.first_page),
            ("a late page of 500", first.late_page, size.late_page),
        ):
            yield Row(
                f"{what}, {size.rows:,} resources: beside {first.rows:,}",
                f"{small:.2f} ms",
                f"{large:.2f} ms",
                small / large,
                "within 2",
                large <= small * 2,
            )


if __name__ == "__main__":
    main()
