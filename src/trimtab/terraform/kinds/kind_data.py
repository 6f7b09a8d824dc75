"""Every kind as two data sources: one object by its name, and many by place and labels."""

from __future__ import annotations

from typing import Any

from trimtab.terraform.framework.context import Context
from trimtab.terraform.framework.data_source import DataSource, ReadData
from trimtab.terraform.framework.diagnostics import Failed
from trimtab.terraform.framework.schema import Schema
from trimtab.terraform.framework.trees import State
from trimtab.terraform.kinds.api import ApiError, Unreachable, collection_path
from trimtab.terraform.kinds.attributes import plural_schema, single_schema
from trimtab.terraform.kinds.client import client_of
from trimtab.terraform.kinds.definition import Definition
from trimtab.terraform.kinds.fitting import Unfit, tell, value_of
from trimtab.terraform.kinds.lineage import without_noise
from trimtab.terraform.kinds.patience import Interrupted
from trimtab.terraform.kinds.telling import told
from trimtab.terraform.kinds.waiting import Place

MOST = 10_000
"""Objects that one data source holds: more belong into a selection."""


class KindData(DataSource):
    """One object."""

    def __init__(self, definition: Definition) -> None:
        self._definition = definition

    def schema(self) -> Schema:
        return single_schema(self._definition)

    def read(self, op: ReadData) -> State:
        client = client_of(op.context)
        word = self._definition.place
        meta = op.config["metadata"]
        place = Place(self._definition, meta["name"], (meta.get(word) or client.project) if word else "")
        try:
            document = client.api.find(place.path)
            if document is None:
                raise Failed(f"{place} does not exist", "", "metadata.name")
            unfit: list[Unfit] = []
            value = value_of(self._definition.root, without_noise(document), unfit)
            tell(unfit, place, op.context)
            return State(value)
        except (ApiError, Unreachable, Interrupted) as error:
            raise _failed(error, f"{place} cannot be read", self._definition, op.context) from error


class KindsData(DataSource):
    """Many objects."""

    def __init__(self, definition: Definition) -> None:
        self._definition = definition

    def schema(self) -> Schema:
        return plural_schema(self._definition)

    def read(self, op: ReadData) -> State:
        client = client_of(op.context)
        one = self._definition
        place = (op.config.get(one.place) or "") if one.place else ""
        selector = op.config.get("label_selector") or ""
        query = {"labelSelector": selector} if selector else {}
        items: list[dict[str, Any]] = []
        told_of = False  # one object stands for all: they are of one schema
        try:
            for document in client.api.list(collection_path(one.group, one.version, one.plural, place), query):
                if len(items) == MOST:
                    raise Failed(f"More than {MOST} {one.plural}", "Select fewer by labels or by place.")
                unfit: list[Unfit] = []
                items.append(value_of(one.root, without_noise(document), unfit))
                if not told_of:
                    tell(unfit, items[-1]["metadata"]["name"], op.context)
                    told_of = bool(unfit)
        except (ApiError, Unreachable, Interrupted) as error:
            raise _failed(error, f"{one.plural} cannot be listed", one, op.context) from error
        items.sort(key=lambda item: (str(item["metadata"].get(one.place) or ""), str(item["metadata"]["name"])))
        return State({**op.config.value, "items": items})


def _failed(error: Exception, what: str, definition: Definition, context: Context) -> Failed:
    return told(error, what, definition, None, context.diagnostics)
