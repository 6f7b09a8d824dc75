"""What is wrong with `spec.analysis.webhooks`."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import UnsetType

from trimtab.model.duration import Duration
from trimtab.model.errors import FieldError
from trimtab.systems.delivery.kinds import Analysis
from trimtab.systems.delivery.problems.addresses import address_problems
from trimtab.systems.delivery.problems.findings import length, object_name, repeated, wrong

PATH = "spec.analysis.webhooks"
SHORTEST, LONGEST = 0.1, 300.0


def webhook_problems(analysis: Analysis) -> Iterator[FieldError]:
    """Those of type Rollout are asked in each check: all of their time must fit before the next."""
    yield from repeated((f"{PATH}[{i}].name", one.name) for i, one in enumerate(analysis.webhooks))
    waited = 0.0
    for i, one in enumerate(analysis.webhooks):
        path = f"{PATH}[{i}]"
        yield from address_problems(f"{path}.url", one.url)
        yield from length(f"{path}.timeout", one.timeout, SHORTEST, LONGEST)
        if not isinstance(one.secret_ref, UnsetType):
            yield from object_name(f"{path}.secretRef.name", one.secret_ref.name)
        if one.type != "Rollout":
            continue
        before, waited = waited, waited + one.timeout.seconds
        if before < analysis.interval.seconds <= waited:
            detail = (
                f"the timeouts of Rollout webhooks come to {Duration.of(waited)} here, and must stay below "
                f"the analysis' interval ({analysis.interval})"
            )
            yield wrong(f"{path}.timeout", one.timeout, detail)
