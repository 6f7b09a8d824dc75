"""Between documents and what the storage service keeps, for kinds that bring no convertor of their own.

The body is the spec without `sharing`, which is a table there. A versioned kind with a `spec.version` has a snapshot, too,
with the same body; but for one whose files are still to come, which is published when the last of them is there. Pure, and
lossless but for what is empty, and for sharing, which comes back in its one spelling.
"""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec

from trimtab.hub import sharing
from trimtab.hub.artifacts.digests import FilePaths, awaits
from trimtab.hub.contract import Hub, HubError, Refused
from trimtab.model.document import convert
from trimtab.model.hub import EVERYONE, StorageResource, StorageSnapshot, Stored

T = TypeVar("T")


class Incomplete(HubError):  # noqa: N818
    """The service has only a part of a resource."""


def as_class(hub: Hub, cls: type[T]) -> T:
    """A document as an object of a class. Refused, with the field, when it is of another shape."""
    try:
        return convert(hub, cls)
    except msgspec.ValidationError as error:
        why, _, path = str(error).partition(" - at `$.")
        raise Refused([(path.rstrip("`") or "spec", why)]) from None


class Documents:
    """A Convertor for documents. `shared`: the kind has `spec.sharing`; `versioned`: it has `spec.version`; `files`: where it
    names files."""

    def __init__(self, *, shared: bool, versioned: bool, files: FilePaths = FilePaths()) -> None:  # noqa: B008
        self._shared = shared
        self._versioned = versioned
        self._files = files

    def convert_from(self, hub: Hub) -> Stored:
        metadata, body = hub["metadata"], dict(hub.get("spec") or {})
        project = str(metadata.get("project") or "")
        names: list[str] = []
        if self._shared:
            said = sharing.canonical(body.pop("sharing", None), project)
            names = [each["name"] for each in said.get("projects", ())]
        resource = StorageResource(
            name=metadata["name"],
            project=project,
            description=metadata.get("description") or "",
            labels=metadata.get("labels") or {},
            annotations=metadata.get("annotations") or {},
            body=body,
            status=hub.get("status"),
            everyone=EVERYONE in names,
            shared=tuple(name for name in names if name != EVERYONE),
        )
        version = self._version(body)
        snapshot = StorageSnapshot(version=version, body=body) if version else None
        return Stored(resource=resource, snapshot=snapshot)

    def convert_to(self, spoke: Stored) -> Hub:
        resource = spoke.resource
        version = self._version(resource.body)
        if version and spoke.snapshot is None and not awaits({"spec": resource.body}, self._files):
            raise Incomplete(f"{resource.name} is at version {version}, and its snapshot is missing")
        metadata: Hub = {"name": resource.name}
        for word in ("project", "description", "labels", "annotations"):
            if value := getattr(resource, word):
                metadata[word] = value
        spec = dict(resource.body)
        if self._shared:
            names = [EVERYONE] if resource.everyone else sorted(resource.shared)
            projects: dict[str, Any] = {"projects": [{"name": name} for name in names]} if names else {}
            spec["sharing"] = {"enabled": bool(names), **projects}
        hub: Hub = {"metadata": metadata, "spec": spec}
        if resource.status is not None:
            hub["status"] = resource.status
        return hub

    def _version(self, body: dict[str, Any]) -> str:
        return str(body.get("version") or "") if self._versioned else ""
