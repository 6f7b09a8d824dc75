"""The ConfigMaps and Secrets that a pod template refers to. What is in them is part of a revision.

Not among them: `imagePullSecrets`, and credentials of storage. They say how to get something, and not what runs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Literal

import msgspec
from msgspec import UNSET

from trimtab.client.protocol import Client
from trimtab.model.errors import StatusError
from trimtab.model.kubernetes import ConfigMap, Secret
from trimtab.runtime.objects import typed
from trimtab.systems.delivery.kinds import TrackedConfig
from trimtab.systems.delivery.kinds.fields import TRACK
from trimtab.systems.delivery.revisions.hashing import digest

ConfigKind = Literal["ConfigMap", "Secret"]
Config = ConfigMap | Secret
MAX_CONFIGS = 64
"""As many as a status may hold."""


class TooManyConfigs(ValueError):  # noqa: N818 - it reads as what is wrong
    def __init__(self, count: int) -> None:
        super().__init__(f"the template refers to {count} ConfigMaps and Secrets; {MAX_CONFIGS} are possible")


class ConfigReference(msgspec.Struct, frozen=True, order=True):
    """`optional` when pods start without it, too."""

    kind: ConfigKind
    name: str
    optional: bool = False


class Tracked(msgspec.Struct, frozen=True, kw_only=True):
    """What was found. `objects` are those of `configs`, in their order; they hold the data."""

    configs: tuple[TrackedConfig, ...] = ()
    missing: tuple[ConfigReference, ...] = ()
    objects: tuple[Config, ...] = ()

    @property
    def needed(self) -> tuple[ConfigReference, ...]:
        """Those missing without which no pod starts."""
        return tuple(reference for reference in self.missing if not reference.optional)


class Place(msgspec.Struct, frozen=True):
    """Where a template names a config: a mapping of it, and the field with the name."""

    kind: ConfigKind
    holder: dict[str, Any]
    field: str


def references(template: Mapping[str, Any]) -> tuple[ConfigReference, ...]:
    """Each once, ordered; optional when it is so everywhere."""
    found: dict[tuple[ConfigKind, str], bool] = {}
    for place in places(template):
        name = place.holder.get(place.field)
        if isinstance(name, str) and name:
            optional = place.holder.get("optional") is True
            found[place.kind, name] = optional and found.get((place.kind, name), True)
    return tuple(ConfigReference(kind, name, found[kind, name]) for kind, name in sorted(found))


def places(template: Mapping[str, Any]) -> Iterator[Place]:
    """Everywhere that a template may name a ConfigMap or a Secret."""
    spec = _inner(template, "spec")
    for volume in _items(spec, "volumes"):
        yield from _sources(volume, "secretName")
        for source in _items(_inner(volume, "projected"), "sources"):
            yield from _sources(source, "name")
    for container in (*_items(spec, "initContainers"), *_items(spec, "containers")):
        for source in _items(container, "envFrom"):
            yield Place("ConfigMap", _inner(source, "configMapRef"), "name")
            yield Place("Secret", _inner(source, "secretRef"), "name")
        for variable in _items(container, "env"):
            source = _inner(variable, "valueFrom")
            yield Place("ConfigMap", _inner(source, "configMapKeyRef"), "name")
            yield Place("Secret", _inner(source, "secretKeyRef"), "name")


def checksum(obj: Config) -> str:
    """Of what is in it. Nothing of that can be read from it, and labels do not matter."""
    binary = obj.binary_data if isinstance(obj, ConfigMap) else UNSET
    return "sha256:" + digest({"binaryData": binary or {}, "data": obj.data or {}})


async def tracked(client: Client, namespace: str, template: Mapping[str, Any]) -> Tracked:
    """What a template refers to, as it is now. TooManyConfigs when a status could not hold it."""
    wanted = references(template)
    if len(wanted) > MAX_CONFIGS:
        raise TooManyConfigs(len(wanted))
    configs, missing, objects = [], [], []
    for reference in wanted:
        found = await _found(client, namespace, reference)
        if found is None:
            missing.append(reference)
        elif is_tracked(found):
            configs.append(TrackedConfig(kind=reference.kind, name=reference.name, checksum=checksum(found)))
            objects.append(found)
    return Tracked(configs=tuple(configs), missing=tuple(missing), objects=tuple(objects))


def is_tracked(obj: Config) -> bool:
    """One that is not is read live by pods, as without this system."""
    return (obj.metadata.annotations or {}).get(TRACK) != "false"


async def _found(client: Client, namespace: str, reference: ConfigReference) -> Config | None:
    cls: type[ConfigMap] | type[Secret] = ConfigMap if reference.kind == "ConfigMap" else Secret
    try:
        return typed(await client.get(cls, reference.name, namespace), cls)
    except StatusError as error:
        if error.code != 404:
            raise
        return None


def _sources(holder: Mapping[str, Any], secret: str) -> Iterator[Place]:
    yield Place("ConfigMap", _inner(holder, "configMap"), "name")
    yield Place("Secret", _inner(holder, "secret"), secret)


def _inner(holder: Mapping[str, Any], field: str) -> dict[str, Any]:
    """A template has no schema in its resource: what is of another type is not there."""
    value = holder.get(field)
    return value if isinstance(value, dict) else {}


def _items(holder: Mapping[str, Any], field: str) -> list[dict[str, Any]]:
    value = holder.get(field)
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list | tuple) else []
