"""Which vendor profile fits a device, and what the device said in its words.

The choice does not depend on the order of profiles: the most specific wins, and of equals the first by name, with all of
them in `tied`. A profile that is wrong in itself or extends what is not there is left out and named in `problems`.

What is more specific, first to last:

gNMI     organization with modelMatch, organization, modelMatch; then the longer modelMatch
NETCONF  how much of a capability is matched
SSH      a match by the probe's output, a match by the banner; then how much is matched. Where a profile has a probe and
         its output is at hand and not empty, the output alone decides
SNMP     the longer objectId, compared part by part; then with descriptionMatch, and how much is matched

How much a regex matched is the length of the matched text, but no more than the length of the regex, so that `.*` says
little of any text. After all of these, `extends` decides (vendor_extends.Resolved.nearness).

A block without any of the fields that tell a device matches none: it is there to be extended.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping
from typing import Generic, TypeVar

import msgspec
from msgspec import UNSET, UnsetType

from trimtab.model.logs import log
from trimtab.systems.discovery.kinds import (
    DiscoveryVendorProfile,
    DiscoveryVendorProfileSpec,
    GnmiVendor,
    Key,
    NetconfVendor,
    SnmpVendor,
    SshVendor,
)
from trimtab.systems.discovery.vendors.check import check
from trimtab.systems.discovery.vendors.extends import BLOCKS, ENTRIES, Block, Resolved, resolve
from trimtab.systems.discovery.vendors.values import Entry, NotRead, pattern, plain, printable, read

__all__ = ["Choice", "Entry", "Model", "Vendors", "check", "printable"]

MOST_CAPABILITIES = 4096
REMEMBERED = 4096

X = TypeVar("X", GnmiVendor, NetconfVendor, SshVendor, SnmpVendor)
Rank = tuple[int, ...]


class Model(msgspec.Struct, frozen=True):
    """A model of a gNMI Capabilities answer."""

    name: str
    organization: str = ""
    version: str = ""


class Choice(msgspec.Struct, Generic[X], frozen=True):
    """The profile that fits best: no name and no spec when none does; all names in `tied` when several do equally."""

    profile: str
    spec: X | None
    tied: tuple[str, ...] = ()


class Vendors:
    """The vendor profiles of a rule, resolved and compiled. It does not change; make a new one when a profile does."""

    def __init__(self, profiles: Iterable[DiscoveryVendorProfile]) -> None:
        given = tuple(profiles)
        wrong = {profile.name: errors for profile in given if (errors := check(profile))}
        resolved, unresolved = resolve(profile for profile in given if profile.name not in wrong)
        self.problems: Mapping[str, str] = {
            **unresolved,
            **{name: f"{name} cannot be used: {errors[0]}" for name, errors in wrong.items()},
        }
        """What is wrong with profiles that are left out, by their names."""
        self.profiles: Mapping[str, DiscoveryVendorProfileSpec] = {name: one.spec for name, one in resolved.items()}
        """The profiles that are used, with what they extend."""
        self.failures: dict[str, str] = {}
        """What failed while values were read, by profile: the first failure of each. For an event; whoever told it may
        clear it, and what fails again is here again."""
        self._resolved = tuple(resolved.values())
        self._names = _names_of_entries(self._resolved)
        self._told: set[tuple[str, Entry]] = set()
        # The devices of a network are few kinds: their answers differ in their values, not in what they are.
        self._snmp = functools.lru_cache(REMEMBERED)(self._choose_snmp)

    def gnmi(self, models: Iterable[Model]) -> Choice[GnmiVendor]:
        """By the models of a Capabilities answer."""
        names: dict[str, list[str]] = {}
        for model in models:
            names.setdefault(model.organization, []).append(model.name)
        # A line for each name: what is matched cannot reach over two of them.
        by_organization = {organization: "\n".join(of) for organization, of in names.items()}
        everything = "\n".join(by_organization.values())

        def rank(vendor: GnmiVendor) -> Rank | None:
            known, match = vendor.organization is not UNSET, vendor.model_match
            where = by_organization.get(str(vendor.organization)) if known else everything
            if where is None or (not known and match is UNSET):
                return None
            if match is UNSET:
                return (2, 0)
            if "\n" in match or match not in where:
                return None
            return (3 if known else 1, len(match))

        return self._best("gnmi", GnmiVendor, rank)

    def netconf(self, capabilities: Iterable[str]) -> Choice[NetconfVendor]:
        """By the capabilities of the device's hello."""
        texts = [plain(text) for _, text in zip(range(MOST_CAPABILITIES), capabilities, strict=False)]

        def rank(vendor: NetconfVendor) -> Rank | None:
            matched = max((_matched(vendor.capability_match, text) for text in texts), default=-1)
            return (matched,) if matched >= 0 else None

        return self._best("netconf", NetconfVendor, rank)

    def ssh(self, banner: str, outputs: Mapping[str, str] = {}) -> Choice[SshVendor]:
        """By the version line and banner, and by what the probe commands printed."""
        shown = plain(banner)
        printed = {command: plain(output) for command, output in outputs.items() if output.strip()}

        def rank(vendor: SshVendor) -> Rank | None:
            by_banner = _matched(vendor.banner_match, shown)
            output = printed.get(vendor.probe_command) if isinstance(vendor.probe_command, str) else None
            if output is None:
                return (0, by_banner) if by_banner >= 0 else None
            by_output = _matched(vendor.probe_match, output)
            return (1, by_output + max(by_banner, 0)) if by_output >= 0 else None

        return self._best("ssh", SshVendor, rank)

    def ssh_probes(self) -> tuple[str, ...]:
        """The commands to run where the banner tells nothing, each once."""
        commands = {
            one.spec.ssh.probe_command
            for one in self._resolved
            if isinstance(one.spec.ssh, SshVendor) and isinstance(one.spec.ssh.probe_command, str)
        }
        return tuple(sorted(commands))

    def snmp(self, object_id: str, description: str) -> Choice[SnmpVendor]:
        """By sysObjectID and sysDescr."""
        return self._snmp(object_id.lstrip("."), plain(description))

    def read(self, entry: Entry, text: str) -> str:
        """What the entry finds in the text: one printable line of 512 characters at most.

        The regex cuts (its first group, or all of the match; without a match the text stays), then CEL transforms. Where
        that fails the value is empty, and the log says so once for each profile and entry.
        """
        return self._read(entry, text)[0]

    def values(self, texts: Iterable[tuple[Entry, str]]) -> dict[Key, str]:
        """The values by key. Entries of one key are alternatives: the first whose regex matches and that gives a value
        wins; where none matches, the first text as it is."""
        found: dict[Key, str] = {}
        kept: dict[Key, str] = {}
        for entry, text in texts:
            if not text or entry.key in found:
                continue
            value, matched = self._read(entry, text)
            if value:
                (found if matched else kept).setdefault(entry.key, value)
        return {**kept, **found}

    def _read(self, entry: Entry, text: str) -> tuple[str, bool]:
        try:
            return read(entry, text)
        except NotRead as error:
            name = self._names.get(entry, "")
            self.failures.setdefault(name, f"the transform of {entry.key} failed: {error}")
            if (name, entry) not in self._told:
                self._told.add((name, entry))
                log.warning("transform of a vendor profile failed", profile=name, key=entry.key, reason=str(error))
            return "", False

    def _choose_snmp(self, object_id: str, description: str) -> Choice[SnmpVendor]:
        dotted = object_id + "."

        def rank(vendor: SnmpVendor) -> Rank | None:
            arcs, by_description = 0, 0
            if isinstance(vendor.object_id, str):
                if not dotted.startswith(vendor.object_id + "."):
                    return None
                arcs = vendor.object_id.count(".") + 1
            if isinstance(vendor.description_match, str):
                by_description = _matched(vendor.description_match, description) + 1
                if not by_description:
                    return None
            return (arcs, by_description) if arcs or by_description else None

        return self._best("snmp", SnmpVendor, rank)

    def _best(self, block: Block, kind: type[X], rank: Callable[[X], Rank | None]) -> Choice[X]:
        best: tuple[Rank, int] | None = None
        chosen: list[tuple[str, X]] = []
        for one in self._resolved:
            vendor = getattr(one.spec, block)
            if not isinstance(vendor, kind) or (ranked := rank(vendor)) is None:
                continue
            place = (ranked, one.nearness[block])
            if best is None or place > best:
                best, chosen = place, []
            if place == best:
                chosen.append((one.name, vendor))
        if not chosen:
            return Choice("", None)
        names = sorted(name for name, _ in chosen)
        profile, spec = min(chosen, key=lambda pair: pair[0])
        return Choice(profile, spec, tuple(names) if len(names) > 1 else ())


def _matched(regex: str | UnsetType, text: str) -> int:
    """How much of the text the regex matched; -1 when it is not there or does not match."""
    if isinstance(regex, UnsetType):
        return -1
    match = pattern(regex).search(text)
    return -1 if match is None else min(match.end() - match.start(), len(regex))


def _names_of_entries(resolved: Iterable[Resolved]) -> dict[Entry, str]:
    names: dict[Entry, str] = {}
    for one in resolved:
        for block in BLOCKS:
            vendor = getattr(one.spec, block)
            if vendor is not UNSET:
                names.update(dict.fromkeys(getattr(vendor, ENTRIES[block]), one.name))
    return names
