"""What discovery says about a write before it is committed: `problems`, with what they need read.

Only a spec that is new or changed is judged, so that an annotation can be set on an object that would be refused today.
A rule is judged with its source and its connection profiles, and whichever of them is written last is refused when the
worst case of a sweep is longer than the rule's period.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any

from msgspec import UNSET, UnsetType

from trimtab.model.admission import Admission, AdmissionRequest, Allowed, Denied, Reader
from trimtab.model.errors import FieldError, FieldProblem
from trimtab.model.resource import Resource
from trimtab.model.scheme import Untyped
from trimtab.systems.discovery.kinds import (
    DiscoveryRule,
    DiscoveryVendorProfile,
    TargetConnectionProfile,
    TargetSyncProfile,
)
from trimtab.systems.discovery.problems import (
    Reach,
    connection_problems,
    fit_problems,
    own_problems,
    reach_of,
    source_problems,
    sync_problems,
)
from trimtab.systems.discovery.scope import implementations
from trimtab.systems.discovery.scope.plan import Shared, limits
from trimtab.systems.discovery.vendors.extends import circle, unresolved


async def rule(request: AdmissionRequest[DiscoveryRule], reader: Reader) -> Allowed | Denied:
    """A DiscoveryRule."""
    new = request.object
    if new is None or not _changed(request):
        return Allowed()
    around = _Around(reader, request.namespace)
    fit = fit_problems(new, await around.reach(new), await around.profiles(new), around.shared)
    return _answer(own_problems(new) + fit, _name_warnings(new))


async def source(request: AdmissionRequest[Any], reader: Reader) -> Allowed | Denied:
    """What a rule's `ruleRef` may name: DiscoveryRuleIPRange and others."""
    new = request.object
    if new is None or not _changed(request):
        return Allowed()
    implementation = next(one for one in implementations.known() if isinstance(new, one.kind))
    if problems := await asyncio.to_thread(source_problems, implementation, new):
        return _answer(problems)
    around = _Around(reader, request.namespace, new)
    errors: list[FieldError] = []
    for other in await around.rules():
        if other.spec.rule_ref.name == new.name and implementations.of(other) is implementation:
            fit = fit_problems(other, await around.reach(other), await around.profiles(other), around.shared)
            errors += _of(other, fit)
    return _answer(errors, await asyncio.to_thread(implementation.warnings, new))


async def connection(request: AdmissionRequest[TargetConnectionProfile], reader: Reader) -> Allowed | Denied:
    """A TargetConnectionProfile."""
    new = request.object
    if new is None or not _changed(request):
        return Allowed()
    if problems := connection_problems(new):
        return _answer(problems)
    around = _Around(reader, request.namespace)
    errors: list[FieldError] = []
    for other in await around.rules():
        if new.name in _asked_by(other):
            profiles = {**await around.profiles(other), new.name: new}
            errors += _of(other, fit_problems(other, await around.reach(other), profiles, around.shared))
    return _answer(errors, _tls_warnings(new))


async def sync(request: AdmissionRequest[TargetSyncProfile], reader: Reader) -> Allowed | Denied:
    """A TargetSyncProfile."""
    if request.object is None or not _changed(request):
        return Allowed()
    return _answer(sync_problems(request.object))


async def vendor(request: AdmissionRequest[DiscoveryVendorProfile], reader: Reader) -> Allowed | Denied:
    """A DiscoveryVendorProfile. Its parent may come later: that it is missing is said, and no more."""
    new = request.object
    if new is None or not _changed(request):
        return Allowed()
    from trimtab.systems.discovery.vendors.check import check  # its libraries are for those who write such profiles

    errors = await asyncio.to_thread(check, new)  # it may have hundreds of expressions to compile
    if errors or isinstance(new.spec.extends, UnsetType):
        return _answer(errors)
    listed = await reader.list(DiscoveryVendorProfile, request.namespace)
    others = [other for other in listed if isinstance(other, DiscoveryVendorProfile) and other.name != new.name]
    if around := circle(new, others):
        detail = f"profiles cannot extend each other in a circle: {' → '.join(around)}"
        return _answer([FieldError("spec.extends", FieldProblem.INVALID, new.spec.extends, detail)])
    missing = unresolved(new, others)
    return _answer([], (f"spec.extends: {missing}",) if missing else ())


