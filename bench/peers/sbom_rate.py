"""SBOMs of images of a registry, beside syft's: CPU time, memory, and the packages of both, which must be the same.

The image is like Debian's: one layer with this machine's packages, the most important ones up to a size, and the database
of just these. A second image puts a small layer on the same base. A large one has a gigabyte of noise and many small files.
They are in a docker-registry on loopback; each side reads them from there in a process of its own, whose whole CPU time
counts, the start of Python included. The second image is timed in the process that has read the first, as a worker would.

    python bench/peers/sbom_rate.py [--megabytes 200] [--large 1024] [--rounds 3]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

import made_layers as made
import syft
from packageurl import PackageURL
from rich.console import Console
from rich.table import Table

from trimtab.lab.registry import Registry
from trimtab.testing.ports import free_ports

DEBIAN, SECOND, LARGE = "bench/debian", "bench/second", "bench/large"
TAG = "1.0"
CHILD = Path(__file__).with_name("sbom_ours.py")
SMALL_FILES = 50_000
Packages = set[tuple[str, str, str]]


class Side(NamedTuple):
    """What one side used and found. Seconds of CPU, bytes. `start` is that of a process which does nothing."""

    cpu: float
    start: float
    peak: int
    packages: Packages


class Figures(NamedTuple):
    """The best of each side. `first` and `second` are seconds of CPU within one process."""

    theirs: Side
    ours: Side
    first: float
    second: float
    large_peak: int
    layer_bytes: int
    large_bytes: int


def measure(megabytes: int, large_megabytes: int, rounds: int) -> Figures:
    (port,) = free_ports(1)
    with tempfile.TemporaryDirectory() as scratch, Registry(Path(scratch, "registry"), port) as registry:
        folder = Path(scratch)
        base = made.debian(folder / "base.gz", megabytes << 20)
        big = made.large(folder / "large.gz", large_megabytes << 20, SMALL_FILES)
        top = made.small(folder / "top.gz")
        for repository, layers in ((DEBIAN, [base]), (SECOND, [base, top]), (LARGE, [base, big])):
            asyncio.run(made.push(registry.url, repository, TAG, layers))
        theirs: list[Side] = []
        ours: list[tuple[Side, dict[str, Any]]] = []
        for number in range(rounds):
            theirs.append(_theirs(f"{registry.host}/{DEBIAN}:{TAG}"))
            ours.append(_ours(registry.host, folder / f"cache{number}", DEBIAN, SECOND))
        large, _ = _ours(registry.host, folder / "cache-large", LARGE)
        sizes = base.size, base.size + big.size
    best, _ = min(ours, key=lambda each: each[0].cpu)
    first = min(float(each["seconds"][0]) for _, each in ours)
    second = min(float(each["seconds"][1]) for _, each in ours)
    return Figures(min(theirs, key=lambda each: each.cpu), best, first, second, large.peak, *sizes)


def _theirs(reference: str) -> Side:
    found = syft.scan_registry(reference)
    return Side(found.cpu, syft.start(), found.peak, {_same(package) for package in syft.packages(found)})


def _ours(host: str, cache: Path, *repositories: str) -> tuple[Side, dict[str, Any]]:
    """Our side in a process of its own; its CPU time is all of the process's, less that of images after the first."""
    idle, _ = _used(host, cache)
    used, told = _used(host, cache, *repositories)
    cpu = used["cpu"] - sum(told["seconds"][1:])
    packages = {_same(syft.of_purl(PackageURL.from_string(each))) for each in told["purls"]}
    return Side(cpu, idle["cpu"], used["peak"], packages), told


def _used(host: str, cache: Path, *repositories: str) -> tuple[dict[str, float], dict[str, Any]]:
    with tempfile.NamedTemporaryFile() as noted:
        command = [sys.executable, str(syft.USED), noted.name, sys.executable, str(CHILD), host, TAG, str(cache)]
        said = subprocess.run([*command, *repositories], stdout=subprocess.PIPE, check=True).stdout
        return json.loads(Path(noted.name).read_text()), json.loads(said)


def _same(package: tuple[str, str, str]) -> tuple[str, str, str]:
    """A jar that names no group: syft gives it the group of its own name, and we none."""
    kind, name, version = package
    group, _, artifact = name.rpartition("/")
    return (kind, artifact, version) if kind == "maven" and group == artifact else package


def show(figures: Figures) -> None:
    theirs, ours = figures.theirs, figures.ours
    table = Table(title=f"SBOM of a layer of {figures.layer_bytes / 1e6:.0f} MB in gzip")
    for column in ("", "syft", "trimtab", "ratio"):
        table.add_column(column, justify="right" if column else "left")
    table.add_row("CPU, s", f"{theirs.cpu:.2f}", f"{ours.cpu:.2f}", f"{theirs.cpu / ours.cpu:.1f}")
    mine, other = ours.cpu - ours.start, theirs.cpu - theirs.start
    table.add_row("without the start, s", f"{other:.2f}", f"{mine:.2f}", f"{other / mine:.1f}")
    table.add_row("peak memory, MB", f"{theirs.peak / 1e6:.0f}", f"{ours.peak / 1e6:.0f}", "")
    table.add_row(
        "second image, same base, ms", "", f"{figures.second * 1e3:.1f}", f"{figures.first / figures.second:.0f}"
    )
    table.add_row(f"peak, {figures.large_bytes / 1e9:.1f} GB, MB", "", f"{figures.large_peak / 1e6:.0f}", "")
    table.add_row("packages", f"{len(theirs.packages)}", f"{len(ours.packages)}", "")
    console = Console()
    console.print(table)
    for line in differences(figures):
        console.print(line)


def differences(figures: Figures) -> list[str]:
    """The packages that only one side has, in words."""
    sides = (("only syft", figures.theirs, figures.ours), ("only trimtab", figures.ours, figures.theirs))
    found = [(name, sorted(one.packages - other.packages)) for name, one, other in sides]
    return [f"{name}: {len(packages)}, as {packages[:10]}" for name, packages in found if packages]


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--megabytes", type=int, default=200, help="of the layer's files")
    arguments.add_argument("--large", type=int, default=1024, help="megabytes of the large image")
    arguments.add_argument("--rounds", type=int, default=3)
    given = arguments.parse_args()
    show(measure(given.megabytes, given.large, given.rounds))


if __name__ == "__main__":
    main()
