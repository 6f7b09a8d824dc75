"""Where the addresses of a rule come from: one class for each kind that a `ruleRef` may name.

A new implementation is a class with the kind that users write, and the entries of an object of it. `discovery(Yours())`
in `system` registers it and gives the system that defines, watches and judges its kind. Entries are what users wrote, one
by one: resolving DNS names and following Pods and Services is the same for all implementations, and done elsewhere.
"""

from __future__ import annotations

import ipaddress
import re
from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any, Generic, TypeVar

import msgspec
from msgspec import UNSET, UnsetType

from trimtab.model.errors import FieldError, FieldProblem, StatusError
from trimtab.model.names import dns_subdomain_problems
from trimtab.model.resource import Resource, definition_of
from trimtab.model.scheme import SUFFIX, Scheme
from trimtab.model.selectors import LabelSelector
from trimtab.systems.discovery.kinds import DiscoveryRule, DiscoveryRuleIPRange, PrefixEntry, RuleRef
from trimtab.systems.discovery.kinds.range import Selector
from trimtab.systems.discovery.scope.addresses import Addresses, parse, span

MAX_EXCLUDES = 4096
"""Of all prefixes of one object: what is judged while a user waits."""


class DnsName(msgspec.Struct, frozen=True):
    """A name to resolve at each sweep; all of its addresses count."""

    name: str


class Pods(msgspec.Struct, frozen=True):
    """Pods of the rule's namespace."""

    selector: LabelSelector


class Services(msgspec.Struct, frozen=True):
    """Services of the rule's namespace, by the name that the cluster's DNS gives them."""

    selector: LabelSelector
    domain: str = "cluster.local"


Source = Addresses | DnsName | Pods | Services


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that a user named. `name` is that of `status.entries`, and no two of an object have the same."""

    name: str
    source: Source
    host_name: str = ""
    """What to call it where nothing is probed."""


class Static(msgspec.Struct, frozen=True):
    """What is said of every entry instead of probing it."""

    provider: str
    version: str


K = TypeVar("K", bound=Resource)


class Implementation(ABC, Generic[K]):
    """One way to say where addresses are, in objects of its `kind`. Its functions are pure; they run in any thread."""

    kind: type[K]
    """Namespaced, with a `spec`: only a change of that one counts."""

    @abstractmethod
    def entries(self, obj: K) -> tuple[Entry, ...]:
        """What the object names. ValueError where `problems` has something to say."""

    def static(self, obj: K) -> Static | None:
        """What to write of entries that are not probed; None when they are."""
        return None

    def problems(self, obj: K) -> list[FieldError]:
        """All that is wrong with the object, beyond its schema. Unless said otherwise: why it has no entries."""
        try:
            self.entries(obj)
        except ValueError as error:
            return [FieldError("spec", FieldProblem.INVALID, None, str(error))]
        return []

    def warnings(self, obj: K) -> tuple[str, ...]:
        """What may be, and is hardly meant."""
        return ()


class IPRanges(Implementation[DiscoveryRuleIPRange]):
    """DiscoveryRuleIPRange: prefixes, single addresses and DNS names, Pods, Services."""

    kind = DiscoveryRuleIPRange

    def entries(self, obj: DiscoveryRuleIPRange) -> tuple[Entry, ...]:
        spec, found = obj.spec, {}
        for prefix in spec.prefixes:
            found[prefix.prefix] = Entry(name=prefix.prefix, source=Addresses.of((prefix,)))
        for entry in spec.addresses:
            name = f"addresses: {entry.address}" if entry.address in found else entry.address
            source = Addresses(parse(entry.address)) if _is_address(entry.address) else DnsName(entry.address)
            found[name] = Entry(name=name, source=source, host_name=entry.host_name or "")
        if spec.pod_selector is not UNSET:
            found["podSelector"] = Entry(name="podSelector", source=Pods(_selector(spec.pod_selector)))
        if spec.service_selector is not UNSET:
            services = Services(_selector(spec.service_selector), spec.service_domain)
            found["serviceSelector"] = Entry(name="serviceSelector", source=services)
        return tuple(found.values())

    def static(self, obj: DiscoveryRuleIPRange) -> Static | None:
        schema = obj.spec.default_schema
        return None if isinstance(schema, UnsetType) else Static(schema.provider, schema.version)

    def problems(self, obj: DiscoveryRuleIPRange) -> list[FieldError]:
        return list(_problems(obj))

    def warnings(self, obj: DiscoveryRuleIPRange) -> tuple[str, ...]:
        return tuple(_warnings(obj))


def register(implementation: Implementation[Any]) -> None:
    """Make it known. ValueError when its kind has one already, or cannot be used."""
    kind = implementation.kind
    definition = definition_of(kind)
    if not definition.namespaced or "spec" not in kind.__struct_fields__:
        raise ValueError(f"{definition.kind} must be namespaced and have a spec, for a rule to name it")
    key = (definition.group, definition.version, definition.kind)
    if key in _KNOWN:
        raise ValueError(f"{definition.kind} has an implementation already")
    _KNOWN[key] = implementation


def find(ref: RuleRef, suffix: str = SUFFIX) -> Implementation[Any] | None:
    """The implementation that a reference names; `suffix` is that of our groups' names."""
    scheme = Scheme(suffix)
    for (group, version, kind), implementation in _KNOWN.items():
        if (ref.group, ref.version, ref.kind) == (scheme.group(group), version, kind):
            return implementation
    return None


