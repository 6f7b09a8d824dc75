"""Scratch: made once, kept while in use, evicted by age, whole or not there."""

# ruff: noqa: ASYNC240 - the files of a test are small

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trimtab.storage.scratch import Make, Scratch, ScratchDir, ScratchError, entry_name
from trimtab.testing.clock import FakeClock


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def layers(tmp_path: Path, clock: FakeClock) -> ScratchDir:
    return Scratch(tmp_path / "scratch", max_bytes=1 << 20, clock=clock).dir("layers", max_bytes=100)


def writes(content: bytes) -> Make:
    async def make(path: Path) -> None:
        path.write_bytes(content)

    return make


async def never(path: Path) -> None:
    raise AssertionError("it is made already")


async def put(layers: ScratchDir, clock: FakeClock, key: str, size: int = 40) -> None:
    async with layers.fill(key, writes(bytes(size))):
        pass
    await clock.advance(1)


def has(layers: ScratchDir, key: str) -> bool:
    with layers.use(key) as path:
        return path is not None


async def test_an_entry_is_made_once_and_used_again(layers: ScratchDir) -> None:
    async with layers.fill("a", writes(b"made")) as path:
        assert path.read_bytes() == b"made"
    async with layers.fill("a", never) as path:
        assert path.read_bytes() == b"made"
    with layers.use("a") as used:
        assert used == path


async def test_a_folder_is_an_entry_too(layers: ScratchDir) -> None:
    async def make(path: Path) -> None:
        (path / "sub").mkdir(parents=True)
        (path / "sub" / "file").write_text("x")

    async with layers.fill("tree", make) as path:
        assert (path / "sub" / "file").read_text() == "x"
    async with layers.fill("tree", never):
        pass


async def test_what_is_not_there_is_none_and_a_question_leaves_nothing(layers: ScratchDir) -> None:
    assert not has(layers, "a")
    assert [path for path in layers.path.rglob("*") if path.is_file()] == []


async def test_of_many_who_ask_at_once_one_makes_it(layers: ScratchDir) -> None:
    made = 0
    go = asyncio.Event()

    async def make(path: Path) -> None:
        nonlocal made
        made += 1
        await go.wait()
        path.write_text("x")

    async def ask() -> str:
        async with layers.fill("a", make) as path:
            return path.read_text()

    tasks = [asyncio.create_task(ask()) for _ in range(10)]
    await asyncio.sleep(0)
    go.set()
    assert await asyncio.gather(*tasks) == ["x"] * 10
    assert made == 1


async def test_nobody_sees_an_entry_that_is_being_made(layers: ScratchDir) -> None:
    async def make(path: Path) -> None:
        path.write_text("half")
        assert not has(layers, "a")

    async with layers.fill("a", make):
        assert has(layers, "a")


async def test_a_making_that_fails_leaves_nothing_and_the_next_one_tries_again(layers: ScratchDir) -> None:
    async def broken(path: Path) -> None:
        path.write_text("half")
        raise RuntimeError("no network")

    with pytest.raises(RuntimeError, match="no network"):
        async with layers.fill("a", broken):
            pass
    assert not has(layers, "a")
    async with layers.fill("a", writes(b"whole")) as path:
        assert path.read_bytes() == b"whole"


async def test_a_maker_that_makes_nothing_is_told(layers: ScratchDir) -> None:
    async def lazy(path: Path) -> None:
        return

    with pytest.raises(ScratchError, match="nothing was made"):
        async with layers.fill("a", lazy):
            pass


async def test_one_that_waits_makes_it_when_the_first_fails(layers: ScratchDir) -> None:
    begun, go = asyncio.Event(), asyncio.Event()

    async def broken(path: Path) -> None:
        begun.set()
        await go.wait()
        raise RuntimeError

    async def ask(make: Make) -> bytes:
        async with layers.fill("a", make) as path:
            return path.read_bytes()

    first = asyncio.create_task(ask(broken))
    await begun.wait()
    second = asyncio.create_task(ask(writes(b"second")))
    go.set()
    with pytest.raises(RuntimeError):
        await first
    assert await second == b"second"


async def test_a_file_that_lost_its_end_is_made_again(layers: ScratchDir) -> None:
    async with layers.fill("a", writes(b"whole")) as path:
        pass
    path.write_bytes(b"who")
    assert not has(layers, "a")
    async with layers.fill("a", writes(b"whole")) as path:
        assert path.read_bytes() == b"whole"


async def test_an_entry_that_its_user_finds_damaged_is_made_again(layers: ScratchDir) -> None:
    async with layers.fill("a", writes(b"bad")):
        pass
    async with layers.fill("a", writes(b"new"), intact=lambda path: path.read_bytes() == b"new") as path:
        assert path.read_bytes() == b"new"


async def test_nobody_gets_an_entry_that_is_being_replaced(layers: ScratchDir) -> None:
    async with layers.fill("a", writes(b"bad")):
        pass

    async def make(path: Path) -> None:
        assert not has(layers, "a"), "it would go under its user"
        path.write_bytes(b"new")

    async with layers.fill("a", make, intact=lambda path: path.read_bytes() == b"new"):
        assert has(layers, "a")


async def test_an_entry_can_be_thrown_away_but_not_under_its_user(layers: ScratchDir) -> None:
    async with layers.fill("a", writes(b"x")):
        assert not await layers.discard("a")
    assert await layers.discard("a")
    assert not has(layers, "a")


