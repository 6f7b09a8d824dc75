"""A project: a namespace of the hub, and who its resources belong to."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import UNSET, Meta, UnsetType

from trimtab.model.conditions import Conditions
from trimtab.model.hub import HubResource
from trimtab.model.kind import Column
from trimtab.model.markers import Rule
from trimtab.model.resource import Spec
from trimtab.systems.platform.kinds.fields import Generation

Deletion = Literal["Refuse", "Cascade"]


class ProjectSpec(Spec):
    """How its namespace is treated."""

    adopt: Annotated[
        bool, Meta(description="Take over an existing namespace that nobody owns; it is never deleted.")
    ] = False
    deletion: Annotated[
        Deletion,
        Meta(description="Refuse: it stays while it has resources of the hub. Cascade: they are deleted with it."),
    ] = "Refuse"


class ProjectStatus(Spec):
    """What became of its namespace."""

    observed_generation: Generation | UnsetType = UNSET
    namespace: Annotated[str, Meta(description="That it owns.")] | UnsetType = UNSET
    adopted: Annotated[bool, Meta(description="Whether the namespace was there before.")] | UnsetType = UNSET
    resources: Annotated[int, Meta(ge=0, description="Of the hub that still hold its deletion.")] | UnsetType = UNSET
    conditions: Conditions | UnsetType = UNSET


class Project(
    HubResource,
    group="hub",
    version="v3",
    plural="projects",
    short=("proj",),
    categories=("trimtab",),
    namespaced=False,
    columns=(
        Column("Ready", ".status.conditions[?(@.type=='Ready')].status"),
        Column("Reason", ".status.conditions[?(@.type=='Ready')].reason"),
        Column("Age", ".metadata.creationTimestamp", "date"),
        Column("Message", ".status.conditions[?(@.type=='Ready')].message", priority=1),
    ),
    rules=Rule(
        "self.metadata.name.size() <= 63 && !self.metadata.name.contains('.')",
        "a project is the namespace of its name: 63 characters at most, and no dots",
    ),
):
    """Owns the namespace of its name, and all that is in it."""

    spec: ProjectSpec = ProjectSpec()
    status: ProjectStatus | UnsetType = UNSET

    def trigger_internal(self) -> None:
        """Changes start a sync to Git."""
