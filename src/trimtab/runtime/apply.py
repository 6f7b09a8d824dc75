"""Server-side apply that sends nothing when nothing would change.

Flow: the object is read (from the cache, in a controller); `changes` compares the partial with it; only a partial that
may change something is sent. What the server says of ownership decides: the FieldsV1 of our own Apply entry must name
exactly the fields of the partial, and each must have its value.

Guarantees: when `changes` says False, an apply at that revision would leave the object as it is, managed fields and all.
When in doubt it says True: the server drops a write without effect by itself, and nobody repairs one that we dropped.

Assumes that the cache keeps `metadata.managedFields` of kinds that are applied; without them everything is sent. A cache
may be behind: then the event that it still waits for brings the next reconcile, and that one sees the difference.

Caveats: what the server writes in another way than we do is sent each time (durations, an empty list of keyed items, a
default inside an atomic value, what a webhook changes). A field that others own is taken over unless `force=False`: a
controller owns what it applies.
"""

from __future__ import annotations

import functools
from collections.abc import Container, Mapping
from typing import Any, TypeVar, overload

import msgspec

from trimtab.client.protocol import Client, Object
from trimtab.model.document import equal, to_document
from trimtab.model.errors import StatusError
from trimtab.model.quantity import Quantity
from trimtab.model.resource import Resource
from trimtab.runtime.objects import kind_of

Document = Mapping[str, Any]
R = TypeVar("R", bound=Resource)


@overload
async def apply(
    client: Client, partial: R, *, manager: str, current: R | None = ..., force: bool = ..., subresource: str = ...
) -> R: ...
@overload
async def apply(
    client: Client,
    partial: Object,
    *,
    manager: str,
    current: Object | None = ...,
    force: bool = ...,
    subresource: str = ...,
) -> Any: ...


async def apply(
    client: Client,
    partial: Object,
    *,
    manager: str,
    current: Object | None = None,
    force: bool = True,
    subresource: str = "",
) -> Any:
    """The object as it is after the apply. Give `current` when it was just read. 409 only without `force`."""
    if current is None:
        try:
            current = await client.get(kind_of(partial), partial.name, partial.namespace)
        except StatusError as error:
            if error.code != 404:
                raise
    if current is not None and current.raw is not None:
        meant = to_document(partial) if isinstance(partial, Resource) else partial.raw
        # A typed partial names its kind by its class, which is also that of `current`; items of lists do not name it.
        names = {"apiVersion": current.api_version, "kind": current.kind}
        if not changes({**current.raw, **names}, {**names, **meant}, manager, subresource):
            return current
    return await client.apply(partial, manager=manager, force=force, subresource=subresource)


def changes(current: Document, partial: Document, manager: str, subresource: str = "") -> bool:
    """Whether applying `partial` may change `current`, as the API served it. Pure."""
    if any(current.get(name) != partial.get(name) for name in ("apiVersion", "kind")):
        return True
    held = current.get("metadata") or {}
    entries = [entry for entry in held.get("managedFields") or () if isinstance(entry, dict)]
    ours = [entry for entry in entries if _is_ours(entry, manager, subresource)]
    if len(ours) != 1 or ours[0].get("apiVersion") != current.get("apiVersion"):
        return True
    metadata = dict(partial.get("metadata") or {})
    for name in ("name", "namespace", "uid", "resourceVersion"):
        # Nobody owns these. Those given say which object is meant; the server refuses another.
        if metadata.pop(name, held.get(name)) != held.get(name):
            return True
    meant = {name: value for name, value in partial.items() if name not in ("apiVersion", "kind", "metadata")}
    if metadata:
        meant["metadata"] = metadata
    others = [_fields(entry) for entry in entries if entry is not ours[0]]
    native = str(current["apiVersion"]).rpartition("/")[0] in _NATIVE
    return not _Walk(native).same(meant, current, _fields(ours[0]), others)


