"""What all built-in kinds have in common: names, defaults that depend on other fields, and how ages are printed."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, ClassVar, Self

from trimtab.model.clock import Clock, SystemClock, parse_time
from trimtab.model.errors import FieldError
from trimtab.model.kind import Column, Kind, Scale
from trimtab.server.builtin.defaults import completed, completed_status
from trimtab.server.builtin.tables import definition_of, schema
from trimtab.server.strategy import Document, Strategy

NAME = Column("Name", ".metadata.name", format="name", description="Name must be unique within a namespace.")
AGE = Column("Age", ".metadata.creationTimestamp", description="When the object was created.")


class Native(Strategy):
    """A built-in kind. Subclasses say what is special: a hook that is not overridden changes nothing.

    `default` comes first and meets documents whose types nobody has checked yet; `prepare` comes after it.
    """

    native = True
    has_generation = False
    unconditional_update = True
    shown: ClassVar[tuple[Column, ...]] = (NAME, Column("Created At", ".metadata.creationTimestamp", "date"))
    clock: Clock = SystemClock()

    def default(self, obj: Document) -> None:
        """Makes a document what it is after Go has decoded, defaulted and encoded it."""
        completed(self.definition)(obj)
        self.complete(obj)

    def prepare(self, new: Document, old: Document | None, subresource: str) -> None:
        """A Go struct always has its status, however little is in it."""
        super().prepare(new, old, subresource)
        if self.kind.status:
            completed_status(self.definition)(new)

    def complete(self, obj: Document) -> None:
        """Sets what the real server sets in place of absent fields, where that depends on other fields."""

    @property
    def columns(self) -> tuple[Column, ...]:
        return self.shown

    def by(self, clock: Clock) -> Self:
        """The same strategy by another clock."""
        other = copy.copy(self)
        other.clock = clock
        return other

    @property
    def definition(self) -> str:
        """The OpenAPI name of this kind."""
        return definition_of(self.kind)

    def age(self, timestamp: Any) -> str:
        return age(timestamp, self.clock.now())

    def cells(self, obj: Document) -> list[Any] | None:
        """Name, what the kind shows, and age. Kinds that show other columns override this."""
        metadata = obj["metadata"]
        return [metadata.get("name", ""), *self.row(obj), self.age(metadata.get("creationTimestamp")), *self.wide(obj)]

    def row(self, obj: Document) -> Sequence[Any]:
        """The cells between name and age."""
        return ()

    def wide(self, obj: Document) -> Sequence[Any]:
        """The cells after age."""
        return ()

    def validate(self, new: Document, old: Document | None, subresource: str) -> Sequence[FieldError]:
        return ()


class Plain(Native):
    """A kind without columns of its own: the name, and when it was created."""

    def cells(self, obj: Document) -> list[Any] | None:
        return [obj["metadata"].get("name", ""), obj["metadata"].get("creationTimestamp")]


def kind(
    definition: str,
    plural: str,
    *,
    group: str = "",
    namespaced: bool = True,
    short: tuple[str, ...] = (),
    categories: tuple[str, ...] = (),
    status: bool = False,
    scale: Scale | None = None,
    singular: str = "",
) -> Kind:
    """A Kind from its OpenAPI name, whose last two parts are the version and the kind."""
    version, name = definition.split(".")[-2:]
    return Kind(
        group=group,
        version=version,
        kind=name,
        plural=plural,
        singular=singular,
        namespaced=namespaced,
        short_names=short,
        categories=categories,
        schema=schema(definition),
        status=status,
        scale=scale,
    )


def age(timestamp: Any, now: datetime) -> str:
    """How long ago, as `kubectl get` shows it: two or three significant figures."""
    if not timestamp:
        return "<unknown>"
    try:
        moment = parse_time(timestamp)
    except (ValueError, TypeError):
        return "<unknown>"
    return human_duration((now.astimezone(UTC) - moment).total_seconds())


def human_duration(elapsed: float) -> str:
    """`duration.HumanDuration` of apimachinery."""
    seconds = int(elapsed)
    if seconds < -1:
        return "<invalid>"
    if seconds < 0:
        return "0s"
    if seconds < 120:
        return f"{seconds}s"
    minutes, hours, days = seconds // 60, seconds // 3600, seconds // 86400
    if minutes < 10:
        return _two(minutes, "m", seconds % 60, "s")
    if minutes < 180:
        return f"{minutes}m"
    if hours < 8:
        return _two(hours, "h", minutes % 60, "m")
    if hours < 48:
        return f"{hours}h"
    if hours < 192:
        return _two(days, "d", hours % 24, "h")
    if days < 730:
        return f"{days}d"
    if days < 2920:
        return _two(days // 365, "y", days % 365, "d")
    return f"{days // 365}y"


def _two(big: int, unit: str, small: int, small_unit: str) -> str:
    return f"{big}{unit}{small}{small_unit}" if small else f"{big}{unit}"
