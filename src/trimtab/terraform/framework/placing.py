"""Where in the source a diagnostic points: a path that Terraform can follow to a line.

Terraform follows blocks to any depth. Into an attribute's expression it goes one step, by an index or a key, until its
version 1.15; a longer path makes it fall back to the first line of the resource. So a path is cut to what all versions
can follow, and an attribute inside an object is given as the key that it is in the source. The text of a diagnostic names
the whole path. Elements of sets have no place: a path ends at the set.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trimtab.terraform.framework.blocks import Block
from trimtab.terraform.framework.paths import Index, Key, Name, Path, Step
from trimtab.terraform.framework.schema import Schema, clipped


def source_path(schema: Schema, path: Path) -> dict[str, Any]:
    """The protocol's AttributePath of a diagnostic."""
    return {"steps": _steps(schema.blocks, clipped(path, schema.value_type()).steps)}


def _steps(blocks: Mapping[str, Block], steps: tuple[Step, ...]) -> list[dict[str, Any]]:
    if not steps or not isinstance(steps[0], Name):
        return []
    first, rest = {"attribute_name": steps[0].name}, steps[1:]
    block = blocks.get(steps[0].name)
    if block is None:
        return [first, *_step(rest)]
    if block.nesting == "single":
        return [first, *_steps(block.blocks, rest)]
    return [first, *_step(rest), *_steps(block.blocks, rest[1:])]


def _step(steps: tuple[Step, ...]) -> list[dict[str, Any]]:
    match steps[:1]:
        case (Index(index),):
            return [{"element_key_int": index}]
        case (Key(key),) | (Name(key),):
            return [{"element_key_string": key}]
    return []
