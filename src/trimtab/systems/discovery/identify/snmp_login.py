"""What a Secret says about SNMP: a community, or a user of SNMPv3 with keys.

The keys of SNMPv3 come from passwords by hashing a megabyte of repeats (RFC 3414 A.2), some milliseconds for each. That
is done once for a credential, in a thread; what comes of it is kept in memory under a keyed digest of the Secret's values
and goes with the process.
"""

from __future__ import annotations

import asyncio
import hashlib
import secrets
from collections.abc import Mapping
from typing import Any

from gufo.snmp import (
    Aes128Key,
    Aes192Key,
    Aes256Key,
    BaseAuthKey,
    BasePrivKey,
    DesKey,
    KeyExpansion,
    Md5Key,
    Sha1Key,
    Sha224Key,
    Sha256Key,
    Sha384Key,
    Sha512Key,
    User,
)
from gufo.snmp.user import KeyType

from trimtab.systems.discovery.findings import Login
from trimtab.systems.discovery.kinds import TargetConnectionProfileSpec

MOST_USERS = 256

AUTHENTICATION: Mapping[str, type[BaseAuthKey]] = {
    "MD5": Md5Key,
    "SHA": Sha1Key,
    "SHA224": Sha224Key,
    "SHA256": Sha256Key,
    "SHA384": Sha384Key,
    "SHA512": Sha512Key,
}
PRIVACY: Mapping[str, tuple[type[BasePrivKey], KeyExpansion]] = {
    "DES": (DesKey, KeyExpansion.Blumenthal),
    "AES": (Aes128Key, KeyExpansion.Blumenthal),
    "AES192": (Aes192Key, KeyExpansion.Blumenthal),
    "AES256": (Aes256Key, KeyExpansion.Blumenthal),
    "AES192C": (Aes192Key, KeyExpansion.Cisco),
    "AES256C": (Aes256Key, KeyExpansion.Cisco),
}
"""By name, how a short key is stretched; those with C do it as Cisco does."""
_OTHER_NAMES = {"SHA1": "SHA", "AES128": "AES"}
SHORTEST_PASSWORD = 8


class BadLogin(ValueError):  # noqa: N818 - it reads as what it is
    """The Secret cannot be used. The message names it and the key, and never a value of a secret key."""


def problem(login: Login, profile: TargetConnectionProfileSpec) -> str:
    """What is wrong with the Secret for this profile; nothing when it is sound."""
    try:
        if profile.spoken_snmp(login.values) == "v3":
            check_v3(login)
        else:
            community(login)
    except BadLogin as error:
        return str(error)
    return ""


def community(login: Login) -> bytes:
    """BadLogin."""
    value = login.values.get("community")
    if not value:
        raise BadLogin(f"the Secret {login.secret} has no key community, which SNMP v1 and v2c need")
    return value.reveal_bytes()


class Users:
    """SNMPv3 users with their keys, each computed once."""

    def __init__(self) -> None:
        self._salt = secrets.token_bytes(32)
        self._users: dict[bytes, User] = {}
        self._computing = asyncio.Lock()

    async def user(self, login: Login) -> User:
        """The user of the Secret. BadLogin."""
        digest = self._digest(login)
        if found := self._users.get(digest):
            return found
        async with self._computing:
            if found := self._users.get(digest):
                return found
            made = await asyncio.to_thread(_user, login)
            while len(self._users) >= MOST_USERS:
                del self._users[next(iter(self._users))]
            self._users[digest] = made
            return made

    def _digest(self, login: Login) -> bytes:
        mixed = hashlib.blake2b(key=self._salt, digest_size=32)
        for key in _V3_KEYS:
            value = login.values.get(key)
            octets = value.reveal_bytes() if value else b""
            mixed.update(len(octets).to_bytes(4, "big") + octets)  # so that two values are never read as others
        return mixed.digest()


def check_v3(login: Login) -> None:
    """BadLogin when the Secret makes no user."""
    name, _, _, _ = _parts(login)
    if not 0 < len(name.encode()) <= 32:
        raise BadLogin(f"the snmp-user of the Secret {login.secret} must have 1 to 32 octets")


_V3_KEYS = ("snmp-user", "auth-protocol", "auth-password", "priv-protocol", "priv-password")


def _user(login: Login) -> User:
    check_v3(login)
    name, authentication, privacy, expansion = _parts(login)
    if authentication is None:
        return User(name)
    auth_key = authentication(_master(authentication, login, "auth-password"), KeyType.Master)
    if privacy is None:
        return User(name, auth_key=auth_key)
    # RFC 3414 A.2 and 3826 1.2.1: the privacy key is made by the hash of the authentication protocol.
    priv_key = privacy(_master(authentication, login, "priv-password"), KeyType.Master)
    return User(name, auth_key=auth_key, priv_key=priv_key, key_expansion=expansion)


def _parts(login: Login) -> tuple[str, type[BaseAuthKey] | None, type[BasePrivKey] | None, KeyExpansion]:
    name = _plain(login, "snmp-user")
    if not name:
        raise BadLogin(f"the Secret {login.secret} has no key snmp-user, which SNMPv3 needs")
    has_auth, has_priv = bool(login.values.get("auth-password")), bool(login.values.get("priv-password"))
    if has_priv and not has_auth:
        raise BadLogin(f"the Secret {login.secret} has a priv-password and no auth-password: SNMPv3 needs both")
    for key in ("auth-password", "priv-password"):
        value = login.values.get(key)
        if value and len(value.reveal_bytes()) < SHORTEST_PASSWORD:
            raise BadLogin(f"the {key} of the Secret {login.secret} has less than {SHORTEST_PASSWORD} octets")
    authentication = _named(login, "auth-protocol", AUTHENTICATION) if has_auth else None
    privacy, expansion = _named(login, "priv-protocol", PRIVACY) if has_priv else (None, KeyExpansion.Blumenthal)
    return name, authentication, privacy, expansion


def _named(login: Login, key: str, known: Mapping[str, Any]) -> Any:
    written = _plain(login, key)
    name = written.upper().replace("-", "").replace("_", "").strip()
    found = known.get(_OTHER_NAMES.get(name, name))
    if found is None:
        said = f"is {written[:32]!r}" if written else "is missing"
        raise BadLogin(f"the {key} of the Secret {login.secret} {said}; it must be one of {', '.join(known)}")
    return found


def _plain(login: Login, key: str) -> str:
    """A value that is no secret."""
    value = login.values.get(key)
    try:
        return value.reveal() if value else ""
    except ValueError:
        raise BadLogin(f"the {key} of the Secret {login.secret} is not UTF-8 text") from None


def _master(authentication: type[BaseAuthKey], login: Login, key: str) -> bytes:
    made: bytes = authentication.get_master_key(login.values[key].reveal_bytes())
    return made
