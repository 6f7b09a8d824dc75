"""A row of the storage service as a document, and back. Pure."""

from __future__ import annotations

from typing import Any

from trimtab.hub.artifacts.digests import FilePaths, awaits
from trimtab.hub.contract import ENVELOPE, Hub, HubError
from trimtab.hub.convert import Documents, as_class
from trimtab.hub.proxies.version import is_versioned
from trimtab.hub.references import has_sharing
from trimtab.hub.storage.contract import Row, RowKey, Shared, Snapshot
from trimtab.model.document import to_document
from trimtab.model.hub import StorageResource, StorageSnapshot, Stored
from trimtab.model.kind import Kind

_ENVELOPE = tuple(word for word in ENVELOPE if word != "resourceVersion")
_APART = frozenset(ENVELOPE)


class Rows:
    """Of one kind, by its convertor or the usual one."""

    def __init__(
        self,
        kind: Kind,
        cls: type[Any] | None,
        convertor: Any,
        *,
        versioned: bool = False,
        files: FilePaths = FilePaths(),  # noqa: B008
    ) -> None:
        if convertor is not None and cls is None:
            raise TypeError(f"the convertor of {kind.kind} needs its class")
        self._kind = kind
        self._cls = cls
        self._convertor = convertor
        self._versioned = versioned or is_versioned(cls)
        self._files = files
        self._documents: Documents | None = None

    def awaits(self, hub: Hub) -> bool:
        """Whether it names files that are still to come: as long it is not published."""
        return bool(self._files) and awaits(hub, self._files)

    def row(self, key: RowKey, hub: Hub) -> Row:
        stored = self._stored(hub)
        resource, snapshot = stored.resource, stored.snapshot
        metadata = hub["metadata"]
        return Row(
            key=key,
            description=resource.description,
            labels=resource.labels,
            annotations=resource.annotations,
            body=resource.body,
            status=resource.status,
            shared=Shared(everyone=resource.everyone, projects=resource.shared),
            snapshot=None if snapshot is None else Snapshot(version=snapshot.version, body=snapshot.body),
            envelope={word: metadata[word] for word in _ENVELOPE if word in metadata},
        )

    def hub(self, row: Row) -> Hub:
        hub = self._document(
            Stored(
                resource=StorageResource(
                    name=row.key.name,
                    project=row.key.project,
                    description=row.description,
                    labels=row.labels,
                    annotations=row.annotations,
                    body=row.body,
                    status=row.status,
                    everyone=row.shared.everyone,
                    shared=row.shared.projects,
                ),
                snapshot=None
                if row.snapshot is None
                else StorageSnapshot(version=row.snapshot.version, body=row.snapshot.body),
            )
        )
        metadata = {**(hub.get("metadata") or {}), **row.envelope, "resourceVersion": str(row.revision)}
        return {**hub, "apiVersion": self._kind.api_version, "kind": self._kind.kind, "metadata": metadata}

    def _stored(self, hub: Hub) -> Stored:
        if self._convertor is None:
            return self._usual().convert_from(hub)
        assert self._cls is not None  # noqa: S101 - checked when it was made
        metadata = {word: value for word, value in hub["metadata"].items() if word not in _APART}
        stored: Stored = self._convertor.convert_from(as_class({**hub, "metadata": metadata}, self._cls))
        return stored

    def _document(self, stored: Stored) -> Hub:
        if self._convertor is None:
            return self._usual().convert_to(stored)
        try:
            return to_document(self._convertor.convert_to(stored))
        except ValueError as error:  # the row is of another shape than the kind, or lacks a part
            raise HubError(f"{self._kind.kind} {stored.resource.name}: {error}") from None

    def _usual(self) -> Documents:
        if self._documents is None:
            shared = has_sharing(self._kind.schema.document)
            self._documents = Documents(shared=shared, versioned=self._versioned, files=self._files)
        return self._documents
