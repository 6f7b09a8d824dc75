"""A branch costs one run of git; what is no branch, or large and new, is asked for after that."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from tests.runtime.git.conftest import ME, Place
from trimtab.lab.git import run
from trimtab.lab.git_faults import HostileServer, endless_refs
from trimtab.runtime.git import Limits, Mirror, NoSuchRef, Remote, TimedOut, TooLarge, Uncertain, program
from trimtab.runtime.git.transport import Transport

MIB = 1024 * 1024


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The commands of git that were run."""
    found: list[str] = []
    real = program.run

    async def counted(folder: Path, address: Any, remote: Any, arguments: Any, **rest: Any) -> program.Said:
        found.append(arguments[0])
        return await real(folder, address, remote, arguments, **rest)

    monkeypatch.setattr(program, "run", counted)
    return found


async def test_a_branch_is_fetched_at_once(daemon_place: Place, runs: list[str]) -> None:
    mirror = daemon_place.mirror()
    await mirror.fetch("main")
    assert runs == ["fetch"]
    del runs[:]
    pushed = daemon_place.commit({"a.yaml": "a: 2\n"})
    assert await mirror.fetch("main") == {"main": pushed}
    assert await mirror.fetch("main") == {"main": pushed}
    assert runs == ["fetch", "fetch"]


async def test_a_tag_is_asked_for_and_fetched(daemon_place: Place, runs: list[str]) -> None:
    head = daemon_place.commit({"a.yaml": "a: 2\n"})
    run("-C", str(daemon_place.repositories.path(daemon_place.name)), "update-ref", "refs/tags/v1", head)
    assert await daemon_place.mirror().fetch("v1") == {"v1": head}
    assert runs == ["fetch", "ls-remote", "fetch"]


async def test_a_new_repository_that_is_large_is_asked_for_before_it_is_fetched(
    daemon_place: Place, runs: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("trimtab.runtime.git.mirror._UNASKED", 64 * 1024)
    head = daemon_place.commit({"noise": random.Random(1).randbytes(200_000)})
    mirror = daemon_place.mirror()
    assert await mirror.fetch("main") == {"main": head}
    assert runs == ["fetch", "ls-remote", "fetch"]
    left = [file.name for file in (mirror.folder / "repository").rglob("tmp_*")]
    assert not left, "nothing of the first try"


async def test_a_branch_that_is_gone_is_no_such_ref_and_one_that_became_a_tag_is_the_tag(daemon_place: Place) -> None:
    mirror, repository = daemon_place.mirror(), daemon_place.repositories.path(daemon_place.name)
    before = (await mirror.fetch("main"))["main"]
    run("-C", str(repository), "update-ref", "-d", "refs/heads/main")
    with pytest.raises(NoSuchRef):
        await mirror.fetch("main")
    run("-C", str(repository), "update-ref", "refs/tags/main", before)
    assert await mirror.fetch("main") == {"main": before}


@pytest.mark.slow
async def test_a_server_that_turns_hostile_is_held_to_the_memory_of_a_question(
    daemon_place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    limits = Limits(refs=500, time=30)
    mirror = daemon_place.mirror(limits=limits)
    head = (await mirror.fetch("main"))["main"]
    given: list[int | None] = []
    real = program.run

    async def seen(*arguments: Any, memory: int | None = None, **rest: Any) -> program.Said:
        given.append(memory)
        return await real(*arguments, memory=memory, **rest)

    monkeypatch.setattr(program, "run", seen)
    async with HostileServer(endless_refs) as server:
        turned = Mirror(mirror.folder, Remote(url=f"git://127.0.0.1:{server.port}/a.git"), limits=limits)
        (mirror.folder / "repository" / "trimtab-origin").write_text(turned.remote.url)
        with pytest.raises(TooLarge):
            await turned.fetch("main")
    assert given
    assert all(each is not None and each < 128 * MIB for each in given)
    assert (await mirror.files(head)).keys() >= {"a.yaml"}, "what was there is still there"


async def test_what_is_too_large_for_a_straight_fetch_is_asked_for_and_fetched(
    daemon_place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    mirror = daemon_place.mirror()
    await mirror.fetch("main")
    pushed = daemon_place.commit({"a.yaml": "a: 2\n"})
    real = Transport.fetch

    async def small(self: Transport, specs: Any, *, room: int, cautious: bool = False) -> None:
        if cautious:
            raise TooLarge("not with so little memory")
        await real(self, specs, room=room)

    monkeypatch.setattr(Transport, "fetch", small)
    assert await mirror.fetch("main") == {"main": pushed}


async def test_straight_fetches_do_not_add_up_to_more_than_the_limit(daemon_place: Place) -> None:
    mirror = daemon_place.mirror(limits=Limits(repository_bytes=MIB))
    await mirror.fetch("main")
    daemon_place.commit({"noise": random.Random(1).randbytes(700_000)})
    await mirror.fetch("main")
    daemon_place.commit({"noise": random.Random(2).randbytes(700_000)})
    with pytest.raises(TooLarge):
        await mirror.fetch("main")


async def test_a_push_that_takes_too_long_is_uncertain(daemon_place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    mirror = daemon_place.mirror()
    before = (await mirror.fetch("main"))["main"]
    commit = await mirror.commit(before, {"b": b"b"}, message="B", author=ME, committer=ME)

    async def slow(*arguments: Any, **rest: Any) -> program.Said:
        raise TimedOut("the server did not finish")

    monkeypatch.setattr(program, "run", slow)
    with pytest.raises(Uncertain, match="look whether main has the commit"):
        await mirror.push(commit, "main", expected=before)


async def test_a_commit_that_does_not_follow_what_is_there_is_never_sent(daemon_place: Place) -> None:
    mirror = daemon_place.mirror()
    before = (await mirror.fetch("main"))["main"]
    aside = await mirror.commit(None, {"b": b"b"}, message="B", author=ME, committer=ME)
    with pytest.raises(ValueError, match="would drop what is there"):
        await mirror.push(aside, "main", expected=before)
    assert daemon_place.head() == before
