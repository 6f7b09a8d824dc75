"""What may not become of a CanaryDeployment, what is warned of, and what is refused for its size alone."""

from __future__ import annotations

import time
from typing import Any

import pytest

from tests.systems.delivery.problem_specs import AWAY, canary
from trimtab.systems.delivery.kinds import CanaryDeployment, CanaryDeploymentStatus
from trimtab.systems.delivery.problems import changed_problems, problems, warnings
from trimtab.systems.delivery.problems.neighbours import neighbour_problems

BOX = "deployment.template.spec.containers.0"
HOOK = {"name": "gate", "type": "ConfirmRollout", "url": "http://gate.example.com", "secretRef": {"name": "gate"}}


def in_phase(phase: Any, changes: dict[str, Any] | None = None) -> CanaryDeployment:
    return canary(changes, status=CanaryDeploymentStatus(phase=phase))


def test_the_selector_stays() -> None:
    more = {"deployment.selector.matchLabels.tier": "front"}
    (problem,) = changed_problems(canary(), canary(more))
    assert str(problem).startswith("spec.deployment.selector: Invalid value: an object: field is immutable")
    assert changed_problems(canary({"deployment.selector": AWAY}), canary()) == []


def test_another_virtual_service_is_for_when_nothing_runs() -> None:
    new = canary({"virtualService": {"name": "edge"}})
    (problem,) = changed_problems(in_phase("Progressing"), new)
    assert str(problem) == (
        "spec.virtualService.name: Forbidden: may change only while no run goes on: the phase is Progressing"
    )
    for old in (in_phase("Stable"), in_phase("Initializing"), canary()):
        assert changed_problems(old, new) == []


def test_a_service_does_not_leave_stable_behind() -> None:
    renamed = {f"{BOX}.ports.0": {"name": "web", "containerPort": 8080}, f"{BOX}.readinessProbe.httpGet.port": "web"}
    (problem,) = changed_problems(canary(), canary({**renamed, "service.ports.0.targetPort": "web"}))
    assert problem.path == "spec.service.ports[0].targetPort"
    assert "release pods that have both ports first" in problem.detail
    moved = {f"{BOX}.ports.0.containerPort": 9090, "service.ports.0.targetPort": 9090}
    assert [one.path for one in changed_problems(canary(), canary(moved))] == ["spec.service.ports[0].targetPort"]
    both = {f"{BOX}.ports.1": {"name": "web", "containerPort": 8080}}
    assert changed_problems(canary(), canary(both)) == []
    assert changed_problems(canary(both), canary({**both, "service.ports.0.targetPort": "web"})) == []


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        (
            {"analysis.stepWeight": 20},
            "spec.analysis.stepWeight: 20 does not divide maxWeight evenly: the last step is 50",
        ),
        ({"analysis.metrics.0.minSamples": 1}, "one bad request out of one fails a check"),
        ({"analysis.mirror": True}, "copies of requests that write"),
        ({"analysis.metrics": []}, "neither metrics nor webhooks"),
        ({"analysis.prometheus": {"address": "http://p:9090"}, "analysis.interval": "10s"}, "less than two scrapes"),
        (
            {"analysis.prometheus": {"address": "http://p:9090", "secretRef": {"name": "p"}}},
            "spec.analysis.prometheus.secretRef: it is sent without TLS",
        ),
        ({"analysis.webhooks": [HOOK]}, "the token is sent without TLS"),
        ({"service.ports.0.targetPort": 9999}, "no container declares the port 9999"),
        ({"service.clusterIP": "None"}, "a headless Service hands out pods"),
        ({"service.ports.0.name": "tcp-db"}, "requests are counted for HTTP only"),
        ({"deployment.replica": 3}, "spec.deployment[replica] is no field that Kubernetes has"),
        ({f"{BOX}.imagePullpolicy": "Always"}, "containers[0][imagePullpolicy] is no field"),
        ({"deployment.strategy": {"type": "Recreate"}}, "Recreate is not used"),
        ({"deployment.strategy": {"rollingUpdate": {"maxUnavailable": 1}}}, "maxUnavailable is not used"),
        ({f"{BOX}.image": AWAY, f"{BOX}.command": ["web"]}, "has no image"),
        ({f"{BOX}.readinessProbe": AWAY}, "has no readinessProbe"),
        ({"autoscalerRef": {"name": "web"}}, "spec.deployment.replicas is not used"),
        (
            {"analysis.sessionAffinity": {"cookieName": "c"}},
            "spec.analysis.sessionAffinity.secure is not set",
        ),
    ],
)
def test_what_is_hardly_meant_is_warned_of(changes: dict[str, Any], says: str) -> None:
    made = canary(changes)
    assert problems(made) == []
    assert says in " ".join(warnings(made))


