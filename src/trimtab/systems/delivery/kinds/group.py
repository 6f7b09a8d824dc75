"""ReleaseGroup: services that promote or roll back together, in order."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import UNSET, Meta, UnsetType

from trimtab.model.conditions import Conditions
from trimtab.model.kind import Column
from trimtab.model.markers import Keyed
from trimtab.model.resource import Resource, Spec
from trimtab.runtime.runs import History
from trimtab.systems.delivery.kinds.fields import Name, Revision, Text, Time

ReleaseState = Literal["Gathering", "Promoting", "RollingBack"]
MemberState = Literal["Analysing", "Ready", "Promoting", "Promoted", "RollingBack", "RolledBack"]


class Member(Spec):
    name: Annotated[Name, Meta(description="A CanaryDeployment of this namespace.")]


class ReleaseGroupSpec(Spec):
    members: Annotated[
        tuple[Member, ...],
        Keyed("name"),
        Meta(min_length=1, max_length=32, description="Promoted in this order, rolled back in the opposite one."),
    ]
    together: Annotated[
        Literal["Changed", "All"],
        Meta(description="Changed: those with a new revision wait for each other. All: every one must have one."),
    ] = "Changed"


class MemberStatus(Spec):
    name: Name
    revision: Annotated[Revision, Meta(description="What it releases.")] | UnsetType = UNSET
    before: Annotated[Revision, Meta(description="What was stable when the release began.")] | UnsetType = UNSET
    run: Annotated[str, Meta(max_length=63, description="Its run.")] | UnsetType = UNSET
    state: MemberState


class Release(Spec):
    """What happens now. A member promotes when its state here is Promoting, and rolls back when it is RollingBack."""

    id: Annotated[str, Meta(max_length=63)]
    state: ReleaseState
    started: Time
    members: Annotated[tuple[MemberStatus, ...], Keyed("name"), Meta(max_length=32)] = ()
    reason: Annotated[str, Meta(max_length=63)] | UnsetType = UNSET
    message: Text | UnsetType = UNSET


class ReleaseGroupStatus(Spec):
    conditions: Conditions | UnsetType = UNSET
    release: Release | UnsetType = UNSET
    history: History | UnsetType = UNSET


class ReleaseGroup(
    Resource,
    group="delivery",
    version="v1alpha1",
    plural="releasegroups",
    short=("rg",),
    categories=("delivery",),
    columns=(
        Column("Ready", ".status.conditions[?(@.type=='Ready')].status"),
        Column("State", ".status.release.state"),
        Column("Reason", ".status.conditions[?(@.type=='Ready')].reason"),
        Column("Message", ".status.conditions[?(@.type=='Ready')].message", priority=1),
    ),
):
    """Services that promote or roll back together, in order."""

    spec: ReleaseGroupSpec
    status: ReleaseGroupStatus | UnsetType = UNSET
