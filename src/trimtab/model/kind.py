"""What the server knows of a kind: its names, its schema, how it is shown. Classes, CRDs and OpenAPI documents all become
this one record; the server never sees a class."""

from __future__ import annotations

import msgspec

from trimtab.model.schema import Schema


class Column(msgspec.Struct, frozen=True):
    """One column of `kubectl get`. `path` is a JSONPath without braces: `.spec.replicas`. Priority 0 is always shown."""

    name: str
    path: str
    type: str = "string"  # integer, number, string, boolean, date
    format: str = ""
    description: str = ""
    priority: int = 0


class Scale(msgspec.Struct, frozen=True):
    """Where the scale subresource finds its numbers. JSONPaths with dots only: `.spec.replicas`."""

    spec_replicas: str
    status_replicas: str
    label_selector: str = ""
    plain_labels: bool = False  # the selector is a map of labels, not a LabelSelector


class Kind(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """One version of one kind, as the server serves it."""

    group: str  # "" is the core group
    version: str
    kind: str
    plural: str
    singular: str = ""
    list_kind: str = ""
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    namespaced: bool = True
    schema: Schema
    columns: tuple[Column, ...] = ()
    status: bool = False  # has a status subresource
    scale: Scale | None = None
    selectable: tuple[str, ...] = ()  # JSONPaths that field selectors may ask for, beside name and namespace
    deprecation: str = ""  # the warning that each answer carries; "" is none

    def __post_init__(self) -> None:
        if not self.singular:
            msgspec.structs.force_setattr(self, "singular", self.kind.lower())
        if not self.list_kind:
            msgspec.structs.force_setattr(self, "list_kind", self.kind + "List")

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def resource(self) -> str:
        """The name in store keys, RBAC messages and errors: `deployments.apps`."""
        return f"{self.plural}.{self.group}" if self.group else self.plural
