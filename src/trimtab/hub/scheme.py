"""The hub kinds that a process knows, each under one or several group suffixes, and how to go from a kind to its spokes.

A group brings a `SchemeBuilder`, and a process adds the groups that it wants. What is registered twice is an error at the
start; what nobody registered is an error that tells what there is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from trimtab.hub.artifacts.digests import FilePaths, file_paths
from trimtab.hub.contract import Hub, HubError
from trimtab.hub.lint import refuse_ids
from trimtab.hub.proxies.default import Defaulter, defaulted
from trimtab.hub.proxies.version import is_versioned
from trimtab.hub.references import Reference, references_of
from trimtab.model.hub import HubKind, HubResource
from trimtab.model.kind import Kind
from trimtab.model.names import dns_subdomain_problems
from trimtab.model.resource import Resource, definition_of
from trimtab.model.scheme import SUFFIX, Scheme


class SpokeConvertor(msgspec.Struct, frozen=True):
    """Another shape of a hub kind: what a service keeps, or an older version of the API (then `type` is its class)."""

    type: Any
    convertor: Any


class HubConfig(msgspec.Struct, frozen=True, kw_only=True):
    """What is registered. A kind without a class gives its `kind`, with a group that has no suffix yet."""

    cls: type[HubResource] | None = None
    kind: Kind | None = None
    defaulter: Defaulter | None = None
    list_kind: str = ""
    spokes: tuple[SpokeConvertor, ...] = ()
    exempt: tuple[str, ...] = ()
    """Fields that are called IDs and refer to nothing of ours: paths, or names."""
    references: tuple[tuple[tuple[str, ...], str], ...] = ()
    """Of a kind without a class: (path, kind that is named there)."""
    files: FilePaths = FilePaths()
    """Of a kind without a class: where it names files."""
    versioned: bool = False
    """Of a kind without a class: `spec.version` is published."""

    @classmethod
    def of(cls, kind: HubKind, **more: Any) -> HubConfig:
        return cls(cls=kind.cls, defaulter=kind.defaulter, **more)


class Registered(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """A kind under one suffix. `type` is that of its rows in the storage service, whatever the suffix."""

    kind: Kind
    config: HubConfig
    suffix: str
    type: str

    @property
    def versioned(self) -> bool:
        return self.config.versioned or is_versioned(self.config.cls)

    @property
    def files(self) -> FilePaths:
        return self.config.files if self.config.cls is None else file_paths(self.config.cls)


class UnknownKind(HubError):  # noqa: N818
    """Nobody registered it."""

    code = 400
    reason = "BadRequest"


class HubScheme:
    """Kinds by the names that documents have, by plural, by class."""

    def __init__(self, suffixes: Sequence[str] = (SUFFIX,)) -> None:
        for suffix in suffixes:
            if problems := dns_subdomain_problems(suffix):
                raise ValueError(f'"{suffix}" cannot end the name of a group: {problems[0]}')
        self._schemes = {suffix: Scheme(suffix) for suffix in dict.fromkeys(suffixes)}
        self._known: dict[tuple[str, str], Registered] = {}
        self._spokes: dict[str, list[SpokeConvertor]] = {}
        self._older: dict[tuple[str, str], tuple[SpokeConvertor, Registered]] = {}

    @property
    def suffixes(self) -> tuple[str, ...]:
        return tuple(self._schemes)

    def add(self, *configs: HubConfig, suffix: str | None = None) -> None:
        """Register kinds, under one suffix or all of the scheme's. ValueError for what is there already."""
        if suffix is not None:
            self._schemes.setdefault(suffix, Scheme(suffix))
        for config in configs:
            groups: set[str] = set()
            for each in self._schemes if suffix is None else (suffix,):
                group = self._kind(config, each).group
                if group not in groups:  # one that has a domain of its own is the same under every suffix
                    groups.add(group)
                    self._add(config, each)
            for spoke in config.spokes:
                self.add_spokes_for_hub(_type_of(config), spoke)

    def _add(self, config: HubConfig, suffix: str) -> None:
        kind = self._kind(config, suffix)
        key = (kind.api_version, kind.kind)
        if key in self._known or key in self._older:
            raise ValueError(f"{kind.kind} of {kind.api_version} is registered twice")
        for other in self.registered(suffix):
            if other.kind.plural == kind.plural and other.kind.group == kind.group:
                raise ValueError(f"{kind.plural} of {kind.group} are {other.kind.kind} already, and not {kind.kind}")
        refuse_ids(kind.kind, kind.schema.document, config.exempt)
        self._known[key] = Registered(kind=kind, config=config, suffix=suffix, type=_type_of(config))

    def _kind(self, config: HubConfig, suffix: str) -> Kind:
        if config.cls is not None:
            kind = self._schemes[suffix].kind_of(config.cls)
        elif config.kind is not None:
            group = config.kind.group
            kind = msgspec.structs.replace(config.kind, group=group if "." in group else f"{group}.{suffix}")
        else:
            raise ValueError("a HubConfig needs a class or a kind")
        return msgspec.structs.replace(kind, list_kind=config.list_kind) if config.list_kind else kind

    def registered(self, suffix: str | None = None) -> Iterator[Registered]:
        return (each for each in self._known.values() if suffix is None or each.suffix == suffix)

    def find(self, api_version: str, kind: str) -> Registered:
        """UnknownKind, which lists the known ones."""
        found = self._known.get((api_version, kind))
        if found is None:
            known = ", ".join(sorted(f"{version} {name}" for version, name in (*self._known, *self._older)))
            raise UnknownKind(
                f"there is no {kind or 'kind'} of {api_version or 'no group'}; known are {known or 'none'}"
            )
        return found

    def of_list(self, api_version: str, list_kind: str) -> Registered | None:
        """The kind that a list is of."""
        for each in self._known.values():
            if each.kind.api_version == api_version and each.kind.list_kind == list_kind:
                return each
        return None

    def by_kind(self, kind: str, suffix: str | None = None) -> tuple[Registered, ...]:
        return tuple(each for each in self.registered(suffix) if each.kind.kind == kind)

    def by_plural(self, plural: str, suffix: str | None = None) -> Registered:
        """By `blueprints`, `blueprints.infra` or `blueprints.infra.trimtab.dev`. UnknownKind, which lists the known."""
        for each in self.registered(suffix or self.suffixes[0] if plural.count(".") < 2 else None):
            if plural in (each.kind.plural, each.type, each.kind.resource):
                return each
        known = ", ".join(sorted(each.kind.resource for each in self._known.values()))
        raise UnknownKind(f"there are no {plural}; known are {known or 'none'}")

    def new(self, api_version: str, kind: str, *, project: str = "") -> Hub:
        """A document of this kind with its defaults."""
        found = self.find(api_version, kind)
        return defaulted({"metadata": {}}, found.kind, found.config.defaulter, project=project)

    def references(self, registered: Registered) -> tuple[Reference, ...]:
        """Where a kind refers to others that are registered, for hydration."""
        types: dict[str, str] = {}
        for each in self.registered(registered.suffix):
            group = each.type.partition(".")[2]
            types[f"{each.kind.kind}.{group}"] = each.type
            if each.kind.kind not in types or group == registered.type.partition(".")[2]:
                types[each.kind.kind] = each.type  # of two groups with the same kind, one's own is meant
        config = registered.config
        if config.cls is not None:
            return references_of(config.cls, types)
        return tuple(Reference(path, types[kind]) for path, kind in config.references if kind in types)

    def add_spokes_for_hub(self, hub: type[HubResource] | str, *spokes: SpokeConvertor) -> None:
        """Other shapes of a registered kind. One whose type is a class of the same kind with another version is that
        version of the API, under every suffix of the kind."""
        type_ = hub if isinstance(hub, str) else _type_of(HubConfig(cls=hub))
        registered = [each for each in self._known.values() if each.type == type_]
        if not registered:
            raise UnknownKind(f"{type_} is not registered, so it has no spokes")
        for spoke in spokes:
            if any(each.type is spoke.type for each in self._spokes.get(type_, ())):
                raise ValueError(f"{type_} has the spoke {_told(spoke.type)} twice")
            self._spokes.setdefault(type_, []).append(spoke)
            if isinstance(spoke.type, type) and issubclass(spoke.type, Resource):
                self._add_version(spoke, registered)

    def _add_version(self, spoke: SpokeConvertor, registered: Sequence[Registered]) -> None:
        definition = definition_of(spoke.type)
        for each in registered:
            key = (f"{each.kind.group}/{definition.version}", definition.kind)
            if key in self._known or key in self._older:
                raise ValueError(f"{key[1]} of {key[0]} is registered twice")
            self._older[key] = (spoke, each)

    def spokes(self, type_: str) -> tuple[SpokeConvertor, ...]:
        return tuple(self._spokes.get(type_, ()))

    def convertor(self, type_: str, spoke: Any) -> Any:
        """The convertor between a kind and one of its spokes."""
        for each in self._spokes.get(type_, ()):
            if each.type is spoke:
                return each.convertor
        known = ", ".join(_told(each.type) for each in self._spokes.get(type_, ()))
        raise UnknownKind(f"{type_} has no spoke {_told(spoke)}; it has {known or 'none'}")

    def older(self, api_version: str, kind: str) -> tuple[SpokeConvertor, Registered] | None:
        """The spoke that is this other version of the API, and the kind that is kept in its place."""
        return self._older.get((api_version, kind))

    @property
    def versions(self) -> Mapping[tuple[str, str], Registered]:
        """Other versions of the API: (apiVersion, kind) → the kind that is kept in its place."""
        return {key: registered for key, (_, registered) in self._older.items()}