async def test_what_was_used_longest_ago_goes_first(layers: ScratchDir, clock: FakeClock) -> None:
    for key in ("a", "b"):
        await put(layers, clock, key)
    assert has(layers, "a")  # and so b is the older one
    await clock.advance(1)
    await put(layers, clock, "c")
    await layers.trim()
    assert [has(layers, key) for key in ("a", "b", "c")] == [True, False, True]


async def test_an_entry_in_use_is_not_evicted(layers: ScratchDir, clock: FakeClock) -> None:
    await put(layers, clock, "a")
    with layers.use("a") as path:
        assert path is not None
        for key in ("b", "c", "d"):
            await put(layers, clock, key)
        await layers.trim()
        assert path.exists()
    assert has(layers, "a")


async def test_a_folder_over_its_bound_is_trimmed_by_filling_it(layers: ScratchDir, clock: FakeClock) -> None:
    for number in range(10):
        await put(layers, clock, f"k{number}")
    assert sum(path.stat().st_size for path in (layers.path / "entries").iterdir()) <= 140
    assert has(layers, "k9")


async def test_an_entry_that_grew_counts_as_large_as_it_is(layers: ScratchDir, clock: FakeClock) -> None:
    async def make(path: Path) -> None:
        path.mkdir()

    async with layers.fill("clone", make) as path:
        (path / "object").write_bytes(bytes(200))
    await clock.advance(1)
    assert await layers.trim() == 200
    assert not has(layers, "clone")


async def test_the_root_bounds_all_its_folders_together(tmp_path: Path, clock: FakeClock) -> None:
    scratch = Scratch(tmp_path, max_bytes=100, clock=clock)
    one, two = scratch.dir("one", max_bytes=1000), scratch.dir("two", max_bytes=1000)
    await put(one, clock, "old", 60)
    await put(two, clock, "new", 60)
    assert await scratch.trim() == 60
    assert (has(one, "old"), has(two, "new")) == (False, True)


async def test_an_evicted_entry_leaves_no_file_behind(layers: ScratchDir, clock: FakeClock) -> None:
    await put(layers, clock, "a", 200)
    await layers.trim()
    assert [path for path in layers.path.rglob("*") if path.is_file()] == []


MAKER = """
import asyncio, sys
from pathlib import Path
from trimtab.storage.scratch import Scratch

async def make(path):
    path.write_text("half")
    print("making", flush=True)
    if sys.argv[2] == "hang":
        await asyncio.Event().wait()
    await asyncio.to_thread(sys.stdin.readline)
    path.write_text("whole")

async def main():
    layers = Scratch(Path(sys.argv[1]), 1 << 20).dir("layers", 1 << 20)
    async with layers.fill("a", make):
        print("made", flush=True)
        await asyncio.to_thread(sys.stdin.readline)

asyncio.run(main())
"""


async def process(root: Path, what: str) -> asyncio.subprocess.Process:
    command = [sys.executable, "-c", MAKER, str(root), what]
    made = await asyncio.create_subprocess_exec(*command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert made.stdout is not None
    assert await made.stdout.readline() == b"making\n"
    return made


async def test_another_process_that_makes_it_is_waited_for_and_its_use_respected(tmp_path: Path) -> None:
    other = await process(tmp_path, "finish")
    assert other.stdin is not None
    assert other.stdout is not None
    layers = Scratch(tmp_path, 1 << 20).dir("layers", 1)

    async def ask() -> str:
        async with layers.fill("a", never) as path:
            return path.read_text()

    assert not has(layers, "a")
    asking = asyncio.create_task(ask())
    other.stdin.write(b"\n")
    assert await other.stdout.readline() == b"made\n"
    assert await asking == "whole"
    await layers.trim()
    assert has(layers, "a"), "it is over the bound, but the other process uses it"
    other.stdin.write(b"\n")
    assert await other.wait() == 0
    await layers.trim()
    assert not has(layers, "a")


async def test_what_a_killed_maker_left_is_removed_and_made_again(tmp_path: Path) -> None:
    other = await process(tmp_path, "hang")
    layers = Scratch(tmp_path, 1 << 20).dir("layers", 1 << 20)
    await layers.trim()
    assert list((layers.path / "making").iterdir()) != [], "it is alive, so it is left alone"
    other.send_signal(signal.SIGKILL)
    await other.wait()
    assert not has(layers, "a")
    await layers.trim()
    assert list((layers.path / "making").iterdir()) == []
    async with layers.fill("a", writes(b"again")) as path:
        assert path.read_bytes() == b"again"


@pytest.mark.parametrize("name", ["", "..", "a/b", "A", ".hidden", "x" * 64])
def test_a_name_that_is_none_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(ValueError, match="no name"):
        Scratch(tmp_path, 1).dir(name, 1)


@given(st.text(max_size=300), st.text(max_size=300))
def test_any_key_is_a_safe_name_of_its_own(one: str, two: str) -> None:
    first, second = entry_name(one), entry_name(two)
    assert (first == second) == (one == two)
    assert "/" not in first
    assert "\0" not in first
    assert first[0] != "."
    assert len(first) <= 128


@pytest.mark.parametrize("key", ["../../etc/passwd", "..", ".", "", "a/b", "A", "sha256:ab", "x" * 500, "\0"])
async def test_a_hostile_key_stays_in_its_folder(layers: ScratchDir, key: str) -> None:
    async with layers.fill(key, writes(b"x")) as path:
        assert path.parent == layers.path / "entries"
        assert path.is_file()
