"""The metadata of typed objects, and references between objects. Everything is unset until someone sets it."""

from __future__ import annotations

from datetime import datetime

import msgspec
from msgspec import UNSET, UnsetType


class _Meta(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """Wire form as everywhere: camelCase, what is unset is not sent."""


class OwnerReference(_Meta, frozen=True, kw_only=True):
    """Who owns an object; it goes when the last owner goes."""

    api_version: str
    kind: str
    name: str
    uid: str
    controller: bool | UnsetType = UNSET
    block_owner_deletion: bool | UnsetType = UNSET


class ManagedFieldsEntry(_Meta, frozen=True, kw_only=True):
    """Who wrote some of an object's fields, and when. Which ones is in the document: it is large and rarely asked for."""

    manager: str | UnsetType = UNSET
    operation: str | UnsetType = UNSET
    api_version: str | UnsetType = UNSET
    time: str | UnsetType = UNSET
    fields_type: str | UnsetType = UNSET
    subresource: str | UnsetType = UNSET


class ObjectMeta(_Meta, frozen=True, kw_only=True):
    """metav1.ObjectMeta."""

    name: str | UnsetType = UNSET
    generate_name: str | UnsetType = UNSET
    namespace: str | UnsetType = UNSET
    labels: dict[str, str] | UnsetType = UNSET
    annotations: dict[str, str] | UnsetType = UNSET
    finalizers: tuple[str, ...] | UnsetType = UNSET
    owner_references: tuple[OwnerReference, ...] | UnsetType = UNSET
    uid: str | UnsetType = UNSET
    resource_version: str | UnsetType = UNSET
    generation: int | UnsetType = UNSET
    creation_timestamp: datetime | UnsetType | None = UNSET
    deletion_timestamp: datetime | UnsetType = UNSET
    deletion_grace_period_seconds: int | UnsetType = UNSET
    managed_fields: tuple[ManagedFieldsEntry, ...] | UnsetType = UNSET
    self_link: str | UnsetType = UNSET
