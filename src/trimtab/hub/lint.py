"""A spec refers to others by name. A field that is called an ID is refused when its kind is registered.

Data of a foreign service may have fields with such names that refer to nothing of ours: they are exempted one by one, by
their path or by their name.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any

_ID = re.compile(r"(?:^|[a-z0-9])(?:I[dD]s?|U[iI][dD]s?|UUIDs?|Uuids?|GUIDs?|Guids?)$|(?:^|_)(?:u?id|uuid|guid)s?$")


class IdField(ValueError):  # noqa: N818
    """A spec has fields that are called IDs."""


def id_fields(schema: Mapping[str, Any], exempt: Collection[str] = ()) -> list[str]:
    """The paths of fields below `spec` that are called IDs: `spec.clusterId`, `spec.nodes[].agentID`."""
    spec = (schema.get("properties") or {}).get("spec")
    if not isinstance(spec, Mapping):
        return []
    return [path for path, name in _fields(spec, "spec") if _ID.search(name) and not {path, name} & set(exempt)]


def refuse_ids(kind: str, schema: Mapping[str, Any], exempt: Collection[str] = ()) -> None:
    """IdField for a kind that has any."""
    found = id_fields(schema, exempt)
    if found:
        raise IdField(
            f"{kind} has {', '.join(found)}: a spec refers to others by name, so mark the field with Ref and call it after "
            "what it names; one that refers to nothing of ours can be exempted when the kind is registered"
        )


def _fields(schema: Mapping[str, Any], path: str) -> Iterator[tuple[str, str]]:
    for name, part in (schema.get("properties") or {}).items():
        yield f"{path}.{name}", name
        yield from _fields(part, f"{path}.{name}")
    for word, step in (("items", "[]"), ("additionalProperties", "{}")):
        if isinstance(schema.get(word), Mapping):
            yield from _fields(schema[word], path + step)
