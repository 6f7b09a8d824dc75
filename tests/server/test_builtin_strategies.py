"""What the strategies of built-in kinds do beyond what the recorded answers show."""

from __future__ import annotations

import copy
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.server.builtin_real import ANSWERS, strategy_of, whole
from tests.server.builtin_samples import SAMPLES
from trimtab.server.builtin import strategies
from trimtab.server.builtin.native import Native, age, human_duration
from trimtab.server.builtin.pod import pull_policy, qos_class

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    "spec",
                    "template",
                    "metadata",
                    "containers",
                    "versions",
                    "names",
                    "schema",
                    "ports",
                    "rules",
                    "resources",
                ]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)
FIELDS = [
    "spec",
    "status",
    "data",
    "stringData",
    "type",
    "webhooks",
    "rules",
    "roleRef",
    "subjects",
    "subsets",
    "series",
]


@pytest.mark.slow
@settings(max_examples=300, deadline=None)
@given(st.sampled_from(strategies()), st.dictionaries(st.sampled_from(FIELDS), JSON, max_size=4))
def test_prepare_and_default_take_any_document(strategy: Any, fields: dict[str, Any]) -> None:
    document = whole(strategy.kind, fields)
    strategy.default(document)
    strategy.prepare(document, None, "")


@pytest.mark.parametrize(("case", "group", "name", "sample"), SAMPLES, ids=[sample[0] for sample in SAMPLES])
def test_defaulting_twice_is_defaulting_once(case: str, group: str, name: str, sample: dict[str, Any]) -> None:
    strategy = strategy_of(group, name)
    document = whole(strategy.kind, sample)
    strategy.kind.schema.walk(document)
    strategy.default(document)
    once = copy.deepcopy(document)
    strategy.kind.schema.walk(document)
    strategy.default(document)
    assert document == once


@settings(max_examples=50)
@given(st.fixed_dictionaries({}, optional={f: st.text(max_size=3) for f in ("note", "reason", "type", "action")}))
def test_an_event_survives_the_way_through_the_store(fields: dict[str, str]) -> None:
    strategy = strategy_of("events.k8s.io", "Event")
    event = {"metadata": {"name": "e"}, "regarding": {"kind": "Pod"}, "deprecatedCount": 1, **fields}
    strategy.default(event)
    stored = strategy.to_storage(event)
    assert stored["involvedObject"] == {"kind": "Pod"}
    assert strategy.from_storage(stored) == event


def test_both_kinds_of_event_are_stored_in_one_place() -> None:
    assert strategy_of("events.k8s.io", "Event").storage == strategy_of("", "Event").storage == "events"


def test_an_event_can_be_selected_by_what_it_is_about() -> None:
    event = {
        "metadata": {"name": "e"},
        "involvedObject": {"kind": "Pod", "name": "p", "uid": "u"},
        "reason": "Started",
        "type": "Normal",
        "reportingComponent": "kubelet",
    }
    fields = strategy_of("", "Event").fields(event)
    selected = {name: fields[stored] for name, stored in strategy_of("events.k8s.io", "Event").selectable.items()}
    assert selected["regarding.name"] == "p"
    assert selected["reportingController"] == "kubelet"
    assert fields["source"] == "kubelet"


@pytest.mark.parametrize("strategy", strategies(), ids=lambda strategy: f"{strategy.kind.resource}")
def test_every_selectable_field_is_one_that_objects_have(strategy: Any) -> None:
    if strategy.storage == strategy.kind.resource:
        assert set(strategy.selectable.values()) <= strategy.fields({"metadata": {"name": "x"}}).keys()


def test_a_namespace_with_a_generated_name_carries_it_as_a_label() -> None:
    namespace: dict[str, Any] = {"metadata": {"generateName": "a-"}}
    strategy = strategy_of("", "Namespace")
    strategy.default(namespace)
    namespace["metadata"]["name"] = "a-x7k2p"
    strategy.prepare(namespace, None, "")
    assert namespace["metadata"]["labels"] == {"kubernetes.io/metadata.name": "a-x7k2p"}


def test_a_deleted_namespace_waits_for_its_content() -> None:
    strategy = strategy_of("", "Namespace")
    namespace: dict[str, Any] = {"metadata": {"name": "a"}}
    strategy.prepare(namespace, None, "")
    strategy.deleting(namespace)
    assert namespace["status"] == {"phase": "Terminating"}
    assert strategy.held(namespace)


def test_a_deleted_definition_says_that_its_objects_go_first() -> None:
    crd: dict[str, Any] = {"metadata": {"name": "a"}, "status": {"conditions": [{"type": "Established"}]}}
    strategy_of("apiextensions.k8s.io", "CustomResourceDefinition").deleting(crd)
    assert [condition["type"] for condition in crd["status"]["conditions"]] == ["Established", "Terminating"]


