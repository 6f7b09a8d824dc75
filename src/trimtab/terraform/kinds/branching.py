"""Objects of another branch than a resource is about: they are none of its business.

A resource of one branch does not know the others. It would read an object of another as one that lacks its branch, and
the next apply would put it in the place of what is there, which no plan shows.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trimtab.terraform.framework.diagnostics import Failed
from trimtab.terraform.kinds.definition import Definition
from trimtab.terraform.kinds.naming import PREFIX, snake


def refuse_other_branch(definition: Definition, document: Mapping[str, Any], what: object, doing: str) -> None:
    other = _other_branch(definition, document)
    if other:
        *path, wire = definition.branch
        raise Failed(
            doing,
            f"{what} has {'.'.join((*path, other))}, and a {PREFIX}_{definition.name} has {'.'.join((*path, wire))}. "
            f"Manage it as a {PREFIX}_{snake(other)}_{snake(definition.kind)}.",
        )


def _other_branch(definition: Definition, document: Mapping[str, Any]) -> str:
    """What is in the place of the branch: a field that is not of this resource, while the branch's own is not there."""
    if not definition.branch:
        return ""
    *path, wire = definition.branch
    found: Any = document
    shape = definition.root
    for step in path:
        field = shape.field(step)
        if field is None or not isinstance(found, Mapping):
            return ""
        found, shape = found.get(step), field.shape
    if not isinstance(found, Mapping) or found.get(wire) is not None:
        return ""
    return next((str(key) for key in sorted(found) if found[key] is not None and shape.field(key) is None), "")
