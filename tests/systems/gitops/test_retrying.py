"""Runs that fail, and are tried again: not too often, and not too late."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.systems.gitops.desk import Desk, config, message, reason
from tests.systems.gitops.test_both_ways import edit, started
from tests.systems.gitops.test_faults import Odd
from trimtab.client.transport import Call, Unreachable
from trimtab.model.errors import StatusError
from trimtab.systems.gitops import conducting, running
from trimtab.systems.gitops.kinds import GitSync
from trimtab.systems.gitops.kinds.fields import CONFIRM

REFUSED = config("UPPER_x", a="1")


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is tried again by itself as long as a test lasts."""
    monkeypatch.setattr(conducting, "FIRST_PAUSE", 200.0)


@pytest.mark.usefixtures("patient")
async def test_what_a_failed_run_writes_does_not_begin_another_one(desk: Desk) -> None:
    desk.git.create("team", {"a.yaml": config("a", x="1"), "b.yaml": REFUSED})
    await desk.repository()
    async with desk.working():
        await desk.sync()
        await desk.reason("ApplyFailed")
        before = await desk.versions()
        await asyncio.sleep(1.5)
        assert await desk.versions() == before


async def test_the_same_failure_of_the_same_commit_is_one_run_of_many_attempts(desk: Desk) -> None:
    desk.git.create("team", {"a.yaml": config("a", x="1"), "b.yaml": REFUSED})
    await desk.repository()
    async with desk.working():
        await desk.sync()
        sync = await desk.until(
            lambda sync: sync.status.history and (sync.status.history[0].counts or {}).get("attempts") == 3
        )
    (run,) = sync.status.history
    assert (run.trigger, run.outcome, run.reason) == ("Created", "Failed", "ApplyFailed")
    assert run.counts == {"attempts": 3, "created": 1, "failed": 1}


@pytest.mark.usefixtures("patient")
@pytest.mark.parametrize("how", ["manual", "webhook"])
async def test_who_asks_or_pushes_does_not_wait_for_the_end_of_the_pause(desk: Desk, how: str) -> None:
    desk.git.create("team", {"a.yaml": config("a", x="1"), "b.yaml": REFUSED})
    await desk.repository()
    async with desk.working():
        await desk.sync()
        await desk.reason("ApplyFailed")
        desk.git.commit("team", {"b.yaml": config("b", x="1")})
        await desk.again(how=how)
        await desk.ready()


@pytest.mark.usefixtures("patient")
async def test_another_spec_does_not_wait_for_the_end_of_the_pause(desk: Desk) -> None:
    desk.git.create("team", {"a/a.yaml": config("a", x="1"), "b.yaml": REFUSED})
    await desk.repository()
    async with desk.working():
        await desk.sync()
        await desk.reason("ApplyFailed")
        await desk.change(path="a", deletionGuard={"maxPercent": 100})
        await desk.ready()


@pytest.mark.usefixtures("patient")
async def test_a_repository_that_was_missing_is_used_at_once_when_it_is_there(desk: Desk) -> None:
    desk.git.create("team", {"a.yaml": config("a", x="1")})
    async with desk.working():
        await desk.sync()
        await desk.reason("RepositoryMissing")
        await desk.repository()
        await desk.ready()


async def test_another_failure_is_another_run_in_the_history(desk: Desk) -> None:
    async def refuse(call: Call) -> None:
        if call.method == "PATCH" and call.path.endswith("/configmaps/a"):
            raise StatusError(403, "Forbidden", f"not {len(call.body) // 1000}", {})

    desk.git.create("team", {"a.yaml": config("a", x="1")})
    await desk.repository()
    async with desk.working("odd", Odd(desk.client, before=refuse).client):
        await desk.sync()
        await desk.reason("ApplyFailed")
        desk.git.commit("team", {"a.yaml": config("a", x="2" * 1000)})
        await desk.again()
        desk.git.commit("team", {"a.yaml": config("a", x="3" * 1000)})
        sync = await desk.again()
    assert [run.message for run in sync.status.history if run.trigger != "Retry"] == [
        f"1 document could not be applied: a.yaml: not {number}" for number in (1, 1, 0)
    ]


