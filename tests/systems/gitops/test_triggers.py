"""What starts a run by itself: a cron line, and changes in the system, which are gathered before they are written."""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta

import pytest

from tests.runtime.widgets import PATIENCE
from tests.systems.gitops import desk as desks
from tests.systems.gitops.desk import Desk, config
from tests.systems.gitops.test_both_ways import edit, started
from trimtab.lab.git import run as git_run
from trimtab.model.clock import SystemClock
from trimtab.runtime import Request, Result
from trimtab.systems.gitops import conducting
from trimtab.systems.gitops.kinds import GitSync

ONE = {"a.yaml": config("a", x="1")}


class Ahead(SystemClock):
    """A wall clock that a test sets ahead; nothing that is measured notices."""

    by = timedelta()

    def now(self) -> datetime:
        return super().now() + self.by


@pytest.mark.row(51)
async def test_a_cron_line_that_is_due_starts_a_run(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Ahead()
    monkeypatch.setattr(desks, "SystemClock", lambda: clock)
    desk.git.create("team", ONE)
    await desk.repository()
    async with desk.working():
        await desk.sync(triggers={"interval": "24h", "cron": ["@yearly"]})
        await desk.ready()
        desk.git.commit("team", {"a.yaml": config("a", x="2")})
        clock.by = timedelta(days=400)
        await desk.change(annotations={"note": "look at the clock"})
        sync = await desk.ready()
        assert sync.status.history[0].trigger == "Cron"
        live = await desk.live("a")
        assert live is not None
        assert live["data"] == {"x": "2"}
        conductor = desk.controller.conductor if desk.controller else None
        assert conductor is not None
        assert conductor._cron_due(sync) != 0, "once each time"


@pytest.mark.row(47)
@pytest.mark.row(49)
async def test_changes_wait_for_others_and_are_one_commit(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conducting, "LONGEST", 3600.0)
    names = {f"c{number}" for number in range(4)}
    async with desk.working() as syncs:
        await started(desk, {f"{name}.yaml": config(name, x="1") for name in names})
        await desk.again()
        conductor, before = syncs.conductor, len(desk.git.history())
        memory = conductor._by_request[Request(desk.namespace, "fleet")]
        wake, conduct, all_told, looked = conductor._wake, conductor.conduct, asyncio.Event(), asyncio.Event()

        def told(request: Request) -> None:
            wake(request)
            if {identity.name for identity in memory.changed} == names:
                all_told.set()

        async def conducted(sync: GitSync) -> Result | None:
            result = await conduct(sync)
            if all_told.is_set() and "note" in (sync.metadata.annotations or {}):
                looked.set()
            return result

        monkeypatch.setattr(conductor, "_wake", told)
        monkeypatch.setattr(conductor, "conduct", conducted)
        conductor._quiet = 3600.0
        for name in sorted(names):
            await edit(desk, name, x="2")
        async with asyncio.timeout(PATIENCE):
            await all_told.wait()
            await desk.change(annotations={"note": "is it time?"})
            await looked.wait()
        assert len(desk.git.history()) == before, "more may come"
        conductor._quiet = 0.0
        await desk.change(annotations={"note": "that was all"})
        await desk.until(lambda sync: all(b"2" in desk.git.read()[f"{name}.yaml"] for name in names))
        sync = await desk.ready()
        assert sync.status.history[0].trigger == "Internal"
        assert len(desk.git.history()) == before + 1


@pytest.mark.row(47)
async def test_what_a_sync_applied_is_no_change_that_it_writes_back(desk: Desk) -> None:
    async with desk.working():
        await started(desk, ONE)
        for number in range(3):
            pushed = desk.git.commit("team", {"a.yaml": config("a", x=f"{number} more")})
            await desk.again()
            await desk.again()
            assert desk.git.head() == pushed


@pytest.mark.row(49)
async def test_our_commits_are_by_the_committer_that_the_sync_names(desk: Desk) -> None:
    async with desk.working():
        await started(desk, ONE, committer={"name": "Fleet Bot", "email": "bot@example.com"})
        await edit(desk, "a", x="2")
        await desk.until(lambda sync: b"2" in desk.git.read()["a.yaml"])
        shown = git_run("-C", str(desk.git.path()), "log", "-1", "--format=%cn <%ce>", "main").decode().strip()
        assert shown == "Fleet Bot <bot@example.com>"
