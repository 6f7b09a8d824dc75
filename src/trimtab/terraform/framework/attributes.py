"""Attributes: the arguments and results of a resource, by name.

An attribute is set by the user (`required`, `optional`), by the provider (`computed`), or by either (both). A `Nested`
type gives each inner attribute all of this for itself, at any depth.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from trimtab.terraform.framework.defaults import NONE
from trimtab.terraform.framework.types import ListOf, MapOf, ObjectOf, SetOf, Type
from trimtab.terraform.framework.values import whole

if TYPE_CHECKING:
    from trimtab.terraform.framework.modifiers import Modifier
    from trimtab.terraform.framework.validators import Validator

Nesting = Literal["single", "list", "set", "map"]


@dataclass(frozen=True, slots=True)
class Nested:
    """Objects with attributes of their own: one, or a list, a set or a map of them."""

    attributes: Mapping[str, Attribute]
    nesting: Nesting = "single"

    def object_type(self) -> ObjectOf:
        return ObjectOf({name: attribute.value_type() for name, attribute in self.attributes.items()})

    def value_type(self) -> Type:
        return collected(self.object_type(), self.nesting)


@dataclass(frozen=True, slots=True)
class Attribute:
    type: Type | Nested
    required: bool = field(default=False, kw_only=True)
    optional: bool = field(default=False, kw_only=True)
    computed: bool = field(default=False, kw_only=True)
    sensitive: bool = field(default=False, kw_only=True)
    write_only: bool = field(default=False, kw_only=True)
    """The user gives it, the provider may read it from the configuration, and it is in no plan and no state."""
    description: str = field(default="", kw_only=True)
    deprecated: str = field(default="", kw_only=True)
    """What to use instead; a user who sets the attribute is warned with it."""
    default: Any = field(default=NONE, kw_only=True)
    modifiers: tuple[Modifier, ...] = field(default=(), kw_only=True)
    validators: tuple[Validator, ...] = field(default=(), kw_only=True)
    equal: Callable[[Any, Any], bool] | None = field(default=None, kw_only=True)
    """Whether two spellings mean the same (durations, JSON, quantities): then the spelling that is in place is kept."""

    def __post_init__(self) -> None:
        if self.default is not NONE:  # a value that the user did not write is computed, says the protocol
            object.__setattr__(self, "optional", True)
            object.__setattr__(self, "computed", True)

    def value_type(self) -> Type:
        return self.type.value_type() if isinstance(self.type, Nested) else self.type


def means_same(attribute: Attribute, a: Any, b: Any) -> bool:
    """Whether two values are spellings of one. Where `equal` cannot read one of them they are not."""
    if attribute.equal is None or a is None or b is None or not whole(a) or not whole(b):
        return False
    try:
        return attribute.equal(a, b)
    except ValueError:
        return False


def collected(inner: Type, nesting: str) -> Type:
    """The type of objects that are nested so."""
    match nesting:
        case "list":
            return ListOf(inner)
        case "set":
            return SetOf(inner)
        case "map":
            return MapOf(inner)
        case _:
            return inner
