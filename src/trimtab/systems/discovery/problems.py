"""What is wrong with what users write, beyond its schema. Pure: for admission, and for the controller, because an object
may be older than the rule that it breaks.

What does not exist yet is no problem here: a rule, its source and its profiles may come in any order.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec
from msgspec import UnsetType

from trimtab.model.duration import Duration
from trimtab.model.errors import FieldError, FieldProblem
from trimtab.model.names import dns_subdomain_problems, label_key_problems
from trimtab.model.resource import Resource
from trimtab.systems.discovery.kinds import (
    DiscoveryProfile,
    DiscoveryRule,
    Fading,
    Plan,
    TargetConnectionProfile,
    TargetSyncProfile,
    TargetTemplate,
)
from trimtab.systems.discovery.kinds.target import IDENTITY_LABEL, RULE_LABEL
from trimtab.systems.discovery.scope import implementations, windows
from trimtab.systems.discovery.scope.addresses import MAX_ADDRESSES, Addresses
from trimtab.systems.discovery.scope.implementations import DnsName, Entry, Implementation
from trimtab.systems.discovery.scope.plan import PACKETS_VARIABLE, SOCKETS_VARIABLE, Shared, rule_plan

LONGEST_PROBE = 30.0
LONGEST_ANSWER = 300.0
LONGEST = 366 * 86400.0
SHORTEST_PERIOD = 0.25
"""Shorter ones keep a processor busy, and find nothing sooner: a probe alone waits longer for its answer."""
SHORTEST_LOCKOUT = 1.0
LONGEST_NAME = 256
"""Of an entry, as a status holds it."""

Profiles = Mapping[str, TargetConnectionProfile]
"""Connection profiles that exist, by name."""


class Reach(msgspec.Struct, frozen=True):
    """What of a source matters to a plan. Made once for any number of rules: a source may be large."""

    source: str
    addresses: int
    probed: bool = True


def source_problems(implementation: Implementation[Any], source: Resource) -> list[FieldError]:
    """All that is wrong with an object that a `ruleRef` may name: what its implementation says, and what holds for all."""
    if found := implementation.problems(source):
        return found
    entries = implementation.entries(source)
    details = [
        f"two entries are called {name}: each needs a name of its own"
        for name, times in Counter(entry.name for entry in entries).items()
        if times > 1
    ]
    details += [
        f"the entry {entry.name[:32]}… has a name of {len(entry.name)} characters, and {LONGEST_NAME} is the most"
        for entry in entries
        if len(entry.name) > LONGEST_NAME
    ]
    if (size := counted(entries)) > MAX_ADDRESSES:
        details.append(f"it has {size} addresses, and {MAX_ADDRESSES} is the most: make several rules of them")
    return [FieldError("spec", FieldProblem.INVALID, None, detail) for detail in details]


def reach_of(rule: DiscoveryRule, source: Resource | None) -> Reach | None:
    """Of the object of the rule's `ruleRef`; None while it does not exist, or is wrong in itself."""
    implementation = implementations.of(rule)
    if implementation is None or source is None or source_problems(implementation, source):
        return None
    if implementation.static(source) is not None:
        return Reach(source.name, 0, probed=False)
    return Reach(source.name, counted(implementation.entries(source)))


def rule_problems(
    rule: DiscoveryRule, source: Resource | None = None, profiles: Profiles | None = None, shared: Shared | None = None
) -> list[FieldError]:
    """All that is wrong with a rule. `source` is the object of its `ruleRef`, None while it does not exist."""
    return own_problems(rule) + fit_problems(rule, reach_of(rule, source), profiles or {}, shared)


