"""Prometheus' text format, against the parser and the writer of Prometheus' own client."""

from __future__ import annotations

import contextlib
import math

import prometheus_client
import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families

from trimtab.systems.delivery.measuring.exposition import Malformed, parsed, samples

Found = dict[tuple[str, frozenset[tuple[str, str]]], float]


def ours(text: str) -> Found:
    found: Found = {}
    for series, value in samples(text):
        name, labels = parsed(series)
        found[name, frozenset(labels.items())] = value
    return found


def theirs(text: str) -> Found:
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


LABELS = st.text(max_size=20).filter(lambda text: not any(0xD800 <= ord(each) <= 0xDFFF for each in text))


@given(st.lists(st.tuples(LABELS, LABELS, st.floats(min_value=0, allow_nan=False)), max_size=8))
def test_what_the_client_library_writes_is_read_as_it_reads_it(drawn: list[tuple[str, str, float]]) -> None:
    registry = prometheus_client.CollectorRegistry()
    counter = prometheus_client.Counter("requests", "All.\nOf them.", ["a", "b"], registry=registry)
    histogram = prometheus_client.Histogram("duration", "Of each.", ["a"], registry=registry)
    for a, b, value in drawn:
        counter.labels(a, b).inc(value)
        histogram.labels(a).observe(value)
    text = prometheus_client.generate_latest(registry).decode()
    assert ours(text) == theirs(text)


@pytest.mark.parametrize(
    "text",
    [
        'x{a="b"} 1',
        'x{a="b",} 1 1700000000000',
        'x{ a = "b" , c = "d" } 1.5e3',
        'x{a="}",b="{"} +Inf',
        'x{a="\\"\\\\\\n"} 3',
        "x 7",
        "x\t7",
        "x{} 7",
        "# HELP x_total it\n# TYPE x_total counter\nx_total 1\n\n",
        'x{a="ü",b=""} 0',
    ],
)
def test_forms_that_are_allowed_are_read_as_the_client_library_reads_them(text: str) -> None:
    assert ours(text) == theirs(text)


def test_not_a_number_is_read() -> None:
    ((_, value),) = samples("x NaN")
    assert math.isnan(value)


@pytest.mark.parametrize(
    "text",
    ["x", 'x{a="b"}', 'x{a="b} 1', "x{a=b} 1", 'x{a="b" c="d"} 1', "x one", "x 1 2 3", "x 1_000", "9x 1", "{} 1",
     "<html>no metrics</html>"],
)  # fmt: skip
def test_what_is_no_sample_is_refused(text: str) -> None:
    with pytest.raises(Malformed, match="is no sample"):
        ours(text)


def test_a_series_with_very_many_labels_is_refused() -> None:
    written = ",".join(f'l{each}="v"' for each in range(100))
    with pytest.raises(Malformed):
        ours(f"x{{{written}}} 1")


def test_only_what_is_asked_for_is_given() -> None:
    text = 'x_total{a="b"} 1\ny_total 2\nx_total_more 3\n'
    assert list(samples(text, frozenset({"x_total", "y_total"}))) == [('x_total{a="b"}', 1.0), ("y_total", 2.0)]


@given(st.text(max_size=300))
def test_any_text_is_read_or_refused(text: str) -> None:
    with contextlib.suppress(Malformed):
        ours(text)


@given(st.text(alphabet='x{}="\\, 1\n', max_size=60))
def test_any_text_of_such_signs_is_read_or_refused(text: str) -> None:
    with contextlib.suppress(Malformed):
        ours(text)
