"""Documents for tests: our own small ones, and the real ones that lie beside the project where it is developed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.needs import needs
from trimtab.systems.rest.openapi import Document, Operation, Schema

DOCUMENTS = Path(__file__).parent / "documents"
FLEET = DOCUMENTS / "specification/fleet/2026-01-01/fleet.json"
OWN = (FLEET, *(DOCUMENTS / f"{name}.yaml" for name in ("machines", "names", "engine", "zoo-3.1")))
REAL = Path(__file__).parents[3].parent / "shared/data"


def real(path: str) -> Path:
    """A real document, or the test is skipped."""
    needs(REAL / path)
    return REAL / path


def azure() -> list[Path]:
    """All real documents of Azure."""
    folder = real("azure-specs/specification")
    return sorted(path for path in folder.rglob("*.json") if "examples" not in path.parts)


def others() -> list[Path]:
    """All other real documents."""
    folder = real("openapi")
    return sorted(path for path in folder.rglob("*.*") if path.suffix in (".json", ".yaml"))


def told(document: Document, key: tuple[str, str]) -> Any:
    """All that an operation says, down to the leaves; a type that was met before is told by its number."""
    operation: Operation = document.operations[key]
    seen: dict[Any, int] = {}
    return (
        (operation.id, operation.query, operation.content_types),
        [
            (param.name, param.place, param.required, param.encode, param.of_client, _told(param.schema, seen))
            for param in operation.parameters
        ],
        _told(operation.body, seen),
        [(code, found.headers, _told(found.schema, seen)) for code, found in operation.responses.items()],
    )


def _told(schema: Schema | bool | None, seen: dict[Any, int]) -> Any:
    if not isinstance(schema, Schema):
        return schema
    if schema.key in seen:
        return f"{seen[schema.key]} again"
    seen[schema.key] = len(seen)
    choice = schema.discriminator
    return (
        (schema.type, schema.nullable, schema.required, str(schema.get("enum")), str(schema.get("default"))),
        (schema.get("readOnly"), schema.get("description"), schema.get("x-ms-mutability"), schema.get("format")),
        {name: _told(below, seen) for name, below in schema.properties.items()},
        _told(schema.items, seen),
        _told(schema.additional, seen),
        [_told(part, seen) for part in (*schema.one_of, *schema.any_of)],
        choice and (choice.property, {value: _told(choice.mapping[value], seen) for value in sorted(choice.mapping)}),
    )


def reached(document: Document) -> Iterator[Schema]:
    """Every schema that the operations reach, once."""
    seen = set()
    pending: list[Schema | bool | None] = []
    for operation in document.operations.values():
        pending += [param.schema for param in operation.parameters]
        pending += [operation.body, *(response.schema for response in operation.responses.values())]
    while pending:
        schema = pending.pop()
        if not isinstance(schema, Schema) or schema.key in seen:
            continue
        seen.add(schema.key)
        yield schema
        pending += [*schema.properties.values(), schema.items, schema.additional, *schema.one_of, *schema.any_of]
        if schema.discriminator is not None:
            pending += schema.discriminator.mapping.values()
