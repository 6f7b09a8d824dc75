"""Typed Python code of a document: a module for each resource and data source.

A module has the schema as code, a class for each of config, plan and state with one class for each nested object inside it,
and a base class whose methods take and give those. Classes are scoped by the path that they stand for
(`MksCluster.Plan.Spec.Config`), so that two parts of a schema may call a thing alike. A method is given what exists for its
operation, and no type checker lets it reach for more.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from trimtab.terraform.framework.attributes import Attribute, Nested
from trimtab.terraform.framework.blocks import Block
from trimtab.terraform.framework.schema import Schema
from trimtab.terraform.framework.types import BOOL, NUMBER, STRING, ListOf, MapOf, SetOf, Type
from trimtab.terraform.spec.identifiers import class_names, field_names, module_names, top_names
from trimtab.terraform.spec.reading import Spec
from trimtab.terraform.spec.writing import schema_code

_HEAD = '''\
"""{what} `{type}`: made from a provider code specification; do not edit, subclass `{base}`."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from trimtab.terraform.framework import modifiers, trees, validators
from trimtab.terraform.framework.attributes import Attribute, Nested
from trimtab.terraform.framework.blocks import Block
from trimtab.terraform.framework.context import Context
from trimtab.terraform.framework.data_source import DataSource, ReadData
from trimtab.terraform.framework.resource import Create, Delete, Read, Resource, Update
from trimtab.terraform.framework.schema import Schema
from trimtab.terraform.framework.types import BOOL, DYNAMIC, NUMBER, STRING, ListOf, MapOf, ObjectOf, SetOf
from trimtab.terraform.framework.values import Unknown
from trimtab.terraform.spec.rules import WHOLE
from trimtab.terraform.spec.typed import dump, load, many, mapped, one, plain

__all__ = ["SCHEMA", "{base}", "{name}"]

'''

_RESOURCE = '''

class {base}(Resource):
    """Say how it is done, and give it to a provider as `{type}`."""

    def schema(self) -> Schema:
        return SCHEMA

    @abstractmethod
    def on_create(self, config: {name}.Config, plan: {name}.Plan, context: Context) -> {name}.State: ...

    @abstractmethod
    def on_read(self, state: {name}.State, context: Context) -> {name}.State | None:
        """None: it is gone."""

    @abstractmethod
    def on_update(
        self, config: {name}.Config, plan: {name}.Plan, state: {name}.State, context: Context
    ) -> {name}.State: ...

    @abstractmethod
    def on_delete(self, state: {name}.State, context: Context) -> None: ...

    def create(self, op: Create) -> trees.State:
        config, plan = load({name}.Config, op.config.value), load({name}.Plan, op.plan.value)
        return trees.State(dump(self.on_create(config, plan, op.context)))

    def read(self, op: Read) -> trees.State | None:
        found = self.on_read(load({name}.State, op.state.value), op.context)
        return None if found is None else trees.State(dump(found))

    def update(self, op: Update) -> trees.State:
        config, plan = load({name}.Config, op.config.value), load({name}.Plan, op.plan.value)
        return trees.State(dump(self.on_update(config, plan, load({name}.State, op.state.value), op.context)))

    def delete(self, op: Delete) -> None:
        self.on_delete(load({name}.State, op.state.value), op.context)
'''

_DATA_SOURCE = '''

class {base}(DataSource):
    """Say how it is done, and give it to a provider as `{type}`."""

    def schema(self) -> Schema:
        return SCHEMA

    @abstractmethod
    def on_read(self, config: {name}.Config, context: Context) -> {name}.State: ...

    def read(self, op: ReadData) -> trees.State:
        return trees.State(dump(self.on_read(load({name}.Config, op.config.value), op.context)))