def own_problems(rule: DiscoveryRule) -> list[FieldError]:
    """What is wrong with a rule whatever it names."""
    spec, found = rule.spec, []
    implementation = implementations.of(rule)
    if implementation is None:
        ref = f"{spec.rule_ref.kind} of {spec.rule_ref.group}/{spec.rule_ref.version}"
        listed = ", ".join(f'"{name}"' for name in implementations.supported(implementations.suffix_of(rule)))
        found.append(FieldError("spec.ruleRef", FieldProblem.UNSUPPORTED, ref, f"supported values: {listed}"))
    found += _name_problems("spec.ruleRef.name", spec.rule_ref.name)
    if not isinstance(spec.discovery_profile, UnsetType):
        found += _profile_problems(spec.discovery_profile)
    for i, connection in enumerate(spec.target_connection_profiles):
        path = f"spec.targetConnectionProfiles[{i}]"
        found += _name_problems(f"{path}.connectionProfile", connection.connection_profile)
        found += _name_problems(f"{path}.credentials", connection.credentials)
        found += _name_problems(f"{path}.tlsSecret", connection.tls_secret)
        found += _name_problems(f"{path}.syncProfile", connection.sync_profile)
    if not isinstance(spec.target_template, UnsetType):
        found += _template_problems(spec.target_template)
    found += _length_problems("spec.period", spec.period, LONGEST, SHORTEST_PERIOD)
    found += _length_problems("spec.lockoutWindow", spec.lockout_window, LONGEST, SHORTEST_LOCKOUT)
    found += windows.problems(spec.windows)
    found += _fading_problems(spec.fading)
    return found


def fit_problems(
    rule: DiscoveryRule, reach: Reach | None, profiles: Profiles, shared: Shared | None = None
) -> list[FieldError]:
    """What is wrong with a rule only together with its source and its profiles, as far as they exist."""
    if reach is None or not reach.probed:
        return []
    profile = rule.spec.discovery_profile
    if isinstance(profile, UnsetType):
        detail = f"{reach.source} is probed: say how; a DiscoveryRuleIPRange with a defaultSchema is not"
        return [FieldError("spec.discoveryProfile", FieldProblem.REQUIRED, None, detail)]
    used = [profiles[name].spec for name in dict.fromkeys(profile.connection_profiles) if name in profiles]
    plan = rule_plan(rule.spec, reach.addresses, used, shared or Shared())
    return plan_problems(plan, rule.spec.period)


def plan_problems(plan: Plan, period: Duration) -> list[FieldError]:
    """That a sweep may take longer than the time until the next."""
    if plan.worst_case.seconds <= period.seconds:
        return []
    detail = (
        f"a sweep of {plan.addresses} addresses takes up to {plan.worst_case} when nothing answers "
        f"({plan.probes} packets, {plan.packets_per_second} a second, {plan.sockets} sockets): make the period longer, "
        "name fewer addresses, lower probeTimeout or probeRetries of the connection profiles, "
        f"or allow more by packetsPerSecond, {PACKETS_VARIABLE} or {SOCKETS_VARIABLE}"
    )
    return [FieldError("spec.period", FieldProblem.INVALID, period, detail)]


def counted(entries: Iterable[Entry]) -> int:
    """How many addresses are known before anything is resolved; a DNS name counts as one."""
    sources = [entry.source for entry in entries]
    intervals = (interval for source in sources if isinstance(source, Addresses) for interval in source.intervals)
    return Addresses(intervals).size + sum(isinstance(source, DnsName) for source in sources)


def connection_problems(profile: TargetConnectionProfile) -> list[FieldError]:
    """All that is wrong with a connection profile."""
    spec = profile.spec
    return [
        *_length_problems("spec.timeout", spec.timeout, LONGEST_ANSWER),
        *_length_problems("spec.probeTimeout", spec.probe_timeout, LONGEST_PROBE),
        *_length_problems("spec.connectRetry", spec.connect_retry, LONGEST_ANSWER, or_nothing=True),
    ]


