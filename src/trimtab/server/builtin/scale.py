"""Scale, as `kubectl get --subresource=scale` shows it. It is made of other objects and never stored."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from trimtab.model.kind import Column
from trimtab.server.builtin.native import AGE, NAME, Native, kind
from trimtab.server.builtin.problems import at
from trimtab.server.strategy import Document

_REPLICAS = (
    Column("Desired", ".spec.replicas", "integer", description="Number of desired replicas"),
    Column("Available", ".status.replicas", "integer", description="Number of actual replicas"),
)


class Scale(Native):
    """Of a built-in kind."""

    shown = (Column("Name", NAME.path, description=NAME.description), *_REPLICAS, AGE)

    def row(self, obj: Document) -> Sequence[Any]:
        return at(obj, "spec", "replicas") or 0, at(obj, "status", "replicas") or 0


class CustomScale(Scale):
    """Of a custom resource."""

    shown = (NAME, *_REPLICAS, Column("Age", AGE.path, "date", description=AGE.description))


_KIND = kind("io.k8s.api.autoscaling.v1.Scale", "scales", group="autoscaling")
NATIVE, CUSTOM = Scale(_KIND), CustomScale(_KIND)
