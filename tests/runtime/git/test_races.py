"""Two who push at the same time: one wins each round, the other sees it, and nothing that anybody pushed is lost."""

from __future__ import annotations

import asyncio

import pytest

from tests.runtime.git.conftest import ME, Place
from trimtab.lab.git import run
from trimtab.runtime.git import Mirror, Moved

ROUNDS = 4


async def _once(mirror: Mirror, head: str, path: str) -> str | None:
    commit = await mirror.commit(head, {path: path.encode()}, message=path, author=ME, committer=ME)
    try:
        await mirror.push(commit, "main", expected=head)
    except Moved:
        return None
    return commit


async def test_exactly_one_of_two_wins_each_round_and_nothing_is_lost(daemon_place: Place) -> None:
    place = daemon_place
    one, other = place.mirror("one"), place.mirror("other")
    won: list[str] = []
    for number in range(ROUNDS):
        heads = [(await each.fetch("main"))["main"] for each in (one, other)]
        assert heads[0] == heads[1] == place.head()
        results = await asyncio.gather(_once(one, heads[0], f"one-{number}"), _once(other, heads[1], f"other-{number}"))
        winners = [each for each in results if each is not None]
        assert len(winners) == 1
        assert place.head() == winners[0]
        won += winners
    assert place.repositories.history(place.name)[:ROUNDS] == won[::-1]
    assert len(place.content()) == 2 + ROUNDS


@pytest.mark.slow
async def test_two_that_try_again_until_they_win_both_get_all_their_files_in(place: Place) -> None:
    async def insist(mirror: Mirror, name: str) -> None:
        for number in range(3):
            while await _once(mirror, (await mirror.fetch("main"))["main"], f"{name}-{number}") is None:
                pass

    await asyncio.gather(insist(place.mirror("one"), "one"), insist(place.mirror("other"), "other"))
    mine = {f"{name}-{number}" for name in ("one", "other") for number in range(3)}
    assert place.content().keys() == mine | {"a.yaml", "apps/b.yaml"}
    run("-C", str(place.repositories.path(place.name)), "fsck", "--strict")


async def test_two_calls_of_one_mirror_and_two_mirrors_of_one_folder_take_turns(daemon_place: Place) -> None:
    one, same = daemon_place.mirror(), daemon_place.mirror()
    results = await asyncio.gather(*(each.fetch("main") for each in (one, same, one, same)))
    assert {each["main"] for each in results} == {daemon_place.head()}


@pytest.mark.slow
async def test_many_small_fetches_are_rolled_together_and_lose_nothing(daemon_place: Place) -> None:
    mirror = daemon_place.mirror()
    await mirror.fetch("main")
    unpushed = await mirror.commit(None, {"mine": b"m"}, message="Mine", author=ME, committer=ME)
    for number in range(60):
        daemon_place.commit({f"file-{number}": "x"})
        head = (await mirror.fetch("main"))["main"]
    packs = list((mirror.folder / "repository" / "objects" / "pack").glob("*.pack"))
    assert len(packs) <= 41
    assert len(await mirror.files(head)) == 62
    assert list(await mirror.files(unpushed)) == ["mine"]
