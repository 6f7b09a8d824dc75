"""What the classes of kinds tell that no schema does: which names are references, which files belong to an object, what is
secret, and which changes start a sync to Git. Kinds without a class have the defaults of all kinds."""

from __future__ import annotations

import functools
import operator
from collections.abc import Iterable, Iterator
from typing import Any, get_args

import msgspec

from trimtab.model.document import convert
from trimtab.model.fields import fields_of, peel
from trimtab.model.hub import ArtifactAccessor, File, HubResource, HubVersioner, InternalTriggerable, lineage_key
from trimtab.model.markers import Marker, ReadOnly, Ref, Sensitive
from trimtab.model.resource import Resource
from trimtab.model.scheme import Scheme
from trimtab.systems.gitops.kinds.fields import AUTHOR
from trimtab.systems.gitops.parsing import Identity, group_of

TRIGGERS = "git"
"""The category of kinds whose changes start a sync to Git, for kinds without a class."""
SECRET_KINDS = frozenset({("", "Secret"), ("", "ServiceAccount")})
"""Never written to Git: their content is a credential."""

KEPT = 100_000
"""Documents whose files are remembered."""

Path = tuple[str, ...]
"""Names of fields; `*` is every item of a list or value of a map."""


class Knowledge:
    """Of the classes that a scheme has. A hub kind under a further suffix is the same kind: what is secret in it, and what is a
    file, is so under every name."""

    def __init__(self, scheme: Scheme) -> None:
        self._scheme = scheme
        self._versions: frozenset[str] = frozenset()
        self._classes: dict[tuple[str, str], type[Resource] | None] = {}
        self._groups: dict[tuple[str, str], str] = {}
        self._counted = -1
        self._files: dict[int, tuple[dict[str, Any], list[str]]] = {}

    @property
    def suffix(self) -> str:
        """Of our own groups."""
        return self._scheme.suffix

    def lineage_key(self, api_version: str, kind: str) -> str:
        """The annotation with the lineage of objects of this kind; "" when they keep none."""
        cls = self._class(api_version, kind)
        if cls is None or not issubclass(cls, HubResource) or getattr(cls, "lineage", "") is None:
            return ""
        return lineage_key(api_version.rpartition("/")[0].partition(".")[2])

    def keeps_lineage(self, path: str) -> bool:
        """Whether objects at a path of the API keep their lineage."""
        parts = path.split("/", 4)
        return len(parts) > 4 and parts[1] == "apis" and self._home(parts[2], parts[3]) in self._hub_versions()

    def _home(self, group: str, version: str) -> str:
        """The version as it is under our own suffix."""
        return f"{self._scheme.group(group.partition('.')[0], own=True)}/{version}"

    def _class(self, api_version: str, kind: str) -> type[Resource] | None:
        self._look()
        name = (api_version, kind)
        if name not in self._classes:
            if len(self._classes) >= KEPT:
                self._classes.clear()
            self._classes[name] = self._found_class(api_version, kind)
        return self._classes[name]

    def _found_class(self, api_version: str, kind: str) -> type[Resource] | None:
        group, _, version = api_version.rpartition("/")
        found = self._scheme.class_of(api_version, kind)
        if found is not None or "." not in group:
            return found
        own = self._scheme.class_of(self._home(group, version), kind)
        return own if own is not None and issubclass(own, HubResource) else None

    def _hub_versions(self) -> frozenset[str]:
        self._look()
        return self._versions

    def _look(self) -> None:
        """Kinds may be registered at any time; what was found out by them before is found out anew."""
        kinds = self._scheme.kinds
        if self._counted != len(kinds):
            self._counted = len(kinds)
            self._groups.clear()
            self._classes.clear()
            self._versions = frozenset(k.api_version for k in kinds if self.lineage_key(k.api_version, k.kind))

    def is_triggering(self, api_version: str, kind: str, categories: Iterable[str] = ()) -> bool:
        """Whether its changes in the system start a sync to Git."""
        cls = self._class(api_version, kind)
        return TRIGGERS in categories or (cls is not None and issubclass(cls, InternalTriggerable))

    def is_versioned(self, document: dict[str, Any]) -> bool:
        """Whether it is of a kind with published versions."""
        cls = self._class(str(document.get("apiVersion")), str(document.get("kind")))
        return cls is not None and issubclass(cls, HubVersioner)

    def references(self, own: Identity, document: dict[str, Any]) -> Iterator[Identity]:
        """What a document names, of its own namespace, which it need not say itself. Of several kinds of that name, the one of
        its own group."""
        cls = self._class(str(document.get("apiVersion")), str(document.get("kind")))
        marked = _marked(cls, Ref) if cls is not None else ()
        if not marked:
            return
        for path, marker in marked:
            for name in values(document, path):
                if isinstance(name, str) and name and name != "*":
                    group = self._group(marker.kind, group_of(document))
                    kind = marker.kind.partition(".")[0]
                    namespace = "" if kind in ("Project", "Namespace") else own.namespace
                    yield Identity(group, kind, namespace, name)

    def files(self, document: dict[str, Any]) -> tuple[File, ...]:
        """The files that a document names; none when it is of another shape, which its schema tells."""
        cls = self._class(document.get("apiVersion", ""), document.get("kind", ""))
        if cls is None or not _has_files(cls):
            return ()
        try:
            made: Any = convert(document, cls)
            return tuple(made.files())
        except (msgspec.ValidationError, ValueError, TypeError, AttributeError):
            return ()

    def file_names(self, document: dict[str, Any]) -> list[str]:
        """Of a document of Git. Those are kept from run to run, and asked for again and again, so the answer is kept."""
        known = self._files.get(id(document))
        if known is None or known[0] is not document:
            if len(self._files) >= KEPT:
                self._files.clear()
            known = self._files[id(document)] = (document, [file.name for file in self.files(document)])
        return known[1]

    def sensitive(self, api_version: str, kind: str) -> tuple[Path, ...]:
        """The fields that must not come to Git in clear."""
        cls = self._class(api_version, kind)
        return tuple(path for path, _ in _marked(cls, Sensitive)) if cls is not None else ()

    def secret(self, api_version: str, kind: str) -> tuple[Path, ...]:
        """The fields whose values are told to nobody: those, and what is in a Secret."""
        content: tuple[Path, ...] = (("data",), ("stringData",)) if (api_version, kind) == ("v1", "Secret") else ()
        return (*self.sensitive(api_version, kind), *content)

    def read_only(self, api_version: str, kind: str) -> tuple[Path, ...]:
        """The fields that the system writes by itself."""
        cls = self._class(api_version, kind)
        return tuple(path for path, _ in _marked(cls, ReadOnly)) if cls is not None else ()

    def clean(self, document: dict[str, Any]) -> dict[str, Any]:
        """A live object without the fields that the system writes by itself: they are no change of anybody."""
        for path in self.read_only(str(document.get("apiVersion")), str(document.get("kind"))):
            document = without(document, path)
        cleaned: dict[str, Any] = without(document, ("metadata", "annotations", AUTHOR))
        return cleaned

    def _group(self, kind: str, own: str) -> str:
        self._look()
        found = self._groups.get((kind, own))
        if found is None:
            found = self._groups[kind, own] = self._found_group(kind, own)
        return found

    def _found_group(self, kind: str, own: str) -> str:
        name, _, group = kind.partition(".")
        if group:
            return self._scheme.group(group)
        groups = [known.group for known in self._scheme.kinds if known.kind == name]
        if own in groups or not groups:
            return own
        label, _, suffix = own.partition(".")
        further = suffix != self.suffix and any(known.group == f"{label}.{self.suffix}" for known in self._scheme.kinds)
        return f"{groups[0].partition('.')[0]}.{suffix}" if further else groups[0]


