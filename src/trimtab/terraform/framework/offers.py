"""What a provider offers, made when it is first used: an instance, its schema, its type. Made once, for all threads."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

from trimtab.terraform.framework.config_validators import ConfigValidator
from trimtab.terraform.framework.schema import RESERVED, Schema, SchemaError, check, leads
from trimtab.terraform.framework.types import ObjectOf
from trimtab.terraform.protocol.contract import InvalidRequest


class Described(Protocol):
    @property
    def config_validators(self) -> tuple[ConfigValidator, ...]: ...

    def schema(self) -> Schema: ...


T = TypeVar("T", bound=Described)


@dataclass(frozen=True, slots=True)
class Offer(Generic[T]):
    name: str
    thing: T
    schema: Schema
    type: ObjectOf


class Offers(Generic[T]):
    def __init__(self, factories: Mapping[str, Callable[[], T]], reserved: frozenset[str] = RESERVED) -> None:
        self._factories = factories
        self._reserved = reserved
        self._made: dict[str, Offer[T]] = {}
        self._lock = threading.RLock()

    def names(self) -> list[str]:
        return sorted(self._factories)

    def __iter__(self) -> Iterator[Offer[T]]:
        return (self[name] for name in self.names())

    def __getitem__(self, name: str) -> Offer[T]:
        with self._lock:
            if name not in self._made:
                self._made[name] = self._make(name)
            return self._made[name]

    def _make(self, name: str) -> Offer[T]:
        if name not in self._factories:
            raise InvalidRequest(f"this provider has no {name!r}")
        thing = self._factories[name]()
        return offer(name, thing, self._reserved)


def offer(name: str, thing: T, reserved: frozenset[str] = RESERVED) -> Offer[T]:
    """SchemaError where the schema is wrong, or a rule speaks of a place that is not in it."""
    schema = thing.schema()
    type_ = schema.value_type()
    try:
        check(schema, reserved)
        for rule in thing.config_validators:
            for place in rule.places():
                if not leads(place, type_):
                    raise SchemaError(f"{type(rule).__name__}: there is no {place}")
    except SchemaError as error:
        raise SchemaError(f"{name}: {error}") from None
    return Offer(name, thing, schema, type_)


def name_of(request: dict[str, Any], field: str = "type_name") -> str:
    name = request.get(field, "")
    if not isinstance(name, str) or not name:
        raise InvalidRequest(f"{field} is missing")
    return name