def admissions(sources: Iterable[type[Resource]]) -> tuple[Admission, ...]:
    """All of them, with these as the kinds that a rule's `ruleRef` may name."""
    return (
        Admission(name="discovery-rule", kinds=(DiscoveryRule,), function=rule),
        Admission(name="discovery-source", kinds=tuple(sources), function=source),
        Admission(name="discovery-connection", kinds=(TargetConnectionProfile,), function=connection),
        Admission(name="discovery-sync", kinds=(TargetSyncProfile,), function=sync),
        Admission(name="discovery-vendor", kinds=(DiscoveryVendorProfile,), function=vendor),
    )


class _Around:
    """What rules name, read and counted once for one request. `written` is a source that goes before the stored one.

    A large source takes a while to count: that is done in a thread, so that others are answered meanwhile.
    """

    def __init__(self, reader: Reader, namespace: str, written: Resource | None = None) -> None:
        self._reader = reader
        self._namespace = namespace
        self._written = written
        self._profiles: dict[str, TargetConnectionProfile | None] = {}
        self._reaches: dict[tuple[type[Resource], str], Reach | None] = {}
        self.shared: Shared = limits()

    async def rules(self) -> list[DiscoveryRule]:
        """All, but for those that do not fit their schema any more."""
        listed = await self._reader.list(DiscoveryRule, self._namespace)
        return [rule for rule in listed if isinstance(rule, DiscoveryRule)]

    async def reach(self, rule: DiscoveryRule) -> Reach | None:
        implementation, name = implementations.of(rule), rule.spec.rule_ref.name
        if implementation is None:
            return None
        key = (implementation.kind, name)
        if key not in self._reaches:
            source = self._written or await self._reader.find(implementation.kind, name, self._namespace)
            known = source if isinstance(source, implementation.kind) else None
            self._reaches[key] = await asyncio.to_thread(reach_of, rule, known)
        return self._reaches[key]

    async def profiles(self, rule: DiscoveryRule) -> dict[str, TargetConnectionProfile]:
        """Those by which the rule asks, as far as they exist."""
        found = {}
        for name in _asked_by(rule):
            if name not in self._profiles:
                profile = await self._reader.find(TargetConnectionProfile, name, self._namespace)
                self._profiles[name] = profile if isinstance(profile, TargetConnectionProfile) else None
            if (known := self._profiles[name]) is not None:
                found[name] = known
        return found


def _changed(request: AdmissionRequest[Any]) -> bool:
    old, new = request.old, request.object
    return new is not None and (old is None or isinstance(old, Untyped) or bool(old.spec != new.spec))


def _answer(errors: list[FieldError], warnings: tuple[str, ...] = ()) -> Allowed | Denied:
    return Denied(errors=tuple(errors)) if errors else Allowed(warnings=warnings)


def _of(other: DiscoveryRule, problems: list[FieldError]) -> list[FieldError]:
    """The problems of a rule, said of what would cause them."""
    return [
        FieldError("spec", FieldProblem.FORBIDDEN, None, f'DiscoveryRule "{other.name}" would be wrong: {problem}')
        for problem in problems
    ]


def _asked_by(rule: DiscoveryRule) -> tuple[str, ...]:
    profile = rule.spec.discovery_profile
    return () if isinstance(profile, UnsetType) else tuple(dict.fromkeys(profile.connection_profiles))


def _name_warnings(rule: DiscoveryRule) -> tuple[str, ...]:
    template = rule.spec.target_template
    text = UNSET if isinstance(template, UnsetType) else template.name_template
    if isinstance(text, UnsetType) or "{{" in text:
        return ()
    return ("spec.targetTemplate.nameTemplate has no {{ … }}: all Targets have one name, told apart by a hash",)


def _tls_warnings(profile: TargetConnectionProfile) -> tuple[str, ...]:
    if profile.spec.insecure and profile.spec.protocol == "gnmi":
        return ("spec.insecure: passwords are sent without TLS, readable on the network",)
    return ()
