"""What the Targets should be, from what was found. Pure: the caller writes.

Flow: `settle` may be called during a sweep with the devices found so far (`complete=False`: then nothing is concluded
from what is missing), and is called once at its end with all of them. Names never change once given. There is a Write
only where something differs, so that unchanged sweeps cause none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime

import msgspec
from msgspec import UNSET

from trimtab.model.conditions import get_condition
from trimtab.model.objectmeta import ObjectMeta, OwnerReference
from trimtab.systems.discovery.kinds import Evidence, Target
from trimtab.systems.discovery.kinds.target import IDENTITY_LABEL, RULE_LABEL, TEMPLATED
from trimtab.systems.discovery.targets.devices import Device
from trimtab.systems.discovery.targets.drafting import MAX_NAMED, Draft, Drafter, Made, Note
from trimtab.systems.discovery.targets.identity import KINDS, Verdict, compare, deciding, key
from trimtab.systems.discovery.targets.matching import How, addresses_of, identity_of, match
from trimtab.systems.discovery.targets.naming import unique

__all__ = ["Made", "Note", "Overlap", "RuleView", "Settlement", "Write", "settle"]


class RuleView(msgspec.Struct, frozen=True):
    """What decides between rules that find one device."""

    name: str
    uid: str
    priority: int
    created: datetime

    def before(self, other: RuleView) -> bool:
        """Whether this rule has the device: the higher priority, then the older one, then by name."""
        return (-self.priority, self.created, self.name) < (-other.priority, other.created, other.name)


class Write(msgspec.Struct, frozen=True):
    """A Target as it should be. Its owner is the caller's to add: it is the rule, whoever it was."""

    existing: Target | None
    target: Target


class Overlap(msgspec.Struct, frozen=True):
    """A device of ours whose Target is another rule's. `rule` is empty for a Target that somebody wrote by hand."""

    target: str
    rule: str


class Settlement(msgspec.Struct, frozen=True):
    writes: tuple[Write, ...]
    overlaps: tuple[Overlap, ...]
    seen: frozenset[str]
    """The Targets that these devices are."""
    events: tuple[Note, ...]
    duplicates: tuple[str, ...] = ()
    """Targets of this rule that turned out to be a device that has another Target. Only from a complete sweep."""


def settle(
    devices: Sequence[Device],
    targets: Sequence[Target],
    rule: RuleView,
    others: Mapping[str, RuleView],
    *,
    complete: bool,
    now: datetime,
    name: Callable[[Device], str],
    make: Callable[[Device, str], Made],
    present: frozenset[str] = frozenset(),
    repinned: Callable[[str], bool] = lambda address: False,
) -> Settlement:
    """`targets` are all of the namespace; `others` are the other rules by uid; `present` are addresses where something
    answered or may have, of which only those count here that were not identified; `repinned` tells the addresses where
    another key is accepted."""
    unknown = present.difference(*(device.addresses for device in devices))
    drafter = Drafter(make, complete=complete, present=unknown, now=now)
    taken = {target.name for target in targets}
    drafts: list[Draft] = []
    overlaps: list[Overlap] = []
    seen: set[str] = set()
    for each in match(devices, targets, complete=complete, repinned=repinned):
        existing = each.target
        if existing is None:
            draft = drafter.new(each.device, unique(name(each.device), taken, each.device.key))
            taken.add(draft.name)
            drafts.append(draft)
            continue
        seen.add(existing.name)
        holder = _holder(existing, rule, others)
        if holder is not None:
            overlaps.append(Overlap(existing.name, holder))
        elif each.how is not How.WAIT and not existing.metadata.deletion_timestamp:
            drafts.append(drafter.again(each, existing))
    conflicts = _conflicts(drafts, targets)
    for draft in drafts:
        drafter.judge(draft, conflicts.get(draft.name, {}))
    writes = [_write(draft, rule, conflict=draft.name in conflicts) for draft in drafts]
    seen |= {draft.name for draft in drafts}
    return Settlement(
        writes=tuple(write for write in writes if write is not None),
        overlaps=tuple(overlaps),
        seen=frozenset(seen),
        events=tuple(note for draft in drafts for note in draft.notes),
        duplicates=tuple(_duplicates(drafts, targets, rule, seen)) if complete else (),
    )


