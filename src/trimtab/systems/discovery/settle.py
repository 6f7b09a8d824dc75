"""What the Targets should be, from what was found. Pure: the caller writes.

Flow: `settle` may be called during a sweep with the devices found so far (`complete=False`: then nothing is concluded
from what is missing), and is called once at its end with all of them. Names never change once given. There is a Write
only where something differs, so that unchanged sweeps cause none.

What a Target says follows the finding at its own address. Where that address was not asked yet, or answers and was not
identified this time, the Target keeps what it says.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta

import msgspec
from msgspec import UNSET, UnsetType

from trimtab.model.clock import parse_time
from trimtab.model.conditions import Condition, get_condition, set_condition, without_condition
from trimtab.model.objectmeta import ObjectMeta
from trimtab.systems.discovery.devices import Device, Finding, by_address
from trimtab.systems.discovery.identity import (
    KINDS,
    WORDS,
    Verdict,
    compare,
    deciding,
    differing,
    key,
    merged,
    strongest,
)
from trimtab.systems.discovery.kinds import Evidence, Target, TargetSpec, TargetStatus, UsedReferences
from trimtab.systems.discovery.kinds.target import IDENTITY_LABEL, RULE_LABEL
from trimtab.systems.discovery.matching import How, Match, addresses_of, identity_of, match
from trimtab.systems.discovery.naming import unique

NOTICE_FOR = timedelta(hours=24)
"""How long a Target says that it moved, was renamed, or has other hardware."""

NOTICES = ("Moved", "Renamed", "HardwareReplaced")

MAX_ADDRESSES = 256
MAX_NAMED = 8
"""Other Targets that a message names."""


class RuleView(msgspec.Struct, frozen=True):
    """What decides between rules that find one device."""

    name: str
    uid: str
    priority: int
    created: datetime

    def before(self, other: RuleView) -> bool:
        """Whether this rule has the device: the higher priority, then the older one, then by name."""
        return (-self.priority, self.created, self.name) < (-other.priority, other.created, other.name)


class Made(msgspec.Struct, frozen=True):
    """What the rule's templates and profiles make of a device's primary finding."""

    spec: TargetSpec
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    used: UsedReferences = UsedReferences()


class Write(msgspec.Struct, frozen=True):
    """A Target as it should be. Its owner is the caller's to add: it is the rule, whoever it was."""

    existing: Target | None
    target: Target


class Overlap(msgspec.Struct, frozen=True):
    """A device of ours whose Target is another rule's. `rule` is empty for a Target that somebody wrote by hand."""

    target: str
    rule: str


class Note(msgspec.Struct, frozen=True):
    """An event on a Target."""

    target: str
    reason: str
    message: str


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
) -> Settlement:
    """`targets` are all of the namespace; `others` are the other rules by uid; `present` are addresses where something
    answered, of which only those count here that were not identified."""
    unknown = present.difference(*(device.addresses for device in devices))
    job = _Settling(targets, rule, others, complete, now, name, make, unknown)
    return job.settled(match(devices, targets, complete=complete))


class _Draft(msgspec.Struct):
    """A Target on its way to be right."""

    existing: Target | None
    name: str
    device: Device
    made: Made | None
    status: TargetStatus
    fresh: list[Note]


