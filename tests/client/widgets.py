"""A kind with a class, for tests of clients."""

from __future__ import annotations

from msgspec import UNSET, UnsetType

from trimtab.model.kind import Column
from trimtab.model.resource import Resource, Spec
from trimtab.model.scheme import Scheme


class WidgetSpec(Spec):
    size: int
    colour: str = "grey"
    parts: dict[str, str] | UnsetType = UNSET


class WidgetStatus(Spec):
    made: int | UnsetType = UNSET


class Widget(
    Resource,
    group="client.example.com",
    version="v1",
    plural="widgets",
    short=("wd",),
    columns=(Column("Size", ".spec.size", type="integer"),),
):
    spec: WidgetSpec
    status: WidgetStatus | UnsetType = UNSET


def scheme() -> Scheme:
    made = Scheme()
    made.register(Widget)
    return made
