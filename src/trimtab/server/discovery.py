"""What is served, told to clients: the old documents one by one, and the aggregated one that kubectl reads at once."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import orjson

from trimtab.server.aggregation import told
from trimtab.server.aggregation.priorities import CUSTOM, OURS, Priority, builtin
from trimtab.server.registry import Registry, Served

if TYPE_CHECKING:
    from trimtab.server.aggregation.aggregator import Aggregator

AGGREGATED = "application/json;g=apidiscovery.k8s.io;v={version};as=APIGroupDiscoveryList"
SCALE = {"group": "autoscaling", "version": "v1", "kind": "Scale"}
TOKEN = {"group": "authentication.k8s.io", "version": "v1", "kind": "TokenRequest"}
FOREIGN = {
    "token": TOKEN,
    "eviction": {"group": "policy", "version": "v1", "kind": "Eviction"},
    "binding": {"group": "", "version": "v1", "kind": "Binding"},
}
"""Parts whose requests are of a kind of their own."""
VERBS = {
    **dict.fromkeys(FOREIGN, ("create",)),
    "approval": ("get", "patch", "update"),
    "artifacts": ("delete", "get", "update"),
    "versions": ("get",),
}
"""Of parts of objects; of those that are not named here, update."""
_STORED = {"customresourcedefinitions.apiextensions.k8s.io": "v1beta1"}  # as the hash of the real server has it


class Discovery:
    """Documents are made when first asked for, and again when a kind came or went."""

    def __init__(self, registry: Registry, address: str, aggregator: Aggregator) -> None:
        self._registry = registry
        self._address = address
        self._aggregator = aggregator
        self._cached: dict[str, tuple[tuple[int, int], bytes]] = {}

    def api_versions(self) -> dict[str, Any]:
        address = {"clientCIDR": "0.0.0.0/0", "serverAddress": self._address}
        return {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": [address]}

    def groups(self) -> dict[str, Any]:
        return {
            "kind": "APIGroupList",
            "apiVersion": "v1",
            "groups": [self._group(g) for g in self._group_names(legacy=True) if g],
        }

    def group(self, name: str) -> dict[str, Any] | None:
        if name not in self._group_names() or not name:
            return None
        return {"kind": "APIGroup", "apiVersion": "v1", **self._group(name)}

    def resources(self, group: str, version: str) -> dict[str, Any] | None:
        kinds = self._kinds(group, version)
        if not kinds:
            return None
        found = [resource for served in kinds for resource in _legacy(served)]
        group_version = f"{group}/{version}" if group else version
        document: dict[str, Any] = {"kind": "APIResourceList"}
        if group:
            document["apiVersion"] = "v1"
        return {**document, "groupVersion": group_version, "resources": found}

    def aggregated(self, version: str, *, core: bool) -> tuple[bytes, str]:
        """The document and its ETag."""
        key = f"{version}/{core}"
        cached = self._cached.get(key)
        now = (self._registry.changed, self._aggregator.changed)
        if cached is None or cached[0] != now:
            names = [name for name in self._group_names() if (name == "") is core]
            document = {
                "kind": "APIGroupDiscoveryList",
                "apiVersion": f"apidiscovery.k8s.io/{version}",
                "metadata": {},
                "items": [self._aggregated_group(name) for name in names],
            }
            cached = self._cached[key] = (now, orjson.dumps(document) + b"\n")
        tag = hashlib.sha256(cached[1]).hexdigest().upper()
        return cached[1], f'"{tag}"'

    def _priorities(self) -> dict[tuple[str, str], Priority]:
        """Of every group and version, ours and others'."""
        found = {}
        for served in self._registry:
            kind = served.kind
            own = builtin(kind.group, kind.version) if served.strategy.native else None
            found[kind.group, kind.version] = own or CUSTOM
        return found | {service.key: service.priority for service in self._aggregator.services.values()}

    def _group_names(self, *, legacy: bool = False) -> list[str]:
        """By priority, then by name: the older documents go by the names of APIServices, which begin with the version."""
        most: dict[str, int] = {}
        names: dict[str, str] = {}
        for (group, version), priority in self._priorities().items():
            most[group] = max(most.get(group, 0), priority.group)
            name = f"{version}.{group}" if legacy else group
            names[group] = min(names.get(group, name), name)
        return sorted(most, key=lambda group: (group != OURS, -most[group], names[group]))

    def _versions(self, group: str) -> list[str]:
        found = {version: p.version for (name, version), p in self._priorities().items() if name == group}
        return sorted(found, key=lambda version: (found[version], version_order(version)), reverse=True)

    def _kinds(self, group: str, version: str) -> list[Served]:
        found = [s for s in self._registry if s.kind.group == group and s.kind.version == version]
        return sorted(found, key=lambda served: served.kind.plural)

    def _group(self, name: str) -> dict[str, Any]:
        versions = [{"groupVersion": f"{name}/{v}", "version": v} for v in self._versions(name)]
        return {"name": name, "versions": versions, "preferredVersion": versions[0]}

    def _aggregated_group(self, name: str) -> dict[str, Any]:
        versions = [self._aggregated_version(name, v) for v in self._versions(name)]
        metadata = {"name": name, "creationTimestamp": None} if name else {"creationTimestamp": None}
        return {"metadata": metadata, "versions": versions}

    def _aggregated_version(self, group: str, version: str) -> dict[str, Any]:
        service = self._aggregator.services.get((group, version))
        if service is not None:
            return told.version_of(version, self._aggregator.listed.get(service.key), group, fresh=service.available)
        resources = [_modern(served) for served in self._kinds(group, version)]
        return {"version": version, "resources": resources, "freshness": "Current"}