'''

_STAGES = {
    "Config": "What the user wrote. Unknown, in a plan, where it hangs on another resource.",
    "Plan": "What it shall be. Unknown where the provider computes the value.",
    "State": "What it is.",
}


def generate(spec: Spec) -> dict[str, str]:
    """The modules by the names of their files."""
    files = {"__init__.py": f'"""The schemas of the provider {spec.name} as Python code."""\n'}
    resources, data_sources = module_names(spec.resources, spec.data_sources)
    for name, schema in spec.resources.items():
        files[f"{resources[name]}.py"] = _module(
            f"{spec.name}_{name}", name, schema, "The resource", ("Config", "Plan", "State")
        )
    for name, schema in spec.data_sources.items():
        code = _module(f"{spec.name}_{name}", name, schema, "The data source", ("Config", "State"))
        files[f"{data_sources[name]}.py"] = code
    return files


def _module(type_: str, name: str, schema: Schema, what: str, stages: tuple[str, ...]) -> str:
    is_data = what == "The data source"
    top, base = top_names(name, "Data" if is_data else "Resource")
    names = {"what": what, "type": type_, "base": base, "name": top}
    lines = [_HEAD.format(**names), f"SCHEMA = {schema_code(schema)}\n", "\n", f"class {top}:\n"]
    lines += [f'    """The values of `{type_}`."""\n']
    for stage in stages:
        lines += _class(stage, _STAGES[stage], schema.attributes, schema.blocks, f"{top}.{stage}", stage, 1)
    lines.append((_DATA_SOURCE if is_data else _RESOURCE).format(**names))
    return "".join(lines)


def _class(
    name: str,
    doc: str,
    attributes: Mapping[str, Attribute],
    blocks: Mapping[str, Block],
    scope: str,
    stage: str,
    depth: int,
) -> Iterator[str]:
    """The class of an object and, inside it, those of the objects in it."""
    pad = "    " * depth
    inner = {key: each.type for key, each in attributes.items() if isinstance(each.type, Nested)} | dict(blocks)
    fields = field_names({**attributes, **blocks})
    classes = class_names(inner, fields.values())
    yield f"\n{pad}@dataclass(frozen=True, slots=True, kw_only=True)\n{pad}class {name}:\n"
    yield f'{pad}    """{doc}"""\n'
    for key, made in classes.items():
        nested = inner[key]
        more = nested.blocks if isinstance(nested, Block) else {}
        yield from _class(made, f"`{key}`", nested.attributes, more, f"{scope}.{made}", stage, depth + 1)
    yield "\n"
    for key in sorted(fields):
        if key in classes:
            yield f"{pad}    {fields[key]}: {_nested(key, inner[key], f'{scope}.{classes[key]}', stage)}\n"
        else:
            yield f'{pad}    {fields[key]}: {_hint(attributes[key].value_type(), stage)} | None = plain("{key}")\n'
    if not fields:
        yield f"{pad}    pass\n"


def _nested(key: str, nested: Nested | Block, cls: str, stage: str) -> str:
    """The annotation and the value of a field of objects."""
    unknown = "" if stage == "State" else " | Unknown"
    match nested.nesting:
        case "single":
            hint, make = f"{cls}{unknown}", "one"
        case "map":
            hint, make = f"dict[str, {cls}{unknown}]{unknown}", "mapped"
        case _:
            hint, make = f"list[{cls}{unknown}]{unknown}", "many"
    return f'{hint} | None = {make}("{key}", lambda: {cls})'


def _hint(type_: Type, stage: str) -> str:
    unknown = "" if stage == "State" else " | Unknown"
    match type_:
        case ListOf(inner) | SetOf(inner):
            return f"list[{_hint(inner, stage)}]{unknown}"
        case MapOf(inner):
            return f"dict[str, {_hint(inner, stage)}]{unknown}"
    plain = {STRING: "str", BOOL: "bool", NUMBER: "int | float | Decimal"}
    known = next((text for each, text in plain.items() if each == type_), "")
    return f"{known}{unknown}" if known else "Any"
