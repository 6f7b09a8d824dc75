"""What every kind of the hub shares: its five words of metadata, sharing, files, and the capabilities that a class may have.

A hub kind is a `HubResource`. What it can do beyond being read and written is told by the methods that its class has, and is
picked up wherever it matters (API, codec, Git, Terraform): nothing is registered twice.

On the Kubernetes wire `metadata.namespace` and `metadata.project` are the same word. Controllers use the namespace.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, Protocol, runtime_checkable

import msgspec
from msgspec import UNSET, Meta, UnsetType

from trimtab.model.markers import AlwaysEmit, Keyed, ReadOnly, Ref
from trimtab.model.objectmeta import ObjectMeta
from trimtab.model.resource import Resource, Spec

OWN_METADATA = ("name", "project", "description", "labels", "annotations")
"""All of an object's metadata that the codec, Git and Terraform show."""

EVERYONE = "*"
"""As a project in `spec.sharing`: all of them."""


PROJECT_LABEL = "hub.trimtab.dev/project"
"""Label of a namespace: the Project that it is of."""

MADE_FOR = "hub.trimtab.dev/made-for"
"""Annotation of a namespace: the uid of the Project for which it was made, and with which it goes."""

ADOPTED_BY = "hub.trimtab.dev/adopted-by"
"""Annotation of a namespace: the uid of the Project that took it over; it outlives the Project."""


class HubMeta(ObjectMeta, frozen=True, kw_only=True):
    """Kubernetes' metadata, and the two words that the hub adds."""

    project: str | UnsetType = UNSET
    description: str | UnsetType = UNSET


class HubResource(Resource):
    """Base of hub kinds."""

    metadata: HubMeta = HubMeta()


class SharedWith(Spec):
    """A project that may use a resource."""

    name: Annotated[
        str, Ref("Project"), Meta(min_length=1, max_length=63, description="A project, or `*` for all of them.")
    ]


class Sharing(Spec):
    """Who beside the owner may use a resource: nobody, everybody (`*`), or the projects that are named."""

    enabled: Annotated[bool, AlwaysEmit(), Meta(description="Whether anybody else may use it.")] = False
    projects: Annotated[
        tuple[SharedWith, ...], Keyed("name"), Meta(max_length=1000, description="Who may, when it is enabled.")
    ] = ()


class File(Spec):
    """A file that belongs to a resource, named by its path relative to the document; its bytes are an artifact."""

    name: Annotated[str, Meta(min_length=1, max_length=1024, description="The path, relative to the document.")]
    digest: (
        Annotated[
            str,
            ReadOnly(),
            Meta(pattern="^sha256:[0-9a-f]{64}$", description="Of its bytes, when they are known."),
        ]
        | UnsetType
    ) = UNSET
    sensitive: Annotated[bool, Meta(description="Never written to Git in clear.")] = False


@runtime_checkable
class HubVersioner(Protocol):
    """A kind with published versions: each is immutable, and Git follows the newest."""

    def version(self) -> str:
        """The version that this object is; "" for one that is not published."""
        ...


@runtime_checkable
class ArtifactAccessor(Protocol):
    """A kind with files."""

    def files(self) -> tuple[File, ...]:
        """Every file that the spec names."""
        ...


@runtime_checkable
class LineageFilter(Protocol):
    """A kind that keeps where it was synced from. Hub kinds do, unless their class says `lineage = None`."""

    def lineage_filter(self) -> None: ...


@runtime_checkable
class InternalTriggerable(Protocol):
    """A kind whose changes in the system start a sync to Git."""

    def trigger_internal(self) -> None: ...


class StorageResource(msgspec.Struct, frozen=True, kw_only=True):
    """One resource as the storage service has it: references in `body` are IDs, sharing is a table of project IDs."""

    name: str
    project: str = ""
    description: str = ""
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    body: dict[str, Any] = {}
    status: dict[str, Any] | None = None
    everyone: bool = False
    shared: tuple[str, ...] = ()


class StorageSnapshot(msgspec.Struct, frozen=True, kw_only=True):
    """One published version of a resource, as the storage service has it."""

    version: str
    body: dict[str, Any] = {}


class Stored(msgspec.Struct, frozen=True, kw_only=True):
    """The spoke of kinds that the storage service keeps: a resource, and the snapshot of its version, if it has one.

    Complete or nothing: a versioned kind without its snapshot is an error of the service, not a thing to default."""

    resource: StorageResource
    snapshot: StorageSnapshot | None = None


class HubKind(msgspec.Struct, frozen=True, kw_only=True):
    """A hub kind as a system brings it: the class, and how it is stored. `convertor` is between the class and its spoke
    (None: the storage service keeps the spec as it is); `defaulter` completes a document in place, and twice is once."""

    cls: type[HubResource]
    accessor: Callable[[], Any] | None = None
    """Makes the accessor of a service of one's own (see the hub's contract); None: the storage service keeps it."""
    convertor: Any = None
    spokes: tuple[tuple[Any, Any], ...] = ()
    """Other shapes, each with its convertor; a class of the same kind with another version is that version of the API."""
    exempt: tuple[str, ...] = ()
    """Fields that are called IDs, and refer to nothing of ours: their paths or names."""
    defaulter: Callable[[dict[str, Any]], None] | None = None


def lineage_key(suffix: str) -> str:
    """The annotation that keeps lineage: `hub.trimtab.dev/lineage`."""
    return f"hub.{suffix}/lineage"


def own_metadata(metadata: dict[str, Any]) -> dict[str, Any]:
    """The five words of a wire document's metadata, in their order; the project is the namespace when it says none."""
    shown = {**metadata}
    if "project" not in shown and shown.get("namespace"):
        shown["project"] = shown["namespace"]
    return {name: shown[name] for name in OWN_METADATA if shown.get(name)}
