"""Writing fields that others manage too. The server calls it a conflict; which of them a plan has shown is told here.

A field of ours that somebody changed before the plan was made is in it, and is taken back. What he changed later is in no
plan, and what we never had is his: both are refused, and `force_conflicts` alone takes them over.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from trimtab.terraform.framework.context import Context
from trimtab.terraform.framework.diagnostics import Failed
from trimtab.terraform.framework.paths import Path
from trimtab.terraform.framework.resource import Update
from trimtab.terraform.framework.trees import State
from trimtab.terraform.kinds.api import Answer, ApiError
from trimtab.terraform.kinds.client import Client
from trimtab.terraform.kinds.definition import Definition
from trimtab.terraform.kinds.fitting import fitting
from trimtab.terraform.kinds.lineage import without_noise
from trimtab.terraform.kinds.reading import PRESENT, owned_by, shown
from trimtab.terraform.kinds.secrets import had
from trimtab.terraform.kinds.telling import conflicted, conflicts, next_step, traced
from trimtab.terraform.kinds.waiting import Place

Document = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Mine:
    """An update, and the object as it was when that began."""

    op: Update
    live: Document


def applied(
    client: Client, place: Place, body: Document, context: Context, *, force: bool, mine: Mine | None = None
) -> Answer:
    """The server's answer. `mine` is None for an object that is to be created."""
    try:
        return client.api.apply(place.path, body, force=force)
    except ApiError as error:
        others = conflicts(error)
        if error.code != 409 or not others:
            raise
        definition = place.definition
        if mine is None or not all(_had(definition, mine, field, body) for field, _ in others):
            what = f"{place} has fields that others manage"
            raise conflicted(error, what, definition, body, context.diagnostics) from None
        for field, manager in others:
            _refuse_later(place, mine, field, manager, body)
        context.log("info", f"taking back what others changed of {place}", fields=[field for field, _ in others])
        return client.api.apply(place.path, body, force=True)


def _had(definition: Definition, mine: Mine, field: str, body: Document) -> bool:
    """Whether the state has the field, or we wrote it and keep it in no state: then its change was in the plan."""
    path, left = traced(definition, field, body)
    return _is_only_written(definition, mine, path, left) or _value(mine.op.state, path, left) is not None


def _refuse_later(place: Place, mine: Mine, field: str, manager: str, body: Document) -> None:
    """What is not as the plan saw it."""
    definition = place.definition
    path, left = traced(definition, field, body)
    if _is_only_written(definition, mine, path, left):
        return
    live = fitting(definition.root, without_noise(mine.live), [])
    now = State(shown(definition.root, live, owned_by(mine.live) or PRESENT, mine.op.state.value))
    if _value(now, path, left) != _value(mine.op.state, path, left):
        told = f"{field.lstrip('.')} is managed by {manager} now, and is another. Plan again."
        raise Failed(f"{place} has changed since the plan was made", told, path)


def _is_only_written(definition: Definition, mine: Mine, path: Path, left: str) -> bool:
    return not left and had(definition, path, mine.op.private)


def _value(state: State, path: Path, left: str) -> Any:
    """What is there. `left` leads into JSON: what is in it is others' as long as we did not say it."""
    value = state.get(path) if path.steps else None
    if left and isinstance(value, str):
        value = json.loads(value)
    while left and isinstance(value, dict):
        step, left = next_step(left, value)
        value = value.get(step)
    return None if left else value
