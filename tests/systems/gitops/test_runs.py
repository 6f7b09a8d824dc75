"""What a GitSync's status tells of its runs."""

from __future__ import annotations

import asyncio

import pytest

from tests.systems.gitops.desk import Desk, config, reason
from tests.systems.gitops.test_faults import Odd
from trimtab.client.transport import Call
from trimtab.systems.gitops.kinds import GitSync
from trimtab.systems.gitops.run.journal import SHOWN


@pytest.mark.row(53)
async def test_each_run_is_told_with_what_started_it_and_what_it_did(desk: Desk) -> None:
    desk.git.create("team", {f"{name}.yaml": config(name, x="1") for name in ("a", "b", "c")})
    await desk.repository()
    async with desk.working():
        await desk.sync()
        await desk.ready()
        desk.git.commit("team", {"a.yaml": config("a", x="2"), "b.yaml": None})
        await desk.again()
        sync = await desk.ready()
        told = [(run.trigger, run.outcome, run.reason, run.counts) for run in sync.status.history]
        assert told == [
            ("Manual", "Succeeded", "Synced", {"updated": 1, "deleted": 1}),
            ("Created", "Succeeded", "Synced", {"created": 3}),
        ]
        assert all(run.finished >= run.started for run in sync.status.history)
        assert sync.status.inventory.count == 2


@pytest.mark.row(53)
async def test_a_document_that_is_another_sync_s_is_told_by_its_file_and_the_others_are_applied(desk: Desk) -> None:
    desk.git.create("team", {"a.yaml": config("a", x="1")})
    desk.git.create("second", {"mine.yaml": config("a", x="2"), "b.yaml": config("b", x="1")})
    await desk.repository()
    await desk.repository("second")
    async with desk.working():
        await desk.sync()
        await desk.ready()
        await desk.sync("other", repository="second")
        sync = await desk.reason("Refused", "other")
        (told,) = sync.status.documents
        assert (told.path, told.reason, sync.status.problems) == ("mine.yaml", "Refused", 1)
        assert f"{desk.namespace}/fleet" in told.message
        assert await desk.names() == ["a", "b"]


@pytest.mark.row(53)
async def test_whoever_watches_a_large_run_sees_how_far_it_is(desk: Desk) -> None:
    count = SHOWN + 10
    desk.git.create("team", {f"{n}.yaml": config(f"c{n}", x="1") for n in range(count)})
    await desk.repository()
    await desk.sync()
    seen: list[tuple[int, int, str]] = []

    async def slower(call: Call) -> None:
        await asyncio.sleep(0)  # as a network does, it lets others go on meanwhile

    def ended(sync: GitSync) -> bool:
        if far := sync.status.progress:
            seen.append((far.done, far.total, far.note))
        return reason(sync) == "Synced"

    async with desk.working("slower", Odd(desk.client, before=slower).client):
        sync = await desk.until(ended)
    assert 0 < seen[0][0] < count
    assert seen == sorted(seen)
    assert seen[-1] == (count, count, "applying")
    assert not sync.status.progress


async def test_the_run_that_ends_a_failure_is_told_each_time(desk: Desk) -> None:
    good, bad = {"a.yaml": config("a", x="1")}, {"a.yaml": "no: [document"}
    desk.git.create("team", good)
    await desk.repository()
    async with desk.working():
        await desk.sync()
        await desk.ready()
        for _ in range(2):
            desk.git.commit("team", bad)
            await desk.again()
            desk.git.commit("team", good)
            sync = await desk.again()
        told = [(run.outcome, run.reason) for run in sync.status.history]
        assert told[:4] == [("Succeeded", "Synced"), ("Failed", "InvalidDocuments")] * 2
