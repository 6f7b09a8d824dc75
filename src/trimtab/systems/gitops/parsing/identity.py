"""Who a document is, whatever version of its kind it is written in: group, kind, namespace, name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec


class Identity(msgspec.Struct, frozen=True, order=True):
    """One resource. Kinds of the cluster have no namespace; the core group is ""."""

    group: str
    kind: str
    namespace: str
    name: str

    def __str__(self) -> str:
        kind = f"{self.group}/{self.kind}" if self.group else self.kind
        return f"{kind} {self.namespace}/{self.name}" if self.namespace else f"{kind} {self.name}"

    @property
    def key(self) -> str:
        """The same in one word, for maps and digests: `group/Kind/namespace/name`."""
        return f"{self.group}/{self.kind}/{self.namespace}/{self.name}"

    @classmethod
    def of_key(cls, key: str) -> Identity:
        group, kind, namespace, name = key.split("/", 3)
        return cls(group, kind, namespace, name)


def identity_of(document: Mapping[str, Any]) -> Identity:
    """Of a document that has its words (`apiVersion`, `kind`, `metadata.name`). A project is a namespace."""
    metadata = document["metadata"]
    namespace = metadata.get("namespace") or metadata.get("project") or ""
    return Identity(group_of(document), document["kind"], namespace, metadata["name"])


def group_of(document: Mapping[str, Any]) -> str:
    group, slash, _ = str(document["apiVersion"]).rpartition("/")
    return group if slash else ""
