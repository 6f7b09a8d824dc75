"""From schemas of the framework to a document, and what of them a document cannot say.

Documents know nothing of write-only attributes, of equality by meaning, of dynamic values in collections, and of defaults
of collections other than as Go code; each such loss is named.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from trimtab.terraform.framework.attributes import Attribute, Nested
from trimtab.terraform.framework.blocks import Block
from trimtab.terraform.framework.defaults import NONE, Default
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
    TupleOf,
    Type,
)
from trimtab.terraform.framework.values import Typed
from trimtab.terraform.spec import forms
from trimtab.terraform.spec.rules import asks_for_double, asks_for_whole, modifier_code, validator_code

Document = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Emitted:
    document: Document
    losses: tuple[str, ...]


def emit(name: str, provider: Schema, resources: Mapping[str, Schema], data_sources: Mapping[str, Schema]) -> Emitted:
    """Names are without the provider's."""
    writer = _Writer()
    document: Document = {"version": forms.VERSION, "provider": {"name": name}}
    if provider.attributes or provider.blocks:
        document["provider"]["schema"] = writer.schema(provider, "provider", forms.PROVIDER)
    for member, place, schemas in (
        ("resources", forms.RESOURCE, resources),
        ("datasources", forms.DATA_SOURCE, data_sources),
    ):
        prefix = "" if place == forms.RESOURCE else "data."
        document[member] = [
            {"name": each, "schema": writer.schema(schemas[each], f"{prefix}{each}", place)} for each in sorted(schemas)
        ]
    return Emitted(document, tuple(writer.losses))


class _Writer:
    def __init__(self) -> None:
        self.losses: list[str] = []

    def schema(self, schema: Schema, where: str, place: str) -> Document:
        said = self.body(schema.attributes, schema.blocks, where, place)
        if schema.description or not said:
            said["description"] = schema.description
        if schema.deprecated:
            said["deprecation_message"] = schema.deprecated
        return said

    def body(
        self, attributes: Mapping[str, Attribute], blocks: Mapping[str, Block], where: str, place: str
    ) -> Document:
        said: Document = {}
        if attributes:
            said["attributes"] = [self.attribute(n, attributes[n], f"{where}.{n}", place) for n in sorted(attributes)]
        if blocks:
            said["blocks"] = [self.block(n, blocks[n], f"{where}.{n}", place) for n in sorted(blocks)]
        return said

    def attribute(self, name: str, attribute: Attribute, where: str, place: str) -> Document:
        kind = self.kind(attribute)
        said: Document = self.shape(attribute, where, place)
        member, _ = forms.choices(place)
        said[member] = _who(attribute)
        for key, value in (
            ("description", attribute.description),
            ("deprecation_message", attribute.deprecated),
            ("sensitive", attribute.sensitive),
        ):
            if value:
                said[key] = value
        self.rules(kind, attribute, said, where, place)
        return {"name": name, kind: said}

    def kind(self, attribute: Attribute) -> str:
        type_ = attribute.type
        if isinstance(type_, Nested):
            return f"{type_.nesting}_nested"
        if type_ == NUMBER:
            return _number(attribute)
        return _kind(type_)

    def shape(self, attribute: Attribute, where: str, place: str) -> Document:
        type_ = attribute.type
        if not isinstance(type_, Nested):
            return self.type(type_, where)
        inner = self.body(type_.attributes, {}, where, place)
        return inner if type_.nesting == "single" else {"nested_object": inner}

    def type(self, type_: Type, where: str) -> Document:
        match type_:
            case ListOf(inner) | SetOf(inner) | MapOf(inner):
                return {"element_type": self.element(inner, where)}
            case ObjectOf(attributes):
                return {
                    "attribute_types": [
                        {"name": each, **self.element(attributes[each], f"{where}.{each}", member=True)}
                        for each in sorted(attributes)
                    ]
                }
        return {}

    def element(self, type_: Type, where: str, *, member: bool = False) -> Document:
        if isinstance(type_, TupleOf) or (type_ == DYNAMIC and not member):
            self.losses.append(f"{where}: elements of any type are told as text")
            return {"string": {}}
        return {_kind(type_): self.type(type_, where)}

    def block(self, name: str, block: Block, where: str, place: str) -> Document:
        inner = self.body(block.attributes, block.blocks, where, place)
        said: Document = inner if block.nesting == "single" else {"nested_object": inner}
        if block.nesting == "map":
            self.losses.append(f"{where}: a map of blocks is told as a list of them")
        if block.min_items or block.max_items:
            self.losses.append(f"{where}: how many blocks there may be is not told")
        if block.description:
            said["description"] = block.description
        if block.deprecated:
            said["deprecation_message"] = block.deprecated
        return {"name": name, f"{'list' if block.nesting == 'map' else block.nesting}_nested": said}

    def rules(self, kind: str, attribute: Attribute, said: Document, where: str, place: str) -> None:
        if attribute.write_only:
            self.losses.append(f"{where}: it is write-only, which documents cannot say")
        if attribute.equal is not None:
            self.losses.append(f"{where}: that values of one meaning are equal is not told")
        telling = [each for each in attribute.validators if not asks_for_whole(each) and not asks_for_double(each)]
        validators = [validator_code(kind, each) for each in telling]
        if None in validators:
            self.losses.append(f"{where}: a validator has no name that others know")
        if any(validators):
            said["validators"] = [each for each in validators if each is not None]
        if place != forms.RESOURCE:
            return
        modifiers = [modifier_code(kind, each) for each in attribute.modifiers]
        if None in modifiers:
            self.losses.append(f"{where}: a plan modifier has no name that others know")
        if any(modifiers):
            said["plan_modifiers"] = [each for each in modifiers if each is not None]
        if attribute.default is not NONE:
            if (
                kind in forms.STATIC
                and not isinstance(attribute.default, Default | Typed)
                and attribute.default is not None
            ):
                said["default"] = {"static": attribute.default}
            else:
                self.losses.append(f"{where}: a default of a {kind.replace('_', ' ')} can only be told as Go code")


_PLAIN: dict[Type, str] = {STRING: "string", BOOL: "bool", NUMBER: "number", DYNAMIC: "dynamic"}


def _who(attribute: Attribute) -> str:
    if attribute.required:
        return "required"
    if attribute.optional:
        return "computed_optional" if attribute.computed else "optional"
    return "computed"


def _number(attribute: Attribute) -> str:
    """Documents tell whole numbers, floating ones and any apart; Terraform does not."""
    if any(map(asks_for_whole, attribute.validators)):
        return "int64"
    told = [validator for validator in attribute.validators if not asks_for_double(validator)]
    return "number" if attribute.default is NONE and not told else "float64"


def _kind(type_: Type) -> str:
    match type_:
        case ListOf():
            return "list"
        case SetOf():
            return "set"
        case MapOf():
            return "map"
        case ObjectOf():
            return "object"
    return _PLAIN[type_]
