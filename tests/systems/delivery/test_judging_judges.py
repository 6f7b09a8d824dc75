"""What one metric's numbers mean."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from msgspec import UNSET, convert
from scipy import stats  # type: ignore[import-untyped]

from trimtab.systems.delivery.judging import combine, judge, judge_all, problem
from trimtab.systems.delivery.judging.comparing import PRIOR, chance_of_harm
from trimtab.systems.delivery.judging.evidence import VALUES
from trimtab.systems.delivery.kinds import Analysis, Evidence, Metric, MetricCheck
from trimtab.systems.delivery.kinds.analysis import DURATION, SUCCESS_RATE
from trimtab.systems.delivery.measuring.contract import Counts, Measured

BAYES = {"compare": {"judge": "Bayes"}}
RANKS = {"compare": {"judge": "MannWhitney"}}
RATIO = {"compare": {"judge": "Ratio"}}
COUNTS = st.tuples(st.integers(0, 2000), st.integers(1, 2000)).map(lambda pair: (min(pair), pair[1]))


def metric(name: str = SUCCESS_RATE, **fields: Any) -> Metric:
    return convert({"name": name, **fields}, Metric)


def success(failed: float, total: float, stable_failed: float = 0, stable_total: float = 0) -> Measured:
    return Measured(
        name=SUCCESS_RATE,
        value=100 * (total - failed) / total if total else None,
        stable=100 * (stable_total - stable_failed) / stable_total if stable_total else None,
        canary_counts=Counts(total, failed),
        stable_counts=Counts(stable_total, stable_failed),
    )


def said(metric: Metric, measured: Measured, evidence: Evidence | None = None, on_no_data: Any = "Hold") -> MetricCheck:
    return judge(metric, measured, evidence or Evidence(name=metric.name), on_no_data=on_no_data)[0]


def values(name: str, canary: Any, stable: Any) -> Measured:
    return Measured(name=name, value=canary[-1], canary_values=tuple(canary), stable_values=tuple(stable))


@pytest.mark.parametrize(
    ("wanted", "value", "verdict"),
    [
        ({"min": 99}, 99.0, "Pass"),
        ({"min": 99}, 98.99, "Fail"),
        ({"max": 500}, 500.0, "Pass"),
        ({"max": 500}, 500.1, "Fail"),
        ({"min": 1, "max": 2}, 1.5, "Pass"),
        ({"min": 1, "max": 2}, 2.5, "Fail"),
        ({"min": 0}, math.inf, "Inconclusive"),
        ({"max": 0}, -math.inf, "Inconclusive"),
        ({"min": 0}, math.nan, "Inconclusive"),
        ({"min": 0}, None, "Inconclusive"),
    ],
)
def test_a_threshold_has_both_ends_in_it_and_wants_a_number(
    wanted: dict[str, float], value: float | None, verdict: str
) -> None:
    check = said(metric("queue", thresholdRange=wanted), Measured(name="queue", value=value))
    assert check.verdict == verdict
    assert check.value == (value if value is not None and math.isfinite(value) else UNSET)


def test_messages_are_sentences_with_numbers() -> None:
    check = said(metric(thresholdRange={"min": 99}), success(7.416, 412))
    assert check.message == "98.2 % of 412 requests succeeded; at least 99 % wanted"
    assert (check.samples, check.verdict) == (412, "Fail")
    slow = Measured(name=DURATION, value=612.25, canary_counts=Counts(412))
    check = said(metric(DURATION, thresholdRange={"max": 500}), slow)
    assert check.message == "99 % of 412 requests took at most 612.2 ms; at most 500 ms wanted"
    check = said(metric(**BAYES), success(15, 500, 9, 4500))
    assert check.message == (
        "the canary failed 15 of 500 requests, stable failed 9 of 4500 requests: "
        "the chance that it is worse by more than 0.5 % is above 99.9 %"
    )


@pytest.mark.parametrize(("on_no_data", "verdict"), [("Hold", "Inconclusive"), ("Fail", "Fail"), ("Pass", "Pass")])
@pytest.mark.parametrize(
    "measured",
    [success(0, 0), success(0, 9), Measured(name=SUCCESS_RATE, problem="no requests"), success(0, 0, 3, 500)],
)
def test_too_little_is_what_on_no_data_says(measured: Measured, on_no_data: str, verdict: str) -> None:
    for way in ({"thresholdRange": {"min": 99}}, BAYES):
        asked = metric(minSamples=10, **way)
        assert said(asked, measured, on_no_data=on_no_data).verdict == verdict
        own = metric(minSamples=10, onNoData=on_no_data, **way)
        assert said(own, measured, on_no_data="Hold").verdict == verdict


def test_what_could_not_be_measured_is_an_error_whatever_on_no_data_says() -> None:
    broken = Measured(name=SUCCESS_RATE, error=True, problem="connection refused", canary_counts=Counts(100, 100))
    for way in ({"thresholdRange": {"min": 99}}, BAYES, RANKS):
        check, evidence = judge(metric(**way), broken, Evidence(name=SUCCESS_RATE), on_no_data="Fail")
        assert check.verdict == "Error"
        assert check.message == "could not be measured: connection refused"
        assert evidence == Evidence(name=SUCCESS_RATE)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({}, "Threshold needs thresholdRange with min or max"),
        ({"thresholdRange": {}}, "Threshold needs thresholdRange with min or max"),
        (RATIO, "Ratio needs thresholdRange with min or max"),
        ({"name": DURATION, **BAYES}, "Bayes counts failures"),
        (BAYES, ""),
        (RANKS, ""),
        ({"thresholdRange": {"max": 0}}, ""),
    ],
)
def test_a_metric_that_can_never_be_judged_is_told(fields: dict[str, Any], words: str) -> None:
    asked = metric(**fields)
    assert problem(asked).startswith(words)
    assert bool(problem(asked)) == bool(words)
    if words:
        assert said(asked, success(0, 100)).verdict == "Error"


@pytest.mark.parametrize(
    ("canary", "stable", "verdict"),
    [
        (120.0, 100.0, "Pass"),
        (151.0, 100.0, "Fail"),
        (0.0, 0.0, "Pass"),
        (1.0, 0.0, "Inconclusive"),
        (1.0, None, "Inconclusive"),
        (1.0, math.nan, "Inconclusive"),
        (math.inf, 100.0, "Inconclusive"),
        (-300.0, -100.0, "Fail"),
    ],
)
def test_a_ratio_is_to_stable(canary: float, stable: float | None, verdict: str) -> None:
    asked = metric(DURATION, thresholdRange={"max": 1.5}, **RATIO)
    assert said(asked, Measured(name=DURATION, value=canary, stable=stable)).verdict == verdict


@pytest.mark.parametrize(
    ("canary", "stable", "verdict"),
    [
        ((0, 20), (14, 4500), "Inconclusive"),
        ((1, 20), (14, 4500), "Inconclusive"),
        ((1, 1000), (14, 4500), "Pass"),
        ((0, 300), (14, 4500), "Pass"),
        ((5, 60), (14, 4500), "Fail"),
        ((20, 20), (14, 4500), "Fail"),
        ((5, 100), (225, 4500), "Inconclusive"),
        ((510, 10000), (2250, 45000), "Pass"),
        ((5000, 100000), (22500, 450000), "Pass"),
        ((13, 1000), (14, 4500), "Inconclusive"),
        ((16, 1000), (14, 4500), "Fail"),
    ],
)
def test_bayes_says_how_sure_it_is(canary: tuple[float, float], stable: tuple[float, float], verdict: str) -> None:
    assert said(metric(**BAYES), success(*canary, *stable)).verdict == verdict


@settings(max_examples=40, deadline=None)
@given(COUNTS, COUNTS, st.sampled_from([0.001, 0.005, 0.05]))
def test_the_chance_of_harm_is_what_scipy_makes_of_the_same_beliefs(
    canary: tuple[int, int], stable: tuple[int, int], margin: float
) -> None:
    (failed, total), (stable_failed, stable_total) = canary, stable
    evidence = Evidence(
        name="x", canary_failed=failed, canary_total=total, stable_failed=stable_failed, stable_total=stable_total
    )
    theirs = stable_failed + 0.5, stable_total - stable_failed + 0.5
    edge = min(0.5, theirs[0] / sum(theirs) + margin)
    prior = PRIOR, PRIOR * (1 - edge) / edge
    ours = prior[0] + failed, prior[1] + total - failed
    differs, same = stats.betabinom.pmf(failed, total, *prior), stats.betabinom.pmf(failed, total, *theirs)
    shares = [(place + 0.5) / 1000 for place in range(1000)]  # equally likely shares of stable
    larger = float(stats.beta.sf(stats.beta.ppf(shares, *theirs) + margin, *ours).mean())
    assert chance_of_harm(evidence, margin) == pytest.approx(larger * differs / (differs + same), abs=2e-3)


def test_bayes_learns_from_all_windows_of_the_run() -> None:
    asked, evidence, verdicts = metric(**BAYES), Evidence(name=SUCCESS_RATE), []
    for _ in range(15):
        check, evidence = judge(asked, success(0, 20, 1, 300), evidence, on_no_data="Hold")
        verdicts.append(check.verdict)
    assert verdicts[0] == "Inconclusive"
    assert verdicts[-1] == "Pass"
    assert (evidence.canary_total, evidence.stable_failed) == (300, 15)
    for _ in range(3):
        check, evidence = judge(asked, success(10, 20, 1, 300), evidence, on_no_data="Hold")
    assert check.verdict == "Fail"


def test_bayes_never_passes_on_old_windows_alone() -> None:
    known = Evidence(name=SUCCESS_RATE, canary_total=10_000, stable_total=90_000)
    assert said(metric(**BAYES), success(0, 0, 0, 100), known).verdict == "Inconclusive"


def test_bayes_without_requests_to_stable_takes_the_threshold_or_waits() -> None:
    alone = success(0, 400)
    assert said(metric(**BAYES), alone).verdict == "Inconclusive"
    assert said(metric(thresholdRange={"min": 99}, **BAYES), alone).verdict == "Pass"
    bad = said(metric(thresholdRange={"min": 99}, **BAYES), success(20, 400))
    assert bad.verdict == "Fail"
    assert bad.message == "the canary failed 20 of 400 requests: the chance that more than 1 % fail is above 99.9 %"


RANK = {"Pass": 0, "Inconclusive": 1, "Fail": 2}


@given(COUNTS, COUNTS, st.integers(1, 200), st.sampled_from([0.0, 0.005, 0.05]), st.sampled_from([0.8, 0.95, 0.999]))
def test_more_failures_never_make_a_verdict_better(
    canary: tuple[int, int], stable: tuple[int, int], more: int, margin: float, confidence: float
) -> None:
    failed, total = canary
    assume(failed + more <= total)
    asked = metric(compare={"judge": "Bayes", "margin": margin, "confidence": confidence})
    before, after = said(asked, success(failed, total, *stable)), said(asked, success(failed + more, total, *stable))
    assert (before.verdict, after.verdict) != ("Fail", "Pass")
    fixed = metric(thresholdRange={"min": 99})
    assert RANK[said(fixed, success(failed + more, total)).verdict] >= RANK[said(fixed, success(failed, total)).verdict]


NUMBERS = st.one_of(st.none(), st.floats())
MEASURED = st.builds(
    lambda value, stable, canary, other, first, second: Measured(
        name=SUCCESS_RATE,
        value=value,
        stable=stable,
        canary_counts=canary,
        stable_counts=other,
        canary_values=first,
        stable_values=second,
    ),
    NUMBERS,
    NUMBERS,
    *[st.one_of(st.none(), st.builds(Counts, st.floats(), st.floats()))] * 2,
    *[st.lists(st.floats(), max_size=12).map(tuple)] * 2,
)


@given(MEASURED, st.sampled_from(["Threshold", "Ratio", "Bayes", "MannWhitney"]), st.sampled_from(["Hold", "Fail"]))
def test_no_numbers_however_odd_break_a_judge_and_nan_never_passes(measured: Measured, way: str, without: Any) -> None:
    asked = metric(thresholdRange={"min": 0}, compare={"judge": way})
    check, evidence = judge(asked, measured, Evidence(name=SUCCESS_RATE), on_no_data=without)
    assert convert(
        {"canaryTotal": evidence.canary_total, "canaryFailed": evidence.canary_failed, "name": "x"}, Evidence
    )
    assert len(evidence.canary_values) <= VALUES
    if way in ("Threshold", "Ratio") and (measured.value is None or not math.isfinite(measured.value)):
        assert check.verdict != "Pass"
    if way == "Ratio" and (measured.stable is None or not math.isfinite(measured.stable)):
        assert check.verdict != "Pass"


BASE = [100.0, 103, 98, 101, 99, 104, 97, 102, 100.5, 98.5]


@pytest.mark.parametrize(
    ("name", "fields", "factor", "verdict"),
    [
        (DURATION, {}, 1.0, "Pass"),
        (DURATION, {}, 1.5, "Fail"),
        (DURATION, {}, 0.5, "Pass"),
        (DURATION, {}, 1.1, "Inconclusive"),
        (DURATION, {"compare": {"judge": "MannWhitney", "margin": 0.6}}, 1.5, "Pass"),
        (SUCCESS_RATE, {}, 0.5, "Fail"),
        (SUCCESS_RATE, {}, 1.5, "Pass"),
        ("orders", {"thresholdRange": {"min": 5}}, 0.5, "Fail"),
        ("orders", {"thresholdRange": {"min": 5}}, 1.5, "Pass"),
        ("queue", {"thresholdRange": {"max": 5}}, 1.5, "Fail"),
        ("queue", {"thresholdRange": {"max": 5}}, 0.5, "Pass"),
        ("level", {"thresholdRange": {"min": 1, "max": 5}}, 1.5, "Fail"),
        ("level", {"thresholdRange": {"min": 1, "max": 5}}, 0.5, "Fail"),
        ("level", {"thresholdRange": {"min": 1, "max": 5}}, 1.0, "Pass"),
        ("unknown", {}, 1.5, "Fail"),
        ("unknown", {}, 0.5, "Pass"),
    ],
)
def test_ranks_know_which_way_is_worse(name: str, fields: dict[str, Any], factor: float, verdict: str) -> None:
    measured = values(name, [each * factor for each in BASE], BASE)
    assert said(metric(name, **{**RANKS, **fields}), measured).verdict == verdict


def test_ranks_wait_for_enough_values_and_keep_the_latest() -> None:
    asked, evidence = metric("queue", **RANKS), Evidence(name="queue")
    for count in range(1, 200):
        measured = Measured(name="queue", value=300.0 + count, stable=100.0 + count)
        check, evidence = judge(asked, measured, evidence, on_no_data="Hold")
        assert check.verdict == ("Inconclusive" if count < 4 else "Fail")
    assert evidence.canary_values == tuple(300.0 + count for count in range(80, 200))
    assert len(evidence.stable_values) == VALUES


def test_ranks_are_content_when_nothing_ever_happens() -> None:
    assert said(metric("errors", **RANKS), values("errors", [0.0] * 8, [0.0] * 8)).verdict == "Pass"


def check(verdict: Any, name: str = "a") -> MetricCheck:
    return MetricCheck(name=name, verdict=verdict)


def test_the_worst_verdict_wins() -> None:
    assert combine([]) == "Pass"
    assert combine([], ["the gate said no"]) == "Fail"
    assert combine([check("Pass"), check("Inconclusive")]) == "Inconclusive"
    assert combine([check("Inconclusive"), check("Error"), check("Pass")]) == "Error"
    assert combine([check("Error"), check("Fail"), check("Pass")]) == "Fail"


ANALYSIS = Analysis(metrics=(metric(**BAYES), metric("queue", thresholdRange={"max": 5})))
QUEUE = Measured(name="queue", value=3.0)


def test_a_window_is_taken_into_the_evidence_once() -> None:
    first = judge_all(ANALYSIS, [success(0, 20, 1, 300), QUEUE], ())
    assert first.used
    assert first.evidence[0].canary_total == 20
    broken = judge_all(ANALYSIS, [success(0, 20, 1, 300), Measured(name="queue", error=True)], first.evidence)
    assert (broken.used, broken.evidence) == (False, first.evidence)
    refused = judge_all(ANALYSIS, [success(0, 20, 1, 300), Measured(name="queue", error=True)], (), ["no"])
    assert refused.used


def test_a_window_that_held_too_little_goes_on() -> None:
    analysis = ANALYSIS.replace(metrics=ANALYSIS.metrics[:1])
    judged = judge_all(analysis, [success(0, 0, 1, 300)], ())
    assert (judged.used, judged.evidence, judged.checks[0].verdict) == (False, (), "Inconclusive")
    judged = judge_all(analysis.replace(on_no_data="Pass"), [success(0, 0, 1, 300)], ())
    assert (judged.used, judged.checks[0].verdict) == (True, "Pass")


def test_a_check_without_metrics_forgets_nothing() -> None:
    known = judge_all(ANALYSIS, [success(0, 20, 1, 300), QUEUE], ()).evidence
    assert judge_all(ANALYSIS.replace(metrics=()), [], known).evidence == known


def test_a_metric_that_was_not_measured_is_an_error() -> None:
    judged = judge_all(ANALYSIS, [QUEUE], ())
    assert [each.verdict for each in judged.checks] == ["Error", "Pass"]