async def test_a_mistake_of_ours_is_told_ends_its_run_and_is_tried_again(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    right, tried = running.send_files, 0

    async def wrong(*given: Any, **more: Any) -> Any:
        nonlocal tried
        tried += 1
        if tried < 3:
            raise RecursionError("too deep")
        return await right(*given, **more)

    monkeypatch.setattr(running, "send_files", wrong)
    desk.git.create("team", {"a.yaml": config("a", x="1")})
    await desk.repository()
    async with desk.working():
        await desk.sync()
        sync = await desk.reason("Failed")
        assert message(sync) == "unexpected RecursionError: too deep"
        (run,) = sync.status.history
        assert (run.outcome, run.reason) == ("Failed", "Failed")
        sync = await desk.ready()
    assert "Interrupted" not in [run.reason for run in sync.status.history]


async def test_a_server_that_breaks_off_in_mid_run_is_told_and_asked_again(desk: Desk) -> None:
    asked = 0

    async def broken(call: Call) -> None:
        nonlocal asked
        if call.method == "GET" and call.path.endswith("/configmaps/a"):
            asked += 1
            if asked < 3:
                raise Unreachable("the connection broke")

    desk.git.create("team", {"a.yaml": config("a", x="1")})
    await desk.repository()
    async with desk.working("odd", Odd(desk.client, before=broken).client):
        await desk.sync()
        assert message(await desk.reason("ServerUnreachable")) == "the connection broke"
        await desk.ready()


async def test_a_document_that_the_server_does_not_answer_is_its_own_failure(desk: Desk) -> None:
    async def broken(call: Call) -> None:
        if call.method == "PATCH" and call.path.endswith("/configmaps/big"):
            raise Unreachable("the connection broke: the answer is not whole")

    desk.git.create("team", {"a.yaml": config("a", x="1"), "big.yaml": config("big", x="1")})
    await desk.repository()
    async with desk.working("odd", Odd(desk.client, before=broken).client):
        await desk.sync()
        sync = await desk.reason("ApplyFailed")
        assert await desk.names() == ["a"]
    (problem,) = sync.status.documents
    assert (problem.path, problem.reason) == ("big.yaml", "NoAnswer")


async def test_a_server_that_answers_to_nothing_is_not_asked_for_each_document(desk: Desk) -> None:
    asked = 0

    async def broken(call: Call) -> None:
        nonlocal asked
        if call.method == "PATCH" and "/configmaps/" in call.path:
            asked += 1
            raise Unreachable("nobody there")

    desk.git.create("team", {f"{n}.yaml": config(f"c{n}", x="1") for n in range(100)})
    await desk.repository()
    async with desk.working("odd", Odd(desk.client, before=broken).client):
        await desk.sync()
        await desk.reason("ServerUnreachable")
        assert asked < 100


async def test_the_history_of_a_partial_failure_counts_what_was_done_and_names_what_was_not_tried(desk: Desk) -> None:
    async def refuse(call: Call) -> None:
        if call.method == "PATCH" and call.path.endswith("/configmaps/b"):
            raise StatusError(403, "Forbidden", "not this one", {})

    after = "metadata:\n  annotations: {gitops.trimtab.dev/depends-on: ConfigMap/b}\n"
    desk.git.create("team", {"gone.yaml": config("gone", x="1"), "stays.yaml": config("stays", x="1")})
    await desk.repository()
    async with desk.working("odd", Odd(desk.client, before=refuse).client):
        await desk.sync()
        await desk.ready()
        later = config("c", x="1").replace("metadata:\n", after)
        desk.git.commit(
            "team", {"gone.yaml": None, "a.yaml": config("a", x="1"), "b.yaml": config("b", x="1"), "c.yaml": later}
        )
        sync = await desk.again()
        assert await desk.names() == ["a", "gone", "stays"]
    assert sync.status.history[0].counts == {"created": 1, "failed": 1, "untried": 1}
    assert [(each.path, each.reason) for each in sync.status.documents] == [
        ("b.yaml", "Forbidden"),
        ("c.yaml", "NotTried"),
    ]
    assert message(sync).endswith("b.yaml: not this one; not tried after that: 1 document")


async def test_a_run_that_takes_too_long_ends_as_a_timeout_and_the_next_one_goes_on(desk: Desk) -> None:
    hung = 0

    async def hang(call: Call) -> None:
        nonlocal hung
        if call.method == "PATCH" and call.path.endswith("/configmaps/b") and not hung:
            hung += 1
            await asyncio.sleep(60)

    desk.git.create("team", {"a.yaml": config("a", x="1"), "b.yaml": config("b", x="1")})
    await desk.repository()
    async with desk.working("odd", Odd(desk.client, before=hang).client):
        await desk.sync(timeout="3s")
        sync = await desk.reason("Timeout")
        assert "spec.timeout, 3s" in message(sync)
        assert [(run.outcome, run.reason) for run in sync.status.history] == [("Failed", "Timeout")]
        sync = await desk.ready()
    assert await desk.names() == ["a", "b"]
    assert "Interrupted" not in [run.reason for run in sync.status.history]


@pytest.mark.usefixtures("patient")
async def test_a_confirmed_run_that_fails_is_not_begun_again_and_again(desk: Desk) -> None:
    desk.git.create("team", {f"{n}.yaml": config(f"c{n}", a="1") for n in range(9)})
    await desk.repository()
    async with desk.working() as controller:
        await desk.sync()
        await desk.ready()
        desk.git.commit("team", {f"{n}.yaml": None for n in range(7)})
        sync = await desk.again()
        desk.git.path().rename(desk.git.path("away"))
        await desk.change(annotations={CONFIRM: sync.status.held.plan})
        sync = await desk.until(lambda sync: "Git" in reason(sync))
        assert await begun(controller.conductor, sync) is None
        desk.git.path("away").rename(desk.git.path())
        await desk.again()
        assert await desk.names() == ["c7", "c8"]


@pytest.mark.usefixtures("patient")
async def test_a_decision_whose_run_fails_does_not_begin_another_one_at_once(desk: Desk) -> None:
    async with desk.working() as controller:
        await started(desk, {"a.yaml": config("a", x="1")}, triggers={"internal": False})
        desk.git.commit("team", {"a.yaml": config("a", x="2")})
        await edit(desk, "a", x="3")
        await desk.again()
        desk.git.path().rename(desk.git.path("away"))
        (conflict,) = await desk.conflicts()
        decided = conflict.replace(spec=conflict.spec.replace(resolution="git"))
        await desk.client.patch(conflict, decided)
        sync = await desk.until(lambda sync: "Git" in reason(sync))
        assert await begun(controller.conductor, sync) is None
        desk.git.path("away").rename(desk.git.path())
        await desk.again()
        await desk.ready()


async def begun(conductor: conducting.Conductor, sync: GitSync) -> tuple[str, bool] | None:
    """Why another run would begin at once."""
    return await conductor._reason(sync, conductor._memory(sync))
