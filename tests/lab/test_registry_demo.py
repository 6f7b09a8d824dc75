"""The registry of the example: the same images at every start, and each shows what its line says."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from trimtab.lab import registry_demo as demo
from trimtab.lab.registry import Registry
from trimtab.lab.registry_images import Pusher
from trimtab.systems.images.registry.connections import Connections
from trimtab.systems.images.registry.listing import Listing
from trimtab.systems.images.registry.outcomes import Found, Skipped
from trimtab.systems.images.registry.references import endpoint
from trimtab.systems.images.vulnerabilities.importing import import_osv
from trimtab.testing.ports import free_ports
from trimtab.testing.processes import Process

EXAMPLE = Path(__file__).parents[2] / "examples" / "images"


def digests(release: int) -> dict[tuple[str, str], str]:
    return {(each.repository, each.tag): each.made.digest for each in demo.stock(release)}


@pytest.fixture(scope="module")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Registry]:
    (port,) = free_ports(1)
    with Registry(tmp_path_factory.mktemp("registry"), port) as started:
        yield started


@pytest.mark.parametrize("release", demo.RELEASES)
def test_a_release_is_the_same_at_every_start(release: int) -> None:
    assert digests(release) == digests(release)


def test_between_the_releases_a_tag_is_added_one_is_moved_and_one_is_gone() -> None:
    before, after = digests(1), digests(2)
    assert set(after) - set(before) == {("team/web", "1.1")}
    assert set(before) - set(after) == {("team/api", "2.0")}
    assert {tag for tag in before.keys() & after.keys() if before[tag] != after[tag]} == {("team/web", "stable")}


async def test_what_is_pushed_is_listed_and_the_chart_is_no_image(registry: Registry) -> None:
    await demo.push(registry.url, 1)
    async with Connections() as connections:
        client = connections.client(endpoint(registry.host, plain_http=True))
        async with Listing(client) as listing:
            outcomes = [outcome async for outcome in listing]
    found = {(each.repository, each.tag): len(each.images) for each in outcomes if isinstance(each, Found)}
    assert found == {
        ("team/web", "1.0"): 1,
        ("team/web", "stable"): 2,
        ("team/api", "latest"): 1,
        ("team/api", "2.0"): 1,
        ("team/broken", "1.0"): 1,
    }
    assert [each.repository for each in outcomes if isinstance(each, Skipped)] == ["charts/web"]


async def test_a_second_push_of_the_same_is_no_change(registry: Registry) -> None:
    await demo.push(registry.url, 1)
    async with Pusher(registry.url) as pusher:
        for each in demo.stock(1):
            assert await pusher.push(each.repository, each.tag, each.made) == each.made.digest


def test_every_advisory_of_the_example_is_taken(tmp_path: Path) -> None:
    report = import_osv(EXAMPLE / "osv", tmp_path / "database")
    assert (report.read, report.skipped) == (len(list((EXAMPLE / "osv").iterdir())), {})


async def test_the_program_says_what_it_holds_and_what_to_do_next(tmp_path: Path) -> None:
    (port,) = free_ports(1)
    command = [sys.executable, "-m", "trimtab.lab.registry_demo", "--port", str(port), "--release", "2"]
    with Process(command, log=tmp_path / "log") as process:
        await asyncio.to_thread(process.wait_until, lambda: "Ctrl-C ends it" in process.tail(), within=30)
        assert "team/web:1.1" in process.tail()
        process.stop()
        assert not process.running


async def test_a_port_that_is_taken_is_told(registry: Registry) -> None:
    command = [sys.executable, "-m", "trimtab.lab.registry_demo", "--port", registry.host.rpartition(":")[2]]
    process = await asyncio.create_subprocess_exec(*command, stderr=asyncio.subprocess.PIPE)
    _, said = await process.communicate()
    assert process.returncode == 1
    assert f"something listens on {registry.host} already" in said.decode()
