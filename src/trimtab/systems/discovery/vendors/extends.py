"""What `extends` means: the profile that comes of a profile and its parents.

A protocol that the child does not write comes from the parent as it is. One that it writes is the child's, with three
things taken from the parent:

- what tells the device (organization and modelMatch, capabilityMatch, bannerMatch with the probe, objectId with
  descriptionMatch), all of it or nothing: the parent's only where the child writes none of these fields;
- the `filter` of NETCONF where the child has none;
- entries (paths, commands, oids) for keys that the child does not name. The child's entries for a key replace all of
  the parent's for that key.

Fields with a default (`encoding`, `preserveNamespace`) are the child's: nobody can tell a default from a choice.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal

import msgspec
from msgspec import UNSET

from trimtab.systems.discovery.kinds import DiscoveryVendorProfile, DiscoveryVendorProfileSpec

DEEPEST = 16
"""How many profiles a chain of `extends` may have."""

Block = Literal["gnmi", "netconf", "ssh", "snmp"]
BLOCKS: tuple[Block, ...] = ("gnmi", "netconf", "ssh", "snmp")

MATCHING: Mapping[Block, tuple[str, ...]] = {
    "gnmi": ("organization", "model_match"),
    "netconf": ("capability_match",),
    "ssh": ("banner_match", "probe_command", "probe_match"),
    "snmp": ("object_id", "description_match"),
}
"""The fields by which a device is known."""

ENTRIES: Mapping[Block, str] = {"gnmi": "paths", "netconf": "paths", "ssh": "commands", "snmp": "oids"}


class Resolved(msgspec.Struct, frozen=True):
    """A profile with all that it extends. `nearness` decides between a profile and its parent that match alike.

    It is 0 for a block that says itself what it matches. It grows with each profile that takes over what the parent
    matches and changes how such a device is read, so that this profile goes before its parent. It falls with each one
    that writes nothing of the protocol: the parent said all there is to say, and gives the name.
    """

    name: str
    spec: DiscoveryVendorProfileSpec
    nearness: Mapping[Block, int]


def resolve(profiles: Iterable[DiscoveryVendorProfile]) -> tuple[dict[str, Resolved], dict[str, str]]:
    """The profiles with what they extend, and what is wrong with those that cannot be resolved."""
    specs = {profile.name: profile.spec for profile in sorted(profiles, key=lambda profile: profile.name)}
    done: dict[str, Resolved] = {}
    problems: dict[str, str] = {}
    for name in specs:
        chain = _chain(name, specs)
        if isinstance(chain, str):
            problems[name] = chain
            continue
        for step in reversed(chain):
            if step not in done:
                parent = specs[step].extends
                done[step] = _child(step, specs[step], done[parent] if isinstance(parent, str) else None)
    return done, problems


def circle(profile: DiscoveryVendorProfile, others: Iterable[DiscoveryVendorProfile]) -> tuple[str, ...]:
    """From the profile by `extends` back to itself; empty when there is no such way."""
    parents = {one.name: one.spec.extends for one in (*others, profile)}
    way = [profile.name]
    while isinstance(parent := parents.get(way[-1], UNSET), str):
        way.append(parent)
        if parent == profile.name:
            return tuple(way)
        if parent in way[:-1]:
            return ()  # a circle of others
    return ()


def unresolved(profile: DiscoveryVendorProfile, others: Iterable[DiscoveryVendorProfile]) -> str:
    """Why the profile cannot be used beside the others; "" when it can."""
    chain = _chain(profile.name, {one.name: one.spec for one in (*others, profile)})
    return chain if isinstance(chain, str) else ""


def _chain(name: str, specs: Mapping[str, DiscoveryVendorProfileSpec]) -> list[str] | str:
    """The profile, its parent, and so on; or what is wrong with that."""
    chain = [name]
    while isinstance(parent := specs[chain[-1]].extends, str):
        if parent in chain:
            around = " → ".join([*chain[chain.index(parent) :], parent])
            return f"{name} cannot be used: profiles extend each other in a circle: {around}"
        if parent not in specs:
            return f"{name} cannot be used: {chain[-1]} extends {parent}, which does not exist here or is invalid"
        chain.append(parent)
        if len(chain) > DEEPEST:
            return f"{name} cannot be used: it extends a chain of more than {DEEPEST} profiles"
    return chain


def _child(name: str, spec: DiscoveryVendorProfileSpec, parent: Resolved | None) -> Resolved:
    blocks: dict[str, Any] = {}
    nearness: dict[Block, int] = {}
    for block in BLOCKS:
        own, inherited = getattr(spec, block), getattr(parent.spec, block) if parent else UNSET
        before = parent.nearness[block] if parent else 0
        if own is UNSET:
            blocks[block], nearness[block] = inherited, before - (inherited is not UNSET)
        elif inherited is UNSET:
            blocks[block], nearness[block] = own, 0
        else:
            blocks[block], nearness[block] = _merged(block, own, inherited), 0 if _tells(block, own) else before + 1
    return Resolved(name, DiscoveryVendorProfileSpec(extends=spec.extends, **blocks), nearness)


def _tells(block: Block, own: Any) -> bool:
    return any(getattr(own, field) is not UNSET for field in MATCHING[block])


def _merged(block: Block, own: Any, inherited: Any) -> Any:
    changes: dict[str, Any] = {}
    if not _tells(block, own):
        changes.update({field: getattr(inherited, field) for field in MATCHING[block]})
    if block == "netconf" and own.filter is UNSET:
        changes["filter"] = inherited.filter
    entries = ENTRIES[block]
    named = {entry.key for entry in getattr(own, entries)}
    kept = tuple(entry for entry in getattr(inherited, entries) if entry.key not in named)
    changes[entries] = (*getattr(own, entries), *kept)
    return own.replace(**changes)
