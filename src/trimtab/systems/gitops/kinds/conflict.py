"""SyncConflict: one object that was changed in Git and in the system, and whose values differ. A person decides."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import UNSET, Meta, UnsetType

from trimtab.model.conditions import Conditions
from trimtab.model.hub import HubResource
from trimtab.model.kind import Column
from trimtab.model.markers import Keyed, Ref
from trimtab.model.resource import Spec
from trimtab.systems.gitops.kinds.fields import Commit, Generation, Name, Path

Json = Annotated[str, Meta(max_length=4096, description="As JSON; absent when the field is not there.")]


class ObjectRef(Spec):
    """The object, in the words of its document."""

    api_version: Annotated[str, Meta(min_length=1, max_length=320, description="Group and version.")]
    kind: Annotated[str, Meta(min_length=1, max_length=63, description="What it is.")]
    name: Annotated[Name, Meta(description="Which one it is.")]
    namespace: Annotated[str, Meta(max_length=63, description="Where it is; empty for a kind without namespaces.")] = ""


class FieldConflict(Spec):
    """One field, as it was when both sides were the same, and as each has it now."""

    path: Annotated[str, Meta(min_length=1, max_length=1024, description="Where it is in the document.")]
    base: Json | UnsetType = UNSET
    git: Json | UnsetType = UNSET
    system: Json | UnsetType = UNSET


class SyncConflictSpec(Spec):
    """Both sides, and who wins."""

    git_sync: Annotated[Name, Ref("GitSync"), Meta(description="The GitSync that met it.")]
    object: ObjectRef
    path: Annotated[Path, Meta(description="The file.")] = ""
    revision: Annotated[Commit, Meta(description="The commit that has Git's side.")] = ""
    fields: Annotated[
        tuple[FieldConflict, ...], Keyed("path"), Meta(max_length=200, description="What they disagree on.")
    ] = ()
    resolution: (
        Annotated[Literal["git", "system"], Meta(description="Whose values are taken. Set it to solve the conflict.")]
        | UnsetType
    ) = UNSET


class SyncConflictStatus(Spec):
    """What came of it."""

    conditions: Conditions | UnsetType = UNSET
    observed_generation: Generation | UnsetType = UNSET


class SyncConflict(
    HubResource,
    group="hub",
    version="v3",
    plural="syncconflicts",
    columns=(
        Column("Sync", ".spec.gitSync"),
        Column("Kind", ".spec.object.kind"),
        Column("Object", ".spec.object.name"),
        Column("File", ".spec.path"),
        Column("Resolution", ".spec.resolution"),
    ),
):
    """What Git and the system disagree on. It goes when they agree."""

    spec: SyncConflictSpec
    status: SyncConflictStatus | UnsetType = UNSET
