"""What the fields of a spec are called where the body's own name is one of ours, or the overlay prefers another."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from trimtab.systems.rest.compiling.problems import Problem, nearest
from trimtab.systems.rest.model import CONTROL, Node


def renamed(
    root: Node, types: dict[str, Node], wanted: Mapping[str, str], problems: list[Problem]
) -> tuple[Node, dict[str, str]]:
    """The root with its new names, and the field of the spec → the property of the body. In `types` the variants of the
    root are renamed too."""
    names = {of_body: of_spec for of_spec, of_body in wanted.items()}
    variants = set(root.variants.values())
    there = {**root.properties}
    for variant in variants:
        there |= types[variant].properties
    for of_spec, of_body in wanted.items():
        path = f"spec.overlay.rename.{of_spec}"
        if of_body not in there:
            problems.append(Problem(path, f"{of_body} is no field of the body{nearest(of_body, there)}"))
        elif of_spec in CONTROL:
            problems.append(Problem(path, f"{of_spec} is a field of every generated kind; choose another name"))
        elif of_spec in there and of_spec not in names:
            problems.append(Problem(path, f"{of_spec} is another field of the body; choose another name"))
    for name in there:
        if name in CONTROL and name not in names:
            names[name] = _free(name, there)
    changed = {of_spec: of_body for of_body, of_spec in names.items() if of_body in there}
    if not changed:
        return root, {}
    for variant in variants:
        types[variant] = _with(types[variant], names)
    return _with(root, names), changed


def _with(node: Node, names: Mapping[str, str]) -> Node:
    return msgspec.structs.replace(
        node,
        properties={names.get(name, name): child for name, child in node.properties.items()},
        required=tuple(names.get(name, name) for name in node.required),
        discriminator=names.get(node.discriminator, node.discriminator),
    )


def _free(name: str, taken: Mapping[str, Node]) -> str:
    """`policy` is `bodyPolicy`."""
    while name in taken or name in CONTROL:
        name = f"body{name[:1].upper()}{name[1:]}"
    return name
