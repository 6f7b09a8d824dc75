"""`trimtab canary replay`: a recorded run, judged by other thresholds."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest

from tests.cli.canary_kit import ANALYSIS, NOON, RUN, Stage, check, failed, going, progressing, stable
from tests.cli.conftest import Program
from tests.cli.test_canary import client, stage, trimtab  # noqa: F401 - fixtures
from trimtab.cli.canary_replay import changed
from trimtab.cli.codes import Problem
from trimtab.model.clock import format_micro_time
from trimtab.model.document import convert
from trimtab.runtime.runs import Run
from trimtab.storage.folder import FolderBlobs
from trimtab.systems.delivery.kinds import Analysis, CanaryDeploymentStatus
from trimtab.systems.delivery.measuring.contract import Counts, Measured
from trimtab.systems.delivery.replaying import appended

RATES = (99.5, 98.6, 98.5, 98.4)
WANTED = "--set", "request-success-rate.min=98", "--set", "passes=1"


def record(rates: tuple[float, ...] = RATES) -> bytes:
    """Of a run whose checks saw these shares of good answers."""
    written = b""
    for number, rate in enumerate(rates):
        start, end = (format_micro_time(NOON + timedelta(seconds=30 * each)) for each in (number, number + 1))
        made = check("Pass" if rate >= 99 else "Fail", rate, time=end, window_start=start)
        counts = Counts(1000, 10 * (100 - rate))
        measured = Measured(name="request-success-rate", value=rate, canary_counts=counts)
        written = appended(written, made, [measured])
    return written


@pytest.fixture
def blobs(trimtab: Program) -> FolderBlobs:  # noqa: F811
    (trimtab.folder / "blobs").mkdir()
    return FolderBlobs(trimtab.folder / "blobs")


async def of_failed_run(blobs: FolderBlobs, data: bytes | None = None) -> CanaryDeploymentStatus:
    status = failed()
    (ended,) = status.history or ()
    kept: Run = ended.replace(details=str(await blobs.put(record() if data is None else data)))
    return status.replace(history=(kept,))


async def test_a_run_replayed_as_it_was_ends_as_it_did(trimtab: Program, stage: Stage, blobs: FolderBlobs) -> None:  # noqa: F811
    await stage.put(await of_failed_run(blobs))
    ran = trimtab("canary", "replay", "web")
    assert (ran.code, ran.err) == (0, "")
    assert ran.lines[0] == f"canarydeployment/web: run {RUN} by spec.analysis as it is now"
    rows = [line.split() for line in ran.lines if line.startswith("12:")]
    assert [row[:4] for row in rows] == [
        ["12:00:30", "1", "Pass", "Pass"],
        ["12:01:00", "1", "Fail", "Fail"],
        ["12:01:30", "1", "Fail", "Fail"],
        ["12:02:00", "1", "Fail", "Fail"],
    ]
    assert "was:       Failed ChecksFailed" in ran.lines
    assert "would be:  RolledBack at check 4, 12:02:00" in ran.out


async def test_other_thresholds_make_another_end(trimtab: Program, stage: Stage, blobs: FolderBlobs) -> None:  # noqa: F811
    await stage.put(await of_failed_run(blobs))
    ran = trimtab("canary", "replay", "web", *WANTED)
    assert "with request-success-rate.min=98, passes=1" in ran.lines[0]
    assert "would be:  Promoted at check 3, 12:01:30" in ran.out
    ran = trimtab("canary", "replay", "web", "--threshold", "1")
    assert "would be:  RolledBack at check 2, 12:01:00" in ran.out


async def test_a_program_gets_json(trimtab: Program, stage: Stage, blobs: FolderBlobs) -> None:  # noqa: F811
    await stage.put(await of_failed_run(blobs))
    found = json.loads(trimtab("canary", "replay", "web", *WANTED, "-o", "json").out)
    assert (found["ending"], found["checks"], len(found["replayed"])) == ("Promoted", 3, 4)


async def test_a_run_that_goes_on_is_judged_by_its_own_analysis(
    trimtab: Program,  # noqa: F811
    stage: Stage,  # noqa: F811
    blobs: FolderBlobs,
) -> None:
    running = going(record=str(await blobs.put(record((99.5, 99.5)))))
    await stage.put(progressing(running))
    ran = trimtab("canary", "replay", "web")
    assert ran.lines[0].endswith("by its own analysis")
    assert "was:       it goes on" in ran.lines
    assert "would be:  Unfinished after 2 checks, at step 2" in ran.lines


async def test_a_run_that_is_not_there_is_answered_with_those_that_are(
    trimtab: Program,  # noqa: F811
    stage: Stage,  # noqa: F811
    blobs: FolderBlobs,
) -> None:
    await stage.put(await of_failed_run(blobs))
    ran = trimtab("canary", "replay", "web", "--run", "other")
    assert ran.code == 3
    assert f"has no run other with a record; there are: {RUN}" in ran.err
    await stage.put(stable(), name="quiet")
    assert "has no run with a record; there are: none" in trimtab("canary", "replay", "quiet").err


async def test_a_record_that_is_damaged_or_gone_is_told(trimtab: Program, stage: Stage, blobs: FolderBlobs) -> None:  # noqa: F811
    await stage.put(await of_failed_run(blobs, b"{}\n"))
    ran = trimtab("canary", "replay", "web")
    assert ran.code == 1
    assert f"the record of run {RUN} cannot be read: line 1" in ran.err
    (trimtab.folder / "empty").mkdir()
    ran = trimtab("canary", "replay", "web", "--blobs", str(trimtab.folder / "empty"))
    assert ran.code == 1
    assert "--blobs names others" in ran.err


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("request-success-rate.min", "write it as"),
        ("request-success-rate.min=x", "is no value of min"),
        ("request-success-rate.quantile=0.5", "of a metric there are: min, max"),
        ("other.min=1", "there is no metric other; there are: request-success-rate"),
        ("interval=1s", "of the analysis there are: threshold"),
        ("threshold=0", "threshold"),
        ("request-success-rate.judge=Guess", "judge"),
        ("request-success-rate.critical=perhaps", "is no value of critical"),
        ("request-success-rate.max=1", "thresholdRange"),
    ],
)
def test_what_cannot_be_set_is_told(text: str, why: str) -> None:
    with pytest.raises(Problem, match="--set") as told:
        changed(convert(ANALYSIS, Analysis), [text])
    assert why in str(told.value)
    assert told.value.code == 2


def test_only_what_is_named_is_changed() -> None:
    before = convert(ANALYSIS, Analysis)
    after = changed(before, ["request-success-rate.min=95", "request-success-rate.critical=true", "threshold=5"])
    (metric,) = after.metrics
    assert (metric.threshold_range.min, metric.critical, metric.min_samples) == (95, True, 50)  # type: ignore[union-attr]
    assert after.replace(metrics=before.metrics, threshold=before.threshold) == before
    assert changed(before, []) == before