class _Settling:
    """One call of `settle`."""

    def __init__(
        self,
        targets: Sequence[Target],
        rule: RuleView,
        others: Mapping[str, RuleView],
        complete: bool,
        now: datetime,
        name: Callable[[Device], str],
        make: Callable[[Device, str], Made],
        present: frozenset[str],
    ) -> None:
        self.targets, self.rule, self.others = targets, rule, others
        self.complete, self.now, self.present = complete, now, present
        self.name, self.make = name, make
        self.taken = {target.name for target in targets}

    def settled(self, matches: Iterable[Match]) -> Settlement:
        drafts: list[_Draft] = []
        overlaps: list[Overlap] = []
        seen: set[str] = set()
        for each in matches:
            target = each.target
            if target is not None:
                seen.add(target.name)
                if each.how is How.WAIT or target.metadata.deletion_timestamp:
                    continue
                holder = self._holder(target)
                if holder is not None:
                    overlaps.append(Overlap(target.name, holder))
                    continue
            draft = self._draft(each)
            seen.add(draft.name)
            drafts.append(draft)
        conflicts = self._conflicts(drafts)
        for draft in drafts:
            self._judge(draft, conflicts.get(draft.name, {}))
        writes = [self._write(draft, bool(conflicts.get(draft.name))) for draft in drafts]
        return Settlement(
            writes=tuple(write for write in writes if write is not None),
            overlaps=tuple(overlaps),
            seen=frozenset(seen),
            events=tuple(note for draft in drafts for note in draft.fresh),
            duplicates=self._duplicates(drafts, seen) if self.complete else (),
        )

    def _holder(self, target: Target) -> str | None:
        """Whose it stays: another rule's name, nobody's (""), or None when it is ours to write."""
        reference = next((r for r in target.metadata.owner_references or () if r.controller is True), None)
        if reference is None:
            return None if RULE_LABEL in (target.metadata.labels or {}) else ""
        other = self.others.get(reference.uid)
        if reference.uid == self.rule.uid or other is None:
            return None
        return other.name if other.before(self.rule) else None

    def _draft(self, each: Match) -> _Draft:
        device, existing = each.device, each.target
        if existing is None:
            name = unique(self.name(device), self.taken, device.key)
            self.taken.add(name)
            made = self._made(device, device.primary, name)
            addresses = _bounded(device.addresses, made.spec.address)
            status = TargetStatus(identity=_known(device.evidence), addresses=addresses)
            status = _described(status, device.primary, made)
            note = Note(name, "Discovered", f"found at {made.spec.address} by {_protocol(device.primary)}")
            return _Draft(existing, name, device, made, status, [note])
        return self._redraft(each, existing)

    def _redraft(self, each: Match, existing: Target) -> _Draft:
        device, name = each.device, existing.name
        before = existing.status or TargetStatus()
        finding = self._speaker(device, existing)
        made = None if finding is None else self._made(device, finding, name)
        address = existing.spec.address if made is None else made.spec.address
        known = identity_of(existing)
        status = before.replace(
            identity=_known(device.evidence if each.how is How.REPLACED else merged(known, device.evidence)),
            addresses=_bounded(self._answering(device, existing), address),
        )
        draft = _Draft(existing, name, device, made, status, [])
        if finding is not None and made is not None:
            draft.status = _described(status, finding, made)
        self._compare(draft, each.how, before, known, address)
        return draft

    def _made(self, device: Device, finding: Finding, name: str) -> Made:
        made = self.make(msgspec.structs.replace(device, primary=finding), name)
        return msgspec.structs.replace(made, spec=made.spec.replace(address=finding.address))

    def _speaker(self, device: Device, existing: Target) -> Finding | None:
        """The finding that the Target follows; None when it keeps what it says."""
        address = existing.spec.address
        here = next((finding for finding in device.findings if finding.address == address), None)
        if here is not None:
            return here
        said = existing.status and existing.status.discovery_info
        if said and (not self.complete or address in self.present):
            return None
        return device.primary

    def _answering(self, device: Device, existing: Target) -> Iterable[str]:
        known = addresses_of(existing) if existing.status and existing.status.addresses else ()
        kept = [address for address in known if address in self.present] if self.complete else known
        return (*device.addresses, *kept)

    def _compare(self, draft: _Draft, how: How, before: TargetStatus, known: Evidence, address: str) -> None:
        """What is new about a Target that was there before: notices, and its return."""
        existing = draft.existing
        if existing is None:
            return
        if before.phase in ("Stale", "Lost"):
            self._tell(draft, "Returned", f"answers again at {address}; it was {before.phase}")
        if how is How.REPLACED:
            kind = deciding(known, draft.device.evidence)
            old, new = getattr(known, kind), getattr(draft.device.evidence, kind)
            self._notice(draft, "HardwareReplaced", f"the {WORDS[kind]} was {old} and is {new}")
        elif address != existing.spec.address and before.discovery_info:
            self._notice(draft, "Moved", f"from {existing.spec.address} to {address}")
        info, said = draft.status.discovery_info or None, before.discovery_info or None
        if info and said and info.hostname and said.hostname and info.hostname != said.hostname:
            self._notice(draft, "Renamed", f"from {said.hostname} to {info.hostname}")

    def _notice(self, draft: _Draft, kind: str, message: str) -> None:
        conditions = without_condition(draft.status.conditions or (), kind)  # each has a time of its own
        draft.status = draft.status.replace(
            conditions=set_condition(
                conditions, kind, True, kind, message, now=self.now, observed_generation=_generation(draft)
            )
        )
        self._tell(draft, kind, message)

    def _tell(self, draft: _Draft, reason: str, message: str) -> None:
        draft.fresh.append(Note(draft.name, reason, message))

    def _judge(self, draft: _Draft, conflicts: Mapping[str, Evidence]) -> None:
        """The conditions, phase included."""
        generation = _generation(draft)
        conditions = draft.status.conditions or ()
        for kind in NOTICES:
            notice = get_condition(conditions, kind)
            if notice is not None and self._is_over(notice):
                conditions = without_condition(conditions, kind)

        def say(kind: str, truth: bool, reason: str, message: str) -> None:
            nonlocal conditions
            conditions = set_condition(
                conditions, kind, truth, reason, message, now=self.now, observed_generation=generation
            )

        say("Ready", True, "Discovered", "")
        if draft.made is not None:
            reason, message = _vendor(draft)
            if reason:
                say("VendorKnown", False, reason, message)
            else:
                conditions = without_condition(conditions, "VendorKnown")
        if conflicts:
            message = _conflict(draft.status.identity or Evidence(), conflicts)
            if get_condition(conditions, "IdentityConflict") is None:
                self._tell(draft, "IdentityConflict", message)
            say("IdentityConflict", True, "SharedIdentity", message)
        elif self.complete:
            conditions = without_condition(conditions, "IdentityConflict")
        draft.status = draft.status.replace(conditions=conditions, phase="Ready", last_seen=UNSET)

    def _is_over(self, notice: Condition) -> bool:
        try:
            return self.now - parse_time(notice.last_transition_time) > NOTICE_FOR
        except ValueError:
            return True

    def _conflicts(self, drafts: Sequence[_Draft]) -> dict[str, dict[str, Evidence]]:
        """By Target, the Targets whose evidence is in conflict with its own."""
        identities = {target.name: identity_of(target) for target in self.targets}
        identities |= {draft.name: draft.status.identity or Evidence() for draft in drafts}
        shared: dict[tuple[str, str], list[str]] = {}
        for name in sorted(identities):
            for kind in KINDS[:-1]:
                value = getattr(identities[name], kind)
                if value:
                    shared.setdefault((kind, value), []).append(name)
        found: dict[str, dict[str, Evidence]] = {}
        for draft in drafts:
            mine = identities[draft.name]
            for kind in KINDS[:-1]:
                for name in shared.get((kind, getattr(mine, kind) or ""), ())[: MAX_NAMED + 1]:
                    if name != draft.name and compare(mine, identities[name]) is Verdict.CONFLICT:
                        found.setdefault(draft.name, {})[name] = identities[name]
        return found

    def _write(self, draft: _Draft, conflict: bool) -> Write | None:
        existing = draft.existing
        metadata = existing.metadata if existing is not None else ObjectMeta(name=draft.name)
        made = draft.made or Made(existing.spec if existing is not None else TargetSpec(provider="", address=""))
        identity = draft.status.identity or Evidence()
        labels = {
            **(metadata.labels or {}),
            **made.labels,
            RULE_LABEL: self.rule.name,
            IDENTITY_LABEL: key(identity, made.spec.address, whole=conflict),
        }
        annotations = {**(metadata.annotations or {}), **made.annotations}
        if existing is None:
            metadata = ObjectMeta(name=draft.name, labels=labels, annotations=annotations or UNSET)
            return Write(None, Target(metadata=metadata, spec=made.spec, status=draft.status))
        metadata = msgspec.structs.replace(metadata, labels=labels, annotations=annotations or metadata.annotations)
        target = existing.replace(metadata=metadata, spec=made.spec, status=draft.status)
        owned = any(r.controller is True and r.uid == self.rule.uid for r in metadata.owner_references or ())
        return None if owned and target == existing else Write(existing, target)

    def _duplicates(self, drafts: Sequence[_Draft], seen: set[str]) -> tuple[str, ...]:
        shared: dict[tuple[str, str], Evidence] = {}
        for draft in drafts:
            identity = draft.status.identity or Evidence()
            shared |= {(kind, getattr(identity, kind)): identity for kind in KINDS if getattr(identity, kind)}
        found = []
        for target in self.targets:
            if target.name in seen or not _is_owned(target, self.rule):
                continue
            mine = identity_of(target)
            same = (shared.get((kind, getattr(mine, kind) or "")) for kind in KINDS)
            if any(other is not None and compare(mine, other) is Verdict.SAME for other in same):
                found.append(target.name)
        return tuple(sorted(found))


