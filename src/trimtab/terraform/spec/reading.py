"""From a document to schemas of the framework.

Everything that decides about plans is taken over: types, who sets an attribute, defaults, sensitivity, the well-known
validators and plan modifiers. What is Go code and nothing else is named in `Spec.notes`, so that nobody believes in a rule
that is not there.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trimtab.terraform.framework.attributes import Attribute, Nested, Nesting
from trimtab.terraform.framework.blocks import Block
from trimtab.terraform.framework.defaults import NONE
from trimtab.terraform.framework.schema import Schema
from trimtab.terraform.framework.types import (
    BOOL,
    DYNAMIC,
    NUMBER,
    STRING,
    ListOf,
    MapOf,
    ObjectOf,
    SetOf,
    Type,
)
from trimtab.terraform.spec.checking import problems
from trimtab.terraform.spec.rules import WHOLE, modifier_of, validator_of

LARGEST = 32 * 1024 * 1024


class SpecError(Exception):
    """A document that cannot be read: all that is wrong with it, a line each."""

    def __init__(self, faults: list[str]) -> None:
        super().__init__("\n".join(faults))
        self.faults = faults


@dataclass(frozen=True, slots=True)
class Spec:
    name: str
    """Of the provider; types are called `name_resource`."""
    provider: Schema
    resources: Mapping[str, Schema]
    """By the names in the document, without the provider's."""
    data_sources: Mapping[str, Schema]
    notes: tuple[str, ...] = ()


def load(path: Path) -> Spec:
    """Of a file. SpecError, OSError."""
    if path.stat().st_size > LARGEST:
        raise SpecError([f"{path} is larger than {LARGEST >> 20} MiB"])
    try:
        document = json.loads(path.read_bytes(), parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise SpecError([f"{path} is no JSON: {error}"]) from None
    return read(document)


def _no_constant(text: str) -> Any:
    raise ValueError(f"{text} is not a number that JSON has")


def read(document: Any) -> Spec:
    faults = problems(document)
    if faults:
        raise SpecError(faults)
    reader = _Reader()
    provider = document["provider"]
    return Spec(
        name=provider["name"],
        provider=reader.schema(provider.get("schema", {}), "provider"),
        resources={each["name"]: reader.schema(each["schema"], each["name"]) for each in document.get("resources", ())},
        data_sources={
            each["name"]: reader.schema(each["schema"], f"data.{each['name']}")
            for each in document.get("datasources", ())
        },
        notes=tuple(reader.notes),
    )


_PLAIN = {"bool": BOOL, "dynamic": DYNAMIC, "float64": NUMBER, "int64": NUMBER, "number": NUMBER, "string": STRING}
_COLLECTIONS: dict[str, Callable[[Type], Type]] = {"list": ListOf, "map": MapOf, "set": SetOf}
_NESTINGS: dict[str, Nesting] = {
    "list_nested": "list",
    "map_nested": "map",
    "set_nested": "set",
    "single_nested": "single",
}


class _Reader:
    def __init__(self) -> None:
        self.notes: list[str] = []

    def schema(self, said: dict[str, Any], where: str) -> Schema:
        return Schema(
            self.attributes(said, where),
            self.blocks(said, where),
            description=said.get("markdown_description") or said.get("description", ""),
            deprecated=said.get("deprecation_message", ""),
        )

    def attributes(self, body: dict[str, Any], where: str) -> dict[str, Attribute]:
        return {each["name"]: self.attribute(each, f"{where}.{each['name']}") for each in body.get("attributes", ())}

    def blocks(self, body: dict[str, Any], where: str) -> dict[str, Block]:
        return {each["name"]: self.block(each, f"{where}.{each['name']}") for each in body.get("blocks", ())}

    def attribute(self, item: dict[str, Any], where: str) -> Attribute:
        kind, said = next((name, value) for name, value in item.items() if name != "name")
        who = said.get("computed_optional_required") or said.get("optional_required")
        modifiers = [modifier_of(rule) for rule in said.get("plan_modifiers", ())]
        validators = [validator_of(rule) for rule in said.get("validators", ())]
        self._note(where, said.get("plan_modifiers", ()), modifiers, "plan modifier")
        self._note(where, said.get("validators", ()), validators, "validator")
        if "custom_type" in said:
            self.notes.append(f"{where}: values are as Terraform has them, the custom type is left out")
        return Attribute(
            self.type(kind, said, where),
            required=who == "required",
            optional=who in ("optional", "computed_optional"),
            computed=who in ("computed", "computed_optional"),
            sensitive=said.get("sensitive", False),
            description=said.get("description", ""),
            deprecated=said.get("deprecation_message", ""),
            default=self._default(said, where),
            modifiers=tuple(each for each in modifiers if each is not None),
            validators=(*((WHOLE,) if kind == "int64" else ()), *(each for each in validators if each is not None)),
        )

    def block(self, item: dict[str, Any], where: str) -> Block:
        kind, said = next((name, value) for name, value in item.items() if name != "name")
        inner = said if kind == "single_nested" else said["nested_object"]
        for member in ("validators", "plan_modifiers", "default"):
            if said.get(member):
                self.notes.append(f"{where}: {member} of blocks are left out")
        return Block(
            self.attributes(inner, where),
            self.blocks(inner, where),
            nesting=_NESTINGS[kind],
            description=said.get("description", ""),
            deprecated=said.get("deprecation_message", ""),
        )

    def type(self, kind: str, said: dict[str, Any], where: str) -> Type | Nested:
        if kind == "single_nested":
            return Nested(self.attributes(said, where), "single")
        if kind in _NESTINGS:
            return Nested(self.attributes(said["nested_object"], where), _NESTINGS[kind])
        return _type(kind, said)

    def _default(self, said: dict[str, Any], where: str) -> Any:
        default = said.get("default")
        if default is None:
            return NONE
        if "static" in default:
            return default["static"]
        self.notes.append(f"{where}: its default is code, and is left out: {default['custom']['schema_definition']}")
        return NONE

    def _note(self, where: str, rules: Any, understood: list[Any], what: str) -> None:
        for rule, made in zip(rules, understood, strict=True):
            if made is None:
                code = rule["custom"]["schema_definition"]
                self.notes.append(f"{where}: this {what} is not known here, and is left out: {code}")


def _type(kind: str, said: dict[str, Any]) -> Type:
    if kind in _PLAIN:
        return _PLAIN[kind]
    if kind == "object":
        return ObjectOf({each["name"]: _only(each) for each in said["attribute_types"]})
    return _COLLECTIONS[kind](_only(said["element_type"]))


def _only(element: dict[str, Any]) -> Type:
    return next(_type(name, value) for name, value in element.items() if name != "name")