class _Walk(msgspec.Struct, frozen=True):
    """Down the partial, the object, and the sets of owned fields, side by side. True only when all is surely the same."""

    native: bool  # a kind of Kubernetes itself: we know which of its maps are atomic, and what is a quantity

    def same(
        self, meant: Any, held: Any, ours: Document, others: list[Document], name: str = "", above: str = ""
    ) -> bool:
        if not _below(ours):
            return self._same_leaf(meant, held, others, name, above)
        if isinstance(meant, dict) and isinstance(held, dict):
            return self._same_map(meant, held, ours, others, name)
        if isinstance(meant, list) and isinstance(held, list):
            return self._same_list(meant, held, ours, others, name)
        return False

    def _same_leaf(self, meant: Any, held: Any, others: list[Document], name: str, above: str) -> bool:
        if meant is None:
            return False
        if isinstance(meant, dict) and meant and not (self.native and name in _ATOMIC):
            # Either the map is atomic, or we applied an empty one and someone, or a default, filled it.
            return False
        if isinstance(meant, dict | list) and any(_below(other) for other in others):
            return False  # others own parts of it, so it is not atomic
        if self.native and name in _DEFAULTED and isinstance(meant, dict):
            meant = {**_DEFAULTED[name], **meant}
        return equal(meant, held) or (self.native and above in _QUANTITIES and _equal_quantity(meant, held))

    def _same_map(self, meant: Any, held: Any, ours: Document, others: list[Document], name: str) -> bool:
        if {f"f:{key}" for key in meant} != set(_below(ours)):
            return False
        for key, value in meant.items():
            mine, theirs = ours[f"f:{key}"], [other[f"f:{key}"] for other in others if f"f:{key}" in other]
            if held.get(key) is None:
                if not self._is_left_out(value, mine, theirs, name):
                    return False
            elif not self.same(value, held[key], mine, theirs, key, name):
                return False
        return True

    def _is_left_out(self, meant: Any, ours: Document, others: list[Document], above: str) -> bool:
        """Whether it is an empty map or list, which servers keep in the owner's set and not in the object."""
        empty = isinstance(meant, dict | list) and not meant
        return empty and (self.native or above == "metadata") and not _below(ours) and not any(map(_below, others))

    def _same_list(self, meant: list[Any], held: list[Any], ours: Document, others: list[Document], name: str) -> bool:
        """Items are found by their keys. They must stand in the order that they have, or the server moves them."""
        keys = _Keys.of(_below(ours))
        if keys is None or len(keys.values) != len(meant):
            return False
        # Fields of the key that an item leaves out are defaults of the schema; we own them not, so they always were.
        known = name == "ownerReferences" or (self.native and name in _ATOMIC_ITEMS)
        atomic = known and not any(_below(ours[key]) for key in keys.values)
        given = {keys.token(value, None if atomic else ours[key]): key for key, value in keys.values.items()}
        places = {keys.token(item): place for place, item in enumerate(held)}
        if len(given) != len(meant) or len(places) != len(held):
            return False
        position = -1
        for item in meant:
            said = [f"f:{name}" for name in item] if isinstance(item, dict) else []
            key = given.get(keys.token(item, None if atomic else said))
            if key is None:
                return False
            place = places.get(keys.token(keys.values[key]), -1)
            if place <= position:
                return False
            position = place
            if atomic and equal(item, held[place]):
                continue
            if not self.same(item, held[place], ours[key], [other[key] for other in others if key in other]):
                return False
        return True


class _Keys(msgspec.Struct, frozen=True):
    """How the items of a list are told apart: by themselves, or by some of their fields."""

    values: dict[str, Any]  # by the key as FieldsV1 writes it
    names: tuple[str, ...] | None  # of the fields; None when the item itself is the key

    @classmethod
    def of(cls, keys: list[str]) -> _Keys | None:
        """None when they are of several sorts, or of one that we do not know."""
        values = {key: _decoded(key[2:]) for key in keys}
        if all(key.startswith("v:") for key in keys):
            return cls(values, None)
        if not all(key.startswith("k:") and isinstance(values[key], dict) for key in keys):
            return None
        names = {tuple(sorted(value)) for value in values.values()}
        return cls(values, names.pop()) if len(names) == 1 else None

    def token(self, item: Any, fields: Container[str] | None = None) -> bytes:
        """Equal for items of the same key; with `fields`, by those of the key's fields alone that are among them."""
        if self.names is None:
            return msgspec.json.encode(item, order="sorted")
        if not isinstance(item, dict):
            return b""
        names = [name for name in self.names if fields is None or f"f:{name}" in fields]
        return msgspec.json.encode({name: item.get(name) for name in names}, order="sorted")


def _is_ours(entry: Document, manager: str, subresource: str) -> bool:
    return (
        entry.get("manager") == manager
        and entry.get("operation") == "Apply"
        and (entry.get("subresource") or "") == subresource
    )


def _fields(entry: Document) -> Document:
    fields = entry.get("fieldsV1")
    return fields if isinstance(fields, dict) else {}


def _below(fields: Document) -> list[str]:
    """The keys under a field; none for one that is owned as a whole."""
    return [key for key in fields if key != "."]


@functools.lru_cache(maxsize=1024)
def _decoded(text: str) -> Any:
    """What a key says. The same few keys come again and again; nobody changes what is returned."""
    try:
        return msgspec.json.decode(text.encode())
    except msgspec.DecodeError:
        return None  # no item is


def _equal_quantity(one: Any, other: Any) -> bool:
    try:
        return isinstance(one, str) and isinstance(other, str) and str(Quantity(one)) == other
    except ValueError:
        return False


_NATIVE = frozenset(
    {
        "",
        "admissionregistration.k8s.io",
        "apiextensions.k8s.io",
        "apps",
        "autoscaling",
        "batch",
        "coordination.k8s.io",
        "discovery.k8s.io",
        "events.k8s.io",
        "networking.k8s.io",
        "policy",
        "rbac.authorization.k8s.io",
        "scheduling.k8s.io",
        "storage.k8s.io",
    }
)
_ATOMIC = frozenset(
    {
        "configMapKeyRef",
        "fieldRef",
        "namespaceSelector",
        "nodeSelector",
        "objectSelector",
        "podSelector",
        "preference",
        "regarding",
        "related",
        "resourceFieldRef",
        "roleRef",
        "secretKeyRef",
        "selector",
        "targetRef",
    }
)
"""Fields of Kubernetes' kinds that are atomic maps (x-kubernetes-map-type) wherever they occur."""
_ATOMIC_ITEMS = frozenset({"imagePullSecrets", "secrets"})
"""Lists of Kubernetes' kinds whose items are told apart by a key, and owned as a whole. All kinds have ownerReferences."""
_DEFAULTED: dict[str, Document] = {"fieldRef": {"apiVersion": "v1"}, "resourceFieldRef": {"divisor": "0"}}
"""Defaults inside atomic maps of Kubernetes' kinds."""
_QUANTITIES = frozenset({"hard", "limits", "overhead", "requests"})
"""Fields of Kubernetes' kinds whose values are quantities, which the server writes in their canonical form."""
