"""The runtime's numbers, as a Prometheus reads them."""

from __future__ import annotations

import subprocess
import sys

import pytest
from prometheus_client import Counter
from prometheus_client.parser import text_string_to_metric_families

from trimtab.runtime.metrics import MAX_PRIORITIES, OTHER_PRIORITIES, Metrics, QueueMetrics, QueueState

Sample = dict[tuple[str, tuple[tuple[str, str], ...]], float]


def scraped(metrics: Metrics) -> Sample:
    """Each sample by its name and labels."""
    families = text_string_to_metric_families(metrics.render().decode())
    return {(s.name, tuple(sorted(s.labels.items()))): s.value for family in families for s in family.samples}


def controller_sample(metrics: Metrics, name: str, /, **labels: str) -> float:
    return scraped(metrics)[name, tuple(sorted({"controller": "widget", **labels}.items()))]


def queue_sample(metrics: Metrics, name: str, /, **labels: str) -> float:
    return controller_sample(metrics, name, name="widget", **labels)


def test_families_types_and_labels_are_those_of_controller_runtime_and_client_go() -> None:
    metrics = Metrics()
    metrics.controller("widget")
    metrics.queue("widget")
    metrics.leader("lease", True)

    families = {
        family.name: (family.type, {tuple(sorted(set(sample.labels) - {"le"})) for sample in family.samples})
        for family in text_string_to_metric_families(metrics.render().decode())
        if not family.name.startswith("process_")
    }

    of_controller, of_queue = {("controller",)}, {("controller", "name")}
    assert families == {
        "controller_runtime_reconcile": ("counter", {("controller", "result")}),
        "controller_runtime_reconcile_errors": ("counter", of_controller),
        "controller_runtime_terminal_reconcile_errors": ("counter", of_controller),
        "controller_runtime_reconcile_panics": ("counter", of_controller),
        "controller_runtime_reconcile_timeouts": ("counter", of_controller),
        "controller_runtime_reconcile_time_seconds": ("histogram", of_controller),
        "controller_runtime_max_concurrent_reconciles": ("gauge", of_controller),
        "controller_runtime_active_workers": ("gauge", of_controller),
        "workqueue_depth": ("gauge", {("controller", "name", "priority")}),
        "workqueue_adds": ("counter", of_queue),
        "workqueue_retries": ("counter", of_queue),
        "workqueue_queue_duration_seconds": ("histogram", of_queue),
        "workqueue_work_duration_seconds": ("histogram", of_queue),
        "workqueue_unfinished_work_seconds": ("gauge", of_queue),
        "workqueue_longest_running_processor_seconds": ("gauge", of_queue),
        "leader_election_master_status": ("gauge", {("name",)}),
    }


def test_a_counter_is_written_with_its_whole_name() -> None:
    metrics = Metrics()
    metrics.controller("widget").error()

    text = metrics.render().decode()

    assert "# TYPE controller_runtime_reconcile_errors_total counter\n" in text
    assert 'controller_runtime_reconcile_errors_total{controller="widget"} 1.0\n' in text


def test_every_result_is_there_from_the_start() -> None:
    metrics = Metrics()
    metrics.controller("widget")

    for result in ("success", "error", "requeue", "requeue_after"):
        assert controller_sample(metrics, "controller_runtime_reconcile_total", result=result) == 0


def test_a_reconcile_is_active_until_it_ends_and_counted_by_its_result() -> None:
    metrics = Metrics()
    widget = metrics.controller("widget", max_concurrent=4)
    widget.started()
    widget.started()
    widget.reconciled("requeue_after", 0.3)

    assert controller_sample(metrics, "controller_runtime_max_concurrent_reconciles") == 4
    assert controller_sample(metrics, "controller_runtime_active_workers") == 1
    assert controller_sample(metrics, "controller_runtime_reconcile_total", result="requeue_after") == 1
    assert controller_sample(metrics, "controller_runtime_reconcile_total", result="success") == 0


@pytest.mark.parametrize(
    ("event", "name"),
    [
        ("error", "controller_runtime_reconcile_errors_total"),
        ("terminal", "controller_runtime_terminal_reconcile_errors_total"),
        ("timeout", "controller_runtime_reconcile_timeouts_total"),
        ("panic", "controller_runtime_reconcile_panics_total"),
    ],
)
def test_each_kind_of_failure_has_its_counter(event: str, name: str) -> None:
    metrics = Metrics()

    getattr(metrics.controller("widget"), event)()

    counters = {n for (n, _), value in scraped(metrics).items() if n.startswith("controller_runtime_") and value == 1}
    assert counters == {name, "controller_runtime_max_concurrent_reconciles"}


