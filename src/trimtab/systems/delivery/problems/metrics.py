"""What is wrong with `spec.analysis.metrics`, and with a MetricTemplate."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from msgspec import UnsetType

from trimtab.model.duration import Duration
from trimtab.model.errors import FieldError
from trimtab.systems.delivery.kinds import Analysis, CanaryDeployment, Metric, MetricTemplate
from trimtab.systems.delivery.kinds.analysis import DURATION, SUCCESS_RATE, Range
from trimtab.systems.delivery.problems.addresses import address_problems
from trimtab.systems.delivery.problems.findings import (
    finite,
    forbidden,
    keyed,
    length,
    missing,
    object_name,
    repeated,
    unsupported,
    wrong,
)

BUILT_IN = (SUCCESS_RATE, DURATION)
QUANTILE = 0.99
"""Metric.quantile, when it is not given."""
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def metric_problems(analysis: Analysis) -> Iterator[FieldError]:
    path = "spec.analysis.metrics"
    yield from repeated((f"{path}[{i}].name", one.name) for i, one in enumerate(analysis.metrics))
    for i, one in enumerate(analysis.metrics):
        yield from _one(f"{path}[{i}]", one)


def template_problems(template: MetricTemplate) -> list[FieldError]:
    """Which variables a metric gives is known only there."""
    from trimtab.systems.delivery.measuring.rendering import used

    spec = template.spec
    found: list[FieldError] = []
    given = {name.removeprefix("variables."): "example" for name in used(spec.query) if name.startswith("variables.")}
    found += _query_problems("spec.query", spec.query, given)
    if not isinstance(spec.prometheus, UnsetType):
        if not isinstance(spec.prometheus.address, UnsetType):
            found += address_problems("spec.prometheus.address", spec.prometheus.address)
        if not isinstance(spec.prometheus.secret_ref, UnsetType):
            found += object_name("spec.prometheus.secretRef.name", spec.prometheus.secret_ref.name)
    return found


def use_problems(canary: CanaryDeployment, templates: Mapping[str, MetricTemplate]) -> list[FieldError]:
    """What is wrong with how its metrics use these templates: variables that they do not give."""
    found: list[FieldError] = []
    if isinstance(canary.spec.analysis, UnsetType):
        return found
    for i, metric in enumerate(canary.spec.analysis.metrics):
        if isinstance(metric.template_ref, UnsetType) or metric.template_ref not in templates:
            continue
        query, path = templates[metric.template_ref].spec.query, f"spec.analysis.metrics[{i}]"
        variables = {} if isinstance(metric.variables, UnsetType) else metric.variables
        found += [
            wrong(f"{path}.templateRef", metric.template_ref, error.detail)
            for error in _query_problems("", query, variables)
        ]
        found += _target_problems(f"{path}.templateRef", metric, query)
    return found


def _one(path: str, metric: Metric) -> Iterator[FieldError]:
    yield from _source_problems(path, metric)
    yield from length(f"{path}.interval", metric.interval, 1.0, 86400.0)
    if metric.quantile != QUANTILE and metric.name != DURATION:
        yield forbidden(f"{path}.quantile", f"only {DURATION} has one: a query says for itself what it asks for")
    yield from _judge_problems(path, metric)


def _source_problems(path: str, metric: Metric) -> Iterator[FieldError]:
    """Exactly one of: a name that is built in, a template, a query."""
    given = [
        name
        for name, value in (("templateRef", metric.template_ref), ("query", metric.query))
        if not isinstance(value, UnsetType)
    ]
    if metric.name in BUILT_IN:
        for name in (*given, *([] if isinstance(metric.variables, UnsetType) else ["variables"])):
            yield forbidden(
                f"{path}.{name}", f"{metric.name} is built in: another name is needed for a query of your own"
            )
        return
    if not given:
        yield missing(f"{path}.query", f"a query, or templateRef: {' and '.join(BUILT_IN)} alone are built in")
    if len(given) == 2:
        yield forbidden(f"{path}.query", "must not be given together with templateRef")
    yield from object_name(f"{path}.templateRef", metric.template_ref)
    variables = {} if isinstance(metric.variables, UnsetType) else metric.variables
    for name in variables:
        if len(name) > 63 or not _IDENTIFIER.fullmatch(name):
            yield wrong(
                keyed(f"{path}.variables", name), name, "must be of letters, digits and _, as variables.name is"
            )
    if not isinstance(metric.query, UnsetType):
        yield from _query_problems(f"{path}.query", metric.query, variables)


def _query_problems(path: str, query: str, variables: Mapping[str, str]) -> Iterator[FieldError]:
    from trimtab.systems.delivery.measuring import rendering  # its parser is for those who write queries

    for problem in rendering.problems(query, variables):
        yield wrong(path, query, problem)


def _judge_problems(path: str, metric: Metric) -> Iterator[FieldError]:
    judge, good = metric.compare.judge, metric.threshold_range
    if judge == "Bayes" and metric.name != SUCCESS_RATE:
        place, others = f"{path}.compare.judge", ("Threshold", "Ratio", "MannWhitney")
        yield unsupported(place, judge, others)
    if not isinstance(metric.query, UnsetType):
        yield from _target_problems(f"{path}.query", metric, metric.query)
    margin = metric.compare.margin
    if not isinstance(margin, UnsetType):
        if not finite(margin) or (judge == "Bayes" and margin >= 1):
            yield wrong(f"{path}.compare.margin", margin, "must be a share below 1, such as 0.01")
        elif judge in ("Threshold", "Ratio"):
            yield forbidden(f"{path}.compare.margin", f"{judge} has none: thresholdRange says what is good")
    if isinstance(good, UnsetType):
        if judge in ("Threshold", "Ratio"):
            what = "canary / stable" if judge == "Ratio" else "the value"
            yield missing(f"{path}.thresholdRange", f"min or max of {what}: {judge} judges by it")
        return
    yield from _range_problems(f"{path}.thresholdRange", good, metric)


def _target_problems(path: str, metric: Metric, query: str) -> Iterator[FieldError]:
    """A query that is compared with itself always is as good."""
    from trimtab.systems.delivery.measuring.rendering import used

    if metric.compare.judge != "Threshold" and "target" not in used(query):
        yield wrong(path, query, "must have {{ target }}: the query is asked of the canary and of stable")


def _range_problems(path: str, good: Range, metric: Metric) -> Iterator[FieldError]:
    ends = {name: end for name, end in (("min", good.min), ("max", good.max)) if not isinstance(end, UnsetType)}
    if not ends:
        yield missing(path, "min, max, or both")
    for name, end in ends.items():
        if not finite(end):
            yield wrong(f"{path}.{name}", None, "must be a number")
    if len(ends) == 2 and ends["min"] > ends["max"]:
        yield wrong(f"{path}.min", ends["min"], f"must not be greater than max ({ends['max']:g})")
    if metric.name == SUCCESS_RATE and metric.compare.judge != "Ratio":
        for name, end in ends.items():
            if not 0 <= end <= 100:
                yield wrong(f"{path}.{name}", end, f"must be between 0 and 100: {SUCCESS_RATE} is in percent")


def shortest_window(analysis: Analysis) -> Duration:
    """Of the check, and of the queries in it."""
    queried = [one.interval for one in analysis.metrics if one.name not in BUILT_IN]
    return min((analysis.interval, *queried), key=lambda length: length.seconds)
