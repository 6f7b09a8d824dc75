"""Several hundred small scenarios, a module for each subject. A name is "subject: what happens" and is used once."""

from ..compare import Scenario
from . import apply, bodies, customs, definitions, deletion, discovery, lists, objects, patches, schemas, watches

SCENARIOS: tuple[Scenario, ...] = tuple(
    Scenario(f"{module.__name__.rpartition('.')[2]}: {name}", tuple(requests))
    for module in (objects, bodies, lists, patches, apply, schemas, customs, deletion, watches, definitions, discovery)
    for name, requests in module.SCENARIOS.items()
)
