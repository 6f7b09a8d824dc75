"""The committed facts about built-in kinds, read when they are first asked for.

`definitions.json` holds one definition a line; each is parsed on its own, so that serving ConfigMaps never pays for the
schema of a Pod. `scripts/builtin_tables.py` writes these files.
"""

from __future__ import annotations

import functools
import gzip
import importlib.resources
import re
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from trimtab.model.kind import Kind
from trimtab.model.schema import Schema

PREFIX = "#/definitions/"


class Definitions(Mapping[str, Any]):
    """Schemas by their OpenAPI names: `io.k8s.api.core.v1.Pod`."""

    def __init__(self) -> None:
        self._parsed: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in self._parsed:
            self._parsed[name] = msgspec.json.decode(_lines()[name])
        return self._parsed[name]

    def references(self, name: str) -> list[str]:
        """The definitions that one refers to, found without parsing it."""
        return _REFERENCE.findall(bytes(_lines()[name]).decode())

    def __iter__(self) -> Iterator[str]:
        return iter(_lines())

    def __len__(self) -> int:
        return len(_lines())


_REFERENCE = re.compile(r'"#/definitions/([^"]+)"')
DEFINITIONS = Definitions()


def schema(name: str) -> Schema:
    """The schema of one kind. Nothing is read before its first use."""
    return Schema(lambda: DEFINITIONS[name], native=True, definitions=DEFINITIONS)


def definition_of(kind: Kind) -> str:
    """The OpenAPI name of a kind's schema."""
    if kind.group == "apiextensions.k8s.io":
        return f"io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.{kind.version}.{kind.kind}"
    if kind.group == "apiregistration.k8s.io":
        return f"io.k8s.kube-aggregator.pkg.apis.apiregistration.{kind.version}.{kind.kind}"
    return f"io.k8s.api.{kind.group.split('.')[0] or 'core'}.{kind.version}.{kind.kind}"


@functools.cache
def descriptions() -> dict[str, Any]:
    """Prose by definition: `description`, `fields` by name, `required`."""
    data = (importlib.resources.files(__package__) / "descriptions.json.gz").read_bytes()
    prose: dict[str, Any] = msgspec.json.decode(gzip.decompress(data))
    return prose


@functools.cache
def defaults() -> dict[str, dict[str, Any]]:
    """By definition: `omits`, the fields that are absent when zero; `always`, those that are set when absent."""
    data = (importlib.resources.files(__package__) / "defaults.json").read_bytes()
    table: dict[str, dict[str, Any]] = msgspec.json.decode(data)
    return table


@functools.cache
def _lines() -> dict[str, msgspec.Raw]:
    data = (importlib.resources.files(__package__) / "definitions.json").read_bytes()
    return msgspec.json.decode(data, type=dict[str, msgspec.Raw])