def test_a_new_definition_forgets_words_that_schemas_do_not_have() -> None:
    strategy = strategy_of("apiextensions.k8s.io", "CustomResourceDefinition")
    items = {"type": "object", "nullable": False, "bogus": 1}
    schema = {"type": "array", "items": items}
    crd = {"metadata": {"name": "a"}, "spec": {"versions": [{"schema": {"openAPIV3Schema": schema}}]}}
    strategy.default(crd)
    assert items == {"type": "object"}


def test_a_service_keeps_the_address_that_it_was_given() -> None:
    strategy = strategy_of("", "Service")
    old: dict[str, Any] = {"metadata": {"name": "s", "uid": "u"}, "spec": {"ports": [{"port": 80}]}}
    strategy.prepare(old, None, "")
    new: dict[str, Any] = {"metadata": {"name": "s", "uid": "u"}, "spec": {"ports": [{"port": 81}]}}
    strategy.prepare(new, old, "")
    assert new["spec"]["clusterIP"] == old["spec"]["clusterIP"]
    assert new["spec"]["clusterIP"].startswith("10.")


@pytest.mark.parametrize(
    ("image", "policy"),
    [
        ("nginx", "Always"),
        ("nginx:latest", "Always"),
        ("nginx:1.27", "IfNotPresent"),
        ("example.com:5000/a/nginx", "Always"),
        ("example.com:5000/nginx:1", "IfNotPresent"),
        ("nginx@sha256:" + "a" * 64, "IfNotPresent"),
        ("", "IfNotPresent"),
    ],
)
def test_an_image_without_a_version_is_always_pulled(image: str, policy: str) -> None:
    assert pull_policy(image) == policy


@pytest.mark.parametrize(
    ("resources", "expected"),
    [
        ({}, "BestEffort"),
        ({"requests": {"cpu": "1"}}, "Burstable"),
        ({"limits": {"cpu": "1", "memory": "1Gi"}}, "Guaranteed"),
        ({"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "500m"}}, "Burstable"),
    ],
)
def test_what_a_pod_asks_for_decides_its_class(resources: dict[str, Any], expected: str) -> None:
    assert qos_class({"containers": [{"resources": resources}]}) == expected


POD = {
    "metadata": {"name": "p"},
    "spec": {"containers": [{"name": "a"}, {"name": "b"}], "initContainers": [{"name": "i"}]},
}


@pytest.mark.parametrize(
    ("status", "row"),
    [
        ({"phase": "Pending"}, ["0/2", "Pending", "0"]),
        (
            {"phase": "Pending", "initContainerStatuses": [
                {"name": "i", "state": {"waiting": {"reason": "PodInitializing"}}},
            ]},
            ["0/2", "Init:0/1", "0"],
        ),
        (
            {"phase": "Pending", "initContainerStatuses": [
                {"name": "i", "restartCount": 2, "state": {"terminated": {"exitCode": 3}}},
            ]},
            ["0/2", "Init:ExitCode:3", "2"],
        ),
        (
            {"phase": "Running", "containerStatuses": [
                {"name": "a", "ready": True, "state": {"running": {}}},
                {"name": "b", "restartCount": 4, "state": {"waiting": {"reason": "CrashLoopBackOff"}},
                 "lastState": {"terminated": {"finishedAt": "2026-01-01T00:00:00Z"}}},
            ]},
            ["1/2", "CrashLoopBackOff", "4 (2m ago)"],
        ),
        (
            {"phase": "Running", "containerStatuses": [
                {"name": "a", "ready": True, "state": {"running": {}}},
                {"name": "b", "state": {"terminated": {"reason": "Completed"}}},
            ], "conditions": [{"type": "Ready", "status": "True"}]},
            ["1/2", "Running", "0"],
        ),
        ({"phase": "Failed", "reason": "Evicted"}, ["0/2", "Evicted", "0"]),
    ],
)  # fmt: skip
def test_a_pod_is_shown_in_one_word(status: dict[str, Any], row: list[str]) -> None:
    clock = Still(datetime(2026, 1, 1, 0, 2, tzinfo=UTC))
    strategy = next(s for s in strategies(clock) if s.kind.kind == "Pod")
    assert list(strategy.row({**POD, "status": status})) == row


class Still:
    """A clock that stands."""

    def __init__(self, moment: datetime) -> None:
        self.moment = moment

    def now(self) -> datetime:
        return self.moment

    def monotonic(self) -> float:
        return 0.0

    async def sleep(self, seconds: float) -> None:
        return None


def test_an_autoscaler_shows_what_is_and_what_should_be() -> None:
    metrics = [
        {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}}},
        {"type": "Pods", "pods": {"metric": {"name": "m"}, "target": {"type": "AverageValue", "averageValue": "10"}}},
        {"type": "External", "external": {"target": {"type": "Value", "value": "5"}}},
    ]
    now = [{"resource": {"current": {"averageUtilization": 40}}}, {"pods": {"current": {"averageValue": "7"}}}]
    hpa = {"metadata": {"name": "h"}, "spec": {"metrics": metrics, "maxReplicas": 3}, "status": {"currentMetrics": now}}
    row = strategy_of("autoscaling", "HorizontalPodAutoscaler").row(hpa)
    assert row[1] == "cpu: 40%/80%, 7/10 + 1 more..."


