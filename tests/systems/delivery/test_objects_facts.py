"""What the status of a Deployment and of a VirtualService says."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from trimtab.model.duration import Duration
from trimtab.systems.delivery.objects.facts import readiness, verified

NOW = datetime(2026, 1, 1, tzinfo=UTC)
LATE = {"type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded"}


def deployment(*, wanted: int | None = 4, generation: int = 2, observed: int = 2, **status: Any) -> dict[str, Any]:
    return {
        "metadata": {"generation": generation},
        "spec": {} if wanted is None else {"replicas": wanted},
        "status": {"observedGeneration": observed, **status},
    }


def counts(replicas: int, updated: int, ready: int) -> dict[str, int]:
    return {"replicas": replicas, "updatedReplicas": updated, "readyReplicas": ready, "availableReplicas": ready}


@pytest.mark.parametrize(
    ("document", "threshold", "ok"),
    [
        (deployment(**counts(4, 4, 4)), 100, True),
        (deployment(**counts(4, 4, 3)), 100, False),
        (deployment(**counts(4, 4, 3)), 75, True),
        (deployment(**counts(4, 4, 2)), 75, False),
        (deployment(**counts(4, 2, 4)), 100, False),  # half are of the template before
        (deployment(**counts(5, 4, 5)), 100, False),  # one of them is left
        (deployment(**counts(5, 5, 5)), 100, False),  # it is being scaled down
        (deployment(observed=1, **counts(4, 4, 4)), 100, False),  # that was the template before
        (deployment(wanted=None, **counts(1, 1, 1)), 100, True),
        (deployment(wanted=0), 100, True),
        (deployment(), 100, False),
        ({"metadata": {"generation": 1}, "spec": {}}, 100, False),
        (None, 100, False),
    ],
)
def test_ready_is_when_enough_pods_of_this_template_are(document: Any, threshold: int, ok: bool) -> None:
    assert readiness(document, threshold).ok is ok


def test_old_pods_may_be_allowed_and_are_not_counted() -> None:
    assert readiness(deployment(**counts(5, 4, 5)), old=True).ok
    assert not readiness(deployment(**counts(5, 4, 4)), old=True).ok
    assert readiness(deployment(**counts(5, 4, 4)), old=True).ready == 3


def test_pods_must_stay_ready_as_long_as_the_deployment_says() -> None:
    document = deployment(**{**counts(4, 4, 4), "availableReplicas": 1})
    assert readiness(document).ok
    document["spec"]["minReadySeconds"] = 10
    assert not readiness(document).ok


def test_its_own_deadline_is_a_failure_of_this_template_only() -> None:
    assert readiness(deployment(**counts(4, 4, 3), conditions=[LATE])).failed
    assert not readiness(deployment(**counts(4, 4, 4), conditions=[LATE])).failed
    assert not readiness(deployment(observed=1, **counts(4, 4, 3), conditions=[LATE])).failed


def test_the_message_says_what_is_missing() -> None:
    assert readiness(None).message == "does not exist"
    assert readiness(deployment(**counts(4, 1, 4))).message == "1 of 4 pods are ready, 1 have the new template"
    assert "1 of the template before are left" in readiness(deployment(**counts(5, 4, 5))).message
    quota = {"type": "ReplicaFailure", "status": "True", "message": "exceeded quota"}
    assert readiness(deployment(**counts(0, 0, 0), conditions=[quota])).message.endswith(": exceeded quota")


def routes(observed: Any = None, reconciled: str | None = None) -> dict[str, Any]:
    status: dict[str, Any] = {} if observed is None else {"observedGeneration": observed}
    if reconciled is not None:
        status["conditions"] = [{"type": "Reconciled", "status": reconciled}]
    return {"metadata": {"generation": 3}, "status": status}


@pytest.mark.parametrize(
    ("document", "mode", "passed", "ok", "wait"),
    [
        (routes(3, "True"), "Auto", 0, True, 0),
        (routes("3", "True"), "Auto", 0, True, 0),  # as Istio writes it
        (routes(2, "True"), "Auto", 60, False, math.inf),  # something writes it, and is not there yet
        (routes(3, "False"), "Auto", 60, False, math.inf),
        (routes(), "Auto", 2, False, 3),
        (routes(3), "Auto", 5, True, 0),  # nobody says that it is live
        (routes(), "Auto", 5, True, 0),
        (routes(), "Status", 60, False, math.inf),
        (routes(3, "True"), "Status", 0, True, 0),
        (routes(3), "Status", 60, False, math.inf),
        (routes(3, "True"), "Settle", 1, False, 4),
        (routes(2, "False"), "Settle", 5, True, 0),
        (None, "Settle", 60, False, math.inf),
    ],
)
def test_weights_count_when_the_status_says_so_or_when_they_had_time(
    document: Any, mode: str, passed: float, ok: bool, wait: float
) -> None:
    found = verified(document, Duration("5s"), NOW - timedelta(seconds=passed), NOW, mode)
    assert (found.ok, found.wait) == (ok, wait)
