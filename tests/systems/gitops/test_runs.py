"""What a GitSync's status tells of its runs."""

from __future__ import annotations

import pytest

from tests.systems.gitops.desk import Desk, config


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