def test_many_endpoints_are_cut_short() -> None:
    addresses = [{"ip": f"10.0.0.{n}"} for n in range(5)]
    endpoints = {"metadata": {"name": "e"}, "subsets": [{"addresses": addresses, "ports": [{"port": 80}]}]}
    row = strategy_of("", "Endpoints").row(endpoints)
    assert list(row) == ["10.0.0.0:80,10.0.0.1:80,10.0.0.2:80 + 2 more..."]


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-5, "<invalid>"),
        (-1, "0s"),
        (0, "0s"),
        (119, "119s"),
        (120, "2m"),
        (125, "2m5s"),
        (600, "10m"),
        (10800, "3h"),
        (11000, "3h3m"),
        (8 * 3600, "8h"),
        (48 * 3600, "2d"),
        (49 * 3600, "2d1h"),
        (8 * 86400, "8d"),
        (729 * 86400, "729d"),
        (730 * 86400, "2y"),
        (731 * 86400, "2y1d"),
        (9 * 365 * 86400, "9y"),
    ],
)
def test_a_duration_has_two_or_three_figures(seconds: int, text: str) -> None:
    assert human_duration(seconds) == text


def test_no_time_is_an_unknown_age() -> None:
    assert age(None, datetime.now(UTC)) == age("yesterday", datetime.now(UTC)) == "<unknown>"


def test_every_sample_has_a_recorded_answer() -> None:
    text = ANSWERS.read_text()
    assert all(f'"{case}"' in text for case, *_ in SAMPLES)


MEASURED = {
    "currentReplicas": 2,
    "desiredReplicas": 3,
    "currentMetrics": [
        {"type": "Resource", "resource": {"name": "cpu", "current": {"averageUtilization": 7, "averageValue": "70m"}}},
        {"type": "Pods", "pods": {"metric": {"name": "m"}, "current": {"averageValue": "1500m"}}},
    ],
    "conditions": [{"type": "AbleToScale", "status": "True", "lastTransitionTime": None, "message": "a < b & c"}],
}
CPU = {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}}}
MEMORY = {"type": "Resource", "resource": {"name": "memory", "target": {"type": "AverageValue", "averageValue": "1Gi"}}}
PODS = {"type": "Pods", "pods": {"metric": {"name": "m"}, "target": {"type": "AverageValue", "averageValue": "5"}}}
RULES = {
    "stabilizationWindowSeconds": 5,
    "selectPolicy": "Min",
    "policies": [{"type": "Pods", "value": 1, "periodSeconds": 9}],
}


def autoscalers() -> tuple[Native, Native]:
    return strategy_of("autoscaling/v2", "HorizontalPodAutoscaler"), strategy_of(
        "autoscaling/v1", "HorizontalPodAutoscaler"
    )


@pytest.mark.parametrize("metrics", [[CPU], [MEMORY], [MEMORY, PODS, CPU]], ids=["cpu", "memory", "three"])
@pytest.mark.parametrize("behavior", [None, {"scaleUp": RULES}, {"scaleUp": RULES, "scaleDown": RULES}])
@pytest.mark.parametrize("status", [{}, MEASURED], ids=["unmeasured", "measured"])
def test_an_autoscaler_survives_the_older_version(metrics: Any, behavior: Any, status: Any) -> None:
    new, older = autoscalers()
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"}
    spec = {"scaleTargetRef": target, "minReplicas": 1, "maxReplicas": 3, "metrics": metrics}
    spec |= {} if behavior is None else {"behavior": behavior}
    document = whole(new.kind, {"spec": spec, "status": status, "metadata": {"annotations": {"kept": "yes"}}})
    new.default(document)
    stored = copy.deepcopy(document)
    assert older.to_storage(older.from_storage(document)) == stored


def test_the_older_autoscaler_shows_what_it_has_no_fields_for_in_annotations() -> None:
    new, older = autoscalers()
    document = whole(new.kind, {"spec": {"maxReplicas": 3, "metrics": [PODS, CPU]}})
    new.default(document)
    shown = older.from_storage(document)
    assert shown["spec"]["targetCPUUtilizationPercentage"] == 50
    assert shown["metadata"]["annotations"] == {
        "autoscaling.alpha.kubernetes.io/metrics": '[{"type":"Pods","pods":{"metricName":"m","targetAverageValue":"5"}}]'
    }
