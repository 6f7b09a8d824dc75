"""What a definition says of its API that is about no field: taken over into the Model as it is."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from trimtab.systems.rest.kinds import definition as written
from trimtab.systems.rest.model import Overlay, Polling


def overlay_of(quirks: written.Quirks, calls: Collection[str], ignored: Sequence[str]) -> Overlay:
    """`calls` are those that there are. A merge needs an update: without one there is PATCH, or no change at all."""
    update: str = quirks.update
    if update == "merge" and "update" not in calls:
        update = "patch" if "patch" in calls else "none"
    return Overlay(
        update=update,
        envelope=quirks.envelope,
        wrap=quirks.wrap,
        gone=quirks.gone,
        removal={path: says.removal for path, says in quirks.fields.items() if says.removal},
        upsert=quirks.upsert,
        keep=tuple(path for path, says in quirks.fields.items() if says.keep),
        ignored=tuple(ignored),
        body=quirks.body,
        errors=tuple(_error(rule) for rule in quirks.errors),
        hooks=quirks.hooks,
    )


def polling(asked: written.Polling) -> Polling:
    return Polling(
        url=asked.url,
        status=asked.status,
        pending=asked.pending,
        success=asked.success,
        error=asked.error,
        deadline=asked.deadline.seconds,
    )


def _error(rule: written.ErrorRule) -> dict[str, str]:
    told = {"status": str(rule.status) if rule.status else "", "code": rule.code, "message": rule.message}
    return {name: value for name, value in told.items() if value} | {"class": rule.class_}