def test_a_good_one_is_not_warned_of() -> None:
    assert warnings(canary()) == ()


def _nested(depth: int) -> Any:
    made: Any = "x"
    for _ in range(depth):
        made = {"a": made}
    return made


@pytest.mark.parametrize(
    ("changes", "path", "says"),
    [
        ({"deployment.template.spec.affinity": _nested(300)}, "spec.deployment", "nested more than 32 deep"),
        ({"service.selector": {"a": "x" * 200_000}}, "spec.service", "more than 131072 characters"),
        ({f"{BOX}.env": [{}] * 30_000}, "spec.deployment", "more than 20000 values"),
        ({"virtualService": {"spec": {"http": [[]] * 30_000}}}, "spec.virtualService.spec", "more than 20000 values"),
        ({"virtualService": {"trafficPolicy": _nested(90)}}, "spec.virtualService.trafficPolicy", "32 deep"),
        (
            {"analysis.iterations": 1, "analysis.stepWeight": AWAY, "analysis.match": [_nested(90)]},
            "spec.analysis.match[0]",
            "32 deep",
        ),
        ({f"{BOX}.args": ["x" * 100_000], "service.selector": {"a": "x" * 100_000}}, "spec", "131072 characters"),
    ],
)
def test_what_is_too_large_is_refused_for_that_alone(changes: dict[str, Any], path: str, says: str) -> None:
    made = canary(changes)
    began = time.process_time()
    (problem,) = problems(made)
    assert time.process_time() - began < 0.5
    assert problem.path == path
    assert says in problem.detail


def test_the_largest_that_is_looked_at_takes_no_time() -> None:
    made = canary(
        {
            f"{BOX}.env": [{"name": f"N{i}", "value": i} for i in range(6000)],
            f"{BOX}.ports": [{"name": "http", "containerPort": 0}] * 100,
        }
    )
    began = time.process_time()
    found = problems(made)
    assert len(found) == 100
    assert all(len(str(problem)) < 1000 for problem in found)
    assert time.process_time() - began < 0.5


def test_two_do_not_share_pods_names_or_a_virtual_service() -> None:
    apart = {"deployment.selector.matchLabels.app": "api", "deployment.template.metadata.labels.app": "api"}
    assert neighbour_problems(canary(), [canary(), canary(apart, name="api")]) == []
    (problem,) = neighbour_problems(canary(), [canary(name="api")])
    assert problem.path == "spec.deployment.selector"
    assert 'overlaps with that of the CanaryDeployment "api"' in problem.detail
    (problem,) = neighbour_problems(canary(name="web-canary"), [canary(apart)])
    assert problem.path == "metadata.name"
    (problem,) = neighbour_problems(canary(), [canary(apart, name="web-canary")])
    assert "its canary would be called web-canary" in problem.detail
    edge = {"virtualService": {"name": "edge"}}
    (problem,) = neighbour_problems(canary(edge), [canary({**apart, **edge}, name="api")])
    assert problem.path == "spec.virtualService.name"
    (problem,) = neighbour_problems(canary(), [canary({**apart, "virtualService": {"name": "web"}}, name="api")])
    assert "drives the VirtualService web already" in problem.detail


def test_a_neighbour_that_is_wrong_itself_is_no_trouble() -> None:
    for selector in ("app", {"matchLabels": ["app"]}, {"matchExpressions": "x"}, {"matchExpressions": [7]}, {}):
        other = canary({"deployment.selector": selector, "deployment.template": 7}, name="other")
        assert neighbour_problems(canary(), [other]) == []
