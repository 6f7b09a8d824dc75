"""The SBOM of an image beside syft's: CPU time, memory, and the packages of both, which must be the same.

The image is a layer like that of a Debian image, made of this machine's own files (system libraries, programs, shared
data, the package database), and a second image puts a small layer on the same base. Both sides read the same OCI layout
from disk, each in a process of its own; the start of Python counts. The second image is timed in the process that has
read the first one, as a worker would.

    python bench/peers/sbom_rate.py [--megabytes 320] [--rounds 3]
"""

from __future__ import annotations

import argparse
import asyncio
import gzip
import hashlib
import io
import json
import os
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import syft
from packageurl import PackageURL
from rich.console import Console
from rich.table import Table

from trimtab.storage.scratch import Scratch
from trimtab.systems.images.layers.cache import LayerCache
from trimtab.systems.images.layers.image import Inventory, merge
from trimtab.systems.images.layers.layer import read_layer
from trimtab.systems.images.layers.result import LayerResult
from trimtab.systems.images.sbom import spdx
from trimtab.systems.images.sbom.subject import Subject

FIRST = ("var/lib/dpkg/status", "usr/lib/os-release", "etc/os-release")
FOLDERS = ("usr/bin", "usr/lib/x86_64-linux-gnu", "usr/lib/aarch64-linux-gnu", "usr/lib/python3", "usr/share")
LESS_CPU, FASTER_AGAIN, MEMORY = 5, 50, 250 << 20
CREATED = datetime(2026, 1, 1, tzinfo=UTC)


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--megabytes", type=int, default=320, help="of the layer's files")
    arguments.add_argument("--rounds", type=int, default=3)
    arguments.add_argument("--child", nargs=3, metavar=("FIRST", "SECOND", "CACHE"), help=argparse.SUPPRESS)
    given = arguments.parse_args()
    if given.child:
        print(json.dumps(asyncio.run(ours(*(Path(each) for each in given.child)))))
        return
    with tempfile.TemporaryDirectory() as scratch:
        compare(Path(scratch), given.megabytes << 20, given.rounds)


def compare(folder: Path, size: int, rounds: int) -> None:
    base = base_layer(folder / "base.tar.gz", size)
    top = small_layer()
    first = syft.layout(folder / "first", [base])
    second = syft.layout(folder / "second", [base, top])
    theirs = [syft.scan(first) for _ in range(rounds)]
    mine = [in_process(first, second, folder / f"cache{number}") for number in range(rounds)]
    best, told = min(theirs, key=lambda each: each.cpu), min(mine, key=lambda each: float(each["cpu"]))
    again = min(float(each["second"]) for each in mine)
    once = min(float(each["first"]) for each in mine)
    show(base, best, told, once, again)


def show(base: syft.Layer, best: syft.Scan, told: dict[str, Any], once: float, again: float) -> None:
    blob = Path(base.blob) if isinstance(base.blob, Path) else Path()
    table = Table(title=f"SBOM of a layer of {blob.stat().st_size / 1e6:.0f} MB in gzip")
    for column in ("", "syft", "trimtab", "ratio", "goal"):
        table.add_column(column, justify="right" if column else "left")
    cpu, peak = float(told["cpu"]), int(told["peak"])
    table.add_row("CPU, s", f"{best.cpu:.2f}", f"{cpu:.2f}", f"{best.cpu / cpu:.1f}", f"{LESS_CPU}")
    table.add_row("peak memory, MB", f"{best.peak / 1e6:.0f}", f"{peak / 1e6:.0f}", "", f"under {MEMORY >> 20}")
    table.add_row("second image, same base, ms", "", f"{again * 1e3:.1f}", f"{once / again:.0f}", f"{FASTER_AGAIN}")
    table.add_row("packages", f"{len(syft.packages(best))}", f"{len(told['packages'])}", "", "the same")
    console = Console()
    console.print(table)
    found = {tuple(each) for each in told["packages"]}
    console.print(f"only syft: {sorted(syft.packages(best) - found)[:20]}")
    console.print(f"only trimtab: {sorted(found - syft.packages(best))[:20]}")


