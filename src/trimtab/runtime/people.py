"""What people may do with a system's kinds: what the roles view, edit and admin say of a namespace holds for them, too.

Nobody gets by it what is cluster-wide, nor the verb `lineage`. Files of hub kinds may be secret, so view does not have them,
as it does not have Secrets.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from trimtab.model.kind import Kind

Document = dict[str, Any]

RBAC = "rbac.authorization.k8s.io"
READ = ["get", "list", "watch"]
WRITE = ["create", "delete", "deletecollection", "patch", "update"]
GATHERED = {"view": ("view", "edit", "admin"), "edit": ("edit", "admin")}
"""Which of the usual roles gather each of ours."""


def for_people(name: str, kinds: Iterable[Kind], hub: Iterable[Kind], labels: dict[str, str]) -> list[Document]:
    """Two ClusterRoles, `<name>:view` and `<name>:edit`; none for kinds that are all cluster-wide."""
    own, served = _by_group(kinds), _by_group(hub)
    viewed = [_rule(group, [*plurals, *_parts(plurals, "status")], READ) for group, plurals in own]
    viewed += [_rule(group, [*plurals, *_parts(plurals, "status", "versions")], READ) for group, plurals in served]
    edited = [_rule(group, plurals, WRITE) for group, plurals in (*own, *served)]
    edited += [_rule(group, _parts(plurals, "artifacts"), ["delete", "get", "update"]) for group, plurals in served]
    if not edited:
        return []
    return [
        _role(f"{name}:{role}", GATHERED[role], rules, labels) for role, rules in (("view", viewed), ("edit", edited))
    ]


def _role(name: str, gatherers: Sequence[str], rules: list[Document], labels: dict[str, str]) -> Document:
    gathered = {f"{RBAC}/aggregate-to-{gatherer}": "true" for gatherer in gatherers}
    metadata = {"name": name, "labels": {**labels, **gathered}}
    return {"apiVersion": f"{RBAC}/v1", "kind": "ClusterRole", "metadata": metadata, "rules": rules}


def _rule(group: str, resources: list[str], verbs: list[str]) -> Document:
    return {"apiGroups": [group], "resources": resources, "verbs": verbs}


def _parts(plurals: list[str], *parts: str) -> list[str]:
    return [f"{plural}/{part}" for plural in plurals for part in parts]


def _by_group(kinds: Iterable[Kind]) -> list[tuple[str, list[str]]]:
    """The plurals of namespaced kinds."""
    found: dict[str, set[str]] = {}
    for kind in kinds:
        if kind.namespaced:
            found.setdefault(kind.group, set()).add(kind.plural)
    return [(group, sorted(plurals)) for group, plurals in sorted(found.items())]