def version_order(version: str) -> tuple[int, int, int, str]:
    """Newest and most stable last: v1 over v1beta1 over v1alpha1 over anything else (apimachinery/pkg/version)."""
    match = re.fullmatch(r"v(\d+)(?:(alpha|beta)(\d+))?", version)
    if match is None:
        return (0, 0, 0, "".join(chr(0x10FFFF - ord(c)) for c in version))
    stage = {"alpha": 1, "beta": 2, None: 3}[match[2]]
    return (stage, int(match[1]), int(match[3] or 0), "")


def _subresources(served: Served) -> Iterable[tuple[str, dict[str, str], tuple[str, ...]]]:
    kind = served.kind
    own = {"group": kind.group, "version": kind.version, "kind": kind.kind}
    doors = []
    if kind.scale is not None:
        doors.append(("scale", SCALE, ("get", "patch", "update")))
    if kind.status:
        doors.append(("status", own, ("get", "patch", "update")))
    yield from doors if served.strategy.native else reversed(doors)
    for name in served.strategy.subresources:
        yield name, FOREIGN.get(name, own), VERBS.get(name, ("update",))


def _legacy(served: Served) -> list[dict[str, Any]]:
    kind = served.kind
    main: dict[str, Any] = {
        "name": kind.plural,
        "singularName": kind.singular,
        "namespaced": kind.namespaced,
        "kind": kind.kind,
        "verbs": list(served.strategy.verbs),
    }
    if kind.short_names:
        main["shortNames"] = list(kind.short_names)
    if kind.categories:
        main["categories"] = list(kind.categories)
    if "get" in served.strategy.verbs:
        stored = served.stored.kind
        version = _STORED.get(stored.resource, stored.version)
        raw = hashlib.sha256(f"{stored.group}/{version}/{stored.kind}".encode()).digest()
        main["storageVersionHash"] = base64.b64encode(raw[:8]).decode()
    rows = [main]
    for name, responds, verbs in _subresources(served):
        row: dict[str, Any] = {"name": f"{kind.plural}/{name}", "singularName": "", "namespaced": kind.namespaced}
        if responds["group"] != kind.group or responds["version"] != kind.version:
            row |= {"group": responds["group"], "version": responds["version"]}
        rows.append({**row, "kind": responds["kind"], "verbs": list(verbs)})
    return rows


def _modern(served: Served) -> dict[str, Any]:
    kind = served.kind
    own = {"group": kind.group, "version": kind.version, "kind": kind.kind}
    main: dict[str, Any] = {
        "resource": kind.plural,
        "responseKind": own,
        "scope": "Namespaced" if kind.namespaced else "Cluster",
        "singularResource": kind.singular,
        "verbs": list(served.strategy.verbs),
    }
    if kind.short_names:
        main["shortNames"] = list(kind.short_names)
    if kind.categories:
        main["categories"] = list(kind.categories)
    parts = [
        {"subresource": name, "responseKind": responds, "verbs": list(verbs)}
        for name, responds, verbs in _subresources(served)
    ]
    if parts:
        main["subresources"] = parts
    return main