def _is_owned(target: Target, rule: RuleView) -> bool:
    return any(r.controller is True and r.uid == rule.uid for r in target.metadata.owner_references or ())


def _described(status: TargetStatus, finding: Finding, made: Made) -> TargetStatus:
    used = made.used if made.used != UsedReferences() else UNSET
    return status.replace(discovery_info=finding.identified.info, used_references=used)


def _known(evidence: Evidence) -> Evidence | UnsetType:
    return evidence if strongest(evidence) else UNSET


def _bounded(addresses: Iterable[str], own: str) -> tuple[str, ...]:
    """In order, each once, as many as a status holds; the Target's own is among them."""
    ordered = sorted(set(addresses) | {own}, key=by_address)
    if len(ordered) > MAX_ADDRESSES:
        ordered = sorted((own, *[a for a in ordered if a != own][: MAX_ADDRESSES - 1]), key=by_address)
    return tuple(ordered)


def _generation(draft: _Draft) -> int:
    """The generation that the Target will have once this is written."""
    if draft.existing is None:
        return 1
    changed = draft.made is not None and draft.made.spec != draft.existing.spec
    return (draft.existing.metadata.generation or 1) + changed


def _vendor(draft: _Draft) -> tuple[str, str]:
    """Why no vendor profile was chosen; empty when one was."""
    spec = draft.made.spec if draft.made is not None else None
    finding = next((f for f in draft.device.findings if spec is not None and f.address == spec.address), None)
    if finding is None:
        return "", ""
    if finding.identified.tied:
        tied = ", ".join(sorted(finding.identified.tied))
        return "Ambiguous", f"these vendor profiles match equally well: {tied}; make one of them more specific"
    if not finding.identified.info.provider or finding.identified.info.provider == "unknown":
        return "NoMatch", "no vendor profile matches this device; write one for it"
    return "", ""


def _conflict(mine: Evidence, others: Mapping[str, Evidence]) -> str:
    named = sorted(others)[:MAX_NAMED]
    first = others[named[0]]
    equal, unlike = deciding(mine, first), differing(mine, first)
    listed = ", ".join(named)
    return (
        f"the {WORDS[equal]} {getattr(mine, equal)} is also that of {listed}, and the {WORDS[unlike]} differs: "
        "one is a clone, or a configuration was copied"
    )


def _protocol(finding: Finding) -> str:
    return finding.identified.info.protocol or finding.profile
