"""Copies of ConfigMaps and Secrets that never change, and templates that refer to them.

Pods of stable may start at any time, and must start with the configuration that was proven. So each content of a config
gets a copy of its own, named after it and after whose copy it is: two CanaryDeployments that share a config have a copy
each, and neither takes the other's away.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from typing import Any

from trimtab.model.kubernetes import ConfigMap, Secret
from trimtab.model.objectmeta import ObjectMeta
from trimtab.systems.delivery.kinds import TrackedConfig
from trimtab.systems.delivery.kinds.fields import OWNER
from trimtab.systems.delivery.revisions.configs import Config, Tracked, places

COPY_OF = "delivery.trimtab.dev/copy-of"
"""Annotation of a copy: the name of the original."""
MAX_NAME = 253
MADE_BY_THE_CLUSTER = frozenset({"kubernetes.io/service-account-token", "bootstrap.kubernetes.io/token"})
"""Types of Secrets that a controller of Kubernetes fills or deletes: their copies are plain ones."""

Renames = Mapping[tuple[str, str], str]
"""The new name for a kind and a name."""


def copy_name(config: TrackedConfig, owner: str) -> str:
    """`<name>-<8 hex>`, of at most 253 characters."""
    suffix = hashlib.sha256(f"{owner}/{config.name}/{config.checksum}".encode()).hexdigest()[:8]
    return f"{config.name[: MAX_NAME - 9].rstrip('.-')}-{suffix}"


def copies(tracked: Tracked, owner: str) -> tuple[Config, ...]:
    """The copies that a CanaryDeployment of this name needs. Labels of the originals may select them: they stay behind."""
    return tuple(
        _copy(obj, copy_name(config, owner), owner)
        for config, obj in zip(tracked.configs, tracked.objects, strict=True)
    )


def pinned(template: Mapping[str, Any], configs: Iterable[TrackedConfig], owner: str) -> dict[str, Any]:
    """The template with the copies in place of the originals."""
    return _renamed(template, {(config.kind, config.name): copy_name(config, owner) for config in configs})


def unpinned(template: Mapping[str, Any], configs: Iterable[TrackedConfig], owner: str) -> dict[str, Any]:
    """The template as it was before."""
    return _renamed(template, {(config.kind, copy_name(config, owner)): config.name for config in configs})


def _copy(obj: Config, name: str, owner: str) -> Config:
    metadata = ObjectMeta(name=name, namespace=obj.namespace, labels={OWNER: owner}, annotations={COPY_OF: obj.name})
    if isinstance(obj, ConfigMap):
        return ConfigMap(metadata=metadata, data=obj.data, binary_data=obj.binary_data, immutable=True)
    kept = obj.type if obj.type not in MADE_BY_THE_CLUSTER else "Opaque"
    return Secret(metadata=metadata, type=kept, data=obj.data, immutable=True)


def _renamed(template: Mapping[str, Any], renames: Renames) -> dict[str, Any]:
    copied: dict[str, Any] = _own(template)
    for place in places(copied):
        name = place.holder.get(place.field)
        if isinstance(name, str) and (place.kind, name) in renames:
            place.holder[place.field] = renames[place.kind, name]
    return copied


def _own(value: Any) -> Any:
    """A copy to change, in which nothing stands twice."""
    if isinstance(value, Mapping):
        return {name: _own(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_own(item) for item in value]
    return value