def of(rule: DiscoveryRule) -> Implementation[Any] | None:
    """The implementation of a rule."""
    return find(rule.spec.rule_ref, suffix_of(rule))


def suffix_of(rule: DiscoveryRule) -> str:
    """That of our groups' names, which a white label may change."""
    return rule.api_version.partition("/")[0].partition(".")[2] or SUFFIX


def known() -> tuple[Implementation[Any], ...]:
    """All that are registered."""
    return tuple(_KNOWN.values())


def supported(suffix: str = SUFFIX) -> tuple[str, ...]:
    """What a reference may name, as `DiscoveryRuleIPRange of discovery.trimtab.dev/v1alpha1`."""
    scheme = Scheme(suffix)
    return tuple(f"{kind} of {scheme.group(group)}/{version}" for group, version, kind in _KNOWN)


def _problems(obj: DiscoveryRuleIPRange) -> Iterator[FieldError]:
    spec = obj.spec
    excludes = sum(len(entry.excludes) for entry in spec.prefixes)
    if excludes > MAX_EXCLUDES:
        detail = (
            f"all prefixes have {excludes} excludes, and {MAX_EXCLUDES} is the most: "
            "exclude larger parts, or name only the prefixes to probe"
        )
        yield FieldError("spec.prefixes", FieldProblem.INVALID, f"{len(spec.prefixes)} prefixes", detail)
        return
    for i, prefix in enumerate(spec.prefixes):
        yield from _prefix_problems(prefix, f"spec.prefixes[{i}]")
    for i, entry in enumerate(spec.addresses):
        if detail := _address_problem(entry.address):
            yield FieldError(f"spec.addresses[{i}].address", FieldProblem.INVALID, entry.address, detail)
    for field, selector in (("podSelector", spec.pod_selector), ("serviceSelector", spec.service_selector)):
        try:
            if not isinstance(selector, UnsetType):
                _selector(selector)
        except StatusError as error:
            yield FieldError(f"spec.{field}", FieldProblem.INVALID, msgspec.to_builtins(selector), error.message)
    if wrong_domain := dns_subdomain_problems(spec.service_domain):
        yield FieldError("spec.serviceDomain", FieldProblem.INVALID, spec.service_domain, wrong_domain[0])


def _warnings(obj: DiscoveryRuleIPRange) -> Iterator[str]:
    spec = obj.spec
    for i, entry in enumerate(spec.prefixes):
        prefix, excluded = span(entry.prefix), [span(exclude) for exclude in entry.excludes]
        for j, interval in enumerate(excluded):
            if not interval.overlaps(prefix):
                exclude = entry.excludes[j]
                yield f"spec.prefixes[{i}].excludes[{j}]: {exclude} is not in {entry.prefix}, so it excludes nothing"
        if not Addresses(parse(entry.prefix)) - Addresses(excluded):
            yield f"spec.prefixes[{i}]: all of {entry.prefix} is excluded, so nothing of it is probed"
    for field, selector in (("podSelector", spec.pod_selector), ("serviceSelector", spec.service_selector)):
        if not isinstance(selector, UnsetType) and _selector(selector).empty:
            kind = "Pod" if field == "podSelector" else "Service"
            yield f"spec.{field} is empty: every {kind} of the namespace is meant"


def _prefix_problems(entry: PrefixEntry, path: str) -> Iterator[FieldError]:
    try:
        parse(entry.prefix)
    except ValueError as error:
        yield FieldError(f"{path}.prefix", FieldProblem.INVALID, entry.prefix, str(error))
    for i, exclude in enumerate(entry.excludes):
        try:
            span(exclude)
        except ValueError as error:
            yield FieldError(f"{path}.excludes[{i}]", FieldProblem.INVALID, exclude, str(error))


def _address_problem(text: str) -> str:
    if _is_address(text) or set(text) & set(":/%") or _NUMBERS.fullmatch(text):
        try:
            (interval,) = parse(text)
        except ValueError as error:
            return str(error)
        return "" if interval.size == 1 and "/" not in text else "is more than one address: give it as a prefix"
    if _DNS_NAME.fullmatch(text.lower()):
        return ""
    return "is neither an address nor a DNS name: write it as 10.1.0.5, 2001:db8::5 or leaf1.example.com"


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


def _selector(selector: Selector) -> LabelSelector:
    """StatusError when it is none."""
    return LabelSelector.from_document(msgspec.to_builtins(selector))


_LABEL = "[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?"
_DNS_NAME = re.compile(rf"{_LABEL}(\.{_LABEL})*\.?")
_NUMBERS = re.compile(r"[0-9.-]+")
_KNOWN: dict[tuple[str, str, str], Implementation[Any]] = {}

register(IPRanges())
