"""Servers that die, stall, race or are hostile: every call ends, by an error that says what is known."""

from __future__ import annotations

import asyncio
import os
import shutil
import time
from pathlib import Path

import pytest

from tests.runtime.git.conftest import ME, Place
from trimtab.lab.git_faults import Faults, FaultyWay, HostileServer, Serve, drip, endless_pack, endless_refs
from trimtab.runtime.git import (
    Limits,
    Mirror,
    Moved,
    NoSuchRef,
    Refused,
    Remote,
    RemoteError,
    TimedOut,
    TooLarge,
    Uncertain,
    Unreachable,
)

MIB = 1 << 20
NOISE = os.urandom(2 * MIB)


async def _ready(place: Place, mirror: Mirror, content: bytes = b"x") -> tuple[str, str]:
    head = (await mirror.fetch("main"))["main"]
    return head, await mirror.commit(head, {"x": content}, message="X", author=ME, committer=ME)


async def test_a_connection_that_ends_in_mid_push_is_uncertain_and_a_second_try_works(bumpy_place: Place) -> None:
    place = bumpy_place
    async with FaultyWay(place.port) as way:
        mirror = place.through(way.port)
        head, commit = await _ready(place, mirror, NOISE)
        way.faults.die_after_sent = MIB
        with pytest.raises(Uncertain, match="fetch and look"):
            await mirror.push(commit, "main", expected=head)
        way.faults.die_after_sent = None
        assert (await mirror.fetch("main"))["main"] == head
        await mirror.push(commit, "main", expected=head)
        assert place.head() == commit


async def test_a_server_that_did_it_and_died_is_uncertain_and_a_look_tells(daemon_place: Place) -> None:
    place = daemon_place
    async with FaultyWay(place.port) as way:
        mirror = place.through(way.port)
        head, commit = await _ready(place, mirror)
        way.faults.deaf_after = b"PACK"
        with pytest.raises(Uncertain):
            await mirror.push(commit, "main", expected=head)
        way.faults.deaf_after = None
        assert (await mirror.fetch("main"))["main"] == commit
        await mirror.push(commit, "main", expected=head)  # it is there: nothing is left to do


async def test_somebody_who_is_faster_by_a_moment_is_not_overwritten(daemon_place: Place) -> None:
    """The server has told us where the branch is, and moves it before it hears of ours."""
    place, theirs = daemon_place, []
    async with FaultyWay(place.port) as way:
        mirror = place.through(way.port)
        head, commit = await _ready(place, mirror)
        act = lambda: theirs.append(place.commit({"x": "theirs"}))  # noqa: E731
        way.faults.when_said = (b"refs/heads/main\0", act)
        with pytest.raises(Moved):
            await mirror.push(commit, "main", expected=head)
    assert [place.head()] == theirs


async def test_a_hook_that_says_no_is_told_in_its_words(daemon_place: Place) -> None:
    place = daemon_place
    place.repositories.hook(place.name, "pre-receive", "#!/bin/sh\necho main is protected >&2\nexit 1\n")
    mirror = place.mirror()
    head, commit = await _ready(place, mirror)
    with pytest.raises(Refused, match="main is protected"):
        await mirror.push(commit, "main", expected=head)
    assert place.head() == head


async def test_a_push_that_would_drop_commits_is_not_even_tried(daemon_place: Place) -> None:
    mirror = daemon_place.mirror()
    head, _ = await _ready(daemon_place, mirror)
    stranger = await mirror.commit(None, {"x": b"x"}, message="X", author=ME, committer=ME)
    with pytest.raises(ValueError, match="does not follow"):
        await mirror.push(stranger, "main", expected=head)


async def test_servers_that_refuse_or_are_not_there_are_unreachable(daemon_place: Place) -> None:
    place = daemon_place
    async with FaultyWay(place.port, Faults(refuse=True)) as way:
        mirror = place.through(way.port)
        with pytest.raises(Unreachable) as raised:
            await mirror.fetch("main")
        assert raised.value.again
        gone = way.port
    mirror = place.through(gone, "gone")
    with pytest.raises(Unreachable, match="errno=Connection refused"):
        await mirror.fetch("main")
    commit = await mirror.commit(None, {"x": b"x"}, message="X", author=ME, committer=ME)
    with pytest.raises(Unreachable):
        await mirror.push(commit, "main", expected=None)


async def test_a_server_that_stalls_ends_by_the_limit_and_leaves_no_process(daemon_place: Place) -> None:
    place = daemon_place
    place.commit({"noise": NOISE})
    async with FaultyWay(place.port) as way:
        mirror = place.through(way.port, limits=Limits(time=20, stall=1))
        way.faults.stall_after = 256 * 1024
        begun = time.monotonic()
        with pytest.raises((TimedOut, Unreachable)):
            await mirror.fetch("main")
        assert time.monotonic() - begun < 10
        way.faults.stall_after = None
        assert (await mirror.fetch("main"))["main"] == place.head()
    assert _processes(mirror.folder) == []


async def test_a_cancelled_fetch_leaves_no_process_no_lock_and_no_key(bumpy_place: Place) -> None:
    place = bumpy_place
    place.commit({"noise": NOISE})
    async with FaultyWay(place.port, Faults(stall_after=256 * 1024)) as way:
        mirror = place.through(way.port)
        fetching = asyncio.create_task(mirror.fetch("main"))
        await way.stalled.wait()
        assert _processes(mirror.folder)
        fetching.cancel()
        with pytest.raises(asyncio.CancelledError):
            await fetching
        assert _processes(mirror.folder) == []
        left = [each.name for each in (mirror.folder / "repository").iterdir() if each.name.startswith("run-")]
        assert left == []
        way.faults.stall_after = None
        assert (await mirror.fetch("main"))["main"] == place.head()


