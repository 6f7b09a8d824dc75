"""Between the kinds and what the storage service keeps: a resource, and the snapshot of its version.

The resource's body is the spec without sharing, which is a table there. A published version is a snapshot with the same
body: what is read is the resource's body, and the snapshot proves that it was published whole. One whose files are still to
come is not published, and has none. Lossless but for sharing, which comes back in its one canonical form; no I/O, and no
defaults: a spoke that lacks something is an error.
"""

from __future__ import annotations

from typing import Any, Generic, TypeVar

import msgspec

from trimtab.model.document import convert, equal, to_document
from trimtab.model.hub import ArtifactAccessor, HubResource, StorageResource, StorageSnapshot, Stored
from trimtab.systems.platform.sharing import gathered, spread

H = TypeVar("H", bound=HubResource)


class IncompleteSpoke(ValueError):  # noqa: N818 - it reads as what is wrong
    """The storage service has only a part of a resource."""


class StoredConvertor(Generic[H]):
    """For one kind. `shared`: its spec has `sharing`; `versioned`: it has `version`."""

    def __init__(self, cls: type[H], *, shared: bool = True, versioned: bool = False) -> None:
        self._cls = cls
        self._shared, self._versioned = shared, versioned

    def convert_from(self, hub: H) -> Stored:
        document = to_document(hub)
        metadata = document.get("metadata") or {}
        project = str(metadata.get("project") or metadata.get("namespace") or "")
        body = dict(document.get("spec") or {})
        everyone, projects = spread(body.pop("sharing", None), project) if self._shared else (False, ())
        resource = StorageResource(
            name=str(metadata.get("name") or ""),
            project=project,
            description=str(metadata.get("description") or ""),
            labels=dict(metadata.get("labels") or {}),
            annotations=dict(metadata.get("annotations") or {}),
            body=body,
            status=document.get("status"),
            everyone=everyone,
            shared=projects,
        )
        version = self._version(body)
        snapshot = StorageSnapshot(version=version, body=body) if version else None
        return Stored(resource=resource, snapshot=snapshot)

    def convert_to(self, spoke: Stored) -> H:
        resource = spoke.resource
        spec = dict(resource.body)
        if self._shared:
            spec["sharing"] = gathered(resource.everyone, resource.shared)
        metadata: dict[str, Any] = {"name": resource.name, "project": resource.project}
        metadata |= {"description": resource.description, "labels": resource.labels}
        metadata["annotations"] = resource.annotations
        document: dict[str, Any] = {
            "metadata": {name: value for name, value in metadata.items() if value},
            "spec": spec,
        }
        if resource.status is not None:
            document["status"] = resource.status
        try:
            made = convert(document, self._cls)
        except msgspec.ValidationError as error:
            raise IncompleteSpoke(f"{self._named(resource)} is stored in another shape: {error}") from None
        self._check(resource, spoke.snapshot, awaits=isinstance(made, ArtifactAccessor) and not is_whole(made))
        return made

    def _check(self, resource: StorageResource, snapshot: StorageSnapshot | None, *, awaits: bool) -> None:
        version = self._version(resource.body)
        if not version:
            return
        if snapshot is None and awaits:
            return
        if snapshot is None:
            raise IncompleteSpoke(f"{self._named(resource)} is at version {version}, and its snapshot is missing")
        if snapshot.version == version and not equal(snapshot.body, resource.body):
            raise IncompleteSpoke(f"{self._named(resource)} is not what was published as version {version}")

    def _version(self, body: dict[str, Any]) -> str:
        return str(body.get("version") or "") if self._versioned else ""

    def _named(self, resource: StorageResource) -> str:
        return f"{self._cls.__name__} {resource.name}"


def is_whole(obj: ArtifactAccessor) -> bool:
    """Whether the bytes of all its files were given."""
    return all(file.digest for file in obj.files())
