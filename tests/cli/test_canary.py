"""`trimtab canary`: decisions become annotations that name exactly what was decided about."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.cli.canary_kit import NEW, OLD, RUN, Stage, condition, failed, going, progressing, stable
from tests.cli.conftest import Program, Zygote, in_namespace
from trimtab.client.api import ApiClient
from trimtab.client.connect import connect
from trimtab.runtime.prepare import prepare
from trimtab.runtime.system import System
from trimtab.systems.delivery.kinds import CanaryDeployment, CanaryDeploymentStatus
from trimtab.systems.delivery.kinds.fields import ABORT, APPROVE, PAUSE, PROMOTE_NOW, RETRY
from trimtab.testing.peer import ApiServer

_numbers = itertools.count(1)


@pytest.fixture
async def client(discovery_server: ApiServer) -> AsyncIterator[ApiClient]:
    """With the kind defined, and nobody to act on it."""
    reached = connect(discovery_server.kubeconfig)
    try:
        await prepare(reached, (System(name="delivery", kinds=(CanaryDeployment,)),), rights=False)
        yield reached
    finally:
        await reached.close()


@pytest.fixture
async def trimtab(client: ApiClient, discovery_server: ApiServer, tmp_path: Path, zygote: Zygote) -> Program:
    return await in_namespace(f"canary-{next(_numbers)}", client, discovery_server, tmp_path, zygote)


@pytest.fixture
def stage(client: ApiClient, trimtab: Program) -> Stage:
    return Stage(client, trimtab.namespace)


# promote


@pytest.mark.parametrize(
    ("gate", "phase", "said"),
    [
        ("rollout", "WaitingRollout", "may begin"),
        ("step-3", "Progressing", "may go on to step 3"),
        ("promotion", "WaitingPromotion", "may become stable"),
    ],
)
async def test_promote_passes_the_gate_that_the_run_stands_at(
    trimtab: Program, stage: Stage, gate: str, phase: str, said: str
) -> None:
    await stage.put(progressing(going(waiting_for=f"{RUN}/{gate}"), phase=phase))
    ran = trimtab("canary", "promote", "web")
    assert (ran.code, ran.err) == (0, "")
    assert ran.out == f"canarydeployment/web: run {RUN} of revision 1b1b1b1b1b1b {said}\n"
    assert await stage.annotations() == {APPROVE: f"{RUN}/{gate}"}


async def test_promote_forgives_a_frozen_run(trimtab: Program, stage: Stage) -> None:
    await stage.put(progressing(going(frozen=True, waiting_for=f"{RUN}/frozen")))
    ran = trimtab("canary", "promote", "web")
    assert "its failures are forgiven" in ran.out
    assert (await stage.annotations())[APPROVE] == f"{RUN}/frozen"


async def test_promote_says_when_nothing_waits(trimtab: Program, stage: Stage) -> None:
    await stage.put(progressing())
    ran = trimtab("canary", "promote", "web")
    assert (ran.code, ran.out) == (1, "")
    assert f"nothing waits for you: run {RUN} is Progressing, step 2 of 3" in ran.err
    assert "promote web --full" in ran.err
    assert await stage.annotations() == {}


@pytest.mark.parametrize(
    ("suffix", "whom"), [("webhook", "a webhook"), ("group", "the other members"), ("check", "a check that passes")]
)
async def test_promote_says_when_others_are_waited_for(trimtab: Program, stage: Stage, suffix: str, whom: str) -> None:
    await stage.put(progressing(going(waiting_for=f"{RUN}/promotion-{suffix}"), phase="WaitingPromotion"))
    ran = trimtab("canary", "promote", "web")
    assert ran.code == 1
    assert f"waits for {whom}" in ran.err
    assert await stage.annotations() == {}


async def test_promote_without_a_run_says_how_to_run_what_failed(trimtab: Program, stage: Stage) -> None:
    await stage.put(failed())
    ran = trimtab("canary", "promote", "web")
    assert ran.code == 1
    assert "`trimtab canary retry web`" in ran.err


async def test_promote_of_a_paused_run_says_what_still_holds_it(trimtab: Program, stage: Stage) -> None:
    await stage.put(progressing(going(waiting_for=f"{RUN}/promotion"), phase="WaitingPromotion"))
    trimtab("canary", "pause", "web")
    ran = trimtab("canary", "promote", "web")
    assert ran.code == 0
    assert "paused until `trimtab canary resume web`, so nothing moves yet" in ran.out


@pytest.mark.parametrize("reason", ["InvalidSpec", "Conflict", "SnapshotMissing"])
@pytest.mark.parametrize("how", [(), ("--full",)])
async def test_promote_refuses_while_nothing_can_move(
    trimtab: Program, stage: Stage, reason: str, how: tuple[str, ...]
) -> None:
    wrong = condition("Ready", "False", reason, "Service web is not ours")
    await stage.put(progressing(going(waiting_for=f"{RUN}/promotion"), conditions=(wrong,)))
    ran = trimtab("canary", "promote", "web", *how)
    assert ran.code == 1
    assert f"nothing can move: {reason}: Service web is not ours" in ran.err
    assert await stage.annotations() == {}


async def test_promote_in_a_fight_says_when_it_is_tried_again(trimtab: Program, stage: Stage) -> None:
    fight = condition("DriftConflict", "True", "Fought", "Service web: spec.type; tried again at 12:10")
    await stage.put(progressing(going(waiting_for=f"{RUN}/promotion"), conditions=(fight,)))
    ran = trimtab("canary", "promote", "web")
    assert ran.code == 0
    assert "others change its objects again and again (Service web: spec.type; tried again at 12:10)" in ran.out
    assert "so nothing moves yet" in ran.out


async def test_promote_of_what_is_paused_and_waits_for_nobody_says_both(trimtab: Program, stage: Stage) -> None:
    await stage.put(progressing())
    trimtab("canary", "pause", "web")
    ran = trimtab("canary", "promote", "web")
    assert ran.code == 1
    assert "step 2 of 3, and it is paused until `trimtab canary resume web`" in ran.err


# straight out


@pytest.mark.parametrize(
    ("status", "revision"),
    [
        (progressing(), NEW),
        (failed(), NEW),
        (progressing(target_revision=OLD), NEW),
        (stable(target_revision=NEW), NEW),
    ],
    ids=["running", "failed", "target-changed", "not-begun"],
)
async def test_full_names_the_revision_that_goes_straight_out(
    trimtab: Program, stage: Stage, status: CanaryDeploymentStatus, revision: str
) -> None:
    await stage.put(status)
    ran = trimtab("canary", "promote", "web", "--full")
    assert (ran.code, ran.err) == (0, "")
    assert "revision 1b1b1b1b1b1b goes straight out" in ran.out
    assert await stage.annotations() == {PROMOTE_NOW: revision}


@pytest.mark.parametrize(
    ("status", "why"),
    [
        (stable(), "there is nothing to release"),
        (progressing(phase="Promoting"), "there is nothing left to skip"),
        (progressing(phase="RollingBack"), "there is nothing left to skip"),
    ],
    ids=["stable", "promoting", "rolling-back"],
)
async def test_full_is_refused_where_there_is_nothing_to_send_out(
    trimtab: Program, stage: Stage, status: CanaryDeploymentStatus, why: str
) -> None:
    await stage.put(status)
    ran = trimtab("canary", "promote", "web", "--full")
    assert ran.code == 1
    assert why in ran.err
    assert await stage.annotations() == {}


async def test_full_waits_until_the_last_change_was_looked_at(
    trimtab: Program, stage: Stage, client: ApiClient
) -> None:
    made = await stage.put(stable())
    await client.patch(made, made.replace(spec=made.spec.replace(retry_token="other")))
    ran = trimtab("canary", "promote", "web", "--full")
    assert ran.code == 1
    assert "has not been looked at yet; try again" in ran.err


# pause and resume


async def test_pause_says_why_and_resume_takes_it_away(trimtab: Program, stage: Stage) -> None:
    await stage.put(progressing())
    ran = trimtab("canary", "pause", "web", "--reason", "the shop is busy")
    assert ran.code == 0
    assert f"it stands still with 25 % of the traffic: run {RUN} is Progressing, step 2 of 3" in ran.out
    assert await stage.annotations() == {PAUSE: "the shop is busy"}
    ran = trimtab("canary", "pause", "web")
    assert (ran.code, ran.out) == (0, "canarydeployment/web is paused already: the shop is busy\n")
    assert trimtab("canary", "resume", "web").out == "canarydeployment/web goes on\n"
    assert await stage.annotations() == {}
    assert trimtab("canary", "resume", "web").out == "canarydeployment/web is not paused\n"


async def test_pause_between_releases_holds_the_next_one(trimtab: Program, stage: Stage) -> None:
    await stage.put(stable())
    assert "no release begins while it is paused" in trimtab("canary", "pause", "web").out


@pytest.mark.parametrize(
    ("spec", "run", "said"),
    [
        ({"suspend": True}, {}, "spec.suspend holds it"),
        ({}, {"frozen": True, "waiting_for": f"{RUN}/frozen"}, "`trimtab canary abort web` rolls it back"),
        ({}, {"waiting_for": f"{RUN}/promotion"}, f"it waits at the gate {RUN}/promotion"),
    ],
    ids=["suspended", "frozen", "gate"],
)
async def test_resume_names_what_else_holds_it(
    trimtab: Program, stage: Stage, spec: dict[str, Any], run: dict[str, Any], said: str
) -> None:
    await stage.put(progressing(going(**run)), **spec)
    trimtab("canary", "pause", "web")
    assert said in trimtab("canary", "resume", "web").out


async def test_a_gate_that_was_approved_while_paused_is_not_waited_for(trimtab: Program, stage: Stage) -> None:
    await stage.put(progressing(going(waiting_for=f"{RUN}/promotion"), phase="WaitingPromotion"))
    trimtab("canary", "pause", "web")
    trimtab("canary", "promote", "web")
    assert trimtab("canary", "resume", "web").out == "canarydeployment/web goes on\n"


# abort and retry


@pytest.mark.parametrize("phase", ["WaitingRollout", "Starting", "Progressing", "WaitingPromotion", "Promoting"])
async def test_abort_names_the_run(trimtab: Program, stage: Stage, phase: str) -> None:
    await stage.put(progressing(phase=phase))
    ran = trimtab("canary", "abort", "web")
    assert (ran.code, ran.err) == (0, "")
    assert f"run {RUN} is rolled back to revision 0a0a0a0a0a0a" in ran.out
    assert await stage.annotations() == {ABORT: RUN}


@pytest.mark.parametrize(
    ("status", "why"),
    [
        (stable(), "no release goes on"),
        (progressing(phase="RollingBack"), "is being rolled back already"),
        (
            progressing(going(result="Failed", message="3 checks failed"), phase="Finalising"),
            "already: 3 checks failed",
        ),
        (progressing(going(result="Succeeded"), phase="Finalising"), "revision 1b1b1b1b1b1b is stable already"),
        (progressing(going(result="Succeeded"), phase="Returning"), "apply a spec with what was there before"),
    ],
    ids=["stable", "rolling-back", "failed", "succeeded", "returning"],
)
async def test_abort_is_refused_when_it_is_too_late(
    trimtab: Program, stage: Stage, status: CanaryDeploymentStatus, why: str
) -> None:
    await stage.put(status)
    ran = trimtab("canary", "abort", "web")
    assert ran.code == 1
    assert why in ran.err
    assert await stage.annotations() == {}


async def test_retry_has_another_value_each_time(trimtab: Program, stage: Stage) -> None:
    await stage.put(failed())
    ran = trimtab("canary", "retry", "web")
    assert ran.out == "canarydeployment/web: revision 1b1b1b1b1b1b runs again, from its first step\n"
    first = (await stage.annotations())[RETRY]
    trimtab("canary", "retry", "web")
    assert (await stage.annotations())[RETRY] != first


@pytest.mark.parametrize(
    ("status", "why"),
    [
        (stable(), "no revision failed"),
        (progressing(), "a release goes on already"),
        (failed().replace(target_revision=OLD), "but the spec says 0a0a0a0a0a0a now"),
    ],
    ids=["stable", "running", "changed"],
)
async def test_retry_is_refused_when_nothing_would_run(
    trimtab: Program, stage: Stage, status: CanaryDeploymentStatus, why: str
) -> None:
    await stage.put(status)
    ran = trimtab("canary", "retry", "web")
    assert ran.code == 1
    assert why in ran.err


async def test_retry_says_what_still_holds_it(trimtab: Program, stage: Stage) -> None:
    await stage.put(failed(), abort=True)
    assert "spec.abort is set, so nothing begins yet" in trimtab("canary", "retry", "web").out


# whom


async def test_a_name_that_is_not_there_is_answered_with_those_that_are(trimtab: Program, stage: Stage) -> None:
    await stage.put(stable(), name="shop")
    ran = trimtab("canary", "status", "web")
    assert ran.code == 3
    assert f"there is no canarydeployment/web in namespace {stage.namespace}; there are: shop" in ran.err
    ran = trimtab("canary", "abort", "web", "-n", "default")
    assert "in namespace default; there are: none" in ran.err
