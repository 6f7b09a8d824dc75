"""Blocks: the older way to nest, `network { … }` rather than `network = { … }`.

A list, set or map of blocks is never null: no block is an empty collection. A single block is null when it is left out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from trimtab.terraform.framework.attributes import Attribute, collected
from trimtab.terraform.framework.types import ObjectOf, Type

BlockNesting = Literal["single", "list", "set", "map"]


@dataclass(frozen=True, slots=True)
class Block:
    attributes: Mapping[str, Attribute] = field(default_factory=dict)
    blocks: Mapping[str, Block] = field(default_factory=dict)
    nesting: BlockNesting = "list"
    min_items: int = 0
    max_items: int = 0
    """0: as many as one likes."""
    description: str = ""
    deprecated: str = ""

    def object_type(self) -> ObjectOf:
        return body_type(self.attributes, self.blocks)

    def value_type(self) -> Type:
        return collected(self.object_type(), self.nesting)


def body_type(attributes: Mapping[str, Attribute], blocks: Mapping[str, Block]) -> ObjectOf:
    """The type of the object that attributes and blocks make together."""
    types: dict[str, Type] = {name: attribute.value_type() for name, attribute in attributes.items()}
    types.update((name, block.value_type()) for name, block in blocks.items())
    return ObjectOf(types)
