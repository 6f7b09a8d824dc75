"""MetricTemplate: a query that many CanaryDeployments use."""

from __future__ import annotations

from typing import Annotated

from msgspec import UNSET, Meta, UnsetType

from trimtab.model.kind import Column
from trimtab.model.resource import Resource, Spec
from trimtab.systems.delivery.kinds.analysis import Prometheus


class MetricTemplateSpec(Spec):
    query: Annotated[
        str,
        Meta(
            min_length=1,
            max_length=4096,
            description="PromQL. {{ name }}, {{ namespace }}, {{ target }} (the canary's workload), {{ stable }}, "
            "{{ service }}, {{ interval }}, {{ window }} and {{ variables.x }} are filled in.",
        ),
    ]
    prometheus: Annotated[Prometheus, Meta(description="Instead of the analysis' own.")] | UnsetType = UNSET


class MetricTemplate(
    Resource,
    group="delivery",
    version="v1alpha1",
    plural="metrictemplates",
    short=("mt",),
    categories=("delivery",),
    columns=(Column("Query", ".spec.query", priority=1),),
):
    """A query that many CanaryDeployments use."""

    spec: MetricTemplateSpec
