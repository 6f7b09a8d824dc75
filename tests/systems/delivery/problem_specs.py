"""A CanaryDeployment that is right, with what a test changes: `canary({"analysis.interval": "0s"})`."""

from __future__ import annotations

import copy
from typing import Any

from trimtab.model.document import convert
from trimtab.model.objectmeta import ObjectMeta
from trimtab.systems.delivery.kinds import CanaryDeployment, CanaryDeploymentSpec

SPEC: dict[str, Any] = {
    "deployment": {
        "replicas": 2,
        "selector": {"matchLabels": {"app": "web"}},
        "template": {
            "metadata": {"labels": {"app": "web", "tier": "front"}},
            "spec": {
                "containers": [
                    {
                        "name": "web",
                        "image": "example.com/web:1",
                        "ports": [{"name": "http", "containerPort": 8080}],
                        "readinessProbe": {"httpGet": {"path": "/", "port": "http"}},
                    }
                ]
            },
        },
    },
    "service": {"ports": [{"port": 80, "targetPort": "http"}]},
    "analysis": {
        "interval": "30s",
        "stepWeight": 10,
        "metrics": [{"name": "request-success-rate", "thresholdRange": {"min": 99}, "minSamples": 50}],
    },
}

AWAY = object()
"""Takes a field away."""


def spec(changes: dict[str, Any] | None = None) -> dict[str, Any]:
    """Paths are of names and numbers with dots between them."""
    made = copy.deepcopy(SPEC)
    for path, value in (changes or {}).items():
        at: Any = made
        *steps, last = [int(step) if step.isdigit() else step for step in path.split(".")]
        for step in steps:
            at = at[step] if isinstance(at, list) else at.setdefault(step, {})
        if value is AWAY:
            del at[last]
        elif isinstance(at, list) and last == len(at):
            at.append(copy.deepcopy(value))
        else:
            at[last] = copy.deepcopy(value)
    return made


def canary(changes: dict[str, Any] | None = None, /, name: str = "web", **status: Any) -> CanaryDeployment:
    made = convert(spec(changes), CanaryDeploymentSpec)
    more = {"status": status["status"]} if status else {}
    return CanaryDeployment(metadata=ObjectMeta(name=name, namespace="default"), spec=made, **more)
