"""A page for a resource or a data source: what it is, an example, every attribute, how to import it.

The form is that of the pages in Terraform's registry, so that its readers and tools find what they look for: attributes by
who sets them, each nested object in a section of its own that its attribute links to. What a kind says of itself is text
that anybody may have written: no page runs it, and no terminal obeys it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from trimtab.terraform.docs.examples import example
from trimtab.terraform.framework.attributes import Attribute, Nested
from trimtab.terraform.framework.blocks import Block
from trimtab.terraform.framework.schema import Schema
from trimtab.terraform.framework.types import BOOL, DYNAMIC, NUMBER, STRING, ListOf, MapOf, ObjectOf, SetOf, Type

RESOURCE, DATA_SOURCE = "Resource", "Data Source"
_UNSEEN = re.compile(r"[\x00-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")
"""Control characters, and those that turn the direction of what follows."""
_CODE = re.compile(r"((?<![`\\])`[^`]+`(?!`))")


@dataclass(frozen=True, slots=True)
class Subject:
    """What a page is about."""

    type: str
    what: str
    schema: Schema
    kind: str = ""
    """In the API: `Cluster of infra.trimtab.dev/v3`."""
    group: str = ""
    import_ids: tuple[str, ...] = ()
    """What `terraform import` takes, such as `project/name`."""


def page(subject: Subject) -> str:
    about = _plain(subject.schema.description) or subject.kind or subject.type
    lines = ["---", f'page_title: "{subject.type} {subject.what}"', f'subcategory: "{subject.group}"']
    lines += ["description: |-", f"  {about}", "---", "", f"# {subject.type} ({subject.what})", "", about]
    if subject.kind:
        lines += ["", f"In the API: {subject.kind}."]
    if subject.schema.deprecated:
        lines += ["", f"**Deprecated:** {_plain(subject.schema.deprecated)}"]
    block = "resource" if subject.what == RESOURCE else "data"
    lines += ["", "## Example Usage", "", "```terraform", example(block, subject.type, subject.schema), "```"]
    lines += ["", "## Schema", *_body(subject.schema.attributes, subject.schema.blocks, "")]
    if subject.import_ids:
        lines += ["", "## Import", "", "```shell"]
        lines += [f"terraform import {subject.type}.example {each}" for each in subject.import_ids]
        lines += ["```"]
    return "\n".join(lines) + "\n"


def _body(attributes: Mapping[str, Attribute], blocks: Mapping[str, Block], path: str) -> Iterator[str]:
    parts: dict[str, list[str]] = {"Required": [], "Optional": [], "Read-Only": []}
    for name in sorted({*attributes, *blocks}):
        here = f"{path}.{name}" if path else name
        if name in blocks:
            parts["Optional"].append(_block_line(name, blocks[name], here))
        else:
            parts[_part(attributes[name])].append(_line(name, attributes[name], here))
    for title, lines in parts.items():
        if lines:
            yield from (
                "",
                f"{'###' if not path else '**'}{' ' if not path else ''}{title}{'' if not path else '**'}",
                "",
            )
            yield from lines
    for name in sorted({*attributes, *blocks}):
        here = f"{path}.{name}" if path else name
        nested = blocks[name] if name in blocks else attributes[name].type
        if isinstance(nested, Nested | Block):
            yield from ("", f'<a id="{_anchor(here)}"></a>', f"### Nested Schema for `{here}`")
            yield from _body(nested.attributes, nested.blocks if isinstance(nested, Block) else {}, here)


def _part(attribute: Attribute) -> str:
    if attribute.required:
        return "Required"
    return "Optional" if attribute.optional else "Read-Only"


def _line(name: str, attribute: Attribute, here: str) -> str:
    words = [_type(attribute.type)]
    words += [word for word, said in (("Sensitive", attribute.sensitive), ("Write-only", attribute.write_only)) if said]
    words += ["Deprecated"] if attribute.deprecated else []
    return _item(name, ", ".join(words), f"{attribute.description} {attribute.deprecated}", here, attribute.type)


def _block_line(name: str, block: Block, here: str) -> str:
    form = "Block" if block.nesting == "single" else f"Block {block.nesting.title()}"
    return _item(name, form, f"{block.description} {block.deprecated}", here, block)


def _item(name: str, words: str, description: str, here: str, nested: object) -> str:
    text = _plain(description)
    more = f" (see [below](#{_anchor(here)}))" if isinstance(nested, Nested | Block) else ""
    return f"- `{name}` ({words}){f' {text}' if text else ''}{more}"


def _plain(text: str) -> str:
    """One line that Markdown shows as it is: `<` begins no tag, but for what is code."""
    line = " ".join(_UNSEEN.sub(" ", text).split())
    parts = enumerate(_CODE.split(line))  # code and what is between it, in turns
    return "".join(part if at % 2 else part.replace("<", "&lt;") for at, part in parts)


def _anchor(path: str) -> str:
    return f"nested--{path.replace('.', '--')}"


def _type(type_: Type | Nested) -> str:
    if isinstance(type_, Nested):
        return "Attributes" if type_.nesting == "single" else f"Attributes {type_.nesting.title()}"
    match type_:
        case ListOf(inner):
            return f"List of {_type(inner)}"
        case SetOf(inner):
            return f"Set of {_type(inner)}"
        case MapOf(inner):
            return f"Map of {_type(inner)}"
        case ObjectOf():
            return "Object"
    names: dict[Type, str] = {STRING: "String", NUMBER: "Number", BOOL: "Boolean", DYNAMIC: "Dynamic"}
    return names.get(type_, "Dynamic")
