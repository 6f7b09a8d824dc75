"""CustomResourceDefinitions from kinds, for `trimtab crds` and any cluster. The same kinds give the same document."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from trimtab.model.kind import Column, Kind
from trimtab.model.resource import Resource
from trimtab.model.scheme import Scheme

Document = dict[str, Any]


def crd(
    kind: Kind | type[Resource] | Sequence[Kind | type[Resource]], *, scheme: Scheme | None = None, storage: str = ""
) -> Document:
    """The definition of a kind: of one version, or of all in a sequence; `storage` is the stored one, or the first."""
    known = scheme or Scheme()
    given = kind if isinstance(kind, Sequence) else (kind,)
    kinds = [one if isinstance(one, Kind) else known.kind_of(one) for one in given]
    first = kinds[0]
    if {(k.group, k.plural, k.kind, k.namespaced) for k in kinds} != {
        (first.group, first.plural, first.kind, first.namespaced)
    }:
        raise ValueError(f"versions of {first.kind} disagree on names or scope")
    if not first.group:
        raise ValueError(f"{first.kind} is of the core group, which no definition can extend")
    stored = storage or first.version
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{first.plural}.{first.group}"},
        "spec": {
            "group": first.group,
            "names": _names(first),
            "scope": "Namespaced" if first.namespaced else "Cluster",
            "versions": [_version(one, one.version == stored) for one in kinds],
        },
    }


def crds(scheme: Scheme, conversion: Callable[[Kind], Document] | None = None) -> list[Document]:
    """The definitions of all kinds in a scheme, by name. Of the versions of a kind the hub of its convertors is stored, or
    the first registered. `conversion` is the `spec.conversion` of kinds that have convertors.
    ValueError when a kind has the name that lists of another one have: no server would ever serve both."""
    together: dict[tuple[str, str], list[Kind]] = {}
    lists = {(kind.group, kind.list_kind): kind.kind for kind in scheme.kinds}
    for kind in scheme.kinds:
        if listed := lists.get((kind.group, kind.kind)):
            raise ValueError(f"a list of {listed} is called {kind.kind}: give the kind {kind.kind} another name")
        if kind.group:
            together.setdefault((kind.group, kind.plural), []).append(kind)
    return [_defined(together[key], scheme, conversion) for key in sorted(together)]


def _defined(kinds: list[Kind], scheme: Scheme, conversion: Callable[[Kind], Document] | None) -> Document:
    hub = scheme.hub_of(kinds[0].group, kinds[0].kind)
    if hub is None:
        return crd(kinds, scheme=scheme)
    made = crd(kinds, scheme=scheme, storage=hub.version)
    if conversion is not None:
        made["spec"]["conversion"] = conversion(hub)
    return made


def _names(kind: Kind) -> Document:
    names: Document = {
        "plural": kind.plural,
        "singular": kind.singular,
        "kind": kind.kind,
        "listKind": kind.list_kind,
    }
    return names | _given(shortNames=list(kind.short_names), categories=list(kind.categories))


def _version(kind: Kind, stored: bool) -> Document:
    version: Document = {"name": kind.version, "served": True, "storage": stored}
    if kind.deprecation:
        version |= {"deprecated": True, "deprecationWarning": kind.deprecation}
    subresources: Document = {}
    if kind.status:
        subresources["status"] = {}
    if kind.scale:
        subresources["scale"] = {
            "specReplicasPath": kind.scale.spec_replicas,
            "statusReplicasPath": kind.scale.status_replicas,
        } | _given(labelSelectorPath=kind.scale.label_selector)
    version["schema"] = {"openAPIV3Schema": copy.deepcopy(kind.schema.document)}
    return version | _given(
        subresources=subresources,
        additionalPrinterColumns=_columns(kind.columns),
        selectableFields=[{"jsonPath": path} for path in kind.selectable],
    )


def _columns(columns: Iterable[Column]) -> list[Document]:
    return [
        {"name": column.name, "type": column.type, "jsonPath": column.path}
        | _given(format=column.format, description=column.description, priority=column.priority)
        for column in columns
    ]


def _given(**fields: Any) -> Document:
    return {name: value for name, value in fields.items() if value}
