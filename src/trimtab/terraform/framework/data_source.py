"""Data sources: what is only read."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

from trimtab.terraform.framework.config_validators import ConfigValidator
from trimtab.terraform.framework.context import Context
from trimtab.terraform.framework.schema import Schema
from trimtab.terraform.framework.trees import Config, State


@dataclass(frozen=True, slots=True)
class ReadData:
    config: Config
    context: Context


class DataSource(ABC):
    config_validators: tuple[ConfigValidator, ...] = ()

    @abstractmethod
    def schema(self) -> Schema: ...

    def validate(self, config: Config, context: Context) -> None:  # noqa: B027 - optional
        """What neither attribute validators nor config validators can say. Values may be unknown."""

    @abstractmethod
    def read(self, op: ReadData) -> State: ...