def values(value: Any, path: Path) -> Iterator[Any]:
    """All that a path leads to."""
    if not path:
        yield value
        return
    step, rest = path[0], path[1:]
    if step == "*":
        inner = value if isinstance(value, list) else value.values() if isinstance(value, dict) else ()
        for each in inner:
            yield from values(each, rest)
    elif isinstance(value, dict) and step in value:
        yield from values(value[step], rest)


def without(value: Any, path: Path) -> Any:
    """A copy without what a path leads to; the value itself when that is nothing."""
    step, rest = path[0], path[1:]
    if step == "*":
        if not rest:
            return value
        if isinstance(value, list):
            items = [without(each, rest) for each in value]
            return value if all(map(operator.is_, items, value)) else items
        if not isinstance(value, dict):
            return value
        kept = {name: without(each, rest) for name, each in value.items()}
        return value if all(each is value[name] for name, each in kept.items()) else kept
    if not isinstance(value, dict) or step not in value:
        return value
    if not rest:
        return {name: each for name, each in value.items() if name != step}
    inner = without(value[step], rest)
    return value if inner is value[step] else {**value, step: inner}


@functools.cache
def _has_files(cls: type[Resource]) -> bool:
    return issubclass(cls, ArtifactAccessor)


@functools.cache
def _marked(cls: type[Resource], marker: type[Any]) -> tuple[tuple[Path, Any], ...]:
    return tuple(_found(cls, marker, (), (cls,)))


def _found(cls: Any, wanted: type[Marker], path: Path, above: tuple[Any, ...]) -> Iterator[tuple[Path, Any]]:
    for field in fields_of(cls):
        if not path and field.wire in ("metadata", "status", "apiVersion", "kind"):
            continue
        at = (*path, field.wire)
        marker = next((m for m in field.markers if isinstance(m, wanted)), None)
        if marker is not None:
            yield at, marker
        yield from _inside(field.type, wanted, at, above)


def _inside(annotation: Any, wanted: type[Marker], at: Path, above: tuple[Any, ...]) -> Iterator[tuple[Path, Any]]:
    bare = peel(annotation)[0]
    if isinstance(bare, type) and issubclass(bare, msgspec.Struct):
        if bare not in above:
            yield from _found(bare, wanted, at, (*above, bare))
        return
    arguments = [argument for argument in get_args(bare) if argument is not Ellipsis]
    if getattr(bare, "__origin__", None) is dict:
        arguments = arguments[1:]
    union = getattr(bare, "__origin__", None) is None or "Union" in str(getattr(bare, "__origin__", ""))
    for argument in arguments:
        inner, _, _, marks = peel(argument)
        step = at if union else (*at, "*")
        marker = next((m for m in marks if isinstance(m, wanted)), None)
        if marker is not None:
            yield step, marker
        yield from _inside(inner, wanted, step, above)