@pytest.mark.parametrize(
    ("hostile", "expected"),
    [pytest.param(endless_refs, TooLarge, marks=pytest.mark.slow), (endless_pack, TooLarge), (drip, TimedOut)],
)
async def test_a_hostile_server_ends_by_a_limit(tmp_path: Path, hostile: Serve, expected: type[RemoteError]) -> None:
    limits = Limits(repository_bytes=4 * MIB, refs=500, time=30, stall=1 if hostile is drip else 30)
    async with HostileServer(hostile) as server:
        mirror = Mirror(tmp_path / "mirror", Remote(url=f"git://127.0.0.1:{server.port}/a.git"), limits=limits)
        with pytest.raises(expected):
            await mirror.fetch("main")
    assert sum(each.stat().st_size for each in mirror.folder.rglob("*") if each.is_file()) < MIB
    assert _processes(mirror.folder) == []


async def test_a_repository_over_the_limit_is_too_large(daemon_place: Place) -> None:
    daemon_place.commit({"noise": NOISE})
    with pytest.raises(TooLarge, match="larger than the limit"):
        await daemon_place.mirror(limits=Limits(repository_bytes=MIB)).fetch("main")


async def test_a_folder_that_grew_over_its_limit_begins_anew(daemon_place: Place) -> None:
    mirror = daemon_place.mirror(limits=Limits(repository_bytes=3 * MIB))
    for _ in range(3):
        daemon_place.commit({"noise": os.urandom(MIB + MIB // 4)}, force_from="")
        assert (await mirror.fetch("main"))["main"] == daemon_place.head()


async def test_a_blob_over_the_limit_and_too_many_files_are_refused(daemon_place: Place) -> None:
    head = daemon_place.commit({"noise": NOISE})
    mirror = daemon_place.mirror(limits=Limits(blob_bytes=MIB))
    await mirror.fetch("main")
    files = await mirror.files(head)
    with pytest.raises(TooLarge, match="2097152 bytes"):
        await mirror.read([files["noise"].oid], max_bytes=1 << 40)
    with pytest.raises(TooLarge, match="together"):
        await mirror.read([files["a.yaml"].oid, files["apps/b.yaml"].oid], max_bytes=9)
    with pytest.raises(TooLarge, match="path 'big'"):
        await mirror.commit(head, {"big": NOISE}, message="X", author=ME, committer=ME)
    with pytest.raises(TooLarge, match="more than the 2 files"):
        await daemon_place.mirror(limits=Limits(files=2)).files(head)


async def test_a_folder_of_another_remote_or_a_broken_one_is_fetched_anew(daemon_place: Place) -> None:
    mirror = daemon_place.mirror()
    await mirror.fetch("main")
    daemon_place.repositories.create(f"{daemon_place.name}-other", {"other": "o"})
    url = daemon_place.remote.url.replace(".git", "-other.git")
    other = Mirror(mirror.folder, Remote(url=url))
    commit = (await other.fetch("main"))["main"]
    assert list(await other.files(commit)) == ["other"]
    (mirror.folder / "repository" / "HEAD").unlink()
    assert (await Mirror(mirror.folder, Remote(url=url)).fetch("main"))["main"] == commit


async def test_a_folder_that_was_cleaned_up_is_made_again(daemon_place: Place) -> None:
    mirror = daemon_place.mirror()
    commit = (await mirror.fetch("main"))["main"]
    await asyncio.to_thread(shutil.rmtree, mirror.folder)
    with pytest.raises(NoSuchRef):
        await mirror.files(commit)
    assert list(await mirror.files((await mirror.fetch("main"))["main"])) == ["a.yaml", "apps/b.yaml"]


async def test_what_a_killed_process_left_does_not_stand_in_the_way(daemon_place: Place) -> None:
    await daemon_place.mirror().fetch("main")
    repository = daemon_place.folder / "mirror" / "repository"
    for left in ("refs/remotes/origin/main.lock", "packed-refs.lock", "shallow.lock", "objects/pack/tmp_pack_x"):
        (repository / left).parent.mkdir(parents=True, exist_ok=True)
        (repository / left).write_text("")
    head = daemon_place.commit({"more": "m"})
    assert (await daemon_place.mirror().fetch("main"))["main"] == head


async def test_a_folder_in_use_by_another_is_waited_for_and_then_told(daemon_place: Place) -> None:
    async with FaultyWay(daemon_place.port, Faults(stall_after=0)) as way:
        slow = daemon_place.through(way.port)
        busy = asyncio.create_task(slow.fetch("main"))
        await way.stalled.wait()
        with pytest.raises(TimedOut, match="in use by another"):
            await daemon_place.mirror(limits=Limits(time=0.2)).fetch("main")
        waiting = asyncio.create_task(daemon_place.mirror().fetch("main"))
        busy.cancel()
        assert (await waiting)["main"] == daemon_place.head()
        with pytest.raises(asyncio.CancelledError):
            await busy


def _processes(folder: Path) -> list[str]:
    """Commands of processes that work in that folder."""
    found = []
    for each in Path("/proc").glob("[0-9]*"):
        try:
            if str(folder) in os.readlink(each / "cwd"):
                found.append((each / "cmdline").read_bytes().replace(b"\0", b" ").decode())
        except OSError:
            continue
    return found