AddToScheme = Callable[[HubScheme], None]


class SchemeBuilder:
    """Functions that register; a group is one of these, and groups add up: `SchemeBuilder(infra, apps)(scheme)`."""

    def __init__(self, *functions: AddToScheme) -> None:
        self._functions = list(functions)

    def register(self, function: AddToScheme) -> AddToScheme:
        self._functions.append(function)
        return function

    def add_to_scheme(self, scheme: HubScheme) -> None:
        for function in self._functions:
            function(scheme)

    __call__ = add_to_scheme


def builder_for(*configs: HubConfig | HubKind, suffix: str | None = None) -> SchemeBuilder:
    """A builder of these kinds, under one suffix or all of the scheme's."""
    made = [HubConfig.of(config) if isinstance(config, HubKind) else config for config in configs]
    return SchemeBuilder(lambda scheme: scheme.add(*made, suffix=suffix))


def _type_of(config: HubConfig) -> str:
    if config.cls is not None:
        definition = definition_of(config.cls)
        return f"{definition.plural}.{definition.group}"
    if config.kind is None:
        raise ValueError("a HubConfig needs a class or a kind")
    return f"{config.kind.plural}.{config.kind.group}"


def _told(spoke: Any) -> str:
    return str(getattr(spoke, "__name__", spoke))
