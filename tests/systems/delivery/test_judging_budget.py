"""What a check's verdict does to the run."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import convert

from trimtab.model.duration import Duration
from trimtab.systems.delivery.judging import Outcome, pause, settle
from trimtab.systems.delivery.kinds import Analysis, Counters, MetricCheck

CRITICAL = {"name": "errors", "critical": True, "thresholdRange": {"max": 0}}
LETTERS = {"P": "Pass", "F": "Fail", "I": "Inconclusive", "E": "Error"}


def analysis(**fields: Any) -> Analysis:
    return convert({"stepWeights": [10, 50], **fields}, Analysis)


def check(letter: str, name: str = "a", **fields: Any) -> MetricCheck:
    return convert({"name": name, "verdict": LETTERS[letter], **fields}, MetricCheck)


def run(spec: Analysis, letters: str, name: str = "a") -> tuple[Counters, list[Outcome]]:
    """One check for each letter, all at one step."""
    counters, outcomes = Counters(), []
    for letter in letters:
        counters, outcome = settle(spec, counters, [check(letter, name)])
        outcomes.append(outcome)
    return counters, outcomes


def actions(spec: Analysis, letters: str, name: str = "a") -> str:
    return " ".join(outcome.action for outcome in run(spec, letters, name)[1])


@pytest.mark.parametrize(
    ("fields", "letters", "expected"),
    [
        ({}, "P", "Advance"),
        ({"passes": 3}, "PPP", "Repeat Repeat Advance"),
        ({"passes": 2}, "PFIEP", "Repeat Hold Hold Hold Advance"),
        ({"passes": 1}, "PP", "Advance Advance"),
        ({"threshold": 1}, "F", "Rollback"),
        ({"threshold": 3}, "FFF", "Hold Hold Rollback"),
        ({"threshold": 2}, "FPF", "Hold Advance Rollback"),
        ({"threshold": 2, "failureMode": "Consecutive"}, "FPFF", "Hold Advance Hold Rollback"),
        ({"threshold": 2, "failureMode": "Consecutive"}, "FIF", "Hold Hold Rollback"),
        ({"threshold": 2, "failureMode": "Consecutive"}, "FEF", "Hold Hold Rollback"),
        ({"threshold": 1, "onFail": "Freeze"}, "F", "Freeze"),
        ({}, "I" * 50, " ".join(["Hold"] * 50)),
        ({}, "E" * 50, " ".join(["Hold"] * 50)),
        ({"noDataLimit": 2}, "IPII", "Hold Advance Hold Rollback"),
        ({"noDataLimit": 2}, "IEI", "Hold Hold Rollback"),
        ({"noDataLimit": 1, "onFail": "Freeze"}, "I", "Rollback"),
        ({"errorLimit": 2}, "EIEE", "Hold Hold Hold Rollback"),
        ({"threshold": 1, "errorLimit": 5}, "EEEE", "Hold Hold Hold Hold"),
    ],
)
def test_each_verdict_has_a_budget_of_its_own(fields: dict[str, Any], letters: str, expected: str) -> None:
    assert actions(analysis(**fields), letters) == expected


def test_a_critical_metric_fails_at_once_and_others_do_not() -> None:
    spec = analysis(metrics=[CRITICAL], threshold=5)
    assert actions(spec, "F", "errors") == "Rollback"
    assert actions(spec, "F", "other") == "Hold"
    assert actions(spec, "IE", "errors") == "Hold Hold"
    assert actions(analysis(metrics=[CRITICAL], onFail="Freeze"), "F", "errors") == "Freeze"
    _, outcome = settle(spec, Counters(), [check("P", "errors")], ["the gate said no"])
    assert outcome.action == "Hold"


def test_a_refusal_is_a_failure_and_is_told() -> None:
    counters, outcome = settle(analysis(threshold=1), Counters(), [check("P")], ["gate: it answered 403"])
    assert (counters.failed, outcome.action, outcome.verdict) == (1, "Rollback", "Fail")
    assert outcome.message == "a check failed: gate: it answered 403"


@pytest.mark.parametrize(
    ("fields", "told", "reason", "message"),
    [
        ({"threshold": 1}, {"letter": "F", "message": "98 % …"}, "ChecksFailed", "a check failed: a: 98 % …"),
        ({"noDataLimit": 1}, {"letter": "I", "samples": 0}, "NoTraffic", "1 checks in a row had no data: a"),
        ({"noDataLimit": 1}, {"letter": "I"}, "NoTraffic", "1 checks in a row had no data: a"),
        ({"noDataLimit": 1}, {"letter": "I", "samples": 9}, "Undecided", "1 checks in a row could not tell: a"),
        ({"errorLimit": 1}, {"letter": "E"}, "MetricsUnavailable", "1 checks in a row could not be made: a"),
    ],
)
def test_a_rollback_says_why(fields: dict[str, Any], told: dict[str, Any], reason: str, message: str) -> None:
    _, outcome = settle(analysis(**fields), Counters(), [check(**told)])
    assert (outcome.action, outcome.reason, outcome.message) == ("Rollback", reason, message)


def test_messages_are_bounded() -> None:
    long = [check("F", f"metric-{count}", message="x" * 1000) for count in range(16)]
    assert len(settle(analysis(), Counters(), long)[1].message) == 1024


def test_a_step_may_want_other_passes_than_the_analysis() -> None:
    counters, outcome = settle(analysis(passes=1), Counters(), [check("P")], passes=2)
    assert outcome.action == "Repeat"
    assert settle(analysis(passes=1), counters, [check("P")], passes=2)[1].action == "Advance"


@given(st.text("PFIE", max_size=40), st.sampled_from(["Cumulative", "Consecutive"]))
def test_counters_count_what_they_say(letters: str, mode: str) -> None:
    counters, outcomes = run(analysis(threshold=1000, failureMode=mode, passes=1000), letters)
    assert counters.passes == letters.count("P")
    assert counters.failed == (letters if mode == "Cumulative" else letters.rpartition("P")[2]).count("F")
    answered = letters.replace("E", "")
    assert counters.held == len(answered) - len(answered.rstrip("I"))
    assert counters.errors == len(letters) - len(letters.rstrip("E"))
    assert all(outcome.action in ("Repeat", "Hold") for outcome in outcomes)


@given(st.text("PIE", max_size=40))
def test_only_failures_speak_against_the_canary(letters: str) -> None:
    assert not {"Rollback", "Freeze"} & set(actions(analysis(threshold=1), letters).split())


def test_an_error_is_tried_again_soon() -> None:
    slow, quick = Analysis(interval=Duration("1m")), Analysis(interval=Duration("2s"))
    assert (pause(slow, "Error"), pause(quick, "Error")) == (10, 2)
    assert pause(slow, "Inconclusive") == pause(slow, "Fail") == pause(slow, "Pass") == 60
