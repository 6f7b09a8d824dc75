"""Resources at run time, from a document alone: the schemas are read, and what they stand for is kept by a `Store`.

A store is the part that only its writer knows: how an object is made, found, changed and deleted. It deals in plain values
by attribute names and never meets an unknown one. What it does not answer for keeps what was planned; a computed attribute
that it leaves out is null.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from trimtab.terraform.framework.context import Context
from trimtab.terraform.framework.data_source import DataSource, ReadData
from trimtab.terraform.framework.diagnostics import Failed
from trimtab.terraform.framework.provider import Provider
from trimtab.terraform.framework.resource import Create, Delete, Import, Read, Resource, Update
from trimtab.terraform.framework.schema import Schema
from trimtab.terraform.framework.trees import Config, State
from trimtab.terraform.framework.values import UNKNOWN
from trimtab.terraform.spec.reading import Spec

Values = dict[str, Any]


class Store(ABC):
    """What resources of one type stand for."""

    @abstractmethod
    def create(self, values: Values, context: Context) -> Values: ...

    @abstractmethod
    def read(self, values: Values, context: Context) -> Values | None:
        """Of the object that these values describe; None: it is gone."""

    @abstractmethod
    def update(self, values: Values, before: Values, context: Context) -> Values: ...

    @abstractmethod
    def delete(self, values: Values, context: Context) -> None: ...

    def find(self, identifier: str, context: Context) -> Values | None:
        """Of `terraform import`; None: there is none."""
        raise Failed("Import not supported", "This resource cannot be imported.")

    def look_up(self, config: Values, context: Context) -> Values:
        """Of a data source."""
        found = self.read(config, context)
        if found is None:
            raise Failed("Not found", "There is no object as the data source describes it.")
        return found


class SpecResource(Resource):
    def __init__(self, schema: Schema, store: Store) -> None:
        self._schema, self._store = schema, store

    def schema(self) -> Schema:
        return self._schema

    def create(self, op: Create) -> State:
        planned = op.plan.value
        return self._state(self._store.create(known(planned), op.context), planned)

    def read(self, op: Read) -> State | None:
        found = self._store.read(op.state.value, op.context)
        return None if found is None else self._state(found, op.state.value)

    def update(self, op: Update) -> State:
        planned = op.plan.value
        return self._state(self._store.update(known(planned), op.state.value, op.context), planned)

    def delete(self, op: Delete) -> None:
        self._store.delete(op.state.value, op.context)

    def import_state(self, op: Import) -> State:
        found = self._store.find(op.id, op.context)
        if found is None:
            raise Failed("Nothing to import", f"There is no object with the id {op.id!r}.")
        return self._state(found, {})

    def _state(self, answered: Mapping[str, Any], before: Mapping[str, Any]) -> State:
        names = self._schema.value_type().attributes
        wrong = sorted(set(answered) - set(names))
        if wrong:
            raise Failed("Unknown attributes", f"The store answers with {', '.join(wrong)}, which the schema has not.")
        return State({name: known(answered[name] if name in answered else before.get(name)) for name in names})


class SpecData(DataSource):
    def __init__(self, schema: Schema, store: Store) -> None:
        self._schema, self._store = schema, store

    def schema(self) -> Schema:
        return self._schema

    def read(self, op: ReadData) -> State:
        found = self._store.look_up(op.config.value, op.context)
        names = self._schema.value_type().attributes
        return State({name: found.get(name, op.config.value.get(name)) for name in names})


class SpecProvider(Provider):
    """A provider whose schemas are those of a document. `stores` has one for each type, by its name in the document."""

    def __init__(
        self,
        spec: Spec,
        version: str,
        stores: Mapping[str, Store],
        configure: Callable[[Config, Context], Any] | None = None,
    ) -> None:
        super().__init__(spec.name, version)
        missing = sorted({*spec.resources, *spec.data_sources} - set(stores))
        if missing:
            raise ValueError(f"there is no store for {', '.join(missing)}")
        self._spec, self._stores, self._configure = spec, stores, configure

    def schema(self) -> Schema:
        return self._spec.provider

    def configure(self, config: Config, context: Context) -> Any:
        return self._configure(config, context) if self._configure is not None else None

    def resources(self) -> Mapping[str, Callable[[], Resource]]:
        return {
            f"{self.name}_{name}": partial(SpecResource, self._spec.resources[name], self._stores[name])
            for name in self._spec.resources
        }

    def data_sources(self) -> Mapping[str, Callable[[], DataSource]]:
        return {
            f"{self.name}_{name}": partial(SpecData, self._spec.data_sources[name], self._stores[name])
            for name in self._spec.data_sources
        }


def known(value: Any) -> Any:
    """The value with null for what is yet to be computed."""
    if value is UNKNOWN:
        return None
    if isinstance(value, dict):
        return {key: known(item) for key, item in value.items()}
    if isinstance(value, list):
        return [known(item) for item in value]
    return value
