"""Several hundred small scenarios, a module for each subject. A name is "subject: what happens" and is used once."""

from ..compare import Scenario
from . import (
    apply,
    bodies,
    customs,
    definitions,
    deletion,
    discovery,
    identity,
    lists,
    objects,
    patches,
    policies,
    quotas,
    schemas,
    watches,
    workloads,
)

SCENARIOS: tuple[Scenario, ...] = tuple(
    Scenario(f"{module.__name__.rpartition('.')[2]}: {name}", tuple(requests))
    for module in (
        objects,
        bodies,
        lists,
        patches,
        apply,
        schemas,
        customs,
        deletion,
        watches,
        definitions,
        discovery,
        identity,
        policies,
        quotas,
        workloads,
    )
    for name, requests in module.SCENARIOS.items()
)
