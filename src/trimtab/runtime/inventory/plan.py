"""What to do so that the world has exactly the objects that an owner declares. Pure.

An object is ours when it carries our inventory's label, or when it is the very one (by uid) that we recorded. Only what
carries the label is ever pruned. An object is known by its uid too: one that is declared under another group, or with its
namespace spelled out, is not pruned under its former name.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from trimtab.client.protocol import Named, Object, Ref
from trimtab.runtime.apply import changes
from trimtab.runtime.objects import uid_of

LABEL = "runtime.trimtab.dev/inventory"
PRUNE = "runtime.trimtab.dev/prune"
FEW, SHARE = 5, 30  # so many objects, or so many per cent of them, may go at once

Document = dict[str, Any]


class Identity(msgspec.Struct, frozen=True):
    """One object whatever version it is read in."""

    group: str
    kind: str
    namespace: str
    name: str


class Entry(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """An object in the inventory. The uid is empty until it was seen. `held`: its deletion was, and is not allowed yet."""

    api_version: str
    kind: str
    name: str
    namespace: str = ""
    uid: str = ""
    held: bool = False

    @property
    def identity(self) -> Identity:
        return Identity(self.api_version.rpartition("/")[0], self.kind, self.namespace, self.name)

    @property
    def ref(self) -> Ref:
        return Ref(Named(self.api_version, self.kind), self.name, self.namespace)

    def __str__(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}" if self.namespace else f"{self.kind} {self.name}"


class Reason(enum.Enum):
    """Why something is not done."""

    NOT_OURS = "it exists and belongs to someone else"
    UNOWNED = "it exists and belongs to nobody: delete it, or allow its adoption"
    DELETING = "it is being deleted: it is made again when it is gone"
    KEPT = f"its annotation {PRUNE} says that it stays; it is released from the inventory"
    MASS_DELETE = "too many objects would go at once: allow the mass deletion if it is meant"
    NAMESPACE = "everything in it would go with it, whoever made it: allow the mass deletion if it is meant"
    DEFINITION = "every object of its kind would go with it, whoever made it: allow the mass deletion if it is meant"
    HELD = "it stays while others of the same deletion are held"


GUARDS = (Reason.MASS_DELETE, Reason.NAMESPACE, Reason.DEFINITION, Reason.HELD)
"""Why a deletion waits for a word."""


class Step(msgspec.Struct, frozen=True):
    """One object and what is known of it. What is declared and what is there are not shown: they may be secret."""

    entry: Entry
    declared: Document | None = None
    live: Document | None = None

    def __repr__(self) -> str:
        return f"Step({self.entry})"


class Refusal(msgspec.Struct, frozen=True):
    entry: Entry
    reason: Reason

    def __str__(self) -> str:
        return f"{self.entry}: {self.reason.value}"


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """What an execution will do, and what it will not."""

    owner: Object
    create: tuple[Step, ...] = ()
    change: tuple[Step, ...] = ()
    unchanged: tuple[Step, ...] = ()
    prune: tuple[Step, ...] = ()
    refused: tuple[Refusal, ...] = ()
    forget: tuple[Entry, ...] = ()  # gone already, or no longer ours

    def __repr__(self) -> str:
        names = ("create", "change", "unchanged", "prune", "refused", "forget")
        return f"Plan({', '.join(f'{name}={len(getattr(self, name))}' for name in names)})"

    @property
    def applied(self) -> tuple[Step, ...]:
        """What goes to the server, in order: what others need comes first."""
        return tuple(sorted((*self.create, *self.change), key=lambda step: _rank(step.entry)))

    @property
    def pruned(self) -> tuple[Step, ...]:
        """What is deleted, in order: what others need goes last."""
        return tuple(sorted(self.prune, key=lambda step: _rank(step.entry), reverse=True))

    @property
    def wanted(self) -> tuple[Step, ...]:
        return (*self.create, *self.change, *self.unchanged)

    @property
    def held(self) -> tuple[Entry, ...]:
        """What would go, and stays until that is allowed."""
        return tuple(
            msgspec.structs.replace(refusal.entry, held=True) for refusal in self.refused if refusal.reason in GUARDS
        )


def planned(
    owner: Object,
    manager: str,
    declared: Mapping[Identity, Document],
    recorded: Sequence[Entry],
    live: Mapping[Identity, Document],
    *,
    adopt: bool = False,
    allow_mass_delete: bool = False,
) -> Plan:
    """`live` has the declared and the recorded objects, as far as they exist."""
    inventory = uid_of(owner)
    create, change, unchanged = [], [], []
    refused: list[Refusal] = []
    uids = {entry.identity: entry.uid for entry in recorded if entry.uid}
    for identity, document in declared.items():
        found = live.get(identity)
        step = Step(entry_of(document, found), document, found)
        reason = _refusal(found, inventory, uids.get(identity, ""), adopt) if found is not None else None
        if reason is not None:
            refused.append(Refusal(step.entry, reason))
        elif found is None:
            create.append(step)
        elif changes(found, document, manager):
            change.append(step)
        else:
            unchanged.append(step)
    prune, kept, forget = _leaving(inventory, declared, recorded, live)
    if not allow_mass_delete and (guarded := held(prune, len(recorded), bool(declared))):
        kept += guarded
        prune = []
    return Plan(
        owner=owner,
        create=tuple(create),
        change=tuple(change),
        unchanged=tuple(unchanged),
        prune=tuple(prune),
        refused=(*refused, *kept),
        forget=tuple(forget),
    )


def _refusal(live: Document, inventory: str, recorded_uid: str, adopt: bool) -> Reason | None:
    """Why an existing object must not be applied to."""
    metadata = live["metadata"]
    label = (metadata.get("labels") or {}).get(LABEL)
    if label != inventory and (label or recorded_uid != metadata["uid"]):
        controlled = any(reference.get("controller") for reference in metadata.get("ownerReferences") or ())
        if label or controlled:
            return Reason.NOT_OURS
        if not adopt:
            return Reason.UNOWNED
    return Reason.DELETING if metadata.get("deletionTimestamp") else None


def _leaving(
    inventory: str,
    declared: Mapping[Identity, Document],
    recorded: Iterable[Entry],
    live: Mapping[Identity, Document],
) -> tuple[list[Step], list[Refusal], list[Entry]]:
    """What was recorded and is declared no more: to delete, to leave, to forget."""
    wanted = {live[identity]["metadata"]["uid"] for identity in declared if identity in live}
    prune, kept, forget = [], [], []
    for entry in recorded:
        if entry.identity in declared:
            continue
        found = live.get(entry.identity)
        metadata = found["metadata"] if found is not None else {}
        ours = (metadata.get("labels") or {}).get(LABEL) == inventory
        if not ours or metadata["uid"] in wanted or metadata.get("deletionTimestamp"):
            forget.append(entry)
        elif (metadata.get("annotations") or {}).get(PRUNE) == "false":
            kept.append(Refusal(entry, Reason.KEPT))
        else:
            prune.append(Step(entry, None, found))
    return prune, kept, forget


def held(leaving: Sequence[Step], recorded: int, anything_left: bool) -> list[Refusal]:
    """Why these must not go unless that is allowed, what takes others with it first; nothing when they may. All or none.

    What was held before is not let go because there are more objects now."""
    before = any(step.entry.held for step in leaving)
    many = len(leaving) > max(FEW, 0 if before else recorded * SHARE // 100) or (bool(leaving) and not anything_left)
    carriers = [Refusal(step.entry, _CARRIERS[kind]) for step in leaving if (kind := _kind(step.entry)) in _CARRIERS]
    if not many and not carriers:
        return []
    why = Reason.MASS_DELETE if many else Reason.HELD
    return [*carriers, *(Refusal(step.entry, why) for step in leaving if _kind(step.entry) not in _CARRIERS)]


def entry_of(document: Document, live: Document | None = None) -> Entry:
    metadata = document["metadata"]
    return Entry(
        api_version=document["apiVersion"],
        kind=document["kind"],
        name=metadata["name"],
        namespace=metadata.get("namespace") or "",
        uid=live["metadata"]["uid"] if live else "",
    )


def labelled(document: Document, inventory: str) -> Document:
    """`document` as it is applied: with the label by which we know it again."""
    metadata = document["metadata"]
    return {**document, "metadata": {**metadata, "labels": {**(metadata.get("labels") or {}), LABEL: inventory}}}


def _rank(entry: Entry) -> int:
    return _RANKS.get(_kind(entry), _OTHERS)


def _kind(entry: Entry) -> tuple[str, str]:
    return entry.identity.group, entry.kind


_CARRIERS = {
    ("", "Namespace"): Reason.NAMESPACE,
    ("apiextensions.k8s.io", "CustomResourceDefinition"): Reason.DEFINITION,
}
"""What takes with it what others have made."""
_ORDER = (
    (("", "Namespace"),),
    (("apiextensions.k8s.io", "CustomResourceDefinition"),),
    (("", "ServiceAccount"), ("", "Secret"), ("", "ConfigMap"), ("scheduling.k8s.io", "PriorityClass")),
    (("rbac.authorization.k8s.io", "Role"), ("rbac.authorization.k8s.io", "ClusterRole")),
    (("rbac.authorization.k8s.io", "RoleBinding"), ("rbac.authorization.k8s.io", "ClusterRoleBinding")),
    (("", "Service"), ("", "PersistentVolume"), ("", "PersistentVolumeClaim")),
    (),  # everything else
    (
        ("admissionregistration.k8s.io", "ValidatingWebhookConfiguration"),
        ("admissionregistration.k8s.io", "MutatingWebhookConfiguration"),
        ("apiregistration.k8s.io", "APIService"),
    ),
)
"""What is needed first, and what gets in the way of the others last."""
_OTHERS = _ORDER.index(())
_RANKS = {kind: rank for rank, kinds in enumerate(_ORDER) for kind in kinds}
