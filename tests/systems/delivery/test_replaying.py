"""The record of a run, and what another analysis makes of it."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET, convert

from trimtab.systems.delivery import replaying
from trimtab.systems.delivery.judging import judge_all
from trimtab.systems.delivery.kinds import Analysis, Check, Evidence
from trimtab.systems.delivery.kinds.analysis import SUCCESS_RATE
from trimtab.systems.delivery.measuring.contract import Counts, Measured
from trimtab.systems.delivery.replaying import FULL, RecordError, appended, decode, encode, replay


def analysis(**fields: Any) -> Analysis:
    metric = {"name": SUCCESS_RATE, "thresholdRange": {"min": 99}, "compare": {"judge": "Threshold"}}
    return convert({"stepWeights": [10, 30, 50], "metrics": [metric], **fields}, Analysis)


BAYES = analysis(metrics=[{"name": SUCCESS_RATE, "compare": {"judge": "Bayes"}}])


def at(minute: int) -> str:
    return f"2026-11-16T10:{minute:02}:00Z"


def check(minute: int, verdict: Any = "Pass", since: int | None = None) -> Check:
    start = at(minute - 1 if since is None else since)
    return Check(time=at(minute), step=0, weight=10, window_start=start, verdict=verdict)


def measured(failed: float, total: float = 100, stable: float = 900) -> Measured:
    return Measured(
        name=SUCCESS_RATE,
        value=100 * (total - failed) / total if total else math.nan,
        canary_counts=Counts(total, failed),
        stable_counts=Counts(stable, 0.003 * stable),
        query='istio_requests_total{destination_workload="shop-canary"}',
    )


def record(*failed: float) -> bytes:
    lines = b""
    for minute, count in enumerate(failed, 1):
        lines = appended(lines, check(minute), [measured(count)])
    return lines


def test_a_record_is_one_json_object_for_each_check_with_what_was_measured() -> None:
    lines = record(0, 2).splitlines()
    assert len(lines) == 2
    told = json.loads(lines[1])
    assert told["check"]["time"] == at(2)
    assert told["measured"][0]["query"] == 'istio_requests_total{destination_workload="shop-canary"}'
    assert told["measured"][0]["canary_counts"] == {"total": 100.0, "failed": 2.0}


NUMBERS = st.floats() | st.none()
VALUES = st.lists(st.floats(), max_size=5).map(tuple)


@given(NUMBERS, NUMBERS, st.floats(), st.floats(), VALUES, VALUES, st.text(max_size=50), st.booleans())
def test_what_is_written_is_read_again(
    value: Any, stable: Any, total: float, failed: float, ours: Any, theirs: Any, text: str, error: bool
) -> None:
    one = Measured(
        name="m",
        value=value,
        stable=stable,
        canary_counts=Counts(total, failed),
        canary_values=ours,
        stable_values=theirs,
        query=text,
        problem=text,
        error=error,
    )
    line = encode(check(1), [one], [text])
    assert line.count(b"\n") == 1
    (read,), complete = decode(line)
    assert complete
    assert (repr(read.measured), read.check, read.refusals) == (repr((one,)), check(1), (text,))


def test_a_record_is_bounded_and_says_when_it_is_full(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replaying, "LARGEST", 1000)
    full = record(*[0] * 20)
    assert len(full) <= 1000
    assert full.endswith(FULL)
    assert appended(full, check(50), [measured(0)]) == full
    lines, complete = decode(full)
    assert (len(lines), complete) == (full.count(b"\n") - 1, False)
    assert not replay(full, analysis()).complete


def test_a_line_is_bounded() -> None:
    huge = Measured(
        name="m",
        query="q" * 100_000,
        problem="p" * 100_000,
        canary_values=(1 / 3,) * 5000,
        stable_values=(1 / 3,) * 5000,
    )
    line = encode(check(1), [huge] * 16, ["no" * 5000] * 50)
    assert len(line) <= replaying.MAX_LINE
    assert len(decode(line)[0][0].measured) == 16


@pytest.mark.parametrize(
    "bad", [b"nonsense\n", b"[1]\n", b'{"check":1}\n', b'{"measured":[1]}\n', b"\xff\n", b"[" * 5000]
)
def test_what_is_no_record_is_told_by_its_line(bad: bytes) -> None:
    with pytest.raises(RecordError, match="line 2"):
        replay(record(0) + bad, analysis())


def test_what_is_too_long_is_no_record(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replaying, "LARGEST", 10)
    with pytest.raises(RecordError, match="longer than 10 bytes"):
        decode(b"x" * 11)


@pytest.mark.parametrize(
    ("failed", "fields", "ending", "minute"),
    [
        ((0, 0, 0), {}, "Promoted", 3),
        ((0, 5, 5, 0, 0), {}, "Promoted", 5),
        ((0, 5, 5, 0, 5), {}, "RolledBack", 5),
        ((0, 5), {"threshold": 1}, "RolledBack", 2),
        ((0, 5), {"threshold": 1, "onFail": "Freeze"}, "Frozen", 2),
        ((5, 0, 5, 0, 0), {"threshold": 2, "failureMode": "Consecutive"}, "Promoted", 5),
        ((0, 0, 0, 0), {"passes": 2}, "Unfinished", None),
        ((0, 0), {"stepWeights": UNSET, "iterations": 2, "match": [{}]}, "Promoted", 2),
        ((), {}, "Unfinished", None),
    ],
)
def test_a_replay_tells_what_the_run_would_have_done_and_when(
    failed: tuple[int, ...], fields: dict[str, Any], ending: str, minute: int | None
) -> None:
    wanted = {name: value for name, value in fields.items() if value is not UNSET}
    asked = analysis(**wanted)
    if fields.get("stepWeights") is UNSET:
        asked = asked.replace(step_weights=UNSET)
    told = replay(record(*failed), asked)
    assert (told.ending, told.time) == (ending, "" if minute is None else at(minute))
    assert told.checks == (len(failed) if minute is None else minute)
    assert len(told.replayed) == len(failed)


def test_another_judge_sees_the_same_numbers() -> None:
    lines = record(2, 2, 0, 2, 0, 0)
    strict = replay(lines, analysis())
    assert (strict.ending, strict.reason, strict.checks) == ("RolledBack", "ChecksFailed", 4)
    assert [each.verdict for each in strict.replayed] == ["Fail", "Fail", "Pass", "Fail", "Pass", "Pass"]
    assert [each.action for each in strict.replayed][3:] == ["Rollback", None, None]
    assert strict.message == (
        "3 checks failed: request-success-rate: 98 % of 100 requests succeeded; at least 99 % wanted"
    )
    patient = replay(lines, BAYES)
    assert patient.ending == "Unfinished"
    assert {each.verdict for each in patient.replayed} == {"Inconclusive"}


def test_a_replay_with_the_same_analysis_repeats_the_run() -> None:
    lines, evidence, verdicts = b"", tuple[Evidence, ...](), []
    for minute in range(1, 12):
        window = [measured(int(minute % 3 == 0), 60)]
        judged = judge_all(BAYES, window, evidence)
        evidence = judged.evidence
        verdicts.append(judged.checks[0].verdict)
        lines = appended(lines, check(minute, judged.checks[0].verdict), window)
    told = replay(lines, BAYES)
    assert [each.verdict for each in told.replayed] == verdicts == [each.was for each in told.replayed]


def test_a_window_that_went_on_counts_once() -> None:
    lines = appended(b"", check(1, "Inconclusive", since=0), [measured(0, 5)])
    lines = appended(lines, check(2, since=0), [measured(0, 200)])
    told = replay(lines, BAYES)
    assert told.replayed[1].metrics[0].message is not UNSET
    assert "the canary failed 0 of 200 requests" in str(told.replayed[1].metrics[0].message)


def test_metrics_that_were_not_measured_are_left_out_and_named() -> None:
    known = analysis().metrics[0]
    asked = analysis().replace(metrics=(known, known.replace(name="queue")))
    told = replay(record(0, 0, 0), asked)
    assert (told.ending, told.missing) == ("Promoted", ("queue",))


def test_refusals_are_part_of_the_record() -> None:
    lines = appended(b"", check(1, "Fail"), [measured(0)], ["gate: it answered 403"])
    told = replay(lines, analysis(threshold=1))
    assert (told.ending, told.message) == ("RolledBack", "a check failed: gate: it answered 403")


def test_an_analysis_without_steps_ends_nothing() -> None:
    told = replay(record(0, 5), analysis().replace(step_weights=UNSET))
    assert (told.ending, [each.verdict for each in told.replayed]) == ("Unfinished", ["Pass", "Fail"])
