"""One object of a generated kind, read: what is ours in its spec, what is the service's, and what is remembered."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import UNSET, UnsetType

from trimtab.model.resource import Spec
from trimtab.model.scheme import Untyped
from trimtab.runtime.objects import is_deleting
from trimtab.systems.rest.model import CONTROL, Model
from trimtab.systems.rest.state import Parent, Policy, Status, Sync

FINALIZER = "rest.trimtab.dev/resource"
WAKE = "rest.trimtab.dev/wake"
"""An annotation: when someone told that the resource changed. Its value only has to be a new one."""


class Control(Spec):
    """The fields of the spec that are ours."""

    name: str = ""
    parent: Parent | UnsetType = UNSET
    parameters: dict[str, str] = msgspec.field(default_factory=dict)
    resource_id: str = msgspec.field(default="", name="resourceID")
    policy: Policy = Policy()


class Subject(msgspec.Struct, frozen=True, kw_only=True):
    """An object at one revision. `body` is what it wants of the service, as it was written: under the names of the spec,
    with references unresolved."""

    raw: Untyped
    control: Control
    body: dict[str, Any]
    status: Status
    generation: int
    claimed: bool
    deleting: bool

    @property
    def name(self) -> str:
        """What the service calls it, where we choose that."""
        return self.control.name or self.raw.name

    @property
    def namespace(self) -> str:
        return self.raw.namespace

    @property
    def sync(self) -> Sync:
        return self.status.sync

    @property
    def annotations(self) -> Mapping[str, str]:
        return (self.raw.raw.get("metadata") or {}).get("annotations") or {}


class Misfit(Exception):  # noqa: N818 - it reads as what is wrong
    """Our own fields of the spec have a shape that cannot be read."""


def read(model: Model, obj: Untyped) -> Subject:
    """Raises Misfit. A status that cannot be read counts as lost: the object is adopted as it is."""
    metadata = obj.raw.get("metadata") or {}
    spec = obj.raw.get("spec") or {}
    own = {name: spec[name] for name in CONTROL if name in spec}
    try:
        control = msgspec.convert(own, Control)
    except msgspec.ValidationError as error:
        raise Misfit(f"spec: {error}") from None
    try:
        status = msgspec.convert(obj.raw.get("status") or {}, Status)
    except msgspec.ValidationError:
        status = Status()
    return Subject(
        raw=obj,
        control=control,
        body={name: value for name, value in spec.items() if name not in CONTROL},
        status=status,
        generation=int(metadata.get("generation") or 0),
        claimed=FINALIZER in (metadata.get("finalizers") or ()),
        deleting=is_deleting(obj),
    )


def written(status: Status) -> dict[str, Any]:
    """The status as a document."""
    document: dict[str, Any] = msgspec.to_builtins(status)
    return document
