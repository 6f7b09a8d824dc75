"""Analysis from end to end: what checks look at, what they count, and when they are made."""

from __future__ import annotations

import itertools
import re
from typing import Any

from tests.systems.delivery.stage import Stage, condition
from tests.systems.delivery.test_triggers import at_ten
from trimtab.model.clock import parse_time
from trimtab.model.document import convert
from trimtab.model.objectmeta import ObjectMeta
from trimtab.systems.delivery.kinds import MetricTemplate
from trimtab.systems.delivery.kinds.template import MetricTemplateSpec

QUERY = 'sum(rate(errors{workload="{{ target }}"}[{{ interval }}]))'


def vector(*values: str) -> dict[str, Any]:
    result = [{"metric": {"pod": str(place)}, "value": [1700000000, value]} for place, value in enumerate(values)]
    return {"resultType": "vector", "result": result}


async def test_a_prometheus_that_is_down_holds_and_is_asked_again_and_costs_no_failure(stage: Stage) -> None:
    async with stage.working():
        await stage.stable()
        stage.gauge.down = True
        await stage.image("web:2")
        canary = await stage.until(lambda s: s.run and s.run.counters.errors >= 5)
        assert canary.status.run.counters.failed == 0
        assert canary.status.run.weight == 10
        assert condition(canary, "MetricsAvailable").status == "False"  # type: ignore[union-attr]
        stage.gauge.down = False
        ended = await stage.ended("Succeeded")
    assert condition(ended, "MetricsAvailable").status == "True"  # type: ignore[union-attr]


async def test_errors_have_a_limit_of_their_own(here: Stage) -> None:
    async with here.working():
        await here.stable(analysis={"errorLimit": 3})
        here.gauge.down = True
        await here.image("web:2")
        canary = await here.ended("Failed")
    assert canary.status.history[0].reason == "MetricsUnavailable"
    assert canary.status.history[0].counts["failed"] == 0


async def test_without_traffic_nothing_is_said_and_nothing_is_promoted(here: Stage) -> None:
    here.gauge.rates = lambda workload: (0.0, 0.0)
    async with here.working():
        await here.stable()
        await here.image("web:2")
        canary = await here.until(lambda s: s.run and s.run.counters.held >= 4)
        assert canary.status.run.checks[0].verdict == "Inconclusive"
        assert canary.status.run.weight == 10
        here.gauge.rates = lambda workload: (10.0, 0.0)
        await here.ended("Succeeded")


async def test_no_traffic_for_too_long_rolls_back(here: Stage) -> None:
    here.gauge.rates = lambda workload: (0.0, 0.0)
    async with here.working():
        await here.stable(analysis={"noDataLimit": 3})
        await here.image("web:2")
        canary = await here.ended("Failed")
    assert canary.status.history[0].reason == "NoTraffic"


async def test_no_data_may_mean_pass_or_failure(here: Stage) -> None:
    here.gauge.rates = lambda workload: (0.0, 0.0)
    async with here.working():
        await here.stable(analysis={"onNoData": "Pass"})
        await here.image("web:2")
        await here.ended("Succeeded")
        await here.change(lambda spec: spec["analysis"].update(onNoData="Fail"))
        await here.image("web:3")
        canary = await here.ended("Failed", runs=2)
    assert canary.status.history[0].reason == "ChecksFailed"


async def test_answers_that_are_no_number_are_inconclusive(here: Stage) -> None:
    metric = {"name": "errors", "query": QUERY, "thresholdRange": {"max": 1}}
    answers = iter([vector("NaN"), vector("+Inf"), vector("0.1", "0.2"), vector()])
    here.gauge.answer = lambda query: next(answers, vector("0.5"))
    async with here.working():
        await here.stable(analysis={"metrics": [metric]})
        await here.image("web:2")
        canary = await here.until(lambda s: s.run and s.run.step == 1)
        said = [check.metrics[0].message for check in reversed(canary.status.run.checks)]
        verdicts = [check.verdict for check in reversed(canary.status.run.checks)]
        await here.ended("Succeeded")
    assert verdicts == ["Inconclusive"] * 4 + ["Pass"]
    assert "NaN" in said[0]
    assert "2 series" in said[2]


