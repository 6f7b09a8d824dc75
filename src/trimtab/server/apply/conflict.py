"""Conflicts of an apply: fields that the configuration would change and someone else owns."""

from __future__ import annotations

from trimtab.model.errors import StatusError
from trimtab.server.apply.fieldset import FieldSet, difference, paths, shown
from trimtab.server.apply.managers import Manager

Conflicts = dict[Manager, FieldSet]


class ConflictError(Exception):
    """An apply without force met these."""

    def __init__(self, conflicts: Conflicts) -> None:
        super().__init__(conflicts)
        self.conflicts = conflicts

    def without(self, allowed: FieldSet) -> Conflicts:
        rest = {manager: difference(fields, allowed) for manager, fields in self.conflicts.items()}
        return {manager: fields for manager, fields in rest.items() if fields}


def conflict_status(conflicts: Conflicts) -> StatusError:
    """The 409 that names every conflict, sorted by manager."""
    found = [
        (manager, [shown(path) for path in paths(conflicts[manager])])
        for manager in sorted(conflicts, key=lambda manager: manager.identifier)
    ]
    causes = [
        {"reason": "FieldManagerConflict", "message": f"conflict with {manager}", "field": field}
        for manager, fields in found
        for field in fields
    ]
    if len(causes) == 1:
        message = f"Apply failed with 1 conflict: {causes[0]['message']}: {causes[0]['field']}"
    else:
        lines = []
        for manager, fields in found:
            lines.append(f"conflicts with {manager}:")
            lines.extend(f"- {field}" for field in fields)
        message = f"Apply failed with {len(causes)} conflicts: " + "\n".join(lines)
    return StatusError(409, "Conflict", message, {"causes": causes})