def sync_problems(profile: TargetSyncProfile) -> list[FieldError]:
    """All that is wrong with a sync profile."""
    found = []
    for i, entry in enumerate(profile.spec.sync):
        path = f"spec.sync[{i}]"
        if entry.protocol == "netconf" and entry.mode not in ("once", "get"):
            detail = 'supported values with netconf: "once", "get"'
            found.append(FieldError(f"{path}.mode", FieldProblem.UNSUPPORTED, entry.mode, detail))
        found += _length_problems(f"{path}.interval", entry.interval, LONGEST)
    return found


def _profile_problems(profile: DiscoveryProfile) -> Iterator[FieldError]:
    path = "spec.discoveryProfile"
    yield from _name_problems(f"{path}.credentials", profile.credentials)
    yield from _name_problems(f"{path}.tlsSecret", profile.tls_secret)
    lists: tuple[tuple[str, tuple[str, ...], set[str]], ...] = (
        ("fallbackCredentials", profile.fallback_credentials, {profile.credentials}),
        ("connectionProfiles", profile.connection_profiles, set()),
    )
    for field, names, seen in lists:
        for i, name in enumerate(names):
            yield from _name_problems(f"{path}.{field}[{i}]", name)
            if name in seen:
                yield FieldError(f"{path}.{field}[{i}]", FieldProblem.DUPLICATE, name)
            seen.add(name)


def _template_problems(template: TargetTemplate) -> Iterator[FieldError]:
    from trimtab.systems.discovery.targets import templates  # its library is for rules that have templates

    path = "spec.targetTemplate"
    if not isinstance(template.name_template, UnsetType) and (wrong := templates.check(template.name_template)):
        yield FieldError(f"{path}.nameTemplate", FieldProblem.INVALID, template.name_template, wrong)
    for field, texts in (("labels", template.labels), ("annotations", template.annotations)):
        for key, text in ({} if isinstance(texts, UnsetType) else texts).items():
            place = f"{path}.{field}[{key}]"
            if key in (RULE_LABEL, IDENTITY_LABEL):
                yield FieldError(place, FieldProblem.FORBIDDEN, None, "discovery itself writes it")
            for problem in label_key_problems(key if field == "labels" else key.lower()):
                yield FieldError(place, FieldProblem.INVALID, key, problem)
            if wrong := templates.check(text):
                yield FieldError(place, FieldProblem.INVALID, text, wrong)


def _fading_problems(fading: Fading) -> Iterator[FieldError]:
    for field, length in (("lostAfter", fading.lost_after), ("deleteAfter", fading.delete_after)):
        yield from _length_problems(f"spec.fading.{field}", length, LONGEST, or_nothing=True)
    if fading.delete_after.seconds < fading.lost_after.seconds:
        detail = f"must not be shorter than lostAfter ({fading.lost_after}): a Target is lost before it is deleted"
        yield FieldError("spec.fading.deleteAfter", FieldProblem.INVALID, fading.delete_after, detail)
    if fading.delete_after_misses < fading.lost_after_misses:
        detail = f"must not be less than lostAfterMisses ({fading.lost_after_misses})"
        yield FieldError("spec.fading.deleteAfterMisses", FieldProblem.INVALID, fading.delete_after_misses, detail)


def _length_problems(
    path: str, length: Duration, longest: float, shortest: float = 0.0, *, or_nothing: bool = False
) -> Iterator[FieldError]:
    if length.seconds < 0 or (length.seconds == 0 and not or_nothing):
        yield FieldError(path, FieldProblem.INVALID, length, "must be longer than nothing, such as 5s")
    elif length.seconds < shortest:
        yield FieldError(path, FieldProblem.INVALID, length, f"must be at least {Duration.of(shortest)}")
    if length.seconds > longest:
        yield FieldError(path, FieldProblem.INVALID, length, f"must be at most {Duration.of(longest)}")


def _name_problems(path: str, name: str | UnsetType) -> Iterator[FieldError]:
    if not isinstance(name, UnsetType):
        for problem in dns_subdomain_problems(name):
            yield FieldError(path, FieldProblem.INVALID, name, problem)