def test_times_are_counted_in_every_bucket_that_they_fit() -> None:
    metrics = Metrics()
    widget = metrics.controller("widget")
    for seconds in (0.005, 0.3, 61.0):
        widget.started()
        widget.reconciled("success", seconds)

    name = "controller_runtime_reconcile_time_seconds"
    counts = {bound: controller_sample(metrics, f"{name}_bucket", le=bound) for bound in ("0.005", "0.25", "0.3", "60")}
    assert counts == {"0.005": 1, "0.25": 1, "0.3": 2, "60": 2}
    assert controller_sample(metrics, f"{name}_count") == 3
    assert controller_sample(metrics, f"{name}_sum") == pytest.approx(61.305)


def test_bounds_of_the_queue_are_written_as_go_writes_them() -> None:
    metrics = Metrics()
    metrics.queue("widget")

    bounds = [
        sample.labels["le"]
        for family in text_string_to_metric_families(metrics.render().decode())
        for sample in family.samples
        if sample.name == "workqueue_queue_duration_seconds_bucket"
    ]

    small = ["1e-08", "1e-07", "1e-06", "9.999999999999999e-06", "9.999999999999999e-05", "0.001"]
    assert bounds == [*small, "0.01", "0.1", "1", "10", "100", "1000", "+Inf"]


def test_a_queue_is_asked_for_what_stands_in_it() -> None:
    metrics = Metrics()
    queue = metrics.queue("widget")
    queue.adds = 9
    queue.observe = lambda: QueueState({0: 2, -100: 5}, [1.5, 4.0])

    assert queue_sample(metrics, "workqueue_adds_total") == 9
    assert queue_sample(metrics, "workqueue_depth", priority="-100") == 5
    assert queue_sample(metrics, "workqueue_unfinished_work_seconds") == 5.5
    assert queue_sample(metrics, "workqueue_longest_running_processor_seconds") == 4.0


def test_a_priority_once_seen_is_shown_when_it_is_empty() -> None:
    queue = QueueMetrics()
    queue.depth(QueueState({-100: 5}, []))

    assert queue.depth(QueueState({}, [])) == {"-100": 0, "0": 0}


def test_very_many_priorities_share_one_label() -> None:
    queue = QueueMetrics()

    depth = queue.depth(QueueState(dict.fromkeys(range(1000), 1), []))

    assert len(depth) == MAX_PRIORITIES + 1
    assert depth[OTHER_PRIORITIES] == 1000 - MAX_PRIORITIES


def test_the_holder_of_a_lease_shows_one_and_others_zero() -> None:
    metrics = Metrics()
    metrics.leader("ours", True)
    metrics.leader("theirs", True)
    metrics.leader("theirs", False)

    samples = scraped(metrics)

    assert samples["leader_election_master_status", (("name", "ours"),)] == 1
    assert samples["leader_election_master_status", (("name", "theirs"),)] == 0


def test_one_name_is_one_set_of_numbers() -> None:
    metrics = Metrics()

    assert metrics.controller("widget") is metrics.controller("widget")
    assert metrics.queue("widget") is metrics.queue("widget")


def test_a_controllers_own_metrics_stand_beside_ours() -> None:
    metrics = Metrics()

    Counter("devices_seen", "Devices.", registry=metrics.registry).inc()

    assert scraped(metrics)["devices_seen_total", ()] == 1


def test_two_managers_share_nothing() -> None:
    one, other = Metrics(), Metrics()
    one.controller("widget").error()
    other.controller("widget")

    assert controller_sample(other, "controller_runtime_reconcile_errors_total") == 0


def test_the_process_is_measured_too() -> None:
    assert scraped(Metrics())["process_cpu_seconds_total", ()] > 0


def test_prometheus_is_loaded_only_when_somebody_asks() -> None:
    script = """if True:
        import sys
        from trimtab.runtime.health import HealthServer
        from trimtab.runtime.metrics import Metrics
        metrics = Metrics()
        metrics.controller("widget").error()
        assert not any(name.startswith("prometheus_client") for name in sys.modules)
        metrics.render()
        assert "prometheus_client" in sys.modules
    """
    subprocess.run([sys.executable, "-c", script], check=True, timeout=60)
