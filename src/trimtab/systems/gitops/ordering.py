"""In which order documents are applied: waves, each of which may be applied at once when the ones before it are.

A document waits for what it refers to (names in it, told by the caller), for what its annotation names, and for the kinds
that others stand on (namespaces, definitions, then accounts and configuration). A reference out of the revision is no wait.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import msgspec

from trimtab.systems.gitops.parsing import Identity

DEPENDS_ON = "gitops.trimtab.dev/depends-on"
"""`Kind/name, group/Kind/name, …`: of the same namespace, or of the cluster."""

References = Callable[[Identity, dict[str, Any]], Iterable[Identity]]


class Ordering(msgspec.Struct, frozen=True):
    """Waves of identities, each sorted. Documents that wait for each other are one cycle, and in one wave together."""

    waves: tuple[tuple[Identity, ...], ...] = ()
    cycles: tuple[tuple[Identity, ...], ...] = ()


_CORE_RANKS = {"Namespace": 0, "ServiceAccount": 2, "Secret": 2, "ConfigMap": 2, "PersistentVolume": 2, "Service": 3}
_RANKS = {
    ("apiextensions.k8s.io", "CustomResourceDefinition"): 0,
    ("scheduling.k8s.io", "PriorityClass"): 1,
    ("storage.k8s.io", "StorageClass"): 1,
    ("rbac.authorization.k8s.io", "ClusterRole"): 1,
    ("rbac.authorization.k8s.io", "Role"): 2,
    ("rbac.authorization.k8s.io", "ClusterRoleBinding"): 3,
    ("rbac.authorization.k8s.io", "RoleBinding"): 3,
    ("admissionregistration.k8s.io", "ValidatingWebhookConfiguration"): 9,
    ("admissionregistration.k8s.io", "MutatingWebhookConfiguration"): 9,
}
_OTHERS = 4


def rank(identity: Identity) -> int:
    """What is known of kinds: lower ones come first. Webhooks come last: they judge all that is applied after them."""
    if not identity.group:
        return _CORE_RANKS.get(identity.kind, _OTHERS)
    if identity.kind == "Project" and identity.group.startswith("hub."):
        return 0
    return _RANKS.get((identity.group, identity.kind), _OTHERS)


def order(documents: Iterable[tuple[Identity, dict[str, Any]]], references: References | None = None) -> Ordering:
    """Waves for documents by their identities."""
    items = dict(documents)
    waiting = _Waiting(items, references)
    waits = {identity: found for identity in items if (found := waiting.of(identity))}
    if not waits:
        return Ordering(tuple(tuple(sorted(found)) for _, found in sorted(_by_rank(items).items())))
    return _in_waves(_components(sorted(items), waits), waits)


def cycles(
    changed: Iterable[Identity], documents: Mapping[Identity, dict[str, Any]], references: References | None = None
) -> tuple[tuple[Identity, ...], ...]:
    """The cycles among all documents that one of the changed is in; only what those lead to is looked at."""
    new = {identity for identity in changed if identity in documents}
    waiting = _Waiting(documents, references)
    waits: dict[Identity, list[Identity]] = {}
    left = list(new)
    while left:
        identity = left.pop()
        if identity not in waits:
            waits[identity] = waiting.of(identity)
            left += waits[identity]
    if not any(waits.values()):
        return ()
    found = _components(sorted(waits), waits)
    return tuple(sorted(tuple(sorted(one)) for one in found if len(one) > 1 and not new.isdisjoint(one)))


class _Waiting:
    """What each of some documents waits for among them."""

    def __init__(self, items: Mapping[Identity, dict[str, Any]], references: References | None) -> None:
        self._items, self._references = items, references
        self._named: dict[tuple[str, str], list[Identity]] | None = None

    def of(self, identity: Identity) -> list[Identity]:
        document = self._items[identity]
        references = self._references(identity, document) if self._references is not None else ()
        found = {other for other in references if other in self._items}
        for group, kind, name in depends_on(document):
            found.update(
                other
                for other in self._by_name().get((kind, name), ())
                if group in ("*", other.group) and other.namespace in ("", identity.namespace)
            )
        found.discard(identity)
        return sorted(found)

    def _by_name(self) -> dict[tuple[str, str], list[Identity]]:
        if self._named is None:
            self._named = {}
            for identity in self._items:
                self._named.setdefault((identity.kind, identity.name), []).append(identity)
        return self._named


def depends_on(document: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    """(group, kind, name) of what the annotation names; a group of "*" is any."""
    annotations = document.get("metadata", {}).get("annotations") or {}
    text = annotations.get(DEPENDS_ON) if isinstance(annotations, dict) else None
    found = []
    for entry in text.split(",") if isinstance(text, str) else ():
        words = entry.strip().split("/")
        if len(words) == 2 and all(words):
            found.append(("*", words[0], words[1]))
        elif len(words) == 3 and all(words):
            found.append((words[0], words[1], words[2]))
    return found


def _by_rank(identities: Iterable[Identity]) -> dict[int, list[Identity]]:
    found: dict[int, list[Identity]] = {}
    for identity in identities:
        found.setdefault(rank(identity), []).append(identity)
    return found


def _in_waves(components: list[list[Identity]], waits: Mapping[Identity, list[Identity]]) -> Ordering:
    """`components` come after what they wait for. What others wait for may not come later than they by its kind alone, so it
    takes the lowest rank of those; within a rank the longest chain of waits counts."""
    home = {identity: number for number, members in enumerate(components) for identity in members}
    needs = [
        {home[other] for identity in members for other in waits.get(identity, ()) if home[other] != number}
        for number, members in enumerate(components)
    ]
    ranks = [min(rank(identity) for identity in members) for members in components]
    for number in range(len(components) - 1, -1, -1):
        for other in needs[number]:
            ranks[other] = min(ranks[other], ranks[number])
    depths = [0] * len(components)
    waves: dict[tuple[int, int], list[Identity]] = {}
    for number, members in enumerate(components):
        depths[number] = max((depths[n] + 1 for n in needs[number] if ranks[n] == ranks[number]), default=0)
        waves.setdefault((ranks[number], depths[number]), []).extend(members)
    return Ordering(
        tuple(tuple(sorted(waves[key])) for key in sorted(waves)),
        tuple(sorted(tuple(sorted(members)) for members in components if len(members) > 1)),
    )


def _components(nodes: Sequence[Identity], waits: Mapping[Identity, list[Identity]]) -> list[list[Identity]]:
    """Strongly connected components, dependencies first (Tarjan's, with a stack of its own: chains may be long)."""
    number: dict[Identity, int] = {}
    low: dict[Identity, int] = {}
    open_nodes: list[Identity] = []
    is_open: set[Identity] = set()
    found: list[list[Identity]] = []
    for root in nodes:
        if root in number:
            continue
        number[root] = low[root] = len(number)
        open_nodes.append(root)
        is_open.add(root)
        work = [(root, iter(waits.get(root, ())))]
        while work:
            node, others = work[-1]
            for other in others:
                if other not in number:
                    number[other] = low[other] = len(number)
                    open_nodes.append(other)
                    is_open.add(other)
                    work.append((other, iter(waits.get(other, ()))))
                    break
                if other in is_open:
                    low[node] = min(low[node], number[other])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == number[node]:
                    members: list[Identity] = []
                    while not members or members[-1] != node:
                        members.append(open_nodes.pop())
                        is_open.discard(members[-1])
                    found.append(members)
    return found
