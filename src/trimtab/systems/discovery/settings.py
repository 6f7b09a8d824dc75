"""All that a rule names, read together: profiles, Secrets, vendor knowledge. What is missing or wrong is told by name.

A loop works on one `Settings` for its whole life. Its `digest` differs as soon as anything that it was made of does, and
then the loop is replaced.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec
from msgspec import UNSET

from trimtab.client.protocol import Query
from trimtab.model.kubernetes import Secret
from trimtab.model.logs import log
from trimtab.model.redacted import Redacted
from trimtab.model.resource import Resource
from trimtab.model.scheme import Untyped
from trimtab.runtime.cached import CachedClient
from trimtab.runtime.credentials import CredentialError, Credentials, SecretRef
from trimtab.systems.discovery.findings import Login, Tls
from trimtab.systems.discovery.kinds import (
    DiscoveryRule,
    DiscoveryVendorProfile,
    ProfileStatus,
    TargetConnection,
    TargetConnectionProfile,
    TargetConnectionProfileSpec,
    TargetSyncProfile,
    UsedReferences,
)
from trimtab.systems.discovery.problems import rule_problems, source_problems
from trimtab.systems.discovery.scope.implementations import Entry, Static, of
from trimtab.systems.discovery.scope.plan import Shared
from trimtab.systems.discovery.vendors.choice import Vendors

VENDOR = "DiscoveryVendorProfile"
MAX_PROFILES = 128
"""What a status holds."""


class Connection(msgspec.Struct, frozen=True):
    """A connection profile to ask by, with the logins that serve it."""

    name: str
    spec: TargetConnectionProfileSpec
    logins: tuple[Login, ...]


class Offer(msgspec.Struct, frozen=True):
    """An entry of `targetConnectionProfiles`, with what it refers to."""

    connection: TargetConnection
    protocol: str
    used: UsedReferences


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """What a loop needs to know."""

    rule: DiscoveryRule
    entries: tuple[Entry, ...]
    connections: tuple[Connection, ...]
    offers: tuple[Offer, ...]
    tls: Tls
    vendors: Vendors
    static: Static | None
    """What to write of entries that are not probed; None when they are."""
    digest: str


class Gathered(msgspec.Struct, frozen=True):
    """What was found. `settings` is None when something is missing or wrong; `problems` says what."""

    settings: Settings | None
    profiles: tuple[ProfileStatus, ...]
    problems: tuple[str, ...]


async def gather(client: CachedClient, rule: DiscoveryRule, shared: Shared) -> Gathered:
    """Read from the cache all that the rule names."""
    return await _Gathering(client, rule, shared).gathered()


class _Gathering:
    def __init__(self, client: CachedClient, rule: DiscoveryRule, shared: Shared) -> None:
        self._client, self._rule, self._shared = client, rule, shared
        self._credentials = Credentials(client, cached=True)
        self._profiles: dict[tuple[str, str], ProfileStatus] = {}
        self._strangers: list[ProfileStatus] = []
        self._parts: dict[str, None] = {}
        self._secrets: dict[str, Login | None] = {}
        self._source: Resource | None = None
        self._connections: dict[str, TargetConnectionProfile] = {}

    async def gathered(self) -> Gathered:
        spec = self._rule.spec
        self._part(self._rule)
        entries, static = await self._entries()
        connections: list[Connection] = []
        tls = Tls()
        if static is None and spec.discovery_profile:
            profile = spec.discovery_profile
            logins = [
                login
                for name in dict.fromkeys((profile.credentials, *profile.fallback_credentials))
                if (login := await self._login(name)) is not None
            ]
            tls = await self._tls(profile.tls_secret) if profile.tls_secret else Tls()
            for name in dict.fromkeys(profile.connection_profiles):
                connection = await self._connection(name, logins)
                if connection is not None:
                    connections.append(connection)
        offers = [offer for entry in spec.target_connection_profiles if (offer := await self._offer(entry)) is not None]
        vendors = await self._vendors()  # a broken one that the rule does not name is shown, and stops nothing
        stopping = [f"{p.kind} {p.name}: {p.message}" for p in self._profiles.values() if not p.valid]
        wrong = await asyncio.to_thread(rule_problems, self._rule, self._source, self._connections, self._shared)
        named = [self._profiles[key] for key in sorted(self._profiles)]
        profiles = tuple([*named, *self._strangers][:MAX_PROFILES])
        problems = (*map(str, wrong), *sorted(stopping))
        if problems:
            return Gathered(None, profiles, problems)
        digest = hashlib.sha256("\n".join(self._parts).encode()).hexdigest()
        settings = Settings(
            rule=self._rule,
            entries=entries,
            connections=tuple(connections),
            offers=tuple(offers),
            tls=tls,
            vendors=vendors,
            static=static,
            digest=digest,
        )
        return Gathered(settings, profiles, ())

    async def _entries(self) -> tuple[tuple[Entry, ...], Static | None]:
        ref = self._rule.spec.rule_ref
        implementation = of(self._rule)
        if implementation is None:
            return (), None  # `rule_problems` says so
        found = await self._found(implementation.kind, ref.name)
        if found is None:
            return (), None
        try:
            if wrong := await asyncio.to_thread(source_problems, implementation, found):
                self._invalid(ref.kind, ref.name, "; ".join(map(str, wrong)))
                return (), None
            entries, static = await asyncio.to_thread(implementation.entries, found), implementation.static(found)
        except Exception as error:  # it may be anybody's class: what is wrong with it is told, and only this rule stops
            log.exception("an implementation failed", kind=ref.kind, name=ref.name, namespace=self._rule.namespace)
            self._invalid(ref.kind, ref.name, f"its implementation failed: {type(error).__name__}: {error}")
            return (), None
        self._source = found
        return entries, static

    async def _connection(self, name: str, logins: Iterable[Login]) -> Connection | None:
        profile = await self._found(TargetConnectionProfile, name)
        if profile is None:
            return None
        self._connections[name] = profile
        why: dict[str, str] = {}
        serving = []
        for login in logins:
            problem = lacks(login.values, profile.spec) or await asyncio.to_thread(_unsound, login, profile.spec)
            if problem:
                why[login.secret] = problem
            else:
                serving.append(login)
        if not serving and why:
            said = "; ".join(f"Secret {secret} {problem}" for secret, problem in why.items())
            self._invalid("TargetConnectionProfile", name, f"no credential serves {profile.spec.protocol}: {said}")
            return None
        return Connection(name, profile.spec, tuple(serving)) if serving else None

    async def _offer(self, entry: TargetConnection) -> Offer | None:
        profile = await self._found(TargetConnectionProfile, entry.connection_profile)
        secret = await self._found(Secret, entry.credentials)
        tls = await self._found(Secret, entry.tls_secret) if entry.tls_secret else None
        sync = await self._found(TargetSyncProfile, entry.sync_profile) if entry.sync_profile else None
        vendor = await self._found(DiscoveryVendorProfile, entry.vendor) if entry.vendor else None
        named = ((entry.tls_secret, tls), (entry.sync_profile, sync), (entry.vendor, vendor))
        if profile is None or secret is None or any(name and found is None for name, found in named):
            return None
        used = UsedReferences(
            secret_resource_version=_revision(secret),
            tls_secret_resource_version=UNSET if tls is None else _revision(tls),
            connection_profile_resource_version=_revision(profile),
            sync_profile_resource_version=UNSET if sync is None else _revision(sync),
        )
        return Offer(entry, profile.spec.protocol, used)

    async def _login(self, name: str) -> Login | None:
        if name not in self._secrets:
            self._secrets[name] = None
            secret = await self._found(Secret, name)
            if secret is not None:
                values = await self._values(name)
                if values is not None:
                    self._secrets[name] = Login(name, values, _revision(secret))
        return self._secrets[name]

    async def _tls(self, name: str) -> Tls:
        login = await self._login(name)
        if login is None:
            return Tls()
        ca, certificate, key = (login.values.get(part) for part in ("ca.crt", "tls.crt", "tls.key"))
        if (certificate is None) is not (key is None):
            missing = "tls.crt" if certificate is None else "tls.key"
            self._invalid("Secret", name, f"has no key {missing}: a client certificate needs tls.crt and tls.key")
        if ca is None and certificate is None:
            self._invalid("Secret", name, "has neither ca.crt nor tls.crt and tls.key")
        return Tls(
            ca=None if ca is None else ca.reveal_bytes(),
            certificate=None if certificate is None else certificate.reveal_bytes(),
            key=key,
        )

    async def _values(self, name: str) -> Mapping[str, Redacted] | None:
        try:
            return await self._credentials.resolve_all(SecretRef(name, self._rule.namespace))
        except CredentialError as error:
            self._invalid("Secret", name, str(error))
            return None

    async def _vendors(self) -> Vendors:
        listed = await self._client.list(DiscoveryVendorProfile, Query(namespace=self._rule.namespace))
        known = [profile for profile in listed.items if not isinstance(profile, Untyped)]
        for profile in sorted(known, key=lambda p: p.name):
            self._part(profile)
        vendors = await asyncio.to_thread(Vendors, known)
        for name, problem in sorted(vendors.problems.items()):
            if (VENDOR, name) in self._profiles:
                self._invalid(VENDOR, name, problem)
            else:
                self._strangers.append(ProfileStatus(kind=VENDOR, name=name, valid=False, message=problem[:512]))
        return vendors

    async def _found(self, kind: type[Resource], name: str) -> Any:
        """An object that the rule names; None, and a word about it, when it is missing or does not fit its kind."""
        label = kind.__name__
        found: Any = await self._client.find(kind, name, self._rule.namespace)
        if found is None:
            self._invalid(label, name, f"not found in namespace {self._rule.namespace}")
            return None
        if isinstance(found, Untyped):
            self._invalid(label, name, "does not fit its schema")
            return None
        self._profiles.setdefault((label, name), ProfileStatus(kind=label, name=name, valid=True))
        self._part(found)
        return found

    def _part(self, obj: Resource) -> None:
        state = obj.metadata.generation or _content(obj)
        self._parts[f"{type(obj).__name__}/{obj.name}/{obj.metadata.uid}/{state}"] = None

    def _invalid(self, kind: str, name: str, message: str) -> None:
        self._profiles[kind, name] = ProfileStatus(kind=kind, name=name, valid=False, message=message[:512])


def lacks(values: Mapping[str, Redacted], profile: TargetConnectionProfileSpec) -> str:
    """What a Secret with these keys lacks for the protocol; "" when it serves."""
    if profile.protocol == "gnmi":
        return ""  # a client certificate may do
    if profile.protocol == "snmp":
        if profile.spoken_snmp(values) == "v3":
            return "" if "snmp-user" in values else "has no key snmp-user"
        return "" if "community" in values else "has neither community nor snmp-user"
    if "username" not in values:
        return "has no key username"
    if "password" not in values and "ssh-privatekey" not in values:
        return "has neither password nor ssh-privatekey"
    return ""


def _unsound(login: Login, profile: TargetConnectionProfileSpec) -> str:
    """What is wrong with the values themselves, as far as that can be told without asking a device."""
    if profile.protocol != "snmp":
        return ""
    from trimtab.systems.discovery.identify import snmp_login  # with a library that rules without SNMP do not need

    problem = snmp_login.problem(login, profile)
    return f"is not sound: {problem}" if problem else ""


def _content(obj: Resource) -> str:
    """Of a Secret, which has no generation: a change of its metadata alone is none."""
    data = obj.data if isinstance(obj, Secret) else UNSET
    return hashlib.sha256(repr(sorted((data or {}).items())).encode()).hexdigest()


def _revision(obj: Resource) -> str:
    return str(obj.metadata.resource_version or "")
