"""What is to be known of one document before anything is decided about it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import msgspec

from trimtab.systems.gitops.merging import Base, FieldConflict, normal, same
from trimtab.systems.gitops.parsing import Identity, SourceDocument
from trimtab.systems.gitops.planning.plan import PRUNE


class Known(Protocol):
    """What the inventory has of a document (`inventory.Entry`)."""

    @property
    def uid(self) -> str: ...
    @property
    def path(self) -> str: ...
    @property
    def digest(self) -> str: ...
    @property
    def base(self) -> Base: ...
    @property
    def unowned(self) -> bool: ...


def written(live: Mapping[str, Any], said: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """A live object as a new file says it, or what is `said` of it there: in the hub's shape if it has it, and without what
    the server adds."""
    document = normal(live if said is None else said)
    if live.get("metadata", {}).get("project"):
        document["metadata"] = {
            "project" if name == "namespace" else name: value for name, value in document["metadata"].items()
        }
    first = ("apiVersion", "kind", "metadata")
    return {name: document[name] for name in (*first, *(n for n in document if n not in first)) if name in document}


def opted_out(document: Mapping[str, Any] | None) -> bool:
    annotations = (document or {}).get("metadata", {}).get("annotations") or {}
    return str(annotations.get(PRUNE, "")).lower() == "false"


def is_settled(
    source: SourceDocument, live: Mapping[str, Any] | None, entry: Known | None, *, known: bool = False
) -> bool:
    """Nothing changed on either side since the last sync: by far the most documents of most syncs. `known`: not in the
    system."""
    if entry is None or entry.unowned or live is None or entry.digest != source.digest:
        return False
    return known or same(entry.base.live, normal(live))


def is_secret(identity: Identity) -> bool:
    return identity.kind == "Secret" and not identity.group


def is_going(live: Mapping[str, Any]) -> bool:
    return bool(live.get("metadata", {}).get("deletionTimestamp"))


def without_values(field: FieldConflict) -> FieldConflict:
    values = (field.base, field.git, field.system)
    return FieldConflict(field.path, *(v if v is msgspec.UNSET else "(not shown)" for v in values))


MADE_BY_THE_SERVER = frozenset(
    {
        ("", "ConfigMap", "kube-root-ca.crt"),
        ("", "ConfigMap", "openshift-service-ca.crt"),
        ("", "ServiceAccount", "default"),
        ("", "Service", "kubernetes"),
    }
)
PASSING_KINDS = frozenset(
    {
        ("", "Endpoints"),
        ("", "Event"),
        ("coordination.k8s.io", "Lease"),
        ("discovery.k8s.io", "EndpointSlice"),
        ("events.k8s.io", "Event"),
    }
)


def is_the_servers(identity: Identity, live: Mapping[str, Any]) -> bool:
    """What is in every namespace, comes and goes by itself, or belongs to another object: nobody meant it for Git."""
    return (
        (identity.group, identity.kind, identity.name) in MADE_BY_THE_SERVER
        or (identity.group, identity.kind) in PASSING_KINDS
        or bool(live.get("metadata", {}).get("ownerReferences"))
    )
