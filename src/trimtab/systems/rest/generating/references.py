"""What typed specs have where a value is elsewhere: in a Secret, or the ID of another object."""

from __future__ import annotations

from msgspec import UNSET, UnsetType

from trimtab.model.resource import Spec


class SecretKey(Spec):
    """A key of a Secret in the same namespace."""

    name: str
    key: str


class SecretValue(Spec):
    """Stands for a secret."""

    secret_ref: SecretKey


class ObjectKey(Spec):
    """An object in the same namespace; of the same group, unless `api_version` names another."""

    kind: str
    name: str
    api_version: str | UnsetType = UNSET


class Reference(Spec):
    """Stands for the resource ID of another object."""

    ref: ObjectKey
