"""A provider: a name, a configuration, and what it offers.

All that it offers is named at once and made late: a mapping from the full type name to a factory, called when the type is
first used. A provider of sixty large schemas starts as fast as one of one.
"""

from __future__ import annotations

from abc import ABC
from collections.abc import Callable, Mapping
from typing import Any

from trimtab.terraform.framework.config_validators import ConfigValidator
from trimtab.terraform.framework.context import Context
from trimtab.terraform.framework.data_source import DataSource
from trimtab.terraform.framework.ephemeral import Ephemeral
from trimtab.terraform.framework.function import Function
from trimtab.terraform.framework.resource import Resource
from trimtab.terraform.framework.schema import Schema
from trimtab.terraform.framework.trees import Config


class Provider(ABC):  # noqa: B024 - a provider of functions alone needs none of the rest
    def __init__(self, name: str, version: str) -> None:
        self.name = name
        self.version = version

    config_validators: tuple[ConfigValidator, ...] = ()

    def schema(self) -> Schema:
        """Of the `provider` block."""
        return Schema({})

    def validate(self, config: Config, context: Context) -> None:  # noqa: B027 - optional
        """What neither attribute validators nor config validators can say. Values may be unknown."""

    def configure(self, config: Config, context: Context) -> Any:
        """The client that operations find as `op.context.client`. Values may be unknown while planning."""
        return None

    def resources(self) -> Mapping[str, Callable[[], Resource]]:
        return {}

    def data_sources(self) -> Mapping[str, Callable[[], DataSource]]:
        return {}

    def functions(self) -> Mapping[str, Callable[[], Function]]:
        return {}

    def ephemerals(self) -> Mapping[str, Callable[[], Ephemeral]]:
        return {}
