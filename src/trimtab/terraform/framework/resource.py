"""Managed resources: what Terraform creates, reads, updates, deletes and imports.

Each operation is given exactly the data that exist for it, as an object of its own: there is no plan in `Read` and no
prior state in `Create`, so that the wrong one cannot be reached. A body never meets an unknown value, except in `plan`
where the value is still to be computed.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from trimtab.terraform.framework.config_validators import ConfigValidator
from trimtab.terraform.framework.context import Context
from trimtab.terraform.framework.diagnostics import Failed
from trimtab.terraform.framework.paths import Path, path
from trimtab.terraform.framework.schema import Schema
from trimtab.terraform.framework.trees import Config, Plan, State
from trimtab.terraform.framework.types import STRING, Type

Private = dict[str, Any]
"""JSON that is kept beside the state and shown to nobody: change it in place."""


@dataclass(frozen=True, slots=True)
class PlanCreate:
    config: Config
    plan: Plan
    private: Private
    context: Context


@dataclass(frozen=True, slots=True)
class PlanUpdate:
    config: Config
    plan: Plan
    state: State
    private: Private
    context: Context
    replaced: list[Path] = field(default_factory=list)

    def replace(self, at: str | Path) -> None:
        """The change at this path needs a new resource."""
        self.replaced.append(path(at))


@dataclass(frozen=True, slots=True)
class PlanDelete:
    state: State
    private: Private
    context: Context


@dataclass(frozen=True, slots=True)
class Create:
    config: Config
    plan: Plan
    private: Private
    context: Context


@dataclass(frozen=True, slots=True)
class Read:
    state: State
    private: Private
    context: Context


@dataclass(frozen=True, slots=True)
class Update:
    config: Config
    plan: Plan
    state: State
    private: Private
    context: Context


@dataclass(frozen=True, slots=True)
class Delete:
    state: State
    private: Private
    context: Context


@dataclass(frozen=True, slots=True)
class Import:
    id: str
    """What the user gave to `terraform import`; empty when he gave an identity."""
    identity: Mapping[str, Any] | None
    private: Private
    context: Context


@dataclass(frozen=True, slots=True)
class Move:
    """State of another type, perhaps of another provider, that shall become state of this one."""

    source_provider: str
    source_type: str
    source_version: int
    source_state: dict[str, Any]
    source_private: bytes
    private: Private
    context: Context


@dataclass(frozen=True, slots=True)
class IdentityAttribute:
    """A part of what tells one object from all others."""

    path: str
    """Where it is in the state."""
    type: Type = STRING
    required: bool = True
    """Whether an import by identity must give it."""
    description: str = ""


Upgrader = Callable[[dict[str, Any]], dict[str, Any]]
Mover = Callable[[Move], State | None]


class Resource(ABC):
    """Made once for a process: keep nothing in it that belongs to one object."""

    identity: Mapping[str, IdentityAttribute] = {}
    identity_version: int = 0
    identity_upgraders: Mapping[int, Upgrader] = {}
    config_validators: tuple[ConfigValidator, ...] = ()
    upgraders: Mapping[int, Upgrader] = {}
    """From the version that is the key to the next, on the JSON of the state."""
    forgiving: bool = False
    """Whether a value in a stored state that does not fit the schema becomes null, with a warning, rather than an error."""
    movers: tuple[Mover, ...] = ()
    """Tried in turn; None says: not mine."""

    @abstractmethod
    def schema(self) -> Schema: ...

    def validate(self, config: Config, context: Context) -> None:  # noqa: B027 - optional
        """What neither attribute validators nor config validators can say. Values may be unknown."""

    def plan(self, op: PlanCreate | PlanUpdate | PlanDelete) -> Plan | None:
        """A last word on the plan that was made of config and state; None leaves it."""
        return None

    @abstractmethod
    def create(self, op: Create) -> State: ...

    @abstractmethod
    def read(self, op: Read) -> State | None:
        """None: it is gone."""

    def update(self, op: Update) -> State:
        raise Failed("Update not supported", "This resource can only be replaced.")

    @abstractmethod
    def delete(self, op: Delete) -> None:
        """Returns when it is gone; that it was gone before is no error."""

    def import_state(self, op: Import) -> State:
        raise Failed("Import not supported", "This resource cannot be imported.")
