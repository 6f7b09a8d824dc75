"""Listing a registry, beside bare aiohttp loops over the same tags: what the registry can give.

The registry is Debian's docker-registry on loopback, which shares the processors with the client and takes most of them.
`first` knows nothing: it lists the catalogue, the tags, HEADs each, and reads the manifest and config of each digest that
it has not met; beside it is a loop that asks for the same three of each tag. `unchanged` knows what the first found; beside
it is a loop of HEADs. The tags of a repository point to `--images` manifests in turn; with as many images as tags each tag
has its own, which is the dearest first listing. Rounds alternate; the best of each counts. At last there are whole
discoveries by the command, with server and controllers beside the registry.

    python bench/peers/registry_list.py [--tags 5000] [--repositories 100] [--images 5000] [--rounds 3]
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import NamedTuple

import aiohttp
from discovery_run import discoveries
from rich.console import Console
from rich.table import Table

from trimtab.lab import registry_images as made
from trimtab.lab.registry import Registry
from trimtab.systems.images.registry.client import RegistryClient
from trimtab.systems.images.registry.connections import Connections
from trimtab.systems.images.registry.listing import CONCURRENCY, Listing
from trimtab.systems.images.registry.manifests import ACCEPT
from trimtab.systems.images.registry.outcomes import Found, KnownTag
from trimtab.systems.images.registry.references import endpoint
from trimtab.testing.ports import free_ports

BARE_FIRST, FIRST, BARE, UNCHANGED = "bare HEAD, manifest, config", "first", "bare HEADs", "unchanged"
DISCOVERY, DISCOVERY_AGAIN = "whole discovery, first", "whole discovery, unchanged"
BESIDE = {FIRST: BARE_FIRST, UNCHANGED: BARE}
Tag = tuple[str, str]


class Figure(NamedTuple):
    """Seconds for all tags, by the clock and of our own processor time."""

    wall: float
    cpu: float


async def measure(tags: int = 5000, repositories: int = 100, images: int = 5000, rounds: int = 3) -> dict[str, Figure]:
    """The best of each side."""
    (port,) = free_ports(1)
    with tempfile.TemporaryDirectory() as folder, Registry(Path(folder), port) as registry:
        named, configs = await push(registry.url, tags, repositories, images)
        async with Connections() as connections:
            client = connections.client(endpoint(registry.host, plain_http=True))
            known = await listed(client, {}, len(named))
            best: dict[str, Figure] = {}
            for _ in range(rounds):
                for name, run in (
                    (BARE_FIRST, lambda: bare(registry.url, named, configs)),
                    (FIRST, lambda: listed(client, {}, len(named))),
                    (BARE, lambda: bare(registry.url, named)),
                    (UNCHANGED, lambda: listed(client, known, len(named))),
                ):
                    figure = await timed(run)
                    best[name] = min(best.get(name, figure), figure)
        first, again = discoveries(Path(folder, "trimtab"), registry.host, rounds)
        return best | {DISCOVERY: Figure(first, 0.0), DISCOVERY_AGAIN: Figure(again, 0.0)}


async def push(url: str, tags: int, repositories: int, images: int) -> tuple[list[Tag], list[str]]:
    """All tags, quickly: blobs once for a repository, and then only manifests. The digest of each one's config, too."""
    layer = made.layer({"etc/os-release": b"ID=debian\n"})
    named = [(f"team/app{number % repositories}", f"1.0.{number}") for number in range(tags)]
    each = [
        made.image([layer], annotations={"number": str(number)}, labels={"n": str(number)}) for number in range(images)
    ]
    async with made.Pusher(url) as pusher:

        async def one(number: int) -> None:
            repository, tag = named[number]
            await pusher.push(repository, tag, each[number % images])

        await pooled(one, range(tags))
    return named, [each[number % images].blobs[0].digest for number in range(tags)]


async def bare(url: str, named: list[Tag], configs: list[str] | None = None) -> None:
    """What the registry can give: requests with nothing around them. HEADs; and manifests and configs when they are named."""
    connector = aiohttp.TCPConnector(limit=CONCURRENCY)
    async with aiohttp.ClientSession(connector=connector, headers={"Accept": ACCEPT}, raise_for_status=True) as session:

        async def one(number: int) -> None:
            repository, tag = named[number]
            async with session.head(f"{url}/v2/{repository}/manifests/{tag}") as response:
                digest = response.headers["Docker-Content-Digest"]
            if configs is not None:
                for path in (f"manifests/{digest}", f"blobs/{configs[number]}"):
                    async with session.get(f"{url}/v2/{repository}/{path}") as response:
                        await response.read()

        await pooled(one, range(len(named)))


async def listed(client: RegistryClient, known: dict[Tag, KnownTag], expected: int) -> dict[Tag, KnownTag]:
    async with Listing(client, known=known) as listing:
        found = {(each.repository, each.tag): each.known async for each in listing if isinstance(each, Found)}
    if len(found) != expected or not listing.coverage.complete:
        raise RuntimeError(f"{len(found)} tags were found of {expected}: {listing.coverage}")
    return found


async def pooled(one: Callable[[int], Awaitable[None]], numbers: range) -> None:
    rest = iter(numbers)

    async def work() -> None:
        for number in rest:
            await one(number)

    await asyncio.gather(*(work() for _ in range(CONCURRENCY)))


async def timed(run: Callable[[], Awaitable[object]]) -> Figure:
    wall, cpu = time.perf_counter(), time.process_time()
    await run()
    return Figure(time.perf_counter() - wall, time.process_time() - cpu)


def show(figures: dict[str, Figure], tags: int) -> None:
    table = Table("listing", "tags/s", "seconds", "CPU, s", "of the bare loop")
    for name, figure in figures.items():
        ratio = f"{figures[BESIDE[name]].wall / figure.wall:.2f}" if name in BESIDE else ""
        table.add_row(
            name, f"{tags / figure.wall:,.0f}", f"{figure.wall:.2f}", f"{figure.cpu:.2f}" if figure.cpu else "", ratio
        )
    Console().print(table)


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--tags", type=int, default=5000)
    arguments.add_argument("--repositories", type=int, default=100)
    arguments.add_argument("--images", type=int, default=5000)
    arguments.add_argument("--rounds", type=int, default=3)
    given = arguments.parse_args()
    show(asyncio.run(measure(given.tags, given.repositories, given.images, given.rounds)), given.tags)


if __name__ == "__main__":
    main()
