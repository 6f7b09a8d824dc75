"""A cluster of type mks has what the provider's own specification has, at the same places and of the same types."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.terraform.spec.documents import mks
from trimtab.model.scheme import Scheme
from trimtab.systems.platform.kinds import Cluster

FIELDS = Path(__file__).with_name("mks_fields.txt").read_text().splitlines()
"""`PATH TYPE` of the fields under `spec` in mks-provider-spec.json; `[]` is any item of a list, or any value of a map."""

TYPES = {
    "string": "string",
    "bool": "boolean",
    "int64": "integer",
    "single_nested": "object",
    "map": "object",
    "map_nested": "object",
    "set": "array",
    "set_nested": "array",
}


def fields_of(attributes: Sequence[dict[str, Any]], prefix: str = "") -> Iterator[str]:
    """The same lines, of attributes in the provider's specification."""
    for attribute in attributes:
        path = prefix + attribute["name"]
        (form,) = attribute.keys() - {"name"}
        yield f"{path} {form}"
        yield from fields_of(attribute[form].get("attributes", ()), f"{path}.")
        yield from fields_of(attribute[form].get("nested_object", {}).get("attributes", ()), f"{path}[].")


def type_at(path: str) -> str | None:
    """Of our Cluster; None when it has no such field. What the provider has in `config` is one of several there."""
    found: Any = Scheme().kind_of(Cluster).schema.document
    for step in path.replace("spec.config.", "spec.config.mks.").replace("[]", ".[]").split("."):
        if step == "[]":
            found = found.get("items") or found["additionalProperties"]
            continue
        first, *rest = step.split("_")
        found = found.get("properties", {}).get(first + "".join(map(str.capitalize, rest)))
        if found is None:
            return None
    return str(found["type"])


@pytest.mark.parametrize("field", FIELDS)
def test_a_field_of_the_provider_s_mks_is_one_of_ours(field: str) -> None:
    path, form = field.split()
    assert type_at(path) == TYPES[form]


def test_the_fields_are_all_that_the_provider_s_specification_has() -> None:
    """But for `spec.type`: here the branch of `config` says it."""
    (resource,) = mks()["resources"]
    theirs = [each for each in fields_of(resource["schema"]["attributes"]) if each.startswith("spec.")]
    assert [*FIELDS, "spec.type string"] == theirs
