"""The kinds that a program knows: from classes to `Kind`s, from documents to objects and back.

A Scheme carries the suffix of our group names, so that a white label changes it in one place.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from trimtab.model.document import convert, read, to_document
from trimtab.model.fields import fields_of
from trimtab.model.hub import HubResource
from trimtab.model.kind import Column, Kind
from trimtab.model.objectmeta import ObjectMeta
from trimtab.model.resource import Resource, definition_of
from trimtab.model.schema import Schema

if TYPE_CHECKING:
    from trimtab.model.conversion import Convertor, Spokes

SUFFIX = "trimtab.dev"

Document = dict[str, Any]
C = TypeVar("C", bound=type[Resource])


class Untyped:
    """An object of a kind that has no class. It is its document."""

    __slots__ = ("raw",)

    def __init__(self, raw: Document) -> None:
        self.raw = raw

    @property
    def api_version(self) -> str:
        return str(self.raw.get("apiVersion", ""))

    @property
    def kind(self) -> str:
        return str(self.raw.get("kind", ""))

    @property
    def metadata(self) -> ObjectMeta:
        return convert(self.raw.get("metadata") or {}, ObjectMeta)

    @property
    def name(self) -> str:
        return str((self.raw.get("metadata") or {}).get("name", ""))

    @property
    def namespace(self) -> str:
        return str((self.raw.get("metadata") or {}).get("namespace", ""))

    def __eq__(self, other: object) -> bool:
        return self.raw == other.raw if isinstance(other, Untyped) else NotImplemented

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Untyped({self.api_version} {self.kind} {self.namespace}/{self.name})"


class _Names(msgspec.Struct, rename="camel", gc=False):
    """What a document calls itself; the rest is skipped."""

    api_version: str = ""
    kind: str = ""


_NAMES = msgspec.json.Decoder(_Names)


class Scheme:
    """Classes and kinds by the names that documents have."""

    def __init__(self, suffix: str = SUFFIX) -> None:
        self.suffix = suffix
        self._kinds: dict[tuple[str, str], Kind] = {}
        self._classes: dict[tuple[str, str], type[Resource]] = {}
        self._by_class: dict[type[Resource], Kind] = {}
        self._spokes: dict[tuple[str, str], Spokes] = {}

    def register(self, cls: C) -> C:
        """Make a class known; also a decorator. A second class for the same kind is refused."""
        kind = self._made(cls)
        key = (kind.api_version, kind.kind)
        if self._classes.get(key, cls) is not cls:
            raise ValueError(f"{kind.kind} of {kind.api_version} is already {self._classes[key].__name__}")
        self._classes[key] = cls
        self._kinds[key] = kind
        return cls

    def add(self, kind: Kind) -> None:
        """Make a kind without a class known."""
        self._kinds[kind.api_version, kind.kind] = kind

    def convert_by(self, convertor: Convertor) -> None:
        """Make the way between two versions of a kind known, and the versions themselves. ValueError when they are not of
        one kind, or the kind has another hub."""
        from trimtab.model.conversion import Spokes  # few programs convert

        hub, spoke = self.kind_of(convertor.hub), self.kind_of(convertor.spoke)
        if (hub.resource, hub.kind, hub.namespaced) != (spoke.resource, spoke.kind, spoke.namespaced):
            raise ValueError(f"{convertor.hub.__name__} and {convertor.spoke.__name__} are not versions of one kind")
        self._spokes.setdefault((hub.group, hub.kind), Spokes(convertor.hub)).add(convertor)
        for cls in (convertor.hub, convertor.spoke):
            self.register(cls)

    def converts(self, group: str, kind: str) -> bool:
        """Whether there are convertors for the versions of a kind."""
        return (group, kind) in self._spokes

    def hub_of(self, group: str, kind: str) -> Kind | None:
        """The version of a kind that its convertors go through; None when it has none."""
        spokes = self._spokes.get((group, kind))
        return None if spokes is None else self.kind_of(spokes.hub)

    @property
    def converted_kinds(self) -> tuple[tuple[str, str], ...]:
        """The kinds that have convertors, by group and kind."""
        return tuple(self._spokes)

    def converted(self, document: Document, desired: str) -> Document:
        """A document in another version of its kind, by its convertors. Raises ConversionFailed."""
        from trimtab.model.conversion import ConversionFailed

        group, _, _ = str(document.get("apiVersion", "")).rpartition("/")
        spokes = self._spokes.get((group, str(document.get("kind", ""))))
        if spokes is None or desired.rpartition("/")[0] != group:
            given = f"{document.get('kind', '')} of {document.get('apiVersion', '')}"
            raise ConversionFailed(f"{given} cannot be converted to {desired}")
        return spokes.convert(self, document, desired)

    @property
    def kinds(self) -> tuple[Kind, ...]:
        return tuple(self._kinds.values())

    @property
    def classes(self) -> tuple[type[Resource], ...]:
        return tuple(self._classes.values())

    def kind_of(self, cls: type[Resource]) -> Kind:
        """The kind of a class, registered or not; always the same record."""
        return self._by_class.get(cls) or self._made(cls)

    def kind(self, api_version: str, kind: str) -> Kind | None:
        return self._kinds.get((api_version, kind))

    def class_of(self, api_version: str, kind: str) -> type[Resource] | None:
        return self._classes.get((api_version, kind))

    def group(self, name: str, *, own: bool = False) -> str:
        """The full name of a group: `discovery` is `discovery.trimtab.dev`; a name with a dot, and "", stay, and so does
        one that Kubernetes has, unless it is our `own` all the same."""
        return f"{name}.{self.suffix}" if name and "." not in name and (own or name not in _FOREIGN) else name

    def decode(self, document: Mapping[str, Any] | bytes) -> Resource | Untyped:
        """The typed object, or Untyped where no class is known. msgspec.ValidationError when it is of another shape."""
        if isinstance(document, bytes):
            named = _NAMES.decode(document)
            cls = self._classes.get((named.api_version, named.kind))
            return Untyped(msgspec.json.decode(document)) if cls is None else read(document, cls)
        cls = self._classes.get((str(document.get("apiVersion", "")), str(document.get("kind", ""))))
        return Untyped(dict(document)) if cls is None else convert(dict(document), cls)

    def document(self, obj: Resource | Untyped) -> Document:
        """What to send for an object: apiVersion and kind, and of the rest only what is meant."""
        if isinstance(obj, Untyped):
            return obj.raw
        kind = self.kind_of(type(obj))
        return {"apiVersion": "", "kind": ""} | to_document(obj) | {"apiVersion": kind.api_version, "kind": kind.kind}

    def encode(self, obj: Resource | Untyped) -> bytes:
        return msgspec.json.encode(self.document(obj))

    def _made(self, cls: type[Resource]) -> Kind:
        found = self._by_class.get(cls)
        if found is not None:
            return found
        definition = definition_of(cls)
        kind = Kind(
            group=self.group(definition.group, own=issubclass(cls, HubResource)),
            version=definition.version,
            kind=definition.kind,
            plural=definition.plural,
            singular=definition.singular,
            short_names=definition.short,
            categories=definition.categories,
            namespaced=definition.namespaced,
            schema=Schema(lambda: _structural(cls)),
            columns=_with_age(definition.columns),
            status=any(field.wire == "status" for field in fields_of(cls)),
            scale=definition.scale,
            selectable=definition.selectable,
            deprecation=definition.deprecation,
        )
        self._by_class[cls] = kind
        return kind


def _structural(cls: type[Resource]) -> Document:
    from trimtab.model.structural import structural  # only those who need the schema pay for it

    return structural(cls)


def _with_age(columns: tuple[Column, ...]) -> tuple[Column, ...]:
    """Kinds that choose their columns still tell their age, last, as built-in kinds do."""
    if not columns or any(column.path == _AGE.path for column in columns):
        return columns
    return (*columns, _AGE)


_AGE = Column("Age", ".metadata.creationTimestamp", type="date")
_FOREIGN = frozenset({"apps", "batch", "autoscaling", "policy", "extensions"})
"""Groups of Kubernetes whose names have no dot."""
