"""Health is read off any document."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trimtab.model.health import State, health

CURRENT, IN_PROGRESS, FAILED = State.CURRENT, State.IN_PROGRESS, State.FAILED
TERMINATING, UNKNOWN = State.TERMINATING, State.UNKNOWN


def made(api_version: str, kind: str, *, spec: Any = None, status: Any = None, **metadata: Any) -> dict[str, Any]:
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, "spec": spec or {}, "status": status or {}}


def condition(kind: str, status: str, **more: Any) -> dict[str, Any]:
    return {"type": kind, "status": status, **more}


def custom(*conditions: dict[str, Any], **metadata: Any) -> dict[str, Any]:
    return made("example.com/v1", "Thing", status={"conditions": list(conditions)}, **metadata)


ROLLED = {"replicas": 2, "updatedReplicas": 2, "availableReplicas": 2, "readyReplicas": 2}


@pytest.mark.parametrize(
    ("obj", "state"),
    [
        ({}, UNKNOWN),
        ({"kind": "Thing", "metadata": None}, UNKNOWN),
        (made("v1", "ConfigMap"), CURRENT),
        (made("v1", "ConfigMap", deletionTimestamp="2026-01-01T00:00:00Z"), TERMINATING),
        (made("example.com/v1", "Thing", generation=2, status={"observedGeneration": 1}), IN_PROGRESS),
        (made("example.com/v1", "Thing", generation=2, status={"observedGeneration": 2}), CURRENT),
        (custom(condition("Ready", "True")), CURRENT),
        (custom(condition("Ready", "False")), IN_PROGRESS),
        (custom(condition("Ready", "Unknown")), IN_PROGRESS),
        (custom(condition("Ready", "True", observedGeneration=1), generation=2), IN_PROGRESS),
        (custom(condition("Ready", "True"), condition("Reconciling", "True")), IN_PROGRESS),
        (custom(condition("Ready", "False"), condition("Stalled", "True")), FAILED),
        (custom(condition("Stalled", "False"), condition("Ready", "True")), CURRENT),
        (custom(condition("Available", "True")), CURRENT),
        (custom(condition("Available", "False")), IN_PROGRESS),
        (custom(condition("Completed", "True")), CURRENT),
        (custom(condition("Completed", "False")), IN_PROGRESS),
        (custom(condition("Failed", "True")), FAILED),
        (made("apps/v1", "Deployment", spec={"replicas": 2}, status=ROLLED), CURRENT),
        (made("apps/v1", "Deployment", spec={"replicas": 3}, status=ROLLED), IN_PROGRESS),
        (made("apps/v1", "Deployment", spec={"replicas": 0}), CURRENT),
        (made("apps/v1", "Deployment", spec={"replicas": 2}, status={**ROLLED, "replicas": 3}), IN_PROGRESS),
        (
            made(
                "apps/v1",
                "Deployment",
                status={"conditions": [condition("Progressing", "False", reason="ProgressDeadlineExceeded")]},
            ),
            FAILED,
        ),
        (made("apps/v1", "ReplicaSet", spec={"replicas": 2}, status=ROLLED), CURRENT),
        (made("apps/v1", "ReplicaSet", status={"conditions": [condition("ReplicaFailure", "True")]}), IN_PROGRESS),
        (made("apps/v1", "StatefulSet", spec={"replicas": 2}, status=ROLLED), CURRENT),
        (
            made(
                "apps/v1",
                "StatefulSet",
                spec={"replicas": 2},
                status={**ROLLED, "currentRevision": "a", "updateRevision": "b"},
            ),
            IN_PROGRESS,
        ),
        (made("apps/v1", "DaemonSet"), IN_PROGRESS),
        (
            made(
                "apps/v1",
                "DaemonSet",
                status={"desiredNumberScheduled": 1, "updatedNumberScheduled": 1, "numberAvailable": 1},
            ),
            CURRENT,
        ),
        (made("v1", "Pod"), IN_PROGRESS),
        (made("v1", "Pod", status={"phase": "Succeeded"}), CURRENT),
        (made("v1", "Pod", status={"phase": "Failed"}), FAILED),
        (made("v1", "Pod", status={"phase": "Running", "conditions": [condition("Ready", "True")]}), CURRENT),
        (made("v1", "Pod", status={"phase": "Running", "conditions": [condition("Ready", "False")]}), IN_PROGRESS),
        (
            made(
                "v1",
                "Pod",
                status={
                    "phase": "Running",
                    "containerStatuses": [{"state": {"waiting": {"reason": "CrashLoopBackOff"}}}],
                },
            ),
            FAILED,
        ),
        (made("batch/v1", "Job"), IN_PROGRESS),
        (made("batch/v1", "Job", status={"conditions": [condition("Complete", "True")]}), CURRENT),
        (made("batch/v1", "Job", status={"conditions": [condition("Failed", "True")]}), FAILED),
        (made("batch/v1", "CronJob"), CURRENT),
        (made("v1", "PersistentVolumeClaim", status={"phase": "Bound"}), CURRENT),
        (made("v1", "PersistentVolumeClaim"), IN_PROGRESS),
        (made("v1", "PersistentVolumeClaim", status={"phase": "Lost"}), FAILED),
        (made("v1", "Service", spec={"type": "ClusterIP"}), CURRENT),
        (made("v1", "Service", spec={"type": "LoadBalancer"}), IN_PROGRESS),
        (made("v1", "Namespace", status={"phase": "Active"}), CURRENT),
        (made("v1", "Namespace", status={"phase": "Terminating"}), TERMINATING),
        (made("apiextensions.k8s.io/v1", "CustomResourceDefinition"), IN_PROGRESS),
        (
            made(
                "apiextensions.k8s.io/v1",
                "CustomResourceDefinition",
                status={"conditions": [condition("Established", "True"), condition("NamesAccepted", "True")]},
            ),
            CURRENT,
        ),
        (
            made(
                "apiextensions.k8s.io/v1",
                "CustomResourceDefinition",
                status={"conditions": [condition("NamesAccepted", "False", message="taken")]},
            ),
            FAILED,
        ),
    ],
)
def test_health_of(obj: dict[str, Any], state: State) -> None:
    assert health(obj).state is state


def test_the_reason_is_the_conditions_message() -> None:
    assert health(custom(condition("Ready", "False", reason="Down", message="two are down"))).reason == "two are down"


def test_what_is_being_deleted_names_its_finalizers() -> None:
    obj = made("v1", "Pod", deletionTimestamp="2026-01-01T00:00:00Z", finalizers=["a.example.com/x", "b"])
    assert health(obj).reason == "waits for a.example.com/x, b"


json = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from(["True", "False", "Ready", ""]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["type", "status", "conditions", "phase", "observedGeneration"]), inner, max_size=4
        )
    ),
    max_leaves=12,
)


@settings(max_examples=80)
@given(st.fixed_dictionaries({"kind": st.sampled_from(["Thing", "Namespace"]), "metadata": json, "status": json}))
def test_no_document_of_another_shape_breaks_the_judgement(obj: dict[str, Any]) -> None:
    assert health({"apiVersion": "v1", **obj}).state in State
