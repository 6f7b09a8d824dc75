"""One Target as it should be, from the finding that it follows and from what it was: spec, status, conditions. Pure.

What a Target says follows the finding at its own address. Where that address was not asked yet, or answers and was not
identified this time, the Target keeps what it says.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime, timedelta

import msgspec
from msgspec import UNSET, UnsetType

from trimtab.model.clock import parse_time
from trimtab.model.conditions import Condition, get_condition, set_condition, without_condition
from trimtab.systems.discovery.kinds import Evidence, Target, TargetSpec, TargetStatus, UsedReferences
from trimtab.systems.discovery.kinds.vendor import UNKNOWN
from trimtab.systems.discovery.targets.devices import Device, Finding, by_address
from trimtab.systems.discovery.targets.identity import WORDS, deciding, differing, merged, strongest
from trimtab.systems.discovery.targets.matching import How, Match, addresses_of, identity_of

NOTICE_FOR = timedelta(hours=24)
"""How long a Target says that it moved, was renamed, or has other hardware."""

NOTICES = ("Moved", "Renamed", "HardwareReplaced")

MAX_ADDRESSES = 256
MAX_NAMED = 8
"""Other Targets that a message names."""


class Made(msgspec.Struct, frozen=True):
    """What the rule's templates and profiles make of a device's primary finding."""

    spec: TargetSpec
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    used: UsedReferences = UsedReferences()


class Note(msgspec.Struct, frozen=True):
    """An event on a Target."""

    target: str
    reason: str
    message: str


class Draft(msgspec.Struct):
    """A Target on its way to be right."""

    name: str
    device: Device
    existing: Target | None
    made: Made | None
    """None when it keeps what it says."""
    spec: TargetSpec
    status: TargetStatus
    notes: list[Note]

    @property
    def identity(self) -> Evidence:
        return self.status.identity or Evidence()

    @property
    def generation(self) -> int:
        """The generation that the Target will have once this is written."""
        if self.existing is None:
            return 1
        return (self.existing.metadata.generation or 1) + (self.spec != self.existing.spec)

    def tell(self, reason: str, message: str) -> None:
        self.notes.append(Note(self.name, reason, message))


class Drafter:
    """`present` are addresses that answered and were not identified; `complete` says that every other one did not."""

    def __init__(
        self, make: Callable[[Device, str], Made], *, complete: bool, present: frozenset[str], now: datetime
    ) -> None:
        self._make, self._complete, self._present, self._now = make, complete, present, now

    def new(self, device: Device, name: str) -> Draft:
        made = self._made(device, device.primary, name)
        addresses = _bounded(device.addresses, made.spec.address)
        status = TargetStatus(identity=_known(device.evidence), addresses=addresses)
        draft = Draft(name, device, None, made, made.spec, _described(status, device.primary, made), [])
        address, protocol = made.spec.address, _protocol(device.primary)
        draft.tell(
            "Discovered", f"found at {address} by {protocol}" if protocol else f"written for {address}, unprobed"
        )
        return draft

    def again(self, each: Match, existing: Target) -> Draft:
        device, finding = each.device, self._speaker(each.device, existing)
        before, known = existing.status or TargetStatus(), identity_of(existing)
        made = None if finding is None else self._made(device, finding, existing.name)
        spec = existing.spec if made is None else made.spec
        status = before.replace(
            identity=_known(device.evidence if each.how is How.REPLACED else merged(known, device.evidence)),
            addresses=_bounded(self._answering(device, existing), spec.address),
        )
        if finding is not None and made is not None:
            status = _described(status, finding, made)
        draft = Draft(existing.name, device, existing, made, spec, status, [])
        self._compare(draft, existing, each.how)
        return draft

    def _made(self, device: Device, finding: Finding, name: str) -> Made:
        made = self._make(msgspec.structs.replace(device, primary=finding), name)
        return msgspec.structs.replace(made, spec=made.spec.replace(address=finding.address))

    def _speaker(self, device: Device, existing: Target) -> Finding | None:
        """The finding that the Target follows; None when it keeps what it says."""
        address = existing.spec.address
        here = next((finding for finding in device.findings if finding.address == address), None)
        if here is not None:
            return here
        said = existing.status and existing.status.discovery_info
        if said and (not self._complete or address in self._present):
            return None
        return device.primary

    def _answering(self, device: Device, existing: Target) -> Iterable[str]:
        known = addresses_of(existing) if existing.status and existing.status.addresses else ()
        kept = [address for address in known if address in self._present] if self._complete else known
        return (*device.addresses, *kept)

    def _compare(self, draft: Draft, existing: Target, how: How) -> None:
        """What is new about a Target that was there before: notices, and its return."""
        before, known, address = existing.status or TargetStatus(), identity_of(existing), draft.spec.address
        if before.phase in ("Stale", "Lost"):
            draft.tell("Returned", f"answers again at {address}; it was {before.phase}")
        if how is How.REPLACED:
            kind = deciding(known, draft.device.evidence)
            old, new = getattr(known, kind), getattr(draft.device.evidence, kind)
            self._notice(draft, "HardwareReplaced", f"the {WORDS[kind]} was {old} and is {new}")
        elif address != existing.spec.address and before.discovery_info:
            self._notice(draft, "Moved", f"from {existing.spec.address} to {address}")
        info, said = draft.status.discovery_info or None, before.discovery_info or None
        if info and said and info.hostname and said.hostname and info.hostname != said.hostname:
            self._notice(draft, "Renamed", f"from {said.hostname} to {info.hostname}")

    def _notice(self, draft: Draft, kind: str, message: str) -> None:
        conditions = without_condition(draft.status.conditions or (), kind)  # each has a time of its own
        draft.status = draft.status.replace(
            conditions=set_condition(
                conditions, kind, True, kind, message, now=self._now, observed_generation=draft.generation
            )
        )
        draft.tell(kind, message)

    def judge(self, draft: Draft, conflicts: Mapping[str, Evidence]) -> None:
        """The conditions, phase included."""
        generation = draft.generation
        conditions = draft.status.conditions or ()
        for kind in NOTICES:
            notice = get_condition(conditions, kind)
            if notice is not None and self._is_over(notice):
                conditions = without_condition(conditions, kind)

        def say(kind: str, truth: bool, reason: str, message: str) -> None:
            nonlocal conditions
            conditions = set_condition(
                conditions, kind, truth, reason, message, now=self._now, observed_generation=generation
            )

        say("Ready", True, "Discovered", "")
        if draft.made is not None:
            reason, message = _vendor(draft)
            if reason:
                say("VendorKnown", False, reason, message)
            else:
                conditions = without_condition(conditions, "VendorKnown")
        if conflicts:
            message = _conflict(draft.identity, conflicts)
            if get_condition(conditions, "IdentityConflict") is None:
                draft.tell("IdentityConflict", message)
            say("IdentityConflict", True, "SharedIdentity", message)
        elif self._complete:
            conditions = without_condition(conditions, "IdentityConflict")
        draft.status = draft.status.replace(conditions=conditions, phase="Ready", last_seen=UNSET)

    def _is_over(self, notice: Condition) -> bool:
        try:
            return self._now - parse_time(notice.last_transition_time) > NOTICE_FOR
        except ValueError:
            return True


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


def _vendor(draft: Draft) -> tuple[str, str]:
    """Why no vendor profile was chosen; empty when one was."""
    finding = next(finding for finding in draft.device.findings if finding.address == draft.spec.address)
    if finding.identified.tied:
        tied = ", ".join(sorted(finding.identified.tied))
        return "Ambiguous", f"these vendor profiles match equally well: {tied}; make one of them more specific"
    if finding.identified.info.provider in (UNSET, "", UNKNOWN):
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
