"""What the fields of a spec are called where the body's own name is one of ours, or the overlay prefers another."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from trimtab.systems.rest.compiling.problems import Problem, nearest
from trimtab.systems.rest.model import CONTROL, Node


def renamed(root: Node, wanted: Mapping[str, str], problems: list[Problem]) -> tuple[Node, dict[str, str]]:
    """The root with its new names, and the field of the spec → the property of the body."""
    names = {of_body: of_spec for of_spec, of_body in wanted.items()}
    for of_spec, of_body in wanted.items():
        path = f"spec.overlay.rename.{of_spec}"
        if of_body not in root.properties:
            problems.append(Problem(path, f"{of_body} is no field of the body{nearest(of_body, root.properties)}"))
        elif of_spec in CONTROL:
            problems.append(Problem(path, f"{of_spec} is a field of every generated kind; choose another name"))
        elif of_spec in root.properties and of_spec not in names:
            problems.append(Problem(path, f"{of_spec} is another field of the body; choose another name"))
    for name in root.properties:
        if name in CONTROL and name not in names:
            names[name] = _free(name, root.properties)
    changed = {of_spec: of_body for of_body, of_spec in names.items() if of_body in root.properties}
    if not changed:
        return root, {}
    return msgspec.structs.replace(
        root,
        properties={names.get(name, name): node for name, node in root.properties.items()},
        required=tuple(names.get(name, name) for name in root.required),
        discriminator=names.get(root.discriminator, root.discriminator),
    ), changed


def _free(name: str, taken: Mapping[str, Node]) -> str:
    """`policy` is `bodyPolicy`."""
    while name in taken or name in CONTROL:
        name = f"body{name[:1].upper()}{name[1:]}"
    return name