def in_process(first: Path, second: Path, cache: Path) -> dict[str, Any]:
    """Our side in a process of its own; the CPU time is the whole process's, less that of the second image."""
    child = subprocess.Popen(
        [sys.executable, __file__, "--child", str(first), str(second), str(cache)], stdout=subprocess.PIPE
    )
    assert child.stdout is not None
    told: dict[str, Any] = json.loads(child.stdout.read())
    child.stdout.close()
    _, status, used = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    told["cpu"] = used.ru_utime + used.ru_stime - told["second"]
    told["peak"] = used.ru_maxrss * 1024
    return told


async def ours(first: Path, second: Path, place: Path) -> dict[str, Any]:
    cache = LayerCache(Scratch(place, 1 << 30).dir("layers", 1 << 30))
    start = time.process_time()
    inventory = await document(first, cache)
    between = time.process_time()
    await document(second, cache)
    end = time.process_time()
    packages = [syft.of_purl(PackageURL.from_string(each.purl)) for each in inventory.packages]
    return {"first": between - start, "second": end - between, "packages": sorted(set(packages))}


async def document(layout: Path, cache: LayerCache) -> Inventory:
    """All that a worker does for an image, without the registry."""
    manifest = read_json(layout, read_json(layout, None)["manifests"][0]["digest"])
    config = read_json(layout, manifest["config"]["digest"])
    results = []
    for layer, diff_id in zip(manifest["layers"], config["rootfs"]["diff_ids"], strict=True):
        known = cache.get(diff_id)
        results.append(known or await cache.fill(diff_id, Reading(layout, layer, diff_id)))
    inventory = merge(results)
    digest = manifest["layers"][0]["digest"]
    spdx.write(Subject(repository="bench/image", digest=digest), inventory, created=CREATED, namespace=f"urn:{digest}")
    return inventory


class Reading:
    """Reads one layer of a layout."""

    def __init__(self, layout: Path, layer: dict[str, Any], diff_id: str) -> None:
        self._layout = layout
        self._layer = layer
        self._diff_id = diff_id

    async def __call__(self) -> LayerResult:
        digest = self._layer["digest"]
        chunks = pieces(blob_path(self._layout, digest))
        return read_layer(chunks, media_type=self._layer["mediaType"], digest=digest, diff_id=self._diff_id)


def blob_path(layout: Path, digest: str) -> Path:
    return layout / "blobs" / "sha256" / digest.removeprefix("sha256:")


def read_json(layout: Path, digest: str | None) -> Any:
    return json.loads((blob_path(layout, digest) if digest else layout / "index.json").read_bytes())


def pieces(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        while piece := file.read(1 << 20):
            yield piece


def base_layer(path: Path, size: int) -> syft.Layer:
    """Files of this machine up to the size, as one layer."""
    raw = path.with_suffix("")
    with tarfile.open(raw, "w") as archive:
        for name in chosen(size):
            archive.add(f"/{name}", name, recursive=False)
    digest = hashlib.sha256()
    with raw.open("rb") as source, gzip.open(path, "wb", 6) as target:
        while piece := source.read(1 << 20):
            digest.update(piece)
            target.write(piece)
    raw.unlink()
    return syft.Layer(path, f"sha256:{digest.hexdigest()}")


def chosen(size: int) -> Iterator[str]:
    """The package database, then an equal share of each folder."""
    yield from (name for name in FIRST if Path("/", name).exists())
    folders = [folder for folder in FOLDERS if Path("/", folder).is_dir()]
    for folder in folders:
        left = size // len(folders)
        for place, _, files in sorted(os.walk(f"/{folder}")):
            for name in sorted(files):
                file = Path(place, name)
                left -= file.lstat().st_size
                if left < 0:
                    break
                yield str(file).removeprefix("/")


def small_layer() -> syft.Layer:
    whole = io.BytesIO()
    with tarfile.open(fileobj=whole, mode="w") as archive:
        body = b'{"name": "left-pad", "version": "1.3.0"}'
        info = tarfile.TarInfo("app/node_modules/left-pad/package.json")
        info.size = len(body)
        archive.addfile(info, io.BytesIO(body))
    raw = whole.getvalue()
    return syft.Layer(gzip.compress(raw), f"sha256:{hashlib.sha256(raw).hexdigest()}")


if __name__ == "__main__":
    main()
