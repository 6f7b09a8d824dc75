"""The kinds of Git sync."""

from trimtab.model.hub import HubKind
from trimtab.systems.gitops.kinds.conflict import (
    FieldConflict,
    ObjectRef,
    SyncConflict,
    SyncConflictSpec,
    SyncConflictStatus,
)
from trimtab.systems.gitops.kinds.gitsync import (
    Committer,
    DeletionGuard,
    Destination,
    DocumentProblem,
    GitSync,
    GitSyncSpec,
    GitSyncStatus,
    Held,
    InventorySummary,
    Sign,
    Triggers,
    Verify,
    Webhook,
    WebhookPath,
)
from trimtab.systems.gitops.kinds.repository import Repository, RepositorySpec, RepositoryStatus

hub_kinds = (HubKind(cls=Repository), HubKind(cls=GitSync), HubKind(cls=SyncConflict))
"""The hub serves them from the storage service as they are."""

__all__ = [
    "Committer",
    "DeletionGuard",
    "Destination",
    "DocumentProblem",
    "FieldConflict",
    "GitSync",
    "GitSyncSpec",
    "GitSyncStatus",
    "Held",
    "InventorySummary",
    "ObjectRef",
    "Repository",
    "RepositorySpec",
    "RepositoryStatus",
    "Sign",
    "SyncConflict",
    "SyncConflictSpec",
    "SyncConflictStatus",
    "Triggers",
    "Verify",
    "Webhook",
    "WebhookPath",
    "hub_kinds",
]
