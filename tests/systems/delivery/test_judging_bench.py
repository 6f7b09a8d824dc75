"""What the bench of the judges finds, on fewer releases: neither more false rollbacks nor more missed bad releases."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest

BENCH = Path(__file__).parents[3] / "bench" / "judges.py"


@pytest.fixture(scope="module")
def judges():  # type: ignore[no-untyped-def]
    spec = importlib.util.spec_from_file_location("bench_judges", BENCH)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def test_bayes_is_no_worse_than_a_fixed_threshold_of_as_many_failed_checks(judges) -> None:  # type: ignore[no-untyped-def]
    rows = judges.errors(40)
    assert judges.worse(rows, "fixed 99 %, 3", "Bayes") == []
    assert sum(row.share("back") for row in rows if row.judge == "Bayes" and row.defect == "+0 %") == 0


def test_ranks_are_no_worse_than_a_fixed_threshold_of_as_many_failed_checks(judges) -> None:  # type: ignore[no-untyped-def]
    rows = judges.latencies(20)
    for bound in (350, 500):
        assert judges.worse(rows, f"fixed {bound} ms, 3", "MannWhitney") == []
