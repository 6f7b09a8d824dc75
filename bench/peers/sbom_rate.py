"""SBOMs of images of a registry, beside syft's: CPU time, memory, and the packages of both, which must be the same.

The image is like Debian's: one layer with this machine's packages, the most important ones up to a size, and the database
of just these. They are in a docker-registry on loopback; each side reads them from there.

Syft is a command: its CPU time is that of a process. A worker of ours stays and reads one image after the other, so its
CPU time is that of the second image in a process, which shares no layer with the first. Beside it stand the CPU time of a
process with this image alone, the start of Python included, and the start itself. In the same worker then comes an image
with a small layer on the same base. A large one has a gigabyte of noise and many small files.

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

OTHER, DEBIAN, SECOND, LARGE = "bench/other", "bench/debian", "bench/second", "bench/large"
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


class Worker(NamedTuple):
    """Seconds of CPU of images in a process that had read another one before: the Debian image, and one on its base."""

    debian: float
    second: float
    packages: Packages


class Figures(NamedTuple):
    """The least of each side. `ours` is a process with one image."""

    theirs: Side
    ours: Side
    worker: Worker
    large_peak: int
    layer_bytes: int
    large_bytes: int


def measure(megabytes: int, large_megabytes: int, rounds: int) -> Figures:
    (port,) = free_ports(1)
    with tempfile.TemporaryDirectory() as scratch, Registry(Path(scratch, "registry"), port) as registry:
        folder = Path(scratch)
        base = made.debian(folder / "base.gz", megabytes << 20)
        other = made.debian(folder / "other.gz", megabytes << 19)
        big = made.large(folder / "large.gz", large_megabytes << 20, SMALL_FILES)
        top = made.small(folder / "top.gz")
        for repository, layers in ((OTHER, [other]), (DEBIAN, [base]), (SECOND, [base, top]), (LARGE, [base, big])):
            asyncio.run(made.push(registry.url, repository, TAG, layers))
        theirs, ours, workers = list[Side](), list[Side](), list[Worker]()
        for number in range(rounds):
            theirs.append(_theirs(f"{registry.host}/{DEBIAN}:{TAG}"))
            ours.append(_ours(registry.host, folder / f"alone{number}", DEBIAN))
            workers.append(_worker(registry.host, folder / f"worker{number}"))
        large = _ours(registry.host, folder / "large", LARGE)
        sizes = base.size, base.size + big.size
    worker = Worker(min(each.debian for each in workers), min(each.second for each in workers), workers[0].packages)
    return Figures(min(theirs, key=_cpu), min(ours, key=_cpu), worker, large.peak, *sizes)


def _cpu(side: Side) -> float:
    return side.cpu


def _theirs(reference: str) -> Side:
    found = syft.scan_registry(reference)
    return Side(found.cpu, syft.start(), found.peak, {_same(package) for package in syft.packages(found)})


def _ours(host: str, cache: Path, repository: str) -> Side:
    """One image in a process of its own, whose whole CPU time counts."""
    idle, _ = _used(host, cache)
    used, told = _used(host, cache, repository)
    return Side(used["cpu"], idle["cpu"], int(used["peak"]), _packages(told[repository]))


def _worker(host: str, cache: Path) -> Worker:
    _, told = _used(host, cache, OTHER, DEBIAN, SECOND)
    return Worker(told[DEBIAN]["seconds"], told[SECOND]["seconds"], _packages(told[DEBIAN]))


def _used(host: str, cache: Path, *repositories: str) -> tuple[dict[str, float], dict[str, Any]]:
    with tempfile.NamedTemporaryFile() as noted:
        command = [sys.executable, str(syft.USED), noted.name, sys.executable, str(CHILD), host, TAG, str(cache)]
        said = subprocess.run([*command, *repositories], stdout=subprocess.PIPE, check=True).stdout
        return json.loads(Path(noted.name).read_text()), json.loads(said)


def _packages(told: dict[str, Any]) -> Packages:
    return {_same(syft.of_purl(PackageURL.from_string(each))) for each in told["purls"]}


def _same(package: tuple[str, str, str]) -> tuple[str, str, str]:
    """A jar that names no group: syft gives it the group of its own name, and we none."""
    kind, name, version = package
    group, _, artifact = name.rpartition("/")
    return (kind, artifact, version) if kind == "maven" and group == artifact else package


def show(figures: Figures) -> None:
    theirs, ours, worker = figures.theirs, figures.ours, figures.worker
    table = Table(title=f"SBOM of a layer of {figures.layer_bytes / 1e6:.0f} MB in gzip")
    for column in ("", "syft", "trimtab", "ratio"):
        table.add_column(column, justify="right" if column else "left")
    seconds = (
        ("CPU in a worker, s", theirs.cpu, worker.debian),
        ("CPU of a process, s", theirs.cpu, ours.cpu),
        ("its start, s", theirs.start, ours.start),
    )
    for title, other, mine in seconds:
        table.add_row(title, f"{other:.2f}", f"{mine:.2f}", f"{other / mine:.1f}")
    table.add_row("peak memory, MB", f"{theirs.peak / 1e6:.0f}", f"{ours.peak / 1e6:.0f}", "")
    again = worker.debian / worker.second
    table.add_row("second image, same base, ms", "", f"{worker.second * 1e3:.1f}", f"{again:.0f}")
    table.add_row(f"peak, {figures.large_bytes / 1e9:.1f} GB, MB", "", f"{figures.large_peak / 1e6:.0f}", "")
    table.add_row("packages", f"{len(theirs.packages)}", f"{len(worker.packages)}", "")
    console = Console()
    console.print(table)
    for line in differences(figures):
        console.print(line)


def differences(figures: Figures) -> list[str]:
    """The packages that only one side has, in words."""
    theirs, ours = figures.theirs.packages, figures.worker.packages
    found = [("only syft", sorted(theirs - ours)), ("only trimtab", sorted(ours - theirs))]
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
