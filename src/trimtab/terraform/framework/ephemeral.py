"""Ephemeral resources: secrets and sessions that exist while Terraform runs, and are in no plan and no state."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from trimtab.terraform.framework.config_validators import ConfigValidator
from trimtab.terraform.framework.context import Context
from trimtab.terraform.framework.schema import Schema
from trimtab.terraform.framework.trees import Config

if TYPE_CHECKING:
    from datetime import datetime


@dataclass(frozen=True, slots=True)
class Open:
    config: Config
    context: Context


@dataclass(frozen=True, slots=True)
class Renew:
    private: dict[str, Any]
    context: Context


@dataclass(frozen=True, slots=True)
class Close:
    private: dict[str, Any]
    context: Context


@dataclass(frozen=True, slots=True)
class Opened:
    """`private` is handed to renew and close; Terraform calls renew before `renew_at` has passed."""

    value: Mapping[str, Any]
    renew_at: datetime | None = None
    private: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Renewed:
    renew_at: datetime | None = None
    private: dict[str, Any] = field(default_factory=dict)


class Ephemeral(ABC):
    config_validators: tuple[ConfigValidator, ...] = ()

    @abstractmethod
    def schema(self) -> Schema: ...

    def validate(self, config: Config, context: Context) -> None:  # noqa: B027 - optional
        """What neither attribute validators nor config validators can say. Values may be unknown."""

    @abstractmethod
    def open(self, op: Open) -> Opened: ...

    def renew(self, op: Renew) -> Renewed:
        """Called only when `renew_at` was given."""
        return Renewed(private=op.private)

    def close(self, op: Close) -> None:  # noqa: B027 - optional
        """Let go of what open took."""
