"""The lab's Prometheus: ready when it is there, is told what to scrape, and is gone when it was stopped."""

from __future__ import annotations

import json
import os
import urllib.parse
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.needs import needs
from trimtab.lab.answering import listens
from trimtab.lab.prometheus import Prometheus, job
from trimtab.testing.ports import free_ports
from trimtab.testing.processes import PeerFailed


@pytest.fixture(scope="module")
def prometheus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    needs("prometheus")
    (port,) = free_ports(1)
    itself = job("itself", f"127.0.0.1:{port}", interval="100ms")
    with Prometheus(tmp_path_factory.mktemp("prometheus"), port, [itself]) as server:
        yield server


def asked(server: Prometheus, path: str, **parameters: str) -> Any:
    with urllib.request.urlopen(f"{server.url}{path}?{urllib.parse.urlencode(parameters)}", timeout=5) as answer:
        return json.load(answer)["data"]


def test_it_answers_as_soon_as_it_is_there(prometheus: Prometheus) -> None:
    assert asked(prometheus, "/api/v1/query", query="vector(1)")["result"][0]["value"][1] == "1"


def test_it_will_scrape_what_it_was_told_to(prometheus: Prometheus) -> None:
    configuration = asked(prometheus, "/api/v1/status/config")["yaml"]
    assert f"127.0.0.1:{prometheus.port}" in configuration
    assert "scrape_interval: 100ms" in configuration


def test_a_port_that_is_taken_is_refused(prometheus: Prometheus, tmp_path: Path) -> None:
    with pytest.raises(PeerFailed, match="listens"):
        Prometheus(tmp_path, prometheus.port)


def test_a_configuration_that_it_does_not_take_shows_in_the_failure(tmp_path: Path) -> None:
    needs("prometheus")
    with pytest.raises(PeerFailed, match="nonsense"):
        Prometheus(tmp_path, *free_ports(1), [{"nonsense": True}])


def test_it_is_gone_when_it_was_stopped(tmp_path: Path) -> None:
    needs("prometheus")
    with Prometheus(tmp_path, *free_ports(1)) as server:
        assert listens("127.0.0.1", server.port)
    assert not listens("127.0.0.1", server.port)
    with pytest.raises(ProcessLookupError):
        os.kill(server.pid, 0)
