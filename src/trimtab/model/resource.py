"""A kind is one Python class: `class DiscoveryRule(Resource, group="discovery", version="v1alpha1")`.

Objects are frozen; `replace` makes a changed one. Fields are snake_case here and camelCase on the wire. A field that
may be absent is `T | UnsetType = UNSET`; a default value becomes the default of the schema and is not sent.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Self, dataclass_transform

import msgspec
from msgspec import UnsetType

from trimtab.model.kind import Column, Scale
from trimtab.model.markers import OneOf, Rule
from trimtab.model.objectmeta import ObjectMeta


class Definition(msgspec.Struct, frozen=True, kw_only=True):
    """What a class statement says of the kind. `group` without a dot gets the Scheme's suffix; "" is core."""

    group: str
    version: str
    kind: str
    plural: str
    singular: str = ""
    short: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    namespaced: bool = True
    columns: tuple[Column, ...] = ()
    scale: Scale | None = None
    selectable: tuple[str, ...] = ()
    deprecation: str = ""


class _SpecMeta(msgspec.StructMeta):
    def __new__(
        cls,
        name: str,
        bases: tuple[type, ...],
        namespace: dict[str, Any],
        *,
        one_of: tuple[OneOf, ...] | OneOf = (),
        rules: tuple[Rule, ...] | Rule = (),
        **options: Any,
    ) -> Any:
        made: Any = super().__new__(cls, name, bases, namespace, **{"kw_only": True, **options})
        made.__one_of__ = (one_of,) if isinstance(one_of, OneOf) else one_of
        made.__rules__ = (rules,) if isinstance(rules, Rule) else rules
        return made


class _ResourceMeta(_SpecMeta):
    def __new__(
        cls,
        name: str,
        bases: tuple[type, ...],
        namespace: dict[str, Any],
        *,
        group: str | None = None,
        version: str = "",
        kind: str = "",
        plural: str = "",
        singular: str = "",
        short: tuple[str, ...] = (),
        categories: tuple[str, ...] = (),
        namespaced: bool = True,
        columns: tuple[Column, ...] = (),
        scale: Scale | None = None,
        selectable: tuple[str, ...] = (),
        deprecation: str = "",
        **options: Any,
    ) -> Any:
        made: Any = super().__new__(cls, name, bases, namespace, **options)
        if group is None:
            return made  # a base class of kinds
        if not version:
            raise TypeError(f"{name} has a group and no version")
        made.__definition__ = Definition(
            group=group,
            version=version,
            kind=kind or name,
            plural=plural or (kind or name).lower() + "s",
            singular=singular,
            short=short,
            categories=categories,
            namespaced=namespaced,
            columns=columns,
            scale=scale,
            selectable=selectable,
            deprecation=deprecation,
        )
        return made


@dataclass_transform(kw_only_default=True, frozen_default=True, field_specifiers=(msgspec.field,))
class Spec(msgspec.Struct, metaclass=_SpecMeta, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """Base of the structs inside a kind. `one_of=OneOf("a", "b")` and `rules=Rule(…)` hold for the whole struct."""

    __one_of__: ClassVar[tuple[OneOf, ...]] = ()
    __rules__: ClassVar[tuple[Rule, ...]] = ()

    if TYPE_CHECKING:

        def __init_subclass__(
            cls, *, one_of: tuple[OneOf, ...] | OneOf = (), rules: tuple[Rule, ...] | Rule = (), **options: Any
        ) -> None: ...

    def replace(self, **changes: Any) -> Self:
        """A copy with these fields changed."""
        return msgspec.structs.replace(self, **changes)


@dataclass_transform(kw_only_default=True, frozen_default=True, field_specifiers=(msgspec.field,))
class Resource(
    msgspec.Struct,
    metaclass=_ResourceMeta,
    frozen=True,
    kw_only=True,
    dict=True,
    rename="camel",
    omit_defaults=True,
):
    """Base of kinds. `api_version` and `kind` are empty until a Scheme encodes or decodes the object."""

    __one_of__: ClassVar[tuple[OneOf, ...]] = ()
    __rules__: ClassVar[tuple[Rule, ...]] = ()
    __definition__: ClassVar[Definition]

    api_version: str = ""
    kind: str = ""
    metadata: ObjectMeta = ObjectMeta()

    if TYPE_CHECKING:

        def __init_subclass__(
            cls,
            *,
            group: str | None = None,
            version: str = "",
            kind: str = "",
            plural: str = "",
            singular: str = "",
            short: tuple[str, ...] = (),
            categories: tuple[str, ...] = (),
            namespaced: bool = True,
            columns: tuple[Column, ...] = (),
            scale: Scale | None = None,
            selectable: tuple[str, ...] = (),
            deprecation: str = "",
            one_of: tuple[OneOf, ...] | OneOf = (),
            rules: tuple[Rule, ...] | Rule = (),
            **options: Any,
        ) -> None: ...

    @property
    def raw(self) -> Mapping[str, Any] | None:
        """The document that this object was decoded from, unknown fields included; None for one made here."""
        raw = self.__dict__.get("_raw")
        if isinstance(raw, bytes):  # read only when someone asks
            raw = self.__dict__["_raw"] = msgspec.json.decode(raw)
        return raw

    @property
    def name(self) -> str:
        return _text(self.metadata.name)

    @property
    def namespace(self) -> str:
        return _text(self.metadata.namespace)

    def replace(self, **changes: Any) -> Self:
        """A copy with these fields changed. It keeps the raw document, so that a patch knows what the API has."""
        changed = msgspec.structs.replace(self, **changes)
        raw = self.__dict__.get("_raw")
        if raw is not None:
            remember(changed, raw)
        return changed


def remember(obj: Resource, raw: Mapping[str, Any] | bytes) -> None:
    """Keep the document that `obj` was decoded from, read or still as JSON."""
    obj.__dict__["_raw"] = raw


def definition_of(cls: type[Resource]) -> Definition:
    """What a class says of its kind. TypeError when it is none."""
    definition = cls.__dict__.get("__definition__")
    if not isinstance(definition, Definition):
        raise TypeError(f"{cls.__name__} names no group, so it is no kind")
    return definition


def _text(value: str | UnsetType) -> str:
    return "" if isinstance(value, UnsetType) else value
