"""What the bench of canary delivery takes for granted, without a data plane."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import aiohttp
import pytest

BENCH = Path(__file__).parents[3] / "bench"


@pytest.fixture(autouse=True)
def _paths(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    known = set(sys.modules)
    monkeypatch.syspath_prepend(str(BENCH))
    monkeypatch.syspath_prepend(str(BENCH / "peers"))
    yield
    for name in set(sys.modules) - known:
        if str(BENCH) in str(getattr(sys.modules[name], "__file__", "")):
            del sys.modules[name]


def of_bench(name: str) -> ModuleType:
    return importlib.import_module(name)


def canary(next_check: str, *checks: str, outcome: str = "") -> dict[str, Any]:
    run = {"nextCheckTime": next_check, "checks": [{"time": time} for time in checks]}
    status: dict[str, Any] = {"phase": "Progressing", "run": run}
    if outcome:
        status = {"phase": "Stable", "history": [{"outcome": outcome}]}
    return {"metadata": {"namespace": "shop", "name": "web"}, "status": status}


async def test_a_check_is_late_by_its_time_less_what_was_said_before() -> None:
    late = of_bench("delivery_many").Lateness()
    await late.seen(canary("2026-01-01T00:00:10.000000Z"))
    await late.seen(canary("2026-01-01T00:00:20.250000Z", "2026-01-01T00:00:10.250000Z"))
    await late.seen(canary("2026-01-01T00:00:20.250000Z", "2026-01-01T00:00:10.250000Z"))  # something else changed
    await late.seen(canary("", outcome="Succeeded"))
    assert (late.late, late.succeeded) == ([0.25], 1)


async def test_the_played_prometheus_counts_as_a_real_one_answers() -> None:
    metrics = of_bench("delivery_played").Metrics()
    async with metrics.served() as url, aiohttp.ClientSession() as session:

        async def asked(query: str) -> Any:
            async with session.get(f"{url}/api/v1/query", params={"query": query, "time": "1800000010.500"}) as answer:
                return (await answer.json())["data"]

        (inside,) = (await asked("istio_requests_total{}[10001ms]"))["result"]
        (before,) = (await asked("istio_requests_total{}"))["result"]
    counts = [int(value) for _, value in inside["values"]]
    assert counts == list(range(counts[0], counts[0] + 100, 10))
    assert int(before["value"][1]) == counts[-1]


def test_failures_of_a_bad_version_are_told_apart() -> None:
    load = of_bench("delivery_load").Load()
    load.add('{"broken": 1, "answers": {"1 200": 90, "2 200": 4, "2 500": 3, "none 503": 2}}')
    assert (load.requests, load.of("2"), load.failed("2"), load.failed()) == (100, 7, 3, 6)


def test_the_weight_is_found_wherever_envoy_has_it() -> None:
    found = of_bench("delivery_weights")._found
    shares = [
        {"name": "outbound|80||web.default", "weight": 70},
        {"name": "outbound|80||web-canary.default", "weight": 30},
    ]
    route = {"route": {"weighted_clusters": {"clusters": shares}}}
    assert found({"configs": [{"route_config": {"virtual_hosts": [{"routes": [{"route": {}}, route]}]}}]}) == 30
    assert found({"configs": []}) == -1


def test_judges_become_rows() -> None:
    titles = "\n".join(row.title for row in of_bench("delivery").of_judges(2))
    for word in ("false rollbacks", "bad releases that went out", "checks until", "undecided"):
        assert word in titles


def test_a_table_is_put_between_its_marks(tmp_path: Path) -> None:
    table = of_bench("table")
    page = tmp_path / "page.md"
    page.write_text("a\n<!-- begin x figures -->\nold\n<!-- end x figures -->\nb\n")
    table.renew("x", [table.Row("t", "1", "2", 0.5, "1x", False)], digits=2, page=page)
    lines = page.read_text().splitlines()
    assert lines[:2] + lines[3:] == [
        "a",
        "<!-- begin x figures -->",
        "|-|-:|-:|-:|-:|",
        "| t | 1 | 2 | 0.50x | 1x, behind |",
        "<!-- end x figures -->",
        "b",
    ]