async def test_windows_are_disjoint_and_begin_when_the_weight_is_live(stage: Stage) -> None:
    async with stage.working():
        await stage.stable(analysis={"passes": 2})
        await stage.image("web:2")
        first = await stage.until(at_ten)
        canary = await stage.until(lambda s: s.run and s.phase in ("Promoting", "Returning"))
    checks = tuple(reversed(canary.status.run.checks))
    assert [check.weight for check in checks] == [10, 10, 50, 50]
    assert checks[0].window_start == first.status.run.verified
    for before, after in itertools.pairwise(checks):
        assert parse_time(after.window_start) >= parse_time(before.time)
    for check in checks:
        assert (parse_time(check.time) - parse_time(check.window_start)).total_seconds() >= 10


async def test_the_same_error_is_counted_once(here: Stage) -> None:
    """A burst in one window is one failed check, however many checks follow."""
    async with here.working():
        await here.stable(analysis={"passes": 4, "threshold": 2})
        await here.image("web:2")
        await here.until(at_ten)
        here.gauge.burst("web-canary", 500)
        canary = await here.ended("Succeeded")
    assert canary.status.history[0].counts["failed"] == 1


async def test_a_restart_never_checks_early(here: Stage) -> None:
    async with here.working():
        await here.stable(analysis={"interval": "60s"})
        await here.image("web:2")
        before = await here.until(at_ten)
    queries = len(here.gauge.queries)
    for _ in range(3):
        here.clock.leap(15)
        async with here.working():
            await here.quiet()
            held = (await here.get()).status.run
            assert held.next_check_time == before.status.run.next_check_time
            assert held.checks == ()
    assert len(here.gauge.queries) == queries
    here.clock.leap(16)
    async with here.working():
        canary = await here.until(lambda s: s.run and s.run.checks)
        assert parse_time(canary.status.run.checks[0].time) >= parse_time(before.status.run.next_check_time)
        assert canary.status.run.checks[0].window_start == before.status.run.window_start
        await here.ended("Succeeded")


async def test_a_metric_template_is_rendered_and_may_change_at_any_time(here: Stage) -> None:
    spec = convert({"query": QUERY + " * {{ variables.factor }}"}, MetricTemplateSpec)
    await here.client.create(MetricTemplate(metadata=ObjectMeta(name="errors", namespace=here.namespace), spec=spec))
    metric = {
        "name": "errors",
        "templateRef": "errors",
        "variables": {"factor": "100"},
        "interval": "30s",
        "thresholdRange": {"max": 1},
    }
    here.gauge.answer = lambda query: vector("0.5")
    async with here.working():
        await here.stable(analysis={"metrics": [metric]})
        await here.image("web:2")
        await here.ended("Succeeded")
    assert here.gauge.queries
    assert all(
        re.fullmatch(r'sum\(rate\(errors\{workload="web-canary"\}\[30s\]\)\) \* 100', q) for q in here.gauge.queries
    )


async def test_a_metric_template_that_is_missing_is_an_error(here: Stage) -> None:
    metric = {"name": "errors", "templateRef": "errors", "thresholdRange": {"max": 1}}
    async with here.working():
        await here.stable(analysis={"metrics": [metric], "errorLimit": 2})
        await here.image("web:2")
        canary = await here.ended("Failed")
    assert canary.status.history[0].reason == "MetricsUnavailable"
    assert "no MetricTemplate errors" in canary.status.history[0].message


async def test_one_failure_of_a_critical_metric_is_enough(here: Stage) -> None:
    metric = {"name": "errors", "query": QUERY, "thresholdRange": {"max": 1}, "critical": True}
    here.gauge.answer = lambda query: vector("2")
    async with here.working():
        await here.stable(analysis={"metrics": [metric], "threshold": 50})
        await here.image("web:2")
        canary = await here.ended("Failed")
    assert canary.status.history[0].reason == "CriticalMetricFailed"


async def test_a_passed_check_may_forgive_failed_ones(here: Stage) -> None:
    metric = {"name": "errors", "query": QUERY, "thresholdRange": {"max": 1}}
    answers = iter(["0", "2", "0", "2", "0", "2"])
    here.gauge.answer = lambda query: vector(next(answers, "0"))
    async with here.working():
        await here.stable(analysis={"metrics": [metric], "failureMode": "Consecutive", "passes": 3})
        await here.image("web:2")
        await here.ended("Succeeded")
        answers = iter(["0", "2", "0", "2", "0", "2"])
        await here.change(lambda spec: spec["analysis"].update(failureMode="Cumulative"))
        await here.image("web:3")
        await here.ended("Failed", runs=2)