def _holder(target: Target, rule: RuleView, others: Mapping[str, RuleView]) -> str | None:
    """Whose it stays: another rule's name, nobody's (""), or None when it is ours to write."""
    reference = _controller(target)
    if reference is None:
        return None if RULE_LABEL in (target.metadata.labels or {}) else ""
    other = others.get(reference.uid)
    if reference.uid == rule.uid or other is None or _is_missed(target):
        return None
    return other.name if other.before(rule) else None


def _is_missed(target: Target) -> bool:
    """Its owner does not find it, or cannot log in: whoever can may have it, until the owner can again."""
    ready = get_condition(target.status.conditions if target.status else UNSET, "Ready")
    return ready is not None and ready.status == "False"


def _controller(target: Target) -> OwnerReference | None:
    return next((r for r in target.metadata.owner_references or () if r.controller is True), None)


def _is_owned(target: Target, rule: RuleView) -> bool:
    reference = _controller(target)
    return reference is not None and reference.uid == rule.uid


def _conflicts(drafts: Sequence[Draft], targets: Sequence[Target]) -> dict[str, dict[str, Evidence]]:
    """By Target, the Targets whose evidence is in conflict with its own."""
    identities = {target.name: identity_of(target) for target in targets}
    identities |= {draft.name: draft.identity for draft in drafts}
    sharing: dict[tuple[str, str], list[str]] = {}
    for name in sorted(identities):
        for piece in _hard(identities[name]):
            sharing.setdefault(piece, []).append(name)
    found: dict[str, dict[str, Evidence]] = {}
    for draft in drafts:
        for piece in _hard(draft.identity):
            for name in sharing[piece][: MAX_NAMED + 1]:
                if name != draft.name and compare(draft.identity, identities[name]) is Verdict.CONFLICT:
                    found.setdefault(draft.name, {})[name] = identities[name]
    return found


def _duplicates(drafts: Sequence[Draft], targets: Sequence[Target], rule: RuleView, seen: set[str]) -> Iterator[str]:
    """Only what cannot be anything else: by hard evidence, and where all of its addresses are that device's now."""
    settled = {piece: draft for draft in drafts for piece in _hard(draft.identity)}
    for target in targets:
        if target.name in seen or not _is_owned(target, rule):
            continue
        mine = identity_of(target)
        for piece in _hard(mine):
            draft = settled.get(piece)
            if (
                draft is not None
                and deciding(mine, draft.identity) == piece[0]
                and compare(mine, draft.identity) is Verdict.SAME
                and set(addresses_of(target)) <= set(draft.device.addresses)
            ):
                yield target.name
                break


def _hard(evidence: Evidence) -> Iterator[tuple[str, str]]:
    """Everything but the host name, which two devices may well share."""
    for kind in KINDS[:-1]:
        value = getattr(evidence, kind)
        if value:
            yield kind, value


def _write(draft: Draft, rule: RuleView, *, conflict: bool) -> Write | None:
    existing, made = draft.existing, draft.made
    metadata = ObjectMeta(name=draft.name) if existing is None else existing.metadata
    spec = draft.spec
    labels, annotations = dict(metadata.labels or {}), dict(metadata.annotations or {})
    if made is not None:
        _dress(labels, annotations, made)
    labels[RULE_LABEL] = rule.name
    labels[IDENTITY_LABEL] = key(draft.identity, spec.address, whole=conflict)
    metadata = msgspec.structs.replace(metadata, labels=labels, annotations=annotations or UNSET)
    if existing is None:
        return Write(None, Target(metadata=metadata, spec=spec, status=draft.status))
    if annotations == (existing.metadata.annotations or {}):
        metadata = msgspec.structs.replace(metadata, annotations=existing.metadata.annotations)
    target = existing.replace(metadata=metadata, spec=spec, status=draft.status)
    return None if _is_owned(existing, rule) and target == existing else Write(existing, target)


def _dress(labels: dict[str, str], annotations: dict[str, str], made: Made) -> None:
    """What templates give, and no more what they gave before: an annotation tells which keys are theirs."""
    before = annotations.pop(TEMPLATED, "").partition("|")
    for held, keys in ((labels, before[0]), (annotations, before[2])):
        for each in keys.split(","):
            held.pop(each, None)
    labels |= made.labels
    annotations |= made.annotations
    if made.labels or made.annotations:
        annotations[TEMPLATED] = f"{','.join(sorted(made.labels))}|{','.join(sorted(made.annotations))}"
