"""What generated classes are made of: fields that know their names in Terraform, and the way from trees to objects and
back.

A class stands for one object of a schema. Its fields are values as the framework has them, or objects of further classes
where attributes are nested.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, TypeVar

from trimtab.terraform.framework.values import UNKNOWN

T = TypeVar("T")


def plain(name: str) -> Any:
    """A field that holds a value of the attribute with this name."""
    return dataclasses.field(default=None, metadata={"name": name})


def one(name: str, inner: Callable[[], type]) -> Any:
    return dataclasses.field(default=None, metadata={"name": name, "inner": inner, "nesting": "single"})


def many(name: str, inner: Callable[[], type]) -> Any:
    """Of a list or a set."""
    return dataclasses.field(default=None, metadata={"name": name, "inner": inner, "nesting": "list"})


def mapped(name: str, inner: Callable[[], type]) -> Any:
    return dataclasses.field(default=None, metadata={"name": name, "inner": inner, "nesting": "map"})


def load(cls: type[T], values: dict[str, Any]) -> T:
    """An object of values by attribute names."""
    given = {}
    for field in dataclasses.fields(cls):  # type: ignore[arg-type]
        given[field.name] = _load(field.metadata, values.get(field.metadata["name"]))
    return cls(**given)


def _load(said: Any, value: Any) -> Any:
    if value is None or value is UNKNOWN or "inner" not in said:
        return value
    inner = said["inner"]()
    if said["nesting"] == "single":
        return load(inner, value)
    if said["nesting"] == "list":
        return [item if item is None or item is UNKNOWN else load(inner, item) for item in value]
    return {key: item if item is None or item is UNKNOWN else load(inner, item) for key, item in value.items()}


def dump(value: Any) -> Any:
    """The values of an object, by attribute names; of lists and maps of objects too."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type) and _generated(value):
        return {each.metadata["name"]: dump(getattr(value, each.name)) for each in dataclasses.fields(value)}
    if isinstance(value, list):
        return [dump(item) for item in value]
    if isinstance(value, dict):
        return {key: dump(item) for key, item in value.items()}
    return value


def _generated(value: Any) -> bool:
    return all("name" in each.metadata for each in dataclasses.fields(value))
