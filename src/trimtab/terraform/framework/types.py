"""The types of Terraform values: what an attribute holds, a function takes, a wire message carries.

They are data. `json()` is the form in which schemas name a type (`"string"`, `["list", "string"]`), and `parse` reads it
back; what may be *in* a value of a type is said in values.py and encoding.py.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

DEEPEST = 64
"""A type that a peer sends may not nest deeper than this."""


class Type(ABC):
    """A type of Terraform's type system."""

    __slots__ = ()

    @abstractmethod
    def json(self) -> Any:
        """The form that schemas and dynamic values carry."""


@dataclass(frozen=True, slots=True)
class Primitive(Type):
    name: str

    def json(self) -> Any:
        return self.name


STRING = Primitive("string")
NUMBER = Primitive("number")
BOOL = Primitive("bool")
DYNAMIC = Primitive("dynamic")
"""A value that brings its type along: see `values.Typed`."""


@dataclass(frozen=True, slots=True)
class ListOf(Type):
    element: Type

    def json(self) -> Any:
        return ["list", self.element.json()]


@dataclass(frozen=True, slots=True)
class SetOf(Type):
    """Elements without order; a value is a Python list, because elements need not be hashable."""

    element: Type

    def json(self) -> Any:
        return ["set", self.element.json()]


@dataclass(frozen=True, slots=True)
class MapOf(Type):
    element: Type

    def json(self) -> Any:
        return ["map", self.element.json()]


@dataclass(frozen=True, slots=True)
class ObjectOf(Type):
    attributes: Mapping[str, Type]

    def json(self) -> Any:
        return ["object", {name: self.attributes[name].json() for name in sorted(self.attributes)}]


@dataclass(frozen=True, slots=True)
class TupleOf(Type):
    elements: tuple[Type, ...]

    def json(self) -> Any:
        return ["tuple", [element.json() for element in self.elements]]


_PRIMITIVES = {"string": STRING, "number": NUMBER, "bool": BOOL, "dynamic": DYNAMIC}
_COLLECTIONS: dict[str, Callable[[Type], Type]] = {"list": ListOf, "set": SetOf, "map": MapOf}


def parse(form: Any, depth: int = DEEPEST) -> Type:
    """The type of its JSON form; ValueError for anything else."""
    if depth <= 0:
        raise ValueError("the type is nested too deeply")
    if isinstance(form, str) and form in _PRIMITIVES:
        return _PRIMITIVES[form]
    if isinstance(form, list) and len(form) in (2, 3) and isinstance(form[0], str):
        name, inner = form[0], form[1]
        if name in _COLLECTIONS and len(form) == 2:
            return _COLLECTIONS[name](parse(inner, depth - 1))
        if name == "object" and isinstance(inner, dict):  # a third member names optional attributes: only HCL minds
            return ObjectOf({str(key): parse(value, depth - 1) for key, value in inner.items()})
        if name == "tuple" and isinstance(inner, list) and len(form) == 2:
            return TupleOf(tuple(parse(value, depth - 1) for value in inner))
    raise ValueError(f"not a type: {form!r}")


def holds_dynamic(type_: Type) -> bool:
    """Whether a value of the type may bring types of its own along."""
    match type_:
        case ListOf(inner) | SetOf(inner) | MapOf(inner):
            return holds_dynamic(inner)
        case ObjectOf(attributes):
            return any(holds_dynamic(inner) for inner in attributes.values())
        case TupleOf(elements):
            return any(holds_dynamic(inner) for inner in elements)
        case _:
            return type_ is DYNAMIC or type_ == DYNAMIC
