"""A definition as a schema of the framework: of a resource, and of the data sources for one object and for many."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from trimtab.terraform.framework.attributes import Attribute, Nested, Nesting
from trimtab.terraform.framework.config_validators import ConfigValidator, Conflicting, ExactlyOneOf
from trimtab.terraform.framework.defaults import NONE
from trimtab.terraform.framework.modifiers import KeepState, Modifier, RequiresReplace
from trimtab.terraform.framework.paths import ROOT, Path
from trimtab.terraform.framework.schema import Schema
from trimtab.terraform.framework.timeouts import timeouts
from trimtab.terraform.framework.types import BOOL, NUMBER, STRING, ListOf, MapOf, SetOf, Type
from trimtab.terraform.framework.validators import Each, Keys, OneOf, Satisfies, Validator
from trimtab.terraform.kinds.converting import NOT_NULL, WHOLE_NUMBER, is_whole, json_of
from trimtab.terraform.kinds.definition import BOOL as BOOLEAN
from trimtab.terraform.kinds.definition import INTEGER, JSON, KEYED, NOTHING, OBJECT, SET, Definition, Field, Shape
from trimtab.terraform.kinds.definition import LIST as A_LIST
from trimtab.terraform.kinds.definition import NUMBER as A_NUMBER
from trimtab.terraform.kinds.equality import equality
from trimtab.terraform.kinds.naming import camel
from trimtab.terraform.kinds.writing import default_value

_NAMED = (
    Satisfies(bool, "must not be empty"),
    Satisfies(lambda value: value not in (".", "..") and not {*"/%"} & {*value}, "must be a name, without / and %"),
)
"""What the API takes as a part of a path."""
_NESTINGS: dict[str, Nesting] = {A_LIST: "list", SET: "set", KEYED: "map", "map": "map"}


def resource_schema(definition: Definition) -> Schema:
    attributes = {field.name: _attribute(field) for field in definition.root.fields}
    attributes["metadata"] = _metadata(definition)
    attributes |= {
        "timeouts": timeouts("create", "update", "delete"),
        "wait": Attribute(
            BOOL,
            optional=True,
            description="Whether to wait until the object is what it declares. Unless the provider says otherwise, yes.",
        ),
        "force_conflicts": Attribute(
            BOOL,
            optional=True,
            description="Whether to take fields over that others manage. Unless the provider says otherwise, no.",
        ),
    }
    return Schema(dict(sorted(attributes.items())), description=definition.description)


def single_schema(definition: Definition) -> Schema:
    """Of the data source for one object: it is named, all else is read."""
    attributes = {field.name: _read(field) for field in definition.root.fields}
    meta = definition.root.field("metadata")
    inner = {field.name: _read(field) for field in meta.shape.fields} if meta else {}
    inner["name"] = Attribute(STRING, required=True, description="Which one.", validators=_NAMED)
    if definition.place:
        inner[definition.place] = _place(definition)
    attributes["metadata"] = Attribute(Nested(inner), required=True, description="Which one, and what is said of it.")
    return Schema(dict(sorted(attributes.items())), description=definition.description)


def plural_schema(definition: Definition) -> Schema:
    """Of the data source for many: selected by place and labels."""
    attributes = {
        "items": Attribute(
            Nested({field.name: _read(field) for field in definition.root.fields}, "list"),
            computed=True,
            description="Those that were found, by place and name.",
        ),
        "label_selector": Attribute(STRING, optional=True, description="As kubectl takes it: `app=web,tier!=db`."),
    }
    if definition.place:
        says = f"Only those of this {definition.place}; all of them when it is not set."
        attributes[definition.place] = Attribute(STRING, optional=True, description=says, validators=_NAMED[1:])
    return Schema(dict(sorted(attributes.items())), description=definition.description)


def choices(definition: Definition) -> tuple[ConfigValidator, ...]:
    """Exactly one, or at most one, of the branches of each object."""
    return tuple(_choices(definition.root, ROOT))


def _choices(shape: Shape, within: Path) -> Iterator[ConfigValidator]:
    for choice in shape.choices:
        names = [field.name for wire in choice.wires if (field := shape.field(wire))]
        yield (ExactlyOneOf if choice.required else Conflicting)(*(ROOT.name(name) for name in names), within=within)
    for field in shape.fields:
        if not field.computed:
            yield from _choices(field.shape, within.name(field.name))
    if shape.items is not None and shape.items.form == OBJECT:
        yield from _choices(shape.items, within.every())


def _metadata(definition: Definition) -> Attribute:
    meta = definition.root.field("metadata")
    inner = {field.name: _attribute(field) for field in meta.shape.fields} if meta else {}
    inner["name"] = replace(inner["name"], validators=_NAMED)
    inner["uid"] = Attribute(STRING, computed=True, description=inner["uid"].description, modifiers=(KeepState(),))
    if definition.place:
        inner[definition.place] = _place(definition)
    return Attribute(Nested(inner), required=True, description="What is said of every object.")


def _place(definition: Definition) -> Attribute:
    return Attribute(
        STRING,
        optional=True,
        computed=True,
        description=f"The {definition.place} that it is in; the provider's when none is given.",
        modifiers=(KeepState(), RequiresReplace()),
        validators=_NAMED,
    )


def _attribute(field: Field) -> Attribute:
    if field.computed:
        return _read(field)
    modifiers: tuple[Modifier, ...] = (RequiresReplace(),) if field.replace else ()
    return Attribute(
        _type(field.shape, _attribute),
        required=field.required,
        optional=not field.required,
        sensitive=field.sensitive,
        write_only=field.write_only,
        description=_described(field),
        default=NONE if field.default is NOTHING else default_value(field),
        modifiers=modifiers,
        validators=tuple(_validators(field.shape)),
        equal=equality(field.shape),
    )


def _read(field: Field) -> Attribute:
    said = _sentences(field.description, _in_the_api(field))
    return Attribute(_type(field.shape, _read), computed=True, sensitive=field.sensitive, description=said)


def _type(shape: Shape, attribute: Any) -> Type | Nested:
    if shape.form == OBJECT:
        return Nested({field.name: attribute(field) for field in shape.fields})
    if shape.items is not None and shape.items.form == OBJECT:
        return Nested({field.name: attribute(field) for field in shape.items.fields}, _NESTINGS[shape.form])
    return _plain(shape)


def _plain(shape: Shape) -> Type:
    if shape.items is not None:
        inner = _plain(shape.items)
        return {A_LIST: ListOf, SET: SetOf}.get(shape.form, MapOf)(inner)
    if shape.form == BOOLEAN:
        return BOOL
    return NUMBER if shape.form in (INTEGER, A_NUMBER) else STRING


def _validators(shape: Shape) -> Iterator[Validator]:
    if shape.items is not None and shape.items.form != OBJECT and (inner := tuple(_validators(shape.items))):
        yield Each(*inner)
    if shape.form == KEYED and shape.key_form == INTEGER:
        yield Keys(Satisfies(is_whole, WHOLE_NUMBER))
    if shape.values:
        yield OneOf(*shape.values)
    if shape.form == JSON:
        yield Satisfies(_is_json, "must be JSON, as jsonencode writes it")
        yield Satisfies(_is_something, NOT_NULL)
    elif shape.form == INTEGER:
        yield Satisfies(_is_whole, WHOLE_NUMBER)
    elif shape.form == A_NUMBER:
        yield Satisfies(_is_double, f"must be at most {sys.float_info.max}")


def _is_double(value: Any) -> bool:
    return bool(abs(value) <= sys.float_info.max)


def _is_json(value: Any) -> bool:
    try:
        json_of(value)
    except (ValueError, RecursionError):
        return False
    return True


def _is_something(value: Any) -> bool:
    return str(value).strip() != "null"


def _is_whole(value: Any) -> bool:
    return bool(value == int(value))


def _described(field: Field) -> str:
    parts = [field.description]
    if field.shape.form == JSON:
        parts.append("JSON, as `jsonencode` writes it.")
    if field.shape.values:
        parts.append(f"One of {', '.join(f'`{value}`' for value in field.shape.values)}.")
    if field.default is not NOTHING and not isinstance(field.default, dict | list):
        parts.append(f"`{json.dumps(field.default).strip(chr(34))}` when it is not set.")
    return _sentences(*parts, _in_the_api(field))


def _in_the_api(field: Field) -> str:
    """What the API calls it, where its name does not tell."""
    return f"`{field.wire}` in the API." if field.wire != camel(field.name) else ""


def _sentences(*parts: str) -> str:
    return " ".join(part if part.endswith((".", "!", "?", ":")) else f"{part}." for part in parts if part)
