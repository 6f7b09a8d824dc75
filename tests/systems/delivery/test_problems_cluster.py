"""What is said to be right makes objects that a real kube-apiserver takes."""

from __future__ import annotations

from typing import Any

import pytest

from tests.systems.delivery.problem_specs import canary
from tests.systems.delivery.test_problems_table import USUAL
from trimtab.client.connect import connect
from trimtab.model import kubernetes
from trimtab.model.errors import StatusError
from trimtab.model.scheme import Scheme, Untyped
from trimtab.systems.delivery.kinds import CanaryDeployment
from trimtab.systems.delivery.objects.services import canary_service, stable_service
from trimtab.systems.delivery.objects.workloads import canary_deployment, stable_deployment
from trimtab.systems.delivery.problems import problems
from trimtab.testing.cluster import RealCluster

REVISION = "v1:" + "0" * 64
pytestmark = pytest.mark.cluster


def objects(made: CanaryDeployment) -> list[dict[str, Any]]:
    template = made.spec.deployment["template"]
    return [
        stable_deployment(made, template, REVISION),
        canary_deployment(made, template, REVISION, 1),
        stable_service(made),
        canary_service(made),
    ]


async def refusals(cluster: RealCluster, documents: list[dict[str, Any]]) -> list[str]:
    client, said = connect(cluster.kubeconfig, scheme=kubernetes.register(Scheme())), []
    for document in documents:
        try:
            await client.create(Untyped(document), dry_run=True)
        except StatusError as error:
            said.append(f"{error.code} {error.message}")
    await client.close()
    return said


@pytest.mark.parametrize("changes", [{}, *USUAL])
async def test_what_is_usual_makes_objects_that_are_taken(real_cluster: RealCluster, changes: dict[str, Any]) -> None:
    made = canary(changes)
    assert problems(made) == []
    local = any("image" not in box for box in made.spec.deployment["template"]["spec"]["containers"])
    assert bool(await refusals(real_cluster, objects(made))) is local
